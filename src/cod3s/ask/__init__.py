"""Ask any generator until it has given k answers that mean different things."""

from cod3s.ask.config import STRATEGIES, DiversifyConfig
from cod3s.ask.coverage import Coverage
from cod3s.ask.diversified import Candidate, Diversified, Measured
from cod3s.ask.limits import Meter
from cod3s.ask.own_models import ModelGenerator, PipelineGenerator
from cod3s.ask.quality import Judge
from cod3s.ask.replies import Reply, Tokens
from cod3s.ask.server import CompletionServer, ServerError
from cod3s.ask.session import Exchange, diversify, diversify_async
from cod3s.ask.tables import ManyDiversified, RowAnswers, diversify_many, diversify_many_async

__all__ = [
    "STRATEGIES",
    "Candidate",
    "CompletionServer",
    "Coverage",
    "Diversified",
    "DiversifyConfig",
    "Exchange",
    "Judge",
    "ManyDiversified",
    "Measured",
    "Meter",
    "ModelGenerator",
    "PipelineGenerator",
    "Reply",
    "RowAnswers",
    "ServerError",
    "Tokens",
    "diversify",
    "diversify_async",
    "diversify_many",
    "diversify_many_async",
]
