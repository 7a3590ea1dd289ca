"""The package as a user's program sees it: typed names, entry points of Python, and sets of results."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import cod3s
from cod3s.errors import MissingExtraError
from cod3s.records import Answer, AnswerSet
from conftest import ROOT

Check = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def mypy(tmp_path: Path) -> Check:
    """Checks a program as mypy would check it on a user's machine."""

    def check(program: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(program)
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
        return subprocess.run(
            [*command, "--cache-dir", str(ROOT / ".mypy_cache"), str(tmp_path / "program.py")],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    return check


RIGHT = """
import cod3s
from cod3s.corpus import prepare
from cod3s.evaluate import evaluate
from cod3s.harvest import harvest
from cod3s.train import train

model: cod3s.Generator = cod3s.load()
answers = model.effects("it rained", options=cod3s.DecodeConfig(search="sample"))
best: cod3s.Answer = answers[0]
few: tuple[str, ...] = answers[:2].texts
kept: int = len(cod3s.select(["a", "b"], k=1).selected)
"""
WRONG = [
    ("import cod3s\ncod3s.laod()", 'has no attribute "laod"', "a misspelt name"),
    ("from cod3s import Generatr", 'has no attribute "Generatr"', "a misspelt import"),
    ("import cod3s\ncod3s.DecodeConfig(search='bean')", "incompatible type", "a misspelt choice"),
    ("import cod3s\ncod3s.load().effects('x')[0].txt", 'has no attribute "txt"', "a misspelt field"),
]


@pytest.mark.slow
def test_mypy_passes_a_right_program_and_fails_each_wrong_one(mypy: Check) -> None:
    done = mypy(RIGHT)
    assert done.returncode == 0, done.stdout + done.stderr
    for program, message, why in WRONG:
        done = mypy(program)
        assert done.returncode == 1, why
        assert message in done.stdout, why


def test_the_typed_names_are_those_that_python_finds() -> None:
    lazy = [name for names in cod3s._NAMES.values() for name in names]
    assert sorted(lazy) == sorted(name for name in cod3s.__all__ if name != "__version__")
    for name in cod3s.__all__:
        assert getattr(cod3s, name) is not None
    assert dir(cod3s) == sorted(cod3s.__all__)
    with pytest.raises(AttributeError, match="laod"):
        cod3s.laod  # noqa: B018


def test_the_large_steps_are_functions_too() -> None:
    """Whatever was imported before: no module of the same name may stand in the way."""
    from cod3s.corpus import prepare
    from cod3s.evaluate import evaluate
    from cod3s.harvest import harvest
    from cod3s.train import train

    for function in (prepare, evaluate, harvest, train):
        assert callable(function)
        assert function.__doc__


def test_the_command_line_starts_without_heavy_libraries() -> None:
    heavy = "('torch', 'transformers', 'pyarrow', 'duckdb', 'ctranslate2', 'pydantic', 'numpy')"
    program = f"import cod3s.cli.main, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Sets of results

SCRIPT = "<script>alert('&')</script>"
ANSWERS = AnswerSet(
    source="the <b>milk</b> went sour",
    relation="effect",
    system="cod3s",
    settings={"k": 4},
    answers=(
        Answer("we drank tea", -1.0, -0.5, signature="0110", medoid='he said "tea"'),
        Answer(SCRIPT, -2.0, -1.5, signature="1001"),
        Answer("the cat was glad", -3.0, -2.5),
        Answer("nobody noticed", -4.0, -3.5, signature="1111"),
    ),
    remarks=("a remark",),
)


def test_answers_are_found_by_number_and_by_slice() -> None:
    assert ANSWERS[0].text == "we drank tea"
    assert ANSWERS[-1].text == "nobody noticed"
    with pytest.raises(IndexError):
        ANSWERS[4]
    two = ANSWERS[:2]
    assert isinstance(two, AnswerSet)
    assert (two.texts, two.source, two.remarks) == (("we drank tea", SCRIPT), ANSWERS.source, ANSWERS.remarks)
    assert len(ANSWERS[7:]) == 0
    assert tuple(answer.text for answer in ANSWERS) == ANSWERS.texts


def test_a_set_becomes_a_record_and_a_frame() -> None:
    assert ANSWERS.to_dict() == asdict(ANSWERS)
    assert json.loads(ANSWERS.to_json()) == json.loads(json.dumps(asdict(ANSWERS)))
    assert "\n" not in ANSWERS.to_json()
    pandas = pytest.importorskip("pandas")
    frame = ANSWERS.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert tuple(frame["text"]) == ANSWERS.texts
    assert "signature" in frame.columns


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError) as raised:
        ANSWERS.to_pandas()
    assert raised.value.hint == "pip install 'cod3s[pandas]'"


def test_a_set_shows_itself_briefly() -> None:
    shown = repr(ANSWERS)
    assert shown.startswith(
        "AnswerSet(4 answers, effect of 'the <b>milk</b> went sour', by cod3s: ['we drank tea'"
    )
    assert len(shown) < 200
    assert shown.endswith(", …])")
    assert repr(ANSWERS[:0]).endswith(": [])")


def test_the_notebook_view_escapes_everything_and_runs_nothing() -> None:
    page = ANSWERS._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert "he said &quot;tea&quot;" in page
    assert page.count("<tr>") == 5  # with the headings
    assert page.count("#246") == 2 + 2 + 4  # a dark cell per 1 of the signatures


def test_the_notebook_view_shows_the_figures_of_the_terminal() -> None:
    """A critic's probability if there is one, otherwise the score."""
    assert "<th>score</th>" in ANSWERS._repr_html_()
    assert "-1.000" in ANSWERS._repr_html_()
    judged = replace(ANSWERS, answers=(replace(ANSWERS[0], plausibility=0.625),))._repr_html_()
    assert "<th>critic</th>" in judged
    assert "0.62" in judged
    assert "-1.000" not in judged
