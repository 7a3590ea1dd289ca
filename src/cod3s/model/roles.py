"""The roles: what a model scores. `cod3s.train.tasks` says how a pair is written for each.

The paper trains a model per role; a tag tells a shared model its role.

| role | models |
|---|---|
| plain | p(target given source) |
| signature | p(signature given source) |
| sentence | p(signature + target given source) |
| inverse | p(source given signature): the encoder reads nothing |
| verdict | p(yes given source and target): a language model writes yes or no after the end of a plain answer |
"""

from collections.abc import Iterable, Mapping

ROLES = ("plain", "signature", "sentence", "inverse")
VERDICT = "verdict"
"""It has no tag: the model that plays `plain` gives verdicts, too, if it has learned to."""


def tag(relation: str, role: str) -> str:
    """The first decoder token: it tells a shared model which relation and role to play."""
    return f"<{relation}:{role}>"


def all_tags(roles: Mapping[str, Iterable[str]]) -> list[str]:
    """The tags of every relation and its roles, in the order that decides their ids."""
    return [tag(relation, role) for relation, names in roles.items() for role in names if role != VERDICT]


def models_of_roles(layout: str, relations: Iterable[str], roles: Iterable[str]) -> dict[str, dict[str, str]]:
    """The name of the model that plays each relation's roles: one for everything, or one for each role."""
    return {
        relation: {
            role: "shared" if layout == "shared" else f"{relation}-{role}" for role in roles if role != VERDICT
        }
        for relation in relations
    }
