"""Any generator → k answers that mean different things, by asking it until k bins that lie apart are filled."""

from cod3s.asking.adapters.completions import CompletionServer
from cod3s.asking.adapters.transformers import ModelGenerator, PipelineGenerator
from cod3s.asking.coverage import Coverage
from cod3s.asking.diversify import diversify, diversify_async
from cod3s.asking.result import Diversified

__all__ = [
    "CompletionServer",
    "Coverage",
    "Diversified",
    "ModelGenerator",
    "PipelineGenerator",
    "diversify",
    "diversify_async",
]
