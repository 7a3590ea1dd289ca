"""Seconds per source, and how different the answers are: s2s on the engine against dbs and dpc on torch.

    python benchmarks/baselines.py BUNDLE

The bundle must hold torch weights and a word graph. `bigrams` is the share of different ones among all bigrams of
a source's ten answers; `score` is the mean log-probability per token of the answers.
"""

import sys
from itertools import pairwise
from statistics import mean

import torch
from side_by_side import Clock

from cod3s import load
from cod3s.records import AnswerSet
from cod3s.text import words

SOURCES = [
    "it rained all day",
    "the baker burned the bread",
    "my tooth hurts",
    "the dog barked at the mailman",
    "the student skipped class",
    "a storm hit the village",
    "the girl found a coin",
    "his car broke down",
]


def distinct_bigrams(answers: AnswerSet) -> float:
    pairs = [pair for text in answers.texts for pair in pairwise(words(text))]
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def main(bundle: str) -> None:
    generator = load(bundle)
    print(f"{len(SOURCES)} sources, k = 10, beams of 30, {torch.get_num_threads()} threads of torch")
    print("| system | seconds per source (processor s) | answers per source | score | bigrams |")
    print("|---|---|---|---|---|")
    for system in ("s2s", "dbs", "dpc"):
        generator.generate(SOURCES[:1], "effect", k=10, system=system)  # opens what it needs
        clock = Clock()
        sets = generator.generate(SOURCES, "effect", k=10, system=system)
        wall, processor = (seconds / len(SOURCES) for seconds in clock.lap())
        number = mean(map(len, sets))
        score = mean(answer.forward for answers in sets for answer in answers if answer.forward is not None)
        bigrams = mean(map(distinct_bigrams, sets))
        print(f"| {system} | {wall:.2f} ({processor:.2f}) | {number:.1f} | {score:.2f} | {bigrams:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1])
