"""Evaluation: figures, tables, plots and a report for systems of a bundle, or for any stored outputs.

from cod3s.evaluate import EvaluateConfig, evaluate
summary = evaluate("copa-dev.xml", bundle="bundle/", output="report/", config=EvaluateConfig(limit=100))
"""

from typing import TYPE_CHECKING

from cod3s.evaluate.config import EvaluateConfig

if TYPE_CHECKING:
    from cod3s.evaluate.evaluation import evaluate
    from cod3s.evaluate.summary import Summary
else:
    from cod3s.lazy import lazy_names

    __getattr__ = lazy_names("cod3s.evaluate", {"evaluation": ("evaluate",), "summary": ("Summary",)})

__all__ = ["EvaluateConfig", "Summary", "evaluate"]
