"""Models: the paper's size, warm starts, and an engine that computes what torch computes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from cod3s.bench import bench_sentences
from cod3s.encode.weights import minilm_folder
from cod3s.errors import Cod3sError
from cod3s.model.convert import convert_transformer
from cod3s.model.roles import ROLES, tag
from cod3s.model.shape import SHAPES
from cod3s.model.transformer import (
    build_transformer,
    count_parameters,
    signature_sketches,
    start_from_encoder,
    start_from_hyperplanes,
)
from cod3s.signatures import random_code
from cod3s.tokens.vocabulary import UNKNOWN, SignatureTokens, Vocabulary, choose_pieces, copy_pieces, train_pieces

SOURCE, TARGET, SIGNATURE = "The baker missed the bus.", "A young nurse fell asleep.", "0110011001011100"


@dataclass(frozen=True)
class Trained:
    """A model saved as training saves it, with what turns text into its tokens."""

    model: Any
    folder: Path
    vocabulary: Vocabulary
    source_tokens: list[str]
    read: Callable[[str], list[int]]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tokens.model"
    train_pieces(bench_sentences(500), path, 400)
    return path


def make_vocabulary(pieces: Path) -> Vocabulary:
    return Vocabulary(pieces, [tag("effect", role) for role in ROLES], SignatureTokens(16, 4, positional=True))


@pytest.fixture(scope="module", params=["tiny", "tiny-warm"])
def trained(request: pytest.FixtureRequest, pieces: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    vocabulary = make_vocabulary(pieces)
    model = build_transformer(SHAPES[request.param], vocabulary, seed=1).eval()
    tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    warm = request.param == "tiny-warm"
    if warm:
        start_from_encoder(model, vocabulary, tokenizer)
        start_from_hyperplanes(model, vocabulary, random_code(16, 384))
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    if not warm:
        return Trained(
            model,
            folder,
            vocabulary,
            vocabulary.tokens,
            lambda text: [*vocabulary.encode_text(text), vocabulary.end],
        )
    names = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    return Trained(model, folder, vocabulary, names, lambda text: list(tokenizer.encode(text).ids))


def open_engine(trained: Trained, folder: Path, quantization: str) -> Any:
    import ctranslate2

    folder.mkdir()
    convert_transformer(
        trained.folder,
        folder,
        source_tokens=trained.source_tokens,
        target_tokens=trained.vocabulary.tokens,
        quantization=quantization,
    )
    return ctranslate2.Translator(str(folder), compute_type=quantization)


def target_ids(words: Vocabulary) -> list[int]:
    return [words.id("<effect:sentence>"), *words.encode_signature(SIGNATURE), *words.encode_text(TARGET)]


def torch_scores(trained: Trained, source: list[int], target: list[int]) -> np.ndarray:
    """Log-probability of each token after the tag, and of the end."""
    import torch

    with torch.no_grad():
        given = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([target])}
        scores = trained.model(**given).logits[0].log_softmax(dim=-1)
    wanted = [*target[1:], trained.vocabulary.end]
    return np.array([float(scores[place, token]) for place, token in enumerate(wanted)])


def engine_scores(trained: Trained, engine: Any, source: list[int], target: list[int]) -> np.ndarray:
    read = [trained.source_tokens[number] for number in source]
    (scored,) = engine.score_batch([read], [[trained.vocabulary.tokens[number] for number in target]])
    return np.array(scored.log_probs)


@pytest.mark.parametrize("text", [SOURCE, "", "They won " * 20])
def test_the_engine_scores_as_torch_does(trained: Trained, text: str, tmp_path: Path) -> None:
    source, target = trained.read(text), target_ids(trained.vocabulary)
    engine = open_engine(trained, tmp_path / "engine", "float32")
    assert engine_scores(trained, engine, source, target) == pytest.approx(
        torch_scores(trained, source, target), abs=1e-3
    )


def test_int8_stays_near(trained: Trained, tmp_path: Path) -> None:
    source, target = trained.read(SOURCE), target_ids(trained.vocabulary)
    engine = open_engine(trained, tmp_path / "engine", "int8")
    difference = engine_scores(trained, engine, source, target) - torch_scores(trained, source, target)
    assert np.abs(difference).mean() < 0.25


def test_the_engine_finds_the_beams_of_torch(trained: Trained, tmp_path: Path) -> None:
    """Both are asked for a fixed number of tokens, so that length normalisation cannot differ."""
    import torch

    words, source = trained.vocabulary, trained.read(SOURCE)
    prefix = target_ids(words)[:5]
    with torch.no_grad():
        found = trained.model.generate(
            input_ids=torch.tensor([source]),
            decoder_input_ids=torch.tensor([prefix]),
            num_beams=4,
            num_return_sequences=4,
            min_new_tokens=6,
            max_new_tokens=6,
            do_sample=False,
            decoder_start_token_id=prefix[0],  # else torch puts a start token before the tag
        )
    wanted = [row[-6:].tolist() for row in found]
    engine = open_engine(trained, tmp_path / "engine", "float32")
    (result,) = engine.translate_batch(
        [[trained.source_tokens[number] for number in source]],
        target_prefix=[[words.tokens[number] for number in prefix]],
        beam_size=4,
        num_hypotheses=4,
        min_decoding_length=10,  # the engine counts the forced signature too
        max_decoding_length=10,
    )
    place = {token: number for number, token in enumerate(words.tokens)}
    assert [[place[token] for token in tokens[-6:]] for tokens in result.hypotheses] == wanted


def test_a_decoder_can_write_with_the_pieces_of_its_encoder(tmp_path: Path) -> None:
    """The same ids on both sides, our special names, and each piece starts as the encoder knows it."""
    tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    copy_pieces(minilm_folder() / "tokenizer.json", tmp_path / "tokens.model")
    words = make_vocabulary(tmp_path / "tokens.model")
    text = "the unlucky baker couldn't read the half-burnt menu, so he left"
    assert words.encode_text(text) == tokenizer.encode(text, add_special_tokens=False).ids
    assert words.decode_text([*words.encode_text(text), words.end, words.pad]) == text
    model = build_transformer(SHAPES["tiny-warm"], words, seed=1)
    start_from_encoder(model, words, tokenizer)
    theirs = model.encoder.get_input_embeddings().weight.detach().numpy()
    ours = model.decoder.get_input_embeddings().weight.detach().numpy()
    for piece in ("baker", "##ing"):
        place = words.id(piece)
        assert np.corrcoef(ours[place], theirs[place])[0, 1] == pytest.approx(1, abs=1e-5)


def test_the_commonest_pieces_of_the_encoder_write_every_word(tmp_path: Path) -> None:
    """Words that were never counted come out in smaller pieces; those kept start as the encoder knows them."""
    source = minilm_folder() / "tokenizer.json"
    seen = ["the baker left", "the baker couldn't read", "I read the menu"]
    choose_pieces(source, seen, tmp_path / "tokens.model", 143)
    words = make_vocabulary(tmp_path / "tokens.model")
    assert words.text_size == 143
    assert [words.tokens[number] for number in words.encode_text("the baker")] == ["the", "baker"]
    for text in ("the plumber couldn't leave, and I left", "zebra, 42"):
        ids = words.encode_text(text)
        assert words.id(UNKNOWN) not in ids
        assert words.decode_text([*ids, words.end, words.pad]) == text
    assert words.encode_text("日") == [words.id(UNKNOWN)], "what neither ASCII nor the corpus has is unknown"
    model = build_transformer(SHAPES["tiny-warm"], words, seed=1)
    tokenizer = Tokenizer.from_file(str(source))
    start_from_encoder(model, words, tokenizer)
    theirs = model.encoder.get_input_embeddings().weight.detach().numpy()[tokenizer.token_to_id("baker")]
    ours = model.decoder.get_input_embeddings().weight.detach().numpy()[words.id("baker")]
    assert np.corrcoef(ours, theirs)[0, 1] == pytest.approx(1, abs=1e-5)


def test_the_paper_shape_has_the_papers_parameters(pieces: Path) -> None:
    """36,655,104 with a dictionary of 9,984 entries, measured on the original architecture."""
    vocabulary = make_vocabulary(pieces)
    smaller = count_parameters(build_transformer(SHAPES["paper"], vocabulary, seed=1))
    assert smaller + 512 * (9_984 - len(vocabulary)) == 36_655_104


def test_the_small_shape_has_at_most_ten_million_parameters(pieces: Path) -> None:
    vocabulary = make_vocabulary(pieces)
    found = count_parameters(build_transformer(SHAPES["small"], vocabulary, seed=1))
    assert found + 256 * (8_000 - vocabulary.text_size) < 10_000_000


def test_the_same_seed_gives_the_same_model(pieces: Path) -> None:
    one, two, other = (build_transformer(SHAPES["tiny"], make_vocabulary(pieces), seed=seed) for seed in (1, 1, 2))
    first = next(iter(one.parameters()))
    assert (first == next(iter(two.parameters()))).all()
    assert (first != next(iter(other.parameters()))).any()


def test_a_sketch_is_near_to_the_vectors_that_have_its_bits() -> None:
    """The signed sum of hyperplanes lies on the side of each that its bit names."""
    code = random_code(8, 384)
    rows = signature_sketches(SignatureTokens(8, 4, positional=True), code)
    assert rows.shape == (32, 384)
    whole = rows[0b0110] + rows[16 + 0b1001]
    assert "".join("1" if side > 0 else "0" for side in code.planes @ whole) == "01101001"


def test_shared_tokens_have_no_hyperplanes_to_start_from(pieces: Path) -> None:
    vocabulary = Vocabulary(pieces, [], SignatureTokens(16, 1))
    model = build_transformer(SHAPES["tiny"], vocabulary, seed=1)
    with pytest.raises(Cod3sError, match="positional"):
        start_from_hyperplanes(model, vocabulary, random_code(16, 64))


def test_a_model_of_another_kind_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="cannot be exported"):
        convert_transformer(minilm_folder(), tmp_path, source_tokens=[], target_tokens=[], quantization="float32")
