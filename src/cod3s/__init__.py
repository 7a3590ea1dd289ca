"""cod3s: give it a sentence and it returns k answers that mean different things.

The public names load on first use, so that `import cod3s` stays light; editors and mypy read them below.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cod3s.asking import diversify, diversify_async
    from cod3s.bins import build_bins, open_bins
    from cod3s.corpus import PrepareConfig, prepare
    from cod3s.decode.decode_config import DecodeConfig
    from cod3s.decode.generator import Generator, load
    from cod3s.decode.own_model import TwoStage
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
    _HOME = {
        "Answer": "cod3s.records",
        "AnswerSet": "cod3s.records",
        "Cod3sError": "cod3s.errors",
        "Code": "cod3s.signatures",
        "DecodeConfig": "cod3s.decode.decode_config",
        "Generator": "cod3s.decode.generator",
        "PrepareConfig": "cod3s.corpus",
        "SignatureTokens": "cod3s.tokens.vocabulary",
        "TrainConfig": "cod3s.train.config",
        "TwoStage": "cod3s.decode.own_model",
        "build_bins": "cod3s.bins",
        "diversify": "cod3s.asking",
        "diversify_async": "cod3s.asking",
        "itq_code": "cod3s.signatures",
        "load": "cod3s.decode.generator",
        "load_encoder": "cod3s.encode",
        "median_code": "cod3s.signatures",
        "open_bins": "cod3s.bins",
        "prepare": "cod3s.corpus",
        "random_code": "cod3s.signatures",
        "select": "cod3s.selection",
        "sign": "cod3s.signatures.signer",
    }

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
    "Generator",
    "PrepareConfig",
    "SignatureTokens",
    "TrainConfig",
    "TwoStage",
    "__version__",
    "build_bins",
    "diversify",
    "diversify_async",
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
