"""Signature tokens and text pieces in one vocabulary."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cod3s.errors import Cod3sError, FileFormatError, SignatureError
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary, train_pieces
from made_sentences import made_sentences


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "tokens.model"
    train_pieces(made_sentences(500), path, 200)
    return path


def test_signatures_are_written_in_groups() -> None:
    cases: list[tuple[SignatureTokens, list[str] | int, list[str], str]] = [
        (SignatureTokens(4, 1), ["<0>", "<1>"], ["<0>", "<1>", "<1>", "<0>"], "the paper: two tokens"),
        (SignatureTokens(4, 4), 16, ["<0110>"], "the paper's ablation: one token a signature"),
        (SignatureTokens(4, 2), 4, ["<01>", "<10>"], "in between, shared over positions"),
        (SignatureTokens(4, 2, positional=True), 8, ["<0:01>", "<1:10>"], "in between, one set a position"),
        (SignatureTokens(4, 3, positional=True), 10, ["<0:011>", "<1:0>"], "the last group takes the rest"),
        (SignatureTokens(4, 3), 10, ["<011>", "<0>"], "the rest has tokens of its own length"),
    ]
    for tokens, names, written, reason in cases:
        assert tokens.split("0110") == written, reason
        assert (tokens.names() if isinstance(names, list) else len(tokens.names())) == names, reason


@given(st.data())
def test_joining_gives_back_the_signature(data: st.DataObject) -> None:
    bits = data.draw(st.integers(1, 40))
    width = data.draw(st.integers(1, min(bits, 6)))
    tokens = SignatureTokens(bits, width, data.draw(st.booleans()))
    signature = data.draw(st.text("01", min_size=bits, max_size=bits))
    assert tokens.join(tokens.split(signature)) == signature
    assert set(tokens.split(signature)) <= set(tokens.names())


def test_impossible_groups_and_tokens_that_write_no_signature_are_clear_errors() -> None:
    for bad in ([], ["<0:01>"], ["<1:10>", "<0:01>"], ["<0:01>", "the"], ["<0:01>", "<1:1>"]):
        with pytest.raises(SignatureError):
            SignatureTokens(4, 2, positional=True).join(bad)
    for bits, width in [(16, 0), (16, 17), (32, 17), (0, 1)]:
        with pytest.raises(SignatureError):
            SignatureTokens(bits, width)


def test_text_survives_the_vocabulary_and_other_tokens_are_left_out(pieces: Path) -> None:
    words = Vocabulary(pieces, ["<effect:sentence>"], SignatureTokens(4, 2, positional=True))
    text = "The baker missed the bus."
    ids = words.encode_text(text)
    prefix = [words.id("<effect:sentence>"), *words.encode_signature("0110")]
    assert words.decode_text([*prefix, *ids, words.end, words.pad]) == text
    assert all(number >= words.text_size for number in prefix)
    assert len(words) == words.text_size + 1 + 8


def test_the_same_sentences_give_the_same_pieces(pieces: Path, tmp_path: Path) -> None:
    train_pieces(made_sentences(500), tmp_path / "again.model", 200)
    assert (tmp_path / "again.model").read_bytes() == pieces.read_bytes()


def test_a_file_of_another_kind_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "tokens.model").write_text("not a model")
    with pytest.raises(FileFormatError):
        Vocabulary(tmp_path / "tokens.model", [], SignatureTokens())
    with pytest.raises(Cod3sError, match="no file"):
        Vocabulary(tmp_path / "nowhere.model", [], SignatureTokens())


def test_no_sentences_teach_no_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="vocabulary"):
        train_pieces([], tmp_path / "tokens.model", 200)


def test_an_unknown_token_is_a_clear_error(pieces: Path) -> None:
    with pytest.raises(Cod3sError, match="<cause:plain>"):
        Vocabulary(pieces, [], SignatureTokens()).id("<cause:plain>")
