"""The paper's published figures, to compare with ours; they come from its own models, data and encoder.

Weir, Sedoc and Van Durme, "COD3S: Diverse Generation with Discrete Semantic Signatures", EMNLP 2020; COPA dev,
100 sources per relation. System names are ours.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedDiversity:
    """100 - BLEU-1, 100 - BLEU-2 and SBERT distance, as printed."""

    bleu1: float
    bleu2: float
    semantic: float

    def __str__(self) -> str:
        return f"{self.bleu1:.1f} / {self.bleu2:.1f} / {self.semantic:.3f}".replace(" 0.", " .")


def _row(effect: tuple[float, float, float], cause: tuple[float, float, float]) -> dict[str, PublishedDiversity]:
    return {"effect": PublishedDiversity(*effect), "cause": PublishedDiversity(*cause)}


DIVERSITY = {
    # Table 2, upper.
    "3": {
        "s2s": _row((50.9, 61.2, 0.397), (58.1, 71.4, 0.464)),
        "s2s-sigs": _row((46.7, 58.5, 0.323), (50.7, 65.3, 0.326)),
        "dpc": _row((49.2, 58.1, 0.389), (57.4, 67.0, 0.425)),
        "s2s-rs": _row((83.6, 95.7, 0.735), (78.5, 91.3, 0.639)),
        "cod3s-beam-beam": _row((79.1, 93.2, 0.618), (70.6, 84.8, 0.625)),
        "cod3s-beam-mmi": _row((77.0, 91.9, 0.634), (72.2, 85.0, 0.613)),
        "cod3s-mmi-mmi": _row((73.6, 87.9, 0.608), (72.0, 85.3, 0.586)),
        "cod3s-mmi-mmi-rs": _row((84.2, 97.1, 0.657), (76.6, 89.4, 0.617)),
        "cod3s-mmi-mmi-rs-no-hamming": _row((81.1, 93.9, 0.620), (70.4, 84.2, 0.508)),
    },
    # Table 5, lower.
    "10": {
        "s2s": _row((59.9, 71.5, 0.466), (62.5, 76.7, 0.509)),
        "s2s-sigs": _row((52.4, 64.8, 0.360), (55.3, 70.0, 0.397)),
        "s2s-rs": _row((84.7, 96.9, 0.746), (83.8, 95.1, 0.693)),
        "cod3s-beam-beam": _row((81.7, 95.5, 0.658), (75.8, 89.6, 0.660)),
        "cod3s-beam-mmi": _row((78.5, 93.1, 0.653), (75.1, 89.2, 0.639)),
        "cod3s-mmi-mmi": _row((75.8, 90.6, 0.633), (74.3, 88.2, 0.612)),
        "cod3s-mmi-mmi-rs": _row((82.6, 96.1, 0.676), (78.2, 91.8, 0.647)),
        "cod3s-mmi-mmi-rs-no-hamming": _row((80.5, 93.8, 0.619), (72.5, 86.2, 0.544)),
    },
}
"""Set size → system → relation → figures."""

DISTINCT = {
    # Table 2, lower: effects only.
    "s2s": {"0": 10.0, "0.1": 6.40, "0.25": 4.52, "0.5": 2.85, "0.75": 1.70},
    "s2s-rs": {"0": 10.0, "0.1": 9.99, "0.25": 9.86, "0.5": 7.93, "0.75": 3.47},
    "cod3s-mmi-mmi-rs": {"0": 10.0, "0.1": 9.89, "0.25": 9.44, "0.5": 6.55, "0.75": 2.54},
}
"""System → threshold → distinct effects among ten answers."""
DISTINCT_RELATION = "effect"


def _both(effect: float, cause: float) -> dict[str, float]:
    return {"effect": effect, "cause": cause}


PLAUSIBILITY = {
    # Table 4 (figure 2): mean scores of 0 to 5 by four raters. DPC and S2S-RS had no likelihoods, so no top 1.
    "s2s": {"top1": _both(2.7, 2.5), "top3": _both(2.7, 2.4), "max3": _both(3.3, 3.2)},
    "dpc": {"top3": _both(3.1, 3.1), "max3": _both(3.7, 3.8)},
    "s2s-rs": {"top3": _both(2.6, 2.9), "max3": _both(3.2, 3.6)},
    "cod3s-beam-beam": {
        "top1": _both(2.3, 2.0),
        "top3": _both(2.3, 2.0),
        "max3": _both(3.1, 3.0),
        "max10": _both(3.7, 3.9),
        "best3of10": _both(3.0, 3.0),
    },
    "cod3s-mmi-mmi": {
        "top1": _both(2.4, 1.9),
        "top3": _both(2.5, 2.1),
        "max3": _both(3.2, 3.1),
        "max10": _both(3.8, 4.0),
        "best3of10": _both(3.3, 3.3),
    },
}
"""System → figure → relation → mean."""
PLAUSIBILITY_OF_GOLD = {"right": _both(4.2, 4.6), "wrong": _both(2.2, 2.3)}
"""COPA's right and wrong alternatives: label → relation → mean."""
