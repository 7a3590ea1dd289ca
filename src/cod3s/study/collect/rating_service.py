"""What raters can do: join, read a statement, rate it, continue where they stopped.

Raters see statements at positions 1, 2, 3 … of their order, and never a system, a kind or the id of an item.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from cod3s.errors import Cod3sError
from cod3s.study.collect.assignment import assignment_of
from cod3s.study.collect.rating_store import AssignedItem, Store
from cod3s.study.plan.folder import Item, Rater, Rating, Study
from cod3s.study.plan.identities import as_text, new_id, new_token, timestamp, token_hash
from cod3s.text import clean
from cod3s.web.error_replies import RefusedError

PAGE, PROLIFIC = "page", "prolific"
_RETURN_LINK = "https://app.prolific.com/submissions/complete?cc={code}"


@dataclass(frozen=True)
class Shown:
    """A statement as its rater sees it."""

    place: int
    statement: str
    score: int | None
    given: str  # the time of assignment: a statement left open for long is taken back and may be replaced


@dataclass(frozen=True)
class Ending:
    """What a rater gets at the end; the link leads back to Prolific, and is empty for others."""

    code: str
    link: str


@dataclass(frozen=True)
class Standing:
    """A rater's progress. `current` is the statement to rate next; at the end, it is None and `ending` is set."""

    name: str
    rated: int
    total: int
    current: Shown | None
    ending: Ending | None


class RatingService:
    """The study as its raters see it; safe to share between threads."""

    def __init__(self, study: Study, items: Sequence[Item], store: Store) -> None:
        self.study = study
        self.assignment = assignment_of(study, items)
        self._statements = {item.id: item.statement for item in items}
        self._store = store

    def join(self, name: str) -> str:
        """Admit someone by name, and return the token of their link. Joining twice makes two raters."""
        return self._admit(Rater(new_id(), PAGE, timestamp(), name=clean(name)))

    def join_from_prolific(self, participant: str, session: str) -> str:
        """Admit a participant from Prolific, who stays the same rater however often they come."""
        return self._admit(Rater(new_id(), PROLIFIC, timestamp(), external=participant, session=session))

    def rater(self, token: str) -> Rater | None:
        """The rater to whom the token belongs."""
        return self._store.rater_of(token_hash(token))

    def standing(self, rater: Rater) -> Standing:
        """The progress of `rater`; assigns the next statement if they have rated all so far and there are more."""
        return self._continue(rater, None)

    def show(self, rater: Rater, position: int) -> Shown:
        """The statement at a position that the rater has reached, with the score they gave."""
        return self._shown(self._at(rater, position))

    def rate(
        self, rater: Rater, position: int, score: int, seconds: float, key: str, assigned_at: str = ""
    ) -> Standing:
        """Save a score and continue; when this returns, it is on the disk. A `key` sent again changes nothing.

        `assigned_at` is the `given` of the statement that was shown: if another has replaced it, nothing is saved.
        """
        if score not in range(len(self.study.scale)):
            raise Cod3sError(f"the score {score} is not on the scale from 0 to {len(self.study.scale) - 1}")
        assigned = self._at(rater, position)
        if assigned_at and assigned_at != assigned.at:
            raise RefusedError(
                409,
                "this statement was open for too long and went to someone else",
                hint="rate the statement that is shown now",
            )
        return self._continue(rater, Rating(rater.id, assigned.item, score, seconds, timestamp(), key=key))

    def _admit(self, rater: Rater) -> str:
        token = new_token()
        self._store.admit(rater, token_hash(token))
        return token

    def _continue(self, rater: Rater, after: Rating | None) -> Standing:
        def choose(assigned: Sequence[str], load: Mapping[str, int]) -> str | None:
            # A rater who has received the code is done, even if an item has become free since.
            return None if rater.finished else self.assignment.next(rater.id, assigned, load)

        free_before = as_text(datetime.now(timezone.utc) - timedelta(minutes=self.study.claim_minutes))
        current = self._store.assign_next(rater.id, choose, free_before=free_before, after=after)
        assigned = self._store.assigned(rater.id)
        rated = sum(item.score is not None for item in assigned)
        if current is not None:
            return Standing(rater.name, rated, self.assignment.total, self._shown(current), None)
        if not rater.finished:
            self._store.finish(rater.id)
        code = self.study.completion_code
        link = _RETURN_LINK.format(code=code) if rater.origin == PROLIFIC else ""
        return Standing(rater.name, rated, len(assigned), None, Ending(code, link))

    def _at(self, rater: Rater, position: int) -> AssignedItem:
        assigned = self._store.assigned(rater.id)
        if not 1 <= position <= len(assigned):
            raise RefusedError(
                404, f"statement {position} has not been reached", hint="rate those before it first"
            )
        return assigned[position - 1]

    def _shown(self, assigned: AssignedItem) -> Shown:
        return Shown(assigned.position, self._statements[assigned.item], assigned.score, assigned.at)
