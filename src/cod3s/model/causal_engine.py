"""Run an exported causal language model: search, sample, score and weigh, on CTranslate2, without torch.

The prompt is the source's statement up to its target, then a role's tag and what else is given. Only rows of one
length run together: prompts are read at once, beams start after them, and nothing is padded. So in int8, what is
searched or scored does not depend on the rows beside it, not even in the last bit.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.model.engine import COMPUTE, CTranslate2Engine, LogProbs, Request, normalised, rows_by_length
from cod3s.model.reader import Reader
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import Vocabulary

_SEARCHED_ROWS = 80  # requests times beams
_DRAWN_ROWS = 160  # requests times samples: with another number, a seed draws something else
_BATCH_TOKENS = 1536  # for scoring
_WEIGHED_TOGETHER = 8  # requests: their logits over all tokens are held at once


class CausalEngine(CTranslate2Engine):
    """An exported causal language model, open. `readers` belong to the tags of the roles."""

    _KIND = "Generator"

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
        self._readers = readers
        super().__init__(folder, vocabulary, positions=positions, threads=threads, compute=compute)

    def score(
        self,
        requests: Sequence[Request],
        continuations: Sequence[Sequence[int]],
        *,
        end: bool = True,
        then: int | None = None,
    ) -> list[Hypothesis]:
        if not requests:
            return []
        closing = [*([self._end] if end else []), *([] if then is None else [then])]
        prompts = [self._prompt(request) for request in requests]
        texts = [
            tuple(tokens)[: max(0, self._positions - len(prompt))]
            for prompt, tokens in zip(prompts, continuations, strict=True)
        ]
        log_probs = self._score_rows(
            [[*prompt, *text, *closing] for prompt, text in zip(prompts, texts, strict=True)]
        )
        scored = []
        for prompt, text, values in zip(prompts, texts, log_probs, strict=True):
            own = values[len(prompt) - 1 :]
            after = None if then is None else own.pop()
            scored.append(Hypothesis(text, sum(own), max(1, len(own)), after))
        return scored

    def _score_rows(self, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """The log-probabilities of each row's tokens after the first; rows of one length are scored together."""
        even = -(-sum(map(len, rows)) // self._threads)
        pending: dict[int, Any] = {}
        for length, alike in rows_by_length([*map(len, rows)]):
            with self._explained("run"):
                results = self._model.score_batch(
                    [self._named(rows[row]) for row in alike],
                    max_batch_size=max(length, min(_BATCH_TOKENS, even)),
                    batch_type="tokens",
                    asynchronous=True,
                )
            pending.update(zip(alike, results, strict=True))
        with self._explained("run"):
            return [pending[row].result().log_probs for row in range(len(rows))]

    def weigh(self, requests: Sequence[Request], tokens: Sequence[int]) -> LogProbs:
        logits = np.empty((len(requests), len(tokens)))
        prompts = [self._prompt(request) for request in requests]
        blocks = [
            rows[start : start + _WEIGHED_TOGETHER]
            for _, rows in rows_by_length([*map(len, prompts)])
            for start in range(0, len(rows), _WEIGHED_TOGETHER)
        ]

        def fill(block: list[int]) -> None:
            with self._explained("run"):
                output = self._model.forward_batch([prompts[row] for row in block])
                logits[block] = np.asarray(output)[:, -1, list(tokens)]

        with ThreadPoolExecutor(self._threads) as workers:
            list(workers.map(fill, blocks))
        return normalised(logits)

    def cuts(self, source: str) -> bool:
        return next(iter(self._readers.values())).cuts(source)

    def _prompt(self, request: Request) -> list[int]:
        source = [] if request.source is None else self._readers[request.prefix[0]].read(request.source)
        return [*source, *request.prefix]

    def _named(self, ids: Sequence[int]) -> list[str]:
        return [self._names[number] for number in ids]

    def _write(
        self, model: Any, requests: Sequence[Request], max_tokens: int, exactly: bool, options: dict[str, Any]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each request; prompts of one length go to the engine together.

        A source and its tag are read once for all signatures that are forced after them. The engine gets all
        prompts before we wait for any: with a few of each length, workers would be idle. Each worker has its share
        of all prompts, so that those of several sources are not split into small batches.
        """
        prompts = [self._prompt(request) for request in requests]
        groups: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for row, (request, prompt) in enumerate(zip(requests, prompts, strict=True)):
            given = len(request.prefix) - 1  # tokens after the tag, such as a signature's
            shared = tuple(prompt[: len(prompt) - given]) if given else ()
            groups.setdefault((shared, len(prompt)), []).append(row)
        beam, drawn = options["beam_size"], options.get("num_hypotheses", 1)
        together = _SEARCHED_ROWS // beam if beam > 1 else _DRAWN_ROWS // drawn
        even = -(-len(prompts) // model.num_generators)
        pending: dict[int, Any] = {}
        for (shared, length), rows in groups.items():
            with self._explained("run"):
                results = model.generate_batch(
                    [self._named(prompts[row][len(shared) :]) for row in rows],
                    static_prompt=self._named(shared) or None,
                    cache_static_prompt=False,  # its memory would grow with every source
                    max_batch_size=max(1, min(together, even)),
                    max_length=(most := max(1, min(max_tokens, self._positions - length))),
                    min_length=most if exactly else 0,
                    include_prompt_in_result=False,
                    return_scores=True,
                    return_end_token=True,
                    asynchronous=True,
                    **options,
                )
            pending.update(zip(rows, results, strict=True))
        with self._explained("run"):
            return [self._hypotheses(pending[row].result()) for row in range(len(requests))]

    def _hypotheses(self, result: Any) -> list[Hypothesis]:
        return [self._hypothesis(*pair) for pair in zip(result.sequences_ids, result.scores, strict=True)]

    def _hypothesis(self, ids: list[int], score: float) -> Hypothesis:
        """The engine divides the sum by the number of tokens written, the end included."""
        ended = bool(ids) and ids[-1] == self._vocabulary.end
        return Hypothesis(tuple(ids[:-1] if ended else ids), score * len(ids), max(1, len(ids)))
