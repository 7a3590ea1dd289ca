"""A pretrained Hugging Face seq2seq model to start from: BART, T5 or Marian.

Its tokenizers are written as files, and its model gets room for tags and signature tokens. Text pieces keep their
ids, so the model still knows them; our tokens follow.
"""

import warnings
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, require
from cod3s.io.disk import replaced_file
from cod3s.model.transformer import quiet_transformers, special_tokens
from cod3s.tokens.vocabulary import END, PAD, UNKNOWN, Vocabulary

KINDS = ("bart", "t5", "marian")
_SAMPLE = "the old baker missed the last bus and walked home in the rain"
_ABSENT = -1e6  # the score of a piece that a Marian side never uses: below any other way to write the text


def write_tokenizers(name: str, tokens: Path, source: Path) -> None:
    """Write the tokenizer that writes targets to `tokens` and the tokenizer that reads sources to `source`."""
    config = _config(name)
    if config.model_type == "marian":
        reading, writing = _marian_tokenizers(name)
    else:
        reading = writing = _load(name, "AutoTokenizer").backend_tokenizer
    if missing := {UNKNOWN, END, PAD} - set(writing.get_vocab()):
        raise Cod3sError(
            f"the tokenizer of {name} has no {', '.join(sorted(missing))}", hint="start from another model"
        )
    fillers = [f"<unused:{number}>" for number in range(writing.get_vocab_size(), config.vocab_size)]
    for tokenizer, path in ((reading, source), (writing, tokens)):
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if fillers:  # rows of the model's table that no piece uses: named, so that our tokens come after them
            tokenizer.add_special_tokens(fillers)
        with replaced_file(path) as partial:
            tokenizer.save(str(partial))


def load_pretrained(name: str, vocabulary: Vocabulary, *, seed: int) -> Any:
    """The model, its tables enlarged to the vocabulary; new rows are drawn like the old ones."""
    transformers = quiet_transformers()
    config = _config(name)
    if not getattr(config, "share_encoder_decoder_embeddings", True):
        raise Cod3sError(
            f"{name} has separate embeddings for source and target", hint="start from a model that shares them"
        )
    require("torch", "train").manual_seed(seed)
    model = _load(name, "AutoModelForSeq2SeqLM")
    model.resize_token_embeddings(len(vocabulary))
    model.config.update(special_tokens(vocabulary))
    model.generation_config = transformers.GenerationConfig(**special_tokens(vocabulary))
    return model


def _config(name: str) -> Any:
    config = _load(name, "AutoConfig")
    if config.model_type not in KINDS:
        raise Cod3sError(f"{name} is a {config.model_type!r} model", hint=f"start from: {', '.join(KINDS)}")
    return config


def _load(name: str, kind: str) -> Any:
    try:
        return getattr(quiet_transformers(), kind).from_pretrained(name)
    except (OSError, ValueError) as error:
        raise Cod3sError(
            f"no model could be loaded from {name!r}: {str(error).splitlines()[0]}",
            hint="give a folder made by save_pretrained, or a name on the Hugging Face hub",
        ) from error


def _marian_tokenizers(name: str) -> tuple[Any, Any]:
    """Marian has two SentencePiece models whose pieces share their numbers: here, a tokenizer of each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a normaliser that it then does not use
        slow = _load(name, "MarianTokenizer")
    sides = slow.spm_source, slow.spm_target
    reading, writing = (_unigram(model, slow.encoder) for model in sides)
    for tokenizer, model in zip((reading, writing), sides, strict=True):
        pieces = model.encode(_SAMPLE, out_type=str)
        if tokenizer.encode(_SAMPLE, add_special_tokens=False).ids != [
            slow.encoder.get(piece, slow.encoder[UNKNOWN]) for piece in pieces
        ]:
            raise Cod3sError(
                f"the SentencePiece models of {name} are not of the unigram type", hint="start from another model"
            )
    return reading, writing


def _unigram(model: Any, numbers: dict[str, int]) -> Any:
    tokenizers = require("tokenizers", "train")
    scores = {model.id_to_piece(n): model.get_score(n) for n in range(model.get_piece_size())}
    pieces = [(piece, scores.get(piece, _ABSENT)) for piece in sorted(numbers, key=numbers.__getitem__)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, numbers[UNKNOWN]))
    normal = tokenizers.normalizers
    tokenizer.normalizer = normal.Sequence(
        [normal.Nmt(), normal.NFKC(), normal.Replace(tokenizers.Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    tokenizer.add_special_tokens([UNKNOWN, END, PAD])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, numbers[END])]
    )
    return tokenizer
