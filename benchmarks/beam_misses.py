"""How often a beam over signatures misses the true best ones: a bundle in, a table out.

    python benchmarks/beam_misses.py bundle/ --sources 20

For each source the exact search gives the true n best; the beam's list of the same length is held against it.
"""

import argparse
from pathlib import Path
from time import process_time

from side_by_side import everyday_sentences

from cod3s.decode.decode_config import DecodeConfig
from cod3s.decode.models import open_models
from cod3s.decode.signatures import find_signatures
from cod3s.text import for_modelling


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--relation", default="effect")
    parser.add_argument("--sources", type=int, default=20)
    parser.add_argument("--best", type=int, default=100)
    arguments = parser.parse_args()
    models = open_models(arguments.bundle)
    model = models.signature(arguments.relation)
    sources = [for_modelling(text) for text in everyday_sentences(arguments.sources)]
    tokens, seconds = {}, {}
    for search in ("beam", "exact"):
        start = process_time()
        config = DecodeConfig(k=1, signature_search=search, signature_beam=arguments.best)
        rows = find_signatures(model, sources, config)
        seconds[search] = (process_time() - start) / len(sources)
        tokens[search] = [[signature.tokens for signature in row] for row in rows]
    pairs = list(zip(tokens["beam"], tokens["exact"], strict=True))
    print(f"sources {len(sources)} | best {arguments.best} | bundle {models.facts.name}")
    print("| true best | missed by the beam | sources with a miss |\n|---|---|---|")
    for first in (1, 3, 10, arguments.best):
        missed = [len(set(exact[:first]) - set(beam)) for beam, exact in pairs]
        share = sum(missed) / (first * len(pairs))
        print(f"| {first} | {100 * share:.1f} % | {sum(map(bool, missed))} of {len(pairs)} |")
    print(f"processor seconds per source: beam {seconds['beam']:.2f}, exact {seconds['exact']:.2f}")


if __name__ == "__main__":
    main()
