"""Measure how well a model has learned each role, on held-out pairs and without label smoothing."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cod3s.errors import require
from cod3s.logistic import area_under_curve
from cod3s.model.causal import IGNORED
from cod3s.signatures import from_text
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary
from cod3s.train.batches import TensorBatches


def validate(model: Any, held_out: dict[str, TensorBatches], vocabulary: Vocabulary) -> dict[str, float]:
    """The figures of each name in `held_out`, and `loss`, the mean in nats over all tokens that are written.

    `plain_nats` is the mean over sentences of what the text costs, the end included; `sentence_nats` is the same
    behind the true signature, which costs `sentence_signature_nats`. Bits (`sentence_bit_accuracy`) are judged
    token by token, given the true tokens before: the likeliest signature token counts. `verdict_auc` is the area
    under the curve of the verdicts on right and wrong answers, `read_verdict_auc` on answers that were read.
    """
    torch = require("torch", "train")
    figures: dict[str, float] = {}
    total = tokens = 0.0
    with not_learning(model):
        for name, batches in held_out.items():
            counts = _Counts(vocabulary)
            for number in range(len(batches)):
                batch = {part: tensor.to(model.device) for part, tensor in batches[number].items()}
                labels, plausible = batch.pop("labels"), batch.pop("plausible", None)
                logits = model(**batch).logits
                counts.add_text(torch, logits, labels)
                if plausible is not None:
                    counts.add_verdicts(logits[plausible >= 0], plausible[plausible >= 0])
            figures |= {f"{name}_{figure}": value for figure, value in counts.figures().items()}
            total, tokens = total + counts.nats, tokens + counts.tokens
    return {"loss": total / max(1.0, tokens), **figures}


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
    """Sums over the batches of a role."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = vocabulary
        self._bits = [SignatureTokens.bits_of(token) for token in vocabulary.signature.names()]
        self.nats = self.tokens = 0.0
        self._text = self._signature = 0.0  # nats
        self._texts = self._signatures = self._sentences = self._right = 0
        self._verdicts: list[float] = []
        self._plausible: list[float] = []

    def add_text(self, torch: Any, logits: Any, labels: Any) -> None:
        first = self._words.first_signature
        taught = labels != IGNORED
        logits, labels = logits[taught], labels[taught]
        nats = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
        signature = labels >= first
        self.nats += float(nats.sum())
        self.tokens += len(labels)
        self._text += float(nats[~signature].sum())
        self._signature += float(nats[signature].sum())
        self._sentences += int((labels == self._words.end).sum())
        self._texts += int((~signature & (labels != self._words.end)).sum())
        true = labels[signature] - first
        guessed = logits[signature][:, first:].argmax(dim=-1)
        for a, b in zip(guessed.tolist(), true.tolist(), strict=True):
            self._right += sum(x == y for x, y in zip(self._bits[a], self._bits[b], strict=False))
            self._signatures += len(self._bits[b])

    def add_verdicts(self, logits: Any, plausible: Any) -> None:
        yes, no = self._words.verdicts
        self._verdicts += (logits[:, yes] - logits[:, no]).tolist()
        self._plausible += plausible.tolist()

    def figures(self) -> dict[str, float]:
        figures = {}
        if self._texts:
            figures["nats"] = self._text / self._sentences
        if self._signatures:
            figures["signature_nats"] = self._signature / self._sentences
            figures["bit_accuracy"] = self._right / self._signatures
        labels = np.array(self._plausible) > 0.5
        if labels.any() and not labels.all():
            figures["auc"] = area_under_curve(np.array(self._verdicts), labels.astype(np.float64))
        return figures
