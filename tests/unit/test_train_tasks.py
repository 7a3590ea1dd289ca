"""What a run learns: its options, tasks, verdicts, batches and packed rows. No model is trained."""

import json
from pathlib import Path

import numpy as np
import pytest

from cod3s.errors import Cod3sError, FileFormatError, UsageError
from cod3s.io.checked_records import parse_record
from cod3s.model.causal import IGNORED
from cod3s.model.roles import ROLES
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary, train_pieces
from cod3s.train import PRESETS, TrainConfig
from cod3s.train.batches import BatchStream, batches_of_like
from cod3s.train.config import find_preset, parse_roles
from cod3s.train.curves import Log
from cod3s.train.packing import pack_rows, packed_tensors
from cod3s.train.pairs import PairTable, Rows
from cod3s.train.tasks import Examples, Task, role_task
from cod3s.train.training_run import members
from cod3s.train.validate import majority_bit_accuracy
from cod3s.train.verdicts import verdicts_by_relation, wrong_tasks

INVERSES = {"effect": "cause", "cause": "effect"}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    path = tmp_path_factory.mktemp("words") / "tokens.model"
    train_pieces([f"Ada lost {n} keys, so she slept {n} nights outside: yes or no" for n in range(200)], path, 300)
    tags = [f"<{relation}:{role}>" for relation in INVERSES for role in ROLES]
    return Vocabulary(path, tags, SignatureTokens(4, 2, positional=True))


def make_table(
    words: Vocabulary, number: int, corpora: dict[str, float] | None = None, each: int = 1
) -> PairTable:
    """Pairs with `each` targets per source."""
    rows = Rows(
        source=[f"Ada lost {n // each} keys" for n in range(number)],
        target=[f"she slept {n} nights outside" for n in range(number)],
        signature=[f"{n % 16:04b}" for n in range(number)],
        source_signature=[f"{15 - n // each % 16:04b}" for n in range(number)],
        corpus=["letters" if n % 2 else "diaries" for n in range(number)],
    )
    return PairTable(rows, words, lambda text: [*words.encode_text(text), words.end], corpora or {}, 128)


def make_examples(words: Vocabulary, number: int, share: float = 1.0) -> Examples:
    tables = {"effect": make_table(words, number)}
    return Examples([role_task("effect", role, tables, {}, share) for role in ROLES], words, [words.end])


def drawn_in_an_epoch(examples: Examples, epoch: int = 0) -> list[int]:
    stream = BatchStream(examples.shares, lambda drawn, _: [[number] for number in drawn.tolist()], seed=1)
    number = stream.batches_per_epoch()
    start = 0
    for _ in range(epoch):
        start += number
    return [example for place in range(start, start + number) for example in stream[place]]


def test_each_role_learns_its_part_of_a_pair(words: Vocabulary) -> None:
    examples = make_examples(words, 3)
    source, target = words.encode_text("Ada lost 1 keys"), words.encode_text("she slept 1 nights outside")
    bits, end = words.encode_signature("0001"), [words.end]
    learned = {"plain": target, "signature": bits, "sentence": bits + target, "inverse": source}
    for number, role in enumerate(ROLES):
        example = examples[3 * number + 1]
        assert [label for label in example.labels if label != IGNORED] == learned[role] + end, role
        assert example.read == (end if role == "inverse" else source + end), role
        assert example.given[0] == words.id(f"<effect:{role}>")
        assert len(example.given) == len(example.labels)
        assert example.given[1:] == (bits if role == "inverse" else []) + learned[role]
        assert examples.lengths[3 * number + 1].tolist() == [len(example.read), len(example.given)]


def test_the_inverse_role_learns_from_the_other_relation(words: Vocabulary) -> None:
    """p(cause given the signature of its effect) comes from "EFFECT because CAUSE": its source's signature."""
    tables = {"effect": make_table(words, 2), "cause": make_table(words, 5)}
    task = role_task("effect", "inverse", tables, INVERSES)
    assert len(task) == 5
    bits, target = words.encode_signature("1100"), words.encode_text("she slept 3 nights outside")
    assert Examples([task], words, [words.end])[3].given == [words.id("<effect:inverse>"), *bits, *target]


def test_a_judged_answer_ends_with_the_place_of_its_verdict(words: Vocabulary) -> None:
    tables = {"effect": make_table(words, 4)}
    example = Examples([role_task("effect", "plain", tables, {}, judged=True)], words, [words.end])[0]
    assert example.given[-1] == words.end
    assert example.labels[-2:] == [words.end, IGNORED]
    assert example.plausible == 1.0


def test_wrong_answers_are_not_answers_to_their_source(words: Vocabulary) -> None:
    """Half of them are answers of the inverse relation to the same source, if it has any."""
    tables = {"effect": make_table(words, 40, each=4), "cause": make_table(words, 20, each=4)}
    tasks = wrong_tasks("effect", tables, INVERSES, 0.5, seed=3)
    examples = Examples(tasks, words, [])
    assert len(examples) == 40
    assert 5 <= len(tasks[0]) <= 17, "half of the twenty pairs whose sources also have causes"
    for number in range(len(examples)):
        example = examples[number]
        assert set(example.labels) == {IGNORED}
        assert example.plausible == 0.0
    for row in range(len(tasks[1])):
        source = int("".join(filter(str.isdigit, words.decode_text(tasks[1].read[row]))))  # type: ignore[index]
        target = int("".join(filter(str.isdigit, words.decode_text(tasks[1].written[0][row]))))
        assert target // 4 != source or tasks[1].shares[row] == 0
    assert examples.shares.max() == 0.5
    assert np.count_nonzero(examples.shares) > 30


def test_verdicts_are_read_by_split_and_partly_is_less_than_yes(tmp_path: Path) -> None:
    table = tmp_path / "verdicts.tsv"
    rows = ["train\tIt rained.\teffect\tWe got wet.\tyes", "dev\tIt rained.\teffect\tit froze\tno"]
    table.write_text("\n".join(["split\tsource\trelation\ttarget\tplausible", *rows]) + "\n")
    train, dev = (verdicts_by_relation(table, split)["effect"] for split in ("train", "dev"))
    assert (train.source, train.target, train.plausible) == (["it rained"], ["we got wet"], [1.0])
    assert dev.plausible == [0.0]
    table.write_text("source\trelation\ttarget\tplausible\na\teffect\tb\tpartly\n")
    assert 0 < verdicts_by_relation(table, "train")["effect"].plausible[0] < 0.5
    assert not verdicts_by_relation(table, "dev")
    table.write_text("source\trelation\ttarget\tplausible\na\teffect\tb\tmaybe\n")
    with pytest.raises(FileFormatError, match="line 2: 'maybe'"):
        verdicts_by_relation(table, "train")


def test_an_epoch_draws_its_share_of_roles_and_corpora_anew(words: Vocabulary) -> None:
    examples = make_examples(words, 500, share=0.25)
    first, second = set(drawn_in_an_epoch(examples)), set(drawn_in_an_epoch(examples, epoch=1))
    assert 0.2 < len(first) / len(examples) < 0.3
    assert len(first & second) < 0.5 * len(first)
    tables = {"effect": make_table(words, 400, {"letters": 0.25})}
    drawn = drawn_in_an_epoch(Examples([role_task("effect", "plain", tables, {}, 0.5)], words, [words.end]))
    letters = sum(number % 2 for number in drawn)
    assert 10 <= letters <= 45  # of 200, an eighth: its share of the corpus times the role's
    assert 70 <= len(drawn) - letters <= 130  # of 200, the role's half


def test_a_pair_that_the_decoder_cannot_hold_is_never_drawn(words: Vocabulary) -> None:
    targets = ["she slept" + " outside" * n for n in range(1, 11)]
    rows = Rows(["Ada lost the key"] * 10, targets, ["0110"] * 10, ["1001"] * 10, ["letters"] * 10)
    positions = 3 + len(words.encode_text(targets[6]))  # behind a tag and two tokens of the signature
    table = PairTable(rows, words, words.encode_text, {}, positions)
    examples = Examples([role_task("effect", "sentence", {"effect": table}, {})], words, [words.end])
    drawn = drawn_in_an_epoch(examples)
    assert sorted(drawn) == list(range(7))
    assert table.too_long == 3
    assert max(len(examples[number].given) for number in drawn) == positions


def test_batches_hold_every_example_once_an_epoch_and_little_padding(words: Vocabulary) -> None:
    examples = make_examples(words, 500)
    batches = batches_of_like(examples.lengths, np.random.default_rng(1).permutation(len(examples)), 600)
    assert sorted(number for batch in batches for number in batch) == list(range(len(examples)))
    longest = [examples.lengths[batch].max(axis=0).sum() * len(batch) for batch in batches]
    assert max(longest) <= 600
    assert examples.lengths.sum() / sum(longest) > 0.9


def packed_tasks(words: Vocabulary) -> list[Task]:
    tables = {"effect": make_table(words, 120, each=6), "cause": make_table(words, 60, each=6)}
    return [
        *(role_task("effect", role, tables, INVERSES, judged=role == "plain") for role in ROLES),
        role_task("effect", "plain", tables, INVERSES, hidden=True),
        *wrong_tasks("effect", tables, INVERSES, 1.0, seed=1),
    ]


def test_packed_rows_hold_every_example_once_and_read_a_source_once_per_visit(words: Vocabulary) -> None:
    examples = Examples(packed_tasks(words), words, [])
    drawn = np.flatnonzero(examples.shares)
    rows = pack_rows(examples, drawn, 256, np.random.default_rng(1))
    assert sorted(number for row in rows for visit in row for number in visit) == drawn.tolist()
    for row in rows:
        for visit in row:
            assert len({tuple(examples[number].read) for number in visit}) == 1
    read = sum(len(examples[visit[0]].read) for row in rows for visit in row)
    assert read < 0.3 * examples.lengths[drawn, 0].sum()
    batch = packed_tensors(examples, rows, 256, words.pad)
    assert (batch["visits"] >= 0).float().mean() > 0.9
    assert int((batch["plausible"] >= 0).sum()) == sum(examples[number].plausible is not None for number in drawn)
    assert int(batch["positions"].max()) < 128


def test_a_batch_is_the_same_whenever_it_is_asked_for(words: Vocabulary) -> None:
    examples = Examples(packed_tasks(words), words, [])

    def stream(seed: int) -> BatchStream:
        return BatchStream(examples.shares, lambda drawn, draw: pack_rows(examples, drawn, 200, draw), seed)

    one, two, other = map(stream, (1, 1, 2))
    forward = [one[place] for place in range(60)]
    assert [two[place] for place in reversed(range(60))] == forward[::-1]
    assert forward != [other[place] for place in range(60)]


def test_the_majority_of_bits_is_what_guessing_gets() -> None:
    """The commoner bits of the training signatures are 1, 0 and (a tie) 0; three of six held-out bits are."""
    assert majority_bit_accuracy(["101", "100", "110", "001"], ["100", "011"]) == pytest.approx(3 / 6)
    assert majority_bit_accuracy(["1", "1"], ["1", "1"]) == 1.0


def test_options_that_cannot_train_are_refused() -> None:
    with pytest.raises(Cod3sError, match="'larning_rate'") as caught:
        TrainConfig().with_values(larning_rate=1)
    assert "learning_rate" in caught.value.hint
    with pytest.raises(Cod3sError):
        find_preset("papr")
    for wrong, says in [
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"batch_tokens": 0}, "batch_tokens"),
        ({"seed": -1}, "seed"),
        ({"shape": "warm"}, "'warm'"),
        ({"roles": ()}, "at least one role"),
        ({"roles": ("plain", "judge")}, "'judge'"),
        ({"roles": ("plain", "sentence"), "shares": (1.0,)}, "are not the shares"),
        ({"roles": ("plain", "sentence"), "shares": (0.5, 2.0)}, "are not the shares"),
        ({"corpora": {"letters": 1.5}}, "the share of the corpus"),
        ({"roles": ("plain", "verdict"), "shares": ()}, "can learn verdicts"),
        ({"verdicts": "read.tsv"}, "not among --roles"),
        ({"init": "default"}, "do not go together"),
    ]:
        with pytest.raises(UsageError, match=says):
            PRESETS["tiny"].with_values(**wrong)  # type: ignore[arg-type]


def test_roles_may_name_their_shares() -> None:
    assert parse_roles("plain") == (("plain",), (1.0,))
    assert parse_roles("plain:0.5,sentence") == (("plain", "sentence"), (0.5, 1.0))
    with pytest.raises(Cod3sError, match="roles and shares"):
        parse_roles("plain:half")


def test_a_config_survives_its_record() -> None:
    for config in PRESETS.values():
        assert parse_record(TrainConfig, json.loads(json.dumps(config.record()))) == config


def test_members_of_both_layouts() -> None:
    assert [member.name for member in members(TrainConfig(), ["effect", "cause"])] == ["shared"]
    names = [member.name for member in members(PRESETS["paper"], ["effect", "cause"])]
    assert len(names) == 8
    assert "cause-inverse" in names


def test_a_log_that_a_kill_left_half_written_is_mended(tmp_path: Path) -> None:
    for content, kept in [
        ("step,figure,value\n2,loss,5.0\n4,loss,4.0\n", "2,loss,5.0\n"),  # later steps
        ("step,figure,value\n2,loss,5.0\n4,lo", "2,loss,5.0\n"),  # half of a row
        ("step,fig", ""),  # half of a header
        ("", ""),
    ]:
        (tmp_path / "log.csv").write_text(content)
        Log(tmp_path / "log.csv").cut(2)
        assert (tmp_path / "log.csv").read_text() == f"step,figure,value\n{kept}"
