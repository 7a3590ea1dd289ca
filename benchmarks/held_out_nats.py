"""Nats per sentence of bundles on the same held-out pairs, without and with the target's true signature.

    python benchmarks/held_out_nats.py corpus/ BUNDLE [BUNDLE ...] --pairs 300

Every piece and the end count, so bundles with different vocabularies can be compared. The pairs are those of the
corpus's test split; a bundle that was trained on another corpus may have seen some of them.
"""

import argparse
from pathlib import Path
from statistics import mean

from cod3s.decode.generator import Generator, load
from cod3s.model.engine import Engine, Request
from cod3s.train.pairs import Rows, read_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("bundles", nargs="+", type=Path)
    parser.add_argument("--pairs", type=int, default=300, help="of each relation")
    options = parser.parse_args()
    print("| bundle | relation | pairs | p(target given source) | with its signature |\n|---|---|---|---|---|")
    for path in options.bundles:
        generator = load(path)
        for relation in generator.facts.models:
            rows = read_rows(options.corpus, relation, "test").first(options.pairs)
            plain, signed = plain_nats(generator, relation, rows), signed_nats(generator, relation, rows)
            print(f"| {path.name} | {relation} | {len(rows.source)} | {plain:.2f} | {signed:.2f} |")


def plain_nats(generator: Generator, relation: str, rows: Rows) -> float:
    model = generator.models.plain(relation)
    return _nats(generator, rows, model.engine, [model.request(source) for source in rows.source])


def signed_nats(generator: Generator, relation: str, rows: Rows) -> float:
    model, vocabulary = generator.models.sentence(relation), generator.models.vocabulary
    requests = [
        model.request(source, vocabulary.encode_signature(signature))
        for source, signature in zip(rows.source, rows.signature, strict=True)
    ]
    return _nats(generator, rows, model.engine, requests)


def _nats(generator: Generator, rows: Rows, engine: Engine, requests: list[Request]) -> float:
    targets = [generator.models.vocabulary.encode_text(target) for target in rows.target]
    return -mean(score.log_prob for score in engine.score(requests, targets))


if __name__ == "__main__":
    main()
