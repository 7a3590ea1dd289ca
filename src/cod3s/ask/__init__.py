"""Ask any generator until it has given k answers that mean different things."""

from cod3s.ask.adapters.completions import CompletionServer
from cod3s.ask.adapters.transformers import ModelGenerator, PipelineGenerator
from cod3s.ask.coverage import Coverage
from cod3s.ask.diversified import Diversified, Tokens
from cod3s.ask.rounds import diversify, diversify_async
from cod3s.ask.strategies import STRATEGIES

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
