"""Compare the strategies of `cod3s diversify` at equal numbers of tokens on 20 prompts.

    python tests/causal_server.py FOLDER --port 8011 [--bfloat16]
    python benchmarks/diversify_strategies.py --server http://127.0.0.1:8011/v1 --model NAME [--tokens 600]
        [--input novelty-prompts.jsonl] [--to-read sample.tsv]

Every way may spend the same tokens per prompt, requests and answers together. A strategy stops at ten answers that
differ, or when the tokens are spent; plain sampling keeps its first ten. Two answers are equivalent if the cosine
of their vectors (--judge) is above 0.7: `classes` counts the classes among the ten, `utility` discounts repeats
(`cod3s.metrics.novelty`). Neither figure sees whether an answer is true or makes sense: --to-read writes random
answers without their origin, for strict readers, and the origins beside them in a file of their own.
"""

import argparse
import asyncio
import json
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cod3s
from cod3s.ask import STRATEGIES, CompletionServer
from cod3s.encode import Encoder, load_encoder
from cod3s.errors import Cod3sError
from cod3s.metrics.novelty import PATIENCE, distinct_classes, equivalence_classes, utility
from cod3s.metrics.semantic import cosine_distances
from cod3s.text import for_embedding

PROMPTS = (
    "Name one use for a brick.",
    "Suggest a name for a small bakery.",
    "Give one reason to learn to swim.",
    "What could a robot do in a garden?",
    "Write one sentence about a lost umbrella.",
    "Name something you can do on a rainy Sunday.",
    "Why might a train be late?",
    "Suggest a gift for a grandmother.",
    "Invent a rule for a library.",
    "What happens when a city has no cars?",
    "Name one animal and say what it fears.",
    "How can a village save water?",
    "Give a title for a story about the moon.",
    "What would you pack for a week in the mountains?",
    "Suggest a topic for a school project.",
    "Why do people move to another country?",
    "Describe a strange hat in one sentence.",
    "What could go wrong at a picnic?",
    "Name one way to cook potatoes.",
    "Give one piece of advice to a new teacher.",
)
SAME = 0.7  # cosine of the answers alone; completed statements share their source, so `evaluate` asks for 0.9
Answers = list[str]
Way = Callable[[CompletionServer, str, int, int], tuple[Answers, int]]
"""Asks a server for k answers within some tokens; the answers, and the tokens that they took."""


def plain(temperature: float) -> Way:
    """Sample until the tokens are spent, and keep the first k answers."""

    def ask(server: CompletionServer, prompt: str, k: int, tokens: int) -> tuple[Answers, int]:
        return asyncio.run(_sample(server, prompt, k, tokens))

    async def _sample(server: CompletionServer, prompt: str, k: int, tokens: int) -> tuple[Answers, int]:
        texts: list[str] = []
        spent = 0
        while spent < tokens and len(texts) < k:
            reply = await server.ask(prompt, temperature=temperature)
            texts += [text for text in reply.texts if text.strip()]
            spent += reply.tokens.total if reply.tokens else 0
        await server.aclose()
        return texts[:k], spent

    return ask


def by_strategy(strategy: str) -> Way:
    def ask(server: CompletionServer, prompt: str, k: int, tokens: int) -> tuple[Answers, int]:
        try:
            answers = cod3s.diversify(
                server, prompt, k, strategy=strategy, budget=100, token_budget=tokens, min_gain=0
            )
        except Cod3sError as error:
            if error.__cause__ is not None:  # the server did not answer
                raise
            return [], tokens  # it did, but not in the form that the strategy asked for
        return list(answers.texts), answers.tokens.total if answers.tokens else 0

    return ask


def classes(texts: Answers, encoder: Encoder) -> list[int]:
    """The number of the class of each answer."""
    if not texts:
        return []
    forms = [for_embedding(text) for text in texts]
    return equivalence_classes(cosine_distances(forms, encoder.encode(forms)), 1 - SAME)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=600, help="per prompt and way")
    parser.add_argument(
        "--input", type=Path, help="JSON lines with a field `prompt`, instead of the 20 prompts here"
    )
    parser.add_argument("--prompts", type=int, default=len(PROMPTS), help="how many, spread evenly")
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    parser.add_argument("--max-tokens", type=int, default=24)
    parser.add_argument("--temperature", type=float, default=1.0, help="of plain sampling and of every strategy")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--judge", default="fast")
    parser.add_argument(
        "--answers", type=Path, default=Path("strategies.jsonl"), help="kept: a stopped run continues from here"
    )
    parser.add_argument("--to-read", type=Path, help="write two random answers per prompt and way, shuffled")
    options = parser.parse_args()
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # which tells of every request
    prompts = read_prompts(options.input, options.prompts)
    ways = {f"temperature {options.temperature:g}": plain(options.temperature), "temperature 1.2": plain(1.2)}
    ways |= {strategy: by_strategy(strategy) for strategy in options.strategies}
    write_answers(ways, prompts, options)
    records = read_answers(options.answers)
    if options.to_read:
        write_sample([records[name, prompt] for name in ways for prompt in prompts], options.to_read)
    judge = load_encoder(options.judge)
    print(
        f"{len(prompts)} prompts, {options.tokens} tokens each | model {options.model} | "
        f"temperature {options.temperature:g} | judge {judge.id} | same above cosine {SAME} | patience {PATIENCE}"
    )
    print(f"{'way':18}{'answers':>9}{'classes':>9}{'utility':>9}{'tokens':>9}")
    for name in ways:
        means = np.mean([figures(records[name, prompt], options.k, judge) for prompt in prompts], axis=0)
        print(f"{name:18}{means[0]:9.1f}{means[1]:9.2f}{means[2]:9.3f}{means[3]:9.0f}")


def read_prompts(file: Path | None, count: int) -> list[str]:
    """Prompts that are spread evenly over the file, or those of this script."""
    prompts = list(PROMPTS)
    if file is not None:
        prompts = [json.loads(line)["prompt"] for line in file.read_text(encoding="utf-8").splitlines()]
    count = min(count, len(prompts))
    return [prompts[number * len(prompts) // count] for number in range(count)]


def write_answers(ways: dict[str, Way], prompts: list[str], options: argparse.Namespace) -> None:
    """Add what the file of answers does not hold yet, one prompt after the other by all ways."""
    written = read_answers(options.answers)
    for number, prompt in enumerate(prompts):
        for name, way in ways.items():
            if (name, prompt) in written:
                continue
            server = CompletionServer(
                options.server,
                options.model,
                samples=4,
                max_tokens=options.max_tokens,
                temperature=options.temperature,
                timeout=600,
                sampling_seed=1000 * number,
            )
            texts, tokens = way(server, prompt, options.k, options.tokens)
            record = {"way": name, "prompt": prompt, "answers": texts, "tokens": tokens}
            with options.answers.open("a", encoding="utf-8") as out:
                out.write(json.dumps(record) + "\n")


def write_sample(records: list[dict[str, Any]], file: Path) -> None:
    """Two random answers of each record without their origin, and the origins in a file beside it."""
    draw = random.Random(1)
    rows = [
        (record["prompt"], " ".join(answer.split()), record["way"])
        for record in records
        for answer in draw.sample(record["answers"], min(2, len(record["answers"])))
    ]
    draw.shuffle(rows)
    lines = [f"{number}\t{prompt}\t{answer}\t\n" for number, (prompt, answer, _) in enumerate(rows)]
    file.write_text("id\tprompt\tanswer\tfitting\n" + "".join(lines), encoding="utf-8")
    origins = "".join(f"{number}\t{way}\n" for number, (_, _, way) in enumerate(rows))
    file.with_suffix(".origins.tsv").write_text(f"id\tway\n{origins}", encoding="utf-8")


def read_answers(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The records by way and prompt."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    records = [json.loads(line) for line in lines]
    return {(record["way"], record["prompt"]): record for record in records}


def figures(record: dict[str, Any], k: int, judge: Encoder) -> tuple[float, ...]:
    """Answers, classes, utility and tokens of one way on one prompt."""
    numbers = classes(record["answers"], judge)
    return len(numbers), distinct_classes(numbers), utility(numbers, k), record["tokens"]


if __name__ == "__main__":
    main()
