"""The engine on a trained tiny model: it finds what transformers finds, and its methods agree with each other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s.decode.players import Player, Players, open_players
from cod3s.errors import BundleError
from cod3s.model.engine import Request
from cod3s.model.reader import open_reader
from cod3s.model.shape import SHAPES
from cod3s.records import Hypothesis
from tiny_bundle import EVENTS, SOURCES, WHERE, WHO, TinyBundle

SIGNATURE = "01001110"


@pytest.fixture(scope="module")
def players(tiny_bundle: TinyBundle) -> Players:
    return open_players(tiny_bundle.exact)


@pytest.fixture(scope="module")
def torch_model(tiny_bundle: TinyBundle) -> Any:
    from cod3s.model.transformer import quiet_transformers

    return quiet_transformers().MarianMTModel.from_pretrained(tiny_bundle.run / "shared" / "model").eval()


def asked(players: Players, case: str) -> tuple[Player, tuple[int, ...]]:
    if case == "plain":
        return players.plain("effect"), ()
    return players.sentence("effect"), tuple(players.vocabulary.encode_signature(SIGNATURE))


def torch_beams(
    torch_model: Any, players: Players, request: Request, beam: int, **lengths: int
) -> list[tuple[tuple[int, ...], float]]:
    """(tokens without the end, log-probability a token) as transformers' `generate` gives them."""
    import torch

    words = players.vocabulary
    read = open_reader(SHAPES["tiny"], words, Path()).read(request.source or "")
    with torch.no_grad():
        found = torch_model.generate(
            input_ids=torch.tensor([read]),
            decoder_input_ids=torch.tensor([request.prefix]),
            decoder_start_token_id=request.prefix[0],  # else transformers puts a start token before the tag
            num_beams=beam,
            num_return_sequences=beam,
            early_stopping=True,
            length_penalty=1.0,
            do_sample=False,
            output_scores=True,
            return_dict_in_generate=True,
            **lengths,
        )
    rows = [row[len(request.prefix) :] for row in found.sequences.tolist()]
    texts = [tuple(row[: row.index(words.end)] if words.end in row else row) for row in rows]
    return list(zip(texts, found.sequences_scores.tolist(), strict=True))


@pytest.mark.parametrize("source", SOURCES)
def test_plain_beams_are_those_of_transformers(source: str, players: Players, torch_model: Any) -> None:
    player = players.plain("effect")
    request = player.request(source)
    (found,) = player.engine.search([request], beam=8, best=8, max_tokens=20)
    wanted = torch_beams(torch_model, players, request, 8, max_new_tokens=20)
    assert [one.tokens for one in found] == [tokens for tokens, _ in wanted]
    assert [one.log_prob / one.length for one in found] == pytest.approx([score for _, score in wanted], abs=1e-4)


@pytest.mark.parametrize("source", SOURCES)
def test_beams_after_a_forced_signature_are_those_of_transformers(
    source: str, players: Players, torch_model: Any
) -> None:
    """A fixed number of tokens: where texts end, the engine's normalisation also counts the prefix's tokens."""
    player, given = asked(players, "sentence")
    request = player.request(source, given)
    (found,) = player.engine.search([request], beam=6, best=6, max_tokens=4)
    wanted = torch_beams(torch_model, players, request, 6, min_new_tokens=4, max_new_tokens=4)
    assert [one.tokens for one in found] == [tokens for tokens, _ in wanted]
    assert [one.log_prob / one.length for one in found] == pytest.approx([score for _, score in wanted], abs=1e-4)


@pytest.mark.parametrize("source", SOURCES)
def test_the_best_sentence_of_a_signature_is_that_of_transformers(
    source: str, players: Players, torch_model: Any
) -> None:
    player, given = asked(players, "sentence")
    request = player.request(source, given)
    (found,) = player.engine.search([request], beam=8, best=8, max_tokens=20)
    best = max(found, key=lambda one: one.log_prob / one.length)
    tokens, score = torch_beams(torch_model, players, request, 8, max_new_tokens=20)[0]
    assert best.tokens == tokens
    assert best.log_prob / best.length == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("case", ["plain", "sentence"])
@pytest.mark.parametrize("max_tokens", [1, 3, 20])
def test_score_reproduces_what_search_reported(case: str, max_tokens: int, players: Players) -> None:
    """Also for hypotheses that the limit cut before their end: their length is one less than scored."""
    player, given = asked(players, case)
    request = player.request(SOURCES[0], given)
    (found,) = player.engine.search([request], beam=6, best=6, max_tokens=max_tokens)
    for one in found:
        (scored,) = player.engine.score([request], [one.tokens], end=one.length > len(one.tokens))
        assert scored.tokens == one.tokens
        assert scored.length == one.length
        assert scored.log_prob == pytest.approx(one.log_prob, abs=1e-4)


def test_score_reproduces_what_sample_reported(players: Players) -> None:
    """At any temperature, a sample's score is what the model itself thinks of it."""
    player = players.plain("effect")
    request = player.request(SOURCES[1])
    drawn = player.engine.sample([request], samples=6, top_k=20, temperature=1.7, max_tokens=20, seed=5)[0]
    for one in drawn:
        (scored,) = player.engine.score([request], [one.tokens], end=one.length > len(one.tokens))
        assert scored.log_prob == pytest.approx(one.log_prob, abs=1e-4)


def test_a_request_alone_gets_what_it_gets_in_a_batch(players: Players) -> None:
    """Sources and prefixes of several lengths, in one call and one by one."""
    player, given = asked(players, "sentence")
    sources = [*SOURCES, "", "the nurse " * 15, None]
    requests = [player.request(source, given[:length]) for source in sources for length in (0, 1, len(given))]
    together = player.engine.search(requests, beam=4, best=4, max_tokens=12)
    alone = [player.engine.search([request], beam=4, best=4, max_tokens=12)[0] for request in requests]
    assert [[one.tokens for one in own] for own in together] == [[one.tokens for one in own] for own in alone]
    firsts = [own[0].tokens for own in together]
    scored = player.engine.score(requests, firsts)
    singly = [player.engine.score([a], [b])[0] for a, b in zip(requests, firsts, strict=True)]
    assert [one.log_prob for one in scored] == pytest.approx([one.log_prob for one in singly], abs=1e-4)


def test_the_same_seed_draws_the_same_on_one_engine_and_on_another(
    tiny_bundle: TinyBundle, players: Players
) -> None:
    def draw(player: Player, seed: int) -> list[list[Hypothesis]]:
        requests = [player.request(source) for source in SOURCES * 4]  # more than are drawn together
        return player.engine.sample(requests, samples=6, top_k=10, temperature=1.5, max_tokens=20, seed=seed)

    player = players.plain("effect")
    first = draw(player, 7)
    player.engine.search([player.request(SOURCES[0])], beam=3, best=1, max_tokens=5)
    assert draw(player, 7) == first
    assert draw(open_players(tiny_bundle.exact, threads=1).plain("effect"), 7) == first
    assert draw(player, 8) != first
    assert first[:3] != first[9:], "each part draws from a seed of its own"


def test_no_more_tokens_are_drawn_from_than_there_are(players: Players) -> None:
    player = players.plain("effect")
    many = 10 * len(players.vocabulary)
    requests = [player.request(SOURCES[0])]
    drawn = player.engine.sample(requests, samples=2, top_k=many, temperature=1.0, max_tokens=5, seed=1)
    assert len(drawn[0]) == 2


def test_no_requests_give_no_results(players: Players) -> None:
    engine = players.plain("effect").engine
    assert engine.search([], beam=3, best=3, max_tokens=5) == []
    assert engine.sample([], samples=3, top_k=3, temperature=1.0, max_tokens=5, seed=1) == []
    assert engine.score([], []) == []
    assert engine.weigh([], [1, 2]).shape == (0, 2)


def test_weights_are_what_torch_gives_among_the_tokens(players: Players, torch_model: Any) -> None:
    import torch

    player, given = asked(players, "sentence")
    words = players.vocabulary
    tokens = list(range(words.first_signature, len(words)))
    requests = [player.request(source, given[:length]) for source in SOURCES for length in (0, 1, 2)]
    weights = player.engine.weigh(requests, tokens)
    reader = open_reader(SHAPES["tiny"], words, Path())
    for request, row in zip(requests, weights, strict=True):
        with torch.no_grad():
            inputs = {"input_ids": [reader.read(request.source or "")], "decoder_input_ids": [request.prefix]}
            logits = torch_model(**{name: torch.tensor(ids) for name, ids in inputs.items()}).logits
        wanted = logits[0, -1, tokens].log_softmax(dim=-1).numpy()
        assert row == pytest.approx(wanted, abs=1e-3)
        assert np.exp(row).sum() == pytest.approx(1.0)


def test_only_these_tokens_are_written(players: Players) -> None:
    player, words = players.signature("effect"), players.vocabulary
    only = range(words.first_signature, len(words))
    (found,) = player.engine.search([player.request(SOURCES[0])], beam=20, best=20, max_tokens=3, only=only)
    assert all(len(one.tokens) == one.length == 3 and set(one.tokens) <= set(only) for one in found)


@pytest.mark.parametrize(("compute", "most"), [("float32", 0.02), ("int8", 0.1)])
def test_int8_stays_near_to_float32(compute: str, most: float, tiny_bundle: TinyBundle, players: Players) -> None:
    """Computed in int8, 0.035 nats a token between the scores, the same best text for 87 of 96 sources."""
    small = open_players(tiny_bundle.small, compute=compute)
    player, own = players.plain("effect"), small.plain("effect")
    sources = [f"{who} {event} {where}" for who in WHO for where in WHERE[:3] for event in EVENTS]
    requests = [player.request(source) for source in sources]
    exact = [found[0] for found in player.engine.search(requests, beam=4, best=4, max_tokens=20)]
    near = [found[0] for found in own.engine.search(requests, beam=4, best=4, max_tokens=20)]
    assert sum(a.tokens == b.tokens for a, b in zip(exact, near, strict=True)) >= 0.75 * len(sources)
    scored = own.engine.score(requests, [one.tokens for one in exact])
    apart = [abs(a.log_prob - b.log_prob) / a.length for a, b in zip(exact, scored, strict=True)]
    assert np.mean(apart) < most


LENGTHS = [
    ("", False, "an empty source is read as nothing but its end"),
    ("the baker " * 10, False, "twenty words fit"),
    ("the baker lost the key " * 60, True, "three hundred words do not"),
]


@pytest.mark.parametrize(("source", "cut", "why"), LENGTHS, ids=[why for *_, why in LENGTHS])
def test_sources_of_any_length_are_read_and_scored(source: str, cut: bool, why: str, players: Players) -> None:
    player = players.plain("effect")
    assert player.engine.cuts(source) is cut
    request = player.request(source)
    (found,) = player.engine.search([request], beam=3, best=3, max_tokens=10_000)
    assert found
    assert max(len(one.tokens) for one in found) < SHAPES["tiny"].max_tokens
    pieces = players.vocabulary.encode_text(source)
    (scored,) = player.engine.score([request], [pieces])
    assert len(scored.tokens) <= SHAPES["tiny"].max_tokens
    assert np.isfinite(scored.log_prob)


def test_a_damaged_model_is_a_clear_error(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(tiny_bundle.small, tmp_path / "bundle")
    model = tmp_path / "bundle" / "models" / "shared" / "model.bin"
    model.write_bytes(model.read_bytes()[:5000])
    with pytest.raises(BundleError, match="cannot be opened"):
        open_players(tmp_path / "bundle").plain("effect")
