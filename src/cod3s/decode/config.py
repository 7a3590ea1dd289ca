"""The options of decoding: what each does, its default and its bounds; and the paper's values."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from cod3s.errors import BundleError, UsageError
from cod3s.options import check_options, find_name, option, options_of, seed_option, with_values

if TYPE_CHECKING:
    from cod3s.bundle import BundleFacts
    from cod3s.models import Models

MAX_K = 1000
_COUNT: dict[str, Any] = {"least": 1}
_WEIGHT: dict[str, Any] = {"least": 0, "most": 1e6}
_stage_1 = partial(option, panel="Stage 1: which bins")
_stage_2 = partial(option, panel="Stage 2: which sentences")
_choice = partial(option, panel="Choice: what the sentences turned out to mean")
_baseline = partial(option, panel="Systems of one stage (s2s, s2s-sigs, s2s-rs)")


@dataclass(frozen=True)
class DecodeConfig:
    """How to find k answers. A beam is never narrower than the number of results it must give.

    `auto` does what the bundle itself can do: it ranks by the critic if there is one, else by MMI if there is a
    backward model, and weighs candidates by their signatures if there is an encoder.
    """

    k: int = option(
        10,
        f"How many answers to write, each in a different bin; at most {MAX_K}.",
        least=1,
        most=MAX_K,
        flags=("-k",),
    )

    signature_search: Literal["beam", "exact"] = _stage_1(
        "beam",
        "How the model infers signatures: with a beam as in the paper, or exactly (the true best of all 2^bits).",
    )
    signature_beam: int = _stage_1(100, "How many signatures are searched for and ranked.", **_COUNT)
    rerank_signatures: Literal["auto", "mmi", "prior", "none"] = _stage_1(
        "auto",
        "How signatures are ranked: mmi asks how well each predicts the source, prior subtracts how common "
        "its bin is, none keeps the order of the search; auto is none if the bundle has a critic, else mmi.",
    )
    signature_weight: float = _stage_1(
        1000.0, "How much mmi counts in the ranking of signatures (the paper's λs).", **_WEIGHT
    )
    prior_weight: float = _stage_1(0.5, "How much prior counts in the ranking of signatures.", **_WEIGHT)
    min_hamming: int = _stage_1(
        2, "Two chosen signatures differ in more bits than this; 0 switches the rule off.", least=0
    )
    if_too_few: Literal["relax", "refill", "strict"] = _stage_1(
        "relax",
        "If too few signatures are that far apart: relax lowers --min-hamming step by step, refill takes the best "
        "of the rest, strict writes fewer answers.",
    )

    search: Literal["beam", "sample"] = _stage_2("beam", "How the sentences of each bin are written.")
    # The paper's 40 finds little more in many times the time.
    beam: int = _stage_2(8, "Width of each bin's beam.", **_COUNT)
    samples: int = _stage_2(40, "How many samples are drawn in each bin.", **_COUNT)
    top_k: int = _stage_2(40, "Each token is sampled from this many of the likeliest.", **_COUNT)
    temperature: float = _stage_2(1.0, "Sampling temperature; higher is bolder.", above=0, most=100)
    rerank_sentences: Literal["auto", "critic", "mmi", "none"] = _stage_2(
        "auto",
        "How sentences are ranked: critic asks how plausible each is, mmi how well it predicts the source; "
        "auto uses the critic if the bundle has one.",
    )
    shortlist: int = _stage_2(10, "critic: how many of each bin's best sentences it judges.", **_COUNT)
    # The paper's 0.3 loses sight of the source.
    sentence_weight: float = _stage_2(
        1.0,
        "How much mmi counts in the ranking of sentences (λy); higher is more specific to the source.",
        **_WEIGHT,
    )
    normalise: Literal["text", "original"] = _stage_2(
        "text", "Average scores over the tokens of the text or, as in the original, also over the signature's."
    )
    allow_repeats: bool = _stage_2(
        False, "Treat sentences that only repeat the source or themselves like all others, not as a last resort."
    )
    per_bin: int = _stage_2(1, "How many answers to keep from each bin.", **_COUNT)
    max_tokens: int = _stage_2(40, "The maximum number of tokens per answer.", **_COUNT)

    bins_per_answer: float = _choice(
        0.0,
        "Write in this many bins per answer; the best answers that differ are kept. 0 means 2 if the bundle has a "
        "critic, else 1.",
        least=0,
        most=4,
    )
    show_doubtful: bool = _choice(
        False, "Also show answers that the critic finds implausible; without it, fewer than k may remain."
    )
    check: bool = _choice(False, "Sign the answers, and show how many bits each is off its bin.")
    bin_fit: Literal["auto", "weigh", "rerank", "filter", "none"] = _choice(
        "auto",
        "Choose by the candidates' signatures: rerank takes the nearest to the bin, filter drops those beyond "
        "--bin-fit-within, weigh balances score, bits off and distance from earlier answers; auto weighs "
        "if the bundle can sign.",
    )
    share_candidates: Literal["auto", "on", "off"] = _choice(
        "auto",
        "weigh and rerank: let each bin choose among the sentences of all bins; auto does if the bundle has a "
        "critic.",
    )
    bin_fit_within: int = _choice(2, "filter: how many bits off the bin are allowed.", least=0, most=256)
    bit_weight: float = _choice(0.15, "weigh: the cost of each bit off the bin.", **_WEIGHT)
    nearness_weight: float = _choice(
        1.5, "weigh: the cost of the cosine to the nearest answer of an earlier bin.", **_WEIGHT
    )
    unfiltered: bool = _choice(
        False,
        "For research: also give answers that insult, are sexual, or explain an event by a person's traits, which "
        "are otherwise left out.",
        flags=("--unfiltered",),
    )
    sensitive: bool = _choice(
        False,
        "Answer sources about violence, abuse, suicide, self-harm, death or illness like any others; a remark "
        "marks such answers.",
        flags=("--sensitive",),
    )
    careful_floor: float = _choice(
        0.5, "The least plausibility of an answer to a source about death or serious illness.", least=0, most=1
    )
    seed: int = seed_option("Seed for sampling.", panel="Stage 2: which sentences")

    # Appendix B of the paper
    baseline_beam: int = _baseline(30, "Width of the beam, or how many samples.", **_COUNT)
    baseline_top_k: int = _baseline(30, "Each token is sampled from this many of the likeliest.", **_COUNT)

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def bins(self) -> int:
        """How many bins to write in."""
        return ceil(self.k * max(1.0, self.bins_per_answer))

    @property
    def needs_encoder(self) -> bool:
        """Whether answers have to be signed."""
        return self.check or self.by_signature

    @property
    def answers_bin_by_bin(self) -> bool:
        """Whether a bin's answer does not depend on the bins after it, so that it can be given at once."""
        return self.search == "beam" and self.bins == self.k and self.share_candidates == "off"

    @property
    def by_signature(self) -> bool:
        """Whether the choice depends on the candidates' signatures."""
        return self.bin_fit in ("weigh", "rerank", "filter")

    def with_values(self, **values: str | int | float | bool) -> "DecodeConfig":
        """A copy with some values changed; an unknown name is an error that suggests the nearest."""
        return with_values(self, "decoding", values)

    def resolve(
        self, models: "Models", relation: str, *, signatures_wanted: bool = False
    ) -> tuple["DecodeConfig", list[str]]:
        """The options with each `auto` decided by what the models can do; a remark per stage without reranking.

        Raises an error if the critic or MMI is asked for and its model is missing. Signatures that a user asks for
        are not ranked.
        """
        remarks: list[str] = []

        def mmi_if(model: object | None, meaning: str) -> str:
            if model is None:
                remarks.append(f"not reranked by MMI: the bundle has no model of {meaning}")
            return "none" if model is None else "mmi"

        critic = models.has_critic
        values: dict[str, str | float] = {}
        if signatures_wanted and self.rerank_signatures in ("auto", "mmi"):
            values["rerank_signatures"] = "none"
        elif self.rerank_signatures == "mmi":
            models.need_inverse(relation)
        elif self.rerank_signatures == "auto":
            inverse = "p(source given signature)"
            values["rerank_signatures"] = "none" if critic else mmi_if(models.inverse(relation), inverse)
        if self.rerank_sentences == "critic" and not critic:
            raise BundleError(
                f"{models.label} has no critic",
                hint="choose mmi or none for rerank sentences, or add a critic with `cod3s bundle fit-critic`",
            )
        if self.rerank_sentences == "mmi":
            models.need_backward(relation)
        elif self.rerank_sentences == "auto":
            backward = "p(source given sentence)"
            values["rerank_sentences"] = "critic" if critic else mmi_if(models.backward(relation), backward)
        if self.share_candidates == "auto":
            values["share_candidates"] = "on" if critic else "off"
        if not self.bins_per_answer:
            values["bins_per_answer"] = 2.0 if critic and not signatures_wanted else 1.0
        if self.bin_fit == "auto":
            values["bin_fit"] = "weigh" if models.has_encoder else "none"
        return self.with_values(**values), remarks


_FOR_USERS = ("unfiltered", "sensitive")
"""Options that a bundle cannot have other defaults for, because they let unsuitable answers through."""
ONE_STAGE = (
    "k",
    "search",
    "baseline_beam",
    "baseline_top_k",
    "temperature",
    "max_tokens",
    "check",
    "unfiltered",
    "sensitive",
    "seed",
)
"""The options that affect one-stage systems."""

DEFAULT = DecodeConfig()
# Sections 3 and 4 of the paper; `refill` and `original` are what its code does (docs/decoding.md).
PAPER = DecodeConfig(
    rerank_signatures="mmi",
    beam=40,
    rerank_sentences="mmi",
    sentence_weight=0.3,
    if_too_few="refill",
    normalise="original",
    allow_repeats=True,
    bins_per_answer=1.0,
    share_candidates="off",
    bin_fit="none",
)
# For a first look: as diverse, but with MMI less plausible.
QUICK = PAPER.with_values(beam=6)
PRESETS = {"default": DEFAULT, "paper": PAPER, "quick": QUICK}


def find_preset(name: str, defaults: DecodeConfig = DEFAULT) -> DecodeConfig:
    """The options called `name`; `default` are `defaults`, which may be those of a bundle."""
    find_name("decoding preset", name, PRESETS)
    return defaults if name == "default" else PRESETS[name]


def defaults_of(facts: "BundleFacts") -> DecodeConfig:
    """The defaults of a bundle: those of the package, except where its bundle.json has others."""
    return check_defaults(facts.decoding, f"bundle.json of {facts.name}")


def parse_defaults(text: str) -> dict[str, Any]:
    """Defaults for a bundle from text such as `beam=4,bins_per_answer=3`, checked."""
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        name = name.lstrip("-").replace("-", "_")
        declared = options_of(DecodeConfig).get(name)
        if not equals:
            raise UsageError(f"{part.strip()!r} sets no option of decoding", hint="write it as NAME=VALUE")
        values[name] = _parse(value, declared.kind) if declared else value
    check_defaults(values, "--decoding")
    return values


def _parse(value: str, kind: type) -> Any:
    """The value of an option of this kind, or the text itself, which the option's check then refuses."""
    if kind is bool:
        return {"true": True, "false": False}.get(value.lower(), value)
    try:
        return kind(value)
    except ValueError:
        return value


def check_defaults(values: Mapping[str, Any], where: str) -> DecodeConfig:
    """The package's defaults with these values; an error if a bundle must not set one, or it is none."""
    if unsafe := [name for name in _FOR_USERS if name in values]:
        raise BundleError(
            f"{where} sets {unsafe[0]}, which only the user may decide", hint=f"leave {unsafe[0]} out of it"
        )
    try:
        return DEFAULT.with_values(**values)
    except UsageError as error:
        raise BundleError(f"{where}: {error.message}", error.hint) from error
