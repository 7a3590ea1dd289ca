"""Draws docs/study-figure.png: two systems of the embedded bundle on ten questions, rated by simulated raters.

    python benchmarks/study_figure.py

Generates for one or two minutes on one core.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FIGURE = Path(__file__).parent.parent / "docs" / "study-figure.png"
SYSTEMS = {"cod3s-mmi-mmi": 10, "s2s": 3}
QUESTIONS = {  # premise, right alternative, wrong alternative
    "effect": (
        ("The ferry was late.", "We missed the concert.", "The cook peeled an onion."),
        ("The oven broke down.", "They ordered a pizza.", "The moon was full."),
        ("A storm closed the road.", "The school stayed empty.", "The dog learned a trick."),
        ("The girl found a wallet.", "She took it to the police.", "Her shoes were blue."),
        ("The river rose overnight.", "The cellar was flooded.", "He tuned the piano."),
    ),
    "cause": (
        ("The boy could not sleep.", "The neighbours had a party.", "The shop sold stamps."),
        ("The plants on the balcony died.", "Nobody watered them.", "She learned to swim."),
        ("The crowd left the stadium early.", "It began to pour.", "The bridge is made of steel."),
        ("He called a plumber.", "The kitchen tap was dripping.", "The book had ten chapters."),
        ("The man limped.", "He had twisted his ankle.", "The tea was green."),
    ),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_questions(folder / "questions.jsonl")
        write_outputs(folder)
        tops = [part for system, number in SYSTEMS.items() for part in ("--top", f"{system}={number}")]
        cod3s(folder, "study", "new", "outputs", "-o", "study", "--copa", "questions.jsonl", *tops)
        cod3s(folder, "study", "analyse", "study", "--simulate", "12", "--careless", "2", "-o", "report")
        shutil.copy(folder / "report" / "figure.png", FIGURE)
    print(FIGURE)


def write_questions(path: Path) -> None:
    """In the form of SuperGLUE's COPA."""
    lines = [
        json.dumps(
            {"premise": premise, "question": relation, "choice1": right, "choice2": wrong, "label": 0, "idx": 0}
        )
        for relation, rows in QUESTIONS.items()
        for premise, right, wrong in rows
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_outputs(folder: Path) -> None:
    (folder / "outputs").mkdir()
    for system, number in SYSTEMS.items():
        text = ""
        for relation, rows in QUESTIONS.items():
            (folder / "sources.txt").write_text("\n".join(row[0] for row in rows) + "\n", encoding="utf-8")
            options = ("--input", "sources.txt", "--system", system, "-k", str(number), "--json")
            text += cod3s(folder, "generate", relation, *options)
        (folder / "outputs" / f"{system}.jsonl").write_text(text, encoding="utf-8")


def cod3s(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "cod3s", *arguments]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


if __name__ == "__main__":
    main()
