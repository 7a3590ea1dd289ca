"""What the word graph of a prepared corpus knows: how fast it is built, whom it helps, how often it is right.

    python benchmarks/word_graph.py CORPUS [COPA]

A hit is a held-out target that holds a form of one of the ten words looked up for its source; beside it stand the
hits of the ten most frequent words of all targets. COPA is a file of questions: how many premises have ten words?
"""

import sys
import tempfile
from pathlib import Path

from side_by_side import Clock

from cod3s.corpus.questions import read_questions
from cod3s.decode.baselines.word_graph import WordGraph, open_word_graph
from cod3s.decode.baselines.word_graph.build import DOUBT, build_word_graph
from cod3s.text import words
from cod3s.train.pairs import Rows, read_rows

FREQUENT = "SELECT base FROM words GROUP BY base ORDER BY sum(targets) DESC LIMIT 10"
FORMS = "SELECT word FROM words WHERE base = ?"


def hits(rows: Rows, graph: WordGraph, balance: float | None) -> float:
    """The share of pairs whose target holds a word looked up for its source."""
    number = 0
    for source, target in zip(rows.source, rows.target, strict=True):
        forms = {form for word in graph.related(source, 10, balance) for form in word.forms}
        number += bool(forms & set(words(target)))
    return number / len(rows.target)


def frequent_hits(rows: Rows, graph: WordGraph) -> float:
    bases = graph._database.execute(FREQUENT).fetchall()
    forms = {form for base in bases for (form,) in graph._database.execute(FORMS, base)}
    return sum(bool(forms & set(words(target))) for target in rows.target) / len(rows.target)


def main(corpus: Path, questions: str | None) -> None:
    print(
        "| relation | doubt | built in s (processor s) | MB | forward | both alike | backward | frequent words |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for relation in ("effect", "cause"):
        rows = read_rows(corpus, relation, "dev")
        for doubt in (0.0, DOUBT):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "words.sqlite"
                clock = Clock()
                build_word_graph(corpus, relation, path, doubt=doubt)
                wall, processor = clock.lap()
                graph = open_word_graph(path)
                forward = 0.0 if graph.facts.source_is_cause else 1.0
                shares = [hits(rows, graph, balance) for balance in (forward, 0.5, 1 - forward)]
                figures = " | ".join(f"{share:.3f}" for share in [*shares, frequent_hits(rows, graph)])
                size = path.stat().st_size / 1e6
                print(
                    f"| {relation} | {doubt:.0f} | {wall:.0f} ({processor:.0f}) | {size:.1f} | {figures} |",
                    flush=True,
                )
                if questions and doubt == DOUBT:
                    asked = [question for question in read_questions(questions) if question.direction == relation]
                    known = [len(graph.related(question.premise, 10)) for question in asked]
                    print(
                        f"{relation}: {known.count(10)} of {len(asked)} premises have ten, {known.count(0)} none"
                    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
