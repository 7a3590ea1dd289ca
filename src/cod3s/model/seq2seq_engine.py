"""Run an exported seq2seq model: search, sample, score and weigh, on CTranslate2, without torch."""

from collections.abc import Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from cod3s.encode.protocol import length_sorted_batches
from cod3s.errors import BundleError, UsageError
from cod3s.model.engine import (
    COMPUTE,
    NO_VERDICT,
    CTranslate2Engine,
    LogProbs,
    Request,
    normalised,
    rows_by_prefix_length,
)
from cod3s.model.engine_file import read_engine_file
from cod3s.model.prefix_decoder import PrefixDecoder, Prompt, is_long_prefix
from cod3s.model.reader import Reader
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import Vocabulary

# Sizes of the batches in which the processor is busy and its cache is not overrun.
_BATCH_ROWS = 320  # requests times beams or samples
_BATCH_TOKENS = 1200  # tokens read and written, for scoring

_DEAD = -1e8  # scores below it mark beams that were off while the prefix was forced; some are returned
_ALIGNMENT = "decoder/alignment_layer"


class Seq2SeqEngine(CTranslate2Engine):
    """An exported seq2seq model, open."""

    _KIND = "Translator"

    def __init__(
        self,
        folder: Path,
        reader: Reader,
        vocabulary: Vocabulary,
        *,
        positions: int,
        threads: int | None = None,
        compute: str = COMPUTE,
    ) -> None:
        self._reader = reader
        self._prefix_decoders: dict[int, PrefixDecoder] = {}  # by the tag that prefixes start with
        self._opening = Lock()
        _require_sound_weights(folder / "model.bin")
        self._ids = {name: number for number, name in enumerate(vocabulary.tokens)}
        super().__init__(folder, vocabulary, positions=positions, threads=threads, compute=compute)

    def search(
        self, requests: Sequence[Request], *, beam: int, max_tokens: int, only: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        """The same, but long prefixes are read at once."""
        hypotheses: dict[int, list[Hypothesis]] = {}
        if only is None and beam > 1:
            for (tag, most), rows in self._with_long_prefixes(requests, max_tokens).items():
                written = self._search_after_prefixes([requests[row] for row in rows], tag, beam, most)
                hypotheses.update(zip(rows, written, strict=True))
        left = [row for row in range(len(requests)) if row not in hypotheses]
        written = super().search([requests[row] for row in left], beam=beam, max_tokens=max_tokens, only=only)
        hypotheses.update(zip(left, written, strict=True))
        return [hypotheses[row] for row in range(len(requests))]

    def score(
        self,
        requests: Sequence[Request],
        continuations: Sequence[Sequence[int]],
        *,
        end: bool = True,
        then: int | None = None,
    ) -> list[Hypothesis]:
        if then is not None:
            raise UsageError(NO_VERDICT)
        rows = list(zip(requests, continuations, strict=True))
        if not rows:
            return []
        written = [
            (*request.prefix, *tokens)[: max(self._positions, len(request.prefix))] for request, tokens in rows
        ]
        read = [self._read(request.source) for request in requests]
        pending: dict[int, Any] = {}
        with self._explained("run"):
            sizes = [len(source) + len(ids) for source, ids in zip(read, written, strict=True)]
            most = min(_BATCH_TOKENS, -(-sum(sizes) // self._threads))
            for batch in length_sorted_batches(sizes, most):
                results = self._model.score_batch(
                    [read[row] for row in batch],
                    [[self._names[number] for number in written[row]] for row in batch],
                    asynchronous=True,
                )
                pending.update(zip(batch, results, strict=True))
            log_probs = [pending[row].result().log_probs for row in range(len(rows))]
        return [
            _scored(ids[len(request.prefix) :], values[len(request.prefix) - 1 :], end)
            for (request, _), ids, values in zip(rows, written, log_probs, strict=True)
        ]

    def weigh(self, requests: Sequence[Request], tokens: Sequence[int]) -> LogProbs:
        logits = np.empty((len(requests), len(tokens)))
        for length, rows in rows_by_prefix_length(requests):
            alike = [requests[row] for row in rows]
            options = {"beam_size": 1, "return_logits_vocab": True, "max_decoding_length": length}
            with self._explained("run"):
                for row, result in zip(rows, self._translate(self._model, alike, options), strict=True):
                    logits[row] = np.asarray(result.logits[0][length - 1])[list(tokens)]
        return normalised(logits)

    def cuts(self, source: str) -> bool:
        return self._reader.cuts(source)

    def _write(
        self, model: Any, requests: Sequence[Request], max_tokens: int, exactly: bool, options: dict[str, Any]
    ) -> list[list[Hypothesis]]:
        """The engine counts the prefix as written, so only requests with prefixes of equal length run together."""
        hypotheses: list[list[Hypothesis]] = [[] for _ in requests]
        for length, rows in rows_by_prefix_length(requests):
            forced = length - 1  # the engine does not count the tag
            most = min(forced + max_tokens, self._positions - 1)
            lengths = {"max_decoding_length": most, "min_decoding_length": most if exactly else 0}
            alike = [requests[row] for row in rows]
            with self._explained("run"):
                for row, result in zip(rows, self._translate(model, alike, {**options, **lengths}), strict=True):
                    pairs = zip(result.hypotheses, result.scores, strict=True)
                    hypotheses[row] = [
                        self._hypothesis(names, score, forced) for names, score in pairs if score > _DEAD
                    ]
        return hypotheses

    def _with_long_prefixes(
        self, requests: Sequence[Request], max_tokens: int
    ) -> dict[tuple[int, int], list[int]]:
        """The numbers of the requests with long prefixes, by tag and by how many tokens fit after them."""
        rows: dict[tuple[int, int], list[int]] = {}
        for number, request in enumerate(requests):
            most = min(max_tokens, self._positions - len(request.prefix))
            if most > 0 and is_long_prefix(request.prefix, self._vocabulary):
                rows.setdefault((request.prefix[0], most), []).append(number)
        return rows

    def _search_after_prefixes(
        self, requests: Sequence[Request], tag: int, beam: int, max_tokens: int
    ) -> list[list[Hypothesis]]:
        prompts = [Prompt(tuple(self._reader.ids(request.source)), request.prefix) for request in requests]
        together = max(1, min(_BATCH_ROWS // beam, -(-len(requests) // self._threads)))
        with self._explained("run"):
            with self._opening:
                if tag not in self._prefix_decoders:
                    options: dict[str, Any] = {"threads": self._threads, "compute": self._compute}
                    self._prefix_decoders[tag] = PrefixDecoder(self._folder, self._vocabulary, tag, **options)
            return self._prefix_decoders[tag].search(prompts, together=together, beam=beam, max_tokens=max_tokens)

    def _translate(self, model: Any, requests: Sequence[Request], options: dict[str, Any]) -> Any:
        rows = max(options["beam_size"], options.get("num_hypotheses", 1))
        even = -(-len(requests) // model.num_translators)
        return model.translate_batch(
            [self._read(request.source) for request in requests],
            target_prefix=[[self._names[number] for number in request.prefix] for request in requests],
            max_batch_size=max(1, min(_BATCH_ROWS // rows, even)),
            return_scores=True,
            return_end_token=True,
            **options,
        )

    def _hypothesis(self, names: list[str], score: float, forced: int) -> Hypothesis:
        """The engine divides the sum by the number of all tokens it counts: prefix, text and end."""
        ids = [self._ids[name] for name in names]
        ended = bool(ids) and ids[-1] == self._end
        return Hypothesis(
            tuple(ids[forced:-1] if ended else ids[forced:]), score * len(ids), max(1, len(ids) - forced)
        )

    def _read(self, source: str | None) -> list[str]:
        return [self._reader.tokens[number] for number in self._reader.ids(source)]


def _scored(tokens: tuple[int, ...], log_probs: list[float], end: bool) -> Hypothesis:
    kept = log_probs if end else log_probs[:-1]
    return Hypothesis(tokens, sum(kept), len(kept))


def _require_sound_weights(path: Path) -> None:
    """Refuse weights that crash CTranslate2: it reads attention from a layer that the file names."""
    if not path.is_file() or not path.stat().st_size:
        return  # the engine says so
    with path.open("rb") as file:
        weights = read_engine_file(memoryview(mmap(file.fileno(), 0, access=ACCESS_READ)), str(path))
    layers = {name.split("/")[1] for name in weights.variables if name.startswith("decoder/layer_")}
    try:
        layer = weights.number(_ALIGNMENT) if _ALIGNMENT in weights.variables else -1.0
    except (IndexError, ValueError):
        layer = float("inf")
    if not -len(layers) <= layer < len(layers):
        raise BundleError(f"{path} is damaged: it has no layer {layer:g}", hint="copy or export the bundle again")
