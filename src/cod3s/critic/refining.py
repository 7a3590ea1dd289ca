"""Refine what a bundle writes: answers that a reader accepted become likelier than those that were rejected.

Each comparison is between an accepted and a rejected answer to the same source, usually given the signature of the
accepted one, so that the model also learns to follow signatures. The loss is that of the accepted answer and its
signature, plus the logistic loss of the difference between the two answers' log-probabilities per token (as in
SimPO, Meng et al. 2024).
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.bundle import NAME as BUNDLE
from cod3s.bundle import read_facts, write_facts
from cod3s.critic.examples import LabelledPair, split_watched
from cod3s.critic.row_batches import RowBatches, padded
from cod3s.critic.tune_config import RefineConfig, as_train_config
from cod3s.decode.models import BundleModels, RoleModel
from cod3s.errors import Cod3sError, require
from cod3s.files.disk import replaced_folder
from cod3s.files.lock import sole_writer
from cod3s.model.adapter import NAME, Adapter, own_changes, save_adapter
from cod3s.model.causal import Adaptation, trained_only, with_lora
from cod3s.model.causal_engine import CausalEngine
from cod3s.model.restore import lora_changes, restore_llama
from cod3s.model.transformer import quiet_transformers
from cod3s.signatures.signer import Signer
from cod3s.text import for_modelling
from cod3s.train.loop import Report, fit

_SHARPNESS = 4.0  # of the logistic loss, per nat and token
_SIGNATURE = 0.05  # how much the signature's log-probability counts


@dataclass(frozen=True)
class Comparison:
    """The tokens of an accepted and of a rejected answer after the same prompt."""

    accepted: list[int]
    rejected: list[int]
    signature_start: int
    text_start: int


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
    learned = list(_comparisons(taught, models, signer, config, random))
    unseen = list(_comparisons(watched, models, signer, config, random))
    if not learned or not unseen:
        raise Cod3sError(
            "no source has both accepted and rejected answers", hint="give more --verdicts, of many sources"
        )
    output.mkdir(parents=True, exist_ok=True)
    with sole_writer(output):
        model = _build(models, config)
        pad = models.vocabulary.pad
        batches, held_out = _batches(learned, pad, config), _batches(unseen, pad, config)
        figures, _ = fit(
            model,
            batches,
            lambda trained: _check(trained, held_out),
            as_train_config(config),
            output,
            seconds=seconds,
            clock=clock,
            resume=resume,
            report=report,
            pairs_per_batch=len(learned) / batches.per_epoch,
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


def _comparisons(
    examples: Sequence[LabelledPair],
    models: BundleModels,
    signer: Signer,
    config: RefineConfig,
    random: np.random.Generator,
) -> Iterator[Comparison]:
    """Each accepted answer beside some rejected ones to its source."""
    texts = list(dict.fromkeys(example.pair.target for example in examples if example.plausible))
    signatures = dict(zip(texts, signer.signatures_of(signer.vectors(texts)), strict=True)) if texts else {}
    by_question: dict[str, list[LabelledPair]] = {}
    for example in examples:
        by_question.setdefault(example.question, []).append(example)
    for answers in by_question.values():
        rejected = [example.pair.target for example in answers if not example.plausible]
        for pair in (example.pair for example in answers if example.plausible):
            for number in random.permutation(len(rejected))[: config.rivals].tolist():
                plain = random.random() < config.plain
                role = models.plain(pair.relation) if plain else models.sentence(pair.relation)
                signature = () if plain else models.vocabulary.encode_signature(signatures[pair.target])
                yield _compare(role, pair.source, signature, pair.target, rejected[number])


def _compare(role: RoleModel, source: str, signature: Sequence[int], accepted: str, rejected: str) -> Comparison:
    if not isinstance(role.engine, CausalEngine):
        raise Cod3sError("only bundles of a causal language model can be refined")
    request = role.request(for_modelling(source), signature)
    accepted_row, rejected_row = (
        role.engine.pair_row(request, role.words.encode_text(for_modelling(text))) for text in (accepted, rejected)
    )
    start = len(role.engine.pair_row(request, ())) - 1
    return Comparison(accepted_row, rejected_row, start - len(signature), start)


def _batches(comparisons: Sequence[Comparison], pad: int, config: RefineConfig) -> RowBatches:
    """The comparisons as token rows: each accepted answer, then the rejected one; and what of them is learned."""
    torch = require("torch", "train")

    def collate(numbers: Sequence[int]) -> dict[str, Any]:
        chosen = [comparisons[number] for number in numbers]
        rows = [(row, comparison) for comparison in chosen for row in (comparison.accepted, comparison.rejected)]
        longest = max(len(row) for row, _ in rows)

        def between(first: int, last: int) -> list[int]:
            return [int(first <= position < last) for position in range(longest)]

        return {
            **padded([row for row, _ in rows], pad),
            "text": torch.tensor([between(comparison.text_start, len(row)) for row, comparison in rows]),
            "signature": torch.tensor(
                [between(comparison.signature_start, comparison.text_start) for _, comparison in rows]
            ),
        }

    lengths = [(len(comparison.accepted), len(comparison.rejected)) for comparison in comparisons]
    return RowBatches(lengths, collate, config)


def _check(model: Any, batches: RowBatches) -> dict[str, float]:
    torch = require("torch", "train")
    was_training = model.training
    model.eval()
    losses, margins = [], []
    with torch.no_grad():
        for number in range(batches.per_epoch):
            output = model(**batches[number])
            losses.append(output.loss.repeat(len(output.logits)))
            margins.append(output.logits)
    model.train(was_training)
    return {"loss": float(torch.cat(losses).mean()), "accuracy": float((torch.cat(margins) > 0).float().mean())}


def _build(models: BundleModels, config: RefineConfig) -> Any:
    torch, transformers = require("torch", "train"), quiet_transformers()
    torch.manual_seed(config.seed)
    base = restore_llama(models.folder / "models" / models.language_model())
    base.config.use_cache = False
    if config.first_layer >= base.config.num_hidden_layers:
        raise Cod3sError(f"the model has {base.config.num_hidden_layers} layers, so none is left to adapt")
    adaptation = Adaptation(lora_rank=config.rank, precision="bfloat16", first_layer=config.first_layer)
    adapted = with_lora(base, "llama", adaptation)

    class RefinedModel(trained_only(torch)):  # type: ignore[misc]
        """A language model with adapters; its loss is that of comparisons, its logits are their margins."""

        def __init__(self) -> None:
            super().__init__()
            self.base = adapted

        def forward(self, input_ids: Any, attention_mask: Any, text: Any, signature: Any, **_: Any) -> Any:
            with torch.autocast(input_ids.device.type, torch.bfloat16):
                logits = self.base(input_ids=input_ids, attention_mask=attention_mask).logits
            taught = logits[:, :-1].float().log_softmax(-1).gather(2, input_ids[:, 1:, None])[..., 0]
            text, signature = text[:, 1:], signature[:, 1:]  # (rows, tokens) that are predicted
            means = (taught * text).sum(1) / text.sum(1)
            accepted, margins = means[0::2], means[0::2] - means[1::2]
            signatures = (taught * signature).sum(1)[0::2]
            unsure = torch.nn.functional.softplus(-_SHARPNESS * margins)
            loss = (config.preference * unsure - accepted - _SIGNATURE * signatures).mean()
            return transformers.modeling_outputs.SequenceClassifierOutput(loss=loss, logits=margins)

    return RefinedModel()
