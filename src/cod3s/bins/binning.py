"""Build a bins file from a stream of sentences and vectors, out of core.

Rows are first written to files by the leading bits of their signature; each file is small enough to be grouped
in memory. A million sentences of 384 dimensions need well under 2 GiB.
"""

import heapq
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.bins.file import BinsFacts, write_bins
from cod3s.bins.medoids import first_best, group_medoids, group_sums, scores_against
from cod3s.encode import Vectors
from cod3s.errors import BinsError
from cod3s.options import SEED
from cod3s.records import Bin
from cod3s.signatures import Bits, Code, pack, to_text, unpack
from cod3s.text import clean

TREE_DEPTH = 12
_SPILL_BITS = 8


def build_bins(
    path: Path,
    stream: Iterable[tuple[Sequence[str], Vectors]],
    code: Code,
    encoder: str,
    samples: int = 5,
    seed: int = SEED,
) -> BinsFacts:
    """Write the bins file of all (sentences, unit vectors) in `stream`; `seed` chooses the samples.

    A sentence counts as often as it occurs, but a bin's samples are distinct. The result does not depend on the
    size of the blocks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        spill = _Spill(Path(folder), code)
        for sentences, vectors in stream:
            spill.add(sentences, vectors)
        if not spill.count:
            raise BinsError("there are no sentences to put into bins")
        facts = BinsFacts(
            encoder=encoder,
            code=code.kind,
            bits=code.bits,
            seed=code.seed,
            sentences=spill.count,
            tree_depth=min(TREE_DEPTH, code.bits),
        )
        write_bins(path, facts, _rows(spill, samples, seed))
    return facts


def _rows(spill: "_Spill", samples: int, seed: int) -> Iterator[Bin]:
    """The bins, block by block, then the inner nodes, whose medoids are known after the last block."""
    tree = _Tree(spill.node_sums)
    for block in spill.blocks():
        tree.see(block)
        yield from _leaves(block, samples, seed)
    yield from tree.nodes()


class _Block:
    """The rows of a spill file, sorted by signature; rows with equal signatures keep their order."""

    def __init__(self, sentences: list[str], packed: npt.NDArray[np.uint8], vectors: Vectors, bits: int) -> None:
        order = np.lexsort(packed.T[::-1])
        self.packed, self.vectors = packed[order], vectors[order]
        self.sentences = [sentences[row] for row in order]
        self.signed: Bits = unpack(self.packed, bits)

    def starts(self, depth: int) -> npt.NDArray[np.intp]:
        """Where each run of rows with the same first `depth` bits begins."""
        changed = (self.signed[1:, :depth] != self.signed[:-1, :depth]).any(axis=1)
        return np.concatenate([[0], np.flatnonzero(changed) + 1])


class _Spill:
    """Rows on disk by the leading bits of their signature, and the vector sums of the tree's lowest nodes."""

    def __init__(self, folder: Path, code: Code) -> None:
        self.count = 0
        self._folder, self._code = folder, code
        self._spill_bits = min(_SPILL_BITS, code.bits)
        depth = min(TREE_DEPTH, code.bits - 1)
        self.node_sums = np.zeros((2**depth, code.dim))  # (nodes at `depth`, dim)
        self._node_depth = depth
        width = -(-code.bits // 8)
        self._row = np.dtype([("signature", np.uint8, (width,)), ("vector", np.float32, (code.dim,))])

    def add(self, sentences: Sequence[str], vectors: Vectors) -> None:
        if not len(sentences):
            return
        signed = self._code.sign(vectors)
        self._add_to_nodes(signed, vectors)
        rows = np.empty(len(sentences), self._row)
        rows["signature"], rows["vector"] = pack(signed), vectors
        file_number = _leading_number(signed, self._spill_bits)
        for number in np.unique(file_number):
            chosen = np.flatnonzero(file_number == number).tolist()
            with (self._folder / f"{number:05d}.rows").open("ab") as stream:
                stream.write(rows[chosen].tobytes())
            with (self._folder / f"{number:05d}.txt").open("a", encoding="utf-8") as lines:
                lines.writelines(clean(sentences[row]) + "\n" for row in chosen)
        self.count += len(sentences)

    def blocks(self) -> Iterator[_Block]:
        """One block per spill file, in order of signature."""
        for path in sorted(self._folder.glob("*.rows")):
            rows = np.fromfile(path, self._row)
            sentences = path.with_suffix(".txt").read_text(encoding="utf-8").split("\n")[:-1]
            yield _Block(sentences, rows["signature"], rows["vector"], self._code.bits)

    def _add_to_nodes(self, signed: Bits, vectors: Vectors) -> None:
        node = _leading_number(signed, self._node_depth)
        order = np.argsort(node, kind="stable")
        numbers, starts = np.unique(node[order], return_index=True)
        self.node_sums[numbers] += group_sums(vectors[order], starts)


class _Tree:
    """The inner nodes by depth: the first pass summed their vectors, the second pass finds their medoids."""

    def __init__(self, lowest: npt.NDArray[np.float64]) -> None:
        self._sums = [lowest]
        while len(self._sums[0]) > 1:
            self._sums.insert(0, self._sums[0][0::2] + self._sums[0][1::2])
        self._best: list[dict[int, tuple[float, str]]] = [{} for _ in self._sums]
        self._count = [np.zeros(len(sums), np.int64) for sums in self._sums]

    def see(self, block: _Block) -> None:
        for depth, sums in enumerate(self._sums):
            node = _leading_number(block.signed, depth)
            self._count[depth] += np.bincount(node, minlength=len(sums))
            starts = block.starts(depth)
            scores = scores_against(block.vectors, node, sums)
            for row in first_best(scores, starts):
                number = int(node[row])
                if scores[row] > self._best[depth].get(number, (-np.inf, ""))[0]:
                    self._best[depth][number] = float(scores[row]), block.sentences[row]

    def nodes(self) -> Iterator[Bin]:
        """Every populated inner node."""
        for depth, best in enumerate(self._best):
            for number, (_, medoid) in best.items():
                signature = f"{number:0{depth}b}" if depth else ""
                yield Bin(signature, int(self._count[depth][number]), medoid, ())


def _leaves(block: _Block, samples: int, seed: int) -> Iterator[Bin]:
    starts = block.starts(block.signed.shape[1])
    ends = np.append(starts[1:], len(block.vectors))
    medoids = group_medoids(block.vectors, starts)
    signatures = to_text(block.signed[starts])
    for signature, start, end, medoid in zip(signatures, starts, ends, medoids, strict=True):
        chosen = choose_samples(block.sentences[start:end], samples, seed)
        yield Bin(signature, int(end - start), block.sentences[medoid], chosen)


def choose_samples(sentences: Sequence[str], number: int, seed: int) -> tuple[str, ...]:
    """At most `number` distinct sentences: those with the smallest seeded hash, whatever their order."""
    key = seed.to_bytes(8, "little", signed=True)

    def rank(sentence: str) -> bytes:
        return blake2b(sentence.encode(), digest_size=8, key=key).digest()

    return tuple(heapq.nsmallest(number, set(sentences), key=rank))


def _leading_number(signed: Bits, depth: int) -> npt.NDArray[np.intp]:
    """The first `depth` bits of each row read as a binary number."""
    weights = 1 << np.arange(depth - 1, -1, -1, dtype=np.intp)
    return signed[:, :depth] @ weights
