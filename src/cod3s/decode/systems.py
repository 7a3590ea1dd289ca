"""Systems by name: a name is parsed into the decoding options that it decides.

| name | what it is |
|---|---|
| cod3s | the two stages with the options as given |
| cod3s-SIGNATURE-SENTENCE | beam, mmi, exact, prior or oracle; then beam, mmi, critic or …-rs |
| …-no-hamming | the same without the Hamming rule |
| …-fresh | sentences that only repeat the source or themselves come last in their bin |
| …-faithful | each bin's candidate with the nearest signature; needs the encoder |
| …-weighed | each bin's best by score, signature, and distance from the answers before it |
| s2s | one beam of 30 over sentences |
| s2s-sigs | one beam of 30 over signatures with sentences; the signature is removed |
| s2s-rs | 30 samples from the 30 likeliest tokens, the likeliest samples first |
| dpc | lexical constraints: each answer contains another word that goes with the source |
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from cod3s.decode.config import DecodeConfig
from cod3s.errors import UsageError

_SIGNATURES: dict[str, dict[str, str]] = {
    "beam": {"signature_search": "beam", "rerank_signatures": "none"},
    "mmi": {"signature_search": "beam", "rerank_signatures": "mmi"},
    "exact": {"signature_search": "exact", "rerank_signatures": "none"},
    "prior": {"signature_search": "beam", "rerank_signatures": "prior"},
    "oracle": {},  # the caller names the signatures
}
_SENTENCES = {  # longer names before those that they begin with
    "beam": {"search": "beam", "rerank_sentences": "none"},
    "mmi-rs": {"search": "sample", "rerank_sentences": "mmi"},
    "mmi": {"search": "beam", "rerank_sentences": "mmi"},
    "critic-rs": {"search": "sample", "rerank_sentences": "critic"},
    "critic": {"search": "beam", "rerank_sentences": "critic"},
    "rs": {"search": "sample", "rerank_sentences": "none"},
}
_BIN_FIT = {"": "none", "-faithful": "rerank", "-weighed": "weigh"}
_GRAMMAR = re.compile(
    f"cod3s-(?P<signatures>{'|'.join(_SIGNATURES)})-(?P<sentences>{'|'.join(_SENTENCES)})"
    "(?P<near>-no-hamming)?(?P<fresh>-fresh)?(?P<fit>-faithful|-weighed)?"
)
_FORM = "cod3s-SIGNATURE-SENTENCE[-no-hamming][-fresh][-faithful|-weighed]"

COD3S, SENTENCES, SIGNED_SENTENCES, CONSTRAINED = "cod3s", "sentences", "signed sentences", "constrained"
"""The kinds of system: two stages; one search; one search with signatures in it; a search per word."""


@dataclass(frozen=True)
class System:
    """A kind of decoding and the options that its name decides; an `oracle` is given its signatures."""

    name: str
    kind: str
    values: Mapping[str, str | int] = field(default_factory=dict)
    oracle: bool = False

    def configure(self, config: DecodeConfig) -> DecodeConfig:
        """`config` with the options that the name decides."""
        return config.with_values(**self.values)

    def require_undecided(self, options: Iterable[str]) -> None:
        """Raise an error if the name decides any of these options."""
        if decided := sorted(set(options) & set(self.values)):
            raise UsageError(
                f"the name {self.name!r} decides {' and '.join(decided)}",
                hint="leave out the system's name, or the option",
            )


_NAMED = {
    system.name: system
    for system in (
        System("cod3s", COD3S),
        System("s2s", SENTENCES, {"search": "beam"}),
        System("s2s-sigs", SIGNED_SENTENCES, {"search": "beam"}),
        System("s2s-rs", SENTENCES, {"search": "sample"}),
        System("dpc", CONSTRAINED),
    )
}
PAPER_SYSTEMS = (
    "s2s",
    "s2s-sigs",
    "s2s-rs",
    "dpc",
    "cod3s-beam-beam",
    "cod3s-beam-mmi",
    "cod3s-mmi-mmi",
    "cod3s-mmi-mmi-rs",
    "cod3s-mmi-mmi-rs-no-hamming",
)
"""The rows of the paper's tables 2 and 5."""
LISTED_SYSTEMS = ("cod3s", *PAPER_SYSTEMS)
"""The systems worth listing: the default and the paper's rows. `find_system` knows more."""


def find_system(name: str) -> System:
    """The system that a name describes."""
    if system := _parse(name):
        return system
    raise UsageError(f"no system is called {name!r}", hint=_hint(name))


def _parse(name: str) -> System | None:
    if name in _NAMED:
        return _NAMED[name]
    parts = _GRAMMAR.fullmatch(name)
    oracle = parts is not None and parts["signatures"] == "oracle"
    if parts is None or (oracle and parts["near"]):  # an oracle's signatures need not be far apart
        return None
    values: dict[str, str | int] = {**_SIGNATURES[parts["signatures"]], **_SENTENCES[parts["sentences"]]}
    if parts["near"]:
        values["min_hamming"] = 0
    values |= {"allow_repeats": parts["fresh"] is None, "bin_fit": _BIN_FIT[parts["fit"] or ""]}
    return System(name, COD3S, values, oracle)


def _hint(name: str) -> str:
    """The name with its typos corrected, if that is a system; otherwise the list of systems."""
    known = sorted({*re.findall(r"[a-z0-9]+", " ".join([*_NAMED, *_SIGNATURES, *_SENTENCES, *_BIN_FIT])), "no"})
    words = name.lower().replace("_", "-").split("-")
    corrected = "-".join(
        (get_close_matches(word, [*known, "fresh", "hamming"], 1, 0.5) or [word])[0] for word in words
    )
    if _parse(corrected):
        return f"did you mean {corrected!r}?"
    return f"choose from: {', '.join(LISTED_SYSTEMS)}; or {_FORM}, as docs/decoding.md explains"
