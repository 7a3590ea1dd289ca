"""The searches on torch weights: against transformers, against a slow reference, against enumeration."""

from collections.abc import Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from cod3s.decode.baselines.diverse import diverse_beam_search
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.bundle.export import _write_torch
from cod3s.decode.baselines.automaton import build_automata
from cod3s.decode.baselines.constrained import constrained_beam_search
from cod3s.decode.baselines.torch_model import TorchModel, open_torch_model
from cod3s.errors import BundleError, Cod3sError
from cod3s.model.engine import Request
from cod3s.model.reader import Reader, open_reader
from cod3s.model.roles import ROLES, tag
from cod3s.model.shape import SHAPES
from cod3s.model.transformer import build_transformer
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary, train_pieces
from made_sentences import made_sentences

SOURCES = ["the baker missed the bus", "a dog barked", "she won", "the roof leaked all night long in the old barn"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    path = tmp_path_factory.mktemp("search") / "tokens.model"
    train_pieces(made_sentences(500), path, 400)
    return Vocabulary(path, [tag("effect", role) for role in ROLES], SignatureTokens(16, 4, positional=True))


@pytest.fixture(scope="module")
def saved(vocabulary: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reader]:
    """A folder with a model of random weights as an exported bundle holds it, and its reader."""
    folder = tmp_path_factory.mktemp("saved")
    model = build_transformer(SHAPES["tiny"], vocabulary, seed=3)
    model.save_pretrained(folder / "trained")
    _write_torch(folder / "trained", folder / "torch" / "shared")
    return folder, open_reader(SHAPES["tiny"], vocabulary)


@pytest.fixture(scope="module")
def model(saved: tuple[Path, Reader], vocabulary: Vocabulary) -> TorchModel:
    return open_torch_model(saved[0], "shared", reader=saved[1], vocabulary=vocabulary)


@pytest.fixture(scope="module")
def small() -> TorchModel:
    """Five tokens (0 ends, 1 starts), so that every text can be enumerated."""
    torch.manual_seed(5)
    config = transformers.MarianConfig(
        vocab_size=5,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        max_position_embeddings=16,
        init_std=0.7,
        pad_token_id=1,
        eos_token_id=0,
        forced_eos_token_id=None,
    )
    reader = Reader(
        read=lambda text: [int(letter) for letter in text],
        cuts=lambda _: False,
        nothing=[2],
        pad=1,
        tokens=list("01234"),
    )
    return TorchModel(transformers.MarianMTModel(config).eval(), reader, 0, 16)


def requests_of(vocabulary: Vocabulary) -> list[Request]:
    return [Request(source, (vocabulary.id("<effect:plain>"),)) for source in [*SOURCES, None]]


def transformers_beams(model: TorchModel, requests: Sequence[Request], **options: Any) -> list[list[Hypothesis]]:
    """What `generate` finds, one request at a time."""
    found = []
    for source, prefix in ((request.source, request.prefix) for request in requests):
        result = model.network.generate(
            input_ids=torch.tensor([model.reader.ids(source)]),
            decoder_input_ids=torch.tensor([prefix]),
            decoder_start_token_id=prefix[0],  # else a start token is put before the tag
            num_return_sequences=options["num_beams"],
            do_sample=False,
            length_penalty=1.0,
            output_scores=True,
            return_dict_in_generate=True,
            **options,
        )
        own = []
        for row, score in zip(result.sequences.tolist(), result.sequences_scores.tolist(), strict=True):
            tokens = row[len(prefix) :]
            cut = tokens.index(model.end) if model.end in tokens else len(tokens)
            length = min(cut + 1, options["max_new_tokens"])
            own.append(Hypothesis(tuple(tokens[:cut]), score * length, length))
        found.append(own)
    return found


def assert_same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]]) -> None:
    assert [[one.tokens for one in own] for own in found] == [[one.tokens for one in own] for own in wanted]
    for one, other in zip(chain(*found), chain(*wanted), strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-3)
        assert one.length == other.length


@pytest.mark.parametrize("max_tokens", [1, 12])
def test_one_group_without_a_penalty_is_the_beam_search_of_transformers(
    model: TorchModel, vocabulary: Vocabulary, max_tokens: int
) -> None:
    requests = requests_of(vocabulary)
    found = diverse_beam_search(model, requests, groups=1, group_beam=4, penalty=0, best=4, max_tokens=max_tokens)
    assert_same(found, transformers_beams(model, requests, num_beams=4, max_new_tokens=max_tokens))


def test_texts_that_end_early_are_those_of_transformers(small: TorchModel) -> None:
    """The random models above hardly ever end; this one does at once, so the stopping rule matters."""
    requests = [Request(source, (1,)) for source in ("2", "34", "432", "2243")]
    found = diverse_beam_search(small, requests, groups=1, group_beam=3, penalty=0, best=3, max_tokens=9)
    assert len({one.length for own in found for one in own}) > 2
    assert_same(found, transformers_beams(small, requests, num_beams=3, max_new_tokens=9))


def test_a_forced_prefix_is_read_and_not_counted(model: TorchModel, vocabulary: Vocabulary) -> None:
    prefix = (vocabulary.id("<effect:sentence>"), *vocabulary.encode_signature("0110011001011100"))
    requests = [*requests_of(vocabulary)[:2], *(Request(source, prefix) for source in SOURCES)]
    found = diverse_beam_search(model, requests, groups=1, group_beam=3, penalty=0, best=3, max_tokens=6)
    assert_same(found, transformers_beams(model, requests, num_beams=3, max_new_tokens=6))


def test_without_constraints_it_is_the_beam_search_of_transformers(
    model: TorchModel, vocabulary: Vocabulary
) -> None:
    requests = requests_of(vocabulary)
    found = constrained_beam_search(model, requests, [[]] * len(requests), beam=4, best=4, max_tokens=8)
    assert_same(found, transformers_beams(model, requests, num_beams=4, max_new_tokens=8, early_stopping=True))


def test_a_batch_finds_what_its_requests_find_alone(model: TorchModel, vocabulary: Vocabulary) -> None:
    requests = requests_of(vocabulary)
    constraints = [[[[30 + number], [40, 41]], [[50]]] for number in range(len(requests))]
    diverse = diverse_beam_search(model, requests, groups=3, group_beam=2, penalty=0.5, best=6, max_tokens=8)
    constrained = constrained_beam_search(model, requests, constraints, beam=6, best=3, max_tokens=8)
    for number, request in enumerate(requests):
        alone = diverse_beam_search(model, [request], groups=3, group_beam=2, penalty=0.5, best=6, max_tokens=8)
        assert_same([diverse[number]], alone)
        alone = constrained_beam_search(model, [request], [constraints[number]], beam=6, best=3, max_tokens=8)
        assert_same([constrained[number]], alone)


def score(model: TorchModel, source: str | None, prefix: Sequence[int], tokens: Sequence[int]) -> float:
    """The log-probability of `tokens` after the prefix, by one pass without a cache."""
    with torch.no_grad():
        logits = model.network(
            input_ids=torch.tensor([model.reader.ids(source)]),
            decoder_input_ids=torch.tensor([[*prefix, *tokens[:-1]]]),
        ).logits[0, len(prefix) - 1 :]
    return float(logits.log_softmax(dim=-1)[torch.arange(len(tokens)), torch.tensor(tokens)].sum())


def test_scores_are_log_probabilities_without_penalties(small: TorchModel) -> None:
    found = diverse_beam_search(
        small, [Request("234", (1,))], groups=4, group_beam=2, penalty=2.0, best=8, max_tokens=6
    )
    for one in found[0]:
        whole = [*one.tokens, 0] if one.length > len(one.tokens) else list(one.tokens)
        assert one.log_prob == pytest.approx(score(small, "234", [1], whole), abs=1e-4)


def slow_groups(
    model: TorchModel, source: str, groups: int, width: int, penalty: float, steps: int
) -> list[set[Any]]:
    """Each group's hypotheses after `steps` tokens, as the paper's pseudocode writes it; texts do not end."""
    beams: list[list[tuple[tuple[int, ...], float]]] = [[((), 0.0)] for _ in range(groups)]
    for _ in range(steps):
        taken: list[int] = []
        for group in range(groups):
            grown = [
                (
                    (*text, token),
                    value
                    + score(model, source, [1], [*text, token])
                    - score_of(model, source, text)
                    - penalty * taken.count(token),
                )
                for text, value in beams[group]
                for token in (1, 2, 3, 4)
            ]
            beams[group] = sorted(grown, key=lambda one: -one[1])[:width]
            taken += [text[-1] for text, _ in beams[group]]
    return [{text for text, _ in own} for own in beams]


def score_of(model: TorchModel, source: str, text: Sequence[int]) -> float:
    return score(model, source, [1], text) if text else 0.0


@pytest.mark.parametrize("penalty", [0.0, 0.5, 3.0])
def test_groups_take_what_the_papers_pseudocode_takes(small: TorchModel, penalty: float) -> None:
    with torch.no_grad():
        small.network.final_logits_bias[0, 0] = -1e4  # no text ends, so that groups are compared whole
    try:
        wanted = slow_groups(small, "2432", 3, 2, penalty, 3)
        found = diverse_beam_search(
            small, [Request("2432", (1,))], groups=3, group_beam=2, penalty=penalty, best=6, max_tokens=3
        )
        assert {one.tokens for one in found[0]} == set().union(*wanted)
    finally:
        with torch.no_grad():
            small.network.final_logits_bias[0, 0] = 0.0


def test_a_large_penalty_keeps_groups_apart_at_every_place(model: TorchModel, vocabulary: Vocabulary) -> None:
    found = diverse_beam_search(
        model, requests_of(vocabulary), groups=5, group_beam=1, penalty=100.0, best=5, max_tokens=6
    )
    for own in found:
        assert len(own) == 5
        assert all(len(set(tokens)) == 5 for tokens in zip(*(one.tokens for one in own), strict=True))


CASES = [
    # (why, sets, beam)
    ("one word", [[[30]]], 3),
    ("inflections of one word", [[[30], [31], [32]]], 3),
    ("a word of several tokens", [[[30, 31, 32]]], 3),
    ("alternatives that share a beginning", [[[30, 31], [30, 31, 32], [30, 33]]], 3),
    ("one alternative begins another, and is hard to leave", [[[30, 31, 32, 33], [30]]], 2),
    ("sets that share a beginning", [[[30, 31]], [[30, 32]]], 3),
    ("the same set twice is held by one word", [[[30, 31]], [[30, 31]]], 2),
    ("one set's word is inside another's", [[[30, 31, 32]], [[31]]], 3),
    ("a repeated token: the match falls back, it does not start over", [[[30, 30, 31]]], 3),
    ("more sets than beams", [[[30]], [[31]], [[32]], [[33, 34]], [[35], [36]]], 2),
    ("a beam of one", [[[30, 31]], [[32]]], 1),
    ("more sets than beams, all with one beginning", [[[30, 31]], [[30, 32]], [[30, 33]]], 2),
    ("as many tokens as there is room for", [[[30, 31, 32]], [[33, 34, 35]], [[36, 37]]], 4),
]


@pytest.mark.parametrize(("sets", "beam"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_text_holds_a_word_of_each_set(
    model: TorchModel, vocabulary: Vocabulary, sets: list[list[list[int]]], beam: int
) -> None:
    requests = requests_of(vocabulary)
    found = constrained_beam_search(model, requests, [sets] * len(requests), beam=beam, best=beam, max_tokens=8)
    assert all(found)
    assert all(holds(one.tokens, one_set) for own in found for one in own for one_set in sets)


def test_requests_with_other_sets_go_together(model: TorchModel, vocabulary: Vocabulary) -> None:
    requests = requests_of(vocabulary)[:3]
    constraints: list[list[list[list[int]]]] = [[], [[[30]]], [[[31, 32]], [[33]], [[34]]]]
    found = constrained_beam_search(model, requests, constraints, beam=4, best=4, max_tokens=8)
    for own, sets in zip(found, constraints, strict=True):
        assert own
        assert all(holds(one.tokens, one_set) for one in own for one_set in sets)


def test_without_room_for_the_constraints_there_is_no_text(model: TorchModel, vocabulary: Vocabulary) -> None:
    found = constrained_beam_search(
        model, requests_of(vocabulary)[:2], [[[[30, 31, 32]]], [[[30]]]], beam=3, best=3, max_tokens=2
    )
    assert found[0] == []
    assert found[1]


def holds(
    text: Sequence[int], alternatives: Sequence[Sequence[int]], boundaries: Sequence[bool] | None = None
) -> bool:
    """By definition: an alternative is a stretch of the text, and a word is over behind it."""
    for alternative in alternatives:
        for start in range(len(text) - len(alternative) + 1):
            after = start + len(alternative)
            over = boundaries is None or after == len(text) or boundaries[text[after]]
            if list(text[start:after]) == list(alternative) and over:
                return True
    return False


def all_texts(model: TorchModel, source: str, longest: int) -> Iterator[Hypothesis]:
    """Every text of the small model: those that end within `longest` tokens, and those that are cut there."""
    for length in range(longest + 1):
        for text in product((1, 2, 3, 4), repeat=length):
            whole = [*text, 0] if length < longest else list(text)
            yield Hypothesis(text, score(model, source, [1], whole), len(whole))


@pytest.fixture(scope="module")
def enumerated(small: TorchModel) -> list[Hypothesis]:
    return sorted(all_texts(small, "243", 4), key=lambda one: -one.log_prob / one.length)


BOUNDARIES = [True, True, True, True, False]  # 4 goes on with the word before it


@pytest.mark.parametrize(
    ("sets", "boundaries"),
    [
        ([[[3]]], None),
        ([[[3]]], BOUNDARIES),
        ([[[2, 4], [3]]], BOUNDARIES),
        ([[[3, 4]], [[2]]], None),
        ([[[3, 4]], [[3]]], BOUNDARIES),
        ([[[2], [3]], [[1, 2], [1, 3]]], None),
        ([[[2, 2, 3]]], None),
    ],
)
def test_a_beam_wide_enough_finds_the_best_of_all_texts(
    small: TorchModel,
    enumerated: list[Hypothesis],
    sets: list[list[list[int]]],
    boundaries: list[bool] | None,
) -> None:
    wanted = [one for one in enumerated if all(holds(one.tokens, own, boundaries) for own in sets)]
    (found,) = constrained_beam_search(
        small, [Request("243", (1,))], [sets], beam=400, best=len(wanted), max_tokens=4, boundaries=boundaries
    )
    assert {one.tokens for one in found} == {one.tokens for one in wanted}
    assert [one.log_prob for one in found[:20]] == pytest.approx([one.log_prob for one in wanted[:20]], abs=1e-4)


ALTERNATIVES = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=4), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(st.lists(ALTERNATIVES, min_size=1, max_size=3), st.lists(st.integers(1, 4), max_size=12))
def test_an_automaton_holds_what_the_definition_holds(sets: list[list[list[int]]], text: list[int]) -> None:
    tables = build_automata([sets])
    column = {token: place for place, token in enumerate(tables.tokens[0].tolist())}
    for own, start in zip(sets, tables.starts[0].tolist(), strict=True):
        state, held = start, False
        for token in text:
            state = int(tables.steps[0, state, column.get(token, 0)])
            held = held or tables.missing[0, state] == 0
        assert held == holds(text, own)


@settings(max_examples=100, deadline=None)
@given(ALTERNATIVES)
def test_what_a_state_lacks_shrinks_by_one_token_at_most_and_can(alternatives: list[list[int]]) -> None:
    tables = build_automata([[alternatives]])
    steps, missing = tables.steps[0], tables.missing[0]
    assert missing[tables.starts[0, 0]] == min(map(len, alternatives))
    for state in range(1, len(steps)):
        after = missing[steps[state]].min()
        assert missing[state] == 0 or after == missing[state] - 1


@pytest.mark.parametrize(
    ("sets", "message"), [([[]], "alternatives"), ([[[]]], "alternatives")], ids=["no alternative", "an empty one"]
)
def test_empty_constraints_are_refused(small: TorchModel, sets: Any, message: str) -> None:
    with pytest.raises(Cod3sError, match=message):
        constrained_beam_search(small, [Request("2", (1,))], [sets], beam=2, best=1, max_tokens=3)


def test_wrong_numbers_are_refused(small: TorchModel) -> None:
    with pytest.raises(Cod3sError, match="groups"):
        diverse_beam_search(small, [Request("2", (1,))], groups=0, group_beam=3, penalty=0.5, best=1, max_tokens=3)
    with pytest.raises(Cod3sError, match="finds nothing"):
        constrained_beam_search(small, [Request("2", (1,))], [[]], beam=0, best=1, max_tokens=3)
    with pytest.raises(Cod3sError, match="2 lists"):
        constrained_beam_search(small, [Request("2", (1,))], [[], []], beam=2, best=1, max_tokens=3)


def test_no_requests_have_no_answers(small: TorchModel) -> None:
    assert diverse_beam_search(small, [], groups=2, group_beam=3, penalty=0.5, best=1, max_tokens=3) == []
    assert constrained_beam_search(small, [], [], beam=2, best=1, max_tokens=3) == []


def test_texts_stop_at_the_models_last_position(small: TorchModel) -> None:
    (own,) = diverse_beam_search(
        small, [Request("2", (1,))], groups=1, group_beam=30, penalty=0.5, best=30, max_tokens=99
    )
    assert max(one.length for one in own) <= 15


def test_a_run_folder_serves_as_well_as_a_bundle(
    saved: tuple[Path, Reader], vocabulary: Vocabulary, model: TorchModel, tmp_path: Path
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "model").symlink_to(saved[0] / "trained")
    other = open_torch_model(tmp_path, "shared", reader=saved[1], vocabulary=vocabulary)
    requests = requests_of(vocabulary)[:1]
    found, wanted = (
        diverse_beam_search(one, requests, groups=1, group_beam=3, penalty=0.5, best=1, max_tokens=4)
        for one in (other, model)
    )
    assert found[0][0].log_prob == pytest.approx(wanted[0][0].log_prob, abs=0.02)  # half precision


def test_a_bundle_without_torch_weights_says_how_to_get_them(
    saved: tuple[Path, Reader], vocabulary: Vocabulary, tmp_path: Path
) -> None:
    with pytest.raises(BundleError, match="no torch weights for 'shared'") as caught:
        open_torch_model(tmp_path, "shared", reader=saved[1], vocabulary=vocabulary)
    assert "--with-torch" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", "cut short", "cannot be opened"),
        ("model.safetensors", None, "cannot be opened"),
        ("config.json", '{"model_type": "bert"}', "not one that cod3s trains"),
    ],
)
def test_damaged_weights_are_a_clear_error(
    saved: tuple[Path, Reader],
    vocabulary: Vocabulary,
    tmp_path: Path,
    name: str,
    content: str | None,
    message: str,
) -> None:
    folder = tmp_path / "torch" / "shared"
    folder.mkdir(parents=True)
    for path in (saved[0] / "torch" / "shared").iterdir():
        if path.name != name:
            (folder / path.name).symlink_to(path)
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(BundleError, match=message):
        open_torch_model(tmp_path, "shared", reader=saved[1], vocabulary=vocabulary)
