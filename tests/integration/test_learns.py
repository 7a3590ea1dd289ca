"""It learns: a made-up causal grammar, a tiny model, half a minute; held-out effects are among its answers."""

import random
from pathlib import Path

import pytest

from cod3s import load
from cod3s.bundle.export import export
from cod3s.corpus import prepare
from cod3s.corpus.manifest import PrepareConfig
from cod3s.train import PRESETS, train
from cod3s.train.pairs import read_rows

# Each cause has two effects, far apart in meaning. Who it happens to is free, and copied into the effect.
EVENTS = {
    "lost the house key": ("phoned a locksmith", "slept in the garden"),
    "missed the last bus": ("walked home in the dark", "paid for a taxi"),
    "won the singing contest": ("cried with joy", "bought a new piano"),
    "caught a bad cold": ("stayed in bed", "drank hot tea with honey"),
    "burned the dinner": ("ordered a pizza", "opened every window"),
    "broke a front tooth": ("saw the dentist", "ate only soup"),
}
JOBS = ["baker", "nurse", "guard", "pilot", "clerk", "farmer", "singer", "judge", "waiter", "plumber", "gardener"]
KINDS = ["old", "young", "tired", "happy", "quiet", "tall", "clever", "lazy", "proud", "shy", "brave", "gentle"]
FREE = [f"the {kind} {job}" for kind in KINDS for job in JOBS]


def grammar() -> str:
    draw = random.Random(7)
    rows = ["cause\teffect"]
    for who in FREE:
        for event in draw.sample(sorted(EVENTS), 3):
            rows.append(f"{who} {event}\t{who} {draw.choice(EVENTS[event])}")
    return "\n".join(rows) + "\n"


@pytest.mark.slow
def test_a_tiny_model_learns_signatures_and_effects(tmp_path: Path) -> None:
    """Chance: 12 effects in the grammar, and guessing the commoner bit of each place.

    The bounds leave room for other machines.
    """
    (tmp_path / "pairs.tsv").write_text(grammar())
    config = PrepareConfig(
        relation="effect", orders="all", filter="none", encoder="static", dev=60, test=0, held_out=0.15
    )
    prepare([str(tmp_path / "pairs.tsv")], str(tmp_path / "corpus"), config)
    preset = PRESETS["tiny"].with_values(epochs=35, evaluate_every=300, learning_rate=3e-3, patience=3)
    figures = train(tmp_path / "corpus", tmp_path / "run", preset, seconds=150)["shared"]
    assert figures["signature_bit_accuracy"] > figures["majority_bit_accuracy"] + 0.1
    export(tmp_path / "run", tmp_path / "bundle", quantization="float32")
    rows = read_rows(tmp_path / "corpus", "effect", "dev")
    answered = load(tmp_path / "bundle").generate(rows.source, "effect", 10)
    hits = sum(
        target in [answer.text for answer in answers]
        for target, answers in zip(rows.target, answered, strict=True)
    )
    assert hits / len(rows.target) > 0.5
