"""Any list of candidates → k of them that mean different things. No model is needed."""

from cod3s.selection.choose import BITS, METHODS, check_method, default_min_hamming, select
from cod3s.selection.result import Selected, Selection

__all__ = ["BITS", "METHODS", "Selected", "Selection", "check_method", "default_min_hamming", "select"]
