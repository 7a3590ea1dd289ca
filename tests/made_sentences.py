"""Made-up sentences in any number, for what has to be encoded, cut into pieces or counted."""

import random

from cod3s.options import SEED

_WHO = ("the baker", "my neighbour", "a young nurse", "our old teacher", "the night guard", "she", "they", "I")
_DID = ("missed the bus", "found a wallet", "cooked too much rice", "fell asleep", "called the doctor", "won")
_WHERE = ("", "near the harbour", "at the end of a long and rather tiring week", "in spring", "by accident")
_WHY = ("", "and nobody noticed", "although the weather was fine and the road was clear", "so we went home")


def made_sentences(number: int) -> list[str]:
    """Sentences of 2 to about 25 words, always the same."""
    draw = random.Random(SEED)
    parts = (_WHO, _DID, _WHERE, _WHY)
    texts = (" ".join(filter(None, (draw.choice(part) for part in parts))) for _ in range(number))
    return [f"{text[0].upper()}{text[1:]} {draw.randrange(1000)} times." for text in texts]
