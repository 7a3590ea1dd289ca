"""The relations: which side of a pair is the source, which is the target, and which pairs teach them."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter

from cod3s.errors import UsageError

ORDERS = ("because", "so", "")
"""How a pair was worded: "X because Y", "X, so Y", or unknown."""


@dataclass(frozen=True)
class Relation:
    """A direction of generation: its name, the completed statement, and where its pairs come from.

    A pair has a first and a second side: the cause and the effect, or the source and the target of any other
    relation. `reverse` says that the second side is the source. `columns` are the names that the two sides
    may have in a file, in order of preference.
    """

    name: str
    template: str
    columns: tuple[tuple[str, str], ...]
    reverse: bool = False
    order: str = ""  # the order whose pairs train it; empty: any
    inverse: str = ""


EFFECT = Relation(
    name="effect",
    template="{source}, so {target}",
    columns=(("cause", "effect"), ("source", "target")),
    order="so",
    inverse="cause",
)
CAUSE = Relation(
    name="cause",
    template="{source} because {target}",
    columns=(("cause", "effect"), ("target", "source")),
    reverse=True,
    order="because",
    inverse="effect",
)
TEMPLATES = {relation.name: relation.template for relation in (EFFECT, CAUSE)}


def find_relations(name: str, template: str = "") -> list[Relation]:
    """The relations of `effect`, `cause` or `both`, or a custom relation with its template."""
    relations = [relation for relation in (EFFECT, CAUSE) if name in (relation.name, "both")]
    if not relations:
        return [_custom_relation(name, template)]
    if template:
        raise UsageError(f"the relation {name!r} has its own template", hint="leave out --template")
    return relations


def columns_of(relations: Sequence[Relation]) -> tuple[tuple[str, str], ...]:
    """The column names that serve all of `relations`.

    For `both`, only cause and effect do: source and target do not say which of them is the cause.
    """
    first, *others = relations
    return tuple(pair for pair in first.columns if all(pair in other.columns for other in others))


def _custom_relation(name: str, template: str) -> Relation:
    if not name.isidentifier() or not name.isascii():
        raise UsageError(
            f"{name!r} cannot be the name of a relation",
            hint="use letters, digits and _, such as `reply` or `caption`",
        )
    if not template:
        raise UsageError(
            f"the relation {name!r} needs a template",
            hint='for example --template "{source} {target}"; effect, cause and both are built in',
        )
    try:
        fields = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
    except ValueError as error:
        raise UsageError(f"the template {template!r} cannot be read: {error}") from error
    if sorted(fields) != ["source", "target"]:
        raise UsageError(
            f"the template {template!r} needs {{source}} and {{target}}, once each, and no other field"
        )
    return Relation(name, template, columns=(("source", "target"),))
