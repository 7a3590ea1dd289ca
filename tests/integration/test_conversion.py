"""Models: the paper's size, and an engine that computes what torch computes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s.encode.weights import minilm_folder
from cod3s.errors import Cod3sError
from cod3s.model.convert import convert_causal, convert_marian
from cod3s.model.roles import ROLES, tag
from cod3s.model.shape import SHAPES
from cod3s.model.transformer import build_transformer
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary, train_pieces
from made_sentences import made_sentences

SOURCE, TARGET, SIGNATURE = "The baker missed the bus.", "A young nurse fell asleep.", "0110011001011100"


@dataclass(frozen=True)
class Trained:
    """A model saved as training saves it, with what turns text into its tokens."""

    model: Any
    folder: Path
    vocabulary: Vocabulary

    def read(self, text: str) -> list[int]:
        return [*self.vocabulary.encode_text(text), self.vocabulary.end]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tokens.model"
    train_pieces(made_sentences(500), path, 400)
    return path


def make_vocabulary(pieces: Path) -> Vocabulary:
    return Vocabulary(pieces, [tag("effect", role) for role in ROLES], SignatureTokens(16, 4, positional=True))


@pytest.fixture(scope="module")
def trained(pieces: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    vocabulary = make_vocabulary(pieces)
    model = build_transformer(SHAPES["tiny"], vocabulary, seed=1).eval()
    folder = tmp_path_factory.mktemp("tiny")
    model.save_pretrained(folder)
    return Trained(model, folder, vocabulary)


def open_engine(trained: Trained, folder: Path, quantization: str) -> Any:
    import ctranslate2

    folder.mkdir()
    convert_marian(trained.folder, folder, trained.vocabulary.tokens, quantization=quantization)
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
    read = [trained.vocabulary.tokens[number] for number in source]
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
        [[trained.vocabulary.tokens[number] for number in source]],
        target_prefix=[[words.tokens[number] for number in prefix]],
        beam_size=4,
        num_hypotheses=4,
        min_decoding_length=10,  # the engine counts the forced signature too
        max_decoding_length=10,
    )
    place = {token: number for number, token in enumerate(words.tokens)}
    assert [[place[token] for token in tokens[-6:]] for tokens in result.hypotheses] == wanted


def count_parameters(model: Any) -> int:
    """Parameters that training changes; fixed position tables are not among them."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


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


def test_a_model_of_another_kind_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="not a Transformer of cod3s"):
        convert_marian(minilm_folder(), tmp_path, [], quantization="float32")
    with pytest.raises(Cod3sError, match="the engine cannot run"):
        convert_causal(minilm_folder(), tmp_path, [], quantization="float32")
