"""Generation end to end on a trained tiny bundle: the library, the command line, and inputs that go wrong."""

import json
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import cod3s as package
from cod3s.bundle import read_facts, write_facts
from cod3s.decode.config import DEFAULT, PAPER, DecodeConfig
from cod3s.decode.generator import Generator, load
from cod3s.decode.request import MAX_CHARACTERS
from cod3s.errors import BinsError, BundleError, Cod3sError, SentenceError, SignatureError, UsageError
from cod3s.io.disk import read_json, write_json
from cod3s.models import BundleModels, open_models
from cod3s.records import Answer, AnswerSet
from cod3s.signatures import from_text
from cod3s.web.limits import Limits
from cod3s.web.requests import generate_request
from conftest import Run
from system_names import ALL_NAMES
from tiny_bundle import SOURCES, TinyBundle

QUICK = DecodeConfig(k=3, signature_beam=20, beam=6, samples=6, max_tokens=16, baseline_beam=6)


@pytest.fixture(scope="module")
def generator(tiny_bundle: TinyBundle) -> Generator:
    return load(tiny_bundle.exact)


def texts(found: AnswerSet) -> list[str]:
    return [answer.text for answer in found]


def differ(a: str, b: str) -> int:
    return int((from_text(a) != from_text(b)).sum())


def close(a: AnswerSet, b: AnswerSet) -> bool:
    """The same texts and signatures, scores but for rounding."""

    def keys(found: AnswerSet) -> list[tuple[str, str, int | None]]:
        return [(one.text, one.signature, one.signature_rank) for one in found]

    return keys(a) == keys(b) and np.allclose([x.score for x in a], [x.score for x in b], atol=1e-3)


# The library


def test_the_answers_of_the_front_page(tiny_bundle: TinyBundle) -> None:
    model = package.load(tiny_bundle.exact)
    answers = model.generate(SOURCES[0], relation="effect", k=5)
    assert len(answers) == 5
    assert len(set(texts(answers))) == 5
    assert all(isinstance(answer, Answer) and len(answer.signature) == 8 for answer in answers)


def test_short_forms_and_the_name_of_a_generator(generator: Generator) -> None:
    assert close(
        generator.effects(SOURCES[0], 2, options=QUICK), generator.generate(SOURCES[0], "effect", 2, options=QUICK)
    )
    assert generator.causes(SOURCES[0], options=QUICK).relation == "cause"
    assert repr(generator) == "Generator(bundle 'exact', relations effect, cause, 8 bits)"


def test_what_was_learned_is_among_the_answers(generator: Generator) -> None:
    """Both effects that the grammar knows, each in a bin of its own."""
    found = set(texts(generator.generate(SOURCES[0], "effect", 6)))
    assert found & {"the baker phoned a locksmith at home", "the baker slept in the garden at home"}


def test_scores_are_the_sums_that_they_claim_to_be(generator: Generator) -> None:
    found = generator.generate(SOURCES[1], "effect", options=QUICK)
    assert found.settings["rerank_signatures"] == found.settings["rerank_sentences"] == "mmi"
    for one in found:
        assert one.backward is not None
        assert one.score == pytest.approx(one.forward + 1.0 * one.backward)
        assert one.signature_forward is not None
        assert one.signature_backward is not None
        assert one.signature_score == pytest.approx(one.signature_forward + 1000 * one.signature_backward)
    scores = [one.signature_score for one in found]
    assert scores == sorted(scores, reverse=True)


def test_answers_come_in_the_order_of_their_signatures_and_lie_apart(generator: Generator) -> None:
    found = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(min_hamming=2, if_too_few="strict"))
    ranks = [one.signature_rank for one in found]
    assert ranks == sorted(ranks)
    assert all(differ(a.signature, b.signature) > 2 for a, b in combinations(found, 2))


def test_a_relaxed_threshold_is_told(generator: Generator) -> None:
    found = generator.generate(SOURCES[0], "effect", 12, options=QUICK.with_values(min_hamming=5, beam=30))
    assert any("differ in more than" in remark for remark in found.remarks)
    assert len({one.signature for one in found}) == 12


def test_a_strict_threshold_gives_fewer_and_says_so(generator: Generator) -> None:
    options = QUICK.with_values(min_hamming=5, if_too_few="strict")
    found = generator.generate(SOURCES[0], "effect", 12, options=options)
    assert len(found) < 12
    assert any("of 12 signatures were found" in remark for remark in found.remarks)


def test_more_answers_than_bins(generator: Generator) -> None:
    """8 bits have 256 bins: 300 answers cannot be had, and the exact search finds each bin once."""
    options = DecodeConfig(signature_search="exact", beam=1, max_tokens=4, rerank_sentences="none")
    found = generator.generate(SOURCES[0], "effect", 300, options=options)
    assert "only 256 of 300 signatures were found" in found.remarks
    assert len(found) <= 256


@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("system", ["cod3s", "s2s", "s2s-sigs"])
def test_a_beam_narrower_than_k_is_widened(k: int, system: str, generator: Generator) -> None:
    """Equal and empty texts do not count, so a few of k may be missing; in a beam of one, all but one would."""
    narrow = DecodeConfig(signature_beam=1, beam=5, baseline_beam=1, max_tokens=16)
    found = generator.generate(SOURCES[0], "effect", k, system=system, options=narrow)
    assert min(k, 2) <= len(found) <= k


def test_several_answers_of_each_bin(generator: Generator) -> None:
    found = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(per_bin=3, beam=30))
    assert len(found) == 9
    assert len(set(texts(found))) == 9
    assert [len({one.signature for one in found.answers[i : i + 3]}) for i in (0, 3, 6)] == [1, 1, 1]


SYSTEM_CASES = ALL_NAMES


@pytest.mark.parametrize("system", SYSTEM_CASES)
def test_every_system_answers_alone_as_in_a_batch(system: str, generator: Generator) -> None:
    """A batch of 1 equals a batch of n, also where sentences are drawn."""
    given = [["01001110"], ["11110000"]] if "oracle" in system else None
    together = generator.generate(SOURCES[:2], "effect", system=system, options=QUICK, signatures=given)
    own = given[1:] if given else None
    alone = generator.generate(SOURCES[1], "effect", system=system, options=QUICK, signatures=own)
    assert close(together[1], alone)
    assert texts(together[0]) != texts(together[1])
    assert 1 <= len(alone) <= (1 if "oracle" in system else 3)


def test_the_papers_options_run(generator: Generator) -> None:
    found = generator.generate(SOURCES[0], "cause", 3, options=PAPER.with_values(beam=6, max_tokens=12))
    assert len(found) == 3
    assert found.settings["normalise"] == "original"


def test_another_seed_draws_other_sentences(generator: Generator) -> None:
    def draw(seed: int) -> list[str]:
        options = QUICK.with_values(seed=seed, temperature=2.0)
        return texts(generator.generate(SOURCES[0], "effect", system="s2s-rs", options=options))

    assert draw(1) == draw(1)
    assert len({tuple(draw(seed)) for seed in range(4)}) > 1


def test_sampling_of_the_likeliest_token_alone_draws_one_text(generator: Generator) -> None:
    options = QUICK.with_values(search="sample", top_k=1, baseline_top_k=1, per_bin=6)
    found = generator.generate(SOURCES[0], "effect", options=options)
    assert len({one.signature for one in found}) == len(found), "one text of each bin"
    assert len(generator.generate(SOURCES[0], "effect", system="s2s-rs", options=options)) == 1


def test_signatures_of_the_user_are_written_in(generator: Generator) -> None:
    wanted = ["01001110", "11110000", "01001110"]
    found = generator.generate(SOURCES[0], "effect", options=QUICK, signatures=[wanted])
    assert [one.signature for one in found] == wanted[:2]  # one asked for twice is one bin
    assert all(one.signature_score is None and one.signature_rank is None for one in found)


def test_a_signature_changes_what_is_written(generator: Generator) -> None:
    """Each of the grammar's two effects is likelier in its own bin than in the other's."""
    effects = ["the baker phoned a locksmith at home", "the baker slept in the garden at home"]
    bins = generator.signer.signatures(effects)
    options = QUICK.with_values(per_bin=6, beam=20, rerank_sentences="none")

    def scores(signature: str) -> dict[str, float]:
        found = generator.generate(SOURCES[0], "effect", options=options, signatures=[[signature]])
        return {one.text: one.score for one in found}

    first, second = map(scores, bins)
    assert first[effects[0]] - first.get(effects[1], -9) > second.get(effects[0], -9) - second[effects[1]]


def test_checked_answers_know_the_signature_that_they_have(generator: Generator) -> None:
    found = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(check=True))
    assert [one.realised for one in found] == generator.signer.signatures(texts(found))
    assert all(one.hamming == differ(one.signature, one.realised) for one in found)


def test_faithful_answers_are_nearer_to_their_bins(generator: Generator) -> None:
    def total(found: AnswerSet) -> int:
        return sum(one.hamming or 0 for one in found)

    checked = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(check=True))
    nearest = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(bin_fit="rerank"))
    assert total(nearest) <= total(checked)
    kept = generator.generate(SOURCES[0], "effect", options=QUICK.with_values(bin_fit="filter", bin_fit_within=1))
    assert all((one.hamming or 0) <= 1 for one in kept)
    assert len(kept) == 3 or any("close enough" in remark for remark in kept.remarks)


# Streams


def test_a_stream_is_read_as_it_is_answered(generator: Generator) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield SOURCES[taken % 3]

    stream = generator.generate_many(endless(), "effect", system="s2s", options=QUICK, batch=4)
    found = [next(stream) for _ in range(10)]
    assert taken == 12
    assert [one.source for one in found] == [SOURCES[n % 3] for n in range(1, 11)]


def test_memory_stays_flat_over_many_sources(generator: Generator) -> None:
    """Five hundred sources after one hundred: the peak grows by less than 20 MB."""
    options = QUICK.with_values(k=1, beam=2, signature_beam=2, max_tokens=6, rerank_sentences="none")

    def run(number: int) -> int:
        sources = (f"the baker lost the key {n}" for n in range(number))
        assert sum(1 for _ in generator.generate_many(sources, "effect", options=options)) == number
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = run(100)
    assert run(500) - before < 20_000  # kilobytes


# What goes wrong

WRONG_SOURCES = [
    ("", "empty", "nothing was given"),
    (" \t\n", "empty", "nothing visible"),
    ("\x00\x07", "empty", "control characters alone"),
    ("a " * MAX_CHARACTERS, "characters", "no sentence is so long"),
]


@pytest.mark.parametrize(("source", "message", "why"), WRONG_SOURCES, ids=[why for *_, why in WRONG_SOURCES])
def test_sources_that_cannot_be_answered(source: str, message: str, why: str, generator: Generator) -> None:
    with pytest.raises(SentenceError, match=message):
        generator.generate(source, "effect", options=QUICK)


ODD_SOURCES = [
    "x",
    "!",
    "the\x00baker\tlost\r\nit",
    "Der Bäcker verlor den Schlüssel",
    "面包师丢了钥匙",
    "🥐" * 50,
    "</s>",
]


@pytest.mark.parametrize("source", ODD_SOURCES)
def test_odd_sources_are_answered(source: str, generator: Generator) -> None:
    assert len(generator.generate(source, "effect", options=QUICK)) == 3


def test_a_source_that_is_too_long_is_cut_and_that_is_told(generator: Generator) -> None:
    found = generator.generate("the baker lost the key " * 100, "effect", options=QUICK)
    assert len(found) == 3
    assert any("its end was left out" in remark for remark in found.remarks)


def test_an_unknown_relation_is_told_the_nearest(generator: Generator) -> None:
    with pytest.raises(Cod3sError) as raised:
        generator.generate("x", "effects")
    assert raised.value.hint == "did you mean 'effect'?"


def test_signatures_of_the_wrong_length_are_refused(generator: Generator) -> None:
    with pytest.raises(SignatureError, match="8 are needed"):
        generator.generate("x", "effect", signatures=[["0101"]])


@pytest.mark.parametrize("system", ["s2s", "s2s-sigs", "s2s-rs"])
def test_a_system_of_one_stage_takes_no_signatures(system: str, generator: Generator) -> None:
    with pytest.raises(Cod3sError, match="takes no signatures"):
        generator.generate("x", "effect", system=system, signatures=[["01001110"]])
    with pytest.raises(Cod3sError, match="takes no signatures"):
        next(generator.stream("x", "effect", system=system, signatures=["01001110"]))


@pytest.mark.parametrize("source", [None, 3.5, float("nan")])
def test_what_is_not_text_is_told_so(source: object, generator: Generator) -> None:
    with pytest.raises(SentenceError, match="not text"):
        generator.generate(source, "effect")  # type: ignore[call-overload]
    with pytest.raises(SentenceError, match=r"source 2: .* not text"):
        generator.generate(["it rained", source], "effect", options=QUICK)  # type: ignore[list-item]


@pytest.mark.parametrize("k", ["3", 2.5])
def test_k_is_a_whole_number(k: object, generator: Generator) -> None:
    with pytest.raises(UsageError, match="whole number"):
        generator.generate("it rained", "effect", k)  # type: ignore[call-overload]


def test_many_sources_are_not_the_letters_of_one(generator: Generator) -> None:
    with pytest.raises(SentenceError, match="one source was given"):
        next(generator.generate_many("it rained", "effect"))


@pytest.mark.parametrize("size", [0, -1])
def test_batches_groups_and_threads_hold_at_least_one(
    size: int, generator: Generator, tiny_bundle: TinyBundle
) -> None:
    with pytest.raises(UsageError, match="batches"):
        next(generator.generate_many(["it rained"], "effect", batch=size))
    with pytest.raises(UsageError, match="groups"):
        next(generator.stream("it rained", "effect", group=size))
    with pytest.raises(UsageError, match="threads"):
        Generator(tiny_bundle.small, threads=size)


def test_a_source_that_cannot_be_read_comes_after_the_answers_before_it(generator: Generator) -> None:
    stream = generator.generate_many([*SOURCES[:2], " ", *SOURCES[2:3]], "effect", options=QUICK)
    assert [next(stream).source, next(stream).source] == SOURCES[:2]
    with pytest.raises(SentenceError, match="source 3: an empty sentence"):
        next(stream)


@pytest.mark.parametrize("source", ["\u200b", "\ufe0f \xad"])
def test_characters_that_nobody_sees_are_no_source(source: str, generator: Generator) -> None:
    with pytest.raises(SentenceError, match="empty"):
        generator.generate(source, "effect")


def test_an_oracle_needs_its_signatures(generator: Generator) -> None:
    with pytest.raises(Cod3sError, match="needs each source's signature"):
        generator.generate("x", "effect", system="cod3s-oracle-beam")


def test_torch_systems_need_torch_weights(tiny_bundle: TinyBundle) -> None:
    with pytest.raises(BundleError) as raised:
        load(tiny_bundle.small).generate("x", "effect", system="dpc")
    assert "--word-graph" in raised.value.hint


def test_a_folder_that_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="not a bundle"):
        load(tmp_path)


def copied(bundle: Path, folder: Path) -> Path:
    shutil.copytree(bundle, folder)
    return folder


@pytest.mark.parametrize("name", ["tokens.model", "code/hyperplanes.npy", "models/shared/model.bin"])
@pytest.mark.parametrize("emptied", [True, False])
def test_a_bundle_with_a_missing_or_empty_file(
    name: str, emptied: bool, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    folder = copied(tiny_bundle.small, tmp_path / "bundle")
    (folder / name).write_bytes(b"") if emptied else (folder / name).unlink()
    with pytest.raises(BundleError, match=name):
        load(folder)


def test_damaged_bins_are_a_clear_error(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    folder = copied(tiny_bundle.small, tmp_path / "bundle")
    (folder / "bins" / "effect.sqlite").write_bytes(b"no database at all" * 500)
    with pytest.raises(BundleError, match="has changed since it was exported"):
        load(folder)
    write_facts(folder, read_facts(folder))  # with its checksum
    with pytest.raises(BinsError, match="damaged"):
        load(folder).generate("x", "effect", options=QUICK)


def test_without_an_inverse_relation_the_default_does_without_mmi_and_says_so(
    tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    folder = copied(tiny_bundle.small, tmp_path / "bundle")
    facts = read_json(folder / "bundle.json")
    facts["relations"]["effect"]["inverse"] = ""  # as in a relation of a user's own
    write_json(folder / "bundle.json", facts)
    generator = load(folder)
    found = generator.generate(SOURCES[0], "effect", options=QUICK)
    assert found.settings["rerank_sentences"] == "none"
    assert any("not reranked by MMI" in remark for remark in found.remarks)
    with pytest.raises(BundleError, match="MMI needs"):
        generator.generate(SOURCES[0], "effect", options=QUICK.with_values(rerank_sentences="mmi"))


def test_without_a_signature_role_the_sentence_role_infers_signatures(
    tiny_bundle: TinyBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same vocabulary without the roles: what a run of `plain` and `sentence` exports."""
    whole = open_models(tiny_bundle.small)
    engine = whole.sentence("effect").engine
    roles = {"effect": {"plain": "shared", "sentence": "shared"}}
    generator = load(tiny_bundle.small)
    fewer = BundleModels(whole.folder, replace(whole.facts, models=roles), whole.vocabulary, lambda name: engine)
    monkeypatch.setattr(generator, "models", fewer)
    found = generator.generate(SOURCES[0], "effect", options=QUICK)
    assert len(found) == 3
    assert found.settings["rerank_signatures"] == "none"
    assert any("p(source given signature)" in remark for remark in found.remarks)


def test_without_bins_answers_have_no_medoids_and_prior_cannot_be(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    folder = copied(tiny_bundle.small, tmp_path / "bundle")
    (folder / "bins" / "effect.sqlite").unlink()
    facts = read_json(folder / "bundle.json")
    del facts["files"]["bins/effect.sqlite"]
    write_json(folder / "bundle.json", facts)
    generator = load(folder)
    assert {one.medoid for one in generator.generate(SOURCES[0], "effect", options=QUICK)} == {""}
    with pytest.raises(BundleError, match="prior"):
        generator.generate(SOURCES[0], "effect", options=QUICK.with_values(rerank_signatures="prior"))


def test_the_defaults_of_a_bundle_hold_unless_the_user_sets_others(
    tiny_bundle: TinyBundle, tmp_path: Path, here: Run
) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(tiny_bundle.small, folder)
    write_facts(folder, replace(read_facts(folder), decoding={"beam": 3, "k": 2}))
    model = load(folder)
    assert model.generate(SOURCES[0], "effect").settings["beam"] == 3
    assert len(model.generate(SOURCES[0], "effect")) == 2
    assert model.generate(SOURCES[0], "effect", options=DEFAULT).settings["beam"] == DEFAULT.beam
    call = ("generate", "effect", SOURCES[0], "--bundle", folder, "--json")
    for options, beam in (((), 3), (("--beam", "8"), 8), (("--preset", "paper"), PAPER.beam)):
        assert json.loads(here(*call, *options).stdout)["settings"]["beam"] == beam
    body = generate_request(Limits(), model.facts)(text=SOURCES[0], relation="effect")
    assert (body.options().beam, body.options().k) == (3, 2)


# The command line


@pytest.fixture
def on_terminal(here: Run) -> Callable[..., str]:
    """What the command line prints on a terminal, without styles."""

    def run(*arguments: str | Path, **environment: str) -> str:
        done = here(*arguments, TTY_COMPATIBLE="1", **environment)
        assert done.returncode == 0, done.stderr
        return re.sub("\x1b\\[[0-9;]*m", "", done.stdout)

    return run


def test_the_table_shows_answers_bins_and_settings(here: Run, tiny_bundle: TinyBundle) -> None:
    done = here("generate", "effect", SOURCES[0], "-k", "3", "--bundle", tiny_bundle.exact, "--check", "-v")
    assert done.returncode == 0, done.stderr
    found = load(tiny_bundle.exact).generate(SOURCES[0], "effect", 3)
    lines = done.stdout.splitlines()
    for number, answer in enumerate(found, 1):
        place = lines.index(f"{number:3}  {answer.text}")
        assert answer.signature in lines[place + 1]
        assert "off by" in lines[place + 1]
    assert "system cod3s | bundle exact" in done.stdout


def test_without_a_terminal_or_with_plain_only_answers_are_printed(here: Run, tiny_bundle: TinyBundle) -> None:
    arguments = ("generate", "effect", SOURCES[0], "-k", "3", "--bundle", tiny_bundle.exact)
    answers = [*load(tiny_bundle.exact).generate(SOURCES[0], "effect", 3).texts]
    assert here(*arguments).stdout.splitlines() == answers
    assert here(*arguments, "--plain", TTY_COMPATIBLE="1").stdout.splitlines() == answers
    refused = here(*arguments, "--plain", "--json")
    assert refused.returncode == 2
    assert "leave out --plain or --json" in refused.stderr


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "json"])
def test_a_reader_that_has_enough_is_no_error(more: tuple[str, ...], tiny_bundle: TinyBundle) -> None:
    """As `| head -1`; the many sources make the pipe break while more is printed."""
    options = ["-k", "1", "--bundle", str(tiny_bundle.small), "--input", "-", "--beam", "2", *more]
    command = [sys.executable, "-m", "cod3s", "generate", "effect", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write(f"{SOURCES[0]}\n".encode() * 64)
        running.stdin.close()
        assert running.stdout.readline()
        running.stdout.close()
        assert running.wait(120) == 0
        assert running.stderr
        assert running.stderr.read() == b""


def test_brackets_of_a_source_are_shown_as_they_are(here: Run, tiny_bundle: TinyBundle) -> None:
    done = here(
        "generate",
        "effect",
        "[/b] press [enter] now",
        "-k",
        "1",
        "--bundle",
        tiny_bundle.small,
        TTY_COMPATIBLE="1",
    )
    assert done.returncode == 0, done.stderr
    assert "effect of: [/b] press [enter] now" in done.stdout


def test_a_very_long_source_is_not_echoed_whole(here: Run, tiny_bundle: TinyBundle) -> None:
    source = "it rained " * 900
    done = here("generate", "effect", source, "-k", "1", "--bundle", tiny_bundle.small, TTY_COMPATIBLE="1")
    assert "(8,999 characters)" in done.stdout
    assert len(done.stdout + done.stderr) < 2000


def test_input_that_cannot_be_answered_line_by_line(here: Run, tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    """A table needs a column, empty input is an error, and lines that were skipped are counted."""
    (tmp_path / "s.jsonl").write_text('{"source": "it rained"}\n')
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "two.txt").write_text("it rained\n\u200b\n\nthe bus was late\n")
    options = ("-k", "1", "--bundle", tiny_bundle.small, "--json")
    assert "--column" in here("generate", "effect", "--input", "s.jsonl", *options).stderr
    assert "contains no sentences" in here("generate", "effect", "--input", "empty.txt", *options).stderr
    assert here("generate", "effect", "it rained", "--column", "source", *options).returncode == 2
    named = here("generate", "effect", "--input", "s.jsonl", "--column", "source", *options)
    assert json.loads(named.stdout)["source"] == "it rained"
    done = here("generate", "effect", "--input", "two.txt", *options)
    assert [json.loads(line)["source"] for line in done.stdout.splitlines()] == ["it rained", "the bus was late"]
    assert "2 blank lines of two.txt" in done.stderr


def test_the_table_fits_80_columns(on_terminal: Callable[..., str], tiny_bundle: TinyBundle) -> None:
    """Number, answer, score; it is as wide as COLUMNS says; long answers wrap inside their column."""
    arguments = ("generate", "effect", SOURCES[0], "-k", "3", "--bundle", tiny_bundle.exact)
    lines = on_terminal(*arguments, COLUMNS="80").splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines if "answer" in line] == [["#", "answer", "score"]]
    assert sum(line.split()[:1] in (["1"], ["2"], ["3"]) for line in lines) == 3
    assert sum(bool(line.strip()) for line in lines) == 8  # title, header, rule, three answers, order, settings
    found = load(tiny_bundle.exact).generate(SOURCES[0], "effect", 3)
    narrow = on_terminal(*arguments, COLUMNS="40")
    assert max(map(len, narrow.splitlines())) <= 40
    assert all(f"{answer.score:.3f}" in narrow for answer in found)
    verbose = on_terminal(*arguments, "--verbose", COLUMNS="80")
    assert max(map(len, verbose.splitlines())) <= 80
    assert all(answer.signature in verbose for answer in found), "a signature is never broken"


@pytest.mark.parametrize(
    ("options", "order"),
    [
        ((), "best-fitting bin first"),
        (("--bins-per-answer", "2"), "best first, each unlike those above it"),
        (("--signature", "01001110", "--signature", "11110000"), "that of the bins that you named"),
        (("--system", "s2s"), "best score first"),
    ],
    ids=["inferred bins", "spare bins", "named bins", "one stage"],
)
def test_the_table_says_in_which_order_the_answers_are(
    options: tuple[str, ...], order: str, on_terminal: Callable[..., str], tiny_bundle: TinyBundle
) -> None:
    shown = on_terminal("generate", "effect", SOURCES[0], "-k", "2", "--bundle", tiny_bundle.small, *options)
    assert f"order: {order}\nsystem " in shown


def test_standard_input_can_be_given_as_a_source(here: Run, tiny_bundle: TinyBundle) -> None:
    options = ("-k", "1", "--bundle", tiny_bundle.small, "--json")
    done = here("generate", "effect", "it rained", "-", *options, stdin="the bus was late\n\nhe slept\n")
    sources = [json.loads(line)["source"] for line in done.stdout.splitlines()]
    assert sources == ["it rained", "the bus was late", "he slept"]
    table = here("generate", "effect", "-", "--column", "text", *options, stdin="id\ttext\n7\tit rained\n")
    assert [json.loads(line)["source"] for line in table.stdout.splitlines()] == ["it rained"]


def test_many_answers_are_announced(here: Run, tiny_bundle: TinyBundle) -> None:
    options = ("--bundle", tiny_bundle.small, "--beam", "1", "--max-tokens", "2", "--json")
    done = here("generate", "effect", SOURCES[0], "-k", "120", *options)
    assert done.returncode == 0, done.stderr
    assert "120 answers per source (1000 is the most) take about 0.4 minutes, estimated from ten" in done.stderr


def test_help_names_the_systems_that_every_bundle_can_run(here: Run) -> None:
    done = here("generate", "--help")
    assert "s2s-sigs" in done.stdout


REACHED = [
    (["--beam", "5"], {"beam": 5, "samples": 5, "baseline_beam": 5}),
    (["--beam", "5", "--samples", "7"], {"beam": 5, "samples": 7, "baseline_beam": 5}),
    (["--top-k", "3", "--baseline-top-k", "4"], {"top_k": 3, "baseline_top_k": 4}),
    (["--sentence-weight", "0.5", "--max-tokens", "8"], {"sentence_weight": 0.5, "max_tokens": 8}),
    (["--normalise", "original", "--allow-repeats"], {"normalise": "original", "allow_repeats": True}),
]


@pytest.mark.parametrize(("arguments", "wanted"), REACHED, ids=[" ".join(row[0]) for row in REACHED])
def test_every_option_of_decoding_is_reached(
    arguments: list[str], wanted: dict[str, object], here: Run, tiny_bundle: TinyBundle
) -> None:
    options = ("-k", "1", "--bundle", tiny_bundle.small, "--json")
    settings = json.loads(here("generate", "effect", SOURCES[0], *options, *arguments).stdout)["settings"]
    assert {name: settings[name] for name in wanted} == wanted


def test_samples_are_shown_where_samples_are_drawn(here: Run, tiny_bundle: TinyBundle) -> None:
    done = here(
        "generate",
        "effect",
        SOURCES[0],
        "-k",
        "1",
        "--search",
        "sample",
        "--bundle",
        tiny_bundle.small,
        TTY_COMPATIBLE="1",
    )
    assert "search sample | samples 40 | top_k 40 |" in " ".join(done.stdout.split())


def test_json_is_one_record_a_source_and_nothing_else(cod3s: Run, tiny_bundle: TinyBundle) -> None:
    lines = "".join(f"{source}\n\n" for source in SOURCES)
    options = ("-k", "2", "--beam", "5", "--bundle", tiny_bundle.exact, "--json", "--input", "-")
    done = cod3s("generate", "effect", *options, stdin=lines)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["source"] for record in records] == SOURCES
    wanted = {"text", "signature", "score", "forward", "backward", "medoid", "realised", "hamming"}
    assert all(wanted <= set(answer) for record in records for answer in record["answers"])
    assert {"source", "relation", "system", "settings", "answers"} <= set(records[0])
    assert records[0]["settings"]["beam"] == 5


def test_like_writes_in_the_bin_of_a_sentence(here: Run, tiny_bundle: TinyBundle, generator: Generator) -> None:
    like = "the baker slept in the garden at home"
    call = ("generate", "effect", SOURCES[0], "--like", like, "--bundle", tiny_bundle.exact, "--json")
    done = here(*call)
    (answer,) = json.loads(done.stdout)["answers"]
    assert [answer["signature"]] == generator.signer.signatures([like])
    assert "not k" not in done.stderr
    assert "as many answers as bins that you named (1), not k (5)" in here(*call, "-k", "5").stderr


WRONG_CALLS = [
    (["effect"], 2, "no source was given"),
    (["efect", "x"], 2, "did you mean 'effect'?"),
    (["effect", "x", "--system", "s2s", "--search", "sample"], 2, "decides search"),
    (["effect", "x", "-k", "0"], 2, "-k"),
    (["effect", "x", "-k", "1001"], 2, "-k is 1001, but it must be from 1 to 1000"),
    (["effect", "x", "--temperature", "0"], 2, "--temperature is 0.0, but it must be above 0"),
    (["effect", "x", "--system", "cod3s-mmi-mni"], 2, "did you mean 'cod3s-mmi-mmi'?"),
    (["the alarm rang"], 2, "'the alarm rang' is not a relation; the bundle small has"),
    (["the alarm rang"], 2, 'cod3s generate effect "the alarm rang"'),
    (["the alarm rang", "cause"], 2, 'put the relation first: cod3s generate cause "the alarm rang"'),
]


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG_CALLS, ids=[call[2] for call in WRONG_CALLS])
def test_wrong_calls_end_with_a_way_out(
    arguments: list[str], code: int, message: str, here: Run, tiny_bundle: TinyBundle
) -> None:
    done = here("generate", *arguments, "--bundle", tiny_bundle.small)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_generation_loads_no_torch(tiny_bundle: TinyBundle, cod3s: Run, tmp_path: Path) -> None:
    """The base install has none: a module that cannot be imported stands in its place."""
    for name in ("torch", "transformers"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not in the base install')\n")
    done = cod3s("generate", "effect", SOURCES[0], "-k", "1", "--bundle", tiny_bundle.small, "--check")
    assert done.returncode == 0, done.stderr


def test_the_facts_of_the_bundle_are_at_hand(generator: Generator, tiny_bundle: TinyBundle) -> None:
    assert generator.facts == read_facts(tiny_bundle.exact)
    assert DEFAULT.k == 10
