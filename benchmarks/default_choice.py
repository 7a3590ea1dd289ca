"""What the default's narrower beam and weighed choice bring and cost, beside other choices.

    python benchmarks/default_choice.py COPA_XML [BUNDLE]

Distinct answers of ten to COPA's premises (completed statements, cosine distance), by the encoder that also signed
and by one that had no part in it; the mean log-probability of the answers, how plausible the critic finds them,
and their cosine to the source; processor seconds per source.
"""

import sys
import time
from pathlib import Path

import numpy as np

from cod3s import load
from cod3s.corpus.questions import read_questions
from cod3s.decode.decode_config import DEFAULT
from cod3s.encode import Encoder, load_encoder
from cod3s.metrics.semantic import cosine_distances, distinct
from cod3s.records import AnswerSet
from cod3s.text import complete

FIRST, SOURCES = 100, 8  # premises that the tables of `cod3s evaluate --limit 100` do not use
ALL = DEFAULT.with_values(drop=False)
CHOICES = {
    "best score": ALL.with_values(faithful="none"),
    "nearest to its bin": ALL.with_values(faithful="rerank"),
    "weighed, beam 40": ALL.with_values(beam=40),
    "weighed (default)": ALL,
    "weighed, nothing recalled": ALL.with_values(recall=0),
}


def relevance(answers: AnswerSet, encoder: Encoder) -> float:
    source, *vectors = encoder.encode([answers.source, *answers.texts])
    return float(np.mean(np.array(vectors) @ source))


def count_distinct(answers: AnswerSet, template: str, encoder: Encoder, threshold: float) -> int:
    """How many of the completed statements do not paraphrase an earlier statement."""
    statements = [complete(template, answers.source, answer.text) for answer in answers]
    return len(distinct(cosine_distances(statements, encoder.encode(statements)), threshold)) if statements else 0


def main(questions: str, bundle: str | None = None) -> None:
    model, signed, other = load(bundle, threads=1), load_encoder("fast"), load_encoder("static")
    print("| relation | choice | distinct at .1 / .25 | by another encoder, .1 | forward | critic | cosine | s |")
    print("|---|---|---|---|---|---|---|---|")
    for relation, facts in model.facts.relations.items():
        premises = [
            question.premise for question in read_questions(Path(questions)) if question.direction == relation
        ]
        for name, options in CHOICES.items():
            start = time.process_time()
            sets = model.generate(premises[FIRST : FIRST + SOURCES], relation, options=options)
            seconds = (time.process_time() - start) / SOURCES
            counts = [
                np.mean([count_distinct(answers, facts["template"], encoder, threshold) for answers in sets])
                for encoder, threshold in ((signed, 0.1), (signed, 0.25), (other, 0.1))
            ]
            written = [answer for answers in sets for answer in answers]
            forward = np.mean([answer.forward for answer in written if answer.forward is not None])
            critic = np.mean([answer.plausibility or np.nan for answer in written])
            cosine = np.mean([relevance(answers, signed) for answers in sets])
            print(
                f"| {relation} | {name} | {counts[0]:.2f} / {counts[1]:.2f} | {counts[2]:.2f} | {forward:.2f}"
                f" | {critic:.3f} | {cosine:.3f} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
