"""Correlate signature distances with human similarity scores, as in tables 1 and 6 of the paper."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.encode import Encoder, Vectors
from cod3s.errors import FileFormatError, SentenceError, UsageError, require
from cod3s.io.disk import open_text, replaced_file
from cod3s.io.tables import MAX_FIELD
from cod3s.options import find_name
from cod3s.signatures import CODES, SEED, Code, hamming, itq_code, median_code, pack, random_code
from cod3s.text import clean


@dataclass(frozen=True)
class ScoredPair:
    """Two sentences and how similar people judged them, from 0 to 5."""

    a: str
    b: str
    score: float


@dataclass(frozen=True)
class StsData:
    """The pairs of a file, and the lines that were not pairs: (line number, reason)."""

    pairs: tuple[ScoredPair, ...]
    rejected: tuple[tuple[int, str], ...]

    @property
    def distinct_scores(self) -> int:
        """The number of different scores; pairs with equal scores share their mean rank."""
        return len({pair.score for pair in self.pairs})


@dataclass(frozen=True)
class StsRow:
    """Spearman's rho of a code: the mean over seeds and their sample standard deviation.

    `values` is the number of different estimates (mean over seeds): few bits mean many ties.
    """

    encoder: str
    code: str  # "cosine" for the full vectors
    bits: int | None
    rho: float
    sd: float
    values: float


def read_sts(path: Path) -> StsData:
    """STSbenchmark in its tab-separated release form, or as comma-separated sentence, sentence, score."""
    pairs: list[ScoredPair] = []
    rejected: list[tuple[int, str]] = []
    csv.field_size_limit(MAX_FIELD)
    with open_text(path) as stream:
        first = stream.readline()
        lines = chain([first], stream)
        tabs = first.count("\t") >= 6
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(lines)
        while True:
            try:
                if (row := next(rows, None)) is None:
                    break
                if any(cell.strip() for cell in row):
                    pairs.append(_scored_pair(row[4:7] if tabs else [*row[2:3], *row[:2]]))
            except (ValueError, csv.Error, SentenceError) as error:
                rejected.append((rows.line_num, str(error)))
    if len(pairs) < 2:
        raise FileFormatError(
            f"{path} has {len(pairs)} scored pairs, but at least 2 are needed",
            hint="the tab-separated release has the score in column 5; the comma form is sentence,sentence,score",
        )
    return StsData(tuple(pairs), tuple(rejected))


def _scored_pair(cells: list[str]) -> ScoredPair:
    if len(cells) < 3 or not cells[1].strip() or not cells[2].strip():
        raise ValueError("no score and two sentences")
    try:
        score = float(cells[0])
    except ValueError:
        raise ValueError(f"{cells[0]!r} is not a score") from None
    if not np.isfinite(score):
        raise ValueError(f"{cells[0]!r} is not a score")
    return ScoredPair(clean(cells[1]), clean(cells[2]), score)


def sts_rows(
    data: StsData,
    encoder: Encoder,
    *,
    bits: Sequence[int],
    codes: Sequence[str] = ("random",),
    seeds: int = 5,
    first_seed: int = SEED,
    fit: Sequence[str] | None = None,
) -> list[StsRow]:
    """The encoder's full cosine, then every code at every length, over `seeds` seeds from `first_seed` on.

    Learned codes are fitted on `fit`, or, without it, on the sentences of `data` itself (never on scores).
    """
    texts = sorted({text for pair in data.pairs for text in (pair.a, pair.b)})
    row_of = {text: row for row, text in enumerate(texts)}
    vectors = encoder.encode(texts)
    left = np.array([row_of[pair.a] for pair in data.pairs])
    right = np.array([row_of[pair.b] for pair in data.pairs])
    gold = np.array([pair.score for pair in data.pairs])
    cosine = np.einsum("nd,nd->n", vectors[left], vectors[right])
    rows = [StsRow(encoder.id, "cosine", None, spearman(cosine, gold), 0.0, len(np.unique(cosine)))]
    fitted = encoder.encode(list(fit)) if fit and set(codes) - {"random"} else vectors
    for kind in codes:
        codes_by_seed = [_code_maker(kind, fitted, max(bits), first_seed + number) for number in range(seeds)]
        for length in sorted(bits):
            signatures = [pack(make_code(length).sign(vectors)) for make_code in codes_by_seed]
            estimates = [-hamming(packed[left], packed[right]) for packed in signatures]
            rhos = np.array([spearman(estimate, gold) for estimate in estimates])
            spread = float(rhos.std(ddof=1)) if seeds > 1 else 0.0
            values = float(np.mean([len(np.unique(estimate)) for estimate in estimates]))
            rows.append(StsRow(encoder.id, kind, length, float(rhos.mean()), spread, values))
    return rows


def _code_maker(kind: str, vectors: Vectors, longest: int, seed: int) -> Callable[[int], Code]:
    """A function from a length to the code; random and median codes are drawn once and cut."""
    find_name("code", kind, CODES)
    if kind == "itq":
        return lambda bits: itq_code(vectors, bits, seed)
    if kind == "median":
        return median_code(vectors, longest, seed).prefix
    return random_code(longest, vectors.shape[1], seed).prefix


def spearman(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> float:
    """Spearman's rho, where ties share their mean rank; 0 if all values on a side are equal."""
    if len(np.unique(a)) < 2 or len(np.unique(b)) < 2:
        return 0.0
    return float(require("scipy.stats", "evaluate").spearmanr(a, b).statistic)


def plot_sts(rows: Sequence[StsRow], path: Path, caption: str) -> None:
    """A plot of rho against bits: a line per encoder and code with its spread, dashes for the full cosine."""
    kind_of_image = path.suffix.lower()[1:] or "png"
    if kind_of_image not in ("png", "pdf", "svg"):
        raise UsageError(f"a plot cannot be written as {path.suffix}", hint="name a .png, .pdf or .svg file")
    figure = require("matplotlib.figure", "evaluate").Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    encoders = list(dict.fromkeys(row.encoder for row in rows))
    styles = {"random": "-o", "median": ":s", "itq": "-.^"}
    for encoder, code in dict.fromkeys((row.encoder, row.code) for row in rows):
        points = [row for row in rows if (row.encoder, row.code) == (encoder, code)]
        style = {"color": f"C{encoders.index(encoder)}", "label": f"{encoder}, {code}"}
        bits, rhos, spreads = zip(*((row.bits, row.rho, row.sd) for row in points), strict=True)
        if code in styles:
            axes.errorbar(bits, rhos, yerr=spreads, fmt=styles[code], capsize=3, **style)
        else:
            axes.axhline(rhos[0], linestyle="--", linewidth=1, **style)
    lengths = sorted({row.bits for row in rows if row.bits})
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [str(length) for length in lengths])
    axes.set(xlabel="bits", ylabel="Spearman's rho with human scores")
    axes.set_title(caption, fontsize=8)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    with replaced_file(path) as partial:
        figure.savefig(partial, format=kind_of_image, dpi=120)
