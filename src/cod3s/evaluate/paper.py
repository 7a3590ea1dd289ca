"""The paper's published figures, to compare with ours; they come from its own models, data and encoder.

Weir, Sedoc and Van Durme, "COD3S: Diverse Generation with Discrete Semantic Signatures", EMNLP 2020. The figures
are in data/paper.tsv.
"""

import hashlib
from collections.abc import Iterable
from functools import cache

from cod3s.text import for_modelling
from cod3s.word_lists import data_rows

Published = dict[str, dict[str, dict[str, float]]]
"""System → figure → relation → value."""


def _read_tables() -> dict[str, Published]:
    tables: dict[str, Published] = {}
    for name, system, figure, effect, cause in data_rows("paper.tsv"):
        values = {"effect": float(effect), **({"cause": float(cause)} if cause else {})}
        tables.setdefault(name, {}).setdefault(system, {})[figure] = values
    return tables


def _printed_diversity(bleu1: float, bleu2: float, semantic: float) -> str:
    """100 - BLEU-1, 100 - BLEU-2 and SBERT distance, as printed."""
    return f"{bleu1:.1f} / {bleu2:.1f} / {semantic:.3f}".replace(" 0.", " .")


_TABLES = _read_tables()
DIVERSITY = {
    size: {
        system: {
            relation: _printed_diversity(*(figures[name][relation] for name in ("bleu1", "bleu2", "semantic")))
            for relation in ("effect", "cause")
        }
        for system, figures in _TABLES[f"diversity {size}"].items()
    }
    for size in (3, 10)
}
"""Set size → system → relation → figures as printed."""
DISTINCT_RELATION = "effect"
DISTINCT = {
    system: {threshold: values[DISTINCT_RELATION] for threshold, values in thresholds.items()}
    for system, thresholds in _TABLES["distinct"].items()
}
"""System → threshold → distinct effects among ten answers."""
PLAUSIBILITY = _TABLES["plausibility"]
PLAUSIBILITY_OF_GOLD = {label: figures["mean"] for label, figures in _TABLES["gold"].items()}
"""COPA's right and wrong alternatives: label → relation → mean."""


def is_copa_dev(sources: Iterable[tuple[str, str]]) -> bool:
    """Whether all sources, (relation, text), are of COPA's development set, whatever file they come from."""
    digests = [
        hashlib.sha256(f"{relation}\t{for_modelling(source)}".encode()).hexdigest()[:8]
        for relation, source in sources
    ]
    return bool(digests) and _copa_dev().issuperset(digests)


@cache
def _copa_dev() -> frozenset[str]:
    return frozenset(digest for (line,) in data_rows("copa-dev.tsv") for digest in line.split())
