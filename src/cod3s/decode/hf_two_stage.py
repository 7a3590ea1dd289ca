"""The two stages on a user's own seq2seq model from transformers, without a bundle.

The model was fine-tuned on targets that begin with a signature (`TwoStage.target`). Stage 1 lets it write k
signatures that are far apart, stage 2 the best sentence after each. Needs the extra `train`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from cod3s.decode.config import DEFAULT, DecodeConfig
from cod3s.decode.request import check_source, make_batch
from cod3s.decode.sentences import write_candidates
from cod3s.decode.signatures import find_signatures
from cod3s.decode.systems import COD3S, System
from cod3s.decode.two_stages import answer_in_two_stages
from cod3s.errors import Cod3sError, SignatureError
from cod3s.model.reader import Reader
from cod3s.model.transformers_engine import TransformersEngine, forbid_others
from cod3s.models import Models, RoleModel
from cod3s.records import AnswerMade, AnswerSet
from cod3s.signatures.signer import Signer
from cod3s.text import clean
from cod3s.tokens.vocabulary import SignatureTokens

_SYSTEM = System("two-stage", COD3S)


@dataclass(frozen=True)
class SignatureProcessor:
    """A logits processor: first a fixed lead, a signature and a separator; after them no more signature tokens.

    `allowed[i]` are the ids that may come i positions after the decoder's start token. Pass it to `generate` of
    transformers, with `renormalize_logits=True` where probabilities over signatures should sum to 1.
    """

    allowed: tuple[tuple[int, ...], ...]
    signature_ids: tuple[int, ...]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        position = input_ids.shape[1] - 1
        if position >= len(self.allowed):
            return scores.index_fill(1, scores.new_tensor(self.signature_ids).long(), float("-inf"))
        return forbid_others(scores, self.allowed[position])


class TwoStage:
    """A seq2seq model with its tokenizer and the tokens that write signatures.

    `names` maps our token names (`SignatureTokens.names()`) to those of the tokenizer where they differ;
    `separator` is the token between signature and sentence, if the model was trained with it; `signer` signs
    answers as the training targets were signed, for the options `check` and `faithful`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        tokens: SignatureTokens,
        *,
        separator: str = "",
        names: Mapping[str, str] | None = None,
        signer: Signer | None = None,
    ) -> None:
        if not getattr(model.config, "is_encoder_decoder", False):
            raise Cod3sError(
                f"{type(model).__name__} is not an encoder-decoder model", hint="give a seq2seq model"
            )
        self.model, self.tokenizer, self.tokens, self.separator = model, tokenizer, tokens, separator
        self._signer = signer
        self._words = _TokenizerWords(tokenizer, tokens, separator, names or {})
        self._start = _start_ids(model, tokenizer)
        engine = TransformersEngine(
            model, _reader(tokenizer), end=tokenizer.eos_token_id, processors=[self.processor()]
        )
        self._writer = RoleModel(engine, self._words, self._start)

    def __repr__(self) -> str:
        signing = "with" if self._signer else "without"
        return f"TwoStage({type(self.model).__name__}, {self.tokens.bits} bits, {signing} a signer)"

    def target(self, signature: str, text: str) -> str:
        """What the model should learn to write: the signature's tokens, the separator, the sentence."""
        written = "".join(self._words.names[token] for token in self.tokens.split(signature))
        return f"{written}{self.separator} {clean(text)}"

    def prefix(self, signature: str) -> list[int]:
        """The decoder ids that force a signature: `generate(decoder_input_ids=…)` continues with the sentence."""
        return [*self._start, *self._words.encode_signature(signature)]

    def processor(self) -> SignatureProcessor:
        """Makes `generate` of transformers write a signature at the start, and nowhere else."""
        words = self._words
        lead, end = ([(number,) for number in ids] for ids in (self._start[1:], words.separator_ids))
        bits = [tuple(words.id(name) for name in names) for names in self.tokens.choices()]
        return SignatureProcessor((*lead, *bits, *end), tuple(sorted(map(words.id, self.tokens.names()))))

    def signatures(self, source: str, n: int = DEFAULT.signature_beam) -> list[tuple[str, float]]:
        """Stage 1: up to `n` signatures by beam search, best first, with their log-probabilities.

        The beam is restricted to signature tokens, so that the probabilities of all signatures sum to 1.
        """
        config = DEFAULT.with_values(k=1, signature_beam=n)
        (hypotheses,) = find_signatures(self._writer, [check_source(source)], config)
        return [
            (self._words.read_signature(hypothesis.tokens) or "", hypothesis.log_prob) for hypothesis in hypotheses
        ]

    def sentences(
        self,
        source: str,
        signatures: Sequence[str],
        *,
        beam: int = DEFAULT.beam,
        max_tokens: int = DEFAULT.max_tokens,
    ) -> list[tuple[str, float]]:
        """Stage 2: for each signature the best sentence after it and its mean log-probability per token."""
        if beam < 2:
            raise Cod3sError(f"the beam is {beam}", hint="choose 2 or more")
        config = DEFAULT.with_values(beam=beam, max_tokens=max_tokens)
        (bins,) = write_candidates(self._writer, [check_source(source)], [signatures], config)
        return [(bin[0].text, bin[0].score) if bin else ("", float("-inf")) for bin in bins]

    def generate(
        self, source: str, k: int | None = None, *, relation: str = "", options: DecodeConfig = DEFAULT
    ) -> AnswerSet:
        """Both stages, with the options of `cod3s.load(…).generate`: k signatures far apart, a sentence each.

        `relation` only appears in the result. There is no backward model, so `auto` does not rerank.
        """
        config = options if k is None else options.with_values(k=k)
        stages = ("rerank_signatures", "rerank_sentences")
        config = config.with_values(**{stage: "none" for stage in stages if getattr(config, stage) == "auto"})
        models = _OwnModels(self._writer, has_encoder=self._signer is not None)
        config, remarks = config.resolve(models, relation)
        batch = make_batch([(check_source(source), None)], relation, _SYSTEM, config, remarks)
        events = answer_in_two_stages(models, batch, self._signer)
        answers = [event.answer for _, event in events if isinstance(event, AnswerMade)]
        return batch.answer_set(0, answers, model=type(self.model).__name__)


class _OwnModels(Models):
    """One model that writes signatures and sentences of any relation."""

    label = "your model"

    def __init__(self, writer: RoleModel, has_encoder: bool) -> None:
        self._writer, self.has_encoder = writer, has_encoder

    def signature(self, relation: str) -> RoleModel:
        return self._writer

    def sentence(self, relation: str) -> RoleModel:
        return self._writer


class _TokenizerWords:
    """A transformers tokenizer as the vocabulary of the two stages."""

    def __init__(self, tokenizer: Any, tokens: SignatureTokens, separator: str, names: Mapping[str, str]) -> None:
        self._tokenizer, self.signature = tokenizer, tokens
        self.names = {name: names.get(name, name) for name in tokens.names()}  # ours → the tokenizer's
        separators = [separator] if separator else []
        known = tokenizer.get_vocab()
        missing = [name for name in (*self.names.values(), *separators) if name not in known]
        if missing:
            raise Cod3sError(
                f"the tokenizer is missing {len(missing)} tokens that write signatures, such as {missing[0]!r}",
                hint="add_signature_tokens(model, tokenizer, tokens) adds them; then fine-tune the model",
            )
        self._ids = {name: known[theirs] for name, theirs in self.names.items()}
        self._name_of = {number: name for name, number in self._ids.items()}
        self.separator_ids = [known[name] for name in separators]

    def id(self, token: str) -> int:
        return int(self._ids[token])

    def encode_text(self, text: str) -> list[int]:
        return list(self._tokenizer(text_target=text, add_special_tokens=False)["input_ids"])

    def encode_signature(self, signature: str) -> list[int]:
        return [*(self._ids[token] for token in self.signature.split(signature)), *self.separator_ids]

    def decode_text(self, ids: Iterable[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def read_signature(self, ids: Sequence[int]) -> str | None:
        try:
            return self.signature.join([self._name_of.get(number, "") for number in ids])
        except SignatureError:
            return None


def add_signature_tokens(model: Any, tokenizer: Any, tokens: SignatureTokens, separator: str = "") -> int:
    """Add the tokens that write signatures to a model and its tokenizer before fine-tuning; returns how many."""
    added: int = tokenizer.add_tokens([*tokens.names(), *([separator] if separator else [])], special_tokens=True)
    model.resize_token_embeddings(max(len(tokenizer), model.config.vocab_size))
    return added


def _reader(tokenizer: Any) -> Reader:
    """Reads whole sources: the user has to know how much the model can take."""

    def read(text: str) -> list[int]:
        return list(tokenizer(text)["input_ids"])

    pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    return Reader(read, lambda text: False, read(""), pad, [])


def _start_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """The ids before every target: the decoder's start token, and what the tokenizer puts in front of a text.

    BART's tokenizer begins each text with <s>, so the model's targets did too; T5's and Marian's do not.
    """
    config = model.generation_config
    named = (config.decoder_start_token_id, config.bos_token_id, model.config.decoder_start_token_id)
    start = next((number for number in named if number is not None), None)
    if start is None:
        raise Cod3sError(
            "the model does not say which token its decoder starts with",
            hint="set model.generation_config.decoder_start_token_id",
        )
    lead = takewhile(lambda number: number != tokenizer.eos_token_id, tokenizer(text_target="")["input_ids"])
    return (int(start), *lead)
