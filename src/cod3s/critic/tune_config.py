"""The options of tuning a verifier."""

from dataclasses import dataclass

from cod3s.options import check_options, option, seed_option


@dataclass(frozen=True)
class TuneConfig:
    """How a verifier is tuned."""

    layers: int = option(
        15, "How many layers of the bundle's model the verifier keeps; fewer are faster.", least=1, most=1000
    )
    rank: int = option(8, "Rank of the LoRA adapters: what the verifier adds to the bundle.", least=1, most=1024)
    epochs: int = option(3, "How often each pair is seen.", least=1, most=1000)
    learning_rate: float = option(5e-4, "The highest learning rate.", least=1e-12, most=10)
    batch_tokens: int = option(768, "Tokens per step, with padding.", least=1, most=10**9)
    evaluate_every: int = option(
        200, "Steps between validations, which also write a checkpoint.", least=1, most=10**9
    )
    seed: int = seed_option("Seed of the weights and of the order of the pairs.")

    def __post_init__(self) -> None:
        check_options(self)
