"""Harvest cause and effect pairs from raw text."""

from cod3s.harvest.clauses import Limits
from cod3s.harvest.pipeline import Summary, harvest

__all__ = ["Limits", "Summary", "harvest"]
