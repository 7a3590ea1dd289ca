"""The options of a selection, declared once: default, bounds, choices and help."""

from dataclasses import dataclass

from cod3s.errors import UsageError
from cod3s.options import MAX_BITS, check_options, find_name, option, seed_option

AUTO = "auto"
METHODS = {
    AUTO: "representatives, or signatures if `strict` or `min_hamming` ask for the paper's rule",
    "representatives": "candidates that stand for the rest, are far apart, and have others like them",
    "signatures": "the paper's rule: the best of each bin, from bins that are far apart; linear, flat memory",
    "mmr": "maximal marginal relevance: score against the nearest chosen candidate",
    "dpp": "determinantal point process: score against the volume spanned",
    "kmedoids": "k clusters, the best of each",
}
BITS = 128
K = 10
_SCORE_WEIGHTS = {"mmr": 0.5, "dpp": 0.5}
_LOW_SCORE_WEIGHT = 0.03  # scores decide between candidates that differ about as much


@dataclass(frozen=True)
class SelectConfig:
    """How k candidates are chosen."""

    k: int = option(K, "How many to keep (per group).", least=1, flags=("-k", "--count"))
    method: str = option(AUTO, "auto, representatives, signatures, mmr, dpp or kmedoids.", choices=tuple(METHODS))
    min_hamming: int | None = option(
        None,
        "The paper's rule: candidates within this many bits are the same; by default, a quarter of --bits.",
        least=0,
    )
    strict: bool = option(False, "signatures: keep fewer than k rather than any within --min-hamming.")
    score_weight: float | None = option(
        None,
        "Weight of scores against diversity, 0 to below 1; by default 0.5 for mmr and dpp, else 0.03.",
        least=0,
    )
    bits: int = option(BITS, "Bits per signature, 1 to 256.", least=1, most=MAX_BITS, flags=("--bits", "-b"))
    seed: int = seed_option("Seed for the hyperplanes.")

    def resolve(self) -> "SelectConfig":
        """The same with everything checked and decided: no `auto`, no None."""
        method = check_method(self.method)
        check_options(self)
        if method == AUTO:
            by_rule = self.strict or self.min_hamming is not None
            method = "signatures" if by_rule else "representatives"
        weight = self.score_weight
        if weight is None:
            weight = _SCORE_WEIGHTS.get(method, _LOW_SCORE_WEIGHT)
        if weight >= 1:
            raise UsageError(f"score_weight is {weight}", hint="choose from 0 (diversity alone) to below 1")
        return SelectConfig(
            k=self.k,
            method=method,
            min_hamming=default_min_hamming(self.bits) if self.min_hamming is None else self.min_hamming,
            strict=self.strict,
            score_weight=weight,
            bits=self.bits,
            seed=self.seed,
        )

    @property
    def same_cosine(self) -> float:
        """The cosine from which two candidates say the same, by the rule that `resolve` decided."""
        from cod3s.signatures import cosine_estimate  # it needs NumPy

        return float(cosine_estimate(self.hamming, self.bits))

    @property
    def hamming(self) -> int:
        """The distance in bits up to which two candidates say the same, as `resolve` decided it."""
        return self.min_hamming or 0

    @property
    def weight(self) -> float:
        """The score weight that `resolve` decided."""
        return self.score_weight or 0.0

    def to_settings(self) -> dict[str, str | int | float | bool]:
        """What a selection reports, so that it can be repeated."""
        used = {"score_weight": self.weight} if self.method not in ("signatures", "kmedoids") else {}
        return {"bits": self.bits, "min_hamming": self.hamming, "seed": self.seed, **used}


def default_min_hamming(bits: int) -> int:
    """A quarter of the bits: cosines above about 0.7 count as the same (docs/select.md says why).

    The paper's 2 of 16 corresponds to a cosine of about 0.9.
    """
    return bits // 4


def check_method(method: str) -> str:
    """`method`, or an error if it is not one of METHODS."""
    return find_name("method", method, METHODS)
