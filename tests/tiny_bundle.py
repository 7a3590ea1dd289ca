"""One tiny model for the tests of decoding: both relations of a made-up grammar, 8 bits, trained in seconds.

The extras are imported when it is made, so that tests of the base install run without them.
"""

import hashlib
import random
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent

WHO = ["the baker", "the nurse", "the pilot", "the clerk", "the farmer", "the singer", "the judge", "the waiter"]
WHERE = ["at home", "in town", "by the sea", "in the hills", "near the lake", "on the island"]
EVENTS = {
    "lost the key": ("phoned a locksmith", "slept in the garden"),
    "missed the bus": ("walked home in the dark", "paid for a taxi"),
    "won a prize": ("cried with joy", "bought a piano"),
    "caught a cold": ("stayed in bed", "drank hot tea"),
}
SOURCES = ["the baker lost the key at home", "the pilot won a prize by the sea", "the judge caught a cold in town"]


@dataclass(frozen=True)
class TinyBundle:
    """The same weights twice: `exact` in float32 with word graphs, `small` in int8 without."""

    run: Path
    exact: Path
    small: Path


def grammar() -> str:
    """Who, where and what happened, each with one of its two effects."""
    draw = random.Random(3)
    rows = [
        f"{who} {event} {where}\t{who} {draw.choice(effects)} {where}"
        for who in WHO
        for where in WHERE
        for event, effects in EVENTS.items()
    ]
    return "\n".join(["cause\teffect", *rows]) + "\n"


def cached_tiny_bundle() -> TinyBundle:
    """The tiny bundle of these sources, made once and kept under build/."""
    inputs = [Path(__file__), *sorted((ROOT / "src" / "cod3s").rglob("*.py"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()[:16]
    folder = ROOT / "build" / "tests" / f"tiny-{digest}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        for outdated in folder.parent.glob("tiny-*"):
            shutil.rmtree(outdated, ignore_errors=True)
        with TemporaryDirectory(dir=folder.parent, prefix="making-") as partial:
            make_tiny_bundle(Path(partial))
            Path(partial).rename(folder)
            Path(partial).mkdir()
    return TinyBundle(folder / "run", folder / "exact", folder / "small")


def make_tiny_bundle(folder: Path) -> None:
    """Train and export into `folder`."""
    from cod3s.bundle.export import export
    from cod3s.corpus import prepare
    from cod3s.corpus.prepare_config import PrepareConfig
    from cod3s.corpus.related_words import build_word_graph
    from cod3s.train import PRESETS, train

    (folder / "pairs.tsv").write_text(grammar())
    config = PrepareConfig(
        relation="both", orders="all", filter="none", encoder="static", bits=8, dev=20, test=0, held_out=0.1
    )
    prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    preset = PRESETS["tiny"].with_values(
        bits_per_token=3, epochs=12, evaluate_every=1000, learning_rate=4e-3, label_smoothing=0.0
    )
    train(folder / "corpus", folder / "run", preset)
    write_words = partial(build_word_graph, folder / "corpus")
    export(folder / "run", folder / "exact", quantization="float32", write_words=write_words)
    export(folder / "run", folder / "small", quantization="int8")
