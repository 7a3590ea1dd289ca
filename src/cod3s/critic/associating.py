"""Learn from pairs what vectors say about answers: heads that infer signatures, and what goes with what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.bundle import BundleFacts, read_facts, write_facts
from cod3s.corpus.manifest import load_manifest
from cod3s.critic.examples import answer_examples
from cod3s.decode.association import Association, save_association
from cod3s.decode.generator import Generator, load
from cod3s.decode.models import ASSOCIATIONS, PairScorer, association_file, head_file
from cod3s.encode import Encoder, Vectors
from cod3s.errors import Cod3sError, Progress, UsageError, require
from cod3s.io.disk import replaced_folder, require_new
from cod3s.options import SEED
from cod3s.signatures import Bits
from cod3s.signatures.head import SignatureHead, fit_head, save_head, share_inferred
from cod3s.signatures.signer import embed_all
from cod3s.train.pairs import read_rows

Halves = npt.NDArray[np.float16]
"""Vectors in half precision: there are many of them."""
RANK = 128
_PASSES, _MOST_STEPS, _LEAST_STEPS = 20, 2000, 100
_BATCH = 1024  # pairs; each target is a wrong one for all other sources of its batch
_RATE, _DECAY = 4e-3, 0.01
_SHARPNESS = 2.5  # the log of what cosines are multiplied with at the start
_HELD_OUT = 20  # every twentieth pair measures what was learned
_LEAST = 40


@dataclass(frozen=True)
class PairVectors:
    """The vectors of some sources and of their targets, row by row."""

    sources: Halves
    targets: Halves

    def __len__(self) -> int:
        return len(self.sources)

    def joined(self, more: "PairVectors") -> "PairVectors":
        """With more pairs, mixed evenly among these."""
        sources, targets = np.vstack([self.sources, more.sources]), np.vstack([self.targets, more.targets])
        positions = np.concatenate([np.linspace(0, 1, len(side), endpoint=False) for side in (self, more)])
        order = np.argsort(positions, kind="stable")
        return PairVectors(sources[order], targets[order])


def _embed_pairs(
    pairs: Mapping[str, Sequence[tuple[str, str]]], encoder: Encoder, progress: Progress
) -> dict[str, PairVectors]:
    """The vectors of the (source, target) pairs of each relation; each text is embedded once."""
    fewest = min(map(len, pairs.values()))
    if fewest < _LEAST:
        raise Cod3sError(f"{fewest} pairs are too few to learn from", hint=f"give {_LEAST} or more per relation")
    texts = list(dict.fromkeys(text for rows in pairs.values() for pair in rows for text in pair))
    vectors = embed_all(encoder, texts, progress).astype(np.float16)
    row = {text: number for number, text in enumerate(texts)}
    return {
        relation: PairVectors(vectors[[row[a] for a, _ in rows]], vectors[[row[b] for _, b in rows]])
        for relation, rows in pairs.items()
    }


def _every_twentieth(number: int) -> npt.NDArray[np.bool_]:
    held_out: npt.NDArray[np.bool_] = np.arange(number) % _HELD_OUT == 0
    return held_out


@dataclass(frozen=True)
class HeadFigures:
    """The share of bits of held-out pairs that a head infers; guessing takes the commoner bit."""

    pairs: int
    inferred: float
    guessed: float


@dataclass(frozen=True)
class AssociationFigures:
    """How often a held-out pair's target is preferred to a random one: by the association, and by the cosine."""

    pairs: int
    right: float
    by_cosine: float


@dataclass(frozen=True)
class Associations:
    """What a bundle has learned, by relation; one association serves a relation and its inverse."""

    heads: dict[str, HeadFigures]
    associations: dict[str, AssociationFigures]


def learn_associations(
    bundle: Path,
    corpus: Path | None,
    answers: Sequence[Path],
    *,
    limit: int,
    seed: int = SEED,
    force: bool = False,
    progress: Progress = lambda _: None,
) -> Associations:
    """Learn from the training pairs of a corpus and from tables of answers, up to `limit` of each per relation."""
    facts, generator = read_facts(bundle), load(bundle)
    require_new(bundle / ASSOCIATIONS, force)
    pairs = _read_pairs(generator, corpus, answers, limit, seed)
    signer = generator.signer
    vectors = _embed_pairs(pairs, signer.encoder, progress)
    heads: dict[str, HeadFigures] = {}
    associations: dict[str, AssociationFigures] = {}
    with replaced_folder(bundle / ASSOCIATIONS) as partial:
        for relation, rows in vectors.items():
            head, heads[relation] = _learn_head(rows, signer.code.sign, progress)
            save_head(partial / head_file(relation), head)
        for relation, rows in _by_couple(vectors, facts).items():
            association, associations[relation] = learn_association(rows, seed=seed, progress=progress)
            save_association(partial / association_file(relation), association)
    write_facts(bundle, replace(facts, associations=ASSOCIATIONS))
    return Associations(heads, associations)


def _read_pairs(
    generator: Generator, corpus: Path | None, answers: Sequence[Path], limit: int, seed: int
) -> dict[str, list[tuple[str, str]]]:
    """(source, target) pairs by relation, in an order that depends on the seed."""
    random = np.random.default_rng(seed)

    def drawn(rows: list[tuple[str, str]], most: int | None = None) -> list[tuple[str, str]]:
        return [rows[row] for row in random.permutation(len(rows))[:most].tolist()]

    tables: list[tuple[str, list[tuple[str, str]]]] = []
    if corpus is not None:
        for relation in load_manifest(corpus).relations:
            taught = read_rows(corpus, relation, "train")
            tables.append((relation, list(zip(taught.source, taught.target, strict=True))))
    for path in answers:
        by_relation: dict[str, list[tuple[str, str]]] = {}
        for example in answer_examples(path):
            by_relation.setdefault(example.pair.relation, []).append((example.pair.source, example.pair.target))
        tables += by_relation.items()
    pairs: dict[str, list[tuple[str, str]]] = {}
    for relation, rows in tables:
        generator.require_relation(relation)
        pairs.setdefault(relation, []).extend(drawn(rows, limit))
    if not pairs:
        raise UsageError("there are no pairs to learn from", hint="give a corpus, or --answers FILE")
    return {relation: drawn(rows) for relation, rows in pairs.items()}


def _by_couple(vectors: Mapping[str, PairVectors], facts: BundleFacts) -> dict[str, PairVectors]:
    """The pairs of each relation, with those of its inverse turned around."""
    couples: dict[str, PairVectors] = {}
    for relation, rows in vectors.items():
        inverse = facts.relations[relation].get("inverse", "")
        if inverse in couples:
            couples[inverse] = couples[inverse].joined(PairVectors(rows.targets, rows.sources))
        else:
            couples[relation] = rows
    return couples


def _learn_head(
    pairs: PairVectors, sign: Callable[[Vectors], Bits], progress: Progress
) -> tuple[SignatureHead, HeadFigures]:
    bits, held_out = sign(pairs.targets.astype(np.float32)), _every_twentieth(len(pairs))
    head = fit_head(pairs.sources[~held_out].astype(np.float32), bits[~held_out], progress)
    inferred = share_inferred(head, pairs.sources[held_out].astype(np.float32), bits[held_out])
    shares = bits[held_out].mean(axis=0)
    return head, HeadFigures(len(pairs), inferred, float(np.maximum(shares, 1 - shares).mean()))


def learn_association(
    pairs: PairVectors, *, seed: int, progress: Progress
) -> tuple[Association, AssociationFigures]:
    """The association of sources with their targets, by contrast with the targets of other pairs."""
    held_out = _every_twentieth(len(pairs))
    association = _contrast(pairs.sources[~held_out], pairs.targets[~held_out], seed, progress)
    sources, targets = pairs.sources[held_out].astype(np.float32), pairs.targets[held_out].astype(np.float32)
    others = np.roll(targets, 1, axis=0)

    def right(score: PairScorer) -> float:
        scores, rivals = score(sources, targets), score(sources, others)
        return float(((scores > rivals) + 0.5 * (scores == rivals)).mean())

    by_cosine = right(lambda a, b: np.einsum("nd,nd->n", a, b))
    return association, AssociationFigures(len(pairs), right(association), by_cosine)


def _contrast(read: Halves, written: Halves, seed: int, progress: Progress) -> Association:
    torch = require("torch", "train")
    torch.manual_seed(seed)
    sources, targets = torch.from_numpy(read), torch.from_numpy(written)
    dim, size = sources.shape[1], min(_BATCH, len(sources))
    steps = min(_MOST_STEPS, max(_LEAST_STEPS, _PASSES * len(sources) // size))
    scale = torch.nn.Parameter(torch.ones(dim))
    down, up = (torch.nn.Parameter(torch.randn(RANK, dim) * 0.02) for _ in range(2))
    sharpness = torch.nn.Parameter(torch.tensor(_SHARPNESS))
    optimiser = torch.optim.AdamW([scale, down, up, sharpness], lr=_RATE, weight_decay=_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps)
    right, cross_entropy = torch.arange(size), torch.nn.functional.cross_entropy
    for _ in range(steps):
        rows = torch.randint(len(sources), (size,))
        vectors = sources[rows].float()
        carried = torch.nn.functional.normalize(vectors * scale + vectors @ down.T @ up, dim=1)
        scores = carried @ targets[rows].float().T * sharpness.exp()
        loss = cross_entropy(scores, right) + cross_entropy(scores.T, right)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        progress(1)
    return Association(*(weights.detach().numpy() for weights in (scale, down, up)))
