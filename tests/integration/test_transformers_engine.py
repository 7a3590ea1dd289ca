"""A seq2seq model on transformers: the engine for a user's own model computes what our engine computes."""

from pathlib import Path

import pytest

from cod3s.model.engine import Draws, Request
from cod3s.model.reader import open_reader
from cod3s.model.shape import SHAPES
from cod3s.model.transformers_engine import TransformersEngine
from cod3s.models import BundleModels, open_models
from tiny_bundle import SOURCES, TinyBundle


@pytest.fixture(scope="module")
def models(tiny_bundle: TinyBundle) -> BundleModels:
    return open_models(tiny_bundle.exact, threads=1)


@pytest.fixture(scope="module")
def peer(models: BundleModels, tiny_bundle: TinyBundle) -> TransformersEngine:
    from cod3s.model.transformer import quiet_transformers

    model = quiet_transformers().MarianMTModel.from_pretrained(tiny_bundle.run / "shared" / "model").eval()
    reader = open_reader(SHAPES["tiny"], models.vocabulary, Path())
    settings = {"early_stopping": True}
    return TransformersEngine(model, reader, end=models.vocabulary.end, threads=1, settings=settings)


@pytest.fixture(scope="module")
def requests(models: BundleModels) -> list[Request]:
    return [models.plain("effect").request(source) for source in SOURCES]


def test_both_search_and_weigh_alike_and_leave_the_threads_alone(
    models: BundleModels, peer: TransformersEngine, requests: list[Request]
) -> None:
    import torch

    before = torch.get_num_threads()
    engine = models.plain("effect").engine
    searched = [each.search(requests, beam=4, max_tokens=20) for each in (engine, peer)]
    assert torch.get_num_threads() == before
    for ours, theirs in zip(*searched, strict=True):
        assert [row.tokens for row in ours] == [row.tokens for row in theirs]
        assert [row.log_prob for row in ours] == pytest.approx([row.log_prob for row in theirs], abs=1e-3)
    ours, theirs = (each.weigh(requests, range(5, 12)) for each in (engine, peer))
    assert theirs == pytest.approx(ours, abs=1e-3)


def test_samples_repeat_and_have_the_scores_that_they_are_given(
    peer: TransformersEngine, requests: list[Request]
) -> None:
    draws = Draws(samples=3, top_k=5, temperature=1.0, max_tokens=4, seed=1)
    drawn = peer.sample(requests, draws)
    assert drawn == peer.sample(requests, draws)
    for request, hypotheses in zip(requests, drawn, strict=True):
        scored = peer.score([request] * 3, [row.tokens for row in hypotheses], end=False)
        for hypothesis, score in zip(hypotheses, scored, strict=True):
            if hypothesis.length == len(hypothesis.tokens):  # cut off before an end
                assert score.log_prob == pytest.approx(hypothesis.log_prob, abs=1e-3)
