"""Tune a verifier: a bundle's language model learns from labelled pairs which targets are plausible."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.critic.examples import HELD_OUT, LabelledPair
from cod3s.critic.fitting import area_under_curve
from cod3s.critic.tune_config import TuneConfig
from cod3s.decode.models import BundleModels
from cod3s.errors import Cod3sError, require
from cod3s.files.lock import sole_writer
from cod3s.model.adapter import Adapter, Change, Head, save_adapter
from cod3s.model.causal import Adaptation, trained_only, with_lora
from cod3s.model.causal_engine import CausalEngine
from cod3s.model.restore import restore_llama
from cod3s.model.transformer import quiet_transformers
from cod3s.model.verifier import NAME
from cod3s.text import for_modelling
from cod3s.train.batches import BatchStream
from cod3s.train.config import TrainConfig
from cod3s.train.loop import Report, fit

# Where the engine keeps each linear layer of a Llama block. It joins queries, keys and values in one weight.
_WEIGHTS = {
    "q_proj": "self_attention/linear_0",
    "k_proj": "self_attention/linear_0",
    "v_proj": "self_attention/linear_0",
    "o_proj": "self_attention/linear_1",
    "gate_proj": "ffn/linear_0",
    "up_proj": "ffn/linear_0_noact",
    "down_proj": "ffn/linear_1",
}
_WATCHED = 10  # of the questions that it may see, every tenth chooses the best weights


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
    usable = [example for example in examples if not example.is_held_out]
    watched = [example for example in usable if _is_watched(example)]
    taught = [example for example in usable if not _is_watched(example)]
    for part in (taught, watched):
        if not 0 < sum(example.plausible for example in part) < len(part):
            raise Cod3sError(
                "a verifier needs plausible and implausible pairs of many sources",
                hint="give more --verdicts, or a corpus",
            )
    output.mkdir(parents=True, exist_ok=True)
    with sole_writer(output):
        model = _build(models, config)
        train = _Batches(taught, models, config)
        figures, _ = fit(
            model,
            train,
            lambda trained: _check(trained, _Batches(watched, models, config)),
            _train_config(config),
            output,
            seconds=seconds,
            clock=clock,
            resume=resume,
            report=report,
            pairs_per_batch=len(taught) / train.per_epoch,
        )
        save_adapter(output / NAME, _adapter(model, config))
    return figures


def _is_watched(example: LabelledPair) -> bool:
    return example.draw // HELD_OUT % _WATCHED == 0


def _train_config(config: TuneConfig) -> TrainConfig:
    return TrainConfig(
        learning_rate=config.learning_rate,
        schedule="linear",
        warmup_steps=50,
        label_smoothing=0.0,
        batch_tokens=config.batch_tokens,
        epochs=config.epochs,
        patience=10**9,
        evaluate_every=config.evaluate_every,
        seed=config.seed,
    )


class _Batches:
    """A torch dataset whose items are whole batches of pairs as token rows, with their labels."""

    def __init__(self, examples: Sequence[LabelledPair], models: BundleModels, config: TuneConfig) -> None:
        self._pad, self._labels = models.vocabulary.pad, [float(example.plausible) for example in examples]
        self._rows = [_row(example, models) for example in examples]
        lengths = np.array([(len(row), 0) for row in self._rows])
        self._stream = BatchStream(lengths, np.ones(len(examples)), config.batch_tokens, config.seed)
        self.per_epoch = self._stream.batches_per_epoch()
        self._number = self.per_epoch * config.epochs

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, number: int) -> dict[str, Any]:
        if number >= self._number:
            raise IndexError(number)
        torch = require("torch", "train")
        chosen = self._stream[number]
        longest = max(len(self._rows[place]) for place in chosen)
        rows = [self._rows[place] for place in chosen]
        return {
            "input_ids": torch.tensor([row + [self._pad] * (longest - len(row)) for row in rows]),
            "attention_mask": torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows]),
            "labels": torch.tensor([self._labels[place] for place in chosen]),
        }


def _row(example: LabelledPair, models: BundleModels) -> list[int]:
    """The tokens of a pair as the verifier reads them."""
    pair, plain = example.pair, models.plain(example.pair.relation)
    if not isinstance(plain.engine, CausalEngine):
        raise Cod3sError(f"{models.label} is not a language model", hint="fit a critic without a verifier")
    target = models.vocabulary.encode_text(for_modelling(pair.target))
    return plain.engine.pair_row(plain.request(for_modelling(pair.source)), target)


def _check(model: Any, batches: _Batches) -> dict[str, float]:
    """The loss and the area under the curve on watched pairs."""
    torch = require("torch", "train")
    was_training = model.training
    model.eval()
    logits, labels = [], []
    with torch.no_grad():
        for number in range(batches.per_epoch):
            batch = batches[number]
            labels.append(batch.pop("labels"))
            logits.append(model(**batch).logits)
    model.train(was_training)
    scores, truths = torch.cat(logits), torch.cat(labels)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, truths)
    return {
        "loss": float(loss),
        "auc": area_under_curve(scores.double().numpy(), truths.double().numpy()),
    }


def _build(models: BundleModels, config: TuneConfig) -> Any:
    torch, transformers = require("torch", "train"), quiet_transformers()
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

        def forward(self, input_ids: Any, attention_mask: Any, labels: Any = None, **_: Any) -> Any:
            with torch.autocast(input_ids.device.type, torch.bfloat16):
                states = self.base(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            last = attention_mask.sum(dim=1) - 1
            logits = self.head(states[torch.arange(len(last)), last].float())[:, 0]
            if labels is None:
                return transformers.modeling_outputs.SequenceClassifierOutput(logits=logits)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
            return transformers.modeling_outputs.SequenceClassifierOutput(loss=loss)

    return VerifierModel()


def _adapter(model: Any, config: TuneConfig) -> Adapter:
    """What was learned, by the engine's names."""
    inner = model.base.get_base_model()
    heads, groups = inner.config.num_attention_heads, inner.config.num_key_value_heads
    size = inner.config.hidden_size // heads
    first_rows = {"k_proj": heads * size, "v_proj": (heads + groups) * size}
    changes = []
    for number, layer in enumerate(inner.layers):
        for block in (layer.self_attn, layer.mlp):
            for name, module in block.named_children():
                if name in _WEIGHTS:
                    down, up = module.lora_A["default"].weight, module.lora_B["default"].weight
                    changes.append(
                        Change(
                            f"layer_{number}/{_WEIGHTS[name]}",
                            first_rows.get(name, 0),
                            down.detach().float().numpy(),
                            (up.detach().float() * module.scaling["default"]).numpy(),
                        )
                    )
    head = Head(model.head.weight.detach().float().numpy()[0], float(model.head.bias.detach()))
    return Adapter(tuple(changes), config.layers, head)
