"""Measure training: pairs per second of a preset on made-up pairs, and how close the steps come to the limit.

The limit is what a plain large matrix product reaches in the same run; torch counts the work of a step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from cod3s.bench.clock import Clock
from cod3s.bench.random_bundle import made_sentences
from cod3s.errors import Progress, require
from cod3s.model.reader import open_reader
from cod3s.model.roles import all_tags
from cod3s.model.shape import SHAPES
from cod3s.model.transformer import count_parameters
from cod3s.options import BITS
from cod3s.signatures import random_code
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary
from cod3s.train.batches import TensorBatches, example_batches
from cod3s.train.config import TrainConfig
from cod3s.train.lessons import Examples, lesson
from cod3s.train.pairs import PairTable, Rows
from cod3s.train.run_folder import PIECES, write_pieces
from cod3s.train.starting_model import StartingModel

Times = npt.NDArray[np.float64]
_RELATION, _TEMPLATE = "effect", "{source}, so {target}"
_PAIRS = 6000
_SIDE = 2048  # of the square matrices whose product is the limit


@dataclass(frozen=True)
class TrainingSpeed:
    """The speed of training steps. `share` is the share of the limit that they reach; also in processor time."""

    name: str
    parameters: int  # that are trained
    pairs_per_second: float
    gflops: float  # per second
    share: float
    processor_share: float


def bench_training(
    presets: dict[str, TrainConfig], *, steps: int, compiled: bool, progress: Progress
) -> tuple[list[TrainingSpeed], float]:
    """The speed of each preset, and the limit in GFLOP/s. The limit and the presets take turns, `steps` times."""
    with TemporaryDirectory() as folder:
        runs = [_Steps(name, config, Path(folder), compiled=compiled) for name, config in presets.items()]
        limit = _Product()
        turns: list[Callable[[], None]] = [limit, *runs]
        spent: dict[Callable[[], None], list[tuple[float, float]]] = {turn: [] for turn in turns}
        for _ in range(steps + 1):
            for run, seconds in spent.items():
                clock = Clock()
                run()
                seconds.append(clock.lap())
                progress(1)
    # The first turn of each was a warm-up.
    medians = {run: np.median(seconds[1:], axis=0) for run, seconds in spent.items()}
    best = limit.gflop / medians[limit]
    return [run.speed(medians[run], best) for run in runs], float(best[0])


class _Product:
    """One large product of two matrices."""

    gflop = 2 * _SIDE**3 / 1e9

    def __init__(self) -> None:
        torch = require("torch", "train")
        self._matrix = torch.randn(_SIDE, _SIDE)

    def __call__(self) -> None:
        self._matrix @ self._matrix


class _Steps:
    """Training steps of a preset on a batch of ordinary length: forward, backward, optimiser."""

    def __init__(self, name: str, config: TrainConfig, folder: Path, *, compiled: bool) -> None:
        torch = require("torch", "train")
        self._name = name
        config = config.with_values(hyperplane_start=False)  # no encoder signs made-up pairs
        words = _vocabulary(config, folder / name)
        batches = _batches(words, config)
        start = StartingModel(config, words, {_RELATION: _TEMPLATE}, random_code(BITS, 1), "", [])
        self._model = start.build(name).train()
        trained = [weight for weight in self._model.parameters() if weight.requires_grad]
        self._optimiser = torch.optim.AdamW(trained, lr=config.learning_rate, fused=True)
        self._batch = batches[len(batches) // 2]
        self._pairs = len(self._batch["labels"])
        with require("torch.utils.flop_counter", "train").FlopCounterMode(display=False) as counter:
            self._forward = self._model
            self()
        self._gflop = counter.get_total_flops() / 1e9
        if compiled:
            self._forward = torch.compile(self._model, dynamic=True)

    def __call__(self) -> None:
        self._forward(**self._batch).loss.backward()
        self._optimiser.step()
        self._optimiser.zero_grad()

    def speed(self, seconds: Times, limit: Times) -> TrainingSpeed:
        """The speed of a step that takes these seconds, in wall time and in processor time."""
        rates = self._gflop / seconds
        return TrainingSpeed(
            self._name,
            count_parameters(self._model),
            self._pairs / float(seconds[0]),
            float(rates[0]),
            *map(float, rates / limit),
        )


def _vocabulary(config: TrainConfig, folder: Path) -> Vocabulary:
    folder.mkdir()
    texts = made_sentences(2 * SHAPES[config.shape].pieces, config.seed)
    write_pieces(config, texts, folder, [_TEMPLATE])
    signature = SignatureTokens(BITS, config.bits_per_token, config.positional)
    return Vocabulary(folder / PIECES, all_tags({_RELATION: config.roles}), signature)


def _batches(words: Vocabulary, config: TrainConfig) -> TensorBatches:
    """Batches of the `sentence` role, which costs the most."""
    shape = SHAPES[config.shape]
    reader = open_reader(shape, words, Path(), _TEMPLATE)
    draw = np.random.default_rng(config.seed)
    signatures = ["".join(map(str, row)) for row in draw.integers(0, 2, (_PAIRS, BITS))]
    texts = made_sentences(2 * _PAIRS, config.seed + 1)
    rows = Rows(texts[:_PAIRS], texts[_PAIRS:], signatures, signatures, ["made"] * _PAIRS)
    table = PairTable(rows, words, reader.read, {}, shape.max_tokens)
    examples = Examples([lesson(_RELATION, "sentence", {_RELATION: table}, {})], words, reader.nothing)
    return example_batches(examples, config, 1, reader=reader, pad=words.pad)
