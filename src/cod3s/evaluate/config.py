"""The options of an evaluation: what each does, its default and its bounds."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from cod3s.decode.config import DEFAULT, MAX_K
from cod3s.errors import UsageError
from cod3s.options import check_options, option, seed_option, with_values

BUNDLES_OWN = "bundle"
"""The encoder that made a bundle's signatures, as the option `encoders` names it."""
SIZES = (3, 10)
"""The paper's set sizes."""

_measures = partial(option, panel="What measures the answers")


def _tried(values: tuple[float, ...], help: str) -> Any:
    more = "The base value is always included; `-` leaves this option unchanged."
    return option(values, f"{help} {more}", panel="Values to try, separated by commas")


@dataclass(frozen=True)
class EvaluateConfig:
    """Everything that decides the figures, apart from the data and the bundle or the outputs."""

    systems: tuple[str, ...] = option(
        (),
        "The systems that answer, separated by commas; by default cod3s, s2s, s2s-rs and cod3s-mmi-mmi; `all` "
        "stands for cod3s and the rows of the paper's tables 2 and 5.",
    )
    preset: str = option(
        "",
        "The options of all systems: paper, quick or default. If not given, cod3s has those of default, the "
        "others those of paper. With quick, the others have narrower beams and take much less time.",
    )
    limit: int | None = option(
        None, "Use only the first sources of each relation, and their questions; all if not given.", least=1
    )
    relation: str = option("", "The relation of sources whose file does not name it.")
    max_minutes: float | None = option(
        None,
        "Stop answering in time for the whole command, report on the sources answered so far, and say so; the "
        "same command then continues.",
        least=0.01,
    )
    sets: tuple[int, ...] = _measures(SIZES, "Sizes of the scored sets, separated by commas.")
    encoders: tuple[str, ...] = _measures(
        (BUNDLES_OWN, "static"),
        "Encoders that measure diversity and relevance, separated by commas: `bundle` is the one that made the "
        "signatures (without a bundle: fast), others had no part in them. The first one measures everything, the "
        "others repeat distances, distinct counts and relevance.",
    )
    grader: str = _measures(
        "",
        "Another bundle, whose models and critic say how plausible the answers are; by default those of the "
        "bundle that wrote them, with a mark where they also chose them.",
    )
    seed: int = seed_option("Seed for sampling and for the bootstrap.")

    def __post_init__(self) -> None:
        check_options(self)
        if not self.sets or min(self.sets) < 1:
            raise UsageError(f"a set of {min(self.sets, default=0)} answers cannot be scored", hint="--sets 3,10")
        if not self.encoders:
            raise UsageError("no encoder was named to measure diversity", hint="--encoders static")

    def with_values(self, **values: object) -> "EvaluateConfig":
        """A copy with some values changed; an unknown name is an error that suggests the nearest."""
        return with_values(self, "evaluation", values)


@dataclass(frozen=True)
class SweepConfig:
    """The values that a sweep tries, and what else decides its figures."""

    # The values that the paper tried for t, lambda_s and lambda_y, or orders of magnitude where it says so.
    min_hamming: tuple[int, ...] = _tried((0, 1, 2, 3, 4, 5, 6), "The Hamming thresholds t.")
    signature_weight: tuple[float, ...] = _tried(
        (0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0), "Weights of MMI for signatures, lambda_s."
    )
    sentence_weight: tuple[float, ...] = _tried(
        (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0), "Weights of MMI for sentences, lambda_y."
    )
    k: int = option(DEFAULT.k, "Answers per source.", least=2, most=MAX_K, flags=("-k",))
    limit: int | None = option(20, "Use only the first sources of each relation.", least=1)
    relation: str = option("", "The relation of sources whose file does not name it.")
    encoders: tuple[str, ...] = option(
        (BUNDLES_OWN,), "The encoder that measures diversity and relevance: `bundle` is that of the first bundle."
    )
    preset: str = option("paper", "The other options: paper, quick or default.")
    max_minutes: float | None = option(
        None,
        "Stop answering in time for the whole command, and report on the sources answered so far.",
        least=0.01,
    )
    seed: int = seed_option("Seed for sampling and for the bootstrap.")

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def axes(self) -> dict[str, tuple[int, ...] | tuple[float, ...]]:
        """The values to try, by option of decoding."""
        names = ("min_hamming", "signature_weight", "sentence_weight")
        return {name: values for name in names if (values := getattr(self, name))}
