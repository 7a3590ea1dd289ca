"""The graph of cause and effect words: which forms belong together, what is counted, what is found."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.corpus import prepare
from cod3s.corpus.inflections import find_bases
from cod3s.corpus.manifest import PrepareConfig
from cod3s.corpus.related_words import build_word_graph
from cod3s.decode.word_graph import WordGraph, open_word_graph
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


def make(corpus: Path, path: Path, relation: str = "effect", min_pairs: int = 1) -> WordGraph:
    build_word_graph(corpus, relation, path, min_pairs=min_pairs)
    return open_word_graph(path)


def strength(graph: WordGraph, source: str, target: str) -> float:
    (found,) = [word.strength for word in graph.related(source, 99) if word.base == target]
    return found


def test_edges_hold_the_scores_of_luo(corpus: Path, tmp_path: Path) -> None:
    """By hand: of 12 pairs, 9 have a form of rain, 6 of wet, 6 both; sufficiency forward, necessity backward."""
    effects = make(corpus, tmp_path / "effect.npz")
    causes = make(corpus, tmp_path / "cause.npz", "cause")
    seen_six_times = 6 / 36
    assert strength(effects, "rain", "wet") == pytest.approx(6 / 12 / (9 / 12 * (6 / 12) ** 0.66) * seen_six_times)
    assert strength(causes, "wet", "rain") == pytest.approx(6 / 12 / ((9 / 12) ** 0.66 * 6 / 12) * seen_six_times)


def test_related_words_come_with_their_forms_strongest_first(corpus: Path, tmp_path: Path) -> None:
    found = make(corpus, tmp_path / "effect.npz").related("It RAINED!", 10)
    assert [word.base for word in found][:2] == ["wet", "blankets"]
    assert found[0].forms == ("wet",)
    assert [word.strength for word in found] == sorted((word.strength for word in found), reverse=True)


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
    found = make(corpus, tmp_path / "effect.npz").related(source, 50)
    assert found
    assert absent not in [word.base for word in found], why


def test_unknown_words_have_no_relations(corpus: Path, tmp_path: Path) -> None:
    graph = make(corpus, tmp_path / "effect.npz")
    assert graph.related("zebras yodel", 5) == []
    assert graph.related("", 5) == []


def test_rare_edges_are_left_out(corpus: Path, tmp_path: Path) -> None:
    often = make(corpus, tmp_path / "often.npz", min_pairs=3)
    assert {word.base for word in often.related("rain", 9)} == {"wet", "blankets"}


def test_an_unknown_relation_names_the_nearest(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="no relation 'efect'") as caught:
        build_word_graph(corpus, "efect", tmp_path / "x.npz")
    assert "'effect'" in caught.value.hint
    assert not (tmp_path / "x.npz").exists()


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 and then nothing", b"words"])
def test_a_graph_that_is_absent_or_damaged_says_how_to_make_it(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(BundleError) as caught:
        open_word_graph(tmp_path / "x.npz")
    assert "--word-graph" in caught.value.hint
