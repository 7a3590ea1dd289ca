"""Compare the strategies of `cod3s diversify` at equal numbers of tokens on 20 prompts.

    python tests/causal_server.py FOLDER --port 8011 [--bfloat16]
    python benchmarks/diversify_strategies.py --server http://127.0.0.1:8011/v1 --model NAME [--tokens 600]

Every way may spend the same tokens per prompt, prompts and answers together. A strategy stops at ten answers that
lie apart, or when the tokens are spent; plain sampling keeps its first ten. Two answers are equivalent when the
cosine of their vectors (--judge) is above 0.7: `classes` counts the classes among the ten, `utility` discounts
repeats (`cod3s.metrics.novelty`). Neither figure sees whether an answer is true or makes sense.
"""

import argparse
import json
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
Way = Callable[[CompletionServer, str, int, int], Answers]


def plain(temperature: float) -> Way:
    """Sample until the tokens are spent, and keep the first k answers."""

    def ask(server: CompletionServer, prompt: str, k: int, tokens: int) -> Answers:
        texts: list[str] = []
        start = server.tokens_spent().total
        while server.tokens_spent().total - start < tokens and len(texts) < k:
            texts += [str(text) for text in server.adjusted(temperature=temperature)(prompt)]
        return [text for text in texts if text.strip()][:k]

    return ask


def by_strategy(strategy: str) -> Way:
    def ask(server: CompletionServer, prompt: str, k: int, tokens: int) -> Answers:
        try:
            answers = cod3s.diversify(
                server, prompt, k, strategy=strategy, budget=100, token_budget=tokens, min_gain=0
            )
        except Cod3sError as error:
            if error.__cause__ is not None:  # the server did not answer
                raise
            return []  # it did, but not in the form that the strategy asked for
        return list(answers.texts)

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
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--max-tokens", type=int, default=24)
    parser.add_argument("--temperature", type=float, default=1.0, help="of plain sampling and of every strategy")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--judge", default="fast")
    parser.add_argument(
        "--answers", type=Path, default=Path("strategies.jsonl"), help="kept: a stopped run continues from here"
    )
    options = parser.parse_args()
    ways = {f"temperature {options.temperature:g}": plain(options.temperature), "temperature 1.2": plain(1.2)}
    ways |= {strategy: by_strategy(strategy) for strategy in STRATEGIES}
    write_answers(ways, options)
    judge = load_encoder(options.judge)
    print(
        f"{options.prompts} prompts, {options.tokens} tokens each | model {options.model} | "
        f"temperature {options.temperature:g} | judge {judge.id} | same above cosine {SAME} | patience {PATIENCE}"
    )
    print(f"{'way':18}{'answers':>9}{'classes':>9}{'utility':>9}{'tokens':>9}")
    records = read_answers(options.answers)
    for name in ways:
        rows = [figures(records[name, prompt], options.k, judge) for prompt in PROMPTS[: options.prompts]]
        means = np.mean(rows, axis=0)
        print(f"{name:18}{means[0]:9.1f}{means[1]:9.2f}{means[2]:9.3f}{means[3]:9.0f}")


def write_answers(ways: dict[str, Way], options: argparse.Namespace) -> None:
    """Add what the file of answers does not hold yet, one prompt after the other by all ways."""
    written = read_answers(options.answers)
    for number, prompt in enumerate(PROMPTS[: options.prompts]):
        for name, way in ways.items():
            if (name, prompt) in written:
                continue
            server = CompletionServer(
                options.server,
                options.model,
                samples=4,
                max_tokens=options.max_tokens,
                temperature=options.temperature,
                chat=True,
                timeout=600,
                seed=1000 * number,
            )
            texts = way(server, prompt, options.k, options.tokens)
            record = {"way": name, "prompt": prompt, "answers": texts, "tokens": server.tokens_spent().total}
            with options.answers.open("a", encoding="utf-8") as out:
                out.write(json.dumps(record) + "\n")


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
