"""The options of decoding as one value: the defaults, the paper's, and checks that they make sense."""

from dataclasses import dataclass, fields, replace
from numbers import Integral

from cod3s.errors import UsageError, did_you_mean
from cod3s.seeds import check_seed

CHOICES = {
    "signature_search": ("beam", "exact"),
    "rerank_signatures": ("auto", "mmi", "prior", "none"),
    "apart": ("relax", "refill", "strict"),
    "search": ("beam", "sample"),
    "rerank_sentences": ("auto", "mmi", "none"),
    "normalise": ("text", "original"),
    "faithful": ("auto", "weigh", "rerank", "filter", "none"),
}
_AT_LEAST_ONE = (
    "k",
    "signature_beam",
    "beam",
    "samples",
    "top_k",
    "max_tokens",
    "per_bin",
    "baseline_beam",
    "baseline_top_k",
)
ONE_STAGE = (
    "k",
    "search",
    "baseline_beam",
    "baseline_top_k",
    "diversity_penalty",
    "temperature",
    "max_tokens",
    "check",
    "seed",
)
"""The options that have a part in systems of one stage."""
_NOT_NEGATIVE = (
    "signature_weight",
    "prior_weight",
    "min_hamming",
    "sentence_weight",
    "faithful_within",
    "bit_weight",
    "nearness_weight",
    "diversity_penalty",
)


@dataclass(frozen=True)
class DecodeConfig:
    """How k answers are found. `auto` reranks where the bundle itself has what it takes, else not.

    For MMI that is a backward model; for the candidates' own signatures, an encoder inside one of its models.

    A beam is never narrower than the number of results that it must give.
    """

    k: int = 10
    # Stage 1, signatures
    signature_search: str = "beam"
    signature_beam: int = 100  # also how many `exact` finds
    rerank_signatures: str = "auto"
    signature_weight: float = 1000.0  # lambda_s of MMI
    prior_weight: float = 0.5  # lambda of `prior`
    min_hamming: int = 2  # chosen signatures differ in more bits than this; 0 switches the rule off
    apart: str = "relax"
    # Stage 2, sentences
    search: str = "beam"
    beam: int = 20  # the paper's 40 finds little more in nearly twice the time (docs/decoding.md)
    samples: int = 40
    top_k: int = 40
    temperature: float = 1.0
    rerank_sentences: str = "auto"
    sentence_weight: float = 1.0  # lambda_y of MMI; the paper's 0.3 lets go of the source (docs/decoding.md)
    normalise: str = "text"
    fresh: bool = True  # what only repeats the source or itself comes behind a bin's other candidates
    per_bin: int = 1
    max_tokens: int = 40
    # What the answers turned out to mean
    check: bool = False
    faithful: str = "auto"
    faithful_within: int = 2  # `filter` drops what lies more bits than this from its bin
    bit_weight: float = 0.2  # `weigh`: what a bit off the bin costs
    nearness_weight: float = 2.0  # `weigh`: what the cosine to the nearest answer of an earlier bin costs
    seed: int = 1234  # of sampling
    # Systems of one stage (appendix B of the paper)
    baseline_beam: int = 30  # also how many samples
    baseline_top_k: int = 30
    diversity_penalty: float = 0.5  # `dbs`: what a token costs that another group has taken (Vijayakumar et al.)

    def __post_init__(self) -> None:
        for name, options in CHOICES.items():
            value = getattr(self, name)
            if value not in options:
                raise UsageError(f"{name} cannot be {value!r}", hint=did_you_mean(str(value), options))
        for name in _AT_LEAST_ONE:
            if not isinstance(getattr(self, name), Integral):
                raise UsageError(f"{name} is {getattr(self, name)!r}, it must be a whole number")
        for names, least in ((_AT_LEAST_ONE, 1), (_NOT_NEGATIVE, 0)):
            for name in names:
                if not getattr(self, name) >= least:
                    raise UsageError(f"{name} is {getattr(self, name)}, it must be at least {least}")
        check_seed(self.seed)
        if not self.temperature > 0:
            raise UsageError(f"temperature is {self.temperature}, it must be above 0")

    @property
    def needs_encoder(self) -> bool:
        """Whether the answers' own signatures are asked for."""
        return self.check or self.by_signature

    @property
    def by_signature(self) -> bool:
        """Whether the candidates' own signatures have a part in the choice."""
        return self.faithful in ("weigh", "rerank", "filter")

    def with_values(self, **values: str | int | float | bool) -> "DecodeConfig":
        """A copy with some values changed; an unknown name is an error that says the nearest."""
        known = [field.name for field in fields(self)]
        for name in values:
            if name not in known:
                raise UsageError(f"decoding has no option {name!r}", hint=did_you_mean(name, known))
        return replace(self, **values)  # type: ignore[arg-type]


DEFAULT = DecodeConfig()
# Sections 3 and 4 of the paper; `refill` and `original` are what its code does (appendix of docs/decoding.md).
PAPER = DecodeConfig(
    rerank_signatures="mmi",
    beam=40,
    rerank_sentences="mmi",
    sentence_weight=0.3,
    apart="refill",
    normalise="original",
    fresh=False,
    faithful="none",
)
PRESETS = {"default": DEFAULT, "paper": PAPER}


def find_preset(name: str) -> DecodeConfig:
    """The options called `name`."""
    if name not in PRESETS:
        raise UsageError(f"no decoding preset is called {name!r}", hint=did_you_mean(name, PRESETS))
    return PRESETS[name]
