"""Nats per sentence of bundles on held-out pairs, without and with the target's true signature, and bits inferred.

    python benchmarks/held_out_nats.py corpus/ BUNDLE [BUNDLE ...] --pairs 300
    python benchmarks/held_out_nats.py copa-dev.xml BUNDLE [BUNDLE ...]

Every piece and the end count, so bundles with different vocabularies can be compared; ± is the standard error of
the difference from the first bundle. Bits are judged token by token, given the true tokens before; guessing takes
the commoner bit of these pairs. The pairs are those of a split of the corpus, or the premises of a set of
questions with their right alternatives; a bundle that was trained on another corpus may have seen some of them.
"""

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.corpus.questions import read_questions
from cod3s.decode.generator import Generator, load
from cod3s.decode.signatures import group_tokens
from cod3s.model.engine import Engine, Request
from cod3s.text import clean, for_modelling
from cod3s.train.pairs import Rows, read_rows

Nats = npt.NDArray[np.float64]  # of each pair


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs_from", type=Path, metavar="CORPUS|QUESTIONS")
    parser.add_argument("bundles", nargs="+", type=Path)
    parser.add_argument("--pairs", type=int, default=300, help="of each relation")
    parser.add_argument("--split", default="test", help="of a corpus")
    options = parser.parse_args()
    columns = ("bundle", "relation", "pairs", "p(target given source)", "with its signature", "bits inferred")
    print(f"| {' | '.join((*columns, 'by its head', 'guessed'))} |")
    print("|---|---|---|---|---|---|---|---|")
    first: dict[tuple[str, str], Nats] = {}
    for path in options.bundles:
        generator = load(path)
        for relation in generator.facts.models:
            rows = held_out(options.pairs_from, generator, relation, options.split).first(options.pairs)
            nats = {
                "plain": plain_nats(generator, relation, rows),
                "signed": signed_nats(generator, relation, rows),
            }
            cells = [describe(row, first.setdefault((relation, kind), row)) for kind, row in nats.items()]
            cells += [f"{bits_inferred(generator, relation, rows):.1%}", bits_of_head(generator, relation, rows)]
            cells += [f"{bits_guessed(rows):.1%}"]
            print(f"| {path.name} | {relation} | {len(rows.source)} | {' | '.join(cells)} |", flush=True)


def held_out(path: Path, generator: Generator, relation: str, split: str) -> Rows:
    """The pairs to score: a split of a corpus, or questions with their right alternatives."""
    if path.is_dir():
        return read_rows(path, relation, split)
    questions = [question for question in read_questions(path) if question.direction == relation]
    sources = [for_modelling(clean(question.premise)) for question in questions]
    targets = [for_modelling(clean(question.alternatives[question.answer or 0])) for question in questions]
    signatures = generator.signer.signatures(targets)
    return Rows(sources, targets, signatures, [""] * len(sources), [path.stem] * len(sources))


def describe(nats: Nats, first: Nats) -> str:
    """The mean, and how sure its difference from the first bundle is."""
    if nats is first:
        return f"{nats.mean():.2f}"
    return f"{nats.mean():.2f} ± {(nats - first).std(ddof=1) / np.sqrt(len(nats)):.2f}"


def plain_nats(generator: Generator, relation: str, rows: Rows) -> Nats:
    model = generator.models.plain(relation)
    return _nats(generator, rows, model.engine, [model.request(source) for source in rows.source])


def signed_nats(generator: Generator, relation: str, rows: Rows) -> Nats:
    model, vocabulary = generator.models.sentence(relation), generator.models.vocabulary
    requests = [
        model.request(source, vocabulary.encode_signature(signature))
        for source, signature in zip(rows.source, rows.signature, strict=True)
    ]
    return _nats(generator, rows, model.engine, requests)


def bits_inferred(generator: Generator, relation: str, rows: Rows) -> float:
    """The share of bits that the likeliest token has right, given the true tokens before it."""
    model = generator.models.signature(relation)
    signatures = [model.words.encode_signature(signature) for signature in rows.signature]
    right = total = 0
    for number, choices in enumerate(group_tokens(model.words)):
        requests = [
            model.request(source, signature[:number])
            for source, signature in zip(rows.source, signatures, strict=True)
        ]
        guesses = model.engine.weigh(requests, choices).argmax(axis=1)
        truth = np.array([choices.index(signature[number]) for signature in signatures])
        bits = int(np.log2(len(choices)))  # choices count upwards
        right += bits * len(truth) - int(np.bitwise_count(guesses ^ truth).sum())
        total += bits * len(truth)
    return right / total


def bits_of_head(generator: Generator, relation: str, rows: Rows) -> str:
    """The same by the bundle's head on the source's vector, if it has one."""
    head = generator.models.head(relation)
    if head is None:
        return "–"
    right = 0
    for vector, signature in zip(generator.signer.vectors(rows.source), rows.signature, strict=True):
        likely, start = head.likeliest(vector, 2**head.bits), 0
        for width in generator.models.vocabulary.signature.groups:
            totals: dict[str, float] = {}
            for guess, log_prob in likely:
                if guess.startswith(signature[:start]):
                    token = guess[start : start + width]
                    totals[token] = totals.get(token, 0.0) + float(np.exp(log_prob))
            best = max(totals, key=totals.__getitem__)
            right += sum(a == b for a, b in zip(best, signature[start : start + width], strict=True))
            start += width
    return f"{right / len(rows.source) / head.bits:.1%}"


def bits_guessed(rows: Rows) -> float:
    """The share of bits that equal the commoner one in their place."""
    shares = (np.array([[*signature] for signature in rows.signature]) == "1").mean(axis=0)
    return float(np.maximum(shares, 1 - shares).mean())


def _nats(generator: Generator, rows: Rows, engine: Engine, requests: list[Request]) -> Nats:
    targets = [generator.models.vocabulary.encode_text(target) for target in rows.target]
    return -np.array([score.log_prob for score in engine.score(requests, targets)])


if __name__ == "__main__":
    main()
