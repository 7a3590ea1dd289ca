"""Long work without a terminal: a line every minute with the time left, and one at the end of a long stage."""

import pytest

from cod3s.cli.output import progress, training_progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [0.0]
    monkeypatch.setattr("cod3s.cli.output.monotonic", lambda: time[0])
    return time


def test_a_line_comes_every_minute_and_at_the_end(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with progress("answering", 200) as advance:
        for _ in range(5):
            clock[0] += 40
            advance(10)
    assert capsys.readouterr().err.splitlines() == [
        "answering: 20 of 200, 12 min left",
        "answering: 40 of 200, 11 min left",
        "answering: done in 3 min",
    ]


def test_training_says_its_rate_and_loss(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with training_progress() as report:
        clock[0] = 61
        report(10, 1000, 31.4, 2.5)
    assert capsys.readouterr().err.splitlines() == [
        "training: 10 of 1000, 1 h 41 min left, 31 pairs/s, loss 2.500",
        "training: done in 61 s",
    ]


def test_quick_stages_are_silent(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    for total in (None, 3):
        with progress("reading", total) as advance:
            clock[0] += 2
            advance(1)
    assert capsys.readouterr().err == ""
