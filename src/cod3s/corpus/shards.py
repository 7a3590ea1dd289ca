"""The third step of `prepare`: sign a shard, and keep the vectors of its targets if bins are wanted.

Both sides are signed: a target's signature is what a model is asked to infer, a source's what the `inverse` role
of the other relation starts from (appendix B: a model learns from pairs worded in its direction of inference).

Each shard is signed by itself, so this step runs anywhere in parallel and resumes shard by shard.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cod3s.corpus.manifest import FileFacts, file_facts
from cod3s.encode import Vectors, load_encoder
from cod3s.io.disk import read_json, replaced_file, write_json
from cod3s.signatures import Code
from cod3s.signatures.signer import Signer, encode_sentences

NO_ENCODER = "none"
"""The name of the encoder if pairs are filtered and split, but not signed."""

_READ_ROWS = 8192


@dataclass(frozen=True)
class ShardTask:
    """The files that a shard is made from and written to."""

    name: str
    unsigned: Path
    signed: Path
    facts: Path
    vectors: Path | None  # of the targets, if they are needed for bins

    def done(self) -> FileFacts | None:
        """The facts of the finished shard, or None while there is work to do."""
        return FileFacts(**read_json(self.facts)) if self.facts.exists() else None


class ShardWriter:
    """Writes signed shards; the encoder is loaded once. Without a code the shards stay unsigned."""

    def __init__(self, encoder: str, code: Code | None) -> None:
        self._signer = Signer(load_encoder(encoder), code) if code else None

    def __call__(self, task: ShardTask) -> None:
        table = pq.read_table(task.unsigned)
        if self._signer is not None:
            table = _signed(self._signer, table, task)
        with replaced_file(task.signed) as partial:
            pq.write_table(table, partial, compression="zstd")
        write_json(task.facts, asdict(file_facts(task.signed, f"{task.name}.parquet", len(table))))


def _signed(signer: Signer, table: pa.Table, task: ShardTask) -> pa.Table:
    """The table with `signature` (the target's) and `source_signature`: strings of 0 and 1, in token order."""
    targets, sources = (table[side].to_pylist() for side in ("target", "source"))
    rows = {text: row for row, text in enumerate(dict.fromkeys(targets))}  # sentences repeat: each is signed once
    signatures: dict[str, str] = {}
    blocks = []
    for block, vectors in encode_sentences(signer.encoder, rows):
        signatures |= zip(block, signer.signatures_of(vectors), strict=True)
        blocks.append(vectors)
    if task.vectors:
        with replaced_file(task.vectors) as partial:
            np.concatenate(blocks)[[rows[text] for text in targets]].tofile(partial)
    blocks.clear()
    unsigned = dict.fromkeys(text for text in sources if text not in signatures)
    for block, vectors in encode_sentences(signer.encoder, unsigned):
        signatures |= zip(block, signer.signatures_of(vectors), strict=True)
    column = table.schema.get_field_index("target") + 1
    for name, side in (("source_signature", sources), ("signature", targets)):
        table = table.add_column(column, name, pa.array([signatures[text] for text in side]))
    return table


def read_vectors(tasks: list[ShardTask], dim: int) -> Iterator[tuple[list[str], Vectors]]:
    """The targets of signed shards with their vectors, a block at a time."""
    for task in tasks:
        assert task.vectors is not None
        with pq.ParquetFile(task.signed) as file, task.vectors.open("rb") as stream:
            for batch in file.iter_batches(_READ_ROWS, columns=["target"]):
                data = stream.read(4 * dim * len(batch))
                yield batch["target"].to_pylist(), np.frombuffer(data, np.float32).reshape(-1, dim)
