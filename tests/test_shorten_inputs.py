"""Short copies of what the default bundle is made from."""

import pytest
from shorten_inputs import QUESTIONS, SOURCES, first_items, first_sources

HEADER = "source\ttarget\n"
ITEM = '  <item id="{}">\n    <p>It rained.</p>\n  </item>\n'


@pytest.mark.parametrize(
    ("sources", "kept"),
    [(0, 0), (1, 1), (SOURCES, SOURCES), (SOURCES + 1, SOURCES)],
    ids=["empty", "one", "just enough", "one too many"],
)
def test_the_first_sources_keep_all_their_rows(sources: int, kept: int) -> None:
    rows = [f"source {number}\tanswer {answer}\n" for number in range(sources) for answer in range(3)]
    assert list(first_sources(iter([HEADER, *rows]))) == [HEADER, *rows[: 3 * kept]]


@pytest.mark.parametrize("items", [0, 1, QUESTIONS, QUESTIONS + 5])
def test_questions_after_the_first_ones_are_cut_and_the_xml_stays_whole(items: int) -> None:
    body = "".join(ITEM.format(number) for number in range(items))
    short = first_items(f"<copa-corpus>\n{body}</copa-corpus>\n")
    assert short.count("<item ") == short.count("</item>") == min(items, QUESTIONS)
    assert short.startswith("<copa-corpus>\n")
    assert short.endswith("</copa-corpus>\n")
