"""The analysis of ratings: sets, agreement, raters, reports; and simulated studies whose truth is known."""

import json
import random
from dataclasses import replace
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.errors import Cod3sError
from cod3s.study.analysis import Analysis, analyse
from cod3s.study.figures import (
    FIGURES,
    NO_PAIR,
    NO_VARIATION,
    RatedAnswer,
    agreement,
    coincidences,
    figure_labels,
    ordinal_alpha,
    set_figures,
)
from cod3s.study.folder import ANSWER, CHECK, RIGHT, WRONG, Credit, Exclusion, Item, Study
from cod3s.study.raters import Rating
from cod3s.study.report import (
    FIGURE,
    SIMULATED_BANNER,
    agreement_table,
    all_tables,
    plausibility_table,
    write_report,
)
from cod3s.study.simulation import Crowd, Simulation, Truth, score_probabilities, simulate_ratings
from studies import STUDY, made_items

NOBODY = Exclusion(None, None, None)


def rated(item: str, *scores: int, seconds: float = 5.0) -> list[Rating]:
    """So many raters' scores of one item."""
    return [Rating(f"rater{n}", item, score, seconds, "2020-01-01") for n, score in enumerate(scores)]


def analysed(study: Study, items: list[Item], ratings: list[Rating], simulated: Truth | None = None) -> Analysis:
    names = {rating.rater: rating.rater for rating in ratings}
    return analyse(study, items, ratings, names=names, simulated=simulated)


def of_simulation(study: Study, items: list[Item], made: Simulation) -> Analysis:
    return analysed(study, items, list(made.ratings), simulated=made.truth)


# Figures of one set


def answers(*scores: tuple[int, ...]) -> list[RatedAnswer]:
    return [RatedAnswer(rank, own) for rank, own in enumerate(scores, 1)]


def test_the_figures_of_ten_answers_are_those_of_the_papers_table() -> None:
    found = set_figures(answers((2,), (4,), (3,), (5,), (1,), (5,), (0,), (0,), (0,), (0,)))
    assert found == {
        "top1": 2,
        "top3": 3,
        "max3": 4,
        "max10": 5,
        "best3of10": pytest.approx(14 / 3),
    }


@pytest.mark.parametrize(
    ("rows", "wanted", "reason"),
    [
        ([], set(), "no answers, no figures"),
        ([(1, (3,))], {"top1", "top3", "max3"}, "one answer stands for the first three"),
        ([(2, (3,)), (3, (4,))], {"top3", "max3"}, "the first rank is missing, so there is no top 1"),
        ([(1, (3,)), (2, ())], {"top1"}, "an answer nobody rated might be the best"),
        ([(1, ()), (2, (3,))], set(), "the first answer is needed by all"),
        ([(None, (3,)), (None, (2,)), (None, (1,))], {"top3", "max3"}, "no likelihoods: as DPC in the paper"),
        ([(None, (3,))] * 4, {"max10", "best3of10"}, "no likelihoods: nobody knows the first three of four"),
        (
            [(1, (3,)), (2, (3,)), (3, (3,)), (4, ())],
            {"top1", "top3", "max3"},
            "the missing one is not among the first three",
        ),
    ],
)
def test_sets_with_something_missing(
    rows: list[tuple[int | None, tuple[int, ...]]], wanted: set[str], reason: str
) -> None:
    assert set(set_figures([RatedAnswer(*row) for row in rows])) == wanted, reason


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3).map(tuple), min_size=4, max_size=10))
def test_figures_keep_their_order(scores: list[tuple[int, ...]]) -> None:
    found = set_figures(answers(*scores))
    assert found["top3"] <= found["max3"] + 1e-9
    assert found["max3"] <= found["max10"] + 1e-9
    assert found["best3of10"] <= found["max10"] + 1e-9
    assert found["top3"] <= found["best3of10"] + 1e-9
    assert set(found) == set(FIGURES)


def test_a_maximum_of_noise_is_high_and_held_out_it_is_not() -> None:
    generator = np.random.default_rng(1)
    plain, held_out = [], []
    for _ in range(400):  # ten answers that are all worth 2.5
        own = answers(*(tuple(int(score) for score in generator.integers(0, 6, 4)) for _ in range(10)))
        figures = set_figures(own)
        plain.append(figures["max10"])
        held_out.append(figures["max10_held_out"])
    assert np.mean(plain) > 3.5
    assert np.mean(held_out) == pytest.approx(2.5, abs=0.1)


def test_answers_that_all_agree_lose_nothing_when_held_out() -> None:
    found = set_figures(answers((5, 5), (1, 1), (3, 3), (0, 0)))
    assert found["max3_held_out"] == found["max3"] == 5
    assert found["best3of10_held_out"] == found["best3of10"] == 3


# Agreement


def counts(*rows: tuple[int, ...], scores: int = 6) -> np.ndarray:
    return np.array([np.bincount(row, minlength=scores) for row in rows])


def test_perfect_agreement_is_one() -> None:
    found = agreement(counts((0, 0, 0), (5, 5, 5), (2, 2, 2)), seed=1)
    assert found.alpha == pytest.approx(1)
    assert found.high == pytest.approx(1)


def test_systematic_disagreement_is_negative() -> None:
    found = agreement(counts(*[(0, 5)] * 8), seed=1)
    assert found.alpha == pytest.approx(-7 / 8)  # 1 - (2n - 1) / n for n items, by hand
    assert found.alpha < 0


def test_raters_who_guess_agree_by_chance() -> None:
    generator = np.random.default_rng(3)
    found = agreement(counts(*map(tuple, generator.integers(0, 6, size=(1500, 3)))), seed=1)
    assert found.alpha == pytest.approx(0, abs=0.04)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(3,), (4,), (1,)], NO_PAIR),  # one rater an item
        ([(), ()], NO_PAIR),
        ([(3, 3), (3, 3, 3)], NO_VARIATION),
    ],
)
def test_agreement_without_sense_is_said_in_words(rows: list[tuple[int, ...]], words: str) -> None:
    found = agreement(counts(*[np.array(row, int) for row in rows]), seed=1)
    assert found.alpha is None
    assert found.words == words
    assert words.startswith("undefined")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), min_size=0, max_size=5), min_size=1, max_size=12))
def test_our_formula_for_resamples_is_the_librarys(rows: list[list[int]]) -> None:
    table = counts(*[np.array(row, int) for row in rows], scores=5)
    paired = table[table.sum(axis=1) > 1]
    if not len(paired) or np.count_nonzero(paired.sum(axis=0)) < 2:
        return
    wanted = krippendorff.alpha(value_counts=table, level_of_measurement="ordinal")
    assert float(ordinal_alpha(coincidences(paired).sum(axis=0))) == pytest.approx(wanted)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(5)
    probabilities = generator.dirichlet(np.full(6, 0.5), size=400)
    whole = probabilities.sum(axis=0)
    truth = float(ordinal_alpha(np.einsum("iv,iw->vw", probabilities, probabilities) * 4))
    assert whole.sum() == pytest.approx(400)
    hits = 0
    for seed in range(40):
        drawn = probabilities[generator.integers(0, 400, 150)]
        found = agreement(np.array([generator.multinomial(4, own) for own in drawn]), seed=seed, resamples=300)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
    assert hits >= 33  # 95 % of 40 is 38; fewer than 33 has a chance below 1 in 100


# From ratings to results


def test_a_statement_of_two_systems_counts_for_both() -> None:
    shared = Item("a", ANSWER, "S.", "effect", "s", "t", credits=(Credit("x", 1, 1), Credit("y", 2, 2)))
    other = Item("b", ANSWER, "T.", "effect", "s", "u", credits=(Credit("y", 1, 1),))
    found = analysed(STUDY, [shared, other], [*rated("a", 4, 4), *rated("b", 1, 1)])
    systems = found.results.systems["effect"]
    assert systems["x"]["top1"].mean == 4
    assert systems["y"]["top1"].mean == 1
    assert systems["y"]["max3"].mean == 4
    assert found.results.ratings == 4  # it was rated once


def test_answers_that_are_gold_alternatives_too_stand_in_both_lines() -> None:
    both = Item("a", ANSWER, "S.", "effect", "s", "t", credits=(Credit("x", 1, 1),), label=RIGHT)
    found = analysed(STUDY, [both], rated("a", 5, 4))
    assert found.results.gold["effect"][RIGHT].mean == found.results.systems["effect"]["x"]["top1"].mean


def test_no_ratings_are_an_error_with_a_way_out() -> None:
    with pytest.raises(Cod3sError, match="no ratings yet"):
        analysed(STUDY, made_items({"x": 1}), [])


def test_a_rating_of_an_unknown_item_is_refused() -> None:
    with pytest.raises(Cod3sError, match="not an item of this study"):
        analysed(STUDY, made_items({"x": 1}), rated("elsewhere", 1))


def test_one_rater_gives_figures_but_no_agreement() -> None:
    items = made_items({"x": 3}, sources=4, gold=False, checks=0)
    found = analysed(STUDY, items, [rating for item in items for rating in rated(item.id, 2)])
    assert found.results.systems["effect"]["x"]["top3"].mean == 2
    assert found.results.agreement["all"].alpha is None
    assert "undefined" in agreement_table(found).rows[0][2].text


def test_equal_scores_give_no_difference_and_no_agreement() -> None:
    items = made_items({"x": 3, "y": 3}, sources=4, gold=False, checks=0)
    found = analysed(STUDY, items, [rating for item in items for rating in rated(item.id, 3, 3)])
    row = found.results.comparisons["effect"]["top3"][0]
    assert (row.difference, row.p, row.holm) == (0, 1, 1)
    assert found.results.agreement["all"].words == NO_VARIATION
    assert all(own["top1"].near_best for own in found.results.systems["effect"].values())


def test_one_system_is_compared_with_nothing() -> None:
    items = made_items({"x": 3}, sources=3, gold=False, checks=0)
    found = analysed(STUDY, items, [rating for item in items for rating in rated(item.id, 3, 2)])
    assert found.results.comparisons["effect"]["top1"] == []


def test_items_with_fewer_raters_take_part_and_unrated_ones_take_their_source_out() -> None:
    items = made_items({"x": 1}, sources=3, relations=("effect",), gold=False, checks=0)
    found = analysed(STUDY, items, [*rated(items[0].id, 1, 2, 3), *rated(items[1].id, 5)])
    own = found.results.systems["effect"]["x"]
    assert own["top1"].mean == pytest.approx((2 + 5) / 2)
    assert own["top1"].sources == 2
    assert found.results.raters_per_item == {0: 1, 1: 1, 3: 1}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (Exclusion(0, None, None), "failed 1 attention checks"),
        (Exclusion(None, 2.0, None), "took 0.5 s"),
        (Exclusion(None, None, 1.0), "gold items"),
    ],
)
def test_the_studys_rule_excludes_and_both_figures_are_there(rule: Exclusion, reason: str) -> None:
    items = made_items({"x": 1}, sources=2, relations=("effect",), checks=1)
    good = {ANSWER: 2, RIGHT: 5, WRONG: 0, CHECK: 0}
    bad = {ANSWER: 4, RIGHT: 0, WRONG: 5, CHECK: 3}
    ratings = [
        Rating(name, item.id, scores[item.label or item.kind], seconds, "2020-01-01")
        for name, scores, seconds in (("good", good, 5.0), ("bad", bad, 0.5))
        for item in items
    ]
    found = analysed(replace(STUDY, exclusion=rule), items, ratings)
    assert [rater.name for rater in found.excluded] == ["bad"]
    assert reason in found.excluded[0].reasons[0]
    assert found.results.systems["effect"]["x"]["top1"].mean == 2
    assert found.everyone.systems["effect"]["x"]["top1"].mean == 3
    titles = [table.title for table in all_tables(found)]
    assert "Plausibility, C→E, without excluded raters" in titles
    assert "Plausibility, C→E, all raters" in titles
    assert not analysed(replace(STUDY, exclusion=NOBODY), items, ratings).excluded


def test_imported_ratings_without_times_exclude_nobody_for_haste() -> None:
    items = made_items({"x": 1}, sources=2, checks=0)
    ratings = [rating for item in items for rating in rated(item.id, 3, 4, seconds=0)]
    found = analysed(replace(STUDY, exclusion=Exclusion(None, 2.0, None)), items, ratings)
    assert not found.excluded
    assert found.raters[0].median_seconds is None


def test_when_all_raters_are_excluded_the_report_still_stands(tmp_path: Path) -> None:
    items = made_items({"x": 1}, sources=2)
    ratings = [rating for item in items for rating in rated(item.id, 3, seconds=0.1)]
    found = analysed(STUDY, items, ratings)
    write_report(tmp_path, found)
    assert found.results.ratings == 0
    assert found.everyone.ratings > 0
    assert "1 of 1 raters are excluded" in (tmp_path / "report.md").read_text()


# Simulated studies


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return made_items({"a": 3, "b": 3, "c": 10}, sources=40)


@pytest.fixture(scope="module")
def made(items: list[Item]) -> Simulation:
    return simulate_ratings(STUDY, items, Crowd(raters=16, noise=0.8, bias=0.4, seed=7))


@pytest.fixture(scope="module")
def found(items: list[Item], made: Simulation) -> Analysis:
    return of_simulation(STUDY, items, made)


def test_the_known_ordering_comes_back(made: Simulation, found: Analysis) -> None:
    assert list(made.truth.levels) == ["a", "b", "c"]
    for relation in ("effect", "cause"):
        own = found.results.systems[relation]
        means = [own[system]["top3"].mean for system in made.truth.levels]
        assert means == sorted(means)
        assert [own[system]["top3"].near_best for system in made.truth.levels] == [False, False, True]
        rows = found.results.comparisons[relation]["top3"]
        assert all(row.difference < 0 and row.holm < 0.05 for row in rows)
        gold = found.results.gold[relation]
        assert gold[WRONG].mean < gold[RIGHT].mean


def test_the_means_are_those_of_the_truth(items: list[Item], made: Simulation, found: Analysis) -> None:
    for system in made.truth.levels:
        own = [
            item
            for item in items
            if item.relation == "effect" and item.credits and item.credits[0].system == system
        ]
        truth = np.mean([np.clip(made.scores[item.id], 0, 5) for item in own if item.credits[0].position <= 3])
        figure = found.results.systems["effect"][system]["top3"]
        assert figure.mean == pytest.approx(truth, abs=0.25)
        assert figure.low < truth < figure.high


@pytest.mark.parametrize(
    "crowd",
    [
        Crowd(raters=16, noise=0.0, bias=0.0, seed=2),
        Crowd(raters=16, noise=0.5, bias=0.2, seed=3),
        Crowd(raters=16, noise=1.5, bias=0.5, seed=4),
        Crowd(raters=4, noise=0.8, bias=1.5, seed=5),
        Crowd(raters=12, noise=0.6, bias=0.3, careless=4, seed=6),
    ],
    ids=["exact", "good", "noisy", "biased", "careless"],
)
def test_the_agreement_is_what_the_simulation_implies(items: list[Item], crowd: Crowd) -> None:
    study = replace(STUDY, exclusion=NOBODY)
    made = simulate_ratings(study, items, crowd)
    own = of_simulation(study, items, made).results.agreement["all"]
    assert own.alpha == pytest.approx(made.truth.alpha, abs=0.05)
    if crowd.noise == crowd.bias == 0:
        assert own.alpha == pytest.approx(1)


def test_careless_raters_are_found_by_the_checks(items: list[Item]) -> None:
    made = simulate_ratings(STUDY, items, Crowd(raters=12, careless=3, seed=9))
    own = of_simulation(STUDY, items, made)
    careless = {*made.raters[:3]}
    assert {rater.name for rater in own.excluded} <= careless
    assert len(own.excluded) >= 2  # who guesses passes a check in six
    kept, everyone = own.results.agreement["all"].alpha, own.everyone.agreement["all"].alpha
    assert kept is not None
    assert everyone is not None
    assert kept > everyone + 0.05


def test_score_probabilities_are_those_of_the_raters() -> None:
    found = score_probabilities(np.array([-2.0, 2.4, 9.0]), 0.7, 5)
    assert found.sum(axis=1) == pytest.approx(1)
    assert found[0][0] > 0.99
    assert found[2][5] > 0.99
    generator = np.random.default_rng(1)
    drawn = np.clip(np.floor(2.4 + generator.normal(0, 0.7, 40_000) + 0.5), 0, 5).astype(int)
    assert found[1] == pytest.approx(np.bincount(drawn, minlength=6) / 40_000, abs=0.01)


def test_every_item_has_as_many_raters_as_the_study_asks_for(items: list[Item], made: Simulation) -> None:
    per_item: dict[str, set[str]] = {}
    for rating in made.ratings:
        per_item.setdefault(rating.item, set()).add(rating.rater)
    assert {len(per_item[item.id]) for item in items if item.kind != CHECK} == {4}
    assert {len(per_item[item.id]) for item in items if item.kind == CHECK} == {16}
    work = [len([one for one in made.ratings if one.rater == rater]) for rater in made.raters]
    assert max(work) - min(work) <= 4


def test_a_crowd_of_one_rates_but_cannot_agree(items: list[Item]) -> None:
    assert simulate_ratings(STUDY, items, Crowd(raters=1)).truth.alpha is None


@pytest.mark.parametrize("crowd", [Crowd(raters=0), Crowd(noise=-1), Crowd(raters=2, careless=3)])
def test_an_impossible_crowd_is_refused(items: list[Item], crowd: Crowd) -> None:
    with pytest.raises(Cod3sError, match="cannot simulate"):
        simulate_ratings(STUDY, items, crowd)


# The report


def test_the_report_has_the_same_bytes_in_whatever_order_ratings_come(
    tmp_path: Path, items: list[Item], made: Simulation, found: Analysis
) -> None:
    shuffled = list(made.ratings)
    random.Random(1).shuffle(shuffled)
    write_report(tmp_path / "a", found)
    write_report(tmp_path / "b", analysed(STUDY, items, shuffled, simulated=made.truth))
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["figure.png", "metrics.json", "report.html", "report.md"]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_the_report_says_when_it_is_simulated_and_only_then(tmp_path: Path, found: Analysis) -> None:
    write_report(tmp_path / "simulated", found)
    write_report(tmp_path / "real", replace(found, simulated=None))
    for name in ("report.html", "report.md"):
        assert SIMULATED_BANNER in (tmp_path / "simulated" / name).read_text()
        assert "SIMULATED" not in (tmp_path / "real" / name).read_text()
    drawn, real = (tmp_path / place / FIGURE for place in ("simulated", "real"))
    assert drawn.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert drawn.read_bytes() != real.read_bytes()


def test_the_page_needs_no_network_and_escapes_names(tmp_path: Path) -> None:
    own = made_items({"<script>alert(1)</script>": 1}, sources=2, checks=0)
    write_report(tmp_path, analysed(STUDY, own, [one for item in own for one in rated(item.id, 3, 4)]))
    page = (tmp_path / "report.html").read_text()
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    assert "<svg" in page


def test_metrics_are_valid_json_with_everything_in_it(found: Analysis) -> None:
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    own = record["results"]["systems"]["effect"]["c"]
    assert set(own) == set(FIGURES)
    assert own["top1"]["low"] <= own["top1"]["mean"] <= own["top1"]["high"]
    assert own["top1"]["sources"] == 40
    assert set(record["results"]["agreement"]) == {"all", "answers", "gold"}
    assert record["simulated"]["levels"]


def test_the_papers_figures_stand_in_a_column_of_their_own() -> None:
    own = made_items({"s2s": 3, "mine": 3}, sources=2, relations=("effect", "reply"), checks=0)
    found = analysed(STUDY, own, [rating for item in own for rating in rated(item.id, 3, 4)])
    assert "paper" not in plausibility_table(found.results, "effect", "all raters").columns
    table = plausibility_table(replace(found.results, is_copa_dev=True), "effect", "all raters")
    assert table.columns[-1] == "paper"
    cells = {row[0].text: row[-1] for row in table.rows}
    assert cells["s2s"].text == "2.7 / 2.7 / 3.3"
    assert cells["mine"].text == "–"
    assert cells["gold: right"].text == "4.2"
    assert "max of 10" not in table.columns  # no system has more than three answers


@pytest.mark.parametrize(
    ("most", "labels", "reason"),
    [
        (3, {"max3": "max of top 3"}, "the paper's small set"),
        (10, {"max10": "max of 10", "best3of10": "mean of best 3 of 10"}, "the paper's large set"),
        (5, {"max10": "max of 5", "best3of10": "mean of best 3 of 5"}, "--top 5"),
        (2, {"top3": "mean of top 2", "max3": "max of top 2"}, "--top 2"),
        (20, {"max10": "max of 10"}, "only ten count"),
    ],
)
def test_labels_follow_the_number_of_rated_answers(most: int, labels: dict[str, str], reason: str) -> None:
    assert labels.items() <= figure_labels(most).items(), reason
