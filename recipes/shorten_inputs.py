"""Short copies of all that the default bundle is made from, to rehearse how it is made.

    python recipes/shorten_inputs.py DATA -o inputs/

Pairs are thinned; of the tables of answers and verdicts, the first sources are kept with all their rows; of
questions, the first ones.
"""

import argparse
import gzip
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

RECIPES = Path(__file__).parent
EVERY_PAIR = 150
SOURCES = 4
QUESTIONS = 30
ITEM = re.compile(r"<item .*?</item>\s*", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    for path in sorted((options.data / "pairs").glob("*.tsv.gz")):
        write(options.output / "pairs" / path.name, thinned(read(path)))
    for path in sorted((options.data / "eval").glob("*-dev*.jsonl")):
        write(options.output / "eval" / path.name, islice(read(path), QUESTIONS))
    for path in sorted((options.data / "eval").glob("*-dev*.xml")):
        write(options.output / "eval" / path.name, [first_items("".join(read(path)))])
    for path in sorted(RECIPES.glob("*.tsv*")):
        write(options.output / "recipes" / path.name, first_sources(read(path)))


def read(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        yield from file


def write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def thinned(lines: Iterator[str]) -> Iterator[str]:
    yield next(lines)
    yield from islice(lines, 0, None, EVERY_PAIR)


def first_sources(lines: Iterator[str]) -> Iterator[str]:
    """The header, and the rows of the first sources; every table has the source in its first column."""
    yield next(lines)
    sources: set[str] = set()
    for line in lines:
        sources.add(line.partition("\t")[0])
        if len(sources) > SOURCES:
            break
        yield line


def first_items(text: str) -> str:
    """The XML of a set of questions without those after the first ones."""
    surplus = list(ITEM.finditer(text))[QUESTIONS:]
    return text[: surplus[0].start()] + text[surplus[-1].end() :] if surplus else text


if __name__ == "__main__":
    main()
