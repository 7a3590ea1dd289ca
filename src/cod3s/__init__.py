"""cod3s: give it a sentence and it returns k answers that mean different things.

The public names load on first use, so that `import cod3s` stays light.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Cod3sError": "cod3s.errors",
    "load_encoder": "cod3s.encode",
    "Code": "cod3s.signatures",
    "random_code": "cod3s.signatures",
    "median_code": "cod3s.signatures",
    "itq_code": "cod3s.signatures",
    "open_bins": "cod3s.bins",
    "build_bins": "cod3s.bins",
    "sign": "cod3s.signatures.signer",
    "select": "cod3s.selection",
    "TwoStage": "cod3s.decode.own_model",
    "SignatureTokens": "cod3s.tokens.vocabulary",
    "diversify": "cod3s.asking",
    "diversify_async": "cod3s.asking",
    "DecodeConfig": "cod3s.decode.config",
    "Generator": "cod3s.decode.generator",
    "load": "cod3s.decode.generator",
}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604 - names resolve lazily below


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cod3s' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
