"""What a forced signature costs the engine: beams of eight tokens behind the signature's four, and behind none.

    python benchmarks/forced_prefix.py

Processor seconds on one core, the two taking turns, the best of three.
"""

from time import process_time

from cod3s.bundle import default_bundle
from cod3s.decode.models import open_models

SOURCE, BEAM, TOKENS, BINS = "the power went out during dinner", 40, 8, 5
TURNS = 3


def main() -> None:
    models = open_models(default_bundle(), threads=1)
    words, model = models.vocabulary, models.sentence("effect")
    signatures = [words.encode_signature(f"{number:016b}") for number in range(BINS)]
    asked = {
        "behind a signature": [model.request(SOURCE, signature) for signature in signatures],
        "behind none": [model.request(SOURCE) for _ in signatures],
    }
    text = [number for number in range(words.first_signature) if number != words.end]  # so that no text ends early
    seconds: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(TURNS):
        for name, requests in asked.items():
            start = process_time()
            model.engine.search(requests, beam=BEAM, max_tokens=TOKENS, only=text)
            seconds[name].append(process_time() - start)
    for name, own in seconds.items():
        print(f"{name}: {min(own):.2f} s")


if __name__ == "__main__":
    main()
