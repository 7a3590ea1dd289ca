"""Select k candidates that mean different things from any list, or drop near duplicates. No model is needed."""

from cod3s.selection.choose import select
from cod3s.selection.config import AUTO, BITS, METHODS, SelectConfig, check_method, default_min_hamming
from cod3s.selection.result import Deduplicated, Leak, Selected, Selection, TableSelection

__all__ = [
    "AUTO",
    "BITS",
    "METHODS",
    "Deduplicated",
    "Leak",
    "SelectConfig",
    "Selected",
    "Selection",
    "TableSelection",
    "check_method",
    "default_min_hamming",
    "select",
]
