"""The STS table: readers, rank correlation, codes on equal terms."""

import json
from pathlib import Path

import numpy as np
import pytest

from cod3s.encode import Encoder
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.evaluate.sts import ScoredPair, StsData, plot_sts, read_sts, spearman, sts_rows
from conftest import Run

PAIRS = [
    ("A boy feeds the ducks.", "A child is feeding ducks.", 4.6),
    ("The bus was late again.", "Once more the bus did not come on time.", 4.4),
    ("She paints the fence blue.", "She paints the door blue.", 2.8),
    ("He is peeling a potato.", "He is cutting a carrot.", 2.0),
    ("The bank raised its rates.", "A dog sleeps on the porch.", 0.0),
    ("Two men play chess.", "Rain is expected tomorrow.", 0.0),
    ("The kettle is boiling.", "The water in the kettle boils.", 4.8),
    ("I lost my ticket.", "My ticket is gone.", 4.0),
]
DATA = StsData(tuple(ScoredPair(*pair) for pair in PAIRS), ())


def tab_form(pairs: list[tuple[str, str, float]]) -> str:
    return "".join(f"main\tset\t2015\t{row:04d}\t{s:.3f}\t{a}\t{b}\n" for row, (a, b, s) in enumerate(pairs))


def comma_form(pairs: list[tuple[str, str, float]]) -> str:
    return "".join(f'"{a}","{b}",{s}\n' for a, b, s in pairs)


def read(path: Path, content: str) -> StsData:
    path.write_text(content, encoding="utf-8")
    return read_sts(path)


def test_all_forms_give_the_same_pairs(tmp_path: Path) -> None:
    path = tmp_path / "sts.csv"  # the tab-separated release is called .csv too
    assert read(path, tab_form(PAIRS)) == read(path, comma_form(PAIRS)) == DATA
    assert read(path, tab_form(PAIRS).replace("\n", "\tlicense\tsource\n")) == DATA, "further columns are ignored"
    quoted = read(path, tab_form([('"Stop, he said.', 'He said "stop".', 4.0), *PAIRS]))
    assert quoted.pairs[0].a == '"Stop, he said.', "quotes are ordinary characters between tabs"
    assert quoted.pairs[1:] == DATA.pairs


def test_rows_that_are_no_pairs_are_reported_with_their_line(tmp_path: Path) -> None:
    bad = 'sentence1,sentence2,score\n"only one cell"\n"a","b",nan\n" ","b",1\n"\x07\x08","b",1\n'
    data = read(tmp_path / "sts.csv", f'{bad}"{"a" * 11_000_000}","b",1\n\n{comma_form(PAIRS)}')
    assert data.pairs == DATA.pairs
    assert [line for line, _ in data.rejected] == [1, 2, 3, 4, 5, 6]
    assert "'score' is not a score" in data.rejected[0][1]
    for content in ("", "\n\n", "one line of prose\n", "a,b,1\n"):
        with pytest.raises(FileFormatError, match="scored pairs"):
            read(tmp_path / "sts.csv", content)


def test_spearman_shares_ranks_among_ties() -> None:
    for a, b, rho, reason in (
        ([1, 2, 3], [10, 20, 30], 1.0, "same order"),
        ([1, 2, 3], [3, 2, 1], -1.0, "opposite order"),
        ([1, 2, 2, 3], [1, 2, 3, 4], 0.9486833, "a tie shares rank 2.5: 4.5 / sqrt(4.5 * 5)"),
        ([1, 1, 1], [1, 2, 3], 0.0, "all tied: no order to correlate"),
    ):
        assert spearman(np.array(a), np.array(b)) == pytest.approx(rho), reason


def test_more_bits_come_nearer_to_the_cosine(static: Encoder) -> None:
    rows = sts_rows(DATA, static, bits=[256, 4, 32], seeds=5)
    assert [(row.code, row.bits) for row in rows] == [
        ("cosine", None),
        ("random", 4),
        ("random", 32),
        ("random", 256),
    ]
    assert rows[0].rho > 0.8
    assert abs(rows[3].rho - rows[0].rho) < abs(rows[1].rho - rows[0].rho)
    assert rows[1].sd > 0
    assert rows[1].values <= 5  # four bits: distances 0 to 4


def test_learned_codes_are_fitted_on_other_sentences_when_given(static: Encoder) -> None:
    fit = [f"Sentence number {number} is about {word}." for number in range(30) for word in ("tea", "rain", "war")]
    own = sts_rows(DATA, static, bits=[8], codes=["median", "itq"], seeds=2)
    other = sts_rows(DATA, static, bits=[8], codes=["median", "itq"], seeds=2, fit=fit)
    assert [row.code for row in own] == ["cosine", "median", "itq"]
    assert [row.rho for row in own[1:]] != [row.rho for row in other[1:]]


def test_an_unknown_code_or_image_is_a_clear_error(static: Encoder, tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="'mdian'"):
        sts_rows(DATA, static, bits=[8], codes=["mdian"])
    with pytest.raises(Cod3sError, match=r"as \.gif"):
        plot_sts([], tmp_path / "rho.gif", "")


def test_the_plot_is_a_png(static: Encoder, tmp_path: Path) -> None:
    rows = sts_rows(DATA, static, bits=[4, 8], codes=["random", "median"], seeds=2)
    plot_sts(rows, tmp_path / "rho.png", "settings")
    assert (tmp_path / "rho.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_prints_the_record_that_others_parse(here: Run, tmp_path: Path) -> None:
    (tmp_path / "sts.tsv").write_text(tab_form(PAIRS))
    options = ("-e", "static", "--bits", "4,8", "--codes", "random,median")
    done = here("sts", "sts.tsv", *options, "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert set(record) == {"settings", "rows"}
    assert all({"encoder", "code", "bits", "rho", "sd"} <= row.keys() for row in record["rows"])
    found = [(row["code"], row["bits"]) for row in record["rows"]]
    assert found == [("cosine", None), ("random", 4), ("random", 8), ("median", 4), ("median", 8)]


@pytest.mark.parametrize("name", ["sts-dev.tsv", "stsb-en-dev.csv"])
def test_the_benchmark_gives_the_independent_figures(name: str, shared_data: Path, fast: Encoder) -> None:
    """Dev cosine of MiniLM is .867 by an independent computation; 16 random bits lose about a quarter."""
    data = read_sts(shared_data / "eval" / name)
    assert len(data.pairs) == 1500
    assert not data.rejected
    rows = sts_rows(data, fast, bits=[16], seeds=5)
    assert rows[0].rho == pytest.approx(0.867, abs=0.001)
    assert rows[1].rho == pytest.approx(0.616, abs=0.03)
