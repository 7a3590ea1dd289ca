"""Build the lexical cause-effect graph of a corpus: which words of a target go with which words of a source.

Scores are those of Luo et al. 2016 ("Commonsense causal reasoning between short texts", KR), as Li et al. 2020 use
them to choose constraints:

    necessity   = p(cause, effect) / (p(cause)^a p(effect))     the effect hardly comes without the cause
    sufficiency = p(cause, effect) / (p(cause) p(effect)^a)     the cause is enough for the effect

where p is the share of pairs that have a word on that side (any form of it, once per pair); a < 1 takes less off
for frequent words than mutual information would. An edge has the score that goes from source to target
(sufficiency where the source is the cause, necessity where it is the effect) times pairs / (pairs + doubt), as few
pairs prove little. Counting runs in DuckDB, which spills to disk what does not fit.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.corpus.inflections import find_bases
from cod3s.corpus.manifest import Manifest, load_manifest
from cod3s.errors import UsageError, did_you_mean, require
from cod3s.harvest.lexicon import EMPTY_WORDS
from cod3s.io.disk import replaced_file
from cod3s.io.scan import connect, parquet_files
from cod3s.word_lists import word_set

_DISCOUNT = 0.66  # a, the value that Luo et al. use
_DOUBT = 30.0
_MIN_PAIRS = 3
_MAX_EDGES = 50  # per word of a source
_WORD = r"[\pL\pN_]+(?:[''’][\pL\pN_]+)*"  # cod3s.text.words, as SQL writes it

# Words that say nothing about what happened: they would be related to everything.
_STOP_WORDS = EMPTY_WORDS | word_set("stop words")


def build_word_graph(corpus: Path, relation: str, path: Path, *, min_pairs: int = _MIN_PAIRS) -> None:
    """Write the graph of `relation` to `path`: for every word of a source its strongest words of a target.

    The pairs of the inverse relation count too, with their sides swapped.
    """
    manifest = load_manifest(corpus)
    if relation not in manifest.relations:
        raise UsageError(f"{corpus} has no relation {relation!r}", hint=did_you_mean(relation, manifest.relations))
    with tempfile.TemporaryDirectory(prefix="cod3s-words-") as spill:
        connection = connect(Path(spill))
        pairs = _read_pairs(connection, corpus, manifest, relation)
        forms = _find_forms(connection)
        edges = _find_edges(connection, forms, pairs, min_pairs)
    connected = {word for source, target, _ in edges for word in (source, target)}
    kept = sorted((word, base, targets) for word, base, targets in forms if base in connected)
    names = [word for word, *_ in kept]
    numbers = {word: number for number, word in enumerate(names)}
    rows = sorted((numbers[source], -strength, numbers[target]) for source, target, strength in edges)
    out_degree = np.bincount([source for source, *_ in rows], minlength=len(names))
    with replaced_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file,
            words=np.array(names, dtype=np.str_),
            base=np.array([numbers[base] for _, base, _ in kept], np.int32),
            targets=np.array([targets for *_, targets in kept], np.int32),
            starts=np.concatenate([[0], np.cumsum(out_degree)]).astype(np.int32),
            target=np.array([target for *_, target in rows], np.int32),
            strength=np.array([-strength for _, strength, _ in rows], np.float32),
        )


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
    return f"SELECT {columns} FROM {parquet_files([shard for shard in shards if shard.name.startswith('train-')])}"


def _find_forms(connection: Any) -> list[tuple[str, str, int]]:
    """(word, base, targets with it): no stop words, no names (words mostly in capitals), no numbers."""
    rows = connection.execute("""
        SELECT word, count(*), count(*) FILTER (side = 'target') FROM occurrences GROUP BY word
        HAVING count(*) FILTER (written = word) * 2 > count(*) ORDER BY word
    """).fetchall()
    bases = find_bases({word: count for word, count, _ in rows if len(word) > 1 and not word.isdigit()})
    return [
        (word, bases[word], targets)
        for word, _, targets in rows
        if word in bases and not {word, bases[word]} & _STOP_WORDS
    ]


def _find_edges(
    connection: Any, forms: list[tuple[str, str, int]], pairs: int, min_pairs: int
) -> list[tuple[str, str, float]]:
    """The strongest edges of every word of a source, counted over bases."""
    pyarrow = require("pyarrow", "corpus")
    columns = {"word": [word for word, *_ in forms], "base": [base for _, base, _ in forms]}
    connection.register("forms", pyarrow.table(columns))
    # Sufficiency counts the share of the cause in full, necessity that of the effect: always the source's.
    rows: list[tuple[str, str, float]] = connection.execute(f"""
        CREATE TABLE held AS SELECT DISTINCT pair, side, base FROM occurrences JOIN forms USING (word);
        CREATE TABLE shares AS SELECT side, base, count(*) / {pairs} AS share FROM held GROUP BY side, base;
        CREATE TABLE counts AS
            SELECT source.base AS source, target.base AS target, count(*) AS pairs
            FROM held source JOIN held target USING (pair) WHERE source.side = 'source' AND target.side = 'target'
            GROUP BY ALL HAVING count(*) >= {min_pairs};
        SELECT counts.source, counts.target, pairs / {pairs}
            / (source.share * pow(target.share, {_DISCOUNT})) * pairs / (pairs + {_DOUBT}) AS strength
        FROM counts
        JOIN shares source ON source.side = 'source' AND source.base = counts.source
        JOIN shares target ON target.side = 'target' AND target.base = counts.target
        QUALIFY row_number() OVER (
            PARTITION BY counts.source ORDER BY strength DESC, counts.target
        ) <= {_MAX_EDGES}
    """).fetchall()
    return rows
