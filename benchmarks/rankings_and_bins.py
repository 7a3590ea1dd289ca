"""Ten answers each by mmi, by the critic and by both, in k bins and in 2k; by sampling, critic and selection; and
by the default: a table of answers to read blind, and what each system costs.

    python benchmarks/rankings_and_bins.py -o answers.tsv [--bundle BUNDLE] [--relation effect] [--sources N]

Nothing is recalled except by the default, so the model itself is compared. The table has the columns system,
relation, source, answer and critic (how plausible the bundle's critic finds the answer, whatever chose it).
"""

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np

from cod3s import load, select
from cod3s.decode.decode_config import DEFAULT, DecodeConfig
from cod3s.decode.generator import Generator

K = 10
SOURCES = {
    "effect": [
        "My sister sold her car.",
        "The lift in our building stopped working.",
        "He forgot to set his alarm.",
        "The waiter brought us the wrong dishes.",
        "It snowed for three days without a break.",
        "She put salt in the cake instead of sugar.",
        "The people next door bought a drum kit.",
        "The choir's conductor had a cold.",
        "I left the umbrella on the train.",
        "The price of coffee doubled.",
        "The boy learned to whistle.",
        "A tree fell across the road.",
    ],
    "cause": [
        "The dentist's waiting room was packed on Monday.",
        "She painted her bedroom dark green.",
        "The tomatoes in our garden never ripened.",
        "My uncle moved to the countryside.",
        "The soup tasted of nothing.",
        "He walked to work in the rain.",
        "The children whispered in the hallway.",
        "I could not get the lid off the paint.",
        "The library closed for a week.",
        "Her phone rang all evening.",
        "The runner stopped before the finish line.",
        "We gave the piano to the school.",
    ],
}
_WRITTEN = DEFAULT.with_values(k=K, recall=0, drop=False)
RANKINGS = {
    "mmi": _WRITTEN.with_values(rerank_signatures="mmi", rerank_sentences="mmi"),
    "critic": _WRITTEN.with_values(rerank_signatures="none", rerank_sentences="critic"),
    "both": _WRITTEN.with_values(rerank_signatures="mmi", rerank_sentences="critic"),
}
Answering = Callable[[Generator, str, str], Sequence[str]]


@dataclass(frozen=True)
class Reply:
    """What a system answered to a source, how plausible the critic finds it, and the processor seconds it took."""

    source: str
    texts: Sequence[str]
    critic: Sequence[float]
    seconds: float


def by_system(name: str, options: DecodeConfig, model: Generator, source: str, relation: str) -> Sequence[str]:
    return [answer.text for answer in model.generate(source, relation, system=name, options=options).answers]


def by_sampling(score_weight: float, model: Generator, source: str, relation: str) -> Sequence[str]:
    """4k plain samples, of which those are selected that the critic likes and that lie apart."""
    options = DEFAULT.with_values(k=4 * K, baseline_beam=4 * K)
    texts = by_system("s2s-rs", options, model, source, relation)
    scores = model.plausibility(source, relation, texts)
    return select(texts, k=K, scores=scores, method="dpp", score_weight=score_weight, encoder=model.encoder).texts


SYSTEMS: dict[str, Answering] = {
    **{
        f"{name}, {bins}": partial(by_system, "cod3s", options.with_values(bins_per_answer=per_answer))
        for name, options in RANKINGS.items()
        for bins, per_answer in (("k bins", 1.0), ("2k bins", 2.0))
    },
    **{
        f"4k samples, critic, select at {weight}": partial(by_sampling, weight)
        for weight in (0.03, 0.5, 0.9)  # how much the critic counts against diversity; the first is `select`'s own
    },
    "default": partial(by_system, "cod3s", DEFAULT.with_values(k=K)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--relation", choices=SOURCES, help="only this one")
    parser.add_argument("--sources", type=int, default=12, help="of each relation")
    options = parser.parse_args()
    model = load(options.bundle, threads=1)
    model.generate("The lamp fell.", "effect", options=_WRITTEN)  # opens everything
    print("| relation | system | answers | critic | cosine to the nearest other | processor s per source |")
    print("|---|---|---|---|---|---|")
    with options.output.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
        table.writerow(["system", "relation", "source", "answer", "critic"])
        for relation in [options.relation] if options.relation else SOURCES:
            for name, answer in SYSTEMS.items():
                replies = [ask(model, answer, source, relation) for source in SOURCES[relation][: options.sources]]
                table.writerows(
                    [name, relation, reply.source, text, f"{critic:.3f}"]
                    for reply in replies
                    for text, critic in zip(reply.texts, reply.critic, strict=True)
                )
                file.flush()
                print(f"| {relation} | {name} | {summary(model, replies)} |", flush=True)


def ask(model: Generator, answer: Answering, source: str, relation: str) -> Reply:
    start = time.process_time()
    texts = answer(model, source, relation)
    seconds = time.process_time() - start
    return Reply(source, texts, model.plausibility(source, relation, texts), seconds)


def summary(model: Generator, replies: Sequence[Reply]) -> str:
    """Answers per source, the critic's mean, how near answers are to each other, and seconds, as cells."""
    figures = (
        mean(len(reply.texts) for reply in replies),
        mean(critic for reply in replies for critic in reply.critic),
        mean(mean_nearness(model, reply.texts) for reply in replies),
        mean(reply.seconds for reply in replies),
    )
    return "{:.1f} | {:.3f} | {:.3f} | {:.2f}".format(*figures)


def mean_nearness(model: Generator, texts: Sequence[str]) -> float:
    """The mean cosine of each answer to the nearest other one."""
    vectors = model.encoder.encode(list(texts))
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    return float(cosines.max(axis=1).mean())


if __name__ == "__main__":
    main()
