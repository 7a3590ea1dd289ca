"""The options of refining a bundle with good answers and verdicts."""

from dataclasses import dataclass

from cod3s.options import check_options, option, seed_option
from cod3s.train.config import TrainConfig


@dataclass(frozen=True)
class RefineConfig:
    """How a bundle's language model is refined."""

    first_layer: int = option(
        12, "LoRA adapts the layers from this one on: fewer are faster to train and to open.", least=0, most=1000
    )
    rank: int = option(16, "Rank of the LoRA adapters: what they add to the bundle.", least=1, most=1024)
    rivals: int = option(3, "How many rejected answers each accepted one is compared with.", least=1, most=100)
    plain: float = option(0.3, "The share of comparisons without a signature.", least=0, most=1)
    preference: float = option(1.0, "How much comparisons count beside the loss of accepted answers.", least=0)
    judging: float = option(2.0, "How much it counts to tell plausible answers from others.", least=0)
    contrasts: int = option(
        10_000, "How many good answers are also put beside a wrong one, to learn to tell them apart.", least=0
    )
    epochs: int = option(2, "How often each comparison is seen.", least=1, most=1000)
    learning_rate: float = option(3e-4, "The highest learning rate.", least=1e-12, most=10)
    batch_tokens: int = option(768, "Tokens per step, with padding.", least=1, most=10**9)
    evaluate_every: int = option(
        100, "Steps between validations, which also write a checkpoint.", least=1, most=10**9
    )
    seed: int = seed_option("Seed of the weights, the comparisons and their order.")

    def __post_init__(self) -> None:
        check_options(self)


def as_train_config(config: RefineConfig) -> TrainConfig:
    """The options that the training loop knows."""
    return TrainConfig(
        learning_rate=config.learning_rate,
        schedule="linear",
        warmup_steps=30,
        label_smoothing=0.0,
        batch_tokens=config.batch_tokens,
        epochs=config.epochs,
        patience=2,
        evaluate_every=config.evaluate_every,
        seed=config.seed,
    )
