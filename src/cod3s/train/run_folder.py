"""The folder of a training run, which explains itself and can be resumed.

run/
  config.json     the options, the corpus, versions
  tokens.model    the text pieces
  code/           the hyperplanes of the corpus
  bins/           its bins
  MEMBER/         a folder per model: model/ (the best weights), figures.json, log.csv, curves.png, checkpoints
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from cod3s.bundle import default_bundle, is_bundle
from cod3s.corpus.manifest import Manifest
from cod3s.errors import Cod3sError, require
from cod3s.io.disk import existing_file, read_json, require_own, sha256, write_json
from cod3s.model.shape import SHAPES
from cod3s.tokens.trimming import trim_byte_pieces
from cod3s.tokens.vocabulary import train_pieces
from cod3s.train.config import DEFAULT_INIT, TrainConfig

PIECES = "tokens.model"
STABLE = "stable"
"""The folder of a model with the checkpoint before the rate of a stable schedule began to fall."""
FINISHED = "finished"
"""A file of this name marks a model that is finished, so --resume skips it."""


def begin_run(corpus: Path, output: Path, config: TrainConfig, manifest: Manifest, resume: bool) -> None:
    """Write what the run is made from, or check that the run to be resumed is the same."""
    facts = {
        "config": config.record(),
        "corpus": sha256(corpus / "manifest.json"),
        "encoder": manifest.encoder,
        "bits": manifest.config.bits,
        "relations": {name: relation.template for name, relation in manifest.relations.items()},
        "inverses": {name: relation.inverse for name, relation in manifest.relations.items()},
        "versions": manifest.versions,
    }
    path = output / "config.json"
    if not has_learned(output):
        require_own(output, path.name)
        forget_run(output)
        write_json(path, facts)  # first: it marks the folder as a run's
        shutil.copytree(corpus / "code", output / "code", dirs_exist_ok=True)
        (output / "bins").mkdir(exist_ok=True)
        for name, relation in manifest.relations.items():
            if relation.bins:
                shutil.copyfile(corpus / relation.bins.name, output / "bins" / f"{name}.sqlite")
        return
    if not resume:
        raise Cod3sError(
            f"{output} already holds a run", hint="add --resume to continue it, or choose another folder"
        )
    before = read_json(path)
    # Options that a later version added have their defaults.
    before["config"] = {**TrainConfig().record(), **before["config"]}
    if is_longer(before["config"], config):
        # From the checkpoint before its rate fell, it goes on as if it had been that long from the start.
        before["config"] |= {"max_steps": config.max_steps, "epochs": config.epochs}
        if before == facts:
            write_json(path, facts)
            for mark in output.glob(f"*/{FINISHED}"):
                mark.unlink()
    if before != facts:
        raise Cod3sError(
            f"the run in {output} has a different config or corpus", hint="choose another folder for this run"
        )


def is_longer(before: Mapping[str, Any], config: TrainConfig) -> bool:
    """Whether the config asks for more steps of a run whose rate is stable until the end."""
    steps = (config.max_steps or inf, config.epochs)
    return config.schedule == "stable" and steps > (before["max_steps"] or inf, before["epochs"])


@contextmanager
def clear_disk_errors(folder: Path) -> Iterator[None]:
    """Turn what torch and safetensors raise on a full or failing disk into an error that names the folder."""
    failures = (RuntimeError, require("safetensors", "train").SafetensorError)
    try:
        yield
    except failures as error:
        if type(error) is RuntimeError and "inline_container" not in str(error):  # where torch writes its files
            raise
        raise Cod3sError(
            f"a file in {folder} could not be written: {str(error).splitlines()[0]}",
            hint="check that its disk has room, then continue with --resume",
        ) from error


def has_learned(output: Path) -> bool:
    """Whether any model of the run has saved a step."""
    return any(output.glob("*/checkpoint-*")) or any(output.glob("*/figures.json"))


def forget_run(output: Path) -> None:
    """Remove what a run wrote before its first step: a wrong option may have ended it."""
    for name in ("code", "bins"):
        shutil.rmtree(output / name, ignore_errors=True)
    for name in ("config.json", PIECES):
        (output / name).unlink(missing_ok=True)


def start_folder(config: TrainConfig) -> Path:
    """The folder of the causal language model that a run starts from."""
    return default_bundle() if config.init == DEFAULT_INIT else Path(config.init)


def write_pieces(config: TrainConfig, texts: Iterable[str], output: Path, templates: Sequence[str]) -> None:
    """Write the text pieces of the decoder: those of the run or the model it starts from, or new ones."""
    path, number = output / PIECES, SHAPES[config.shape].pieces
    if config.start_run:
        shutil.copyfile(existing_file(Path(config.start_run) / PIECES), path)
    elif SHAPES[config.shape].causal:
        start = start_folder(config)
        if is_bundle(start):
            shutil.copyfile(existing_file(start / PIECES), path)
        else:
            trim_byte_pieces(start, _both_cases(texts, templates), path, number)
    else:
        train_pieces(texts, path, number)


def _both_cases(texts: Iterable[str], templates: Sequence[str]) -> Iterator[str]:
    """Texts as they are written and as they open a prompt, and the words around them."""
    yield from (template.format(source="", target="") for template in templates)
    for text in texts:
        yield text
        yield text[:1].upper() + text[1:]
