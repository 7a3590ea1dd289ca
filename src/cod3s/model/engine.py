"""The `Engine` protocol (search, sample, score, weigh) and the engine of bundles: CTranslate2, without torch."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cod3s.encode.engine_file import EngineFile, read_engine_file
from cod3s.encode.fast import open_engine
from cod3s.errors import BundleError
from cod3s.files.disk import read_json
from cod3s.model.prompted import (
    Prompt,
    PromptedDecoder,
    can_prompt,
    has_absolute_positions,
    leading_token,
    prompt_batches,
)
from cod3s.model.reader import Reader
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import Vocabulary

LogProbs = npt.NDArray[np.float64]

# Sizes of the batches in which the processor is busy and its cache is not overrun (docs/measured/speed.md).
_BATCH_ROWS = 320  # requests times beams or samples
_BATCH_TOKENS = 1200  # tokens read and written, for scoring
_DRAWN_TOGETHER = 5  # requests that share a seed: fixed, so that draws do not depend on the number of cores
_NEXT_SEED = 1_000_003  # between such parts: far from the seeds that people choose

# How numbers are multiplied, whatever the weights are kept in: int8 products cost a small seq2seq model up to a
# fifth of a nat per token.
COMPUTE = "float32"

_DEAD = -1e8  # scores below it mark beams that were off while the prefix was forced; some are returned

_ALIGNMENT = "decoder/alignment_layer"

_SEEDING = Lock()  # the engine's random seed belongs to the whole process


@dataclass(frozen=True)
class Request:
    """What the encoder reads (None for nothing), and the ids that the decoder starts with, a role's tag first."""

    source: str | None
    prefix: tuple[int, ...]


@dataclass(frozen=True)
class Draws:
    """How to sample: how many times, each token from the `top_k` likeliest."""

    samples: int
    top_k: int
    temperature: float
    max_tokens: int
    seed: int


class Engine(Protocol):
    """What decoding needs from a model. Log-probabilities are sums of natural logarithms after the prefix."""

    def search(
        self, requests: Sequence[Request], *, beam: int, max_tokens: int, only: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        """The `beam` hypotheses of each request that length-normalised beam search finds, best first.

        With `only`, exactly `max_tokens` tokens among those ids are written, and no end.
        """
        ...

    def sample(self, requests: Sequence[Request], draws: Draws) -> list[list[Hypothesis]]:
        """Draws for each request, with replacement; the same for the same seed."""
        ...

    def score(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[int]], *, end: bool = True
    ) -> list[Hypothesis]:
        """Each continuation after its request's prefix, and, unless `end` is False, the end token."""
        ...

    def weigh(self, requests: Sequence[Request], tokens: Sequence[int]) -> LogProbs:
        """The log-probability of each of `tokens`, given that one of them comes next: (requests, tokens)."""
        ...

    def cuts(self, source: str) -> bool:
        """Whether the source is longer than the encoder reads; the rest is left out."""
        ...


Files = dict[str, bytes]
"""The files of a model by name."""


class CTranslate2Engine(ABC):
    """What engines of both families share: a single-threaded worker per core, searches, repeatable samples."""

    _KIND: str  # of CTranslate2's models

    def __init__(
        self, folder: Path, vocabulary: Vocabulary, *, positions: int, threads: int | None, compute: str
    ) -> None:
        self._folder, self._vocabulary = folder, vocabulary
        self._positions, self._compute = positions, compute
        self._names = vocabulary.tokens
        self._end = vocabulary.end
        self._threads = threads or os.cpu_count() or 1
        self._suppressed: dict[tuple[int, ...], list[list[str]]] = {}
        for path in sorted(folder.glob("*.json")):
            _require_sound(path)
        self._model = self._open(self._threads, self._files())

    def search(
        self, requests: Sequence[Request], *, beam: int, max_tokens: int, only: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        options: dict[str, Any] = {"beam_size": beam, "num_hypotheses": beam}
        if only is not None:
            options["suppress_sequences"] = self._all_but(tuple(only))
        return self._write(self._model, requests, max_tokens, only is not None, options)

    def sample(self, requests: Sequence[Request], draws: Draws) -> list[list[Hypothesis]]:
        different = draws.samples if draws.top_k > 1 else 1  # with a single token to choose from, all are equal
        options = {
            "beam_size": 1,
            "num_hypotheses": different,
            "sampling_topk": min(draws.top_k, len(self._names)),  # the engine refuses more than there are
            "sampling_temperature": draws.temperature,
        }
        parts = [requests[start : start + _DRAWN_TOGETHER] for start in range(0, len(requests), _DRAWN_TOGETHER)]
        files = self._files() if parts else None

        def draw(number: int) -> list[list[Hypothesis]]:
            model = self._seeded((draws.seed + number * _NEXT_SEED) % 2**32, parts[number][:1], files)
            return self._write(model, parts[number], draws.max_tokens, False, options)

        with ThreadPoolExecutor(self._threads) as workers:
            rows = [hypotheses for part in workers.map(draw, range(len(parts))) for hypotheses in part]
        return [sorted(row * (draws.samples // different), key=lambda h: -h.log_prob / h.length) for row in rows]

    @abstractmethod
    def _write(
        self, model: Any, requests: Sequence[Request], max_tokens: int, exactly: bool, options: dict[str, Any]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each request: at most `max_tokens` tokens and an end, or `exactly` as many without."""

    def _files(self) -> Files | None:
        """The files of the model, if CTranslate2 cannot open the folder by itself."""
        return None

    def _open(self, workers: int, files: Files | None) -> Any:
        with self._explained("opened"):
            return open_engine(
                self._KIND,
                str(self._folder),
                files=files,  # it copies them
                compute_type=self._compute,
                inter_threads=workers,
                intra_threads=1,
            )

    @contextmanager
    def _explained(self, use: str) -> Iterator[None]:
        """Turn what CTranslate2 raises on damaged files into an error that names the model.

        Some damage is noticed only when the model runs, such as a vocabulary that does not fit the weights.
        """
        try:
            yield
        except (RuntimeError, ValueError, IndexError, KeyError) as error:
            raise BundleError(
                f"the model in {self._folder} cannot be {use}: {error}", hint="copy or export the bundle again"
            ) from error

    def _seeded(self, seed: int, example: Sequence[Request], files: Files | None) -> Any:
        """The model with a single worker that draws from `seed` on.

        A worker takes the process's seed when it first samples and keeps it, so only a new worker repeats draws.
        It must sample once before another seed is set, and be alone: draws of two would depend on their timing.
        """
        import ctranslate2

        with _SEEDING:
            ctranslate2.set_random_seed(seed)
            model = self._open(1, files)
            self._write(model, example, 1, False, {"beam_size": 1, "sampling_topk": 2})
        return model

    def _all_but(self, kept: tuple[int, ...]) -> list[list[str]]:
        if kept not in self._suppressed:
            allowed = set(kept)
            self._suppressed[kept] = [[name] for n, name in enumerate(self._names) if n not in allowed]
        return self._suppressed[kept]


def _require_sound(path: Path) -> None:
    """Refuse what crashes CTranslate2: values nested too deep, and tokens that stand twice in a vocabulary."""
    content = read_json(path)
    is_list = path.name.endswith("vocabulary.json") and isinstance(content, list)
    if is_list and len(set(map(str, content))) < len(content):
        raise BundleError(f"a token appears twice in {path}", hint="copy or export the bundle again")


def _sound_weights(path: Path) -> EngineFile | None:
    """The weights, unless they crash CTranslate2: it reads attention from a layer that the file names."""
    if not path.is_file() or not path.stat().st_size:
        return None  # the engine says so
    with path.open("rb") as file:
        whole = read_engine_file(memoryview(mmap(file.fileno(), 0, access=ACCESS_READ)), str(path))
    layers = {name.split("/")[1] for name in whole.variables if name.startswith("decoder/layer_")}
    try:
        layer = whole.number(_ALIGNMENT) if _ALIGNMENT in whole.variables else -1.0
    except (IndexError, ValueError):
        layer = float("inf")
    if not -len(layers) <= layer < len(layers):
        raise BundleError(f"{path} is damaged: it has no layer {layer:g}", hint="copy or export the bundle again")
    return whole


class FastEngine(CTranslate2Engine):
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
        self._prompted: dict[int, PromptedDecoder] = {}  # by the tag that prefixes start with
        self._prompting = Lock()
        weights = _sound_weights(folder / "model.bin")
        self._reads_prompts = weights is not None and has_absolute_positions(weights)
        self._ids = {name: number for number, name in enumerate(vocabulary.tokens)}
        super().__init__(folder, vocabulary, positions=positions, threads=threads, compute=compute)

    def search(
        self, requests: Sequence[Request], *, beam: int, max_tokens: int, only: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        """The same, but prefixes are read at once where that saves steps."""
        found: dict[int, list[Hypothesis]] = {}
        if self._reads_prompts and only is None and beam > 1:
            for (tag, most), rows in self._promptable(requests, max_tokens).items():
                hypotheses = self._search_prompted([requests[row] for row in rows], tag, beam, most)
                found.update(zip(rows, hypotheses, strict=True))
        left = [row for row in range(len(requests)) if row not in found]
        written = super().search([requests[row] for row in left], beam=beam, max_tokens=max_tokens, only=only)
        found.update(zip(left, written, strict=True))
        return [found[row] for row in range(len(requests))]

    def score(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[int]], *, end: bool = True
    ) -> list[Hypothesis]:
        rows = list(zip(requests, continuations, strict=True))
        if not rows:
            return []
        written = [
            (*request.prefix, *tokens)[: max(self._positions, len(request.prefix))] for request, tokens in rows
        ]
        read = [self._read(request.source) for request in requests]
        pending: dict[int, Any] = {}
        with self._explained("run"):
            for batch in self._scored_together(read, written):
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
            given = length - 1  # the engine does not count the tag
            most = min(given + max_tokens, self._positions - 1)
            lengths = {"max_decoding_length": most, "min_decoding_length": most if exactly else 0}
            alike = [requests[row] for row in rows]
            with self._explained("run"):
                for row, result in zip(rows, self._translate(model, alike, {**options, **lengths}), strict=True):
                    pairs = zip(result.hypotheses, result.scores, strict=True)
                    hypotheses[row] = [
                        self._hypothesis(names, score, given) for names, score in pairs if score > _DEAD
                    ]
        return hypotheses

    def _scored_together(
        self, read: Sequence[Sequence[str]], written: Sequence[Sequence[int]]
    ) -> Iterator[list[int]]:
        """The numbers of rows of similar lengths, so that little is padded."""
        sizes = [len(source) + len(ids) for source, ids in zip(read, written, strict=True)]
        most = min(_BATCH_TOKENS, -(-sum(sizes) // self._threads))
        batch: list[int] = []
        longest = 0
        for row in sorted(range(len(sizes)), key=lambda row: (len(written[row]), len(read[row]))):
            longest = max(longest, sizes[row])
            if batch and longest * (len(batch) + 1) > most:
                yield batch
                batch, longest = [], sizes[row]
            batch.append(row)
        yield batch

    def _promptable(self, requests: Sequence[Request], max_tokens: int) -> dict[tuple[int, int], list[int]]:
        """The numbers of the requests whose prefixes can be read at once, by tag and by how many tokens fit."""
        rows: dict[tuple[int, int], list[int]] = {}
        for number, request in enumerate(requests):
            most = min(max_tokens, self._positions - len(request.prefix))
            if most > 0 and can_prompt(request.prefix, self._vocabulary):
                rows.setdefault((request.prefix[0], most), []).append(number)
        return rows

    def _search_prompted(
        self, requests: Sequence[Request], tag: int, beam: int, max_tokens: int
    ) -> list[list[Hypothesis]]:
        prompts = [Prompt(tuple(self._read_ids(request.source)), request.prefix) for request in requests]
        together = max(1, min(_BATCH_ROWS // beam, -(-len(requests) // self._threads)))
        batches = prompt_batches(prompts, leading_token(self._vocabulary), together)
        with self._explained("run"):
            with self._prompting:
                if tag not in self._prompted:
                    options: dict[str, Any] = {"threads": self._threads, "compute": self._compute}
                    self._prompted[tag] = PromptedDecoder(self._folder, self._vocabulary, tag, **options)
            return self._prompted[tag].search(prompts, batches, beam=beam, max_tokens=max_tokens)

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

    def _hypothesis(self, names: list[str], score: float, given: int) -> Hypothesis:
        """The engine divides the sum by the number of all tokens it counts: prefix, text and end."""
        ids = [self._ids[name] for name in names]
        ended = bool(ids) and ids[-1] == self._end
        return Hypothesis(
            tuple(ids[given:-1] if ended else ids[given:]), score * len(ids), max(1, len(ids) - given)
        )

    def _read(self, source: str | None) -> list[str]:
        return [self._reader.tokens[number] for number in self._read_ids(source)]

    def _read_ids(self, source: str | None) -> Sequence[int]:
        return self._reader.nothing if source is None else self._reader.read(source)


def _scored(tokens: tuple[int, ...], log_probs: list[float], end: bool) -> Hypothesis:
    kept = log_probs if end else log_probs[:-1]
    return Hypothesis(tokens, sum(kept), len(kept))


def rows_by_prefix_length(requests: Sequence[Request]) -> Iterator[tuple[int, list[int]]]:
    """The lengths of the requests' prefixes, and for each the numbers of the requests."""
    return rows_by_length([len(request.prefix) for request in requests])


def rows_by_length(lengths: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Each length that occurs, and the numbers of the rows that have it."""
    for shared, rows in groupby(sorted(range(len(lengths)), key=lengths.__getitem__), key=lengths.__getitem__):
        yield shared, list(rows)


def normalised(logits: LogProbs) -> LogProbs:
    """Log-probabilities of each row: (requests, tokens)."""
    shifted = logits - logits.max(axis=1, keepdims=True, initial=-np.inf)
    log_probs: LogProbs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_probs
