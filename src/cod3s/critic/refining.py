"""Refine what a bundle writes: it learns from good answers, and to prefer accepted to rejected ones.

The loss is that of each good answer and its signature. Where rejected answers are known, the logistic loss of the
difference between the two answers' log-probabilities per token is added (as in SimPO, Meng et al. 2024).
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.bundle import NAME as BUNDLE
from cod3s.bundle import read_facts, write_facts
from cod3s.critic.answer_lessons import lesson_batches, make_lessons
from cod3s.critic.examples import LabelledPair, split_watched
from cod3s.critic.row_batches import RowBatches, outputs_of, read_sequences
from cod3s.critic.tune_config import RefineConfig, as_train_config
from cod3s.decode.models import BundleModels
from cod3s.errors import Cod3sError, require
from cod3s.files.disk import replaced_folder
from cod3s.files.lock import sole_writer
from cod3s.model.adapter import NAME, Adapter, own_changes, save_adapter
from cod3s.model.causal import Adaptation, trained_only, with_lora
from cod3s.model.restore import lora_changes, restore_llama
from cod3s.signatures.signer import Signer
from cod3s.train.loop import Report, fit

_SHARPNESS = 4.0  # of the logistic loss, per nat and token
_SIGNATURE = 0.1  # how much the signature's log-probability counts


def refine(
    examples: Sequence[LabelledPair],
    models: BundleModels,
    signer: Signer,
    output: Path,
    config: RefineConfig,
    *,
    seconds: float | None = None,
    resume: bool = False,
    report: Report = lambda *_: None,
    clock: Callable[[], float],
) -> dict[str, float]:
    """Write an adapter for the bundle's language model into `output`; the figures are those of unseen sources.

    `loss` is what training lowers, `accuracy` the share of comparisons in which the accepted answer is likelier.
    """
    taught, watched = split_watched([example for example in examples if not example.is_held_out])
    random = np.random.default_rng(config.seed)
    learned = list(make_lessons(taught, models, signer, config, random))
    unseen = list(make_lessons(watched, models, signer, config, random))
    if not learned or not unseen:
        raise Cod3sError("there are good answers to too few sources", hint="give more --answers or --verdicts")
    output.mkdir(parents=True, exist_ok=True)
    with sole_writer(output):
        model = build_model(models, config)
        pad = models.vocabulary.pad
        batches, held_out = lesson_batches(learned, pad, config), lesson_batches(unseen, pad, config)
        figures, _ = fit(
            model,
            batches,
            lambda trained: check_model(trained, held_out),
            as_train_config(config),
            output,
            seconds=seconds,
            clock=clock,
            resume=resume,
            report=report,
            pairs_per_batch=sum(map(len, learned)) / batches.per_epoch,
        )
        earlier = own_changes(models.folder / "models" / models.language_model())
        changes = lora_changes(model.base.get_base_model().model)
        save_adapter(output / NAME, Adapter((*earlier, *changes)))
    return figures


def write_refined(bundle: Path, adapter: Path, output: Path) -> None:
    """Write a copy of a bundle whose language model has the adapter in the folder `adapter`."""
    facts = read_facts(bundle)
    (name,) = {name for roles in facts.models.values() for name in roles.values()}
    with replaced_folder(output, BUNDLE) as partial:
        shutil.copytree(bundle, partial, dirs_exist_ok=True)
        shutil.copyfile(adapter / NAME, partial / "models" / name / NAME)
        write_facts(partial, facts)


def check_model(model: Any, batches: RowBatches) -> dict[str, float]:
    """The mean loss of good answers, and how often they are likelier than rejected ones."""
    torch = require("torch", "train")
    outputs = [output for _, output in outputs_of(model, batches)]
    losses, compared = (torch.cat([output[name] for output in outputs]) for name in ("losses", "margins"))
    figures = {"loss": float(losses.mean())}
    return figures | ({"accuracy": float((compared > 0).float().mean())} if len(compared) else {})


def build_model(models: BundleModels, config: RefineConfig) -> Any:
    """The bundle's language model with adapters; called with a batch of lessons, it gives their loss."""
    torch = require("torch", "train")
    torch.manual_seed(config.seed)
    base = restore_llama(models.folder / "models" / models.language_model())
    base.config.use_cache = False
    if config.first_layer >= base.config.num_hidden_layers:
        raise Cod3sError(f"the model has {base.config.num_hidden_layers} layers, so none is left to adapt")
    adaptation = Adaptation(lora_rank=config.rank, precision="bfloat16", first_layer=config.first_layer)
    adapted = with_lora(base, "llama", adaptation)

    class RefinedModel(trained_only(torch)):  # type: ignore[misc]
        """A language model with adapters; its loss is that of lessons."""

        def __init__(self) -> None:
            super().__init__()
            self.base = adapted

        def forward(self, **batch: Any) -> dict[str, Any]:
            known = read_sequences(self.base, batch).logits.float().log_softmax(-1)  # (sequences, longest, pieces)
            places, tokens, rivals = batch["places"][:, :-1], batch["tokens"][:, 1:], batch["rivals"]
            taught = known[batch["sequences"][:, None], places, tokens]  # (rows, width - 1)
            text, signature = batch["text"][:, 1:], batch["signature"][:, 1:]
            means = (taught * text).sum(1) / text.sum(1)
            is_rejected = rivals != torch.arange(len(rivals), device=rivals.device)
            margins = (means[rivals] - means)[is_rejected]
            losses = -means - _SIGNATURE * (taught * signature).sum(1)
            unsure = torch.nn.functional.softplus(-_SHARPNESS * margins) * config.preference / config.rivals
            losses = losses.index_add(0, rivals[is_rejected], unsure)[~is_rejected]
            return {"loss": losses.mean(), "losses": losses, "margins": margins}

    return RefinedModel()
