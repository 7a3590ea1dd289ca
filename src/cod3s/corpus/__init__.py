"""Corpora: from files of pairs to sifted, split and signed training shards."""

from typing import TYPE_CHECKING, Any

from cod3s.corpus.prepare_config import PrepareConfig

if TYPE_CHECKING:
    from cod3s.corpus.preparation import prepare
else:

    def __getattr__(name: str) -> Any:
        """`prepare` loads on first use: it needs libraries that an extra brings."""
        if name != "prepare":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from cod3s.corpus.preparation import prepare

        return prepare


__all__ = ["PrepareConfig", "prepare"]
