"""Select k candidates that mean different things from any list, or drop near duplicates. No model is needed.

The names load on first use, so that the command line, which reads the options, starts without NumPy.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cod3s.selection.choose import select
    from cod3s.selection.config import AUTO, BITS, METHODS, SelectConfig, check_method, default_min_hamming
    from cod3s.selection.result import Deduplicated, Leak, Selected, Selection, TableSelection
else:
    from cod3s.lazy import lazy_names

    __getattr__ = lazy_names(
        "cod3s.selection",
        {
            "choose": ("select",),
            "config": ("AUTO", "BITS", "METHODS", "SelectConfig", "check_method", "default_min_hamming"),
            "result": ("Deduplicated", "Leak", "Selected", "Selection", "TableSelection"),
        },
    )


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
