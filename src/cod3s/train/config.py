"""What decides a training run: one frozen dataclass and its presets. Unknown names get the nearest one."""

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from cod3s.errors import UsageError, did_you_mean
from cod3s.model.roles import ROLES
from cod3s.model.shape import SHAPES
from cod3s.seeds import check_seed

LAYOUTS = ("shared", "separate")
PRECISIONS = ("float32", "bfloat16")
SCHEDULES = ("inverse_sqrt", "linear")
SHARED_ROLES = ("plain", "sentence", "inverse")
"""Without `signature`: p(signature given source) is the beginning of p(signature + target given source), so one
model that plays `sentence` plays both."""
PIECES = ("own", "encoder", "common")


def _one_of(what: str, name: str, known: Any) -> None:
    if name not in known:
        raise UsageError(f"no {what} is called {name!r}", hint=did_you_mean(name, known))


_RANGES: dict[str, tuple[float, float]] = {
    "learning_rate": (1e-12, 10),
    "warmup_steps": (0, 10**9),
    "label_smoothing": (0, 0.99),
    "clip": (1e-6, 10**6),
    "batch_tokens": (1, 10**9),
    "accumulate": (1, 10**6),
    "epochs": (1, 10**6),
    "patience": (0, 10**9),
    "evaluate_every": (1, 10**9),
    "validate_pairs": (1, 10**9),
    "lora_rank": (0, 1024),
    "hidden": (0, 1),
}


@dataclass(frozen=True)
class TrainConfig:
    """A run from the same corpus and config ends with the same weights on the same machine."""

    shape: str = "warm"  # a name of cod3s.model.shape.SHAPES
    init: str = ""  # a pretrained model to start from; shape is then `pretrained` (seq2seq) or `causal`
    lora_rank: int = 0  # causal models: 0 trains all weights, more only LoRA adapters of this rank
    dropped_layers: tuple[int, ...] = ()  # causal models: layers to leave out, from 0
    precision: str = "float32"  # causal models: of the frozen weights under LoRA
    hidden: float = 0.0  # the share of pairs that are also taught with their source hidden
    start_run: str = ""  # a run of the same shape and roles: start from its weights and pieces
    layout: str = "shared"  # one model with a tag a role, or one model a role and relation
    roles: tuple[str, ...] = SHARED_ROLES
    shares: tuple[float, ...] = ()  # of the pairs that each role sees in an epoch, in the order of roles; 1 each
    corpora: dict[str, float] = field(default_factory=dict)  # the same for pairs of a corpus; 1 if not named
    pieces: str = "own"  # learned from the corpus, or word pieces of the encoder, which have no capitals:
    # all (`encoder`), or as many as would be learned of those that the corpus uses most (`common`)
    bits_per_token: int = 4  # 1 is the paper; all bits of the signature its ablation
    positional: bool = True  # False is the paper: the same tokens at every position
    hyperplane_start: bool = True  # signature tokens start as the signed sum of their hyperplanes
    freeze_encoder: bool = False
    learning_rate: float = 1e-3
    schedule: str = "inverse_sqrt"  # as the paper; linear goes down to nothing at the last step
    warmup_steps: int = 400
    label_smoothing: float = 0.1
    clip: float = 1.0
    batch_tokens: int = 4096  # of both sides, padded, a step and process
    accumulate: int = 1
    epochs: int = 10
    patience: int = 2  # evaluations without a better loss before it stops
    evaluate_every: int = 500  # steps; checkpoints are written at the same time
    validate_pairs: int = 500  # of dev, a relation: enough to choose weights by, few enough to do it often
    tensorboard: bool = False  # also write event files, in MEMBER/tensorboard/
    seed: int = 1234

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise UsageError(f"{name} is {value}", hint=f"choose {least:g} to {most:g}")
        _one_of("shape", self.shape, SHAPES)
        _one_of("layout", self.layout, LAYOUTS)
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("set of pieces", self.pieces, PIECES)
        _one_of("precision", self.precision, PRECISIONS)
        if self.pieces != "own" and not SHAPES[self.shape].warm:
            raise UsageError(
                f"the shape {self.shape!r} has no pretrained encoder to take pieces from", hint="add --pieces own"
            )
        for role in self.roles:
            _one_of("role", role, ROLES)
        if SHAPES[self.shape].pretrained != bool(self.init):
            raise UsageError(
                f"the shape {self.shape!r} and the pretrained model {self.init!r} do not go together",
                hint="give --init MODEL with no preset or with --preset pretrained",
            )
        if not self.roles:
            raise UsageError("a run needs at least one role", hint=f"choose from {', '.join(ROLES)}")
        if self.shares and (len(self.shares) != len(self.roles) or not all(0 < own <= 1 for own in self.shares)):
            raise UsageError(
                f"{self.shares} are no shares of {', '.join(self.roles)}", hint="give each above 0 to 1"
            )
        for name, own in self.corpora.items():
            if not 0 <= own <= 1:
                raise UsageError(f"{own} is no share of the corpus {name!r}", hint="give it from 0 to 1")
        if self.start_run and self.init:
            raise UsageError("a run starts from a pretrained model or from another run, not from both")

    def share(self, role: str) -> float:
        """The share of the pairs that `role` sees in an epoch."""
        return self.shares[self.roles.index(role)] if self.shares else 1.0

    def record(self) -> dict[str, Any]:
        """The config as JSON holds it."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "TrainConfig":
        """The config that `record` gave."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
        }
        return cls(**values)

    def with_values(self, **values: Any) -> "TrainConfig":
        """The same config with some values changed; a name that is no field is an error."""
        known = [field.name for field in fields(self)]
        for name in values:
            if name not in known:
                raise UsageError(f"the training config has no {name!r}", hint=did_you_mean(name, known))
        return replace(self, **values)


PRESETS = {
    # What a small machine can afford: a pretrained encoder, four bits a token, one model for all roles.
    "warm": TrainConfig(),
    # The bundle in the package, but for its shares of the corpora: four hours of one core with 220,000 pairs
    # (docs/measured/default-bundle.md). Small batches make many steps; each epoch, a role sees a share of pairs.
    "default": TrainConfig(
        shares=(0.14, 0.42, 0.06),
        pieces="common",
        freeze_encoder=True,
        label_smoothing=0.0,
        schedule="linear",
        warmup_steps=300,
        batch_tokens=720,
        epochs=6,
        evaluate_every=1000,
    ),
    # Appendix B of the paper: fairseq's transformer_iwslt_de_en, one bit a token, one model a role. The authors
    # ran two processes with 19,376 tokens each (fairseq counts the longer side, so it is twice that here), and
    # validated once an epoch of 10 million pairs.
    "paper": TrainConfig(
        shape="paper",
        layout="separate",
        roles=ROLES,
        bits_per_token=1,
        positional=False,
        hyperplane_start=False,
        learning_rate=5e-4,
        warmup_steps=4000,
        clip=0.1,
        batch_tokens=38_752,
        evaluate_every=2000,
    ),
    # From scratch and small, where no sentence encoder fits the language.
    "small": TrainConfig(shape="small", hyperplane_start=False),
    # A seq2seq model that somebody else trained, with tags and signature tokens added; --init names another one.
    "pretrained": TrainConfig(
        shape="pretrained", init="facebook/bart-base", hyperplane_start=False, learning_rate=1e-4
    ),
    # A causal language model that somebody else trained, adapted by LoRA; --init names its folder.
    "causal": TrainConfig(
        shape="causal",
        init="smollm2",
        lora_rank=32,
        precision="bfloat16",
        hidden=0.1,
        shares=(0.3, 1.0, 0.12),
        learning_rate=8e-4,
        schedule="linear",
        warmup_steps=150,
        label_smoothing=0.0,
        batch_tokens=1024,
        epochs=2,
        evaluate_every=500,
        patience=1000,
    ),
    # Seconds, for tests.
    "tiny": TrainConfig(
        shape="tiny",
        roles=ROLES,
        hyperplane_start=False,
        warmup_steps=20,
        batch_tokens=1024,
        evaluate_every=50,
        epochs=3,
    ),
    "tiny-warm": TrainConfig(shape="tiny-warm", warmup_steps=20, batch_tokens=1024, evaluate_every=50, epochs=2),
}


def find_preset(name: str) -> TrainConfig:
    _one_of("preset", name, PRESETS)
    return PRESETS[name]


def parse_roles(text: str) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Roles and shares of `plain:0.5,sentence,inverse:0.25`; a role without a share sees every pair."""
    found = _named_shares(text, "roles", "plain:0.5,sentence")
    return tuple(found), tuple(found.values())


def parse_corpora(text: str) -> dict[str, float]:
    """The shares of `blogs:0.5,essays:0`."""
    return _named_shares(text, "corpora", "blogs:0.5,essays:0")


def _named_shares(text: str, what: str, example: str) -> dict[str, float]:
    parts = [part.partition(":") for part in text.split(",")]
    try:
        return {name.strip(): float(share) if share else 1.0 for name, _, share in parts}
    except ValueError:
        raise UsageError(f"{text!r} does not name {what} and shares", hint=f"such as {example}") from None
