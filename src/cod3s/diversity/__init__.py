"""Any generator → k answers that mean different things, by asking it until k bins that lie apart are filled."""

from cod3s.diversity.coverage import Coverage
from cod3s.diversity.loop import diversify, diversify_async
from cod3s.diversity.pipelines import ModelGenerator, PipelineGenerator
from cod3s.diversity.result import Diversified
from cod3s.diversity.server import CompletionServer

__all__ = [
    "CompletionServer",
    "Coverage",
    "Diversified",
    "ModelGenerator",
    "PipelineGenerator",
    "diversify",
    "diversify_async",
]
