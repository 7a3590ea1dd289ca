"""Choose the pairs that the default bundle learns from: only what reads as a cause and its effect.

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
from cod3s.decode.choice import is_stale
from cod3s.text import for_embedding

# The share of each corpus that is taken, of some patterns a share of their own: high where a strict reader found a
# sample of the pairs sensible, in the past tense and not made by a template. What is not named is left out.
SHARES = {
    "natinst": 1.0,
    "race": 1.0,
    "tatoeba": 1.0,
    "tatoeba2": 1.0,
    "mcscript": 1.0,
    "dpr": 1.0,
    "ecare": 0.8,
    "winogrande": 0.8,
    "glucose": 0.28,
    "blogs": 0.25,
    "selfdlg": 0.3,
    "imdb": 0.1,
    "ethics util-next": 0.8,
    "socialiqa effect": 1.0,
    "socialiqa need": 0.5,
    "socialiqa intent": 0.4,
    "socialiqa feel": 0.3,
    "socialiqa want": 0.2,
    "atomic HinderedBy": 1.0,
    "atomic xEffect": 1.0,
    "atomic oEffect": 0.5,
    "atomic oReact": 0.5,
    "atomic xReact": 0.4,
    "atomic xIntent": 0.4,
    "glucose2 glucose-748": 1.0,
    "glucose2 glucose-749": 0.5,
    "rocstories because": 1.0,
    "rocstories so": 1.0,
    "rocstories so-that": 1.0,
    "rocstories when-mid": 1.0,
    "rocstories next-so": 1.0,
    "rocstories flip-had": 1.0,
    "rocstories next-4": 0.25,
    "rocstories next-3": 0.15,
    "rocstories next-2": 0.1,
    "anli hyp-obs2": 0.3,
}
# The next sentence of a story often follows from the one before, which is seldom the reason for it.
EFFECTS_ONLY = {"next-2", "next-3", "next-4", "hyp-obs2", "util-next"}
# The least cosine of the two sides; higher where a corpus wanders, lower for patterns that say "so" or "because".
LEAST_RELEVANCE = {
    "rocstories": 0.38,
    "anli": 0.42,
    "glucose": 0.38,
    "selfdlg": 0.35,
    "imdb": 0.35,
    "natinst": 0.25,
}
LEAST_RELEVANCE |= dict.fromkeys(["ethics", "blogs", "atomic"], 0.3)
EXPLICIT = {"so", "because", "so-that", "when-mid", "next-so", "flip-had"}
LEAST_OTHERWISE = 0.22
MOST_RELEVANCE = 0.85  # above it one side repeats the other
LEAST_WORDS, MOST_WORDS = 3, 12
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
    pairs = relevant(pair for pair in read(options.files) if is_chosen(pair) and has_few(names, pair))
    written: Counter[str] = Counter()
    with options.output.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
        table.writerow(["cause", "effect", "order", "pattern", "corpus"])
        for pair in pairs:
            for order in orders(pair, names):
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
    share = SHARES.get(f"{pair.corpus} {pair.pattern}", SHARES.get(pair.corpus, 0.0))
    digest = hashlib.sha256(f"{pair.cause}\t{pair.effect}".encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def has_few(names: set[str], pair: Pair) -> bool:
    return len(names & set(WORD.findall(f"{pair.cause} {pair.effect}"))) <= MOST_NAMES


def relevant(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """The pairs whose sides speak of the same things without repeating each other."""
    encoder = load_encoder("fast")
    while block := list(islice(pairs, BLOCK)):
        causes = encoder.encode([for_embedding(pair.cause) for pair in block])
        effects = encoder.encode([for_embedding(pair.effect) for pair in block])
        for pair, cosine in zip(block, (causes * effects).sum(axis=1), strict=True):
            if least_relevance(pair) <= cosine <= MOST_RELEVANCE:
                yield pair


def least_relevance(pair: Pair) -> float:
    if pair.corpus == "rocstories" and pair.pattern in EXPLICIT:
        return 0.25
    return LEAST_RELEVANCE.get(pair.corpus, LEAST_OTHERWISE)


def orders(pair: Pair, names: set[str]) -> Iterator[str]:
    """The relations that a pair can teach: its target says something new, and no name that the source lacks."""
    for order, source, target in (("so", pair.cause, pair.effect), ("because", pair.effect, pair.cause)):
        has_new_name = names & (set(WORD.findall(target)) - set(WORD.findall(source)))
        if (
            not has_new_name
            and not is_stale(source, target)
            and not (order == "because" and pair.pattern in EFFECTS_ONLY)
        ):
            yield order


if __name__ == "__main__":
    main()
