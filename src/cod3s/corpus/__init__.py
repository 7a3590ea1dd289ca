"""Corpora: from files of pairs to sifted, split and signed training shards."""

from typing import TYPE_CHECKING

from cod3s.corpus.prepare_config import PrepareConfig

if TYPE_CHECKING:
    from cod3s.corpus.preparation import prepare
else:
    from cod3s.lazy import lazy_names

    __getattr__ = lazy_names(
        "cod3s.corpus", {"preparation": ("prepare",)}
    )  # `prepare` needs libraries that an extra brings


__all__ = ["PrepareConfig", "prepare"]
