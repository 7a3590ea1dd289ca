"""The benchmark of decoding is fair: the peer computes what the engine computes, on the same weights."""

from pathlib import Path

import pytest
import torch

from cod3s.bench.decoding import STAGES, bench_decoding
from cod3s.bench.peer import Peer
from cod3s.bench.random_bundle import RELATION, RandomBundle, made_sentences, make_random_bundle
from cod3s.decode.config import DecodeConfig
from cod3s.decode.players import Players, open_players
from cod3s.decode.rerank import score_sentences_backward, score_signatures_backward
from cod3s.decode.signatures import find_signatures
from cod3s.errors import Cod3sError
from cod3s.records import Hypothesis

SOURCES = made_sentences(2, 9)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> RandomBundle:
    return make_random_bundle(tmp_path_factory.mktemp("random"), "tiny", bits=6)


@pytest.fixture(scope="module")
def players(bundle: RandomBundle) -> Players:
    return open_players(bundle.folders["float32"], threads=1)


def test_both_find_the_same_signatures(bundle: RandomBundle, players: Players) -> None:
    words = bundle.vocabulary
    ours = find_signatures(players.signature(RELATION), words, SOURCES, search="beam", best=8)
    before = torch.get_num_threads()
    theirs = Peer(bundle, 1).find_signatures(SOURCES, 8)
    assert torch.get_num_threads() == before, "the threads of the process are left as they were"
    assert [[one.tokens for one in own] for own in ours] == theirs


def test_both_score_backwards_alike(bundle: RandomBundle, players: Players) -> None:
    words, peer = bundle.vocabulary, Peer(bundle, 1)
    inverse, backward = players.inverse(RELATION), players.backward(RELATION)
    assert inverse is not None
    assert backward is not None
    signatures = [tuple(words.encode_signature(one)) for one in ("010101", "111000")]
    found = [[Hypothesis(tokens, 0.0, 6) for tokens in signatures]]
    (ours,) = score_signatures_backward(inverse, words, SOURCES[:1], found)
    assert peer.score_signatures(SOURCES[0], signatures) == pytest.approx(ours, abs=1e-3)
    scores = score_sentences_backward(backward, words, [(SOURCES[0], one) for one in SOURCES])
    assert peer.score_sentences(SOURCES[0], SOURCES) == pytest.approx(list(scores.values()), abs=1e-3)


def test_every_stage_is_timed(bundle: RandomBundle) -> None:
    config = DecodeConfig(k=2, signature_beam=4, beam=3, max_tokens=4)
    rows = bench_decoding(bundle, SOURCES, config, threads=1, progress=lambda done: None)
    assert [row.stage for row in rows] == [*STAGES, "all"]
    assert rows[-1].peer == pytest.approx(sum(row.peer for row in rows[:-1]))
    assert all(row.processor_ratio > 0 for row in rows)


def test_random_weights_need_a_shape_from_scratch(tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="no random weights"):
        make_random_bundle(tmp_path, "warm")
