"""The two stages with MMI on random weights: on our engine, and on transformers with the same weights and beams.

    python benchmarks/decoding_speed.py [--quick] [--threads 1] [--against benchmarks/baselines/decoding.json]

Random weights hardly ever end a text, so every hypothesis has `max_tokens` tokens on both sides. There is a
model per role, as in the paper; learned weights take just as long.
"""

import os
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from side_by_side import Clock, finish, machine_state, made_up_sentences, parse_arguments

from cod3s.bundle import BundleFacts, open_vocabulary, read_facts, write_facts
from cod3s.decode.config import DEFAULT, PAPER, DecodeConfig
from cod3s.decode.sentences import rerank_candidates, write_candidates
from cod3s.decode.signatures import find_signatures, keep_signatures_apart, rank_signatures
from cod3s.model.convert import convert_marian
from cod3s.model.reader import Reader, open_reader
from cod3s.model.shape import SHAPES
from cod3s.model.transformer import build_transformer
from cod3s.model.transformers_engine import TransformersEngine
from cod3s.models import BundleModels, open_models
from cod3s.options import BITS, SEED
from cod3s.tokens.vocabulary import Vocabulary, train_pieces

ROLES = {
    "effect": {"signature": "signature", "sentence": "sentence", "inverse": "inverse"},
    "cause": {"plain": "backward"},
}
NAMES = [name for roles in ROLES.values() for name in roles.values()]
RELATIONS = {
    "effect": {"template": "{source}, so {target}", "inverse": "cause"},
    "cause": {"template": "{source} because {target}", "inverse": "effect"},
}
Times = dict[str, tuple[float, float]]
"""By stage: seconds of wall time and of processor time."""


@dataclass(frozen=True)
class RandomModels:
    """Torch models by name, and what reads and writes their tokens."""

    torch: dict[str, Any]
    vocabulary: Vocabulary
    reader: Reader


def main() -> None:
    parser = ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--shape", help="of the random weights; by default paper, with --quick small")
    parser.add_argument("-n", "--inputs", type=int, default=2)
    parser.add_argument("-k", type=int)
    parser.add_argument("--max-tokens", type=int, default=12)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="small weights and narrow beams; takes seconds")
    arguments = parse_arguments(parser)
    shape = arguments.shape or ("small" if arguments.quick else "paper")
    config = DEFAULT.with_values(
        k=arguments.k or (4 if arguments.quick else DEFAULT.k),
        signature_beam=20 if arguments.quick else DEFAULT.signature_beam,
        beam=8 if arguments.quick else PAPER.beam,
        max_tokens=arguments.max_tokens,
        rerank_signatures="mmi",
        rerank_sentences="mmi",
    )
    settings = {
        "shape": shape,
        "inputs": arguments.inputs,
        "k": config.k,
        "beams": f"{config.signature_beam}/{config.beam}",
        "tokens": config.max_tokens,
        "threads": arguments.threads,
        **machine_state(arguments.threads),
    }
    sources = made_up_sentences(arguments.inputs, 9)
    with TemporaryDirectory() as folder:
        times = competitors_times(Path(folder), shape, sources, config, arguments.threads)
    rows = [
        {
            "name": stage,
            **{name: stages[stage][0] / len(sources) for name, stages in times.items()},
            "ratio": times["transformers"][stage][0] / times["int8"][stage][0],
            "processor_ratio": times["transformers"][stage][1] / times["int8"][stage][1],
            "processor_ratio_float32": times["transformers"][stage][1] / times["float32"][stage][1],
        }
        for stage in times["int8"]
    ]
    finish({"settings": settings, "rows": rows}, arguments)


def competitors_times(
    folder: Path, shape: str, sources: Sequence[str], config: DecodeConfig, threads: int
) -> dict[str, Times]:
    """The times of our engine in int8 and in float32, and of transformers, after a warm-up."""
    random_models = make_random_models(folder, shape)
    competitors = {name: open_models(folder / name, threads, compute=name) for name in ("int8", "float32")}
    competitors["transformers"] = open_peer(random_models, folder / "float32", threads)
    warm_up = config.with_values(k=1, signature_beam=2, beam=2, max_tokens=2)
    times = {}
    for name, models in competitors.items():
        time_stages(models, sources[:1], warm_up)
        times[name] = time_stages(models, sources, config)
    return times


def make_random_models(folder: Path, shape: str) -> RandomModels:
    """Random weights, and bundles of them in int8 and float32: a bit per token, the same two at every position."""
    pieces = folder / "tokens.model"
    train_pieces(made_up_sentences(2 * SHAPES[shape].pieces, SEED), pieces, SHAPES[shape].pieces)
    bundles = {
        quantization: BundleFacts(
            name=f"random {shape} {quantization}",
            encoder="none",
            bits=BITS,
            bits_per_token=1,
            positional=False,
            shape=shape,
            quantization=quantization,
            relations=RELATIONS,
            models=ROLES,
        )
        for quantization in ("int8", "float32")
    }
    vocabulary = open_vocabulary(pieces, bundles["int8"])
    reader = open_reader(SHAPES[shape], vocabulary)
    models: dict[str, Any] = {}
    for number, name in enumerate(NAMES):
        models[name] = build_transformer(SHAPES[shape], vocabulary, seed=SEED + number).eval()
        models[name].save_pretrained(folder / "torch" / name)
    for quantization, facts in bundles.items():
        for name in NAMES:
            model = folder / quantization / "models" / name
            model.mkdir(parents=True)
            convert_marian(folder / "torch" / name, model, vocabulary.tokens, quantization=quantization)
        (folder / quantization / "tokens.model").write_bytes(pieces.read_bytes())
        write_facts(folder / quantization, facts)
    return RandomModels(models, vocabulary, reader)


def open_peer(models: RandomModels, bundle: Path, threads: int) -> BundleModels:
    """The same models on transformers instead of our engine."""

    def open_engine(name: str) -> TransformersEngine:
        return TransformersEngine(
            models.torch[name],
            models.reader,
            end=models.vocabulary.end,
            threads=threads,
            settings={"early_stopping": True},
        )

    return BundleModels(bundle, read_facts(bundle), models.vocabulary, open_engine)


def time_stages(models: BundleModels, sources: Sequence[str], config: DecodeConfig) -> Times:
    """The parts of both stages as `Generator` runs them, each timed, and their sum."""
    clock = Clock()
    times: Times = {}
    candidates = find_signatures(models.signature("effect"), sources, config)
    times["signatures"] = clock.lap()
    rankings = rank_signatures(models, "effect", sources, candidates, config)
    signatures = [[row.signature for row in keep_signatures_apart(ranking, config, [])] for ranking in rankings]
    times["rerank signatures"] = clock.lap()
    bins = write_candidates(models.sentence("effect"), sources, signatures, config)
    times["sentences"] = clock.lap()
    rerank_candidates(models.need_backward("effect"), sources, bins, config.sentence_weight)
    times["rerank sentences"] = clock.lap()
    walls, processors = zip(*times.values(), strict=True)
    times["all"] = sum(walls), sum(processors)
    return times


if __name__ == "__main__":
    main()
