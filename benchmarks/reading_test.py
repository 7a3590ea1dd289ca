"""Ten answers to each of fifty sources, to be read: are they grammatical, and on topic?

    python benchmarks/reading_test.py [BUNDLE]

The first two of each relation are in docs/measured/default-bundle.md, with all their answers.
"""

import sys

from cod3s import load

SOURCES = {
    "effect": [
        "my neighbour bought a dog",
        "the child ate too many cherries",
        "she forgot her umbrella at work",
        "the bridge was closed for repairs",
        "the baker ran out of flour",
        "the power went out during dinner",
        "he lost his job",
        "the teacher praised the shy boy",
        "it snowed all night",
        "the cat knocked over the vase",
        "I missed the last train",
        "my phone fell into the lake",
        "the band played too loudly",
        "a stranger helped the old woman",
        "we got lost in the mountains",
        "the rent went up again",
        "she won the lottery",
        "the milk had gone sour",
        "the boy broke his leg",
        "our guests arrived two hours early",
        "the company hired a new manager",
        "he drank three cups of coffee",
        "the well dried up",
        "the nurse worked a double shift",
        "a tree fell on the road",
    ],
    "cause": [
        "he studied all night for the exam",
        "the old radio stopped working",
        "our flight was delayed by a storm",
        "the team won the final match",
        "she found a wallet on the street",
        "the baby started to cry",
        "I could not sleep",
        "the shop closed early",
        "he apologised to his sister",
        "the garden was full of weeds",
        "my hands were cold",
        "the audience laughed",
        "she moved to another city",
        "the soup tasted terrible",
        "they cancelled the picnic",
        "the dog hid under the bed",
        "I bought a new car",
        "the road was blocked",
        "he was late for the meeting",
        "the girl refused to eat her vegetables",
        "my back hurt",
        "the farmer sold his cows",
        "we stayed at home",
        "the police stopped the driver",
        "the window was broken",
    ],
}


def main(bundle: str | None = None) -> None:
    model = load(bundle)
    for relation, sources in SOURCES.items():
        for found in model.generate(sources, relation):
            print(f"**{relation.capitalize()}s of: {found.source}**\n")
            print("; ".join(answer.text for answer in found) + ".\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
