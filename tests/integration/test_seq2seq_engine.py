"""The engine on a trained tiny model: it finds what transformers finds, and its methods agree with each other."""

import json
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s.bundle import read_facts, write_facts
from cod3s.errors import BundleError, Cod3sError
from cod3s.model.engine import Draws, Request
from cod3s.model.reader import open_reader
from cod3s.model.shape import SHAPES
from cod3s.models import BundleModels, RoleModel, open_models
from cod3s.records import Hypothesis
from tiny_bundle import EVENTS, SOURCES, WHERE, WHO, TinyBundle

SIGNATURE = "01001110"


@pytest.fixture(scope="module")
def models(tiny_bundle: TinyBundle) -> BundleModels:
    return open_models(tiny_bundle.exact)


@pytest.fixture(scope="module")
def torch_model(tiny_bundle: TinyBundle) -> Any:
    from cod3s.model.transformer import quiet_transformers

    return quiet_transformers().MarianMTModel.from_pretrained(tiny_bundle.run / "shared" / "model").eval()


def asked(models: BundleModels, case: str) -> tuple[RoleModel, tuple[int, ...]]:
    if case == "plain":
        return models.plain("effect"), ()
    return models.sentence("effect"), tuple(models.vocabulary.encode_signature(SIGNATURE))


def torch_beams(
    torch_model: Any, models: BundleModels, request: Request, beam: int, **lengths: int
) -> list[tuple[tuple[int, ...], float]]:
    """(tokens without the end, log-probability a token) as transformers' `generate` gives them."""
    import torch

    words = models.vocabulary
    read = open_reader(SHAPES["tiny"], words).read(request.source or "")
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


def test_beams_are_those_of_transformers(models: BundleModels, torch_model: Any) -> None:
    """After a signature, with a fixed number of tokens: where texts end, the engine also counts the prefix."""
    for case, beam, lengths in [
        ("plain", 8, {"max_new_tokens": 20}),
        ("sentence", 6, {"min_new_tokens": 4, "max_new_tokens": 4}),
    ]:
        model, given = asked(models, case)
        for source in SOURCES:
            request = model.request(source, given)
            (beams,) = model.engine.search([request], beam=beam, max_tokens=lengths["max_new_tokens"])
            wanted = torch_beams(torch_model, models, request, beam, **lengths)
            assert [beam.tokens for beam in beams] == [tokens for tokens, _ in wanted]
            means = [beam.log_prob / beam.length for beam in beams]
            assert means == pytest.approx([score for _, score in wanted], abs=1e-4)


def test_the_best_sentence_of_a_signature_is_that_of_transformers(models: BundleModels, torch_model: Any) -> None:
    model, given = asked(models, "sentence")
    for source in SOURCES:
        request = model.request(source, given)
        (beams,) = model.engine.search([request], beam=8, max_tokens=20)
        best = max(beams, key=lambda beam: beam.log_prob / beam.length)
        tokens, score = torch_beams(torch_model, models, request, 8, max_new_tokens=20)[0]
        assert best.tokens == tokens
        assert best.log_prob / best.length == pytest.approx(score, abs=1e-4)


def test_score_reproduces_what_search_reported(models: BundleModels, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for hypotheses that the limit cut before their end: their length is one less than scored.

    Prefixes of `long` tokens and more are read at once.
    """
    for long, case, max_tokens in product((1, 8), ("plain", "sentence"), (1, 3, 20)):
        monkeypatch.setattr("cod3s.model.prefix_decoder._LONG", long)
        model, given = asked(models, case)
        request = model.request(SOURCES[0], given)
        (beams,) = model.engine.search([request], beam=6, max_tokens=max_tokens)
        for beam in beams:
            (scored,) = model.engine.score([request], [beam.tokens], end=beam.length > len(beam.tokens))
            assert (scored.tokens, scored.length) == (beam.tokens, beam.length)
            assert scored.log_prob == pytest.approx(beam.log_prob, abs=1e-4)


def test_a_prefix_read_at_once_gives_the_beams_of_one_that_is_forced_by_steps(
    models: BundleModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for batches without a signature that ends in ones, and for sources of several lengths."""
    model = models.sentence("effect")
    for signatures in (["01001110"], ["01001111", "01001110", "11111110"], ["0" * 8] * 3):
        requests = [
            model.request(source, models.vocabulary.encode_signature(signature))
            for source in SOURCES
            for signature in signatures
        ]
        monkeypatch.setattr("cod3s.model.prefix_decoder._LONG", 1000)
        by_steps = model.engine.search(requests, beam=6, max_tokens=3)
        monkeypatch.setattr("cod3s.model.prefix_decoder._LONG", 1)
        at_once = model.engine.search(requests, beam=6, max_tokens=3)
        for beams, wanted in zip(at_once, by_steps, strict=True):
            sums = {beam.tokens: beam.log_prob for beam in wanted}
            assert {beam.tokens: beam.log_prob for beam in beams} == pytest.approx(sums, abs=1e-4)


def test_score_reproduces_what_sample_reported(models: BundleModels) -> None:
    """At any temperature, a sample's score is what the model itself thinks of it."""
    model = models.plain("effect")
    request = model.request(SOURCES[1])
    drawn = model.engine.sample([request], Draws(samples=6, top_k=20, temperature=1.7, max_tokens=20, seed=5))[0]
    for one in drawn:
        (scored,) = model.engine.score([request], [one.tokens], end=one.length > len(one.tokens))
        assert scored.log_prob == pytest.approx(one.log_prob, abs=1e-4)


def test_a_request_alone_gets_what_it_gets_in_a_batch(models: BundleModels) -> None:
    """Sources and prefixes of several lengths, in one call and one by one."""
    model, given = asked(models, "sentence")
    sources = [*SOURCES, "", "the nurse " * 15, None]
    requests = [model.request(source, given[:length]) for source in sources for length in (0, 1, len(given))]
    together = model.engine.search(requests, beam=4, max_tokens=12)
    alone = [model.engine.search([request], beam=4, max_tokens=12)[0] for request in requests]
    assert [[one.tokens for one in own] for own in together] == [[one.tokens for one in own] for own in alone]
    firsts = [own[0].tokens for own in together]
    scored = model.engine.score(requests, firsts)
    singly = [model.engine.score([a], [b])[0] for a, b in zip(requests, firsts, strict=True)]
    assert [one.log_prob for one in scored] == pytest.approx([one.log_prob for one in singly], abs=1e-4)


def test_the_same_seed_draws_the_same_on_one_engine_and_on_another(
    tiny_bundle: TinyBundle, models: BundleModels
) -> None:
    def draw(model: RoleModel, seed: int) -> list[list[Hypothesis]]:
        requests = [model.request(source) for source in SOURCES * 4]  # more than are drawn together
        return model.engine.sample(requests, Draws(samples=6, top_k=10, temperature=1.5, max_tokens=20, seed=seed))

    model = models.plain("effect")
    first = draw(model, 7)
    model.engine.search([model.request(SOURCES[0])], beam=3, max_tokens=5)
    assert draw(model, 7) == first
    assert draw(open_models(tiny_bundle.exact, threads=1).plain("effect"), 7) == first
    assert draw(model, 8) != first
    assert first[:3] != first[9:], "each part draws from a seed of its own"


def test_no_more_tokens_are_drawn_from_than_there_are(models: BundleModels) -> None:
    model = models.plain("effect")
    many = 10 * len(models.vocabulary)
    requests = [model.request(SOURCES[0])]
    drawn = model.engine.sample(requests, Draws(samples=2, top_k=many, temperature=1.0, max_tokens=5, seed=1))
    assert len(drawn[0]) == 2


def test_no_requests_give_no_results(models: BundleModels) -> None:
    engine = models.plain("effect").engine
    assert engine.search([], beam=3, max_tokens=5) == []
    assert engine.sample([], Draws(samples=3, top_k=3, temperature=1.0, max_tokens=5, seed=1)) == []
    assert engine.score([], []) == []
    assert engine.weigh([], [1, 2]).shape == (0, 2)


def test_weights_are_what_torch_gives_among_the_tokens(models: BundleModels, torch_model: Any) -> None:
    import torch

    model, given = asked(models, "sentence")
    words = models.vocabulary
    tokens = list(range(words.first_signature, len(words)))
    requests = [model.request(source, given[:length]) for source in SOURCES for length in (0, 1, 2)]
    weights = model.engine.weigh(requests, tokens)
    reader = open_reader(SHAPES["tiny"], words)
    for request, row in zip(requests, weights, strict=True):
        with torch.no_grad():
            inputs = {"input_ids": [reader.read(request.source or "")], "decoder_input_ids": [request.prefix]}
            logits = torch_model(**{name: torch.tensor(ids) for name, ids in inputs.items()}).logits
        wanted = logits[0, -1, tokens].log_softmax(dim=-1).numpy()
        assert row == pytest.approx(wanted, abs=1e-3)
        assert np.exp(row).sum() == pytest.approx(1.0)


def test_only_these_tokens_are_written(models: BundleModels) -> None:
    model, words = models.signature("effect"), models.vocabulary
    only = range(words.first_signature, len(words))
    (found,) = model.engine.search([model.request(SOURCES[0])], beam=20, max_tokens=3, only=only)
    assert all(len(one.tokens) == one.length == 3 and set(one.tokens) <= set(only) for one in found)


def test_int8_stays_near_to_float32(tiny_bundle: TinyBundle, models: BundleModels) -> None:
    """Computed in int8, 0.035 nats per token between the scores, the same best text for 87 of 96 sources."""
    model = models.plain("effect")
    sources = [f"{who} {event} {where}" for who in WHO for where in WHERE[:3] for event in EVENTS]
    requests = [model.request(source) for source in sources]
    exact = [beams[0] for beams in model.engine.search(requests, beam=4, max_tokens=20)]
    for compute, most in [("float32", 0.02), ("int8", 0.1)]:
        engine = open_models(tiny_bundle.small, compute=compute).plain("effect").engine
        near = [beams[0] for beams in engine.search(requests, beam=4, max_tokens=20)]
        assert sum(a.tokens == b.tokens for a, b in zip(exact, near, strict=True)) >= 0.75 * len(sources)
        scored = engine.score(requests, [beam.tokens for beam in exact])
        differences = [abs(a.log_prob - b.log_prob) / a.length for a, b in zip(exact, scored, strict=True)]
        assert np.mean(differences) < most


LENGTHS = [
    ("", False, "an empty source is read as nothing but its end"),
    ("the baker " * 10, False, "twenty words fit"),
    ("the baker lost the key " * 60, True, "three hundred words do not"),
]


def test_sources_of_any_length_are_read_and_scored(models: BundleModels) -> None:
    model = models.plain("effect")
    for source, is_cut, why in LENGTHS:
        assert model.engine.cuts(source) is is_cut, why
        request = model.request(source)
        (beams,) = model.engine.search([request], beam=3, max_tokens=10_000)
        assert max(len(beam.tokens) for beam in beams) < SHAPES["tiny"].max_tokens
        pieces = models.vocabulary.encode_text(source)
        (scored,) = model.engine.score([request], [pieces])
        assert len(scored.tokens) <= SHAPES["tiny"].max_tokens
        assert np.isfinite(scored.log_prob)


def damaged(bundle: Path, output: Path, name: str, content: bytes) -> BundleModels:
    """The models of a copy of the bundle with this content of a file, and its checksum."""
    shutil.rmtree(output, ignore_errors=True)
    shutil.copytree(bundle, output)
    (output / "models" / "shared" / name).write_bytes(content)
    write_facts(output, read_facts(output))
    return open_models(output)


def test_a_damaged_model_is_a_clear_error(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    content = (tiny_bundle.small / "models" / "shared" / "model.bin").read_bytes()
    models = damaged(tiny_bundle.small, tmp_path / "bundle", "model.bin", content[:5000])
    with pytest.raises(BundleError, match="is damaged: the file ends too early"):
        models.plain("effect")
    shutil.copyfile(tiny_bundle.small / "bundle.json", tmp_path / "bundle" / "bundle.json")
    with pytest.raises(BundleError, match="has changed since it was exported"):
        open_models(tmp_path / "bundle").plain("effect")


def test_files_that_crash_the_engine_are_refused_before_it_opens_them(
    tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    """`campaign.damaged_files` found all of them: CTranslate2 would crash the process."""
    content = (tiny_bundle.small / "models" / "shared" / "model.bin").read_bytes()
    place = content.index(b"decoder/alignment_layer\0") + len(b"decoder/alignment_layer\0") + 6
    assert content[place : place + 2] == b"\xff\xff", "the last layer"
    layers = (b"\xff\x7f", b"\xbf\xff", b"\xff\xef")
    names = (tiny_bundle.small / "models" / "shared" / "shared_vocabulary.json").read_bytes()
    twice = json.dumps(json.loads(names) * 2).encode()
    cases = [("model.bin", content[:place] + layer + content[place + 2 :], "it has no layer") for layer in layers]
    cases.append(("shared_vocabulary.json", b"[" * 100_000 + names, "valid JSON"))
    cases.append(("shared_vocabulary.json", twice, "appears twice"))
    for name, other, message in cases:
        models = damaged(tiny_bundle.small, tmp_path / "bundle", name, other)
        with pytest.raises(Cod3sError, match=message):
            models.plain("effect")


def test_damage_noticed_when_a_model_runs_is_a_clear_error(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    """Both files can be opened, and their checksums are right."""
    folder = tiny_bundle.small / "models" / "shared"
    config = json.loads((folder / "config.json").read_text())
    tokens = json.loads((folder / "shared_vocabulary.json").read_text())
    for name, content in [
        ("config.json", {**config, "add_source_eos": None}),
        ("shared_vocabulary.json", [token.replace("▁the", "▁a?") for token in tokens]),
    ]:
        models = damaged(tiny_bundle.small, tmp_path / "bundle", name, json.dumps(content).encode())
        model = models.plain("effect")
        with pytest.raises(BundleError, match="cannot be run") as raised:
            model.engine.search([model.request(SOURCES[0])], beam=2, max_tokens=4)
        assert "export the bundle again" in raised.value.hint
