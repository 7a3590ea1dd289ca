"""Count what the gate stops and what the check of statements notices, on sentences that nothing was fitted on.

    python benchmarks/trust_sets.py SETS [--bundle FOLDER] [--answers answers.tsv.gz]

SETS is a folder with harmful.tsv, harmless.tsv and everyday.txt (for the gate), and with foreign.tsv, odd.tsv and
nonstatement.tsv (for the check); a tab separates a text from its group. Only counts are printed, so that nobody
reads the sentences. From the answers, 2,000 sources of the splits dev and test are drawn.
"""

import argparse
import csv
import gzip
import random
from collections import Counter
from pathlib import Path

from cod3s.bundle.folder import default_bundle
from cod3s.encode import load_encoder
from cod3s.trust.gate import open_gate
from cod3s.trust.statements import judge_form

DRAWN = 2000
SEED = 1234


def read_set(path: Path) -> list[tuple[str, str]]:
    """Texts with their groups."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [(text, group) for text, _, group in (line.partition("\t") for line in lines)]


def draw_sources(path: Path) -> list[tuple[str, str]]:
    """Random sources of the answers' splits dev and test."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        sources = {row["source"] for row in rows if row["split"] in ("dev", "test")}
    return [(source, "") for source in random.Random(SEED).sample(sorted(sources), DRAWN)]


def count(name: str, rows: list[tuple[str, str]], results: list[str], right: set[str]) -> None:
    """Print how many results are right, in all and per group, and how often there was each result."""
    hits = [result in right for result in results]
    print(f"{name}: {sum(hits)} of {len(rows)} ({sum(hits) / len(rows):.1%}); {dict(Counter(results))}")
    groups = sorted({group for _, group in rows})
    if len(groups) > 1:
        sizes, right_ones = Counter(group for _, group in rows), Counter[str]()
        right_ones.update(group for (_, group), hit in zip(rows, hits, strict=True) if hit)
        print("   " + ", ".join(f"{group} {right_ones[group]}/{sizes[group]}" for group in groups))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--answers", type=Path)
    options = parser.parse_args()
    encoder = load_encoder("fast")
    gate = open_gate(options.bundle or default_bundle(), encoder.id)
    sets = {name: read_set(options.sets / name) for name in ("harmful.tsv", "harmless.tsv", "everyday.txt")}
    if options.answers:
        sets["dev and test sources"] = draw_sources(options.answers)
    if gate:
        for name, rows in sets.items():
            vectors = encoder.encode([text for text, _ in rows])
            verdicts = gate.judge(vectors, sensitive=False, careful_floor=1.0)
            count(f"gate, {name}: noticed", rows, [verdict.action for verdict in verdicts], {"careful", "refuse"})
    right_ones = {"foreign.tsv": False, "nonstatement.tsv": False, "odd.tsv": True, "everyday.txt": True}
    for name, right in right_ones.items():
        rows = read_set(options.sets / name)
        forms = [judge_form(text).form for text, _ in rows]
        wanted = {"statement"} if right else {"foreign", "question", "command", "other"}
        count(f"check, {name}: {'passed' if right else 'noticed'}", rows, list(forms), wanted)


if __name__ == "__main__":
    main()
