"""Export a training run as a bundle: engine models, tokens, hyperplanes, bins, and a model card."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cod3s import __version__
from cod3s.bins import open_bins
from cod3s.bundle.card import model_card
from cod3s.bundle.facts import NAME, BundleFacts, read_facts, write_facts
from cod3s.bundle.folder import open_vocabulary
from cod3s.encode.engine_spec import INT8_LEVELS, QUANTIZATIONS, check_levels
from cod3s.encode.small_copy import write_small_copy
from cod3s.encode.weights import FAST_ID
from cod3s.errors import Cod3sError
from cod3s.io.disk import read_json, replaced_folder
from cod3s.io.parts import split_file
from cod3s.model.convert import convert_causal, convert_marian
from cod3s.model.roles import models_of_roles
from cod3s.model.shape import SHAPES
from cod3s.options import find_name
from cod3s.signatures import load_code

_ENCODER = "encoder"
"""The folder under models/ of a copy of the encoder."""


def export(
    run: Path,
    output: Path,
    *,
    name: str = "",
    quantization: str = "int8",
    levels: int = INT8_LEVELS,
    licence: str = "",
    decoding: Mapping[str, Any] | None = None,
    about: str = "",
    write_words: Callable[[str, Path], object] | None = None,
) -> BundleFacts:
    """Write the bundle of a finished run into `output`, all or nothing, and return its facts.

    `levels` limits the values of each row of weights in int8; `decoding` are options whose defaults differ from
    the package's for this bundle. `about` is Markdown for the model card: where the data came from, what the model
    is bad at. `write_words` writes the word graph of a relation to a path.
    """
    find_name("quantization", quantization, QUANTIZATIONS)
    facts = _facts(run, name or output.name, quantization, check_levels(levels), licence, decoding or {})
    with replaced_folder(output, NAME) as folder:
        _write_parts(run, folder, facts)
        if write_words is not None:
            for relation in facts.relations:
                write_words(relation, folder / "words" / f"{relation}.npz")
        (folder / "MODEL_CARD.md").write_text(model_card(facts, about), encoding="utf-8")
        write_facts(folder, facts)
    return read_facts(output)


def _facts(
    run: Path, name: str, quantization: str, levels: int, licence: str, decoding: Mapping[str, Any]
) -> BundleFacts:
    """The facts of a run's bundle; an error if the run has not finished."""
    record = read_json(run / "config.json")
    config, relations = record["config"], record["relations"]
    if config["shape"] not in SHAPES:
        raise Cod3sError(f"the run {run} has the unknown shape {config['shape']!r}", hint="train it again")
    models = models_of_roles(config["layout"], relations, config["roles"])
    names = list(dict.fromkeys(model for roles in models.values() for model in roles.values()))
    for model in names:
        if not (run / model / "figures.json").is_file():
            raise Cod3sError(f"the run {run} has not finished {model}", hint="finish it with --resume")
    return BundleFacts(
        name=name,
        encoder=record["encoder"],
        bits=record["bits"],
        bits_per_token=config["bits_per_token"],
        positional=config["positional"],
        shape=config["shape"],
        quantization=quantization,
        relations={
            relation: {"template": template, "inverse": record["inverses"][relation]}
            for relation, template in relations.items()
        },
        models=models,
        licence=licence,
        seed=load_code(run / "code")[0].seed,
        levels=levels,
        decoding=dict(decoding),
        # A language model is light enough to have a copy of all-MiniLM-L6-v2 beside it, if that signs its answers.
        own_encoder=_ENCODER if SHAPES[config["shape"]].causal and record["encoder"] == FAST_ID else "",
        judges="verdict" in config["roles"],
        training={
            "config": _without_paths(config),
            "corpus_sha256": record["corpus"],
            "figures": {model: read_json(run / model / "figures.json") for model in names},
            "versions": {**record["versions"], "cod3s": __version__},
        },
    )


def _without_paths(config: dict[str, Any]) -> dict[str, Any]:
    """The config with the names of folders instead of their paths, which are private."""
    folders = {name: Path(config.get(name, "")) for name in ("init", "start_run", "verdicts")}
    return {**config, **{name: folder.name for name, folder in folders.items() if folder.is_absolute()}}


def _write_parts(run: Path, folder: Path, facts: BundleFacts) -> None:
    shutil.copyfile(run / "tokens.model", folder / "tokens.model")
    shutil.copytree(run / "code", folder / "code")
    shutil.copytree(run / "bins", folder / "bins")
    if facts.own_encoder:
        sentences: list[str] = []
        for path in sorted((folder / "bins").glob("*.sqlite")):
            with open_bins(path) as bins:
                sentences += [text for bin in bins.bins() for text in (bin.medoid, *bin.samples)]
        write_small_copy(folder / "models" / facts.own_encoder, folder / "source.json", sentences)
    tokens = open_vocabulary(folder / "tokens.model", facts).tokens
    convert = convert_causal if SHAPES[facts.shape].causal else convert_marian
    for name in facts.model_names:
        model = folder / "models" / name
        model.mkdir(parents=True)
        convert(run / name / "model", model, tokens, quantization=facts.quantization, levels=facts.levels)
        if SHAPES[facts.shape].causal:
            split_file(model / "model.bin")
