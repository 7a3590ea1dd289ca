"""Names for raters that say nothing about them: raters in, stable pseudonyms out.

The same rater has the same pseudonym in every export and report of a study. It is made of the id that the store
drew by lot, which no export shows, so a name or a Prolific id cannot be tried out against it.
Simulated raters are named so, wherever their ratings go.
"""

import hashlib
from collections.abc import Iterable

from cod3s.judge.study.study import Rater, Study

SIMULATED = "simulated"
"""The origin of simulated raters, and how their pseudonyms begin."""


def pseudonyms(study: Study, raters: Iterable[Rater]) -> dict[str, str]:
    """The pseudonym of every rater, by id."""
    return {rater.id: _pseudonym(study, rater) for rater in raters}


def is_simulated(name: str) -> bool:
    """Whether this is the pseudonym of a simulated rater."""
    return name.startswith(f"{SIMULATED}-")


def _pseudonym(study: Study, rater: Rater) -> str:
    digest = hashlib.sha256(f"{study.id} {rater.id}".encode()).hexdigest()[:10]
    return f"{SIMULATED if rater.origin == SIMULATED else 'r'}-{digest}"
