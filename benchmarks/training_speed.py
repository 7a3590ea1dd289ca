"""Pairs and words per second of `cod3s train`, by preset, beside what a plain matrix product reaches.

    python benchmarks/training_speed.py [--preset causal --preset paper] [--seconds 60]

The presets train on made-up pairs as `cod3s train` does. The ratio divides pairs per second by the GFLOP/s of a
large float32 matrix product in the same run, so that the machine cancels out.
"""

from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from side_by_side import Clock, everyday_sentences, finish, machine_state, parse_arguments

import cod3s
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.train import train
from cod3s.train.config import find_preset

SIDE = 2048  # of the square matrices whose product is the limit
PAIRS = 20_000
ONE_EPOCH = 10**9  # validate only at the end


def main() -> None:
    parser = ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--preset", action="append", help="repeatable; by default small and paper")
    parser.add_argument("--seconds", type=float, default=60, help="how long each preset trains")
    arguments = parse_arguments(parser)
    rows = []
    words = sum(len(text.split()) for text in everyday_sentences(1000)) / 1000
    with TemporaryDirectory() as folder:
        corpus = made_corpus(Path(folder))
        for name in arguments.preset or ("small", "paper"):
            limits = product_gflops()
            rates = pairs_per_second(corpus, Path(folder) / name, name, arguments.seconds)
            ratios = [rate / limit for rate, limit in zip(rates, limits, strict=True)]
            row = {"name": name, "pairs_per_second": rates[0], "words_per_second": 2 * words * rates[0]}
            rows.append({**row, "limit_gflops": limits[0], "ratio": ratios[0], "processor_ratio": ratios[1]})
    settings = {"pairs": PAIRS, "threads": torch.get_num_threads(), **machine_state(None)}
    finish({"settings": settings, "rows": rows}, arguments)


def made_corpus(folder: Path) -> str:
    """A corpus of made-up effects, signed with static vectors."""
    texts = everyday_sentences(2 * PAIRS)
    lines = ["cause\teffect", *("\t".join(pair) for pair in zip(texts[::2], texts[1::2], strict=True))]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n")
    config = PrepareConfig(relation="effect", orders="all", filter="none", encoder="static", dev=100, test=0)
    cod3s.prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    return str(folder / "corpus")


def pairs_per_second(corpus: str, run: Path, preset: str, seconds: float) -> tuple[float, float]:
    """The mean rate of a run, without its first tenth of reports; and the same per second of processor time."""
    rates: list[float] = []
    config = find_preset(preset).with_values(evaluate_every=ONE_EPOCH)
    clock = Clock()
    train(Path(corpus), run, config, seconds=seconds, report=lambda _step, _last, rate, _loss: rates.append(rate))
    wall, processor = clock.lap()
    steady = rates[len(rates) // 10 :]
    rate = sum(steady) / len(steady)
    return rate, rate * wall / processor


def product_gflops() -> tuple[float, float]:
    """Billions of floating-point operations in a large matrix product, per second of wall and processor time."""
    matrix = torch.randn(SIDE, SIDE)
    matrix @ matrix
    clock = Clock()
    for _ in range(5):
        matrix @ matrix
    wall, processor = (5 * 2 * SIDE**3 / seconds / 1e9 for seconds in clock.lap())
    return wall, processor


if __name__ == "__main__":
    main()
