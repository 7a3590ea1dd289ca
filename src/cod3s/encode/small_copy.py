"""A small copy of all-MiniLM-L6-v2, which a bundle carries so that its answers can be signed at once.

In int8 with half of its levels, without rare word pieces and without positions that are never read: 18 MB.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from cod3s.encode.bert import POSITIONS, TABLE, save_bert_engine
from cod3s.encode.fast import FastEncoder
from cod3s.encode.weights import DIM, MAX_TOKENS, NAME, SHA256, minilm_folder, read_weights
from cod3s.io.disk import read_json, write_json

_PIECES = 18_000  # of 30,522: the rest would take a fifth of the copy, for rare words
_LEVELS = 127  # half of int8's: a seventh smaller when compressed


def write_small_copy(folder: Path, tokenizer: Path, texts: Iterable[str]) -> None:
    """Write the engine's model into `folder` and its tokenizer to `tokenizer`; pieces of `texts` are kept."""
    source = minilm_folder()
    pieces = _common_pieces(source / "tokenizer.json", texts)
    _trim_tokenizer(source / "tokenizer.json", tokenizer, pieces)
    weights = read_weights(source)
    weights |= {TABLE: weights[TABLE][pieces], POSITIONS: weights[POSITIONS][:MAX_TOKENS]}
    folder.mkdir(parents=True, exist_ok=True)
    save_bert_engine(weights, read_json(source / "config.json"), folder, quantization="int8", levels=_LEVELS)


def open_small_copy(folder: Path, tokenizer: Path, threads: int | None = None) -> FastEncoder:
    """The encoder in `folder`; only rounding tells its vectors from those of the original."""
    return FastEncoder(
        f"inner:{NAME}@{SHA256[:8]}", folder, tokenizer, dim=DIM, max_tokens=MAX_TOKENS, threads=threads
    )


def _common_pieces(tokenizer: Path, texts: Iterable[str]) -> list[int]:
    """The ids of the word pieces that stay: those of `texts`, then those with the lowest ids, the most common.

    Single characters and special tokens always stay, so any text can still be read, though in smaller pieces.
    """
    from tokenizers import Tokenizer

    opened = Tokenizer.from_file(str(tokenizer))
    names: dict[str, int] = opened.get_vocab()
    basic = {id for name, id in names.items() if _is_basic(name)}
    used = Counter(id for encoding in opened.encode_batch_fast(list(texts)) for id in encoding.ids)
    others = [id for name, id in names.items() if not name.startswith("[unused") and id not in basic]
    others.sort(key=lambda id: (id not in used, id))
    return sorted([*basic, *others[: max(0, _PIECES - len(basic))]])


def _is_basic(name: str) -> bool:
    return len(name.removeprefix("##")) == 1 or name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def _trim_tokenizer(tokenizer: Path, output: Path, pieces: Sequence[int]) -> None:
    """Write the tokenizer with only these pieces, numbered in their order."""
    content = read_json(tokenizer)
    numbers = {old: new for new, old in enumerate(pieces)}
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {name: numbers[id] for name, id in vocabulary.items() if id in numbers}
    content["added_tokens"] = [
        {**token, "id": numbers[token["id"]]} for token in content["added_tokens"] if token["id"] in numbers
    ]
    for token in content["post_processor"]["special_tokens"].values():
        token["ids"] = [numbers[id] for id in token["ids"]]
    if content["padding"]:
        content["padding"]["pad_id"] = numbers[content["padding"]["pad_id"]]
    write_json(output, content)
