"""Sample from transformers: a ready pipeline, or a model with its tokenizer. Needs the extra `train`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any

from cod3s.ask.prompts import PromptLike, read_prompt
from cod3s.errors import Cod3sError, require

_SEEDING = Lock()  # the random state belongs to the whole process; calls from threads take turns


@dataclass(frozen=True, kw_only=True)
class _Sampler:
    """Sampling options; the draws depend only on `seed` and the number of the call."""

    samples: int = 8
    max_new_tokens: int = 64
    temperature: float = 1.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 0
    _numbers: "count[int]" = field(default_factory=count, repr=False, compare=False)

    def _sample(self, generate: Callable[..., Any], *inputs: Any, **more: Any) -> Any:
        """Call `generate` with the options; the random state of torch stays as it is."""
        torch = require("torch", "train")
        with _SEEDING, torch.random.fork_rng():
            torch.manual_seed(self.seed + next(self._numbers))
            return generate(
                *inputs,
                **more,
                do_sample=True,
                num_return_sequences=self.samples,
                max_new_tokens=self.max_new_tokens,
                temperature=self.temperature,
                top_k=self.top_k,
                top_p=self.top_p,
            )


@dataclass(frozen=True)
class PipelineGenerator(_Sampler):
    """Called with a text or messages, returns `samples` texts from a pipeline, without the prompt."""

    pipeline: Any

    def __call__(self, prompt: PromptLike) -> list[str]:
        task = getattr(self.pipeline, "task", type(self.pipeline).__name__)
        if task != "text-generation":
            raise Cod3sError(
                f"the pipeline is for {task!r}, but text-generation is needed",
                hint="for a seq2seq model use ModelGenerator(model, tokenizer)",
            )
        rows = self._sample(self.pipeline, prompt, return_full_text=False)
        return [row["generated_text"] for row in rows]


@dataclass(frozen=True)
class ModelGenerator(_Sampler):
    """Called with a text or messages, returns `samples` texts from a seq2seq or causal model with their scores.

    A score is the mean log-probability of a text's tokens and its end, under the model itself: temperature, top-k
    and top-p shape what is drawn, not the score.
    """

    model: Any
    tokenizer: Any

    def __call__(self, prompt: PromptLike) -> list[tuple[str, float]]:
        if isinstance(prompt, str):
            inputs = self.tokenizer(prompt, return_tensors="pt")
        else:
            inputs = self.tokenizer.apply_chat_template(
                read_prompt(prompt).to_send(True),
                add_generation_prompt=True,
                return_tensors="pt",
                return_dict=True,
            )
        inputs = inputs.to(self.model.device)
        extras = {"num_beams": 1, "return_dict_in_generate": True, "output_logits": True}
        written = self._sample(self.model.generate, **inputs, **extras)
        new = written.sequences[:, -len(written.logits) :]  # (samples, steps)
        scores = self.model.compute_transition_scores(written.sequences, written.logits, normalize_logits=True)
        belongs = _until_end(new, self.model.generation_config.eos_token_id)
        means = (scores.masked_fill(~belongs, 0.0).sum(dim=1) / belongs.sum(dim=1)).tolist()
        return list(zip(self.tokenizer.batch_decode(new, skip_special_tokens=True), means, strict=True))


def _until_end(tokens: Any, end: int | list[int] | None) -> Any:
    """Which tokens belong to each text: all up to and including the first end token, bool (samples, steps)."""
    torch = require("torch", "train")
    ends = torch.tensor([] if end is None else end, dtype=tokens.dtype, device=tokens.device)
    is_end = torch.isin(tokens, ends)
    return is_end.cumsum(dim=1) - is_end.long() == 0
