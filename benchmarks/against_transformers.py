"""Ten answers of a bundle's language model against transformers' `generate` on the same weights, critic aside.

    python benchmarks/against_transformers.py [BUNDLE] [--rounds 2]

Both search the same signatures (a beam of 100 among signature tokens) and write in the same bins (beams of 8,
all bins of a source in one batch, with the cache). Ours runs as the product does; transformers gets both cores, in
float32 and in bfloat16. Ratios are of wall time; each round takes all three in turn, and the median counts.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch

from cod3s import load
from cod3s.decode.config import DEFAULT
from cod3s.decode.sentences import write
from cod3s.decode.signatures import choose_signatures
from cod3s.model.engine import Request
from cod3s.model.restore import restore_llama
from cod3s.model.transformers_engine import forbid_others

BEAM = DEFAULT.with_values(signature_search="beam")  # a head has no peer in transformers
SOURCES = (
    ("the power went out during dinner", "effect"),
    ("the bus was late again", "effect"),
    ("the baby would not stop crying", "cause"),
    ("the shop closed early", "cause"),
)


def search_by_transformers(
    model: Any, prompts: Sequence[Sequence[int]], *, end: int, beam: int, max_tokens: int, only: Sequence[int] = ()
) -> None:
    """Search from all prompts, which have one length, in one batch."""
    rows = torch.tensor(prompts)
    processors = [lambda _, scores: forbid_others(scores, only)] if only else []
    with torch.inference_mode():
        model.generate(
            rows,
            attention_mask=torch.ones_like(rows),
            num_beams=beam,
            num_return_sequences=beam,
            max_new_tokens=max_tokens,
            min_new_tokens=max_tokens if only else 0,
            do_sample=False,
            early_stopping=True,
            eos_token_id=end,
            pad_token_id=end,
            logits_processor=processors,
        )


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", nargs="?")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    generator = load(options.bundle)
    folder, vocabulary = generator.folder / "models" / "shared", generator.models.vocabulary
    peers = {
        "float32": restore_llama(folder).eval(),
        "bfloat16": restore_llama(folder).eval().to(torch.bfloat16),
    }
    tokens = range(vocabulary.first_signature, len(vocabulary))
    groups = len(vocabulary.signature.groups)
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(options.rounds + 1):
        for source, relation in SOURCES:
            role = generator.models.sentence(relation)
            chosen, config = generator._configured(relation, None, "cod3s", BEAM)
            batch = generator._batch([(source, None)], relation, chosen, config)
            start = time.perf_counter()
            (signatures,) = choose_signatures(generator.models, batch)
            taken = {("signatures", "ours"): time.perf_counter() - start}
            requests = [role.request(source, role.words.encode_signature(row.signature)) for row in signatures]
            taken["sentences", "ours"] = timed(partial(write, role, [requests], batch.config))
            prompt: Callable[[Request], list[int]] = role.engine._prompt  # type: ignore[attr-defined]
            for name, model in peers.items():
                search = partial(search_by_transformers, model, end=vocabulary.end)
                start_prompt, prompts = [prompt(role.request(source))], [prompt(request) for request in requests]
                taken["signatures", name] = timed(
                    partial(search, start_prompt, beam=config.signature_beam, max_tokens=groups, only=tokens)
                )
                taken["sentences", name] = timed(partial(search, prompts, beam=config.beam, max_tokens=40))
            for key, seconds in taken.items():
                if number:  # the first round warms up
                    times[key].append(seconds)
    print("| stage | ours, s | transformers float32, s | ratio | bfloat16, s | ratio |\n|---|---|---|---|---|---|")
    totals: dict[str, float] = defaultdict(float)
    for stage in ("signatures", "sentences"):
        medians = {name: median(times[stage, name]) for name in ("ours", "float32", "bfloat16")}
        for name, value in medians.items():
            totals[name] += value
        print(row(stage, medians))
    print(row("both", totals))


def row(stage: str, seconds: dict[str, float]) -> str:
    ours = seconds["ours"]
    cells = [f"{seconds[name]:.2f} | {seconds[name] / ours:.1f}" for name in ("float32", "bfloat16")]
    return f"| {stage} | {ours:.2f} | {cells[0]} | {cells[1]} |"


if __name__ == "__main__":
    main()
