"""Answers that must not be shown are left out by every system, and odd sources are told to the user."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cod3s.cli.main import app
from cod3s.decode.choose import keep_suitable
from cod3s.decode.config import DEFAULT
from cod3s.decode.generator import Generator, load
from cod3s.decode.sentences import Candidate
from cod3s.decode.systems import LISTED_SYSTEMS
from cod3s.records import AnswerSet
from tiny_bundle import SOURCES, TinyBundle

SOURCE = "the judge caught a cold in town"


@pytest.fixture(scope="module")
def generator(tiny_bundle: TinyBundle) -> Generator:
    return load(tiny_bundle.exact)


@pytest.fixture
def rude(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny grammar has nothing to stop, so tea and the dark stand for what must not be said."""

    def stop(text: str, source: str = "", *, careful: bool = False) -> bool:
        return any(word in text for word in ("tea", "bed", "dark", "taxi", "garden"))

    monkeypatch.setattr("cod3s.decode.choose.is_unsuitable", stop)


def test_the_next_candidate_of_the_bin_is_taken() -> None:
    bin = [Candidate(text, -1.0, -float(rank)) for rank, text in enumerate(("he was gay", "he was late"))]
    assert [kept.text for kept in keep_suitable(DEFAULT, "he left", bin)] == ["he was late"]
    assert keep_suitable(DEFAULT.with_values(unfiltered=True), "he left", bin) == bin


@pytest.mark.usefixtures("rude")
def test_no_system_shows_what_is_stopped(generator: Generator) -> None:
    for system in [name for name in LISTED_SYSTEMS if "mmi-mmi" not in name and "dpc" not in name]:
        shown = generator.generate(SOURCE, "effect", 6, system=system)
        whole = generator.generate(
            SOURCE, "effect", 6, system=system, options=DEFAULT.with_values(unfiltered=True)
        )
        assert "tea" in " / ".join(whole.texts), system
        assert not {"tea", "bed"} & set(" ".join(shown.texts).split()), system
        assert (shown.settings["unfiltered"], whole.settings["unfiltered"]) == (False, True)


@pytest.mark.usefixtures("rude")
def test_a_bin_without_a_sentence_fit_to_be_shown_is_left_out_with_a_remark(generator: Generator) -> None:
    options = DEFAULT.with_values(beam=1)
    answers = generator.generate(SOURCE, "effect", 4, options=options)
    (last,) = [
        event for event in generator.stream(SOURCE, "effect", 4, options=options) if isinstance(event, AnswerSet)
    ]
    assert len(answers) < 4
    assert any("bins had no sentence fit to be shown" in remark for remark in answers.remarks)
    assert last.remarks == answers.remarks


def run(*arguments: str | Path) -> tuple[list[dict[str, object]], str]:
    result = CliRunner().invoke(app, ["generate", "effect", *map(str, arguments), "-k", "1", "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def test_each_odd_source_is_told_on_stderr_and_in_json(tiny_bundle: TinyBundle) -> None:
    records, stderr = run("why did he go?", SOURCES[0], "who is there?", "--bundle", tiny_bundle.small)
    about = [any("looks like a question" in remark for remark in record["remarks"]) for record in records]  # type: ignore[attr-defined]
    assert about == [True, False, True]
    assert stderr.count("looks like a question") == 2


def test_unfiltered_is_a_flag_of_the_command_line(tiny_bundle: TinyBundle) -> None:
    ((record,), _) = run(SOURCES[0], "--bundle", tiny_bundle.small, "--unfiltered")
    assert record["settings"]["unfiltered"] is True  # type: ignore[index]
