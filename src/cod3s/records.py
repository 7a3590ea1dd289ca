"""The frozen dataclasses passed between stages, and how a set of results looks in Python and notebooks."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any, Generic, TypeVar, overload

from cod3s.errors import require

_SHOWN = 200  # characters of a source in a title
Item = TypeVar("Item")
Self = TypeVar("Self", bound="ResultSet[Any]")


@dataclass(frozen=True)
class SignedSentence:
    """A sentence, its signature (a string of 0 and 1) and how close its weakest bit is to flipping."""

    text: str
    signature: str
    margin: float  # |cosine| to the nearest hyperplane


@dataclass(frozen=True)
class SentencePair:
    """Two sentences by their index: how far apart in bits, and what that says about their cosine."""

    a: int
    b: int
    hamming: int
    cosine: float
    estimate: float  # cos(pi * hamming / bits), section 3 of the paper


@dataclass(frozen=True)
class Bin:
    """All sentences that share a signature; with fewer bits than the file's, an inner node of the tree."""

    signature: str
    count: int
    medoid: str
    samples: tuple[str, ...]


@dataclass(frozen=True)
class Hypothesis:
    """What an engine wrote or scored after a given prefix: the ids without the end token.

    `log_prob` is the plain sum over `tokens` and, where the text was ended, the end token; `length` counts both.
    `then` is the log-probability of another token after the end, where one was asked for.
    """

    tokens: tuple[int, ...]
    log_prob: float
    length: int
    then: float | None = None


def mean_log_prob(hypothesis: Hypothesis) -> float:
    """The log-probability per token."""
    return hypothesis.log_prob / hypothesis.length


@dataclass(frozen=True)
class ChosenSignature:
    """A signature to write in, and why stage 1 chose it: scores are None if nothing computed them."""

    signature: str
    rank: int | None = None  # before the Hamming rule, from 0; None if it was not inferred
    score: float | None = None  # what it was ranked by
    forward: float | None = None
    backward: float | None = None
    count: int = 0  # training sentences in its bin
    medoid: str = ""


@dataclass(frozen=True)
class Answer:
    """One generated sentence; `signature` and what follows it are empty for systems without signatures."""

    text: str
    score: float
    forward: float
    backward: float | None = None
    signature: str = ""
    signature_rank: int | None = None
    signature_score: float | None = None
    signature_forward: float | None = None
    signature_backward: float | None = None
    count: int = 0
    medoid: str = ""
    realised: str = ""  # the signature that the text actually has, if an encoder signed it
    hamming: int | None = None  # between `signature` and `realised`
    constraint: str = ""  # the word that the text must contain in some form (`dpc`)
    plausibility: float | None = None  # by the bundle's critic, from 0 to 1


@dataclass(frozen=True)
class StageStarted:
    """An event of a stream, if its stages were asked for: what is done next, and in how many bins."""

    name: str  # choosing bins, writing, choosing answers
    bins: int = 0  # 0 before they are chosen, and for systems without bins

    def __str__(self) -> str:
        places = f" in {self.bins} bin{'s' if self.bins > 1 else ''}" if self.bins else ""
        return f"{self.name}{places}"


@dataclass(frozen=True)
class SignaturesChosen:
    """An event of a stream: the bins that the next answers come from, in their order."""

    signatures: tuple[ChosenSignature, ...]


@dataclass(frozen=True)
class AnswerMade:
    """An event of a stream: another answer, and its place in the set that the stream ends with."""

    place: int
    answer: Answer


class ResultSet(Generic[Item]):
    """The base of all sets of results: dataclasses with a tuple of items, in the field that `_items` names.

    An item is a dataclass with a `text`, and maybe a `signature`, which the notebook view draws.
    """

    _items = "items"

    def __iter__(self) -> Iterator[Item]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self: Self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> Any:
        """One item, or with a slice the same set with fewer of them."""
        if isinstance(index, slice):
            return self._with(self._all()[index])
        return self._all()[index]

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of each item."""
        return tuple(str(item.text) for item in self._all())  # type: ignore[attr-defined]

    def to_dict(self) -> dict[str, Any]:
        """The record that `--json` prints."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def to_json(self, indent: int | None = None) -> str:
        """The same as text; on a single line unless `indent` is given."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def to_pandas(self) -> Any:
        """A DataFrame with a row per item and a column per field; needs pandas."""
        pandas = require("pandas", "pandas")
        return pandas.DataFrame([asdict(item) for item in self._all()])  # type: ignore[call-overload]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.texts[:3])) + (", …" if len(self) > 3 else "")
        return f"{type(self).__name__}({self._title()}: [{shown}])"

    def _repr_html_(self) -> str:
        """The notebook view: each text next to its signature, drawn as a bar with a dark cell per 1."""
        head = f"<tr><th>#</th><th>text</th><th>{self.figure_name}</th><th>signature</th></tr>"
        rows = "".join(_html_row(number, item) for number, item in enumerate(self._all(), 1))
        return f"<table><caption>{escape(self._title())}</caption>{head}{rows}</table>"

    @property
    def figure_name(self) -> str:
        """What `figure_of` gives for these items, as the heading of a column."""
        judged = any(getattr(item, "plausibility", None) is not None for item in self._all())
        return "critic" if judged else "score"

    def _title(self) -> str:
        return f"{len(self)} item{'' if len(self) == 1 else 's'}"

    def _all(self) -> Sequence[Item]:
        items: Sequence[Item] = getattr(self, self._items)
        return items

    def _with(self, items: Sequence[Item]) -> Any:
        """The same set with other items."""
        return replace(self, **{self._items: items})  # type: ignore[type-var]


def _html_row(number: int, item: Any) -> str:
    cell = '<td style="text-align:left">{}</td>'
    medoid = f"{item.signature}: {medoid}" if (medoid := getattr(item, "medoid", "")) else item.signature
    bits = "".join(
        f'<span style="display:inline-block;width:5px;height:12px;background:{"#246" if bit == "1" else "#cde"}">'
        "</span>"
        for bit in item.signature
    )
    bar = f'<span title="{escape(medoid)}">{bits}</span>'
    return f"<tr><td>{number}</td>{''.join(map(cell.format, (escape(item.text), figure_of(item), bar)))}</tr>"


def figure_of(item: Any) -> str:
    """What tables show beside an item's text: the critic's probability or, without a critic, the score."""
    if (plausibility := getattr(item, "plausibility", None)) is not None:
        return f"{plausibility:.2f}"
    return "" if (score := getattr(item, "score", None)) is None else f"{score:.3f}"


@dataclass(frozen=True, repr=False)
class AnswerSet(ResultSet[Answer]):
    """The answers to a source, best first; the record of `generate --json`.

    Also the last event of a stream.
    """

    _items = "answers"

    source: str
    relation: str
    system: str
    settings: dict[str, str | int | float | bool | None]
    answers: tuple[Answer, ...]
    remarks: tuple[str, ...] = ()  # what a reader should know: a relaxed threshold, a cut source

    def _title(self) -> str:
        noun = "answer" if len(self) == 1 else "answers"
        source = self.source if len(self.source) <= _SHOWN else f"{self.source[:_SHOWN]}…"
        return f"{len(self)} {noun}, {self.relation} of {source!r}, by {self.system}"


Event = StageStarted | SignaturesChosen | AnswerMade | AnswerSet
"""What a stream of answers consists of."""
