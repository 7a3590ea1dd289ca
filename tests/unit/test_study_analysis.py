"""The analysis of ratings: figures of sets, agreement, exclusion and the report; simulated studies come back."""

import json
import random
from collections.abc import Mapping
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
from cod3s.study.simulation import Crowd, Simulation, simulate_ratings
from studies import STUDY, made_items

NOBODY = Exclusion(None, None, None)
Rows = list[tuple[int | None, tuple[int, ...]]]


def rated(item: str, *scores: int, seconds: float = 5.0) -> list[Rating]:
    """So many raters' scores of one item."""
    return [Rating(f"rater{n}", item, score, seconds, "2020-01-01") for n, score in enumerate(scores)]


def all_rated(items: list[Item], *scores: int, seconds: float = 5.0) -> list[Rating]:
    return [rating for item in items for rating in rated(item.id, *scores, seconds=seconds)]


def analysed(
    items: list[Item],
    ratings: list[Rating],
    *,
    study: Study = STUDY,
    simulated: Mapping[str, float] | None = None,
) -> Analysis:
    names = {rating.rater: rating.rater for rating in ratings}
    return analyse(study, items, ratings, names=names, simulated=simulated)


def ranked(*scores: tuple[int, ...]) -> list[RatedAnswer]:
    return [RatedAnswer(rank, row) for rank, row in enumerate(scores, 1)]


def counts(*rows: tuple[int, ...] | list[int], scores: int = 6) -> np.ndarray:
    return np.array([np.bincount(np.array(row, int), minlength=scores) for row in rows])


def test_the_figures_of_ten_answers_are_those_of_the_papers_table() -> None:
    figures = set_figures(ranked((2,), (4,), (3,), (5,), (1,), (5,), (0,), (0,), (0,), (0,)))
    assert figures == {"top1": 2, "top3": 3, "max3": 4, "max10": 5, "best3of10": pytest.approx(14 / 3)}


INCOMPLETE: list[tuple[Rows, set[str], str]] = [
    ([], set(), "no answers, no figures"),
    ([(1, (3,))], {"top1", "top3", "max3"}, "one answer stands for the first three"),
    ([(2, (3,)), (3, (4,))], {"top3", "max3"}, "the first rank is missing, so there is no top 1"),
    ([(1, (3,)), (2, ())], {"top1"}, "an answer nobody rated might be the best"),
    ([(1, ()), (2, (3,))], set(), "the first answer is needed by all"),
    ([(None, (3,)), (None, (2,)), (None, (1,))], {"top3", "max3"}, "no likelihoods: as DPC in the paper"),
    ([(None, (3,))] * 4, {"max10", "best3of10"}, "no likelihoods: nobody knows the first three of four"),
    ([(1, (3,)), (2, (3,)), (3, (3,)), (4, ())], {"top1", "top3", "max3"}, "the first three are complete"),
]


def test_incomplete_sets_have_only_the_figures_that_are_certain() -> None:
    for rows, names, reason in INCOMPLETE:
        assert set(set_figures([RatedAnswer(*row) for row in rows])) == names, reason


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3).map(tuple), min_size=4, max_size=10))
def test_figures_keep_their_order(scores: list[tuple[int, ...]]) -> None:
    figures = set_figures(ranked(*scores))
    assert set(figures) == set(FIGURES)
    for smaller, larger in (("top3", "max3"), ("max3", "max10"), ("best3of10", "max10"), ("top3", "best3of10")):
        assert figures[smaller] <= figures[larger] + 1e-9


def test_a_maximum_of_noise_is_high_and_held_out_it_is_not() -> None:
    generator = np.random.default_rng(1)
    draws = generator.integers(0, 6, (400, 10, 4)).tolist()  # ten answers that are all worth 2.5
    sets = [set_figures(ranked(*map(tuple, rows))) for rows in draws]
    assert np.mean([figures["max10"] for figures in sets]) > 3.5
    assert np.mean([figures["max10_held_out"] for figures in sets]) == pytest.approx(2.5, abs=0.1)
    agreed = set_figures(ranked((5, 5), (1, 1), (3, 3), (0, 0)))
    assert agreed["max3_held_out"] == agreed["max3"] == 5
    assert agreed["best3of10_held_out"] == agreed["best3of10"] == 3


def test_labels_follow_the_number_of_rated_answers() -> None:
    assert figure_labels(20)["max10"] == figure_labels(10)["max10"] == "max of 10"
    assert figure_labels(5)["best3of10"] == "mean of best 3 of 5"
    assert figure_labels(2)["top3"] == "mean of top 2"


def test_alpha_is_one_for_agreement_negative_for_opposites_and_zero_for_guessing() -> None:
    assert agreement(counts((0, 0, 0), (5, 5, 5), (2, 2, 2)), seed=1).alpha == pytest.approx(1)
    opposites = agreement(counts(*[(0, 5)] * 8), seed=1)
    assert opposites.alpha == pytest.approx(-7 / 8)  # 1 - (2n - 1) / n for n items, by hand
    guesses = np.random.default_rng(3).integers(0, 6, size=(1500, 3)).tolist()
    chance = agreement(counts(*guesses), seed=1)
    assert chance.alpha == pytest.approx(0, abs=0.04)
    assert chance.low is not None
    assert chance.high is not None
    assert chance.low < 0 < chance.high


def test_undefined_agreement_says_why() -> None:
    for rows, words in (
        ([(3,), (4,), (1,)], NO_PAIR),  # one rater per item
        ([(), ()], NO_PAIR),
        ([(3, 3), (3, 3, 3)], NO_VARIATION),
    ):
        undefined = agreement(counts(*rows), seed=1)
        assert (undefined.alpha, undefined.words) == (None, words)


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 4), min_size=0, max_size=5), min_size=1, max_size=12))
def test_our_formula_for_resamples_is_the_librarys(rows: list[list[int]]) -> None:
    table = counts(*rows, scores=5)
    paired = table[table.sum(axis=1) > 1]
    if len(paired) and np.count_nonzero(paired.sum(axis=0)) > 1:
        alpha = krippendorff.alpha(value_counts=table, level_of_measurement="ordinal")
        assert float(ordinal_alpha(coincidences(paired).sum(axis=0))) == pytest.approx(alpha)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(5)
    chances = generator.dirichlet(np.full(6, 0.5), size=400)
    truth = float(ordinal_alpha(np.einsum("iv,iw->vw", chances, chances) * 4))
    hits = 0
    for seed in range(40):
        drawn = [generator.multinomial(4, row) for row in chances[generator.integers(0, 400, 150)]]
        sample = agreement(np.array(drawn), seed=seed, resamples=300)
        assert sample.low is not None
        assert sample.high is not None
        hits += sample.low <= truth <= sample.high
    assert hits >= 33  # 95 % of 40 is 38; fewer than 33 has a chance below 1 in 100


def test_a_statement_of_two_systems_counts_for_both_and_gold_counts_too() -> None:
    credits = (Credit("x", 1, 1), Credit("y", 2, 2))
    shared = Item("a", ANSWER, "S.", "effect", "s", "t", credits=credits, label=RIGHT)
    other = Item("b", ANSWER, "T.", "effect", "s", "u", credits=(Credit("y", 1, 1),))
    results = analysed([shared, other], [*rated("a", 4, 4), *rated("b", 1, 1)]).results
    systems = results.systems["effect"]
    assert [systems["x"]["top1"].mean, systems["y"]["top1"].mean, systems["y"]["max3"].mean] == [4, 1, 4]
    assert results.gold["effect"][RIGHT].mean == 4
    assert results.ratings == 4  # it was rated once


def test_a_store_without_ratings_or_with_foreign_ones_is_refused_with_a_way_out() -> None:
    items = made_items({"x": 1})
    for ratings, message in (([], "no ratings yet"), (rated("elsewhere", 1), "not an item of this study")):
        with pytest.raises(Cod3sError, match=message) as error:
            analysed(items, ratings)
        assert error.value.hint


def test_one_rater_gives_figures_but_no_agreement() -> None:
    items = made_items({"x": 3}, sources=4, gold=False, checks=0)
    analysis = analysed(items, all_rated(items, 2))
    assert analysis.results.systems["effect"]["x"]["top3"].mean == 2
    assert analysis.results.comparisons["effect"]["top1"] == []  # one system is compared with nothing
    assert "undefined" in agreement_table(analysis).rows[0][2].text


def test_equal_scores_give_no_difference_and_no_agreement() -> None:
    items = made_items({"x": 3, "y": 3}, sources=4, gold=False, checks=0)
    results = analysed(items, all_rated(items, 3, 3)).results
    row = results.comparisons["effect"]["top3"][0]
    assert (row.difference, row.p, row.holm) == (0, 1, 1)
    assert results.agreement["all"].words == NO_VARIATION
    assert all(figures["top1"].near_best for figures in results.systems["effect"].values())


def test_items_with_fewer_raters_take_part_and_unrated_ones_take_their_source_out() -> None:
    items = made_items({"x": 1}, sources=3, relations=("effect",), gold=False, checks=0)
    results = analysed(items, [*rated(items[0].id, 1, 2, 3), *rated(items[1].id, 5)]).results
    figure = results.systems["effect"]["x"]["top1"]
    assert (figure.mean, figure.sources) == (pytest.approx((2 + 5) / 2), 2)
    assert results.raters_per_item == {0: 1, 1: 1, 3: 1}


def test_the_studys_rule_excludes_and_both_figures_are_there() -> None:
    items = made_items({"x": 1}, sources=2, relations=("effect",), checks=1)
    good = {ANSWER: 2, RIGHT: 5, WRONG: 0, CHECK: 0}
    bad = {ANSWER: 4, RIGHT: 0, WRONG: 5, CHECK: 3}
    ratings = [
        Rating(name, item.id, scores[item.label or item.kind], seconds, "2020-01-01")
        for name, scores, seconds in (("good", good, 5.0), ("bad", bad, 0.5))
        for item in items
    ]
    for rule, reason in (
        (Exclusion(0, None, None), "failed 1 attention checks"),
        (Exclusion(None, 2.0, None), "took 0.5 s"),
        (Exclusion(None, None, 1.0), "gold items"),
    ):
        analysis = analysed(items, ratings, study=replace(STUDY, exclusion=rule))
        (excluded,) = analysis.excluded
        assert excluded.name == "bad"
        assert reason in excluded.reasons[0]
        assert analysis.results.systems["effect"]["x"]["top1"].mean == 2
        assert analysis.everyone.systems["effect"]["x"]["top1"].mean == 3
        titles = {table.title for table in all_tables(analysis)}
        assert {f"Plausibility, C→E, {raters}" for raters in ("without excluded raters", "all raters")} <= titles
    assert not analysed(items, ratings, study=replace(STUDY, exclusion=NOBODY)).excluded


def test_imported_ratings_without_times_exclude_nobody_for_haste() -> None:
    items = made_items({"x": 1}, sources=2, checks=0)
    study = replace(STUDY, exclusion=Exclusion(None, 2.0, None))
    analysis = analysed(items, all_rated(items, 3, 4, seconds=0), study=study)
    assert not analysis.excluded
    assert analysis.raters[0].median_seconds is None


def test_when_all_raters_are_excluded_the_report_still_stands(tmp_path: Path) -> None:
    items = made_items({"x": 1}, sources=2)
    analysis = analysed(items, all_rated(items, 3, seconds=0.1))
    write_report(tmp_path, analysis)
    assert analysis.results.ratings == 0
    assert analysis.everyone.ratings > 0
    assert "1 of 1 raters are excluded" in (tmp_path / "report.md").read_text()


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return made_items({"a": 3, "b": 3, "c": 10}, sources=40)


@pytest.fixture(scope="module")
def simulation(items: list[Item]) -> Simulation:
    return simulate_ratings(STUDY, items, Crowd(raters=16, noise=0.8, bias=0.4, seed=7))


@pytest.fixture(scope="module")
def rehearsal(items: list[Item], simulation: Simulation) -> Analysis:
    return analysed(items, list(simulation.ratings), simulated=simulation.levels)


def test_the_analysis_finds_the_true_levels_and_their_order(
    items: list[Item], simulation: Simulation, rehearsal: Analysis
) -> None:
    assert list(simulation.levels) == ["a", "b", "c"]
    for relation in ("effect", "cause"):
        figures = {name: rehearsal.results.systems[relation][name]["top3"] for name in simulation.levels}
        assert [figure.near_best for figure in figures.values()] == [False, False, True]
        for name, figure in figures.items():
            credited = [(item, credit) for item in items if item.relation == relation for credit in item.credits]
            first = [item.id for item, credit in credited if credit.system == name and credit.rank in (1, 2, 3)]
            truth = np.mean([np.clip(simulation.scores[item], 0, 5) for item in first])
            assert figure.mean == pytest.approx(truth, abs=0.25)
            assert figure.low < truth < figure.high
        comparisons = rehearsal.results.comparisons[relation]["top3"]
        assert all(row.difference < 0 and row.holm < 0.05 for row in comparisons)
        gold = rehearsal.results.gold[relation]
        assert gold[WRONG].mean < gold[RIGHT].mean


def test_raters_without_noise_agree_and_careless_ones_are_found_by_the_checks(items: list[Item]) -> None:
    exact = simulate_ratings(STUDY, items, Crowd(raters=16, noise=0, bias=0))
    assert analysed(items, list(exact.ratings)).results.agreement["all"].alpha == pytest.approx(1)
    mixed = simulate_ratings(STUDY, items, Crowd(raters=12, careless=3, seed=9))
    analysis = analysed(items, list(mixed.ratings))
    assert {rater.name for rater in analysis.excluded} <= {*mixed.raters[:3]}
    assert len(analysis.excluded) >= 2  # one check in six is passed by guessing
    kept, everyone = analysis.results.agreement["all"].alpha, analysis.everyone.agreement["all"].alpha
    assert kept is not None
    assert everyone is not None
    assert kept > everyone + 0.05


def test_every_item_has_as_many_simulated_raters_as_planned(items: list[Item], simulation: Simulation) -> None:
    raters: dict[str, set[str]] = {}
    for rating in simulation.ratings:
        raters.setdefault(rating.item, set()).add(rating.rater)
    assert {len(raters[item.id]) for item in items if item.kind != CHECK} == {4}
    assert {len(raters[item.id]) for item in items if item.kind == CHECK} == {16}
    for crowd in (Crowd(raters=0), Crowd(noise=-1), Crowd(raters=2, careless=3)):
        with pytest.raises(Cod3sError, match="cannot simulate"):
            simulate_ratings(STUDY, items, crowd)


def test_the_report_has_the_same_bytes_in_whatever_order_ratings_come(
    tmp_path: Path, items: list[Item], simulation: Simulation, rehearsal: Analysis
) -> None:
    shuffled = list(simulation.ratings)
    random.Random(1).shuffle(shuffled)
    write_report(tmp_path / "a", rehearsal)
    write_report(tmp_path / "b", analysed(items, shuffled, simulated=simulation.levels))
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["figure.png", "metrics.json", "report.html", "report.md"]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    record = json.loads((tmp_path / "a" / "metrics.json").read_text())
    assert record == json.loads(json.dumps(rehearsal.record(), allow_nan=False))
    assert set(record["results"]["systems"]["effect"]["c"]) == set(FIGURES)
    assert set(record["results"]["agreement"]) == {"all", "answers", "gold"}


def test_the_report_says_when_it_is_simulated_and_only_then(tmp_path: Path, rehearsal: Analysis) -> None:
    write_report(tmp_path / "simulated", rehearsal)
    write_report(tmp_path / "real", replace(rehearsal, simulated=None))
    for name in ("report.html", "report.md"):
        assert SIMULATED_BANNER in (tmp_path / "simulated" / name).read_text()
        assert "SIMULATED" not in (tmp_path / "real" / name).read_text()
    drawn, real = ((tmp_path / name / FIGURE).read_bytes() for name in ("simulated", "real"))
    assert drawn[:8] == b"\x89PNG\r\n\x1a\n"
    assert drawn != real


def test_the_page_needs_no_network_and_escapes_names(tmp_path: Path) -> None:
    items = made_items({"<script>alert(1)</script>": 1}, sources=2, checks=0)
    write_report(tmp_path, analysed(items, all_rated(items, 3, 4)))
    page = (tmp_path / "report.html").read_text()
    for namespace in ("http://www.w3.org", "http://purl.org", "http://creativecommons.org"):
        page = page.replace(namespace, "")
    assert "<svg" in page
    assert "<script" not in page
    assert "http://" not in page


def test_the_papers_figures_stand_beside_ours_only_on_the_papers_data() -> None:
    items = made_items({"s2s": 3, "mine": 3}, sources=2, relations=("effect",), checks=0)
    results = analysed(items, all_rated(items, 3, 4)).results
    assert "paper" not in plausibility_table(results, "effect", "all raters").columns
    table = plausibility_table(replace(results, is_copa_dev=True), "effect", "all raters")
    assert table.columns[-1] == "paper"
    cells = {row[0].text: row[-1].text for row in table.rows}
    assert (cells["s2s"], cells["mine"], cells["gold: right"]) == ("2.7 / 2.7 / 3.3", "–", "4.2")
    assert "max of 10" not in table.columns  # no system has more than three answers
