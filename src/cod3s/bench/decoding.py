"""Measures decoding: the two stages with MMI on random weights, against the same computation by the peer.

Both take turns in one run on the same weights, beams and lengths; random weights hardly ever end a text, so every
hypothesis has `max_tokens` tokens on both sides. Ratios are also given in processor time, which with one thread
does not depend on what else the machine does meanwhile.
"""

import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

from cod3s.bench.peer import Ids, Peer
from cod3s.bench.random_bundle import RELATION, RandomBundle, made_sentences
from cod3s.decode.config import DecodeConfig
from cod3s.decode.distance import keep_apart
from cod3s.decode.generator import Generator, load
from cod3s.decode.players import Players, open_players
from cod3s.decode.rerank import mean_log_prob, rank, score_sentences_backward, score_signatures_backward
from cod3s.decode.sentences import write_sentences
from cod3s.decode.signatures import find_signatures, read_signature
from cod3s.errors import Progress
from cod3s.tokens.vocabulary import Vocabulary

STAGES = ("signatures", "rerank signatures", "sentences", "rerank sentences")

Times = dict[str, tuple[float, float]]
"""By stage: seconds on the wall, and of the processor."""


@dataclass(frozen=True)
class StageSpeed:
    """Seconds an input that a stage takes here and at the peer; ratios above 1 are in our favour."""

    stage: str
    int8: float
    float32: float
    peer: float
    ratio: float  # peer / int8
    processor_ratio: float
    processor_ratio_float32: float


@dataclass(frozen=True)
class Growth:
    """Seconds and peak memory of one call."""

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
    players = {name: open_players(folder, threads, compute=name) for name, folder in bundle.folders.items()}
    peer = Peer(bundle, threads)
    warm = config.with_values(k=1, signature_beam=2, beam=2, max_tokens=2)
    runs: dict[str, Callable[[Sequence[str], DecodeConfig], Times]] = {
        "int8": lambda texts, options: _ours(players["int8"], texts, options),
        "float32": lambda texts, options: _ours(players["float32"], texts, options),
        "peer": lambda texts, options: _peer(peer, bundle.vocabulary, texts, options),
    }
    times: dict[str, Times] = {}
    for name, run in runs.items():
        run(sources[:1], warm)
        times[name] = run(sources, config)
        progress(1)
    for own in times.values():
        walls, processors = zip(*own.values(), strict=True)
        own["all"] = sum(walls), sum(processors)
    return [_speed(stage, {name: times[name][stage] for name in runs}, len(sources)) for stage in (*STAGES, "all")]


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


def bench_growth(
    generator: Generator,
    relation: str,
    config: DecodeConfig,
    cases: Sequence[tuple[int, int]],
    *,
    progress: Progress,
) -> list[Growth]:
    """How time and memory grow with inputs and k: one row a case."""
    rows = []
    generator.generate(made_sentences(2, 5), relation, 1, options=config.with_values(max_tokens=2))
    for inputs, k in cases:
        sources = made_sentences(inputs, seed=inputs)
        clock = _Clock()
        answers = sum(len(found) for found in generator.generate_many(sources, relation, k, options=config))
        clock.stop("all")
        wall, processor = clock.times["all"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(Growth(inputs, k, wall, processor, processor / max(1, answers), peak))
        progress(1)
    return rows


@dataclass(frozen=True)
class FirstAnswer:
    """What a user waits for: opening a bundle, the first answer set, and a later one."""

    bundle: str
    load: float
    first: float
    next: float


def bench_first_answer(folder: Path, relation: str, config: DecodeConfig, threads: int) -> FirstAnswer:
    """Seconds to open the bundle and to its first and second answer sets."""
    marks = [perf_counter()]
    generator = load(folder, threads=threads)
    marks.append(perf_counter())
    for source in ("the tenant misplaced his keys", "the river rose after the storm"):
        generator.generate(source, relation, options=config)
        marks.append(perf_counter())
    load_time, first, later = (b - a for a, b in pairwise(marks))
    return FirstAnswer(generator.facts.name, load_time, first, later)


def _ours(players: Players, sources: Sequence[str], config: DecodeConfig) -> Times:
    """The stages as `Generator` runs them, each timed."""
    clock, words = _Clock(), players.vocabulary
    found = find_signatures(
        players.signature(RELATION), words, sources, search="beam", best=max(config.signature_beam, config.k)
    )
    clock.stop("signatures")
    inverse, backward = players.inverse(RELATION), players.backward(RELATION)
    assert inverse is not None
    assert backward is not None
    scores = score_signatures_backward(inverse, words, sources, found)
    chosen = []
    for own, backwards in zip(found, scores, strict=True):
        ranked = rank([mean_log_prob(one) for one in own], backwards, config.signature_weight)
        names = [read_signature(words, own[row.place].tokens) or "" for row in ranked]
        chosen.append([names[place] for place in _kept(names, config)])
    clock.stop("rerank signatures")
    bins = write_sentences(players.sentence(RELATION), words, sources, chosen, config)
    clock.stop("sentences")
    pairs = [(source, one.text) for source, own in zip(sources, bins, strict=True) for rows in own for one in rows]
    score_sentences_backward(backward, words, pairs)
    clock.stop("rerank sentences")
    return clock.times


def _peer(peer: Peer, words: Vocabulary, sources: Sequence[str], config: DecodeConfig) -> Times:
    clock = _Clock()
    found = peer.find_signatures(sources, config.signature_beam)
    clock.stop("signatures")
    chosen: list[list[Ids]] = []
    for source, own in zip(sources, found, strict=True):
        backwards = peer.score_signatures(source, own)
        ranked = rank([0.0] * len(own), backwards, config.signature_weight)
        names = [read_signature(words, own[row.place]) or "" for row in ranked]
        chosen.append([own[ranked[place].place] for place in _kept(names, config)])
    clock.stop("rerank signatures")
    written = [
        peer.write_sentences(source, own, config.beam, config.max_tokens)
        for source, own in zip(sources, chosen, strict=True)
    ]
    clock.stop("sentences")
    for source, bins in zip(sources, written, strict=True):
        texts = dict.fromkeys(words.decode_text(tokens) for own in bins for tokens in own)
        peer.score_sentences(source, list(texts))
    clock.stop("rerank sentences")
    return clock.times


def _kept(names: Sequence[str], config: DecodeConfig) -> tuple[int, ...]:
    return keep_apart(names, config.k, min_hamming=config.min_hamming, mode=config.apart).places


class _Clock:
    """Seconds since the last stop, by name."""

    def __init__(self) -> None:
        self.times: Times = {}
        self._since = perf_counter(), process_time()

    def stop(self, stage: str) -> None:
        wall, processor = perf_counter(), process_time()
        self.times[stage] = wall - self._since[0], processor - self._since[1]
        self._since = wall, processor
