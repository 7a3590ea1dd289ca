"""Compare the strategies of `cod3s diversify` at equal numbers of tokens on 20 prompts.

    python tests/causal_server.py FOLDER --port 8011
    python benchmarks/diversify_strategies.py --server http://127.0.0.1:8011/v1 --model NAME [--tokens 600]

Every way may spend the same tokens per prompt, prompts and answers together. A strategy stops at ten answers that
lie apart, or when the tokens are spent; plain sampling keeps its first ten. Two answers are equivalent when the
cosine of their vectors (--judge) is at least 0.7, joined in the order of the list: `classes` counts them among
the ten. `utility` discounts repeats as NoveltyBench does: patience 0.8, an answer of a class that was heard
before is worth nothing, and all answers are taken to be equally good. Neither figure sees whether an answer is
true or makes sense.
"""

import argparse
from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np

import cod3s
from cod3s.asking import STRATEGIES, CompletionServer
from cod3s.encode import Encoder, load_encoder
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
SAME = 0.7  # cosine
PATIENCE = 0.8
Answers = Sequence[str]
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
        found = cod3s.diversify(server, prompt, k, strategy=strategy, budget=100, token_budget=tokens, min_gain=0)
        return list(found.texts)

    return ask


def classes(texts: Answers, encoder: Encoder) -> list[int]:
    """The number of the class of each answer: that of the first earlier one that says the same, else a new one."""
    if not texts:
        return []
    vectors = encoder.encode([for_embedding(text) for text in texts])
    numbers: list[int] = []
    leaders: list[int] = []
    for row, vector in enumerate(vectors):
        cosines = vectors[leaders] @ vector if leaders else np.zeros(0)
        if len(cosines) and cosines.max() >= SAME:
            numbers.append(int(cosines.argmax()))
        else:
            numbers.append(len(leaders))
            leaders.append(row)
    return numbers


def utility(numbers: Sequence[int], k: int) -> float:
    """The share of what k answers of k classes would be worth to a reader who goes on with probability 0.8."""
    worth = [PATIENCE**row if number not in numbers[:row] else 0.0 for row, number in enumerate(numbers)]
    return sum(worth) / sum(PATIENCE**row for row in range(k))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=600, help="per prompt and way")
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--max-tokens", type=int, default=24)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--judge", default="fast")
    options = parser.parse_args()
    judge = load_encoder(options.judge)
    ways = {"plain sampling": plain(1.0), "temperature 1.2": plain(1.2)}
    ways |= {strategy: by_strategy(strategy) for strategy in STRATEGIES}
    print(
        f"{options.prompts} prompts, {options.tokens} tokens each | model {options.model} | judge {judge.id} | "
        f"same from cosine {SAME} | patience {PATIENCE}"
    )
    print(f"{'way':18}{'answers':>9}{'classes':>9}{'utility':>9}{'tokens':>9}{'seconds':>9}")
    for name, way in ways.items():
        rows = []
        for number, prompt in enumerate(PROMPTS[: options.prompts]):
            server = CompletionServer(
                options.server, options.model, samples=4, max_tokens=options.max_tokens, chat=True, timeout=600,
                seed=1000 * number,
            )  # fmt: skip
            start = perf_counter()
            texts = way(server, prompt, options.k, options.tokens)
            numbers = classes(texts, judge)
            seconds, spent = perf_counter() - start, server.tokens_spent().total
            rows.append((len(texts), len(set(numbers)), utility(numbers, options.k), spent, seconds))
        means = np.mean(rows, axis=0)
        print(f"{name:18}{means[0]:9.1f}{means[1]:9.2f}{means[2]:9.3f}{means[3]:9.0f}{means[4]:9.1f}", flush=True)


if __name__ == "__main__":
    main()
