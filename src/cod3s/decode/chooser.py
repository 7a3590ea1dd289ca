"""Stage 1 as a whole: a task in, the signatures to write in for each of its sources out, with their bins."""

from collections.abc import Sequence
from pathlib import Path

from cod3s.bins import open_bins
from cod3s.bundle import bins_path
from cod3s.decode.distance import keep_apart
from cod3s.decode.players import Players
from cod3s.decode.rerank import Ranked, mean_log_prob, rank, rank_against_prior, score_signatures_backward
from cod3s.decode.signatures import find_signatures, read_signature
from cod3s.decode.task import Task
from cod3s.errors import BundleError, Cod3sError
from cod3s.records import Bin, ChosenSignature, Hypothesis
from cod3s.signatures import from_text


class SignatureChooser:
    """Chooses with the models and the bins of one bundle."""

    def __init__(self, folder: Path, players: Players) -> None:
        self._folder, self._players, self._facts = folder, players, players.facts

    def __call__(self, task: Task) -> list[list[ChosenSignature]]:
        """Those given for a source, or else those inferred for it."""
        inferred = [place for place, given in enumerate(task.given) if given is None]
        if inferred and task.system.oracle:
            raise Cod3sError(
                f"the system {task.system.name} needs each source's signature", hint="pass signatures=[[…], …]"
            )
        kept: dict[int, list[tuple[str, Ranked | None, int | None]]] = {}
        for place, own in zip(inferred, self._infer(task, inferred), strict=True):
            kept[place] = own
        for place, given in enumerate(task.given):
            if given is not None:
                kept[place] = [(_checked(one, self._facts.bits), None, None) for one in dict.fromkeys(given)]
        found = self._bins(task.relation, [row[0] for own in kept.values() for row in own])
        return [[_chosen(*row, found.get(row[0])) for row in kept[place]] for place in range(len(task.sources))]

    def _infer(self, task: Task, places: Sequence[int]) -> list[list[tuple[str, Ranked | None, int | None]]]:
        """For each source, the k signatures of the n best that rank first and lie apart."""
        if not places:
            return []
        config, words = task.config, self._players.vocabulary
        sources = [task.sources[place] for place in places]
        found = find_signatures(
            self._players.signature(task.relation),
            words,
            sources,
            search=config.signature_search,
            best=max(config.signature_beam, config.k),
        )
        kept: list[list[tuple[str, Ranked | None, int | None]]] = []
        for place, own, ranked in zip(places, found, self._rank_signatures(task, sources, found), strict=True):
            names = [read_signature(words, own[row.place].tokens) or "" for row in ranked]
            apart = keep_apart(names, config.k, min_hamming=config.min_hamming, mode=config.apart)
            if apart.min_hamming != config.min_hamming:
                task.remarks[place].append(
                    f"too few signatures differ in more than {config.min_hamming} bits: "
                    f"these differ in more than {apart.min_hamming}"
                )
            if len(apart.places) < config.k:
                task.remarks[place].append(f"{len(apart.places)} signatures were found, {config.k} asked for")
            kept.append([(names[number], ranked[number], number) for number in apart.places])
        return kept

    def _rank_signatures(
        self, task: Task, sources: Sequence[str], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Ranked]]:
        config, words = task.config, self._players.vocabulary
        forwards = [[mean_log_prob(one) for one in own] for own in found]
        if config.rerank_signatures == "mmi":
            inverse = self._players.inverse(task.relation)
            assert inverse is not None  # `_resolved` has looked
            backwards = score_signatures_backward(inverse, words, sources, found)
            return [rank(f, b, config.signature_weight) for f, b in zip(forwards, backwards, strict=True)]
        if config.rerank_signatures == "prior":
            return self._rank_against_prior(task, found)
        return [rank(own) for own in forwards]

    def _rank_against_prior(self, task: Task, found: Sequence[Sequence[Hypothesis]]) -> list[list[Ranked]]:
        path = bins_path(self._folder, task.relation)
        if not path.is_file():
            raise BundleError(
                f"the bundle {self._facts.name} has no bins of {task.relation!r}, which `prior` needs",
                hint="choose --rerank-signatures mmi or none",
            )
        words = self._players.vocabulary
        names = [[read_signature(words, one.tokens) or "" for one in own] for own in found]
        with open_bins(path) as bins:
            sentences = bins.facts.sentences
            counts = {
                one.signature: one.count for one in bins.find(name for own in names for name in own).values()
            }
        return [
            rank_against_prior(
                own,
                [counts.get(name, 0) for name in its],
                sentences=sentences,
                bits=self._facts.bits,
                weight=task.config.prior_weight,
            )
            for own, its in zip(found, names, strict=True)
        ]

    def _bins(self, relation: str, signatures: Sequence[str]) -> dict[str, Bin]:
        """The bins of these signatures, as far as the bundle knows them."""
        path = bins_path(self._folder, relation)
        if not path.is_file():
            return {}
        with open_bins(path) as bins:  # opened for each batch: SQLite files are bound to a thread
            return bins.find(signatures)


def _checked(signature: str, bits: int) -> str:
    """A user's signature; one that is none, or of another length, is an error."""
    from_text(signature, bits)
    return signature


def _chosen(signature: str, ranked: Ranked | None, number: int | None, found: Bin | None) -> ChosenSignature:
    return ChosenSignature(
        signature,
        rank=number,
        score=ranked.score if ranked else None,
        forward=ranked.forward if ranked else None,
        backward=ranked.backward if ranked else None,
        count=found.count if found else 0,
        medoid=found.medoid if found else "",
    )
