"""Select k of any candidates so that they mean different things. No model is needed."""

from cod3s.selection.choose import (
    AUTO,
    BITS,
    METHODS,
    Selected,
    Selection,
    check_method,
    default_min_hamming,
    select,
)

__all__ = ["AUTO", "BITS", "METHODS", "Selected", "Selection", "check_method", "default_min_hamming", "select"]
