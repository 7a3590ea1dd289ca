"""The options of training: what each one does, its default and its bounds; and the presets."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from cod3s.errors import UsageError
from cod3s.model.roles import ROLES, VERDICT
from cod3s.model.shape import SHAPES
from cod3s.options import check_options, find_name, option, seed_option, with_values

DEFAULT_INIT = "default"
"""The bundle in the package, as the option `init` names it."""

_model = partial(option, panel="The model")
_signature = partial(option, panel="Signature tokens")
_data = partial(option, panel="What an epoch sees")
_learning = partial(option, panel="How it learns")
_watching = partial(option, panel="Validation and logs")


@dataclass(frozen=True)
class TrainConfig:
    """A run from the same corpus and config ends with the same weights on the same machine."""

    shape: str = _model(
        "causal",
        "How deep and wide the models are; causal ones are as --init says.",
        choices=list(SHAPES),
    )
    init: str = _model(
        DEFAULT_INIT,
        "The causal language model to start from: a bundle of one (`default` is the one in the package), or a "
        "Hugging Face folder of the Llama, Mistral, Qwen, Gemma, GPT-2 or GPT-NeoX family.",
    )
    lora_rank: int = _model(
        32, "Causal models: train LoRA adapters of this rank; 0 trains all weights.", least=0, most=1024
    )
    dropped_layers: tuple[int, ...] = _model(
        (), "Causal models: layers to leave out, counted from 0, separated by commas."
    )
    precision: Literal["float32", "bfloat16"] = _model(
        "bfloat16",
        "Causal models: how products are computed and frozen weights kept; bfloat16 is faster if the processor "
        "supports it. Weights that are trained are kept in float32.",
    )
    gradient_checkpointing: bool = _model(
        False, "Causal models: compute states again instead of keeping them: less memory, a third more time."
    )
    start_run: str = _model("", "Start from the weights and pieces of another run, instead of --init.")
    layout: Literal["shared", "separate"] = _model(
        "shared", "One model for all roles, with a tag that says which one to play, or one per role and relation."
    )
    roles: tuple[str, ...] = _data(
        # A model that plays `sentence` also plays `signature`, which is the beginning of what it writes.
        ("plain", "sentence", "inverse"),
        "The roles to learn, of plain, signature, sentence, inverse and verdict, each optionally followed by the "
        "share of the pairs that it sees per epoch: plain:0.5,sentence. Causal models learn the verdict on what "
        "plain writes, and on wrong answers that are made for a share of the pairs.",
    )
    shares: tuple[float, ...] = (0.3, 1.0, 0.12)  # in the order of roles, as --roles gives them; 1 each if empty
    hidden: float = _data(
        0.1, "The share of pairs that the model also learns without seeing their source.", least=0, most=1
    )
    backward: float = _data(
        0.0,
        "The share of pairs that plain also learns in the other direction: as pairs of the inverse relation.",
        least=0,
        most=1,
    )
    verdicts: str = _data(
        "",
        "For the role verdict: a table of answers that were read, with the columns source, relation, target and "
        "plausible (yes, partly or no). If it has a column split, the model learns from train only.",
    )
    corpora: dict[str, float] = _data(  # noqa: RUF009 - makes a field
        dict, "The share of each corpus that an epoch sees, 1 if not named: blogs:0.5,essays:0."
    )
    bits_per_token: int = _signature(
        4, "Bits per signature token: 1 as in the paper, or all bits as in its ablation.", least=1
    )
    positional: bool = _signature(
        True, "Each position of a signature has its own tokens; the paper uses the same ones everywhere."
    )
    hyperplane_start: bool = _signature(
        True, "Causal models: new signature tokens start from their hyperplanes, not at random."
    )
    learning_rate: float = _learning(8e-4, "The peak learning rate.", least=1e-12, most=10)
    schedule: Literal["inverse_sqrt", "linear", "stable"] = _learning(
        "linear",
        "How the rate falls: slowly as in the paper; linearly to zero at the last step; or stable until the last "
        "part of the run (--decay), so that the run can be continued from there with more steps.",
    )
    decay: float = _learning(
        0.25, "With --schedule stable, the share of the steps in which the rate falls.", least=0.01, most=1
    )
    warmup_steps: int = _learning(
        150,
        "Steps over which the rate rises to its peak; if it falls linearly, at most a tenth of all steps.",
        least=0,
        most=10**9,
    )
    label_smoothing: float = _learning(
        0.0, "Share of the probability that is spread over all tokens.", least=0, most=0.99
    )
    beta2: float = _learning(0.98, "How slowly AdamW forgets the size of gradients.", least=0.5, most=0.9999)
    weight_decay: float = _learning(0.0, "How much AdamW shrinks weights.", least=0, most=1)
    verdict_weight: float = _learning(
        0.25, "How much the loss counts verdicts, against 1 for text.", least=0, most=100
    )
    clip: float = _learning(
        1.0, "The maximum length of a gradient; longer ones are scaled down.", least=1e-6, most=10**6
    )
    batch_tokens: int = _learning(
        1024, "Tokens per step and process: of both sides, with padding.", least=1, most=10**9
    )
    row_tokens: int = _learning(
        256, "Causal models: tokens of a row, into which pairs are packed.", least=192, most=10**6
    )
    accumulate: int = _learning(
        1, "Batches per step: more make a step larger without more memory.", least=1, most=10**6
    )
    epochs: int = _learning(2, "The maximum number of passes over the corpus.", least=1, most=10**6)
    max_steps: int = _learning(
        0,
        "End after this many steps, where a linear schedule then reaches zero; 0 means after all epochs.",
        least=0,
        most=10**9,
    )
    patience: int = _watching(
        1000,
        "Stop after this many validations without a better loss; the best weights are kept.",
        least=0,
        most=10**9,
    )
    evaluate_every: int = _watching(
        500, "Steps between validations, which also write a checkpoint.", least=1, most=10**9
    )
    validate_pairs: int = _watching(
        500,
        "Dev pairs per relation that each validation uses: enough to choose weights, few enough to do it often.",
        least=1,
        most=10**9,
    )
    tensorboard: bool = _watching(False, "Also write the log for TensorBoard, which must be installed.")
    seed: int = seed_option("Seed for the weights and for the order of the pairs.", panel="How it learns")

    def __post_init__(self) -> None:
        check_options(self)
        for role in self.roles:
            find_name("role", role, (*ROLES, VERDICT))
        causal = SHAPES[self.shape].causal
        if causal != bool(self.init):
            raise UsageError(
                f"the shape {self.shape!r} and the pretrained model {self.init!r} do not go together",
                hint="give --init MODEL with no preset or with --preset causal",
            )
        if VERDICT in self.roles and not (causal and "plain" in self.roles and self.layout == "shared"):
            raise UsageError(
                "only one causal model for all roles, plain among them, can learn verdicts",
                hint="leave out the role verdict, or choose --preset causal with --layout shared",
            )
        if self.verdicts and VERDICT not in self.roles:
            raise UsageError("the role verdict is not among --roles", hint="add it, or leave out --verdicts")
        if not self.roles:
            raise UsageError("a run needs at least one role", hint=f"choose from {', '.join((*ROLES, VERDICT))}")
        if self.shares and (
            len(self.shares) != len(self.roles) or not all(0 < share <= 1 for share in self.shares)
        ):
            raise UsageError(
                f"{self.shares} are not the shares of {', '.join(self.roles)}",
                hint="give each role a share above 0, up to 1",
            )
        for name, share in self.corpora.items():
            if not 0 <= share <= 1:
                raise UsageError(f"the share of the corpus {name!r} is {share}", hint="give it from 0 to 1")

    def share(self, role: str) -> float:
        """The share of the pairs that `role` sees in an epoch."""
        return self.shares[self.roles.index(role)] if self.shares else 1.0

    def record(self) -> dict[str, Any]:
        """The config as JSON holds it."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def with_values(self, **values: Any) -> "TrainConfig":
        """The same config with some values changed; an unknown name is an error that suggests the nearest."""
        return with_values(self, "training", values)


# All weights of a seq2seq model are trained, on every pair in every role.
_SEQ2SEQ = TrainConfig(
    shape="small",
    init="",
    lora_rank=0,
    precision="float32",
    hidden=0.0,
    shares=(),
    hyperplane_start=False,
    learning_rate=1e-3,
    schedule="inverse_sqrt",
    warmup_steps=400,
    label_smoothing=0.1,
    batch_tokens=4096,
    epochs=10,
    patience=2,
)
PRESETS = {
    # A causal language model, adapted by LoRA: the one in the package, or the one that --init names.
    "causal": TrainConfig(),
    # How the bundle in the package is trained: all weights of SmolLM2-135M-Instruct (--init names its folder) on
    # dataset/. An epoch shows about half of the targets of each source behind their signatures.
    "default": TrainConfig(
        init="smollm2",
        lora_rank=0,
        roles=("plain", "sentence", "inverse", VERDICT),
        shares=(0.12, 0.5, 0.005, 0.12),
        hidden=0.006,
        backward=0.008,
        learning_rate=2e-4,
        schedule="stable",
        warmup_steps=100,
        beta2=0.97,
        weight_decay=0.05,
        evaluate_every=250,
        validate_pairs=100,
    ),
    # Appendix B of the paper: fairseq's transformer_iwslt_de_en, one bit per token, one model per role. The
    # authors ran two processes with 19,376 tokens each (fairseq counts the longer side, so it is twice that
    # here), and validated once per epoch of 10 million pairs.
    "paper": _SEQ2SEQ.with_values(
        shape="paper",
        layout="separate",
        roles=ROLES,
        bits_per_token=1,
        positional=False,
        learning_rate=5e-4,
        warmup_steps=4000,
        clip=0.1,
        batch_tokens=38_752,
        evaluate_every=2000,
    ),
    # From scratch and small, where no language model fits the language.
    "small": _SEQ2SEQ,
    # Seconds, for tests.
    "tiny": _SEQ2SEQ.with_values(
        shape="tiny",
        roles=ROLES,
        warmup_steps=20,
        batch_tokens=1024,
        evaluate_every=50,
        epochs=3,
    ),
}


def find_preset(name: str) -> TrainConfig:
    """The options called `name`."""
    return PRESETS[find_name("preset", name, PRESETS)]


def parse_roles(text: str) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Roles and shares of `plain:0.5,sentence,inverse:0.25`; a role without a share sees every pair."""
    shares = _named_shares(text, "roles", "plain:0.5,sentence")
    return tuple(shares), tuple(shares.values())


def parse_corpora(text: str) -> dict[str, float]:
    """The share of each corpus in `blogs:0.5,essays:0`."""
    return _named_shares(text, "corpora", "blogs:0.5,essays:0")


def _named_shares(text: str, what: str, example: str) -> dict[str, float]:
    parts = [part.partition(":") for part in text.split(",")]
    try:
        return {name.strip(): float(share) if share else 1.0 for name, _, share in parts}
    except ValueError:
        raise UsageError(f"{text!r} does not name {what} and shares", hint=f"such as {example}") from None
