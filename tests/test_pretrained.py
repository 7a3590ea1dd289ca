"""Starting from somebody else's seq2seq model: its pieces stay, ours are added, and the engine agrees with torch.

The models are tiny and random, saved to disk as the libraries save them: nothing is downloaded.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s.bundle import open_vocabulary, read_facts
from cod3s.corpus import prepare
from cod3s.corpus.manifest import PrepareConfig
from cod3s.decode.models import open_models
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.export.bundle_writer import export
from cod3s.model.pretrained import load_pretrained, write_tokenizers
from cod3s.model.reader import open_reader
from cod3s.model.roles import ROLES, tag
from cod3s.model.shape import SHAPES
from cod3s.tokens.vocabulary import END, PAD, UNKNOWN, SignatureTokens, Vocabulary
from cod3s.train import PRESETS, train
from made_sentences import made_sentences

SENTENCES = list(made_sentences(400))
TEXT = "The baker missed the bus and walked home."
SPECIAL = ["<s>", PAD, END, UNKNOWN, "<mask>"]
TAGS = [tag("effect", role) for role in ROLES]


def save_bart(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    learner = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(SENTENCES, learner)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"<s> $A {END}", special_tokens=[("<s>", 0), (END, 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token=END, unk_token=UNKNOWN, pad_token=PAD
    ).save_pretrained(folder)
    config = BartConfig(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=160,
    )
    BartForConditionalGeneration(config).save_pretrained(folder)


def save_t5(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    learner = trainers.UnigramTrainer(vocab_size=300, special_tokens=[PAD, END, UNKNOWN], unk_token=UNKNOWN)
    tokenizer.train_from_iterator(SENTENCES, learner)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, 1)])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, unk_token=UNKNOWN, pad_token=PAD
    ).save_pretrained(folder)
    config = T5Config(
        vocab_size=tokenizer.get_vocab_size() + 28,  # as T5 has it: rows that no piece uses
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)


def save_marian(folder: Path) -> None:
    import json

    import sentencepiece
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir(exist_ok=True)
    pieces: dict[str, None] = dict.fromkeys([END, UNKNOWN])
    for side, sentences in (("source", SENTENCES[:250]), ("target", SENTENCES[150:])):
        with (folder / f"{side}.spm").open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences), model_writer=file, vocab_size=200, minloglevel=2
            )
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        pieces |= dict.fromkeys(model.id_to_piece(n) for n in range(3, model.get_piece_size()))
    names = [*pieces, PAD]  # Marian's padding comes last
    (folder / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "en"}))
    config = MarianConfig(
        vocab_size=len(names),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=160,
        pad_token_id=len(names) - 1,
        decoder_start_token_id=len(names) - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
    )
    MarianMTModel(config).save_pretrained(folder)


SAVE = {"bart": save_bart, "t5": save_t5, "marian": save_marian}


@pytest.fixture(scope="module", params=list(SAVE))
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp(request.param) / "start"
    SAVE[request.param](folder)
    return folder


@pytest.fixture(scope="module")
def words(start: Path) -> Vocabulary:
    tokens, source = start.parent / "tokens.model", start.parent / "source.json"
    write_tokenizers(str(start), tokens, source)
    return Vocabulary(tokens, TAGS, SignatureTokens(16, 4, positional=True))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    rows = [f"{cause}\t{effect}" for cause, effect in zip(SENTENCES[:150], SENTENCES[150:300], strict=True)]
    (folder / "pairs.tsv").write_text("cause\teffect\n" + "\n".join(rows))
    config = PrepareConfig(relation="effect", filter="none", encoder="static", dev=20, test=0, held_out=0.25)
    prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    return folder / "corpus"


def test_the_pieces_of_the_model_keep_their_ids_and_ours_follow(start: Path, words: Vocabulary) -> None:
    from transformers import AutoConfig

    rows = AutoConfig.from_pretrained(start).vocab_size
    assert words.text_size == rows
    assert [words.id(one) for one in TAGS] == list(range(rows, rows + len(TAGS)))
    assert words.first_signature == rows + len(TAGS)
    model = load_pretrained(str(start), words, seed=1)
    assert model.get_input_embeddings().weight.shape[0] == len(words)


def test_text_survives_the_pieces_of_the_model(words: Vocabulary) -> None:
    prefix = [words.id("<effect:sentence>"), *words.encode_signature("0110011001011100")]
    assert words.decode_text([*prefix, *words.encode_text(TEXT), words.end, words.pad]) == TEXT


def test_sources_are_read_as_the_model_was_taught_to(start: Path, words: Vocabulary) -> None:
    from transformers import AutoTokenizer

    reader = open_reader(SHAPES["pretrained"], words, start.parent / "source.json")
    tokenizer = AutoTokenizer.from_pretrained(start)
    for text in [*SENTENCES[:20], TEXT, ""]:
        assert reader.read(text) == tokenizer(text)["input_ids"], text
    assert len(reader.read("word " * 500)) == SHAPES["pretrained"].max_tokens
    assert reader.tokens is words.tokens


def test_the_old_rows_are_as_they_were_and_a_seed_decides_the_new_ones(start: Path, words: Vocabulary) -> None:
    from transformers import AutoModelForSeq2SeqLM

    def table(model: Any) -> np.ndarray:
        return model.get_input_embeddings().weight.detach().numpy()

    before = table(AutoModelForSeq2SeqLM.from_pretrained(start))
    one, two, other = (table(load_pretrained(str(start), words, seed=seed)) for seed in (1, 1, 2))
    assert (one[: len(before)] == before).all()
    assert (one == two).all()
    assert (one[len(before) :] != other[len(before) :]).any()


def test_a_pretrained_start_is_trained_exported_and_scored_alike(
    start: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way with each kind: the engine's scores equal torch's within 1e-3 a token after training."""
    import ctranslate2
    import torch
    from transformers import AutoModelForSeq2SeqLM

    config = PRESETS["pretrained"].with_values(
        init=str(start), epochs=1, evaluate_every=4, batch_tokens=1024, warmup_steps=2, learning_rate=3e-3
    )
    figures = train(corpus, tmp_path / "run", config)
    assert figures["shared"]["loss"] < 9
    export(tmp_path / "run", tmp_path / "bundle", quantization="float32")
    facts = read_facts(tmp_path / "bundle")
    words = open_vocabulary(tmp_path / "bundle" / "tokens.model", facts)
    reader = open_reader(SHAPES[facts.shape], words, tmp_path / "bundle" / "source.json")
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run" / "shared" / "model").eval()
    engine = ctranslate2.Translator(str(tmp_path / "bundle" / "models" / "shared"), compute_type="float32")

    start_ids = [words.id("<effect:sentence>"), *words.encode_signature("0110011001011100")]
    target = [*start_ids, *words.encode_text(TEXT)]
    for source in (reader.read(TEXT), reader.nothing):
        with torch.no_grad():
            given = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([target])}
            scores = model(**given).logits[0].log_softmax(dim=-1)
        expected = [float(scores[place, token]) for place, token in enumerate([*target[1:], words.end])]
        (scored,) = engine.score_batch(
            [[reader.tokens[number] for number in source]], [[words.tokens[number] for number in target]]
        )
        assert scored.log_probs == pytest.approx(expected, abs=1e-3)

    monkeypatch.setattr("cod3s.model.prompted._LONG", 1)  # the signature is read at once, except by T5
    sentence = open_models(tmp_path / "bundle").sentence("effect")
    request = sentence.request(TEXT, start_ids[1:])
    (found,) = sentence.engine.search([request], beam=5, max_tokens=6)
    again = [sentence.engine.score([request], [one.tokens], end=one.length > len(one.tokens))[0] for one in found]
    assert len(found) >= 4
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in again], abs=1e-3)


def test_marian_pieces_of_another_type_are_a_clear_error(tmp_path: Path) -> None:
    import sentencepiece

    save_marian(tmp_path)
    with (tmp_path / "target.spm").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES), model_writer=file, vocab_size=200, model_type="bpe", minloglevel=2
        )
    with pytest.raises(Cod3sError, match="not of the unigram type"):
        write_tokenizers(str(tmp_path), tmp_path / "tokens.model", tmp_path / "source.json")


def test_a_model_of_another_kind_is_a_clear_error(tmp_path: Path) -> None:
    from transformers import BertConfig

    BertConfig().save_pretrained(tmp_path)
    with pytest.raises(Cod3sError, match="'bert' model") as raised:
        write_tokenizers(str(tmp_path), tmp_path / "tokens.model", tmp_path / "source.json")
    assert "bart, t5, marian" in raised.value.hint


def test_a_folder_without_a_model_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="no model could be loaded") as raised:
        write_tokenizers(str(tmp_path), tmp_path / "tokens.model", tmp_path / "source.json")
    assert "save_pretrained" in raised.value.hint


def test_a_damaged_tokenizer_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "tokens.model").write_text('{"version": "1.0", "model": {}}')
    with pytest.raises(FileFormatError, match="there are no text pieces in"):
        Vocabulary(tmp_path / "tokens.model", [], SignatureTokens())


def test_a_tokenizer_without_its_unknown_token_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    tokenizer = Tokenizer(models.WordPiece({"</s>": 0, "baker": 1}, unk_token="[UNK]"))
    tokenizer.save(str(tmp_path / "tokens.model"))
    with pytest.raises(FileFormatError, match="there are no text pieces in"):
        Vocabulary(tmp_path / "tokens.model", [], SignatureTokens())


def test_a_preset_with_a_shape_of_its_own_takes_no_model_to_start_from() -> None:
    with pytest.raises(Cod3sError, match="do not go together"):
        PRESETS["small"].with_values(init="facebook/bart-base")
