"""The relations: what a target is to its source, and which pairs teach them."""

from dataclasses import dataclass
from string import Formatter

from cod3s.errors import UsageError


@dataclass(frozen=True)
class Relation:
    """A direction of generation: its name, the completed statement, and the relation that inverts it."""

    name: str
    template: str
    order: str = ""  # in "X because Y" or "X, so Y": the order whose pairs teach it; empty: any
    inverse: str = ""


EFFECT = Relation(name="effect", template="{source}, so {target}", order="so", inverse="cause")
CAUSE = Relation(name="cause", template="{source} because {target}", order="because", inverse="effect")
TEMPLATES = {relation.name: relation.template for relation in (EFFECT, CAUSE)}


def find_relations(name: str, template: str = "") -> list[Relation]:
    """The relations of `effect`, `cause` or `both`, or a custom relation with its template."""
    relations = [relation for relation in (EFFECT, CAUSE) if name in (relation.name, "both")]
    if not relations:
        return [_custom_relation(name, template)]
    if template:
        raise UsageError(f"the relation {name!r} has its own template", hint="leave out --template")
    return relations


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
    return Relation(name, template)
