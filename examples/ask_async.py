"""Ask an asynchronous generator, four calls at a time, until three answers differ: python examples/ask_async.py

`ask` stands for a call to your own model; it waits a little and then answers.
"""

import asyncio
import random

import cod3s

ENDINGS = [
    "He called a locksmith.",
    "He phoned a locksmith.",
    "He slept in his car.",
    "The landlord let him in.",
    "He was late for work.",
]
draw = random.Random(1)


async def ask(prompt: str) -> str:
    await asyncio.sleep(0.01)
    return draw.choice(ENDINGS)


async def main() -> None:
    result = await cod3s.diversify_async(ask, "He lost his keys, so", k=3, concurrency=4)
    print(f"{result.calls} calls, stopped because: {result.stopped}")
    for text in result.texts:
        print(text)


if __name__ == "__main__":
    asyncio.run(main())
