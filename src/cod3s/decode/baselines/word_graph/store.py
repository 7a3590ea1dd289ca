"""The word graph of a relation as an SQLite file, and the related words that it knows for a source.

Nodes are words by their base form; an edge says how strongly a word of the source goes with a word of the target.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cod3s.errors import BundleError
from cod3s.io.sqlite_file import SqliteFile
from cod3s.text import words

_RELATED = """
SELECT target,
  sum(pow(necessity, :balance) * pow(sufficiency, 1 - :balance) * pairs / (pairs + :doubt)) AS strength
FROM edges WHERE source IN (SELECT value FROM json_each(:sources))
AND target NOT IN (SELECT value FROM json_each(:sources))
GROUP BY target ORDER BY strength DESC, target LIMIT :number
"""
_FORMS = (
    "SELECT word FROM words WHERE base = ? AND targets > 1 AND word NOT LIKE '%''%' ORDER BY targets DESC, word"
)


@dataclass(frozen=True)
class WordGraphFacts:
    """What made a word graph."""

    relation: str
    pairs: int
    min_pairs: int  # an edge was seen in at least this many
    max_edges: int  # the strongest edges kept per word
    discount: float  # alpha of the scores
    doubt: float  # the pairs in which an edge must be seen for half of its score to count
    source_is_cause: bool  # else the source is the effect
    format: int = 1


@dataclass(frozen=True)
class WordForm:
    """A word, its base, and in how many targets it occurs."""

    word: str
    base: str
    targets: int


@dataclass(frozen=True)
class Edge:
    """How strongly a word of the source goes with a word of the target, both in base form."""

    source: str
    target: str
    pairs: int
    necessity: float
    sufficiency: float


@dataclass(frozen=True)
class RelatedWord:
    """A word that targets of a source are likely to contain, with its inflected forms, most frequent first."""

    base: str
    forms: tuple[str, ...]
    strength: float


class WordGraph(SqliteFile[WordGraphFacts]):
    """An open word graph."""

    what, remedy, error = "a word graph", "cod3s bundle export RUN -o BUNDLE --word-graph CORPUS", BundleError
    facts_type, tables, any_thread = WordGraphFacts, ("words", "edges"), True
    schema = """
CREATE TABLE words (word TEXT PRIMARY KEY, base TEXT NOT NULL, targets INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX forms ON words (base);
CREATE TABLE edges (
  source TEXT NOT NULL, target TEXT NOT NULL, pairs INTEGER NOT NULL, necessity REAL NOT NULL,
  sufficiency REAL NOT NULL, PRIMARY KEY (source, target)
) WITHOUT ROWID;
"""

    def related(self, source: str, number: int, balance: float | None = None) -> list[RelatedWord]:
        """Up to `number` words that targets of `source` contain, strongest first, without the words of the source.

        A word's strength is the sum over the source's words of necessity^balance * sufficiency^(1 - balance), the
        causal strength of Luo et al. 2016, times pairs / (pairs + doubt), as few pairs prove little. By default
        it is the score that goes from source to target: sufficiency where the source is the
        cause, necessity where it is the effect (docs/baselines.md).
        """
        if balance is None:
            balance = 0.0 if self.facts.source_is_cause else 1.0
        with self._readable():
            sources = json.dumps(self._bases(words(source)))
            rows = self._database.execute(
                _RELATED, {"sources": sources, "balance": balance, "doubt": self.facts.doubt, "number": number}
            ).fetchall()
            related = (RelatedWord(base, self._forms(base), strength) for base, strength in rows)
            return [word for word in related if word.forms]

    def _bases(self, written: Sequence[str]) -> list[str]:
        """The bases of the words that the graph knows."""
        query = "SELECT DISTINCT base FROM words WHERE word IN (SELECT value FROM json_each(?))"
        return [base for (base,) in self._database.execute(query, (json.dumps(written),))]

    def _forms(self, base: str) -> tuple[str, ...]:
        return tuple(word for (word,) in self._database.execute(_FORMS, (base,)))


def write_word_graph(path: Path, facts: WordGraphFacts, forms: Iterable[WordForm], edges: Iterable[Edge]) -> None:
    """Write the file, all or nothing."""
    with WordGraph.new(path, facts) as database:
        database.executemany("INSERT INTO words VALUES (:word, :base, :targets)", map(asdict, forms))
        database.executemany(
            "INSERT INTO edges VALUES (:source, :target, :pairs, :necessity, :sufficiency)", map(asdict, edges)
        )


def open_word_graph(path: Path) -> WordGraph:
    """The word graph at `path`, open for reading."""
    if not path.is_file():
        raise BundleError(
            f"there is no word graph at {path}",
            hint="export the bundle again with --word-graph CORPUS, where CORPUS is what it was trained on",
        )
    return WordGraph(path)
