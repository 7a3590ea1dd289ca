"""Bins: all sentences that share a signature; their counts, medoids, samples and statistics."""

from cod3s.bins.atlas import Atlas, MappedBin, NearBin
from cod3s.bins.build import build_bins
from cod3s.bins.statistics import BinRow, BinStatistics
from cod3s.bins.store import BinsFacts, BinsFile, open_bins

__all__ = [
    "Atlas",
    "BinRow",
    "BinStatistics",
    "BinsFacts",
    "BinsFile",
    "MappedBin",
    "NearBin",
    "build_bins",
    "open_bins",
]
