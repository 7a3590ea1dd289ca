"""Raw text or pairs of your own become a bundle that generates, each step with its defaults."""

import json
import random
from pathlib import Path

from conftest import Run

WHO = ("the baker", "my aunt", "the old sailor", "our teacher", "the driver", "his neighbour", "the gardener")
TROUBLE = (
    "lost the keys",
    "broke a lamp",
    "missed the bus",
    "forgot the map",
    "spilled the soup",
    "tore the sail",
)
ANSWER = ("stayed at home", "called a friend", "bought a new one", "went to bed early", "asked for help", "wept")
DAYS = ("on monday", "on tuesday", "on friday", "at noon", "at dawn", "last winter", "in the rain", "in may")


def own_pairs(number: int, seed: int = 3) -> list[tuple[str, str]]:
    """Distinct causes and effects, as somebody would collect them by hand."""
    draw = random.Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < number:
        cause = f"{draw.choice(WHO)} {draw.choice(TROUBLE)} {draw.choice(DAYS)}"
        pairs[cause] = f"{draw.choice(WHO)} {draw.choice(ANSWER)} {draw.choice(DAYS)}"
    return list(pairs.items())


def write_tsv(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("cause\teffect\n" + "".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return path


def done(cod3s: Run, *arguments: str) -> str:
    process = cod3s(*arguments)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_harvested_files_train_with_shares_of_their_corpora(here: Run, tmp_path: Path) -> None:
    for name, seed in (("letters.txt", 1), ("diary.txt", 2)):
        lines = [f"{cause[0].upper()}{cause[1:]}, so {effect}.\n\n" for cause, effect in own_pairs(60, seed)]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    done(here, "harvest", "letters.txt", "diary.txt", "-o", "pairs.tsv", "--workers", "1")
    done(here, "prepare", "pairs.tsv", "-o", "corpus", "--relation", "effect", "--encoder", "static")
    done(here, "train", "corpus", "-o", "run", "--preset", "tiny", "--corpora", "diary.txt:0.5", "--epochs", "1")
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))["config"]
    assert config["corpora"] == {"diary.txt": 0.5}


def test_a_hundred_pairs_of_your_own_become_a_bundle_that_generates(cod3s: Run, tmp_path: Path) -> None:
    write_tsv(tmp_path / "pairs.tsv", own_pairs(100))
    done(cod3s, "prepare", "pairs.tsv", "-o", "corpus")
    manifest = json.loads((tmp_path / "corpus" / "manifest.json").read_text(encoding="utf-8"))
    assert all(facts["splits"]["dev"] for facts in manifest["relations"].values())
    done(cod3s, "train", "corpus", "-o", "run", "--preset", "tiny")
    done(cod3s, "bundle", "export", "run", "-o", "bundle")
    answers = done(cod3s, "generate", "effect", "the baker lost the keys", "--bundle", "bundle", "-k2", "--json")
    assert len(json.loads(answers)["answers"]) == 2


def test_train_names_the_option_that_helps(here: Run, tmp_path: Path) -> None:
    write_tsv(tmp_path / "pairs.tsv", own_pairs(40))
    done(here, "prepare", "pairs.tsv", "-o", "c", "--relation", "effect", "--encoder", "static", "--dev", "0")
    failed = here("train", "c", "-o", "run", "--preset", "tiny")
    assert "prepare it again with, for example, --dev 100" in failed.stderr
    assert not (tmp_path / "run").exists()
