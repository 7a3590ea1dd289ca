"""Sources that are no English statements get a remark; odd statements get none."""

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from cod3s.trust.statements import judge_form, remarks_on

STATEMENTS = [
    "it rained all day",
    "the tenant misplaced his keys",
    "I missed the last train",
    "Dmitri lost his passport",
    "she ain't got no money left",
    "the resturant was closd",
    "unemployment rose to 7.2% in 2009",
    "the teacher asked why he was late",
    "NASA launched a rocket",
    "José moved to Bogotá",
]
OTHERS = {
    "does not look like English": [
        "der Hund hat den Ball verloren",
        "le chat est dans le jardin",
        "el perro se fue de la casa",
        "собака убежала",
        "雨が降った",
    ],
    "looks like a question": ["why did the dog bark", "Did you see the film?", "where is my hat"],
    "looks like a command": ["Please close the window.", "write a poem about the sea", "open the door"],
    "does not look like a statement": [
        "12345",
        "asdf jkl",
        "🙂🙂",
        "SELECT * FROM users",
        "https://example.org/a?b=1",
    ],
}


def test_statements_get_no_remark() -> None:
    assert not [source for source in STATEMENTS if remarks_on(source)]


def test_other_sources_get_a_remark_that_says_what_works() -> None:
    for problem, sources in OTHERS.items():
        for source in sources:
            (remark,) = remarks_on(source)
            assert problem in remark, source
            assert "it rained all day" in remark


@given(st.text())
def test_any_text_can_be_judged(text: str) -> None:
    assert 0 <= judge_form(text).statement <= 1
    assert len(remarks_on(text)) <= 1


def test_a_source_takes_less_than_a_millisecond() -> None:
    """Measured: 0.2 ms of one core; the bound is wide because the clock of a busy machine is coarse."""
    judge_form("it rained")  # opens the weights
    start = process_time()
    for _ in range(100):
        judge_form("the neighbors called the fire department because of the smoke")
    assert process_time() - start < 0.1
    judge_form("b" * 100_000)
    assert process_time() - start < 0.2
