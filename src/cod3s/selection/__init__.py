"""Select k candidates that mean different things from any list. No model is needed."""

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
