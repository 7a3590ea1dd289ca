"""Train models on a prepared corpus."""

from typing import TYPE_CHECKING, Any

from cod3s.train.config import PRESETS, TrainConfig

if TYPE_CHECKING:
    from cod3s.train.training_run import train
else:

    def __getattr__(name: str) -> Any:
        """`train` loads on first use: the command line reads the options of every command at its start."""
        if name != "train":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from cod3s.train.training_run import train

        return train


__all__ = ["PRESETS", "TrainConfig", "train"]
