"""The benchmark of decoding is fair: the peer computes what the engine computes, on the same weights."""

from pathlib import Path

import pytest
import torch

from cod3s.bench.decoding import STAGES, bench_decoding, growth_cases, open_peer
from cod3s.bench.random_bundle import INVERSE, RELATION, RandomBundle, made_sentences, make_random_bundle
from cod3s.decode.decode_config import DecodeConfig
from cod3s.decode.models import BundleModels, open_models
from cod3s.decode.rerank import need_backward, need_inverse, score_signatures_backward, score_texts
from cod3s.decode.sentences import write_candidates
from cod3s.decode.signatures import find_signatures
from cod3s.errors import Cod3sError
from cod3s.model.engine import Draws
from cod3s.records import Hypothesis
from conftest import Run

SOURCES = made_sentences(2, 9)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> RandomBundle:
    return make_random_bundle(tmp_path_factory.mktemp("random"), "tiny", bits=6)


@pytest.fixture(scope="module")
def models(bundle: RandomBundle) -> BundleModels:
    return open_models(bundle.folders["float32"], threads=1)


@pytest.fixture(scope="module")
def peer(bundle: RandomBundle) -> BundleModels:
    return open_peer(bundle, 1)


def test_both_find_the_same_signatures(models: BundleModels, peer: BundleModels) -> None:
    config = DecodeConfig(k=1, signature_beam=8)
    ours = find_signatures(models.signature(RELATION), SOURCES, config)
    before = torch.get_num_threads()
    theirs = find_signatures(peer.signature(RELATION), SOURCES, config)
    assert torch.get_num_threads() == before, "the threads of the process are left as they were"
    for row, peer_row in zip(ours, theirs, strict=True):
        assert [one.tokens for one in row] == [one.tokens for one in peer_row]
        assert [one.log_prob for one in row] == pytest.approx([one.log_prob for one in peer_row], abs=1e-3)


def test_both_write_the_same_sentences(models: BundleModels, peer: BundleModels) -> None:
    config = DecodeConfig(beam=4, max_tokens=5)
    ours, theirs = (
        write_candidates(each.sentence(RELATION), SOURCES, [["010101", "111000"]] * 2, config)
        for each in (models, peer)
    )
    for bins, peer_bins in zip(ours, theirs, strict=True):
        for bin, peer_bin in zip(bins, peer_bins, strict=True):
            assert [one.text for one in bin] == [one.text for one in peer_bin]
            assert [one.forward for one in bin] == pytest.approx([one.forward for one in peer_bin], abs=1e-3)


def test_both_score_backwards_alike(models: BundleModels, peer: BundleModels) -> None:
    signatures = [tuple(models.vocabulary.encode_signature(one)) for one in ("010101", "111000")]
    found = [[Hypothesis(tokens, 0.0, 6) for tokens in signatures]]
    (ours,), (theirs,) = (
        score_signatures_backward(need_inverse(each, RELATION), SOURCES[:1], found) for each in (models, peer)
    )
    assert theirs == pytest.approx(ours, abs=1e-3)
    texts = SOURCES[:1] * len(SOURCES)
    ours, theirs = (score_texts(need_backward(each, RELATION), SOURCES, texts) for each in (models, peer))
    assert theirs == pytest.approx(ours, abs=1e-3)


def test_the_peer_weighs_and_samples_as_the_protocol_says(models: BundleModels, peer: BundleModels) -> None:
    ours, theirs = models.plain(INVERSE), peer.plain(INVERSE)
    tokens = range(5, 12)
    requests = [theirs.request(source) for source in SOURCES]
    assert theirs.engine.weigh(requests, tokens) == pytest.approx(ours.engine.weigh(requests, tokens), abs=1e-3)
    draws = Draws(samples=3, top_k=5, temperature=1.0, max_tokens=4, seed=1)
    drawn = theirs.engine.sample(requests, draws)
    assert drawn == theirs.engine.sample(requests, draws)
    for request, hypotheses in zip(requests, drawn, strict=True):
        scored = theirs.engine.score([request] * 3, [one.tokens for one in hypotheses], end=False)
        for hypothesis, score in zip(hypotheses, scored, strict=True):
            if hypothesis.length == len(hypothesis.tokens):  # cut off before an end
                assert score.log_prob == pytest.approx(hypothesis.log_prob, abs=1e-3)


def test_every_stage_is_timed(bundle: RandomBundle) -> None:
    config = DecodeConfig(k=2, signature_beam=4, beam=3, max_tokens=4)
    rows = bench_decoding(bundle, SOURCES, config, threads=1, progress=lambda done: None)
    assert [row.stage for row in rows] == [*STAGES, "all"]
    assert rows[-1].peer == pytest.approx(sum(row.peer for row in rows[:-1]))
    assert all(row.processor_ratio > 0 for row in rows)


@pytest.mark.parametrize("shape", ["warm", "causal", "pretrained"])
def test_random_weights_need_a_shape_from_scratch(shape: str, tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="random weights"):
        make_random_bundle(tmp_path, shape)


@pytest.mark.parametrize(("k", "limit"), [("0", "equal to 1"), ("1001", "equal to 1000")])
def test_the_command_has_the_limits_of_generate(k: str, limit: str, here: Run) -> None:
    done = here("bench", "decode", "--quick", "-k", k)
    assert (done.returncode, done.stdout) == (2, "")
    assert limit in done.stderr


@pytest.mark.parametrize(
    ("k", "cases"),
    [
        (10, [(1, 10), (2, 10), (4, 10), (2, 20), (2, 40)]),
        (400, [(1, 400), (2, 400), (4, 400), (2, 800), (2, 1000)]),  # four times k is too many
        (1000, [(1, 1000), (2, 1000), (4, 1000)]),  # no k is larger
    ],
)
def test_growth_never_asks_for_more_answers_than_allowed(k: int, cases: list[tuple[int, int]]) -> None:
    assert growth_cases(k) == cases
