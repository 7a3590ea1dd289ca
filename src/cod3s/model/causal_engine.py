"""Run an exported causal language model: search, sample, score and weigh, on CTranslate2, without torch.

The prompt is the source's statement up to its target, then a role's tag and what else is given. Requests of one
length run together, so that prompts are read at once and beams start after them.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.errors import BundleError
from cod3s.model.engine import COMPUTE, SEEDING, LogProbs, Request
from cod3s.model.parts import joined_parts
from cod3s.model.reader import Reader
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import Vocabulary

_BATCH_ROWS = 160  # requests times beams or samples
_BATCH_TOKENS = 1536  # for scoring
_DRAWN_TOGETHER = 5  # requests that share a seed: fixed, so that draws do not depend on the number of cores
_NEXT_SEED = 1_000_003


class CausalEngine:
    """An engine's model folder, open; one single-threaded worker per core. `readers` belong to the roles' tags."""

    def __init__(
        self,
        folder: Path,
        readers: Mapping[int, Reader],
        vocabulary: Vocabulary,
        *,
        positions: int,
        threads: int | None = None,
        compute: str = COMPUTE,
    ) -> None:
        self._folder, self._readers, self._positions, self._compute = folder, readers, positions, compute
        self._vocabulary = vocabulary
        self._names = vocabulary.tokens
        self._ids = {name: number for number, name in enumerate(vocabulary.tokens)}
        self._threads = threads or os.cpu_count() or 1
        self._suppressed: dict[tuple[int, ...], list[list[str]]] = {}
        self._model = self._open(self._threads)

    def search(
        self,
        requests: Sequence[Request],
        *,
        beam: int,
        best: int,
        max_tokens: int,
        only: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        options: dict[str, Any] = {"beam_size": beam, "num_hypotheses": best}
        if only is not None:
            options["suppress_sequences"] = self._all_but(tuple(only))
            options["min_length"] = max_tokens
        return self._generate(self._model, requests, max_tokens, options)

    def sample(
        self,
        requests: Sequence[Request],
        *,
        samples: int,
        top_k: int,
        temperature: float,
        max_tokens: int,
        seed: int,
    ) -> list[list[Hypothesis]]:
        options = {
            "beam_size": 1,
            "num_hypotheses": samples if top_k > 1 else 1,  # with one token to choose from, all draws are equal
            "sampling_topk": min(top_k, len(self._names)),
            "sampling_temperature": temperature,
        }
        parts = [requests[start : start + _DRAWN_TOGETHER] for start in range(0, len(requests), _DRAWN_TOGETHER)]

        def draw(number: int) -> list[list[Hypothesis]]:
            model = self._seeded((seed + number * _NEXT_SEED) % 2**32, parts[number][:1])
            return self._generate(model, parts[number], max_tokens, options)

        with ThreadPoolExecutor(self._threads) as workers:
            drawn = [hypotheses for part in workers.map(draw, range(len(parts))) for hypotheses in part]
        copies = samples // int(options["num_hypotheses"])
        return [sorted(row * copies, key=lambda h: -h.log_prob / h.length) for row in drawn]

    def score(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[int]], *, end: bool = True
    ) -> list[Hypothesis]:
        if not requests:
            return []
        closing = (self._vocabulary.end,) if end else ()
        prompts = [self._prompt(request) for request in requests]
        texts = [
            tuple(tokens)[: max(0, self._positions - len(prompt))]
            for prompt, tokens in zip(prompts, continuations, strict=True)
        ]
        rows = [[*prompt, *text, *closing] for prompt, text in zip(prompts, texts, strict=True)]
        total = sum(map(len, rows))
        results = self._model.score_batch(
            [self._named(row) for row in rows],
            max_batch_size=max(min(_BATCH_TOKENS, -(-total // self._threads)), *map(len, rows)),
            batch_type="tokens",
        )
        return [
            _scored(text, result.log_probs[len(prompt) - 1 :])
            for prompt, text, result in zip(prompts, texts, results, strict=True)
        ]

    def weigh(self, requests: Sequence[Request], tokens: Sequence[int]) -> LogProbs:
        logits = np.empty((len(requests), len(tokens)))
        for _, rows in _rows_by_length([self._prompt(request) for request in requests]):
            for start in range(0, len(rows), _DRAWN_TOGETHER):
                block = rows[start : start + _DRAWN_TOGETHER]
                output = self._model.forward_batch([self._prompt(requests[row]) for row in block])
                logits[block] = np.asarray(output)[:, -1, list(tokens)]
        shifted = logits - logits.max(axis=1, keepdims=True, initial=-np.inf)
        weights: LogProbs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return weights

    def cuts(self, source: str) -> bool:
        return next(iter(self._readers.values())).cuts(source)

    def _all_but(self, kept: tuple[int, ...]) -> list[list[str]]:
        if kept not in self._suppressed:
            self._suppressed[kept] = [[name] for n, name in enumerate(self._names) if n not in set(kept)]
        return self._suppressed[kept]

    def _prompt(self, request: Request) -> list[int]:
        source = [] if request.source is None else self._readers[request.prefix[0]].read(request.source)
        return [*source, *request.prefix]

    def _named(self, ids: Sequence[int]) -> list[str]:
        return [self._names[number] for number in ids]

    def _generate(
        self, model: Any, requests: Sequence[Request], max_tokens: int, options: dict[str, Any]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each request; prompts of one length go to the engine together."""
        prompts = [self._prompt(request) for request in requests]
        hypotheses: list[list[Hypothesis]] = [[] for _ in requests]
        width = max(options["beam_size"], options.get("num_hypotheses", 1))
        for length, rows in _rows_by_length(prompts):
            even = -(-len(rows) // model.num_generators)
            results = model.generate_batch(
                [self._named(prompts[row]) for row in rows],
                max_batch_size=max(1, min(_BATCH_ROWS // width, even)),
                max_length=max(1, min(max_tokens, self._positions - length)),
                include_prompt_in_result=False,
                return_scores=True,
                return_end_token=True,
                **options,
            )
            for row, result in zip(rows, results, strict=True):
                pairs = zip(result.sequences_ids, result.scores, strict=True)
                hypotheses[row] = [self._hypothesis(ids, score) for ids, score in pairs]
        return hypotheses

    def _hypothesis(self, ids: list[int], score: float) -> Hypothesis:
        """The engine divides the sum by the number of tokens written, the end included."""
        ended = bool(ids) and ids[-1] == self._vocabulary.end
        return Hypothesis(tuple(ids[:-1] if ended else ids), score * len(ids), max(1, len(ids)))

    def _open(self, workers: int) -> Any:
        import ctranslate2

        try:
            return ctranslate2.Generator(
                str(self._folder),
                compute_type=self._compute,
                inter_threads=workers,
                intra_threads=1,
                files=self._files,
            )
        except (RuntimeError, ValueError) as error:
            raise BundleError(
                f"the model in {self._folder} cannot be opened: {error}", hint="copy or export the bundle again"
            ) from error

    @cached_property
    def _files(self) -> dict[str, bytes] | None:
        """The model's files where its weights are kept in parts, None where the engine can open the folder."""
        return joined_parts(self._folder)

    def _seeded(self, seed: int, example: Sequence[Request]) -> Any:
        """The model with one worker that draws from `seed` on.

        A worker takes the process's seed when it first samples and keeps it, so each seed needs a new worker,
        which samples once before another seed is set.
        """
        import ctranslate2

        with SEEDING:
            ctranslate2.set_random_seed(seed)
            model = self._open(1)
            self._generate(model, example, 1, {"beam_size": 1, "sampling_topk": 2})
        return model


def _scored(tokens: tuple[int, ...], log_probs: Sequence[float]) -> Hypothesis:
    return Hypothesis(tokens, sum(log_probs), max(1, len(log_probs)))


def _rows_by_length(prompts: Sequence[Sequence[int]]) -> Iterator[tuple[int, list[int]]]:
    def length(row: int) -> int:
        return len(prompts[row])

    for tokens, rows in groupby(sorted(range(len(prompts)), key=length), key=length):
        yield tokens, list(rows)
