"""Choose the pairs that the default bundle learns from: clean corpora often, noisy ones seldom.

    python recipes/choose_pairs.py causal-pairs.tsv.gz everyday-pairs.tsv.gz -o pairs.tsv

Reads tab-separated files with the columns cause, effect, order, pattern and corpus. A pair is written once for
each relation that it can teach: with the order `so` it teaches effects, with `because` causes. The choice depends
on the text alone, so the same files always give the same pairs.
"""

import argparse
import csv
import gzip
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cod3s import load_encoder
from cod3s.text import for_embedding

# The share of each corpus, by how sensible a strict reader found a sample of its pairs.
SHARES = {
    "ethics": 1.0,
    "natinst": 1.0,
    "race": 1.0,
    "tatoeba": 1.0,
    "tatoeba2": 1.0,
    "glucose2": 1.0,
    "socialiqa": 0.5,
    "ecare": 0.6,
    "winogrande": 0.5,
    "atomic": 0.5,
    "codah": 0.5,
    "storycommonsense": 0.5,
    "fairytaleqa": 0.5,
    "dpr": 0.5,
    "mcscript": 0.7,
    "glucose": 0.35,
    "selfdlg": 0.3,
    "blogs": 0.12,
    "event2mind": 0.12,
    "rocstories": 0.12,
    "anli": 0.1,
    "imdb": 0.1,
    "essays": 0.1,
    "sfgram": 0.05,
    "classicbooks": 0.03,
}
EXPLICIT = {"so", "because", "so-that", "when-mid", "next-so", "because-first"}  # taken whole from stories
LEAST_RELEVANCE = 0.12  # cosine of the two sides by word vectors; below it they rarely speak of one thing
MOST_RELEVANCE = 0.9  # above it one side repeats the other
LEAST_WORDS, MOST_WORDS = 3, 13
MOST_NAMES = 1
PLAIN = re.compile(r"[A-Za-z' ,-]+")
WORD = re.compile(r"[A-Za-z]+")
BLOCK = 20_000


@dataclass(frozen=True)
class Pair:
    cause: str
    effect: str
    pattern: str
    corpus: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    names = proper_nouns(options.files)
    pairs = relevant(pair for pair in read(options.files) if is_chosen(pair))
    written: Counter[str] = Counter()
    with options.output.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
        table.writerow(["cause", "effect", "order", "pattern", "corpus"])
        for pair in pairs:
            if len(names & set(WORD.findall(f"{pair.cause} {pair.effect}"))) > MOST_NAMES:
                continue
            for order, source, target in (("so", pair.cause, pair.effect), ("because", pair.effect, pair.cause)):
                if not names & (set(WORD.findall(target)) - set(WORD.findall(source))):
                    table.writerow([pair.cause, pair.effect, order, pair.pattern, pair.corpus])
                    written[f"{pair.corpus} {order}"] += 1
    for name, count in sorted(written.items()):
        print(f"{count:8,} {name}")
    print(f"{sum(written.values()):8,} in all")


def read(files: list[Path]) -> Iterator[Pair]:
    for path in files:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                yield Pair(row["cause"], row["effect"], row["pattern"], row["corpus"])


def proper_nouns(files: list[Path]) -> set[str]:
    """Words that nearly always have a capital: names of people and places, which must not leak into answers."""
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for pair in read(files):
        for word in WORD.findall(f"{pair.cause} {pair.effect}"):
            (capital if word[0].isupper() else small)[word] += 1
    return {word for word, count in capital.items() if word != "I" and small[word.lower()] < 0.05 * count}


def is_chosen(pair: Pair) -> bool:
    """Whether a pair's form is sound and its hash falls into its corpus's share."""
    for side in (pair.cause, pair.effect):
        if not PLAIN.fullmatch(side) or not LEAST_WORDS <= len(side.split()) <= MOST_WORDS:
            return False
    share = 1.0 if pair.pattern in EXPLICIT and pair.corpus == "rocstories" else SHARES.get(pair.corpus, 0.0)
    digest = hashlib.sha256(f"{pair.cause}\t{pair.effect}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def relevant(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """The pairs whose sides speak of the same things without repeating each other."""
    encoder = load_encoder("static")
    while block := list(islice(pairs, BLOCK)):
        causes = encoder.encode([for_embedding(pair.cause) for pair in block])
        effects = encoder.encode([for_embedding(pair.effect) for pair in block])
        for pair, cosine in zip(block, (causes * effects).sum(axis=1), strict=True):
            if LEAST_RELEVANCE <= cosine <= MOST_RELEVANCE:
                yield pair


if __name__ == "__main__":
    main()
