"""Training: a prepared corpus → a run folder with checkpoints, logs and everything an export needs."""

from cod3s.train.config import PRESETS, TrainConfig
from cod3s.train.run import train

__all__ = ["PRESETS", "TrainConfig", "train"]
