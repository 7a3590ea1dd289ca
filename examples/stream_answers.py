"""Print what is being done, and answers as soon as they are there: python examples/stream_answers.py "it rained"

With the bundle in the package, the answers come all at once at the end: the best are chosen from spare bins.
"""

import sys

import cod3s
from cod3s.records import AnswerMade, StageStarted


def main() -> None:
    source = sys.argv[1] if len(sys.argv) > 1 else "the harbour froze"
    for event in cod3s.load().stream(source, relation="effect", k=3, stages=True):
        if isinstance(event, StageStarted):
            print(f"{event} ...", flush=True)
        elif isinstance(event, AnswerMade):
            print(f"{event.answer.signature}  {event.answer.text}", flush=True)


if __name__ == "__main__":
    main()
