"""Bins: all sentences that share a signature; their counts, medoids, samples and statistics."""

from cod3s.bins.binning import build_bins
from cod3s.bins.file import BinsFacts, BinsFile, open_bins
from cod3s.bins.map import BinMap, MappedBin, NearBin
from cod3s.bins.statistics import BinStatistics

__all__ = [
    "BinMap",
    "BinStatistics",
    "BinsFacts",
    "BinsFile",
    "MappedBin",
    "NearBin",
    "build_bins",
    "open_bins",
]
