"""The engine on a trained tiny model: it finds what transformers finds, and its methods agree with each other."""

import json
import shutil
from collections.abc import Callable
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


@pytest.mark.parametrize("source", SOURCES)
def test_plain_beams_are_those_of_transformers(source: str, models: BundleModels, torch_model: Any) -> None:
    model = models.plain("effect")
    request = model.request(source)
    (found,) = model.engine.search([request], beam=8, max_tokens=20)
    wanted = torch_beams(torch_model, models, request, 8, max_new_tokens=20)
    assert [one.tokens for one in found] == [tokens for tokens, _ in wanted]
    assert [one.log_prob / one.length for one in found] == pytest.approx([score for _, score in wanted], abs=1e-4)


@pytest.mark.parametrize("source", SOURCES)
def test_beams_after_a_forced_signature_are_those_of_transformers(
    source: str, models: BundleModels, torch_model: Any
) -> None:
    """A fixed number of tokens: where texts end, the engine's normalisation also counts the prefix's tokens."""
    model, given = asked(models, "sentence")
    request = model.request(source, given)
    (found,) = model.engine.search([request], beam=6, max_tokens=4)
    wanted = torch_beams(torch_model, models, request, 6, min_new_tokens=4, max_new_tokens=4)
    assert [one.tokens for one in found] == [tokens for tokens, _ in wanted]
    assert [one.log_prob / one.length for one in found] == pytest.approx([score for _, score in wanted], abs=1e-4)


@pytest.mark.parametrize("source", SOURCES)
def test_the_best_sentence_of_a_signature_is_that_of_transformers(
    source: str, models: BundleModels, torch_model: Any
) -> None:
    model, given = asked(models, "sentence")
    request = model.request(source, given)
    (found,) = model.engine.search([request], beam=8, max_tokens=20)
    best = max(found, key=lambda one: one.log_prob / one.length)
    tokens, score = torch_beams(torch_model, models, request, 8, max_new_tokens=20)[0]
    assert best.tokens == tokens
    assert best.log_prob / best.length == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("long", [1, 8])
@pytest.mark.parametrize("case", ["plain", "sentence"])
@pytest.mark.parametrize("max_tokens", [1, 3, 20])
def test_score_reproduces_what_search_reported(
    case: str, max_tokens: int, long: int, models: BundleModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for hypotheses that the limit cut before their end: their length is one less than scored.

    Prefixes of `long` tokens and more are read at once.
    """
    monkeypatch.setattr("cod3s.model.prompted._LONG", long)
    model, given = asked(models, case)
    request = model.request(SOURCES[0], given)
    (found,) = model.engine.search([request], beam=6, max_tokens=max_tokens)
    for one in found:
        (scored,) = model.engine.score([request], [one.tokens], end=one.length > len(one.tokens))
        assert scored.tokens == one.tokens
        assert scored.length == one.length
        assert scored.log_prob == pytest.approx(one.log_prob, abs=1e-4)


@pytest.mark.parametrize("signatures", [["01001110"], ["01001111", "01001110", "11111110"], ["0" * 8] * 3])
def test_a_prefix_read_at_once_gives_the_beams_of_one_that_is_forced_by_steps(
    signatures: list[str], models: BundleModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for batches without a signature that ends in ones, and for sources of several lengths."""
    model = models.sentence("effect")
    requests = [
        model.request(source, models.vocabulary.encode_signature(signature))
        for source in SOURCES
        for signature in signatures
    ]
    monkeypatch.setattr("cod3s.model.prompted._LONG", 1000)
    by_steps = model.engine.search(requests, beam=6, max_tokens=3)
    monkeypatch.setattr("cod3s.model.prompted._LONG", 1)
    at_once = model.engine.search(requests, beam=6, max_tokens=3)
    for found, wanted in zip(at_once, by_steps, strict=True):
        sums = {one.tokens: one.log_prob for one in wanted}
        assert {one.tokens: one.log_prob for one in found} == pytest.approx(sums, abs=1e-4)


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


@pytest.mark.parametrize(("compute", "most"), [("float32", 0.02), ("int8", 0.1)])
def test_int8_stays_near_to_float32(
    compute: str, most: float, tiny_bundle: TinyBundle, models: BundleModels
) -> None:
    """Computed in int8, 0.035 nats a token between the scores, the same best text for 87 of 96 sources."""
    small = open_models(tiny_bundle.small, compute=compute)
    model, own = models.plain("effect"), small.plain("effect")
    sources = [f"{who} {event} {where}" for who in WHO for where in WHERE[:3] for event in EVENTS]
    requests = [model.request(source) for source in sources]
    exact = [found[0] for found in model.engine.search(requests, beam=4, max_tokens=20)]
    near = [found[0] for found in own.engine.search(requests, beam=4, max_tokens=20)]
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
def test_sources_of_any_length_are_read_and_scored(source: str, cut: bool, why: str, models: BundleModels) -> None:
    model = models.plain("effect")
    assert model.engine.cuts(source) is cut
    request = model.request(source)
    (found,) = model.engine.search([request], beam=3, max_tokens=10_000)
    assert found
    assert max(len(one.tokens) for one in found) < SHAPES["tiny"].max_tokens
    pieces = models.vocabulary.encode_text(source)
    (scored,) = model.engine.score([request], [pieces])
    assert len(scored.tokens) <= SHAPES["tiny"].max_tokens
    assert np.isfinite(scored.log_prob)


def test_a_damaged_model_is_a_clear_error(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    shutil.copytree(tiny_bundle.small, tmp_path / "bundle")
    model = tmp_path / "bundle" / "models" / "shared" / "model.bin"
    model.write_bytes(model.read_bytes()[:5000])
    with pytest.raises(BundleError, match="has changed since it was exported"):
        open_models(tmp_path / "bundle").plain("effect")
    write_facts(tmp_path / "bundle", read_facts(tmp_path / "bundle"))  # with its checksum
    with pytest.raises(BundleError, match="is damaged: the file ends too early"):
        open_models(tmp_path / "bundle").plain("effect")


@pytest.mark.parametrize("layer", [b"\xff\x7f", b"\xbf\xff", b"\xff\xef"], ids=["32767", "-65", "-4097"])
def test_weights_that_name_a_layer_that_does_not_exist_are_refused(
    layer: bytes, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    """CTranslate2 would crash the process; `campaign.damaged_files` found all three."""
    shutil.copytree(tiny_bundle.small, tmp_path / "bundle")
    model = tmp_path / "bundle" / "models" / "shared" / "model.bin"
    content = model.read_bytes()
    place = content.index(b"decoder/alignment_layer\0") + len(b"decoder/alignment_layer\0") + 6
    assert content[place : place + 2] == b"\xff\xff", "the last layer"
    model.write_bytes(content[:place] + layer + content[place + 2 :])
    write_facts(tmp_path / "bundle", read_facts(tmp_path / "bundle"))  # with its checksum
    with pytest.raises(BundleError, match="it has no layer"):
        open_models(tmp_path / "bundle").plain("effect")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("config.json", lambda content: {**content, "add_source_eos": None}),
        ("shared_vocabulary.json", lambda content: [token.replace("▁the", "▁a?") for token in content]),
    ],
    ids=["a value of another type", "another token"],
)
def test_damage_that_is_noticed_when_a_model_runs_is_a_clear_error(
    name: str, damage: Callable[[Any], Any], tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    """Both files can be opened, and their checksums are right."""
    shutil.copytree(tiny_bundle.small, tmp_path / "bundle")
    path = tmp_path / "bundle" / "models" / "shared" / name
    path.write_text(json.dumps(damage(json.loads(path.read_text()))))
    write_facts(tmp_path / "bundle", read_facts(tmp_path / "bundle"))
    model = open_models(tmp_path / "bundle").plain("effect")
    with pytest.raises(BundleError, match="cannot be run") as raised:
        model.engine.search([model.request(SOURCES[0])], beam=2, max_tokens=4)
    assert "export the bundle again" in raised.value.hint


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda text: "[" * 100_000 + text, "valid JSON"),
        (lambda text: json.dumps(json.loads(text) * 100), "a token appears twice"),
    ],
    ids=["nested too deep", "repeated"],
)
def test_a_vocabulary_that_crashes_the_engine_is_refused_before_it_is_opened(
    damage: Callable[[str], str], fault: str, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    shutil.copytree(tiny_bundle.small, tmp_path / "bundle")
    path = tmp_path / "bundle" / "models" / "shared" / "shared_vocabulary.json"
    path.write_text(damage(path.read_text()))
    write_facts(tmp_path / "bundle", read_facts(tmp_path / "bundle"))
    with pytest.raises(Cod3sError, match=fault):
        open_models(tmp_path / "bundle").plain("effect")
