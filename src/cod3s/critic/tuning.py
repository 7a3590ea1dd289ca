"""Tune a verifier: a bundle's language model learns from labelled pairs which targets are plausible."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cod3s.critic.examples import LabelledPair, by_question, split_watched
from cod3s.critic.fitting import area_under_curve
from cod3s.critic.row_batches import RowBatches, outputs_of, read_sequences
from cod3s.critic.tune_config import TuneConfig, as_train_config
from cod3s.decode.models import BundleModels
from cod3s.errors import Cod3sError, require
from cod3s.files.lock import sole_writer
from cod3s.model.adapter import Adapter, Head, save_adapter
from cod3s.model.causal import Adaptation, trained_only, with_lora
from cod3s.model.causal_engine import CausalEngine
from cod3s.model.restore import lora_changes, restore_llama
from cod3s.model.verifier import NAME
from cod3s.text import for_modelling
from cod3s.train.loop import Report, fit

_PARTLY = 0.5
_READ_TOGETHER = 8  # pairs of a question: a batch should hold several questions


def tune_verifier(
    examples: Sequence[LabelledPair],
    models: BundleModels,
    output: Path,
    config: TuneConfig,
    *,
    seconds: float | None = None,
    resume: bool = False,
    report: Report = lambda *_: None,
    clock: Callable[[], float],
) -> dict[str, float]:
    """Write an adapter into `output`; the figures are those of watched pairs that it did not learn from."""
    taught, watched = split_watched([example for example in examples if not example.is_held_out])
    for part in (taught, watched):
        if not 0 < sum(example.plausible for example in part) < len(part):
            raise Cod3sError(
                "a verifier needs plausible and implausible pairs of many sources",
                hint="give more --verdicts, or a corpus",
            )
    output.mkdir(parents=True, exist_ok=True)
    with sole_writer(output):
        model = _build(models, config)
        train, held_out = _batches(taught, models, config), _batches(watched, models, config)
        figures, _ = fit(
            model,
            train,
            lambda trained: _check(trained, held_out),
            as_train_config(config),
            output,
            seconds=seconds,
            clock=clock,
            resume=resume,
            report=report,
            pairs_per_batch=len(taught) / train.per_epoch,
        )
        save_adapter(output / NAME, _adapter(model, config))
    return figures


def _batches(examples: Sequence[LabelledPair], models: BundleModels, config: TuneConfig) -> RowBatches:
    """The pairs as token rows, some of a question at a time, with their labels."""
    torch = require("torch", "train")
    groups = [
        answers[start : start + _READ_TOGETHER]
        for answers in by_question(examples)
        for start in range(0, len(answers), _READ_TOGETHER)
    ]
    rows = [[_row(example, models) for example in group] for group in groups]

    def extra(numbers: Sequence[int]) -> dict[str, Any]:
        chosen = [
            (row, example) for number in numbers for row, example in zip(rows[number], groups[number], strict=True)
        ]
        return {
            "lasts": torch.tensor([len(row) - 1 for row, _ in chosen]),
            "labels": torch.tensor([_label(example) for _, example in chosen]),
        }

    return RowBatches(rows, extra, models.vocabulary.pad, config)


def _label(example: LabelledPair) -> float:
    """What is partly plausible lies between: it says more about the order of pairs than a plain no would."""
    return 1.0 if example.plausible else _PARTLY if example.partly else 0.0


def _row(example: LabelledPair, models: BundleModels) -> list[int]:
    """The tokens of a pair as the verifier reads them."""
    pair, plain = example.pair, models.plain(example.pair.relation)
    if not isinstance(plain.engine, CausalEngine):
        raise Cod3sError(f"{models.label} is not a language model", hint="fit a critic without a verifier")
    target = models.vocabulary.encode_text(for_modelling(pair.target))
    return plain.engine.pair_row(plain.request(for_modelling(pair.source)), target)


def _check(model: Any, batches: RowBatches) -> dict[str, float]:
    """The loss and the area under the curve on watched pairs."""
    torch = require("torch", "train")
    rows = outputs_of(model, batches)
    scores = torch.cat([output["logits"] for _, output in rows])
    truths = torch.cat([batch["labels"] for batch, _ in rows])
    loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, truths)
    return {
        "loss": float(loss),
        "auc": area_under_curve(scores.double().numpy(), (truths == 1).double().numpy()),
    }


def _build(models: BundleModels, config: TuneConfig) -> Any:
    torch = require("torch", "train")
    torch.manual_seed(config.seed)
    base = restore_llama(models.folder / "models" / models.language_model()).model
    if config.layers > len(base.layers):
        raise Cod3sError(f"the model has {len(base.layers)} layers, so a verifier cannot keep {config.layers}")
    base.layers, base.config.num_hidden_layers = base.layers[: config.layers], config.layers
    base.config.use_cache = False
    adapted = with_lora(base, "llama", Adaptation(lora_rank=config.rank, precision="bfloat16"))

    class VerifierModel(trained_only(torch)):  # type: ignore[misc]
        """The first layers with adapters, and a row that turns the state after a pair into log-odds."""

        def __init__(self) -> None:
            super().__init__()
            self.base, self.head = adapted, torch.nn.Linear(base.config.hidden_size, 1)
            torch.nn.init.zeros_(self.head.weight)
            torch.nn.init.zeros_(self.head.bias)

        def forward(self, **batch: Any) -> dict[str, Any]:
            states = read_sequences(self.base, batch).last_hidden_state
            lasts = batch["places"].gather(1, batch["lasts"][:, None])[:, 0]
            logits = self.head(states[batch["sequences"], lasts].float())[:, 0]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch["labels"])
            return {"loss": loss, "logits": logits}

    return VerifierModel()


def _adapter(model: Any, config: TuneConfig) -> Adapter:
    """What was learned, by the engine's names."""
    head = Head(model.head.weight.detach().float().numpy()[0], float(model.head.bias.detach()))
    return Adapter(tuple(lora_changes(model.base.get_base_model())), config.layers, head)
