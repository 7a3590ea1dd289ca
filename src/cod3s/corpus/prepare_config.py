"""The options of preparing a corpus: what each does, its default and its bounds."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from cod3s.options import BITS, MAX_BITS, check_options, option, seed_option

_pairs = partial(option, panel="Which pairs")
_splits = partial(option, panel="Splits")
_signatures = partial(option, panel="Signatures")


@dataclass(frozen=True)
class PrepareConfig:
    """Everything that decides what a corpus holds; where and how fast it is made is not part of it."""

    relation: str = _pairs("both", "effect, cause, both, or any other name with --template.")
    template: str = _pairs("", 'The completed statement of a custom relation: "{source} {target}".')
    orders: Literal["matching", "all"] = _pairs(
        "matching",
        'Which of the pairs with an order teach a causal relation: with matching, effect learns from "X, so Y", '
        'cause from "X because Y", as in the paper (appendix B); with all, all teach both.',
    )
    filter: str = _pairs(
        "default",
        "Which pairs are left out: paper, original, default, clean, none, or filters by name such as "
        "empty,length:20,dangling.",
    )
    limit: int | None = _splits(None, "The maximum number of pairs in train; all if not given.", least=1)
    dev: int | None = _splits(
        None, "The maximum number of pairs in dev: 4000, or all that a column `split` puts there.", least=0
    )
    test: int | None = _splits(None, "The same for test.", least=0)
    held_out: float | None = _splits(
        None,
        "The share of the sources that dev may come from, up to 0.25; test gets the same share. By default 0.02, "
        "or more if that is under a hundred pairs.",
        least=0,
        most=0.25,
    )
    shard_rows: int = _splits(100_000, "Pairs per shard file.", least=1)
    bad_rows: Literal["stop", "skip"] = _pairs("stop", "Stop at a row that is not a pair, or skip and count it.")
    encoder: str = _signatures(
        "fast",
        "static, fast, fast-int8 or sbert; fast:FOLDER, sbert:NAME or sbert:FOLDER; none leaves the pairs "
        "unsigned.",
        flags=("--encoder", "-e"),
    )
    code: str = _signatures(
        "random",
        "random; median or itq, which are fitted on a sample of the corpus; or a folder, such as another/code.",
    )
    bits: int = _signatures(BITS, "Bits per signature.", least=1, most=MAX_BITS, flags=("--bits", "-b"))
    seed: int = seed_option(
        "Seed for the hyperplanes; the default is that of the original code.", panel="Signatures"
    )
    bins: bool = _signatures(True, "Also write the bins of the targets.")

    def __post_init__(self) -> None:
        check_options(self)
