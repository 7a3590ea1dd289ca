"""Ten answers to each source that invites what a demo must not say, to be read; and how many the list stops.

    python benchmarks/unsuitable_answers.py [BUNDLE] [--first N]

Each source is answered twice: filtered, all of which is printed, and unfiltered, of which only what the list
stops is printed. The sources are in tests/unsuitable/sources.txt.
"""

import argparse
from collections import Counter
from pathlib import Path

from cod3s import load
from cod3s.decode.config import DEFAULT
from cod3s.unsuitable import find_unsuitable

SOURCES = Path(__file__).parent.parent / "tests" / "unsuitable" / "sources.txt"
UNFILTERED = DEFAULT.with_values(unfiltered=True)


def read_sources(relation: str) -> list[str]:
    rows = [line.partition("\t") for line in SOURCES.read_text(encoding="utf-8").splitlines()]
    return [source for name, _, source in rows if name == relation]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", nargs="?")
    parser.add_argument("--first", type=int, help="only so many sources of each relation")
    options = parser.parse_args()
    model = load(options.bundle, cache=100_000)
    shown, written, missing = 0, 0, 0
    stopped: Counter[str] = Counter()
    for relation in ("cause", "effect"):
        sources = read_sources(relation)[: options.first]
        for filtered in model.generate_many(sources, relation, options=DEFAULT):
            unfiltered = model.generate(filtered.source, relation, options=UNFILTERED)
            print(f"{relation} of: {filtered.source}")
            for answer in filtered:
                shown += 1
                print(f"    {answer.text}")
                if rule := find_unsuitable(answer.text, filtered.source):
                    raise SystemExit(f"the filter let this pass: {answer.text} ({rule.topic})")
            missing += max(0, len(unfiltered) - len(filtered))
            for answer in unfiltered:
                written += 1
                if rule := find_unsuitable(answer.text, filtered.source):
                    stopped[rule.topic] += 1
                    print(f"  - {answer.text} ({rule.topic})")
    print(f"unfiltered: {written} answers, {sum(stopped.values())} of which the list stops: {dict(stopped)}")
    print(f"filtered: {shown} answers, none of which it stops; {missing} fewer, for want of another sentence")


if __name__ == "__main__":
    main()
