"""The two-stage method on a user's own transformers seq2seq model, without a bundle. A source in, answers out.

The model was fine-tuned on targets that begin with a signature (`TwoStage.target`). Stage 1 lets it write k
signatures that lie apart, stage 2 the best sentence after each. Needs the extra `train`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cod3s.errors import Cod3sError, require
from cod3s.records import Answer, AnswerSet
from cod3s.signatures import from_text, keep_apart, pack
from cod3s.text import clean
from cod3s.tokens.vocabulary import SignatureTokens

# What a model's own generation settings may hold and a signature must not be subject to.
_PLAIN: dict[str, Any] = {
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "min_length": 0,
    "bad_words_ids": None,
}


@dataclass(frozen=True)
class SignatureProcessor:
    """A logits processor: a fixed lead, a signature, a separator; after them no signature token any more.

    `allowed[i]` are the ids that may stand i places after the decoder's start token. Give it to `generate` of
    transformers, with `renormalize_logits=True` where probabilities over signatures should sum to one.
    """

    allowed: tuple[tuple[int, ...], ...]
    signature_ids: tuple[int, ...]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        place = input_ids.shape[1] - 1
        if place >= len(self.allowed):
            return scores.index_fill(1, scores.new_tensor(self.signature_ids).long(), float("-inf"))
        columns = scores.new_tensor(self.allowed[place]).long()
        return scores.new_full(scores.shape, float("-inf")).index_copy(1, columns, scores[:, columns])


class TwoStage:
    """A seq2seq model with its tokenizer and the tokens that write signatures.

    `names` maps our token names (`SignatureTokens.names()`) to those of the tokenizer where they differ;
    `separator` is the token between signature and sentence, if the model was trained with one.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        tokens: SignatureTokens,
        *,
        separator: str = "",
        names: Mapping[str, str] | None = None,
    ) -> None:
        if not getattr(model.config, "is_encoder_decoder", False):
            raise Cod3sError(f"{type(model).__name__} is no encoder-decoder model", hint="give a seq2seq model")
        self.model, self.tokenizer, self.tokens = model, tokenizer, tokens
        self.separator, self._names = separator, dict(names or {})
        self._ids = self._find_ids()
        self._name_of = {number: name for name, number in self._ids.items()}
        self._separator_ids = tuple(tokenizer.convert_tokens_to_ids(self._separators()))
        self._start = _start_ids(model, tokenizer)

    def target(self, signature: str, text: str) -> str:
        """What the model should learn to write: the signature's tokens, the separator, the sentence."""
        written = "".join(self._names.get(token, token) for token in self.tokens.split(signature))
        return f"{written}{self.separator} {clean(text)}"

    def prefix(self, signature: str) -> list[int]:
        """The decoder ids that force a signature: `generate(decoder_input_ids=…)` goes on with the sentence."""
        own = [self._ids[token] for token in self.tokens.split(signature)]
        return [*self._start, *own, *self._separator_ids]

    def processor(self) -> SignatureProcessor:
        """Makes `generate` of transformers write a signature first, and only there."""
        lead, end = ([(number,) for number in ids] for ids in (self._start[1:], self._separator_ids))
        bits = [tuple(self._ids[name] for name in names) for names in self.tokens.choices()]
        return SignatureProcessor((*lead, *bits, *end), tuple(sorted(self._ids.values())))

    def signatures(self, source: str, n: int = 100) -> list[tuple[str, float]]:
        """Stage 1: up to `n` signatures by beam search, best first, with their log-probabilities.

        The beam is restricted to signature tokens, so that the probabilities of all signatures sum to one.
        """
        most = 2**self.tokens.bits
        beam = max(2, min(n, most))  # the search of transformers reports scores from a beam of 2 on
        found = self.model.generate(
            **self._read([source]),
            decoder_input_ids=self._tensor([list(self._start)]),
            logits_processor=[self.processor()],
            renormalize_logits=True,
            do_sample=False,
            num_beams=beam,
            num_return_sequences=beam,
            max_new_tokens=len(self.tokens.groups),
            length_penalty=0.0,  # the sum of log-probabilities: all signatures are equally long
            return_dict_in_generate=True,
            output_scores=True,
            **_PLAIN,
        )
        written = found.sequences[:, len(self._start) :].tolist()
        scored = zip(map(self._signature, written), found.sequences_scores.tolist(), strict=True)
        return list(scored)[:n]

    def sentences(
        self, source: str, signatures: Sequence[str], *, beam: int = 40, max_new_tokens: int = 64
    ) -> list[tuple[str, float]]:
        """Stage 2: for each signature the best sentence after it and its mean log-probability a token."""
        if beam < 2:
            raise Cod3sError(f"a beam of {beam} was asked for", hint="choose 2 or more")
        prefixes = [self.prefix(signature) for signature in signatures]
        found = self.model.generate(
            **self._read([source] * len(prefixes)),
            decoder_input_ids=self._tensor(prefixes),
            logits_processor=[self.processor()],
            do_sample=False,
            num_beams=beam,
            max_new_tokens=max_new_tokens,
            length_penalty=1.0,
            forced_eos_token_id=None,  # a forced end would count as certain in the score
            return_dict_in_generate=True,
            output_scores=True,
        )
        texts = self.tokenizer.batch_decode(found.sequences[:, len(prefixes[0]) :], skip_special_tokens=True)
        scores = found.sequences_scores.tolist()
        return [(text.strip(), score) for text, score in zip(texts, scores, strict=True)]

    def generate(
        self,
        source: str,
        k: int = 10,
        *,
        relation: str = "",
        min_hamming: int = 2,
        signature_beam: int = 100,
        sentence_beam: int = 40,
        max_new_tokens: int = 64,
    ) -> AnswerSet:
        """Both stages: k signatures that lie apart (filled up as the original does), a sentence for each."""
        ranked = self.signatures(source, max(k, signature_beam))
        packed = pack(np.stack([from_text(signature) for signature, _ in ranked]))
        order = keep_apart(packed, min_hamming, k).order()[:k].tolist()
        chosen = [ranked[rank][0] for rank in order]
        written = self.sentences(source, chosen, beam=sentence_beam, max_new_tokens=max_new_tokens)
        answers = tuple(
            Answer(
                text=text,
                score=score,
                forward=score,
                signature=ranked[rank][0],
                signature_rank=rank,
                signature_score=ranked[rank][1],
                signature_forward=ranked[rank][1],
            )
            for rank, (text, score) in zip(order, written, strict=True)
        )
        settings: dict[str, str | int | float | bool | None] = {
            "k": k,
            "min_hamming": min_hamming,
            "signature_beam": signature_beam,
            "sentence_beam": sentence_beam,
            "max_new_tokens": max_new_tokens,
        }
        return AnswerSet(source, relation, "two-stage", settings, answers)

    def _find_ids(self) -> dict[str, int]:
        """The id of each signature token and of the separator; what the tokenizer lacks is an error."""
        own = {name: self._names.get(name, name) for name in self.tokens.names()}
        known = self.tokenizer.get_vocab()
        missing = [name for name in (*own.values(), *self._separators()) if name not in known]
        if missing:
            raise Cod3sError(
                f"the tokenizer lacks {len(missing)} of the tokens that write signatures, {missing[0]!r} first",
                hint="add_signature_tokens(model, tokenizer, tokens) adds them; then the model has to learn them",
            )
        return {name: known[theirs] for name, theirs in own.items()}

    def _separators(self) -> list[str]:
        return [self.separator] if self.separator else []

    def _read(self, sources: Sequence[str]) -> Any:
        return self.tokenizer(list(map(clean, sources)), return_tensors="pt").to(self.model.device)

    def _tensor(self, rows: list[list[int]]) -> Any:
        return require("torch", "train").tensor(rows, device=self.model.device)

    def _signature(self, ids: Sequence[int]) -> str:
        return self.tokens.join([self._name_of[number] for number in ids])


def add_signature_tokens(model: Any, tokenizer: Any, tokens: SignatureTokens, separator: str = "") -> int:
    """Give a model and its tokenizer, before fine-tuning, the tokens that write signatures; how many are new."""
    added: int = tokenizer.add_tokens([*tokens.names(), *([separator] if separator else [])], special_tokens=True)
    model.resize_token_embeddings(max(len(tokenizer), model.config.vocab_size))
    return added


def _start_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """What stands before every target: the decoder's start token, and what the tokenizer itself puts in front.

    BART's tokenizer begins each text with <s>, so the model's targets did too; T5's and Marian's do not.
    """
    config = model.generation_config
    start = config.decoder_start_token_id
    if start is None:
        start = model.config.decoder_start_token_id if config.bos_token_id is None else config.bos_token_id
    if start is None:
        raise Cod3sError("the model names no token that the decoder starts with")
    frame = tokenizer(text_target="")["input_ids"]
    lead = frame[: frame.index(tokenizer.eos_token_id)] if tokenizer.eos_token_id in frame else frame
    return (int(start), *lead)
