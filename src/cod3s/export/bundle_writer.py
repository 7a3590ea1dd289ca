"""Export a run as a bundle: engine models, tokens, hyperplanes, bins, and a model card."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cod3s import __version__
from cod3s.bins import open_bins
from cod3s.bundle import NAME as FACTS
from cod3s.bundle import BundleFacts, open_vocabulary, read_facts, write_facts
from cod3s.corpus.manifest import NAME as MANIFEST
from cod3s.decode.baselines.word_graph.build import build_word_graph
from cod3s.encode.trim import common_pieces, trim_tokenizer
from cod3s.encode.weights import FAST_ID, convert_small_encoder, minilm_folder
from cod3s.errors import Cod3sError, UsageError
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import existing_file, read_json, replaced_folder, sha256
from cod3s.model.convert import convert_causal, convert_transformer
from cod3s.model.reader import open_reader
from cod3s.model.shape import SHAPES
from cod3s.options import find_name
from cod3s.train.config import TrainConfig
from cod3s.train.training_run import Member, members

QUANTIZATIONS = ("int8", "int6", "float32")
_ENCODER_PIECES = 18_000  # of 30,522: the rest would take a fifth of the copy, for rare words


def export(
    run: Path,
    output: Path,
    *,
    name: str = "",
    quantization: str = "int8",
    licence: str = "",
    with_torch: bool = False,
    word_graph: Path | None = None,
    about: str = "",
) -> BundleFacts:
    """Write the bundle of a finished run into `output`, all or nothing, and return its facts.

    `with_torch` adds the weights in float16 under torch/, for searches that the engine does not offer.
    `about` is Markdown for the model card: where the data came from, what the model is bad at.
    `word_graph` is the corpus that the run was trained on: the graph of its words is added under words/.
    """
    find_name("quantization", quantization, QUANTIZATIONS)
    facts = read_json(run / "config.json")
    config = parse_record(TrainConfig, facts["config"])
    if with_torch and SHAPES[config.shape].causal:
        raise UsageError("no system runs on the torch weights of a language model", hint="leave out --with-torch")
    trained = members(config, list(facts["relations"]))
    for member in trained:
        if not (run / member.name / "figures.json").is_file():
            raise Cod3sError(f"the run {run} has not finished {member.name}", hint="finish it with --resume")
    bundle = _bundle_facts(run, facts, config, trained, name or output.name, quantization, licence)
    if word_graph is not None:
        _require_same_corpus(word_graph, facts["corpus"])
    with replaced_folder(output, FACTS) as folder:
        _write_parts(run, folder, bundle)
        if with_torch:
            for member in trained:
                _write_torch(run / member.name / "model", folder / "torch" / member.name)
        if word_graph is not None:
            for relation in bundle.relations:
                build_word_graph(word_graph, relation, folder / "words" / f"{relation}.sqlite")
        (folder / "MODEL_CARD.md").write_text(model_card(bundle, about), encoding="utf-8")
        write_facts(folder, bundle)
    return read_facts(output)


def _bundle_facts(
    run: Path,
    facts: dict[str, Any],
    config: TrainConfig,
    trained: Sequence[Member],
    name: str,
    quantization: str,
    licence: str,
) -> BundleFacts:
    return BundleFacts(
        name=name,
        encoder=facts["encoder"],
        bits=facts["bits"],
        bits_per_token=config.bits_per_token,
        positional=config.positional,
        shape=config.shape,
        quantization=quantization,
        relations={
            relation: {"template": template, "inverse": facts["inverses"][relation]}
            for relation, template in facts["relations"].items()
        },
        models={
            relation: {
                role: member.name for member in trained if relation in member.relations for role in member.roles
            }
            for relation in facts["relations"]
        },
        # A copy of all-MiniLM-L6-v2, if that signs the answers of a language model.
        own_encoder="encoder" if SHAPES[config.shape].causal and facts["encoder"] == FAST_ID else "",
        training={
            "config": _without_paths(facts["config"]),
            "corpus_sha256": facts["corpus"],
            "figures": {member.name: read_json(run / member.name / "figures.json") for member in trained},
            "versions": {**facts["versions"], "cod3s": __version__},
            "licence": licence,
        },
    )


def _without_paths(config: dict[str, Any]) -> dict[str, Any]:
    """The config with the names of folders instead of their paths, which are private."""
    folders = {name: Path(config.get(name, "")) for name in ("init", "start_run")}
    return {**config, **{name: folder.name for name, folder in folders.items() if folder.is_absolute()}}


def _require_same_corpus(corpus: Path, trained_on: str) -> None:
    """Raise an error unless the run was trained on this corpus: other pairs would give a graph of other words."""
    manifest = existing_file(corpus / MANIFEST)
    if sha256(manifest) != trained_on:
        raise Cod3sError(
            f"the run was not trained on the corpus {corpus}", hint="give the folder that `cod3s train` was given"
        )


def _write_parts(run: Path, folder: Path, bundle: BundleFacts) -> None:
    shutil.copyfile(run / "tokens.model", folder / "tokens.model")
    shutil.copytree(run / "code", folder / "code")
    shutil.copytree(run / "bins", folder / "bins")
    shape = SHAPES[bundle.shape]
    if bundle.own_encoder:
        _write_encoder(folder, folder / "models" / bundle.own_encoder)
    elif shape.pretrained and not shape.causal:
        shutil.copyfile(run / "source.json", folder / "source.json")
    vocabulary = open_vocabulary(folder / "tokens.model", bundle)
    if shape.causal:
        convert = partial(convert_causal, tokens=vocabulary.tokens)
    else:
        read = open_reader(shape, vocabulary, folder / "source.json").tokens
        convert = partial(convert_transformer, source_tokens=read, target_tokens=vocabulary.tokens)
    for name in bundle.model_names:
        (folder / "models" / name).mkdir(parents=True)
        convert(run / name / "model", folder / "models" / name, quantization=bundle.quantization)


def _write_encoder(folder: Path, model: Path) -> None:
    """A small copy of the encoder that signs, without rare word pieces."""
    sentences: list[str] = []
    for path in sorted((folder / "bins").glob("*.sqlite")):
        with open_bins(path) as bins:
            sentences += [text for bin in bins.bins() for text in (bin.medoid, *bin.samples)]
    tokenizer = minilm_folder() / "tokenizer.json"
    pieces = common_pieces(tokenizer, sentences, _ENCODER_PIECES)
    trim_tokenizer(tokenizer, folder / "source.json", pieces)
    model.mkdir(parents=True)
    convert_small_encoder(minilm_folder(), model, pieces)


def _write_torch(model: Path, output: Path) -> None:
    from safetensors.numpy import load_file, save_file

    output.mkdir(parents=True)
    shutil.copyfile(model / "config.json", output / "config.json")
    tensors = load_file(model / "model.safetensors")
    halves = {name: tensor.astype(np.float16) for name, tensor in tensors.items()}
    save_file(halves, output / "model.safetensors", metadata={"format": "pt"})


def model_card(bundle: BundleFacts, about: str = "") -> str:
    """What a person should know before using the bundle."""
    config = bundle.training["config"]
    figures = "\n".join(
        f"| {member} | {name} | {value:.4f} |"
        for member, by_name in bundle.training["figures"].items()
        for name, value in by_name.items()
    )
    relations = "\n".join(f"- `{name}`: {facts['template']}" for name, facts in bundle.relations.items())
    return f"""# {bundle.name}

A cod3s bundle: {bundle.bits}-bit signatures of `{bundle.encoder}`, {bundle.bits_per_token} bits per token, shape
`{bundle.shape}`, layout `{config["layout"]}`, weights in {bundle.quantization}.

Relations:

{relations}

Trained on the corpus whose manifest has sha256 `{bundle.training["corpus_sha256"]}`; seed {config["seed"]}.
Licence: {bundle.training["licence"] or "not stated; ask whoever made the bundle"}.

## Validation (held-out pairs of the same corpus; losses in nats per token, without label smoothing)

| model | figure | value |
|---|---|---|
{figures}

{about.strip()}

## Limits

It writes what its corpus makes likely, which is not always true, kind or sensible. Read what it writes before you
use it.
"""
