"""Build the word graph of a relation from the training pairs of a prepared corpus.

Counting runs in DuckDB, which spills to disk what does not fit. Scores are those of Luo et al. 2016 ("Commonsense
causal reasoning between short texts", KR), as Li et al. 2020 use them to choose constraints:

    necessity   = p(cause, effect) / (p(cause)^a p(effect))     the effect hardly comes without the cause
    sufficiency = p(cause, effect) / (p(cause) p(effect)^a)     the cause is enough for the effect

where p is the share of pairs that have a word on that side (any form of it, once per pair); a < 1 takes less off
for frequent words than mutual information would.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cod3s.corpus.manifest import Manifest, load_manifest
from cod3s.corpus.relations import CAUSE
from cod3s.decode.baselines.word_graph.inflections import find_bases
from cod3s.decode.baselines.word_graph.store import Edge, WordForm, WordGraphFacts, write_word_graph
from cod3s.errors import UsageError, did_you_mean, require
from cod3s.harvest.lexicon import EMPTY_WORDS
from cod3s.io.scan import connect, parquet_files
from cod3s.word_lists import word_set

DISCOUNT = 0.66  # alpha, the value that Luo et al. use
DOUBT = 30.0
MIN_PAIRS = 3
MAX_EDGES = 50
_WORD = r"[\pL\pN_]+(?:[''’][\pL\pN_]+)*"  # cod3s.text.words, as SQL writes it

# Words that say nothing about what happened: they would be related to everything.
_STOP_WORDS = EMPTY_WORDS | word_set("stop words")


def build_word_graph(
    corpus: Path,
    relation: str,
    path: Path,
    *,
    discount: float = DISCOUNT,
    doubt: float = DOUBT,
    min_pairs: int = MIN_PAIRS,
    max_edges: int = MAX_EDGES,
) -> WordGraphFacts:
    """Write the graph of `relation` to `path`: for every word of a source its strongest words of a target.

    The pairs of the inverse relation count too, with their sides swapped. The source is taken for the cause in
    every relation but `cause`.
    """
    manifest = load_manifest(corpus)
    if relation not in manifest.relations:
        raise UsageError(f"{corpus} has no relation {relation!r}", hint=did_you_mean(relation, manifest.relations))
    with tempfile.TemporaryDirectory(prefix="cod3s-words-") as spill:
        connection = connect(Path(spill))
        pairs = _read_pairs(connection, corpus, manifest, relation)
        facts = WordGraphFacts(
            relation=relation,
            pairs=pairs,
            min_pairs=min_pairs,
            max_edges=max_edges,
            discount=discount,
            doubt=doubt,
            source_is_cause=relation != CAUSE.name,
        )
        forms = _find_forms(connection)
        edges = list(_find_edges(connection, facts, forms))
        bases = {edge.source for edge in edges} | {edge.target for edge in edges}
        write_word_graph(path, facts, [form for form in forms if form.base in bases], edges)
    return facts


def _read_pairs(connection: Any, corpus: Path, manifest: Manifest, relation: str) -> int:
    """Fill the table `occurrences`: a row per word (in lower case, and as written), side and pair."""
    inverse = manifest.relations[relation].inverse
    parts = [_select(corpus, manifest, relation, "source, target")]
    if inverse in manifest.relations:
        parts.append(_select(corpus, manifest, inverse, "target AS source, source AS target"))
    connection.execute(
        f"CREATE TABLE pairs AS SELECT row_number() OVER () AS pair, * FROM ({' UNION ALL '.join(parts)})"
    )
    sides = (
        f"SELECT pair, '{side}' AS side, unnest(regexp_extract_all({side}, '{_WORD}')) AS written FROM pairs"
        for side in ("source", "target")
    )
    connection.execute(
        f"CREATE TABLE occurrences AS SELECT *, lower(written) AS word FROM ({' UNION ALL '.join(sides)})"
    )
    return int(connection.execute("SELECT count(*) FROM pairs").fetchone()[0])


def _select(corpus: Path, manifest: Manifest, relation: str, columns: str) -> str:
    shards = [corpus / shard.name for shard in manifest.relations[relation].shards]
    train = [shard for shard in shards if shard.name.startswith("train-")]
    return f"SELECT {columns} FROM {parquet_files(train)}"


def _find_forms(connection: Any) -> list[WordForm]:
    """The words that carry content, with their bases: no stop words, no names (mostly capitals), no numbers."""
    rows = connection.execute("""
        SELECT word, count(*), count(*) FILTER (side = 'target') FROM occurrences GROUP BY word
        HAVING count(*) FILTER (written = word) * 2 > count(*) ORDER BY word
    """).fetchall()
    bases = find_bases({word: count for word, count, _ in rows if len(word) > 1 and not word.isdigit()})
    return [
        WordForm(word, bases[word], targets)
        for word, _, targets in rows
        if word in bases and not {word, bases[word]} & _STOP_WORDS
    ]


def _find_edges(connection: Any, facts: WordGraphFacts, forms: list[WordForm]) -> Iterator[Edge]:
    """The strongest edges of every word of a source, counted over bases."""
    pyarrow = require("pyarrow", "corpus")
    columns = {"word": [form.word for form in forms], "base": [form.base for form in forms]}
    connection.register("forms", pyarrow.table(columns))
    cause, effect = ("source", "target") if facts.source_is_cause else ("target", "source")
    forward = "sufficiency" if facts.source_is_cause else "necessity"  # from source to target
    connection.execute(f"""
        CREATE TABLE held AS SELECT DISTINCT pair, side, base FROM occurrences JOIN forms USING (word);
        CREATE TABLE shares AS SELECT side, base, count(*) / {facts.pairs} AS share FROM held GROUP BY side, base;
        CREATE TABLE counts AS
            SELECT source.base AS source, target.base AS target, count(*) AS pairs
            FROM held source JOIN held target USING (pair) WHERE source.side = 'source' AND target.side = 'target'
            GROUP BY ALL HAVING count(*) >= {facts.min_pairs};
    """)
    rows = connection.execute(f"""
        SELECT counts.source, counts.target, pairs,
            pairs / {facts.pairs} / (pow({cause}.share, {facts.discount}) * {effect}.share) AS necessity,
            pairs / {facts.pairs} / ({cause}.share * pow({effect}.share, {facts.discount})) AS sufficiency
        FROM counts
        JOIN shares source ON source.side = 'source' AND source.base = counts.source
        JOIN shares target ON target.side = 'target' AND target.base = counts.target
        QUALIFY row_number() OVER (
            PARTITION BY counts.source ORDER BY {forward} * pairs / (pairs + {facts.doubt}) DESC, counts.target
        ) <= {facts.max_edges}
        ORDER BY ALL
    """)
    while row := rows.fetchone():
        yield Edge(*row)
