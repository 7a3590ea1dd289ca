"""Do the metrics see meaning? Sets of answers that differ in wording only, against sets that differ in meaning.

    python tests/meaning_sets.py

prints the table of docs/measured/metrics.md: for each metric the chance that a set of the second kind scores above
one of the first. The sets (meaning_sets.tsv) were written for this purpose: about half of the sources stand in
both kinds, most of the rewordings share few words, and some sets of different meaning share most of theirs.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from scipy.stats import mannwhitneyu

from cod3s.corpus.relations import TEMPLATES
from cod3s.encode import Encoder, load_encoder
from cod3s.metrics.lexical import bleu_diversity, distinct_ngrams, self_bleu
from cod3s.metrics.semantic import Distances, cosine_distances, mean_distance, vendi_score
from cod3s.text import complete, for_embedding

SETS = Path(__file__).with_suffix(".tsv")


@dataclass(frozen=True)
class Written:
    kind: str  # what differs: wording or meaning
    relation: str
    source: str
    texts: tuple[str, ...]


def read_sets() -> list[Written]:
    with SETS.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return [Written(row["kind"], row["relation"], row["source"], (row["a"], row["b"], row["c"])) for row in rows]


def metrics(sets: list[Written], encoders: list[Encoder]) -> dict[str, list[float]]:
    """Each metric's value for every set, higher for more diversity."""
    found = {
        "100 - BLEU-1": [bleu_diversity(one.texts, 1) for one in sets],
        "100 - BLEU-2": [bleu_diversity(one.texts, 2) for one in sets],
        "distinct-1": [distinct_ngrams(one.texts, 1) for one in sets],
        "distinct-2": [distinct_ngrams(one.texts, 2) for one in sets],
        "100 - self-BLEU": [100 - self_bleu(one.texts) for one in sets],
    }
    for encoder in encoders:
        answers = all_distances(encoder, [one.texts for one in sets])
        statements = all_distances(
            encoder,
            [[complete(TEMPLATES[one.relation], one.source, text) for text in one.texts] for one in sets],
        )
        name = encoder.id.partition("@")[0]
        found[f"cosine distance, {name}"] = [mean_distance(own) for own in answers]
        found[f"cosine distance of statements, {name}"] = [mean_distance(own) for own in statements]
        found[f"Vendi score, {name}"] = [vendi_score(own) for own in answers]
    return found


def all_distances(encoder: Encoder, sets: Sequence[Sequence[str]]) -> list[Distances]:
    vectors = encoder.encode([for_embedding(text) for texts in sets for text in texts])
    ends = list(accumulate(map(len, sets)))
    return [
        cosine_distances(texts, vectors[end - len(texts) : end]) for texts, end in zip(sets, ends, strict=True)
    ]


def separation(sets: list[Written], values: list[float]) -> float:
    """The area under the ROC curve."""
    meaning, wording = (
        [value for one, value in zip(sets, values, strict=True) if one.kind == kind]
        for kind in ("meaning", "wording")
    )
    return float(mannwhitneyu(meaning, wording).statistic / (len(meaning) * len(wording)))


def main() -> None:
    sets = read_sets()
    print("| metric | AUC |\n|---|---|")
    for name, values in metrics(sets, [load_encoder("fast"), load_encoder("static")]).items():
        print(f"| {name} | {separation(sets, values):.3f} |")


if __name__ == "__main__":
    main()
