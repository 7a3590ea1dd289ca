"""Evaluation: figures, tables, plots and a report for systems of a bundle, or for any stored outputs.

from cod3s.evaluate import EvaluateConfig, evaluate
summary = evaluate("copa-dev.xml", bundle="bundle/", output="report/", config=EvaluateConfig(limit=100))
"""

from typing import TYPE_CHECKING, Any

from cod3s.evaluate.config import EvaluateConfig

if TYPE_CHECKING:
    from cod3s.evaluate.evaluation import evaluate
    from cod3s.evaluate.summary import Summary

__all__ = ["EvaluateConfig", "Summary", "evaluate"]


def __getattr__(name: str) -> Any:
    """Load the others on first use, so that importing a light module of this package stays fast."""
    if name not in __all__:
        raise AttributeError(f"module 'cod3s.evaluate' has no attribute {name!r}")
    from cod3s.evaluate import evaluation

    return getattr(evaluation, name)
