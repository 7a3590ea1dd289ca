"""The graph of cause and effect words: which forms belong together, what is counted, what is found."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.corpus import prepare
from cod3s.corpus.manifest import PrepareConfig
from cod3s.decode.baselines.word_graph import WordGraph, open_word_graph
from cod3s.decode.baselines.word_graph.build import build_word_graph
from cod3s.decode.baselines.word_graph.inflections import find_bases
from cod3s.errors import BundleError, Cod3sError

INFLECTED = [
    # (base, its forms, and what shows in them)
    ("walk", ["walks", "walked", "walking"]),
    ("hope", ["hopes", "hoped", "hoping"]),
    ("hop", ["hops", "hopped", "hopping"]),
    ("cry", ["cries", "cried", "crying"]),
    ("play", ["plays", "played", "playing"]),
    ("watch", ["watches", "watched", "watching"]),
    ("visit", ["visits", "visited", "visiting"]),
    ("admit", ["admits", "admitted", "admitting"]),
    ("fix", ["fixes", "fixed", "fixing"]),
    ("die", ["dies", "died", "dying"]),
    ("photo", ["photos"]),
    ("break", ["breaks", "broke", "broken", "breaking"]),
    ("burn", ["burned", "burnt", "burning"]),
    ("child", ["children", "child's"]),
    ("knife", ["knives"]),
    ("build", ["built", "building", "buildings"]),  # a form of a form
]


@pytest.mark.parametrize(("base", "forms"), INFLECTED, ids=[base for base, _ in INFLECTED])
def test_forms_belong_to_their_base(base: str, forms: list[str]) -> None:
    counts = dict.fromkeys([word for one, its in INFLECTED for word in (one, *its)], 10)
    found = find_bases(counts)
    assert {found[form] for form in (base, *forms)} == {base}


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("hoping", "hop"),  # hop doubles its last letter
        ("news", "new"),
        ("evening", "even"),
        ("seed", "see"),  # the past of see is irregular
        ("need", "nee"),
        ("glass", "glas"),
        ("wing", "w"),
        ("baker", "bake"),  # another word, not a form
    ],
)
def test_words_that_only_look_alike_stay_apart(word: str, other: str) -> None:
    assert find_bases({word: 10, other: 10})[word] == word


def test_a_base_that_was_hardly_ever_seen_is_a_slip() -> None:
    assert find_bases({"ceilings": 5000, "ceiling": 3})["ceilings"] == "ceilings"


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text("abdeginsty'", min_size=1, max_size=8), st.integers(1, 99)))
def test_every_word_has_a_counted_base_that_is_its_own(counts: dict[str, int]) -> None:
    bases = find_bases(counts)
    assert bases.keys() == counts.keys()
    assert all(bases[base] == base for base in bases.values())


PAIRS = [
    *[("it rained on the tent", "the blankets got wet")] * 4,
    *[("it was raining in Paris", "we wet our shoes")] * 2,
    *[("the rain stopped", "we dried the boots")] * 2,
    *[("Paris won the cup", "fans danced")] * 3,
    ("it rained", "Omar danced"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of both orders, each of them once: a word in front keeps equal ones from being one pair."""
    folder = tmp_path_factory.mktemp("words")
    rows = [
        f"so {number} {cause}\t{effect} {number}\t{('so', 'because')[number % 2]}"
        for number, (cause, effect) in enumerate(PAIRS)
    ]
    (folder / "pairs.tsv").write_text("\n".join(["cause\teffect\torder", *rows]) + "\n")
    config = PrepareConfig(relation="both", filter="none", encoder="none", dev=0, test=0, held_out=0.0)
    prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    return folder / "corpus"


def make(corpus: Path, path: Path, relation: str = "effect", **options: float) -> WordGraph:
    build_word_graph(corpus, relation, path, min_pairs=int(options.pop("min_pairs", 1)), **options)  # type: ignore[arg-type]
    return open_word_graph(path)


def edge(graph: WordGraph, source: str, target: str) -> tuple[int, float, float]:
    query = "SELECT pairs, necessity, sufficiency FROM edges WHERE source = ? AND target = ?"
    found: tuple[int, float, float] = graph._database.execute(query, (source, target)).fetchone()
    return found


def test_edges_hold_the_scores_of_luo(corpus: Path, tmp_path: Path) -> None:
    """By hand: of 12 pairs, 9 have a form of rain, 6 of wet, 6 both."""
    graph = make(corpus, tmp_path / "effect.sqlite")
    pairs, necessity, sufficiency = edge(graph, "rain", "wet")
    assert pairs == 6
    assert necessity == pytest.approx(6 / 12 / ((9 / 12) ** 0.66 * 6 / 12))
    assert sufficiency == pytest.approx(6 / 12 / (9 / 12 * (6 / 12) ** 0.66))


def test_causes_are_the_same_edges_turned_round(corpus: Path, tmp_path: Path) -> None:
    """Necessity and sufficiency are the cause's for the effect, whichever of them is the source."""
    effects, causes = make(corpus, tmp_path / "effect.sqlite"), make(corpus, tmp_path / "cause.sqlite", "cause")
    assert edge(causes, "wet", "rain") == pytest.approx(edge(effects, "rain", "wet"))


def test_related_words_come_with_their_forms_strongest_first(corpus: Path, tmp_path: Path) -> None:
    graph = make(corpus, tmp_path / "effect.sqlite")
    found = graph.related("It RAINED!", 10)
    assert [word.base for word in found][:2] == ["wet", "blankets"]
    assert found[0].forms == ("wet",)
    assert [word.strength for word in found] == sorted((word.strength for word in found), reverse=True)
    assert found[0].strength == pytest.approx(6 / 12 / (9 / 12 * (6 / 12) ** 0.66) * 6 / 36)


@pytest.mark.parametrize(
    ("source", "absent", "why"),
    [
        ("rain on a wet day", "wet", "a word of the source says nothing new"),
        ("rain", "omar", "a name is no effect"),
        ("rain", "the", "stop words go with everything"),
        ("rain", "1", "a number is no word"),
    ],
)
def test_words_left_out(corpus: Path, tmp_path: Path, source: str, absent: str, why: str) -> None:
    found = make(corpus, tmp_path / "effect.sqlite").related(source, 50)
    assert found
    assert absent not in [word.base for word in found], why


def test_unknown_words_have_no_relations(corpus: Path, tmp_path: Path) -> None:
    graph = make(corpus, tmp_path / "effect.sqlite")
    assert graph.related("zebras yodel", 5) == []
    assert graph.related("", 5) == []


def test_balance_goes_from_sufficiency_to_necessity(corpus: Path, tmp_path: Path) -> None:
    graph = make(corpus, tmp_path / "effect.sqlite", doubt=0.0)
    _, necessity, sufficiency = edge(graph, "rain", "wet")
    for balance, wanted in [(0.0, sufficiency), (1.0, necessity), (0.5, math.sqrt(necessity * sufficiency))]:
        strengths = {word.base: word.strength for word in graph.related("rain", 9, balance)}
        assert strengths["wet"] == pytest.approx(wanted)


def test_rare_and_weak_edges_are_left_out(corpus: Path, tmp_path: Path) -> None:
    often = make(corpus, tmp_path / "often.sqlite", min_pairs=3)
    assert {word.base for word in often.related("rain", 9)} == {"wet", "blankets"}
    one = make(corpus, tmp_path / "one.sqlite", max_edges=1)
    assert [word.base for word in one.related("rain", 9)] == ["wet"]


def test_an_unknown_relation_names_the_nearest(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="no relation 'efect'") as caught:
        build_word_graph(corpus, "efect", tmp_path / "x.sqlite")
    assert "'effect'" in caught.value.hint
    assert not (tmp_path / "x.sqlite").exists()


@pytest.mark.parametrize("content", [None, b"", b"SQLite format 3\0 and then nothing", b"words"])
def test_a_graph_that_is_absent_or_damaged_says_how_to_make_it(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "x.sqlite").write_bytes(content)
    with pytest.raises(BundleError) as caught:
        open_word_graph(tmp_path / "x.sqlite")
    assert "--word-graph" in caught.value.hint
