"""Systems by name: every row of the paper's tables 2 and 5 and every alternative here. Names in, options out.

| name | is |
|---|---|
| cod3s | the two stages with the options as given |
| cod3s-SIGNATURE-SENTENCE | SIGNATURE is beam, mmi, exact, prior or oracle; SENTENCE is beam, mmi, rs or mmi-rs |
| …-no-hamming | the same without the Hamming rule |
| …-fresh | of a bin's candidates none that only repeats the source or itself, if there is another |
| …-faithful | of a bin's candidates the one whose own signature is nearest to it; needs the encoder |
| …-weighed | … the one that weighs best: score, own signature, and distance from the answers before it |
| s2s | one beam of 30 over sentences |
| s2s-sigs | one beam of 30 over signatures with sentences; the signature is taken off |
| s2s-rs | 30 samples among the 30 likeliest tokens, the likeliest samples first |
| dbs, dpc | diverse beam search; lexical constraints: they run on the torch weights |
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from cod3s.decode.config import DecodeConfig
from cod3s.errors import UsageError, did_you_mean

_SIGNATURES: dict[str, dict[str, str]] = {
    "beam": {"signature_search": "beam", "rerank_signatures": "none"},
    "mmi": {"signature_search": "beam", "rerank_signatures": "mmi"},
    "exact": {"signature_search": "exact", "rerank_signatures": "none"},
    "prior": {"signature_search": "beam", "rerank_signatures": "prior"},
    "oracle": {},  # the signatures are given
}
_SENTENCES = {
    "beam": {"search": "beam", "rerank_sentences": "none"},
    "mmi": {"search": "beam", "rerank_sentences": "mmi"},
    "rs": {"search": "sample", "rerank_sentences": "none"},
    "mmi-rs": {"search": "sample", "rerank_sentences": "mmi"},
}

_FAITHFUL = {"": "none", "-faithful": "rerank", "-weighed": "weigh"}

COD3S, SENTENCES, SIGNED_SENTENCES, TORCH = "cod3s", "sentences", "signed sentences", "torch"
"""The kinds of system: two stages; one search; one search with signatures in it; a search on torch weights."""


@dataclass(frozen=True)
class System:
    """A kind of decoding and the options that its name decides; `oracle` needs its signatures given."""

    name: str
    kind: str
    values: dict[str, str | int] = field(default_factory=dict)
    oracle: bool = False

    def configure(self, config: DecodeConfig) -> DecodeConfig:
        """The options given, with those changed that the name decides."""
        return config.with_values(**self.values)

    def require_undecided(self, given: Iterable[str]) -> None:
        """An error if the name decides one of the options that were given."""
        if decided := sorted(set(given) & set(self.values)):
            raise UsageError(
                f"the name {self.name!r} decides {' and '.join(decided)}",
                hint="leave out the system's name, or the option",
            )


def _cod3s_systems() -> list[System]:
    found = [System("cod3s", COD3S)]
    for signature, sentence, hamming, fresh, faithful in product(
        _SIGNATURES, _SENTENCES, (True, False), (False, True), _FAITHFUL
    ):
        oracle = signature == "oracle"
        if oracle and not hamming:  # given signatures are never held against each other
            continue
        values: dict[str, str | int] = {**_SIGNATURES[signature], **_SENTENCES[sentence]}
        if not hamming:
            values["min_hamming"] = 0
        values |= {"fresh": fresh, "faithful": _FAITHFUL[faithful]}
        switches = "-no-hamming" * (not hamming) + "-fresh" * fresh + faithful
        name = f"cod3s-{signature}-{sentence}{switches}"
        found.append(System(name, COD3S, values, oracle))
    return found


_BASELINES = [
    System("s2s", SENTENCES, {"search": "beam"}),
    System("s2s-sigs", SIGNED_SENTENCES, {"search": "beam"}),
    System("s2s-rs", SENTENCES, {"search": "sample"}),
    System("dbs", TORCH),
    System("dpc", TORCH),
]
SYSTEMS = {system.name: system for system in [*_cod3s_systems(), *_BASELINES]}


def find_system(name: str) -> System:
    """The system called `name`."""
    if name in SYSTEMS:
        return SYSTEMS[name]
    short = [
        "cod3s",
        "cod3s-SIGNATURE-SENTENCE[-no-hamming][-fresh][-faithful|-weighed]",
        *(system.name for system in _BASELINES),
    ]
    hint = did_you_mean(name, SYSTEMS)
    raise UsageError(
        f"no system is called {name!r}",
        hint=hint if hint.startswith("did") else f"choose one of: {', '.join(short)}; docs/decoding.md has all",
    )
