"""Measure how well a model has learned each role, on held-out pairs and without label smoothing.

Losses are in nats per token, with text and signature apart.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cod3s.errors import require
from cod3s.signatures import from_text
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary
from cod3s.train.batches import TensorBatches
from cod3s.train.lessons import IGNORED


def validate(model: Any, held_out: dict[str, TensorBatches], vocabulary: Vocabulary) -> dict[str, float]:
    """`ROLE_text_loss`, `ROLE_signature_loss`, `ROLE_bit_accuracy` where they apply, and `loss`, the mean of all.

    Bits are judged token by token, given the true tokens before: the likeliest signature token counts.
    `loss` is the mean over all tokens that the roles write.
    """
    counts = _Counts(vocabulary)
    with not_learning(model):
        for role, batches in held_out.items():
            for number in range(len(batches)):
                batch = {name: tensor.to(model.device) for name, tensor in batches[number].items()}
                labels = batch.pop("labels")
                counts.add(role, model(**batch).logits, labels)
    return counts.figures()


@contextmanager
def not_learning(model: Any) -> Iterator[None]:
    """Run the model without dropout and gradients, as it is used."""
    was_training = model.training
    model.eval()
    with require("torch", "train").no_grad():
        yield
    model.train(was_training)


def majority_bit_accuracy(train: Sequence[str], held_out: Sequence[str]) -> float:
    """The share of held-out bits that equal the more common bit there in `train`: what guessing gets."""
    usual = np.mean([from_text(signature) for signature in train], axis=0) > 0.5
    return float(np.mean([from_text(signature) == usual for signature in held_out]))


class _Counts:
    """Sums over batches."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._first = vocabulary.first_signature
        self._bits = [SignatureTokens.bits_of(token) for token in vocabulary.signature.names()]
        self._sums: dict[str, list[float]] = {}

    def add(self, role: str, logits: Any, labels: Any) -> None:
        torch = require("torch", "train")
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="none"
        ).view(labels.shape)
        signature = labels >= self._first
        text = (labels != IGNORED) & ~signature
        self._sum(f"{role}_text_loss", loss[text].sum(), text.sum())
        self._sum(f"{role}_signature_loss", loss[signature].sum(), signature.sum())
        true = labels[signature] - self._first
        guessed = logits[signature][:, self._first :].argmax(dim=-1)
        pairs = [(self._bits[a], self._bits[b]) for a, b in zip(guessed.tolist(), true.tolist(), strict=True)]
        right = sum(x == y for a, b in pairs for x, y in zip(a, b, strict=False))
        self._sum(f"{role}_bit_accuracy", right, sum(len(b) for _, b in pairs))

    def figures(self) -> dict[str, float]:
        means = {name: value / count for name, (value, count) in self._sums.items() if count}
        losses = [sums for name, sums in self._sums.items() if name.endswith("_loss")]
        return {"loss": sum(value for value, _ in losses) / sum(count for _, count in losses), **means}

    def _sum(self, name: str, value: Any, count: Any) -> None:
        sums = self._sums.setdefault(name, [0.0, 0.0])
        sums[0] += float(value)
        sums[1] += float(count)
