"""What a selection returns: the chosen candidates, and which of the others each of them stands for."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cod3s.records import ResultSet
from cod3s.selection.duplicates import Distinct
from cod3s.selection.remarks import remarks_on_distinct, unknown_language
from cod3s.signatures import to_text, unpack


@dataclass(frozen=True)
class Selected:
    """A chosen candidate: its position in the list, and the positions of those it stands for."""

    text: str
    signature: str
    score: float | None
    index: int
    duplicates: tuple[int, ...]  # not chosen, and about the same; the most similar chosen candidate has them
    similarities: tuple[float, ...] = ()  # the cosine of each duplicate; empty if only signatures were kept
    group: Any = None  # the value in the column that `by` names


@dataclass(frozen=True)
class Leak:
    """A candidate that was left out because a text in `against` says the same."""

    index: int
    other: int  # position in `against`
    similarity: float


@dataclass(frozen=True, repr=False)
class Selection(ResultSet[Selected]):
    """The chosen candidates, best first; the record of `select --json`."""

    k: int | None  # as requested (per group); fewer are selected if there are fewer candidates
    method: str  # the method that ran: never `auto`
    selected: tuple[Selected, ...]
    settings: dict[str, str | int | float | bool]
    blank: tuple[int, ...] = ()  # candidates with nothing visible in them: never selected
    remarks: tuple[str, ...] = ()

    _items = "selected"

    @property
    def indices(self) -> list[int]:
        """The positions of the chosen candidates, in the order of the selection."""
        return [candidate.index for candidate in self.selected]

    def _title(self) -> str:
        return f"{len(self)} by {self.method}"


@dataclass(frozen=True, repr=False)
class TableSelection(Selection):
    """A selection from a table; `table` has the chosen rows, with their type and columns."""

    table: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, selection: Selection, table: Any) -> "TableSelection":
        """The selection with the table's chosen rows."""
        fields = {name: getattr(selection, name) for name in Selection.__dataclass_fields__}
        return cls(**fields, table=table)

    def to_dict(self) -> dict[str, Any]:
        record = asdict(replace(self, table=None))
        del record["table"]
        return record


@dataclass(frozen=True, repr=False)
class Deduplicated(Selection):
    """The result of threshold mode: the candidates without near duplicates; `k` is None."""

    leaks: tuple[Leak, ...] = ()
    distinct: Distinct | None = field(default=None, compare=False)

    @classmethod
    def of(cls, distinct: Distinct) -> "Deduplicated":
        """The result as records."""
        source, duplicates = distinct.source, distinct.dropped.by_owner()
        signatures = to_text(unpack(distinct.packed, source.code.bits))
        selected = []
        for position, signature in zip(distinct.kept.tolist(), signatures, strict=True):
            pairs = duplicates.get(position, [])
            score = None if distinct.scores is None else float(distinct.scores[position])
            positions, similarities = (tuple(values) for values in zip(*pairs, strict=True)) if pairs else ((), ())
            selected.append(Selected(source.texts[position], signature, score, position, positions, similarities))
        return cls(
            k=None,
            method="threshold",
            selected=tuple(selected),
            settings={
                "encoder": source.name,
                "threshold": distinct.threshold,
                "bits": source.code.bits,
                "seed": distinct.seed,
            },
            blank=tuple(distinct.blank.tolist()),
            remarks=(*remarks_on_distinct(distinct), *unknown_language(source)),
            leaks=leaks_of(distinct),
            distinct=distinct,
        )

    def to_dict(self) -> dict[str, Any]:
        record = asdict(replace(self, distinct=None))
        del record["distinct"]
        return record

    def rethreshold(self, threshold: float) -> "Deduplicated":
        """The same with a higher threshold, without another pass over the candidates.

        Kept candidates stay. A duplicate that is no longer similar enough to any of them is kept too, unless it is
        a duplicate of another one that is kept again; only those are encoded once more. Leaks stay left out.
        """
        assert self.distinct is not None, "only slices for display are made without it"
        return Deduplicated.of(self.distinct.raised(threshold))


def leaks_of(distinct: Distinct) -> tuple[Leak, ...]:
    """The leaks as records."""
    leaks = distinct.leaks
    return tuple(
        Leak(position, other, round(similarity, 4))
        for position, other, similarity in zip(
            leaks.positions.tolist(), leaks.owners.tolist(), leaks.similarity.tolist(), strict=True
        )
    )
