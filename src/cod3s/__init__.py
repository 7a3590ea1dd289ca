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
    from cod3s.lazy import lazy_names

    _NAMES = {
        "ask": ("DiversifyConfig", "diversify", "diversify_async", "diversify_many", "diversify_many_async"),
        "bins": ("build_bins", "open_bins"),
        "corpus": ("PrepareConfig", "prepare"),
        "decode.config": ("DecodeConfig",),
        "decode.generator": ("Generator", "load"),
        "decode.hf_two_stage": ("TwoStage",),
        "encode": ("load_encoder",),
        "errors": ("Cod3sError",),
        "records": ("Answer", "AnswerSet"),
        "selection": ("select",),
        "signatures": ("Code", "itq_code", "median_code", "random_code"),
        "signatures.signer": ("sign",),
        "tokens.vocabulary": ("SignatureTokens",),
        "train.config": ("TrainConfig",),
    }
    __getattr__ = lazy_names("cod3s", _NAMES)

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
