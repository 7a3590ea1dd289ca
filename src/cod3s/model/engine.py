"""The `Engine` protocol (search, sample, score, weigh), and what the engines of bundles share."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cod3s.encode.fast import open_engine
from cod3s.errors import BundleError
from cod3s.io.disk import read_json
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import Vocabulary

LogProbs = npt.NDArray[np.float64]

NO_VERDICT = "only language models give verdicts"
_DRAWN_TOGETHER = 5  # requests that share a seed: fixed, so that draws do not depend on the number of cores
_NEXT_SEED = 1_000_003  # between such parts: far from the seeds that people choose

# How numbers are multiplied, whatever the weights are kept in: int8 products cost a small seq2seq model up to a
# fifth of a nat per token.
COMPUTE = "float32"

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
        self,
        requests: Sequence[Request],
        continuations: Sequence[Sequence[int]],
        *,
        end: bool = True,
        then: int | None = None,
    ) -> list[Hypothesis]:
        """Each continuation after its request's prefix, and, unless `end` is False, the end token.

        `then` is a token whose log-probability after all that is reported apart, as `Hypothesis.then`: a verdict.
        Only language models know it.
        """
        ...

    def weigh(self, requests: Sequence[Request], tokens: Sequence[int]) -> LogProbs:
        """The log-probability of each of `tokens`, given that one of them comes next: (requests, tokens)."""
        ...

    def cuts(self, source: str) -> bool:
        """Whether the source is longer than the encoder reads; the rest is left out."""
        ...


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
        self._model = self._open(self._threads)

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

        def draw(number: int) -> list[list[Hypothesis]]:
            model = self._seeded((draws.seed + number * _NEXT_SEED) % 2**32, parts[number][:1])
            return self._write(model, parts[number], draws.max_tokens, False, options)

        with ThreadPoolExecutor(self._threads) as workers:
            rows = [hypotheses for part in workers.map(draw, range(len(parts))) for hypotheses in part]
        return [sorted(row * (draws.samples // different), key=lambda h: -h.log_prob / h.length) for row in rows]

    @abstractmethod
    def _write(
        self, model: Any, requests: Sequence[Request], max_tokens: int, exactly: bool, options: dict[str, Any]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each request: at most `max_tokens` tokens and an end, or `exactly` as many without."""

    def _open(self, workers: int) -> Any:
        with self._explained("opened"):
            return open_engine(
                self._KIND,
                str(self._folder),
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

    def _seeded(self, seed: int, example: Sequence[Request]) -> Any:
        """The model with a single worker that draws from `seed` on.

        A worker takes the process's seed when it first samples and keeps it, so only a new worker repeats draws.
        It must sample once before another seed is set, and be alone: draws of two would depend on their timing.
        """
        import ctranslate2

        with _SEEDING:
            ctranslate2.set_random_seed(seed)
            model = self._open(1)
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
