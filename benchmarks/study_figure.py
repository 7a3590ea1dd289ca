"""Draw docs/study-figure.png: made-up answers of two systems to ten questions, rated by simulated raters.

python benchmarks/study_figure.py
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FIGURE = Path(__file__).parent.parent / "docs" / "study-figure.png"
SYSTEMS = {"plain": 3, "varied": 10}
QUESTIONS = {  # premise, right alternative, wrong alternative
    "effect": (
        ("The ferry was late.", "We missed the concert.", "The cook peeled an onion."),
        ("The oven broke down.", "They ordered a pizza.", "The moon was full."),
        ("A storm closed the road.", "The school stayed empty.", "The dog learned a trick."),
        ("The girl found a wallet.", "She took it to the police.", "Her shoes were blue."),
        ("The river rose overnight.", "The cellar was flooded.", "He tuned the piano."),
    ),
    "cause": (
        ("The boy could not sleep.", "The neighbors had a party.", "The shop sold stamps."),
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
        write_outputs(folder / "outputs")
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
    """As many answers per question as each system has; their words do not matter to simulated raters."""
    folder.mkdir()
    for system, number in SYSTEMS.items():
        answers = [{"text": f"answer {n} of {system}", "score": 0, "forward": -n} for n in range(1, number + 1)]
        records = [
            {"source": row[0], "relation": relation, "answers": answers}
            for relation, rows in QUESTIONS.items()
            for row in rows
        ]
        (folder / f"{system}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def cod3s(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "cod3s", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
