"""Ask any generator until it has given k answers that mean different things."""

from cod3s.asking.adapters.completions import CompletionServer
from cod3s.asking.adapters.transformers import ModelGenerator, PipelineGenerator
from cod3s.asking.coverage import Coverage
from cod3s.asking.diversified import Diversified, Tokens
from cod3s.asking.rounds import diversify, diversify_async
from cod3s.asking.strategies import STRATEGIES

__all__ = [
    "STRATEGIES",
    "CompletionServer",
    "Coverage",
    "Diversified",
    "ModelGenerator",
    "PipelineGenerator",
    "Tokens",
    "diversify",
    "diversify_async",
]
