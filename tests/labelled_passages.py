"""Compute precision and recall of the patterns of the harvest on a labelled file.

    python tests/labelled_passages.py

prints the table of docs/measured/corpus.md. Each line of the file is a JSON object: `text`, `expected` (a list of
[cause, effect, pattern]), `reason` and maybe `part`.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cod3s.harvest.extract import find_pairs
from cod3s.io.disk import read_json_lines

LABELLED = Path(__file__).parent / "data" / "harvest-labelled.jsonl"
Triple = tuple[str, str, str]  # cause, effect, pattern


@dataclass(frozen=True)
class Passage:
    """A labelled text, with the expected and the harvested pairs."""

    part: str
    expected: frozenset[Triple]
    harvested: frozenset[Triple]


@dataclass(frozen=True)
class Score:
    """How many pairs were expected, harvested, and right (cause, effect and pattern are equal)."""

    name: str
    expected: int
    found: int
    right: int

    @property
    def precision(self) -> float | None:
        """The share of harvested pairs that are right; None if nothing was harvested."""
        return self.right / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """The share of expected pairs that were harvested; None if nothing was expected."""
        return self.right / self.expected if self.expected else None


def read_passages(path: Path) -> list[Passage]:
    """The labelled passages of `path`, each harvested with the default limits."""
    hint = '{"text": "…", "expected": [["cause", "effect", "pattern"]], "reason": "…"}'
    return list(read_json_lines(path, _passage, "a labelled passage", hint))


def score_patterns(passages: list[Passage]) -> list[Score]:
    """A score per pattern, then per part of the file, then for the whole file."""
    names = sorted({triple[2] for passage in passages for triple in passage.expected | passage.harvested})
    rows = [_score(name, passages, pattern=name) for name in names]
    for part in sorted({passage.part for passage in passages} - {""}):
        rows.append(_score(f"part: {part}", [passage for passage in passages if passage.part == part]))
    return [*rows, _score("all", passages)]


def _passage(record: Any) -> Passage:
    expected = frozenset((str(cause), str(effect), str(name)) for cause, effect, name in record["expected"])
    pairs = find_pairs(str(record["text"])).pairs
    harvested = frozenset((pair.cause, pair.effect, pair.pattern) for pair in pairs)
    return Passage(str(record.get("part", "")), expected, harvested)


def _score(name: str, passages: list[Passage], pattern: str | None = None) -> Score:
    counts = Counter[str]()
    for passage in passages:
        expected, harvested = (
            {triple for triple in triples if pattern in (None, triple[2])}
            for triples in (passage.expected, passage.harvested)
        )
        counts.update(expected=len(expected), found=len(harvested), right=len(expected & harvested))
    return Score(name, counts["expected"], counts["found"], counts["right"])


if __name__ == "__main__":
    for score in score_patterns(read_passages(LABELLED)):
        precision, recall = (
            f"{value:.3f}" if value is not None else "–" for value in (score.precision, score.recall)
        )
        print(f"{score.name:24}{score.expected:9}{score.found:7}{score.right:7}{precision:>11}{recall:>8}")
