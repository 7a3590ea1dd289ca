"""Ask any generator until it has given k answers that mean different things.

The names load on first use, so that the command line, which reads the options, starts without NumPy.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cod3s.ask.config import STRATEGIES, DiversifyConfig
    from cod3s.ask.coverage import Coverage
    from cod3s.ask.diversified import Candidate, Diversified, Measured
    from cod3s.ask.limits import Meter
    from cod3s.ask.local_models import ModelGenerator, PipelineGenerator
    from cod3s.ask.quality import Judge
    from cod3s.ask.replies import Reply, Tokens
    from cod3s.ask.server import CompletionServer, ServerError
    from cod3s.ask.session import Exchange, diversify, diversify_async
    from cod3s.ask.tables import ManyDiversified, RowAnswers, diversify_many, diversify_many_async
else:
    # The same names for Python itself; a test compares the two lists.
    from cod3s.lazy import lazy_names

    __getattr__ = lazy_names(
        "cod3s.ask",
        {
            "config": ("STRATEGIES", "DiversifyConfig"),
            "coverage": ("Coverage",),
            "diversified": ("Candidate", "Diversified", "Measured"),
            "limits": ("Meter",),
            "local_models": ("ModelGenerator", "PipelineGenerator"),
            "quality": ("Judge",),
            "replies": ("Reply", "Tokens"),
            "server": ("CompletionServer", "ServerError"),
            "session": ("Exchange", "diversify", "diversify_async"),
            "tables": ("ManyDiversified", "RowAnswers", "diversify_many", "diversify_many_async"),
        },
    )


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
