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
    _NAMES = {
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
    }
    _HOME = {name: module for module, names in _NAMES.items() for name in names}

    def __getattr__(name):
        from importlib import import_module

        if name not in _HOME:
            raise AttributeError(f"module 'cod3s.ask' has no attribute {name!r}")
        return getattr(import_module(f"cod3s.ask.{_HOME[name]}"), name)


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
