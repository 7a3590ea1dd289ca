"""Decide which sources are held out for dev and test.

A source's unit (its text, or the group it was given) is hashed to a number from 0 to 2^64: a fixed stretch of this
line is dev, another is test, and the rest is train. So all targets of a source are in one split, and adding data
moves nothing. A small corpus has too few sources on these stretches: it gets wider ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.corpus.manifest import MIN_UNITS
from cod3s.corpus.prepare_config import PrepareConfig

SHARE = 0.02
"""The share of the sources that dev may come from, and test."""
MAX_PAIRS = 4000
"""The maximum number of pairs in dev, and in test."""
_SMALL = 200_000  # pairs; the stretches of a larger corpus hold thousands
_END = 1 << 64
_Numbers = npt.NDArray[np.uint64]
_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HeldOut:
    """Where dev and test end on the line; `large` units stay in train. A split of the row's own comes first."""

    dev_end: int = 0
    test_end: int = 0
    large: tuple[int, ...] = ()
    has_dev: bool = True
    has_test: bool = True
    has_own_splits: bool = False  # whether rows name their splits
    few_sources: bool = False  # so few that none is held out

    def split_of(self) -> str:
        """An SQL expression for the split of a row."""
        cases = [f"WHEN unit IN ({', '.join(f'{unit}::UBIGINT' for unit in self.large)}) THEN 'train'"] * bool(
            self.large
        )
        cases += [f"WHEN unit < {self.dev_end}::UBIGINT THEN '{'dev' if self.has_dev else 'train'}'"]
        cases += [f"WHEN unit < {self.test_end}::UBIGINT THEN '{'test' if self.has_test else 'train'}'"]
        return f"CASE WHEN split <> '' THEN split {' '.join(cases)} ELSE 'train' END"


def hold_out(connection: Any, tables: Sequence[str], config: PrepareConfig) -> HeldOut:
    """Choose the stretches of the line for the rows of all relations together."""
    rows = " UNION ALL ".join(f"SELECT unit, split FROM {table}" for table in tables)
    [(named, open_rows)] = connection.execute(
        f"SELECT count(*) FILTER (split <> ''), count(*) FILTER (split = '') FROM ({rows})"
    ).fetchall()
    if not open_rows or (config.dev == 0 and config.test == 0):
        return HeldOut(has_own_splits=bool(named))
    share = SHARE if config.held_out is None else config.held_out
    dev_end, test_end, large = int(share * _END), int(2 * share * _END), ()
    if open_rows <= _SMALL:
        query = f"SELECT unit, count(*) AS pairs FROM ({rows}) WHERE split = '' GROUP BY unit ORDER BY unit"
        columns = connection.sql(query).fetchnumpy()
        units, pairs = columns["unit"].astype(np.uint64), columns["pairs"].astype(np.int64)
        if len(units) < MIN_UNITS:
            return HeldOut(has_own_splits=bool(named), few_sources=True)
        if config.held_out is None:
            too_large = pairs * MIN_UNITS > pairs.sum()
            large = tuple(units[too_large].tolist())
            units, pairs = units[~too_large], pairs[~too_large]
            dev, test = (_least(most, open_rows, len(tables)) for most in (config.dev, config.test))
            dev_end = _end_of(units, pairs, 0, dev_end, dev)
            test_end = _end_of(units, pairs, dev_end, dev_end + int(share * _END), test)
        elif units[-1] < test_end:  # a share that the user chose is a fixed stretch, as of a large corpus
            return HeldOut(has_own_splits=bool(named), few_sources=True)
    return HeldOut(dev_end, min(test_end, _END - 1), large, config.dev != 0, config.test != 0, bool(named))


def _least(most: int | None, pairs: int, relations: int) -> int:
    """How many pairs of all relations a split of a small corpus should have."""
    return min(100 * relations, pairs // 10) if most is None else min(most * relations, pairs // 4)


def _end_of(units: _Numbers, pairs: _Counts, start: int, end: int, least: int) -> int:
    """The end of a stretch that reaches to `end`, or further if it would have fewer than `least` pairs.

    It leaves at least half of the units that follow `start` to the rest.
    """
    first, last = (int(np.searchsorted(units, np.uint64(min(key, _END - 1)))) for key in (start, end))
    if least:
        last = max(last, first + 1 + int(np.searchsorted(np.cumsum(pairs[first:]), least)))
    last = min(last, first + (len(units) - first) // 2)
    return int(units[last]) if last < len(units) else end
