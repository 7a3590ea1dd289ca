"""Leave out the word pieces of an encoder that its texts do not need."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from cod3s.io.disk import read_json, write_json


def common_pieces(tokenizer: Path, texts: Iterable[str], number: int) -> list[int]:
    """The ids of up to `number` word pieces: those of `texts`, then those with the lowest ids, the most common.

    Single characters and special tokens always stay, so any text can still be read, though in smaller pieces.
    """
    opened = Tokenizer.from_file(str(tokenizer))
    names: dict[str, int] = opened.get_vocab()
    basic = {id for name, id in names.items() if _is_basic(name)}
    used = Counter(id for encoding in opened.encode_batch_fast(list(texts)) for id in encoding.ids)
    others = [id for name, id in names.items() if not name.startswith("[unused") and id not in basic]
    others.sort(key=lambda id: (id not in used, id))
    return sorted([*basic, *others[: max(0, number - len(basic))]])


def _is_basic(name: str) -> bool:
    return len(name.removeprefix("##")) == 1 or name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def trim_tokenizer(tokenizer: Path, output: Path, pieces: Sequence[int]) -> None:
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
