"""Refine what a bundle writes: it learns from good answers, to prefer accepted to rejected ones, and to judge.

The loss is that of each good answer and its signature. Where rejected answers are known, the logistic loss of the
difference between the two answers' log-probabilities per token is added (as in SimPO, Meng et al. 2024). After an
answer that was read and its end, the model learns to write `yes` or `no` (`cod3s.decode.plausibility` asks it).
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.bundle import NAME as BUNDLE
from cod3s.bundle import model_folder, read_facts, write_facts
from cod3s.critic.answer_lessons import make_lessons
from cod3s.critic.examples import ANSWERS, LabelledPair, contrasted_answers
from cod3s.critic.fitting import area_under_curve
from cod3s.critic.refine_config import RefineConfig, as_train_config
from cod3s.critic.row_batches import lesson_batches, read_sequences
from cod3s.decode.models import BundleModels
from cod3s.errors import Cod3sError, require
from cod3s.io.disk import replaced_folder
from cod3s.io.lock import sole_writer
from cod3s.model.causal import Adaptation, trained_only, with_lora
from cod3s.model.llama import save_causal_engine
from cod3s.model.restore import restore_llama
from cod3s.signatures.signer import Signer
from cod3s.train.batches import TensorBatches
from cod3s.train.loop import Report, fit
from cod3s.train.validate import not_learning

MODEL = "model"
"""The folder of the refined model for the engine."""

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
    """Write the refined model for the engine into `output`/model; the figures are those of unseen sources.

    `loss` is what training lowers, `accuracy` the share of comparisons in which the accepted answer is likelier,
    `auc` the share of plausible and other answers that it judges in the right order.
    """
    answers = [example for example in examples if example.data == ANSWERS]
    if answers and config.contrasts and config.judging:
        wrong = contrasted_answers(answers, signer.encoder, limit=config.contrasts, seed=config.seed)
        examples = [*examples, *wrong]
    usable = [example for example in examples if not example.is_held_out]
    taught = [example for example in usable if not example.is_watched]
    watched = [example for example in usable if example.is_watched]
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
        merged = model.base.merge_and_unload().float()
        save_causal_engine(
            {name: tensor.numpy() for name, tensor in merged.state_dict().items()},
            merged.config.to_dict(),
            models.vocabulary.tokens,
            output / MODEL,
            levels=models.facts.levels,
        )
    return figures


def write_refined(bundle: Path, refined: Path, output: Path, *, judges: bool) -> None:
    """Write a copy of a bundle with the language model that `refine` wrote into `refined`.

    `judges` says whether it has learned to judge answers.
    """
    facts = read_facts(bundle)
    (name,) = facts.model_names
    with replaced_folder(output, BUNDLE) as partial:
        shutil.copytree(bundle, partial, dirs_exist_ok=True)
        shutil.rmtree(partial / "models" / name)
        shutil.copytree(refined / MODEL, partial / "models" / name)
        write_facts(partial, replace(facts, judges=facts.judges or judges))


def check_model(model: Any, batches: TensorBatches) -> dict[str, float]:
    """The mean loss, how often good answers are likelier than rejected ones, and how well it judges."""
    torch = require("torch", "train")
    with not_learning(model):
        outputs = [model(**batches[number]) for number in range(batches.per_epoch)]
    losses, margins, odds, verdicts = (
        torch.cat([output[name] for output in outputs]).double().numpy()
        for name in ("losses", "margins", "odds", "verdicts")
    )
    figures = {"loss": float(losses.mean())}
    if len(margins):
        figures["accuracy"] = float((margins > 0).mean())
    if len(verdicts):
        figures["auc"] = area_under_curve(odds, (verdicts == 1).astype(np.float64))
    return figures


def build_model(models: BundleModels, config: RefineConfig) -> Any:
    """The bundle's language model with adapters; called with a batch of lessons, it gives their loss."""
    torch = require("torch", "train")
    torch.manual_seed(config.seed)
    base = restore_llama(model_folder(models.folder, models.language_model()))
    base.config.use_cache = False
    if config.first_layer >= base.config.num_hidden_layers:
        raise Cod3sError(f"the model has {base.config.num_hidden_layers} layers, so none is left to adapt")
    adapted = with_lora(base, Adaptation(config.rank, precision="bfloat16", first_layer=config.first_layer))
    yes, no = models.vocabulary.verdicts

    class RefinedModel(trained_only(torch)):  # type: ignore[misc]
        """A language model with adapters; its loss is that of lessons."""

        def __init__(self) -> None:
            super().__init__()
            self.base = adapted

        def forward(self, **batch: Any) -> dict[str, Any]:
            logits = read_sequences(self.base, batch)  # (sequences, longest, pieces)
            log_probs = logits.float().log_softmax(-1)
            places, tokens, rivals = batch["places"][:, :-1], batch["tokens"][:, 1:], batch["rivals"]
            taught = log_probs[batch["sequences"][:, None], places, tokens]  # (rows, width - 1)
            text, signature = batch["text"][:, 1:], batch["signature"][:, 1:]
            means = (taught * text).sum(1) / text.sum(1).clamp(min=1)
            is_judged = batch["verdicts"] >= 0
            is_rejected = rivals != torch.arange(len(rivals), device=rivals.device)
            margins = (means[rivals] - means)[is_rejected]
            losses = -means - _SIGNATURE * (taught * signature).sum(1)
            unsure = torch.nn.functional.softplus(-_SHARPNESS * margins) * config.preference / config.rivals
            losses = losses.index_add(0, rivals[is_rejected], unsure)[~is_rejected & ~is_judged]
            ends = batch["places"].gather(1, batch["lasts"][:, None])[is_judged, 0]
            answers = log_probs[batch["sequences"][is_judged], ends][:, [yes, no]]  # (judged rows, 2)
            verdicts = batch["verdicts"][is_judged]
            wrong = -(verdicts * answers[:, 0] + (1 - verdicts) * answers[:, 1])
            losses = torch.cat([losses, config.judging * wrong])
            odds = answers[:, 0] - answers[:, 1]
            return {
                "loss": losses.mean(),
                "losses": losses,
                "margins": margins,
                "odds": odds,
                "verdicts": verdicts,
            }

    return RefinedModel()
