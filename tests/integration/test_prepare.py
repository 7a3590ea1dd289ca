"""A corpus is what its manifest says, whatever happened while it was made."""

import gzip
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cod3s.bins import open_bins
from cod3s.corpus import prepare
from cod3s.corpus.manifest import Manifest, PrepareConfig, load_manifest, remarks_on
from cod3s.encode import load_encoder
from cod3s.errors import Cod3sError
from cod3s.signatures import load_code
from cod3s.signatures.signer import sign
from conftest import Run
from made_pairs import made_pairs, write_pairs

DATA = Path(__file__).parents[3] / "shared" / "data" / "pairs" / "causal-pairs.tsv.gz"
SPLITS = ("train", "dev", "test")
UNSIGNED = PrepareConfig(relation="effect", encoder="none", held_out=0.2)


def rows(corpus: Path, relation: str, split: str) -> list[dict[str, str]]:
    files = sorted((corpus / relation).glob(f"{split}-*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def bare(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def digests(corpus: Path) -> dict[str, str]:
    files = (path for path in corpus.rglob("*") if path.is_file())
    return {str(path.relative_to(corpus)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "cod3s", "prepare", *map(str, arguments)]


def run(*arguments: str | Path, limit: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, preexec_fn=limit)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.tsv", 3000)


@pytest.fixture(scope="module")
def signed(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    corpus = tmp_path_factory.mktemp("signed") / "corpus"
    config = PrepareConfig(encoder="static", shard_rows=500, held_out=0.1, dev=100, test=100)
    return corpus, prepare([str(pairs)], str(corpus), config)[0]


def test_the_counts_add_up_from_the_lines_of_the_file_to_the_rows_of_the_shards(
    signed: tuple[Path, Manifest],
) -> None:
    corpus, manifest = signed
    for name, facts in manifest.relations.items():
        assert facts.funnel[0].rows_in == 3000
        assert facts.funnel[-1].rows_out == sum(facts.splits.values()) == sum(shard.rows for shard in facts.shards)
        for split in SPLITS:
            assert len(rows(corpus, name, split)) == facts.splits[split]


def test_the_checksums_of_the_manifest_hold(signed: tuple[Path, Manifest]) -> None:
    corpus, manifest = signed
    found = digests(corpus)
    made = [one for facts in manifest.relations.values() for one in [*facts.shards, facts.bins] if one]
    others = {name for name in found if name.startswith("code/")} | {"manifest.json"}
    assert {one.name: one.sha256 for one in made} == {n: d for n, d in found.items() if n not in others}
    assert load_manifest(corpus) == manifest


def test_shards_are_full_but_for_the_last_one(signed: tuple[Path, Manifest]) -> None:
    for facts in signed[1].relations.values():
        train = [shard.rows for shard in facts.shards if "/train-" in shard.name]
        assert len(train) > 1
        assert set(train[:-1]) == {500}


def test_the_signature_is_that_of_the_target(signed: tuple[Path, Manifest]) -> None:
    corpus, manifest = signed
    some = rows(corpus, "effect", "dev")[:20]
    expected = sign([row["target"] for row in some], encoder=load_encoder("static"), with_pairs=False)
    assert [row["signature"] for row in some] == [one.signature for one in expected.sentences]
    assert manifest.encoder == expected.encoder


def test_the_source_signature_is_that_of_the_source(signed: tuple[Path, Manifest]) -> None:
    some = rows(signed[0], "cause", "dev")[:20]
    expected = sign([row["source"] for row in some], encoder=load_encoder("static"), with_pairs=False)
    assert [row["source_signature"] for row in some] == [one.signature for one in expected.sentences]


def test_a_sentence_has_one_signature_wherever_it_stands(tmp_path: Path) -> None:
    """Sentences that repeat are encoded once: as a target, as a source, and as both."""
    chain = ["the pipe burst", "the cellar flooded", "we called a plumber", "the pipe burst"]
    pairs = [*pairwise(chain), ("the pipe burst", "we called a plumber")]
    lines = "".join(f"{cause}\t{effect}\n" for cause, effect in pairs)
    (tmp_path / "pairs.tsv").write_text("cause\teffect\n" + lines, encoding="utf-8")
    config = PrepareConfig(relation="effect", encoder="static", dev=0, test=0)
    prepare([str(tmp_path / "pairs.tsv")], str(tmp_path / "c"), config)
    found = {
        (row[text], row[bits])
        for row in rows(tmp_path / "c", "effect", "train")
        for text, bits in (("source", "source_signature"), ("target", "signature"))
    }
    expected = sign(sorted(set(chain)), encoder=load_encoder("static"), with_pairs=False)
    assert found == {(one.text, one.signature) for one in expected.sentences}
    with open_bins(tmp_path / "c" / "effect" / "bins.sqlite") as bins:
        assert sum(one.count for one in bins.bins()) == len(pairs)


def test_the_code_of_the_corpus_signs_as_the_corpus_was_signed(signed: tuple[Path, Manifest]) -> None:
    code, fitted_for = load_code(signed[0] / "code")
    assert (code.bits, code.seed, fitted_for) == (16, 1234, signed[1].encoder)


def test_the_bins_hold_the_targets_of_train(signed: tuple[Path, Manifest]) -> None:
    corpus, manifest = signed
    for name, facts in manifest.relations.items():
        with open_bins(corpus / name / "bins.sqlite") as bins:
            counts = {one.signature: one.count for one in bins.bins()}
        train = [row["signature"] for row in rows(corpus, name, "train")]
        assert counts == {signature: train.count(signature) for signature in set(train)}
        assert facts.bins is not None
        assert facts.bins.rows == len(counts)


def test_source_and_target_change_sides_with_the_relation(signed: tuple[Path, Manifest]) -> None:
    given_pairs = {(cause, effect) for cause, effect, _ in made_pairs(3000)}
    corpus, _ = signed
    assert {(row["source"], row["target"]) for row in rows(corpus, "effect", "train")} <= given_pairs
    assert {(row["target"], row["source"]) for row in rows(corpus, "cause", "train")} <= given_pairs


def test_a_relation_learns_from_the_order_that_says_it_so(signed: tuple[Path, Manifest]) -> None:
    corpus, _ = signed
    assert {row["order"] for row in rows(corpus, "effect", "train")} == {"so", ""}
    assert {row["order"] for row in rows(corpus, "cause", "train")} == {"because", ""}


def test_all_orders_serve_where_pairs_are_few(pairs: Path, tmp_path: Path) -> None:
    config = PrepareConfig(relation="cause", encoder="none", orders="all")
    prepare([str(pairs)], str(tmp_path / "c"), config)
    assert {row["order"] for row in rows(tmp_path / "c", "cause", "train")} == {"so", "because", ""}


def test_the_pairs_that_orders_leave_out_are_reported_with_the_option(signed: tuple[Path, Manifest]) -> None:
    remarks = remarks_on(signed[1])
    assert len(remarks) == 2
    assert "effect leaves out 995 pairs" in remarks[0]
    assert "--orders all" in remarks[0]


@pytest.mark.parametrize("code", ["median", "itq"])
def test_a_learned_code_is_fitted_on_the_corpus_and_signs_it(pairs: Path, tmp_path: Path, code: str) -> None:
    config = PrepareConfig(relation="effect", encoder="static", bits=8, code=code, dev=0, test=0)
    prepare([pairs], tmp_path / "c", config)
    fitted, _ = load_code(tmp_path / "c" / "code")
    assert (fitted.kind, fitted.bits) == (code, 8)
    found = rows(tmp_path / "c", "effect", "train")
    expected = sign([row["target"] for row in found[:20]], encoder="static", code=fitted, with_pairs=False)
    assert [row["signature"] for row in found[:20]] == [one.signature for one in expected.sentences]
    ones = [sum(row["signature"][bit] == "1" for row in found) / len(found) for bit in range(8)]
    assert all(0.3 < share < 0.7 for share in ones)
    again = PrepareConfig(**{**vars(config), "code": str(tmp_path / "c" / "code")})
    prepare([pairs], tmp_path / "other", again)
    assert rows(tmp_path / "other", "effect", "train") == found


def test_no_pair_comes_twice_not_even_with_other_punctuation(signed: tuple[Path, Manifest]) -> None:
    corpus, manifest = signed
    for name, facts in manifest.relations.items():
        keys = [
            (bare(row["source"]), bare(row["target"])) for split in SPLITS for row in rows(corpus, name, split)
        ]
        assert len(keys) == len(set(keys))
        removed = {step.name: step.removed for step in facts.funnel}
        assert removed["exact duplicate"] > 0
        assert removed["near duplicate"] > 0


def sides(corpus: Path, relations: Iterable[str], splits: Sequence[str], *names: str) -> set[str]:
    found = [row for relation in relations for split in splits for row in rows(corpus, relation, split)]
    return {bare(row[name]) for row in found for name in names}


def test_no_source_of_dev_or_test_is_anywhere_in_train_of_any_relation(signed: tuple[Path, Manifest]) -> None:
    corpus, manifest = signed
    held_out = sides(corpus, manifest.relations, ("dev", "test"), "source")
    assert len(held_out) > 100
    assert not held_out & sides(corpus, manifest.relations, ("train",), "source", "target")


def answers(path: Path, sources: int, *columns: str) -> Path:
    """Six targets per source and relation; the split and the group of a source, where they are asked for."""
    lines = ["\t".join((*columns, "source", "relation", "target"))]
    for number in range(sources):
        values = {"split": ("train", "train", "dev", "validation", "test")[number % 5], "group": f"g{number // 3}"}
        cells = [values[name] for name in columns]
        lines += [
            "\t".join((*cells, f"the {number}th lamp broke", relation, f"we saw the {relation} number {target}"))
            for relation in ("effect", "cause")
            for target in range(6)
        ]
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def splits_of_sources(corpus: Path) -> dict[str, set[str]]:
    """Each source, and the splits that it is in, in any relation."""
    found: dict[str, set[str]] = {}
    for relation in ("effect", "cause"):
        for split in SPLITS:
            for row in rows(corpus, relation, split):
                found.setdefault(row["source"], set()).add(split)
    return found


def test_sources_with_several_targets_stay_whole_and_some_are_held_out(tmp_path: Path) -> None:
    config = PrepareConfig(encoder="none", filter="none")
    manifest, _ = prepare([answers(tmp_path / "answers.tsv.gz", 100)], tmp_path / "c", config)
    for facts in manifest.relations.values():
        assert sum(facts.splits.values()) == 600
        assert 60 <= facts.splits["dev"] <= 100
        assert 60 <= facts.splits["test"] <= 100
    assert all(len(splits) == 1 for splits in splits_of_sources(tmp_path / "c").values())
    assert remarks_on(manifest) == []


def test_the_splits_of_the_input_are_kept(tmp_path: Path) -> None:
    config = PrepareConfig(encoder="none", filter="none")
    manifest, _ = prepare([answers(tmp_path / "answers.tsv", 50, "split")], tmp_path / "c", config)
    assert manifest.relations["cause"].splits == {"train": 120, "dev": 120, "test": 60}
    found = splits_of_sources(tmp_path / "c")
    assert found["the 2th lamp broke"] == found["the 3th lamp broke"] == {"dev"}
    assert found["the 4th lamp broke"] == {"test"}


def test_sources_of_one_group_are_in_one_split(tmp_path: Path) -> None:
    config = PrepareConfig(encoder="none", filter="none")
    prepare([answers(tmp_path / "answers.tsv", 90, "group")], tmp_path / "c", config)
    found = splits_of_sources(tmp_path / "c")
    groups = [set.union(*(found[f"the {3 * group + n}th lamp broke"] for n in range(3))) for group in range(30)]
    assert {frozenset(group) for group in groups} == {frozenset([split]) for split in SPLITS}


def test_a_source_that_the_input_puts_into_two_splits_leaves_train(tmp_path: Path) -> None:
    rows_ = [("test", "the lamp broke", "it was dark"), ("train", "The lamp broke!", "we lit a candle")]
    rows_ += [("train", "the bus was late", "the lamp broke"), ("train", "it rained", "we stayed in")]
    text = "".join(f"{split}\t{source}\teffect\t{target}\n" for split, source, target in rows_)
    (tmp_path / "a.tsv").write_text("split\tsource\trelation\ttarget\n" + text)
    manifest, _ = prepare([tmp_path / "a.tsv"], tmp_path / "c", PrepareConfig(encoder="none"))
    assert list(manifest.relations) == ["effect"], "no row is about causes"
    assert manifest.relations["effect"].splits == {"train": 1, "dev": 0, "test": 1}
    assert {step.name: step.removed for step in manifest.relations["effect"].funnel}["leaked"] == 2


def test_few_sources_are_all_for_train(tmp_path: Path) -> None:
    for number, held_out in ((1, None), (1, 0.25), (2, 0.25), (9, None)):
        lines = [f"the {who} lamp broke\tit was too dark\n" for who in "abcdefghi"[:number]]
        (tmp_path / "pairs.tsv").write_text("cause\teffect\n" + "".join(lines), encoding="utf-8")
        config = PrepareConfig(encoder="none", relation="effect", held_out=held_out)
        corpus = tmp_path / f"{number} {held_out}"
        manifest, _ = prepare([tmp_path / "pairs.tsv"], corpus, config)
        assert manifest.relations["effect"].splits == {"train": number, "dev": 0, "test": 0}
        remarks = remarks_on(manifest)
        assert len(remarks) == 2
        assert "fewer than 10 sources" in remarks[0]


def test_a_source_with_most_of_the_pairs_stays_in_train(tmp_path: Path) -> None:
    lines = [f"the lamp broke\tit was too dark to read page {page}\n" for page in range(300)]
    lines += [f"the {who} was late\twe waited\n" for who in "abcdefghijklmnop"]
    (tmp_path / "pairs.tsv").write_text("source\ttarget\n" + "".join(lines), encoding="utf-8")
    config = PrepareConfig(encoder="none", relation="effect", filter="none")
    facts = prepare([tmp_path / "pairs.tsv"], tmp_path / "c", config)[0].relations["effect"]
    assert facts.splits["train"] > 300
    assert facts.splits["dev"] >= 1
    assert facts.splits["test"] >= 1


def split_of(corpus: Path) -> dict[tuple[str, str], str]:
    """Each pair, by its letters, and the split it is in."""
    return {
        (bare(row["source"]), bare(row["target"])): split
        for split in SPLITS
        for row in rows(corpus, "effect", split)
    }


WORDS = st.sampled_from(
    ["the", "old", "baker", "lost", "a", "lamp", "and", "we", "saw", "him", "run", "at", "dawn"]
)
SENTENCE = st.lists(WORDS, min_size=2, max_size=5).map(" ".join)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=60)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=PAIRS, added=PAIRS, dev=st.integers(0, 5))
def test_adding_data_never_moves_a_pair_between_splits(
    tmp_path: Path, before: list[tuple[str, str]], added: list[tuple[str, str]], dev: int
) -> None:
    found = []
    config = PrepareConfig(relation="effect", encoder="none", held_out=0.25, filter="none", dev=dev, test=5)
    for number, content in enumerate((before, added + before)):
        file, corpus = tmp_path / f"{number}.tsv", tmp_path / f"{number}"
        file.write_text("cause\teffect\n" + "".join(f"{a}\t{b}\n" for a, b in content), encoding="utf-8")
        shutil.rmtree(corpus, ignore_errors=True)
        prepare([str(file)], str(corpus), config)
        found.append(split_of(corpus))
    first, second = found
    if len({bare(source) for source, _ in before}) < 10:  # too few sources to hold any out
        assert set(first.values()) == {"train"}
    else:  # a pair may be withdrawn, from train as a leak or from dev as full
        assert all(second.get(pair, split) == split for pair, split in first.items())


def test_the_order_of_files_and_lines_does_not_matter(tmp_path: Path) -> None:
    lines = ["\t".join(pair) + "\n" for pair in made_pairs(600)]
    for name, order in {"forward": lines, "backward": lines[::-1]}.items():
        for number, part in enumerate((order[:200], order[200:])):
            (tmp_path / name).mkdir(exist_ok=True)
            file = tmp_path / name / f"{number}.tsv"
            file.write_text("cause\teffect\torder\n" + "".join(part), encoding="utf-8")
        prepare([str(tmp_path / name)], str(tmp_path / f"{name}-corpus"), UNSIGNED)
    one, other = digests(tmp_path / "forward-corpus"), digests(tmp_path / "backward-corpus")
    assert one.keys() == other.keys()
    assert {name for name in one if one[name] != other[name]} == {"manifest.json"}  # it names the files


def test_a_limit_takes_a_sample_that_a_larger_limit_contains(pairs: Path, tmp_path: Path) -> None:
    train = {}
    for limit in (100, 200):
        config = PrepareConfig(relation="effect", encoder="none", limit=limit)
        prepare([str(pairs)], str(tmp_path / str(limit)), config)
        train[limit] = [row["source"] for row in rows(tmp_path / str(limit), "effect", "train")]
    assert [len(found) for found in train.values()] == [100, 200]
    assert train[200][:100] == train[100]


def test_nothing_is_held_out_when_nothing_is_asked_for(pairs: Path, tmp_path: Path) -> None:
    config = PrepareConfig(relation="effect", encoder="none", dev=0, test=0)
    facts = prepare([str(pairs)], str(tmp_path / "c"), config)[0].relations["effect"]
    assert facts.splits == {"train": facts.funnel[-1].rows_out, "dev": 0, "test": 0}


def test_a_relation_of_your_own_is_prepared_like_any_other(tmp_path: Path) -> None:
    replies = [
        "How are you?\tFine, thank you.",
        "Is it raining?\tOnly a little.",
        "Are you hungry?\tNot yet, are you?",
    ]
    (tmp_path / "talk.tsv").write_text("source\ttarget\n" + "\n".join(replies), encoding="utf-8")
    config = PrepareConfig(relation="reply", template="{source} {target}", encoder="static", dev=0, test=0, bits=8)
    manifest, _ = prepare([str(tmp_path / "talk.tsv")], str(tmp_path / "c"), config)
    found = rows(tmp_path / "c", "reply", "train")
    assert {f"{row['source']}\t{row['target']}" for row in found} == set(replies)
    assert {len(row["signature"]) for row in found} == {8}
    assert manifest.relations["reply"].template == "{source} {target}"


def test_the_second_run_does_nothing(pairs: Path, tmp_path: Path) -> None:
    assert prepare([str(pairs)], str(tmp_path / "c"), UNSIGNED)[1]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "c").rglob("*")}
    assert not prepare([str(pairs)], str(tmp_path / "c"), UNSIGNED)[1]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "c").rglob("*")} == before


def test_pairs_from_standard_input_give_the_same_corpus_as_from_a_file(pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    options = ("--relation", "effect", "--encoder", "none")
    for wanted in ("corpus", "is finished: nothing to do"):
        with pairs.open("rb") as stream:
            done = subprocess.run(
                command("-", "-o", tmp_path / "corpus", *options),
                stdin=stream,
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
            )
        assert done.returncode == 0, done.stderr
        assert wanted in done.stdout + done.stderr
    assert not list((tmp_path / "temporary").iterdir()), "the copy is removed"
    assert run(pairs, "-o", tmp_path / "other", *options).returncode == 0
    different = {
        name
        for name, digest in digests(tmp_path / "corpus").items()
        if digests(tmp_path / "other")[name] != digest
    }
    assert different == {"manifest.json"}, "which holds the name of the input"
    manifest = load_manifest(tmp_path / "corpus")
    assert [file.name for file in manifest.inputs] == ["standard input"]


def test_another_config_or_input_for_the_same_folder_is_an_error(pairs: Path, tmp_path: Path) -> None:
    prepare([str(pairs)], str(tmp_path / "c"), UNSIGNED)
    with pytest.raises(Cod3sError, match="bits was 16, is now 8"):
        prepare([str(pairs)], str(tmp_path / "c"), PrepareConfig(**{**vars(UNSIGNED), "bits": 8}))
    other = write_pairs(tmp_path / "other.tsv", 10)
    with pytest.raises(Cod3sError, match="the input files are different"):
        prepare([str(other)], str(tmp_path / "c"), UNSIGNED)


@pytest.mark.parametrize("file", ["manifest.json", ".work/config.json"])
def test_a_corpus_of_another_format_is_an_error_finished_or_not(pairs: Path, tmp_path: Path, file: str) -> None:
    corpus = tmp_path / "c"
    prepare([str(pairs)], str(corpus), UNSIGNED)
    made = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))
    (corpus / "manifest.json").unlink()
    (corpus / file).parent.mkdir(exist_ok=True)
    (corpus / file).write_text(json.dumps({**made, "format": 1}), encoding="utf-8")
    with pytest.raises(Cod3sError, match="has format 1, but this version of cod3s uses 3") as raised:
        prepare([str(pairs)], str(corpus), UNSIGNED)
    assert "another folder" in raised.value.hint


def test_what_is_not_a_corpus_has_a_hint_that_fits(pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="is a file, but a corpus is a folder") as raised:
        load_manifest(pairs)
    assert "cod3s prepare pairs.tsv -o corpus" in raised.value.hint
    with pytest.raises(Cod3sError, match="there is no corpus in"):
        load_manifest(tmp_path)
    (tmp_path / ".work").mkdir()
    with pytest.raises(Cod3sError, match="is not finished") as raised:
        load_manifest(tmp_path)
    assert "to resume" in raised.value.hint


def test_a_damaged_corpus_is_noticed(pairs: Path, tmp_path: Path) -> None:
    prepare([str(pairs)], str(tmp_path / "c"), UNSIGNED)
    (tmp_path / "c" / "effect" / "train-00000.parquet").write_bytes(b"cut")
    with pytest.raises(Cod3sError, match=r"train-00000\.parquet is missing or damaged"):
        prepare([str(pairs)], str(tmp_path / "c"), UNSIGNED)


def test_a_folder_with_other_things_in_it_is_left_alone(pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("do not touch", encoding="utf-8")
    with pytest.raises(Cod3sError, match="already contains files"):
        prepare([str(pairs)], str(tmp_path), UNSIGNED)
    assert [path.name for path in tmp_path.iterdir()] == ["diary.txt"]


def test_a_killed_run_is_finished_with_the_same_bytes(pairs: Path, tmp_path: Path) -> None:
    options = ("--encoder", "static", "--shard-rows", "100", "--held-out", "0.1")
    assert run(pairs, "-o", tmp_path / "whole", *options).returncode == 0
    corpus = tmp_path / "killed"
    process = subprocess.Popen(command(pairs, "-o", corpus, *options), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(corpus.glob("*/train-*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    left = list(corpus.glob("*/train-*.parquet"))
    assert left, "no shard appeared within a minute"
    assert not (corpus / "manifest.json").exists(), "the run was over before it could be killed"
    times = {path: path.stat().st_mtime_ns for path in left[:-1]}
    assert run(pairs, "-o", corpus, *options).returncode == 0
    assert digests(corpus) == digests(tmp_path / "whole")
    assert {path: path.stat().st_mtime_ns for path in times} == times, "finished shards are not made again"


def test_an_unfinished_corpus_is_not_finished_with_another_config(pairs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "c"
    prepare([str(pairs)], str(corpus), UNSIGNED)
    (corpus / ".work").mkdir()
    begun = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))
    (corpus / ".work" / "config.json").write_text(json.dumps(begun), encoding="utf-8")
    (corpus / "manifest.json").unlink()
    with pytest.raises(Cod3sError, match="filter was 'default', is now 'paper'"):
        prepare([str(pairs)], str(corpus), PrepareConfig(**{**vars(UNSIGNED), "filter": "paper"}))


def test_bad_input_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("cause\teffect\nthe lamp broke\tit was dark\nragged\n", encoding="utf-8")
    with pytest.raises(Cod3sError, match="line 3: it has fewer cells"):
        prepare([str(file)], str(tmp_path / "c"), UNSIGNED)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]
    skipping = PrepareConfig(**{**vars(UNSIGNED), "bad_rows": "skip", "dev": 0, "test": 0})
    manifest, _ = prepare([str(file)], str(tmp_path / "c"), skipping)
    assert manifest.relations["effect"].funnel[0].removed == 1
    assert manifest.relations["effect"].splits["train"] == 1
    assert "line 3" in manifest.bad_rows[0]


def test_pairs_that_are_all_filtered_are_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("cause\teffect\nno\tyes\n\t\n", encoding="utf-8")
    with pytest.raises(Cod3sError, match=r"none of the 2 pairs is left for the relation 'effect'; .*empty:2 1"):
        prepare([str(tmp_path / "pairs.tsv")], str(tmp_path / "c"), UNSIGNED)
    assert not (tmp_path / "c").exists()


def test_empty_sides_are_never_signed_even_without_filters(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("cause\teffect\nthe lamp broke\t \u2003 \nit\tis\n", encoding="utf-8")
    config = PrepareConfig(relation="effect", encoder="static", filter="none", dev=0, test=0)
    facts = prepare([str(tmp_path / "pairs.tsv")], str(tmp_path / "c"), config)[0].relations["effect"]
    assert {step.name: step.removed for step in facts.funnel}["blank"] == 1
    assert facts.splits["train"] == 1


def test_a_full_disk_is_a_clear_error_and_leaves_no_half_file(pairs: Path, tmp_path: Path) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    corpus = tmp_path / "c"
    done = run(pairs, "-o", corpus, "--encoder", "none", limit=small_files)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr
    assert "hint:" in done.stderr
    assert not (corpus / "manifest.json").exists()
    assert not list(corpus.rglob("*.part"))
    assert run(pairs, "-o", corpus, "--encoder", "none").returncode == 0, "with room it is finished"


def test_the_command_prints_the_funnel_or_the_manifest(pairs: Path, tmp_path: Path) -> None:
    options = (pairs, "-o", tmp_path / "c", "--relation", "effect", "--encoder", "none")
    table = run(*options)
    assert table.returncode == 0
    assert "near duplicate" in table.stdout
    again = run(*options, "--json")
    assert "nothing to do" in again.stderr
    assert json.loads(again.stdout) == json.loads((tmp_path / "c" / "manifest.json").read_text(encoding="utf-8"))


WRONG_OPTIONS = {
    ("--relation", "reply"): "needs a template",
    ("--relation", "reply", "--template", "{source}"): "needs {source} and {target}",
    ("--relation", "effect", "--template", "x"): "has its own template",
    ("--relation", "../x", "--template", "{source} {target}"): "cannot be the name of a relation",
    ("--filter", "lenght"): "did you mean 'length'?",
    ("--encoder", "fats"): "did you mean 'fast'?",
    ("--held-out", "0.9"): "--held-out is 0.9, but it must be from 0 to 0.25",
    ("--encoder", "static", "--bits", "999"): "--bits is 999, but it must be from 1 to 256",
}


def test_wrong_options_say_what_to_do(pairs: Path, tmp_path: Path, here: Run) -> None:
    for options, message in WRONG_OPTIONS.items():
        done = here("prepare", pairs, "-o", tmp_path / "c", *options)
        assert done.returncode == 2, options
        assert message in done.stderr
        assert not (tmp_path / "c").exists()


@pytest.mark.skipif(not DATA.is_file(), reason="the pairs for training are not on this machine")
def test_real_pairs_keep_their_counts(tmp_path: Path) -> None:
    """223,840 is the number of rows that the file's own documentation gives."""
    manifest, _ = prepare([str(DATA)], str(tmp_path / "c"), PrepareConfig(encoder="none"))
    assert set(manifest.relations) == {"effect", "cause"}
    for facts in manifest.relations.values():
        assert facts.funnel[0].rows_in == 223_840
        assert facts.splits["train"] > 100_000
