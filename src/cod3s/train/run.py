"""A training run: a prepared corpus and a config in, a run folder out, which explains itself and can be resumed.

run/
  config.json     what was asked for, the corpus it was asked of, versions
  tokens.model    the text pieces; with --init also source.json, the tokenizer that reads sources
  code/           the hyperplanes of the corpus
  MEMBER/         one folder a model: model/ (the best weights), figures.json, log.csv, curves.png, checkpoints
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.corpus.manifest import Manifest, load_manifest, why_empty
from cod3s.encode.weights import minilm_folder
from cod3s.errors import Cod3sError, UsageError, did_you_mean, require
from cod3s.files.disk import existing_file, read_json, replaced_folder, require_own, sha256, write_json
from cod3s.files.locations import locate
from cod3s.model.causal import Adaptation, Sketches, build_causal, map_hyperplanes
from cod3s.model.pretrained import load_pretrained, write_tokenizers
from cod3s.model.reader import connective_pieces, open_reader
from cod3s.model.roles import all_tags
from cod3s.model.shape import SHAPES
from cod3s.model.transformer import (
    build_transformer,
    freeze,
    load_weights,
    start_from_encoder,
    start_from_hyperplanes,
)
from cod3s.signatures import load_code
from cod3s.signatures.signer import Signer, open_encoder
from cod3s.tokens.trimming import trim_byte_pieces
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary, choose_pieces, copy_pieces, train_pieces
from cod3s.train.batches import BatchStream
from cod3s.train.config import TrainConfig
from cod3s.train.curves import Log, plot_curves
from cod3s.train.lessons import Examples, lesson
from cod3s.train.loop import Report, fit
from cod3s.train.pairs import PairTable, read_rows
from cod3s.train.tensors import TensorBatches, padding_share
from cod3s.train.validate import majority_bit_accuracy, validate

_SKETCH_TEXTS = 6000  # targets that show where the hyperplanes lie in a language model's embedding space

FINISHED = "finished"
"""A file of this name marks a model that --resume has nothing more to do for."""


@dataclass(frozen=True)
class Member:
    """One model of a run: which relations and roles it plays."""

    name: str
    relations: tuple[str, ...]
    roles: tuple[str, ...]


def members(config: TrainConfig, relations: Sequence[str]) -> list[Member]:
    """One model for everything, or one for each relation and role."""
    if config.layout == "shared":
        return [Member("shared", tuple(relations), config.roles)]
    return [Member(f"{relation}-{role}", (relation,), (role,)) for relation in relations for role in config.roles]


def train(
    corpus: Path,
    output: Path,
    config: TrainConfig,
    *,
    seconds: float | None = None,
    clock: Callable[[], float] = monotonic,
    resume: bool = False,
    report: Report = lambda *_: None,
) -> dict[str, dict[str, float]]:
    """Validation figures of each member of the run in `output`; each may take `seconds` of `clock`."""
    manifest = load_manifest(locate(str(corpus)))
    if manifest.encoder is None:
        raise Cod3sError(f"the corpus {corpus} is not signed", hint="prepare it with an encoder")
    # Under torchrun every process comes through here: the first one writes, the others wait for it.
    processes = require("accelerate", "train").PartialState(cpu=not require("torch", "train").cuda.is_available())
    is_new = not output.exists()
    if processes.is_main_process:
        _begin(corpus, output, config, manifest, resume)
    figures = {}
    try:
        with processes.main_process_first():
            run = _Run(corpus, output, config, manifest, processes, clock)
        for member in members(config, list(manifest.relations)):
            figures[member.name] = run(member, seconds, resume, report)
    except Cod3sError:
        if processes.is_main_process and not _has_learned(output):
            _clear(output)
            with suppress(OSError):
                output.rmdir() if is_new else None
        raise
    return figures


def _begin(corpus: Path, output: Path, config: TrainConfig, manifest: Manifest, resume: bool) -> None:
    """Write what the run is made from, or check that the run to be resumed is the same one."""
    facts = {
        "config": config.record(),
        "corpus": sha256(corpus / "manifest.json"),
        "encoder": manifest.encoder,
        "bits": manifest.config.bits,
        "relations": {name: facts.template for name, facts in manifest.relations.items()},
        "inverses": {name: facts.inverse for name, facts in manifest.relations.items()},
        "versions": manifest.versions,
    }
    path = output / "config.json"
    if not _has_learned(output):
        require_own(output, path.name)
        _clear(output)
        write_json(path, facts)  # first: it marks the folder as a run's
        shutil.copytree(corpus / "code", output / "code", dirs_exist_ok=True)
        (output / "bins").mkdir(exist_ok=True)
        for name, relation in manifest.relations.items():
            if relation.bins:
                shutil.copyfile(corpus / relation.bins.name, output / "bins" / f"{name}.sqlite")
        return
    if not resume:
        raise Cod3sError(f"{output} holds a run already", hint="add --resume, or choose another folder")
    before = read_json(path)
    before["config"] = {**TrainConfig().record(), **before["config"]}  # what a later version added has its default
    if before != facts:
        raise Cod3sError(
            f"the run in {output} has another config or corpus", hint="choose another folder for this one"
        )


def _write_pieces(config: TrainConfig, texts: Iterable[str], path: Path, templates: Sequence[str]) -> None:
    """The text pieces that the decoder writes: those of the run or the model it starts from, or new ones."""
    number = SHAPES[config.shape].pieces
    if config.start_run:
        shutil.copyfile(existing_file(Path(config.start_run) / "tokens.model"), path)
    elif SHAPES[config.shape].causal:
        trim_byte_pieces(Path(config.init), _both_cases(texts, templates), path, number)
    elif config.init:
        write_tokenizers(config.init, path, path.with_name("source.json"))
    elif config.pieces == "encoder":
        copy_pieces(minilm_folder() / "tokenizer.json", path)
    elif config.pieces == "common":
        choose_pieces(minilm_folder() / "tokenizer.json", texts, path, number)
    else:
        train_pieces(texts, path, number)


def _both_cases(texts: Iterable[str], templates: Sequence[str]) -> Iterator[str]:
    """Texts as they are written and as they open a prompt, and the words around them."""
    yield from (template.format(source="", target="") for template in templates)
    for text in texts:
        yield text
        yield text[:1].upper() + text[1:]


def _has_learned(output: Path) -> bool:
    return any(output.glob("*/checkpoint-*")) or any(output.glob("*/figures.json"))


def _clear(output: Path) -> None:
    """Forget a run that never made a step: a wrong option may have ended it."""
    for name in ("code", "bins"):
        shutil.rmtree(output / name, ignore_errors=True)
    for name in ("config.json", "tokens.model", "source.json"):
        (output / name).unlink(missing_ok=True)


class _Run:
    """What the members of a run share: the vocabulary and the pairs."""

    def __init__(
        self,
        corpus: Path,
        output: Path,
        config: TrainConfig,
        manifest: Manifest,
        processes: Any,
        clock: Callable[[], float],
    ) -> None:
        self._output, self._config, self._processes, self._clock = output, config, processes, clock
        self._manifest = manifest
        self._shape = SHAPES[config.shape]
        relations = list(manifest.relations)
        self._inverses = {name: facts.inverse for name, facts in manifest.relations.items()}
        rows = {
            (relation, split): read_rows(corpus, relation, split).first(most)
            for relation in relations
            for split, most in (("train", None), ("dev", config.validate_pairs))
        }
        self._majority = {  # a relation without pairs has nothing to guess
            relation: majority_bit_accuracy(own.signature, rows[relation, "dev"].signature)
            for (relation, split), own in rows.items()
            if split == "train" and own.signature and rows[relation, "dev"].signature
        }
        pieces = output / "tokens.model"
        if not pieces.exists():
            shown = [own for (_, split), own in rows.items() if split == "train"]
            texts = (text for own in shown for column in (own.source, own.target) for text in column)
            prompts = [facts.template for facts in manifest.relations.values()]
            _write_pieces(config, texts, pieces, prompts)
        signature = SignatureTokens(manifest.config.bits, config.bits_per_token, config.positional)
        tags = all_tags(dict.fromkeys(relations, config.roles))
        self.vocabulary = Vocabulary(pieces, tags, signature)
        tokenizer = minilm_folder() / "tokenizer.json" if self._shape.warm else output / "source.json"
        self._readers = {
            name: open_reader(self._shape, self.vocabulary, tokenizer, facts.template)
            for name, facts in manifest.relations.items()
        }
        self._reader = next(iter(self._readers.values()))  # what an empty source is does not depend on relations
        self._connectives = {
            name: connective_pieces(self.vocabulary, facts.template) for name, facts in manifest.relations.items()
        }
        self._encoder = manifest.encoder or ""
        targets = [text for (_, split), shown in rows.items() if split == "train" for text in shown.target]
        self._sample = targets[:: max(1, len(targets) // _SKETCH_TEXTS)]
        known = {name for own in rows.values() for name in own.corpus}
        for name in config.corpora:
            if name not in known:
                named = did_you_mean(name, known) if any(known) else "its pairs do not say where they come from"
                raise UsageError(f"no pair comes from a corpus called {name!r}", hint=named)
        self._tables = {
            (relation, split): PairTable(
                own,
                self.vocabulary,
                self._readers[relation].read,
                config.corpora if split == "train" else {},
                self._shape.max_tokens,
            )
            for (relation, split), own in rows.items()
        }
        for (relation, _), table in self._tables.items():
            if table.too_long and table.too_long == len(table):
                raise Cod3sError(
                    f"every pair of {relation} is too long for the {self._shape.max_tokens} tokens of this shape",
                    hint="prepare the corpus with the filter length:20, or so",
                )

    def __call__(self, member: Member, seconds: float | None, resume: bool, report: Report) -> dict[str, float]:
        folder = self._output / member.name
        if resume and (folder / FINISHED).exists():
            figures: dict[str, float] = read_json(folder / "figures.json")
            return figures
        batches = self._batches(member, "train", member.roles, self._config.epochs)
        held_out = {role: self._batches(member, "dev", (role,), 1) for role in member.roles}
        model = self._new_model(member)
        figures, finished = fit(
            model,
            batches,
            lambda trained: validate(trained, held_out, self.vocabulary),
            self._config,
            folder,
            seconds=seconds,
            clock=self._clock,
            resume=resume,
            report=report,
            pairs_a_batch=self._pairs_a_batch(member, len(batches)),
        )
        figures["padding"] = padding_share(batches, 100, self.vocabulary.pad)
        if too_long := sum(self._tables[relation, "train"].too_long for relation in member.relations):
            figures["pairs_too_long"] = float(too_long)
        figures["majority_bit_accuracy"] = mean(
            self._majority[relation] for relation in member.relations if relation in self._majority
        )
        if self._processes.is_main_process:
            self._save(member, model, figures)
            if finished:
                (folder / FINISHED).touch()
        self._processes.wait_for_everyone()
        return figures

    def _pairs_a_batch(self, member: Member, batches: int) -> float:
        """A pair is seen once an epoch in each role (or its share); all of them together count as one pair."""
        pairs = sum(len(self._tables[relation, "train"]) for relation in member.relations)
        return pairs * self._config.epochs / batches

    def _save(self, member: Member, model: Any, figures: dict[str, float]) -> None:
        folder = self._output / member.name
        with replaced_folder(folder / "model") as partial:
            model.save_pretrained(partial)
        plot_curves(Log(folder / "log.csv"), folder / "curves.png", f"{member.name}, {self._config.shape}")
        write_json(folder / "figures.json", figures)

    def _batches(self, member: Member, split: str, roles: Sequence[str], epochs: int) -> TensorBatches:
        tables = {relation: table for (relation, part), table in self._tables.items() if part == split}
        lessons = [
            lesson(relation, role, tables, self._inverses, self._config.share(role) if split == "train" else 1.0)
            for relation in member.relations
            for role in roles
        ]
        if split == "train" and self._config.hidden:
            lessons += [
                lesson(relation, role, tables, self._inverses, self._config.hidden, hidden=True)
                for relation in member.relations
                for role in roles
                if role in ("plain", "sentence")
            ]
        examples = Examples(lessons, self.vocabulary, self._reader.nothing)
        if not len(examples):
            reason, remedy = why_empty(self._manifest, member.relations[0], split)
            raise Cod3sError(f"the corpus has no {split} pairs: {reason}", hint=remedy)
        stream = BatchStream(examples.lengths, examples.shares, self._config.batch_tokens, self._config.seed)
        number = stream.batches_per_epoch() * epochs
        return TensorBatches(
            examples,
            stream,
            number,
            pad_read=self._reader.pad,
            pad_written=self.vocabulary.pad,
            causal=self._shape.causal,
        )

    def _new_model(self, member: Member) -> Any:
        if self._shape.causal:
            return self._new_causal_model()
        if self._config.init:
            model = load_pretrained(self._config.init, self.vocabulary, seed=self._config.seed)
        else:
            model = build_transformer(self._shape, self.vocabulary, seed=self._config.seed)
        if self._shape.warm:
            start_from_encoder(model, self.vocabulary, self._reader.tokenizer)
            if self._config.freeze_encoder:
                freeze(model.encoder)
        if self._config.hyperplane_start:
            start_from_hyperplanes(model, self.vocabulary, load_code(self._output / "code")[0])
        if self._config.start_run:
            load_weights(model, Path(self._config.start_run) / member.name / "model")
        return model

    def _new_causal_model(self) -> Any:
        config = self._config
        adaptation = Adaptation(
            lora_rank=config.lora_rank, dropped_layers=config.dropped_layers, precision=config.precision
        )
        sketch = self._sketch if config.hyperplane_start else None
        starts = [
            self._connectives[relation][-1] if role != "inverse" and self._connectives[relation] else None
            for relation in self._connectives
            for role in config.roles
        ]
        return build_causal(
            Path(config.init),
            self.vocabulary,
            adaptation,
            seed=config.seed,
            tag_starts=starts,
            sketch=sketch,
        )

    def _sketch(self, pieces: npt.NDArray[np.float32]) -> Sketches:
        """The hyperplanes in the space of the pieces' embeddings, by a sample of the targets."""
        signer = Signer(open_encoder(self._encoder), load_code(self._output / "code")[0])
        embedded = np.stack([pieces[self.vocabulary.encode_text(text)].mean(axis=0) for text in self._sample])
        return map_hyperplanes(signer.code.planes, signer.vectors(self._sample), embedded)
