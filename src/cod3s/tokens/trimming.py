"""Trim a byte-level BPE tokenizer to the pieces that a corpus uses; any text can still be read, byte by byte."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError
from cod3s.io.disk import existing_file, read_json, write_json
from cod3s.tokens.vocabulary import END, PAD, UNKNOWN

_BLOCK = 10_000  # texts tokenized together
_LETTERS = {chr(number) for number in range(ord("!"), ord("~") + 1)}  # bytes that stand for themselves


def trim_byte_pieces(folder: Path, texts: Iterable[str], path: Path, size: int) -> None:
    """Write at most `size` pieces of the tokenizer in `folder` to `path`: those that the texts use most.

    Single bytes stay, and so do the pieces that a kept piece is merged from. Every text starts with a space, so
    that a word has the same pieces everywhere.
    """
    content = read_json(existing_file(folder / "tokenizer.json"))
    if content["model"].get("type") != "BPE" or "ByteLevel" not in str(content.get("pre_tokenizer")):
        raise Cod3sError(
            f"the tokenizer in {folder} is not byte-level BPE",
            hint="start from a model with a byte-level tokenizer, such as Llama 3, SmolLM2 or GPT-2",
        )
    content["pre_tokenizer"] = _with_prefix_space(content["pre_tokenizer"])
    merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in content["model"]["merges"]]
    kept = _closed_under_merges(_most_used_names(content, texts), merges, content["model"]["vocab"], size)
    special = [PAD, UNKNOWN, END]
    vocabulary = {name: number for number, name in enumerate([*special, *kept])}
    content["model"] |= {
        "vocab": vocabulary,
        "merges": [merge for merge in merges if {*merge, "".join(merge)} <= vocabulary.keys()],
        "unk_token": UNKNOWN,  # for the few bytes that the model never saw
    }
    content["added_tokens"] = [_special_token(name, number) for number, name in enumerate(special)]
    write_json(path, {**content, "post_processor": None, "padding": None, "truncation": None})


def _with_prefix_space(pre_tokenizer: dict[str, Any]) -> dict[str, Any]:
    if pre_tokenizer["type"] == "ByteLevel":
        return {**pre_tokenizer, "add_prefix_space": True}
    steps = pre_tokenizer.get("pretokenizers", [])
    return {**pre_tokenizer, "pretokenizers": [_with_prefix_space(step) for step in steps]}


def _most_used_names(content: dict[str, Any], texts: Iterable[str]) -> list[str]:
    """The pieces that the texts use, most used first."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps(content))
    used, stream = Counter[int](), iter(texts)
    while block := list(islice(stream, _BLOCK)):
        for encoding in tokenizer.encode_batch_fast(block, add_special_tokens=False):
            used.update(encoding.ids)
    names = {number: name for name, number in content["model"]["vocab"].items()}
    return [names[number] for number, _ in used.most_common() if number in names]


def _closed_under_merges(
    names: Iterable[str], merges: list[tuple[str, ...]], known: dict[str, int], size: int
) -> list[str]:
    """Bytes, and wanted pieces with the pieces they are merged from: at most `size`, in the tokenizer's order."""
    parts = {"".join(merge): merge for merge in reversed(merges)}  # the first merge that makes a piece
    single = sorted((name for name in known if len(name) == 1), key=known.__getitem__)
    if missing := _LETTERS - set(single):
        raise Cod3sError(
            f"the tokenizer has no piece for {' '.join(sorted(missing))}",
            hint="start from a model with a byte-level tokenizer",
        )
    pieces = set(single)
    for name in names:
        needed = set(_with_parts(name, parts)) - pieces
        if len(pieces) + len(needed) <= size:
            pieces |= needed
    return sorted(pieces, key=known.__getitem__)


def _with_parts(name: str, parts: dict[str, tuple[str, ...]]) -> Iterator[str]:
    yield name
    for part in parts.get(name, ()):
        yield from _with_parts(part, parts)


def _special_token(name: str, number: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": name, "special": True, **flags}
