"""Measure decoding: the two stages with MMI on random weights, on our engine and on its peer.

The peer is transformers: the same weights, beams and lengths, with its `generate` and forward passes, batched and
with its cache. Random weights hardly ever end a text, so every hypothesis has `max_tokens` tokens on both sides.
Ratios are also given in processor time, which with a single thread does not depend on the machine's other work.
"""

import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cod3s.bench.clock import Clock
from cod3s.bench.random_bundle import RELATION, RandomBundle, made_sentences
from cod3s.bundle import read_facts
from cod3s.decode.decode_config import MAX_K, DecodeConfig
from cod3s.decode.generator import Generator, load
from cod3s.decode.models import BundleModels, open_models
from cod3s.decode.rerank import need_backward
from cod3s.decode.sentences import rerank_candidates, write_candidates
from cod3s.decode.signatures import find_signatures, keep_signatures_apart, rank_signatures
from cod3s.errors import Progress
from cod3s.model.transformers_engine import TransformersEngine

STAGES = ("signatures", "rerank signatures", "sentences", "rerank sentences")

Times = dict[str, tuple[float, float]]
"""By stage: seconds of wall time and of processor time."""


@dataclass(frozen=True)
class StageSpeed:
    """Seconds per input that a stage takes here and with the peer; ratios above 1 mean that we are faster."""

    stage: str
    int8: float
    float32: float
    peer: float
    ratio: float  # peer / int8
    processor_ratio: float
    processor_ratio_float32: float


@dataclass(frozen=True)
class Growth:
    """Seconds and peak memory of a call."""

    inputs: int
    k: int
    seconds: float
    processor_seconds: float
    processor_an_answer: float
    peak_mb: float


def bench_decoding(
    bundle: RandomBundle, sources: Sequence[str], config: DecodeConfig, *, threads: int, progress: Progress
) -> list[StageSpeed]:
    """The stages' times on the same sources, and their sum in the last row."""
    models = {name: open_models(folder, threads, compute=name) for name, folder in bundle.folders.items()}
    models["peer"] = open_peer(bundle, threads)
    warm = config.with_values(k=1, signature_beam=2, beam=2, max_tokens=2)
    times: dict[str, Times] = {}
    for name, competitor in models.items():
        time_stages(competitor, sources[:1], warm)
        times[name] = time_stages(competitor, sources, config)
        progress(1)
    for stages in times.values():
        walls, processors = zip(*stages.values(), strict=True)
        stages["all"] = sum(walls), sum(processors)
    return [
        _speed(stage, {name: times[name][stage] for name in models}, len(sources)) for stage in (*STAGES, "all")
    ]


def open_peer(bundle: RandomBundle, threads: int) -> BundleModels:
    """The bundle's models on transformers instead of our engine."""

    def open_engine(name: str) -> TransformersEngine:
        return TransformersEngine(
            bundle.models[name],
            bundle.reader,
            end=bundle.vocabulary.end,
            threads=threads,
            settings={"early_stopping": True},
        )

    folder = bundle.folders["float32"]
    return BundleModels(folder, read_facts(folder), bundle.vocabulary, open_engine)


def time_stages(models: BundleModels, sources: Sequence[str], config: DecodeConfig) -> Times:
    """The parts of both stages as `Generator` runs them, each timed."""
    clock = Clock()
    times: Times = {}
    candidates = find_signatures(models.signature(RELATION), sources, config)
    times["signatures"] = clock.lap()
    rankings = rank_signatures(models, RELATION, sources, candidates, config)
    chosen = [keep_signatures_apart(ranking, config, []) for ranking in rankings]
    times["rerank signatures"] = clock.lap()
    signatures = [[signature.signature for signature in row] for row in chosen]
    bins = write_candidates(models.sentence(RELATION), sources, signatures, config)
    times["sentences"] = clock.lap()
    rerank_candidates(need_backward(models, RELATION), sources, bins, config.sentence_weight)
    times["rerank sentences"] = clock.lap()
    return times


def _speed(stage: str, times: Times, inputs: int) -> StageSpeed:
    (int8, int8_busy), (float32, float32_busy), (peer, peer_busy) = (
        times[name] for name in ("int8", "float32", "peer")
    )
    return StageSpeed(
        stage,
        int8 / inputs,
        float32 / inputs,
        peer / inputs,
        ratio=peer / int8,
        processor_ratio=peer_busy / int8_busy,
        processor_ratio_float32=peer_busy / float32_busy,
    )


def growth_cases(k: int) -> list[tuple[int, int]]:
    """Pairs of inputs and k: more inputs, then more answers, up to the most that a call may ask for."""
    cases = [(1, k), (2, k), (4, k), (2, min(2 * k, MAX_K)), (2, min(4 * k, MAX_K))]
    return list(dict.fromkeys(cases))


def bench_growth(
    generator: Generator,
    relation: str,
    config: DecodeConfig,
    cases: Sequence[tuple[int, int]],
    *,
    progress: Progress,
) -> list[Growth]:
    """How time and memory grow with inputs and k: a row per case."""
    rows = []
    generator.generate(made_sentences(2, 5), relation, 1, options=config.with_values(max_tokens=2))
    for inputs, k in cases:
        sources = made_sentences(inputs, seed=inputs)
        clock = Clock()
        answers = sum(map(len, generator.generate_many(sources, relation, k, options=config)))
        wall, processor = clock.lap()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(Growth(inputs, k, wall, processor, processor / max(1, answers), peak))
        progress(1)
    return rows


@dataclass(frozen=True)
class FirstAnswer:
    """The seconds that a user waits: to open a bundle, for the first answer set, and for a later set."""

    bundle: str
    load: float
    first: float
    next: float


def bench_first_answer(folder: Path, relation: str, config: DecodeConfig, threads: int) -> FirstAnswer:
    """Seconds to open the bundle and to its first and second answer sets."""
    clock = Clock()
    generator = load(folder, threads=threads)
    laps = [clock.lap()]
    for source in ("the tenant misplaced his keys", "the river rose after the storm"):
        generator.generate(source, relation, options=config)
        laps.append(clock.lap())
    load_time, first, later = (wall for wall, _ in laps)
    return FirstAnswer(generator.facts.name, load_time, first, later)
