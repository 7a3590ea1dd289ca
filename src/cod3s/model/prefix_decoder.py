"""Search after long forced prefixes, such as the paper's sixteen bits, which a seq2seq model reads at once.

CTranslate2's `Translator` writes a forced prefix token by token with all beams on. Its `Whisper` model reads the
prompt in a single pass and widens to beams after it, and it accepts states that another encoder computed. So the
decoder of any seq2seq model, opened as a Whisper model without an encoder of its own, searches only what is free.
In float32 the beams are the same, found in about half of the time at the paper's size
(docs/speed.md).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode.fast import open_engine
from cod3s.model.engine_file import EngineFile, packed_variable, read_engine_file, write_engine_file
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import Vocabulary

_DECODER, _ENCODER = ("WhisperSpec", 3), ("TransformerEncoderSpec", 1)  # kinds of models, and their revisions
# Names by which the engine knows the first token of a prompt, its last one, and the end of a text.
_FIRST, _LAST, _END = "<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>"
_LONG = 8  # tokens of a prefix
_NO_SOURCE = 10_000  # the width of a sound's spectrum; sources have fewer tokens, so none is taken for a sound


@dataclass(frozen=True)
class Prompt:
    """The ids that the encoder reads, and the ids that the decoder starts with, a role's tag first."""

    source: tuple[int, ...]
    prefix: tuple[int, ...]


def _batches(prompts: Sequence[Prompt], leader: int, together: int) -> list[list[int]]:
    """The numbers of the prompts that are searched together, at most `together` in a batch.

    Sources and prefixes in a batch are equally long, because nothing is padded. Each batch starts with a prompt
    that ends with the token `leader`, as long as there are enough of them.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for number, prompt in enumerate(prompts):
        groups.setdefault((len(prompt.source), len(prompt.prefix)), []).append(number)
    batches = []
    for numbers in groups.values():
        leading_first = sorted(numbers, key=lambda number: prompts[number].prefix[-1] != leader)
        count = -(-len(numbers) // together)
        batches += [leading_first[start::count] for start in range(count)]
    return batches


def is_long_prefix(prefix: Sequence[int], vocabulary: Vocabulary) -> bool:
    """Whether a prefix is a tag and signature tokens, and so long that reading it at once saves time.

    A batch that lacks a leader gets one, which at worst searches twice as many rows. The other requests must not
    matter, because the two ways count lengths differently where texts end.
    """
    forced = prefix[1:]
    return len(forced) >= _LONG and min(forced) >= vocabulary.first_signature


class PrefixDecoder:
    """The encoder and the decoder of a seq2seq model, each by itself; the decoder's prompts start with `tag`."""

    def __init__(self, folder: Path, vocabulary: Vocabulary, tag: int, *, threads: int, compute: str) -> None:
        self._leader = len(vocabulary) - 1  # the token that the first prompt of a batch ends with
        model = read_engine_file((folder / "model.bin").read_bytes(), str(folder / "model.bin"))
        config = {"layer_norm_epsilon": json.loads((folder / "config.json").read_bytes())["layer_norm_epsilon"]}
        options = {"compute_type": compute, "inter_threads": threads, "intra_threads": 1}
        self._encoder = open_engine("Encoder", str(folder), files=_encoder_files(model, config), **options)
        names = {tag: _FIRST, self._leader: _LAST, vocabulary.end: _END}
        files = _decoder_files(
            model, config, [names.get(number, str(number)) for number in range(len(vocabulary))]
        )
        self._decoder = open_engine("Whisper", str(folder), files=files, **options)

    def search(
        self, prompts: Sequence[Prompt], *, together: int, beam: int, max_tokens: int
    ) -> list[list[Hypothesis]]:
        """The `beam` hypotheses of each prompt, best first; at most `together` prompts are searched at once."""
        states = {
            source: np.asarray(self._encoder.forward_batch([list(source)]).last_hidden_state)
            for source in {prompt.source for prompt in prompts}
        }
        batches = _batches(prompts, self._leader, together)
        led = [self._with_leader([prompts[number] for number in batch]) for batch in batches]
        memories = [np.concatenate([states[prompt.source] for prompt in batch]) for batch in led]  # stay alive
        pending = [self._start(*batch, beam, max_tokens) for batch in zip(led, memories, strict=True)]
        hypotheses: list[list[Hypothesis]] = [[] for _ in prompts]
        for batch, results in zip(batches, pending, strict=True):
            for number, result in zip(batch, results[-len(batch) :], strict=True):
                hypotheses[number] = _hypotheses(result.result(), max_tokens)
        return hypotheses

    def _with_leader(self, batch: list[Prompt]) -> list[Prompt]:
        """The batch, started by a prompt that ends with the leader: the engine asks that of the first one.

        Otherwise it would write time stamps.
        """
        first = batch[0]
        if first.prefix[-1] == self._leader:
            return batch
        return [Prompt(first.source, (*first.prefix[:-1], self._leader)), *batch]

    def _start(
        self, prompts: Sequence[Prompt], memory: npt.NDArray[np.float32], beam: int, max_tokens: int
    ) -> list[Any]:
        import ctranslate2

        before = len(prompts[0].prefix) - 1  # the engine counts what it has read, and halves what it may write
        results: list[Any] = self._decoder.generate(
            ctranslate2.StorageView.from_array(memory),
            [list(prompt.prefix) for prompt in prompts],
            beam_size=beam,
            num_hypotheses=beam,
            max_length=max(before + max_tokens, 2 * max_tokens),
            return_scores=True,
            suppress_blank=False,
            suppress_tokens=[],
            asynchronous=True,
        )
        return results


def _encoder_files(model: EngineFile, config: dict[str, Any]) -> dict[str, bytes]:
    """The encoder as a model by itself; sources are ids, so the names of its tokens do not matter."""
    names = [str(number) for number in range(len(model.stored("encoder/embeddings_0/weight")))]
    special = dict.fromkeys(("bos_token", "eos_token", "unk_token"), names[0])
    return _files(write_engine_file(model.part("encoder/"), *_ENCODER), {**config, **special}, names)


def _decoder_files(model: EngineFile, config: dict[str, Any], names: Sequence[str]) -> dict[str, bytes]:
    """A model with the decoder's weights and an encoder that is never run, as small as the engine accepts."""
    width = model.stored("decoder/embeddings/weight").shape[1]
    vector, matrix, cube = (1,), (1, 1), (1, 1, 1)
    shapes: dict[str, tuple[int, ...]] = {
        "conv1/weight": (1, _NO_SOURCE, 1),
        "conv1/bias": vector,
        "conv2/weight": cube,
        "conv2/bias": vector,
        "position_encodings/encodings": matrix,
        "layer_norm/gamma": (width,),
        "layer_norm/beta": (width,),
    }
    for part in ("layer_0/self_attention", "layer_0/ffn"):
        shapes |= {f"{part}/linear_{number}/weight": matrix for number in (0, 1)}
        shapes |= {f"{part}/linear_{number}/bias": vector for number in (0, 1)}
        shapes |= {f"{part}/layer_norm/{end}": vector for end in ("gamma", "beta")}
    encoder = {f"encoder/{name}": packed_variable(np.ones(shape, np.float32)) for name, shape in shapes.items()}
    weights = write_engine_file({**model.part("decoder/"), **encoder}, *_DECODER)
    return _files(weights, config, names)


def _files(weights: bytes, config: dict[str, Any], names: Sequence[str]) -> dict[str, bytes]:
    return {
        "model.bin": weights,
        "config.json": json.dumps(config).encode(),
        "vocabulary.json": json.dumps(names).encode(),
    }


def _hypotheses(result: Any, max_tokens: int) -> list[Hypothesis]:
    """The engine divides the sum by the number of tokens, the end not counted; texts of `max_tokens` have no end.

    Empty texts are left out, because their score is lost.
    """
    return [
        Hypothesis(tuple(ids), score * len(ids), len(ids) + (len(ids) < max_tokens))
        for ids, score in zip(result.sequences_ids, result.scores, strict=True)
        if ids
    ]
