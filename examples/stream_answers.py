"""Print answers as they are written: python examples/stream_answers.py "the harbour froze" """

import sys

import cod3s
from cod3s.records import AnswerMade, SignaturesChosen


def main() -> None:
    source = sys.argv[1] if len(sys.argv) > 1 else "the harbour froze"
    for event in cod3s.load().stream(source, relation="effect", k=3):
        if isinstance(event, SignaturesChosen):
            print(f"writing in {len(event.signatures)} bins ...")
        elif isinstance(event, AnswerMade):
            print(f"{event.answer.signature}  {event.answer.text}", flush=True)


if __name__ == "__main__":
    main()
