"""Evaluation: systems and data, or stored outputs, become figures, tables, plots and a page."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cod3s.evaluate.reporting import evaluate
else:

    def __getattr__(name: str) -> Any:
        """`evaluate` loads on first use: it needs libraries that an extra brings."""
        if name != "evaluate":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from cod3s.evaluate.reporting import evaluate

        return evaluate


__all__ = ["evaluate"]
