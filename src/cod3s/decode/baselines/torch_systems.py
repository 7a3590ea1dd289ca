"""The baseline `dpc` of Li et al. 2020, on torch weights.

It looks up words that targets of the source are likely to contain, and searches once per word for a text with any
of its forms.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from cod3s.decode.baselines.word_graph import RelatedWord, open_word_graph
from cod3s.decode.choose import keep_suitable
from cod3s.decode.config import DecodeConfig
from cod3s.decode.rerank import mean_log_prob
from cod3s.errors import BundleError, require_all
from cod3s.model.reader import open_reader
from cod3s.model.shape import SHAPES
from cod3s.models import BundleModels
from cod3s.records import Answer, Hypothesis
from cod3s.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from cod3s.decode.baselines.torch_model import TorchModel

_SPARE_WORDS = 2  # times k: looked up in case two searches find the same text
_INSIDE_A_WORD = re.compile(r"[\w'’]")


class TorchSystems:
    """The systems of a bundle; a model is opened when it is first asked for, and kept."""

    def __init__(self, models: BundleModels) -> None:
        self._models = models
        self._torch_models: dict[str, TorchModel] = {}

    def write(self, relation: str, sources: Sequence[str], config: DecodeConfig) -> list[list[Answer]]:
        """The answers of `dpc` to sources in the form that models read, preferred ones first."""
        facts = self._models.facts
        if SHAPES[facts.shape].causal:  # checked before an install that would not help
            raise BundleError(
                f"dpc runs on seq2seq models, but the bundle {facts.name} holds a language model",
                hint="choose another system, such as s2s or s2s-rs, or another --bundle (docs/baselines.md)",
            )
        require_all("train", "torch", "transformers")
        return self._constrained(relation, sources, config)

    def _constrained(self, relation: str, sources: Sequence[str], config: DecodeConfig) -> list[list[Answer]]:
        """One search for each of the strongest words; further words make up for repeated texts."""
        words = [iter(row) for row in self._related_words(relation, sources, (1 + _SPARE_WORDS) * config.k)]
        answers = [_Answers(self._models.vocabulary, config, source) for source in sources]
        while tasks := [
            (position, word)
            for position, untried in enumerate(words)
            for word in islice(untried, config.k - answers[position].suitable)
        ]:
            rows = self._search(relation, [(sources[position], word) for position, word in tasks], config)
            for (position, word), hypotheses in zip(tasks, rows, strict=True):
                answers[position].add(hypotheses, word.base)
        return [collected.all() for collected in answers]

    def _related_words(self, relation: str, sources: Sequence[str], number: int) -> list[list[RelatedWord]]:
        graph = open_word_graph(self._models.folder / "words" / f"{relation}.sqlite")
        try:
            return [graph.related(source, number) for source in sources]
        finally:
            graph.close()

    def _search(
        self, relation: str, tasks: Sequence[tuple[str, RelatedWord]], config: DecodeConfig
    ) -> list[list[Hypothesis]]:
        """The best text of each source that contains a form of its word."""
        from cod3s.decode.baselines.constrained import constrained_beam_search

        model, vocabulary = self._models.plain(relation), self._models.vocabulary
        return constrained_beam_search(
            self._model(relation),
            [model.request(source) for source, _ in tasks],
            [[[vocabulary.encode_text(form) for form in word.forms]] for _, word in tasks],
            beam=config.baseline_beam,
            best=1,
            max_tokens=config.max_tokens,
            boundaries=self._boundaries,
        )

    @cached_property
    def _boundaries(self) -> list[bool]:
        """Which tokens cannot continue the word before them."""
        return [_INSIDE_A_WORD.match(token) is None for token in self._models.vocabulary.tokens]

    def _model(self, relation: str) -> "TorchModel":
        from cod3s.decode.baselines.torch_model import open_torch_model

        facts, vocabulary = self._models.facts, self._models.vocabulary
        name = facts.models[relation]["plain"]
        if name not in self._torch_models:
            reader = open_reader(SHAPES[facts.shape], vocabulary)
            self._torch_models[name] = open_torch_model(
                self._models.folder, name, reader=reader, vocabulary=vocabulary
            )
        return self._torch_models[name]


class _Answers:
    """The answers to a source, each text once, in the order in which they came."""

    def __init__(self, vocabulary: Vocabulary, config: DecodeConfig, source: str) -> None:
        self._vocabulary, self._config, self._source = vocabulary, config, source
        self._by_text: dict[str, Answer] = {}

    @property
    def suitable(self) -> int:
        """How many of the answers may be shown."""
        return len(keep_suitable(self._config, self._source, self.all()))

    def add(self, hypotheses: Sequence[Hypothesis], constraint: str = "") -> None:
        for hypothesis in hypotheses:
            if text := self._vocabulary.decode_text(hypothesis.tokens).strip():
                score = mean_log_prob(hypothesis)
                self._by_text.setdefault(text.casefold(), Answer(text, score, score, constraint=constraint))

    def all(self) -> list[Answer]:
        return list(self._by_text.values())
