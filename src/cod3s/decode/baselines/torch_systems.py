"""The systems that run on torch weights: `dbs` and `dpc`. Sources in, up to k answers each out.

`dbs` is diverse beam search with one group an answer. `dpc` is the baseline of Li et al. 2020: it looks up words
that targets of the source are likely to hold, and searches once a word for a text that holds one of its forms.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from cod3s.decode.baselines.word_graph import RelatedWord, open_word_graph
from cod3s.decode.config import DecodeConfig
from cod3s.decode.players import Players
from cod3s.decode.rerank import mean_log_prob
from cod3s.errors import require
from cod3s.model.reader import open_reader
from cod3s.model.shape import SHAPES
from cod3s.records import Answer, Hypothesis
from cod3s.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from cod3s.decode.baselines.torch_search import TorchModel

_SPARE_WORDS = 2  # times k: looked up, for when a word's text is one that another word's search has found
_INSIDE_A_WORD = re.compile(r"[\w'’]")


class TorchSystems:
    """The systems of one bundle; a model is opened when it is first asked for, and kept."""

    def __init__(self, folder: Path, players: Players) -> None:
        self._folder, self._players = folder, players
        self._models: dict[str, TorchModel] = {}

    def write(
        self, system: str, relation: str, sources: Sequence[str], config: DecodeConfig
    ) -> list[list[Answer]]:
        """Up to k answers of `dbs` or `dpc` to each source, in the form that models read."""
        require("torch", "train")
        require("transformers", "train")
        return (self._diverse if system == "dbs" else self._constrained)(relation, sources, config)

    def _diverse(self, relation: str, sources: Sequence[str], config: DecodeConfig) -> list[list[Answer]]:
        """The baseline's beam in k groups: as many hypotheses as `s2s` has, spent on being different."""
        from cod3s.decode.baselines.torch_search import diverse_beam_search

        player = self._players.plain(relation)
        found = diverse_beam_search(
            self._model(relation),
            [player.request(source) for source in sources],
            groups=config.k,
            group_beam=max(1, config.baseline_beam // config.k),
            penalty=config.diversity_penalty,
            best=max(config.baseline_beam, config.k),
            max_tokens=config.max_tokens,
        )
        answers = [_Answers(self._players.vocabulary) for _ in sources]
        for own, hypotheses in zip(answers, found, strict=True):
            for one in hypotheses:
                own.add(one)
        return [own.first(config.k) for own in answers]

    def _constrained(self, relation: str, sources: Sequence[str], config: DecodeConfig) -> list[list[Answer]]:
        """One search for each of the strongest words; further words make up for texts that came twice."""
        words = self._related_words(relation, sources, (1 + _SPARE_WORDS) * config.k)
        answers = [_Answers(self._players.vocabulary) for _ in sources]
        while tasks := [
            (place, word) for place, own in enumerate(words) for word in _take(own, config.k - len(answers[place]))
        ]:
            found = self._search(relation, [(sources[place], word) for place, word in tasks], config)
            for (place, word), best in zip(tasks, found, strict=True):
                for one in best:
                    answers[place].add(one, word.base)
        return [own.first(config.k) for own in answers]

    def _related_words(self, relation: str, sources: Sequence[str], number: int) -> list[list[RelatedWord]]:
        graph = open_word_graph(self._folder / "words" / f"{relation}.sqlite")
        try:
            return [graph.related(source, number) for source in sources]
        finally:
            graph.close()

    def _search(
        self, relation: str, tasks: Sequence[tuple[str, RelatedWord]], config: DecodeConfig
    ) -> list[list[Hypothesis]]:
        """The best text of each source that holds a form of its word."""
        from cod3s.decode.baselines.torch_search import constrained_beam_search

        player, vocabulary = self._players.plain(relation), self._players.vocabulary
        return constrained_beam_search(
            self._model(relation),
            [player.request(source) for source, _ in tasks],
            [[[vocabulary.encode_text(form) for form in word.forms]] for _, word in tasks],
            beam=config.baseline_beam,
            best=1,
            max_tokens=config.max_tokens,
            boundaries=self._boundaries,
        )

    @cached_property
    def _boundaries(self) -> list[bool]:
        """Which tokens cannot go on with the word before them."""
        return [_INSIDE_A_WORD.match(token) is None for token in self._players.vocabulary.tokens]

    def _model(self, relation: str) -> "TorchModel":
        from cod3s.decode.baselines.torch_search import open_torch_model

        facts, vocabulary = self._players.facts, self._players.vocabulary
        name = facts.models[relation]["plain"]
        if name not in self._models:
            reader = open_reader(SHAPES[facts.shape], vocabulary, self._folder / "source.json")
            self._models[name] = open_torch_model(self._folder, name, reader=reader, vocabulary=vocabulary)
        return self._models[name]


class _Answers:
    """The answers to one source, each text once, in the order in which they came."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._by_text: dict[str, Answer] = {}

    def __len__(self) -> int:
        return len(self._by_text)

    def add(self, one: Hypothesis, constraint: str = "") -> None:
        text = self._vocabulary.decode_text(one.tokens).strip()
        if text:
            score = mean_log_prob(one)
            self._by_text.setdefault(text.casefold(), Answer(text, score, score, constraint=constraint))

    def first(self, k: int) -> list[Answer]:
        return list(self._by_text.values())[:k]


def _take(queue: list[RelatedWord], number: int) -> list[RelatedWord]:
    """The next words of the queue, which they leave."""
    taken = queue[:number]
    del queue[:number]
    return taken
