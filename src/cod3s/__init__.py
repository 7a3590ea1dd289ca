"""cod3s: give it a sentence and it returns k answers that mean different things.

The public names load on first use, so that `import cod3s` stays light; editors and mypy read them below.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cod3s.ask import DiversifyConfig, diversify, diversify_async, diversify_many, diversify_many_async
    from cod3s.bins import build_bins, open_bins
    from cod3s.corpus import PrepareConfig, prepare
    from cod3s.decode.config import DecodeConfig
    from cod3s.decode.generator import Generator, load
    from cod3s.decode.hf_two_stage import TwoStage
    from cod3s.encode import load_encoder
    from cod3s.errors import Cod3sError
    from cod3s.records import Answer, AnswerSet
    from cod3s.selection import select
    from cod3s.signatures import Code, itq_code, median_code, random_code
    from cod3s.signatures.signer import sign
    from cod3s.tokens.vocabulary import SignatureTokens
    from cod3s.train.config import TrainConfig
else:
    # The same names for Python itself; a test compares the two lists.
    _NAMES = {
        "cod3s.ask": ("DiversifyConfig", "diversify", "diversify_async", "diversify_many", "diversify_many_async"),
        "cod3s.bins": ("build_bins", "open_bins"),
        "cod3s.corpus": ("PrepareConfig", "prepare"),
        "cod3s.decode.config": ("DecodeConfig",),
        "cod3s.decode.generator": ("Generator", "load"),
        "cod3s.decode.hf_two_stage": ("TwoStage",),
        "cod3s.encode": ("load_encoder",),
        "cod3s.errors": ("Cod3sError",),
        "cod3s.records": ("Answer", "AnswerSet"),
        "cod3s.selection": ("select",),
        "cod3s.signatures": ("Code", "itq_code", "median_code", "random_code"),
        "cod3s.signatures.signer": ("sign",),
        "cod3s.tokens.vocabulary": ("SignatureTokens",),
        "cod3s.train.config": ("TrainConfig",),
    }
    _HOME = {name: module for module, names in _NAMES.items() for name in names}

    def __getattr__(name):
        from importlib import import_module

        if name not in _HOME:
            raise AttributeError(f"module 'cod3s' has no attribute {name!r}")
        return getattr(import_module(_HOME[name]), name)

    def __dir__():
        return __all__


__all__ = [
    "Answer",
    "AnswerSet",
    "Cod3sError",
    "Code",
    "DecodeConfig",
    "DiversifyConfig",
    "Generator",
    "PrepareConfig",
    "SignatureTokens",
    "TrainConfig",
    "TwoStage",
    "__version__",
    "build_bins",
    "diversify",
    "diversify_async",
    "diversify_many",
    "diversify_many_async",
    "itq_code",
    "load",
    "load_encoder",
    "median_code",
    "open_bins",
    "prepare",
    "random_code",
    "select",
    "sign",
]
