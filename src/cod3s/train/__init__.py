"""Train models on a prepared corpus."""

from typing import TYPE_CHECKING

from cod3s.train.config import PRESETS, TrainConfig

if TYPE_CHECKING:
    from cod3s.train.training_run import train
else:
    from cod3s.lazy import lazy_names

    __getattr__ = lazy_names(
        "cod3s.train", {"training_run": ("train",)}
    )  # the command line reads the options of every command at its start


__all__ = ["PRESETS", "TrainConfig", "train"]
