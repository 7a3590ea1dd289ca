"""An engine that runs a transformers seq2seq model on torch: a user's own, or the peer of a benchmark.

Slower than `Seq2SeqEngine`, but it needs no conversion. Needs the extra `train`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np

from cod3s.errors import UsageError, require
from cod3s.model.engine import NO_VERDICT, Draws, LogProbs, Request, rows_by_prefix_length
from cod3s.model.reader import Reader, padded
from cod3s.records import Hypothesis

_BATCH_ROWS = 400  # requests times beams or samples that step together
_SCORED_TOGETHER = 100  # continuations per forward pass: in a large vocabulary their logits alone are 80 MB
_SEEDING = Lock()  # torch's random state belongs to the whole process

# Generation settings that a published model may carry, and that would spoil a signature.
_WITHOUT_HABITS: dict[str, Any] = {
    "forced_bos_token_id": None,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "min_length": 0,
    "bad_words_ids": None,
}


def forbid_others(scores: Any, ids: Sequence[int]) -> Any:
    """The scores (rows, vocabulary) with -inf for every id that is not among `ids`."""
    columns = scores.new_tensor(ids).long()
    return scores.new_full(scores.shape, float("-inf")).index_copy(1, columns, scores[:, columns])


class TransformersEngine:
    """A seq2seq model behind the `Engine` protocol.

    `processors` shape everything that is searched or sampled, `settings` go to every `generate` of transformers;
    `threads` is for this engine alone: torch's number of threads is restored after each call.
    """

    def __init__(
        self,
        model: Any,
        reader: Reader,
        *,
        end: int,
        threads: int | None = None,
        processors: Sequence[Any] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._torch = require("torch", "train")
        self._model, self._reader, self._end, self._threads = model, reader, end, threads
        self._processors, self._settings = list(processors), dict(settings or {})

    def search(
        self, requests: Sequence[Request], *, beam: int, max_tokens: int, only: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        width = max(2, beam)  # transformers reports scores from a beam of 2 on
        options: dict[str, Any] = {"num_beams": width, "length_penalty": 1.0, "do_sample": False}
        if only is not None:
            options |= {**_WITHOUT_HABITS, "min_new_tokens": max_tokens, "renormalize_logits": True}
        restrictions = [] if only is None else [lambda _, scores: forbid_others(scores, only)]
        options |= {"max_new_tokens": max_tokens, "logits_processor": [*self._processors, *restrictions]}
        written: list[list[Hypothesis]] = [[] for _ in requests]
        for rows in _batches(requests, width):
            output = self._generate([requests[row] for row in rows], width, options)
            start = len(requests[rows[0]].prefix)
            texts = iter(output.sequences[:, start:].tolist())
            scores = iter(output.sequences_scores.tolist())
            for row in rows:
                hypotheses = [self._hypothesis(next(texts), next(scores)) for _ in range(width)]
                written[row] = [hypothesis for hypothesis in hypotheses if np.isfinite(hypothesis.log_prob)][:beam]
        return written

    def sample(self, requests: Sequence[Request], draws: Draws) -> list[list[Hypothesis]]:
        options = {
            "num_beams": 1,
            "do_sample": True,
            "top_k": draws.top_k,
            "top_p": 1.0,
            "temperature": draws.temperature,
            "max_new_tokens": draws.max_tokens,
            "logits_processor": self._processors,
        }
        samples = draws.samples
        written: list[list[Hypothesis]] = [[] for _ in requests]
        with _SEEDING, self._torch.random.fork_rng():
            self._torch.manual_seed(draws.seed)
            for rows in _batches(requests, samples):
                output = self._generate([requests[row] for row in rows], samples, options)
                drawn = [
                    self._written(ids) for ids in output.sequences[:, len(requests[rows[0]].prefix) :].tolist()
                ]
                repeated = [requests[row] for row in rows for _ in range(samples)]
                scored = self._score(repeated, [tokens for tokens, _ in drawn], [ended for _, ended in drawn])
                for number, row in enumerate(rows):
                    hypotheses = scored[number * samples : (number + 1) * samples]
                    written[row] = sorted(hypotheses, key=lambda h: -h.log_prob / h.length)
        return written

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
        return self._score(requests, [tuple(tokens) for tokens in continuations], [end] * len(requests))

    def weigh(self, requests: Sequence[Request], tokens: Sequence[int]) -> LogProbs:
        weights = np.empty((len(requests), len(tokens)))
        for length, rows in rows_by_prefix_length(requests):
            for start in range(0, len(rows), _SCORED_TOGETHER):
                part = rows[start : start + _SCORED_TOGETHER]
                logits = self._logits([requests[row] for row in part], [requests[row].prefix for row in part])
                among = logits[:, length - 1][:, list(tokens)].double()  # (requests, tokens)
                weights[part] = among.log_softmax(dim=-1).cpu().numpy()
        return weights

    def cuts(self, source: str) -> bool:
        return self._reader.cuts(source)

    def _generate(self, requests: Sequence[Request], returned: int, options: Mapping[str, Any]) -> Any:
        """Up to `returned` sequences per request, whose prefixes are equally long."""
        prefixes = [request.prefix for request in requests]
        with self._computing():
            return self._model.generate(
                **self._read(requests),
                decoder_input_ids=self._tensor(prefixes),
                decoder_start_token_id=prefixes[0][0],
                num_return_sequences=returned,
                forced_eos_token_id=None,  # a forced end would count as certain in the score
                return_dict_in_generate=True,
                output_scores=True,
                **{**self._settings, **options},
            )

    def _hypothesis(self, ids: Sequence[int], mean: float) -> Hypothesis:
        tokens, ended = self._written(ids)
        length = max(1, len(tokens) + ended)
        return Hypothesis(tokens, mean * length, length)

    def _written(self, ids: Sequence[int]) -> tuple[tuple[int, ...], bool]:
        """The ids before the end, and whether there is an end."""
        ended = self._end in ids
        return tuple(ids[: ids.index(self._end)] if ended else ids), ended

    def _score(
        self, requests: Sequence[Request], continuations: Sequence[tuple[int, ...]], ends: Sequence[bool]
    ) -> list[Hypothesis]:
        hypotheses: list[Hypothesis] = []
        for start in range(0, len(requests), _SCORED_TOGETHER):
            part = slice(start, start + _SCORED_TOGETHER)
            rows = list(zip(requests[part], continuations[part], ends[part], strict=True))
            logits = self._logits(requests[part], [(*request.prefix, *tokens) for request, tokens, _ in rows])
            first = min(len(request.prefix) for request, _, _ in rows) - 1
            log_probs = logits[:, first:].log_softmax(dim=-1)  # (rows, steps, vocabulary)
            wanted = [[*request.prefix, *tokens, self._end][first + 1 :] for request, tokens, _ in rows]
            chosen = log_probs.gather(2, self._tensor(padded(wanted, self._end))[..., None])[..., 0].tolist()
            for (request, tokens, end), values in zip(rows, chosen, strict=True):
                skipped, length = len(request.prefix) - 1 - first, len(tokens) + end
                hypotheses.append(Hypothesis(tokens, sum(values[skipped : skipped + length]), length))
        return hypotheses

    def _logits(self, requests: Sequence[Request], written: Sequence[Sequence[int]]) -> Any:
        """(requests, positions, vocabulary): what may follow each written token."""
        with self._computing():
            return self._model(
                **self._read(requests), decoder_input_ids=self._tensor(padded(written, self._end))
            ).logits

    def _read(self, requests: Sequence[Request]) -> dict[str, Any]:
        rows = [self._reader.ids(request.source) for request in requests]
        mask = padded([[1] * len(row) for row in rows], 0)
        return {"input_ids": self._tensor(padded(rows, self._reader.pad)), "attention_mask": self._tensor(mask)}

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Any:
        return self._torch.tensor(rows, device=self._model.device)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Without gradients, on this engine's number of threads."""
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(self._threads or before)
        try:
            with self._torch.no_grad():
                yield
        finally:
            self._torch.set_num_threads(before)


def _batches(requests: Sequence[Request], width: int) -> Iterator[list[int]]:
    """The numbers of requests that run together: with prefixes of equal length, and no more than fit."""
    size = max(1, _BATCH_ROWS // width)
    for _, rows in rows_by_prefix_length(requests):
        yield from (rows[start : start + size] for start in range(0, len(rows), size))
