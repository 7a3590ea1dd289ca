"""What raters can do: join, see the statement at a place, rate it, go on where they stopped.

Tokens and places in, statements and acknowledgements out. Nothing that leaves here names a system, a kind or an
item's id: raters see statements at places 1, 2, 3 … of their own order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from cod3s.errors import Cod3sError
from cod3s.judge.collect.assignment import assignment_of
from cod3s.judge.collect.store import Given, Store, as_text, timestamp
from cod3s.judge.collect.tokens import new_id, new_token, token_hash
from cod3s.judge.study.study import Item, Rater, Rating, Study
from cod3s.text import clean

PAGE, PROLIFIC = "page", "prolific"
_RETURN_LINK = "https://app.prolific.com/submissions/complete?cc={code}"


class NoSuchPlaceError(Cod3sError):
    """A rater asked for a statement that they have not reached."""


class TakenBackError(Cod3sError):
    """A rating came for a statement that was taken back; another stands at its place."""


@dataclass(frozen=True)
class Shown:
    """A statement as its rater sees it."""

    place: int
    statement: str
    score: int | None
    given: str  # when: a statement left open for long is taken back, and its place may hold another


@dataclass(frozen=True)
class Ending:
    """What a rater gets at the end; the link leads back to Prolific, empty for others."""

    code: str
    link: str


@dataclass(frozen=True)
class Standing:
    """How far a rater is. `current` is the statement to rate next, None at the end, where there is an `ending`."""

    name: str
    rated: int
    total: int
    current: Shown | None
    ending: Ending | None


class Desk:
    """The study as its raters meet it; safe to share between threads."""

    def __init__(self, study: Study, items: Sequence[Item], store: Store) -> None:
        self.study = study
        self.assignment = assignment_of(study, items)
        self._statements = {item.id: item.statement for item in items}
        self._store = store

    def join(self, name: str) -> str:
        """Admit someone by a name; returns the token of their link. The same name twice is two raters."""
        return self._admit(Rater(new_id(), PAGE, timestamp(), name=clean(name)))

    def join_from_prolific(self, participant: str, session: str) -> str:
        """Admit a participant of Prolific, or let them go on: they are one rater however often they come."""
        return self._admit(Rater(new_id(), PROLIFIC, timestamp(), external=participant, session=session))

    def rater(self, token: str) -> Rater | None:
        """Whose link it is."""
        return self._store.rater_of(token_hash(token))

    def standing(self, rater: Rater) -> Standing:
        """Where `rater` is; gives them the next statement if they have rated all so far and there is more."""
        return self._go_on(rater, None)

    def show(self, rater: Rater, place: int) -> Shown:
        """The statement at a place that the rater has reached, with the score they gave."""
        return self._shown(self._at(rater, place))

    def rate(self, rater: Rater, place: int, score: int, seconds: float, key: str, given: str = "") -> Standing:
        """Save a score and go on; when this returns, it is on the disk. A `key` sent again changes nothing.

        `given` is that of the statement that was shown: if another stands there now, nothing is saved.
        """
        if score not in range(len(self.study.scale)):
            raise Cod3sError(f"the score {score} is not on the scale from 0 to {len(self.study.scale) - 1}")
        there = self._at(rater, place)
        if given and given != there.at:
            raise TakenBackError(
                "this statement was open for too long and went to someone else",
                hint="rate the one that is shown now",
            )
        return self._go_on(rater, Rating(rater.id, there.item, score, seconds, timestamp(), key=key))

    def _admit(self, rater: Rater) -> str:
        token = new_token()
        self._store.admit(rater, token_hash(token))
        return token

    def _go_on(self, rater: Rater, after: Rating | None) -> Standing:
        def choose(given: Sequence[str], load: Mapping[str, int]) -> str | None:
            # Who has had the code is done, even if an item has become free since.
            return None if rater.finished else self.assignment.next(rater.id, given, load)

        free_before = as_text(datetime.now(timezone.utc) - timedelta(minutes=self.study.claim_minutes))
        current = self._store.give(rater.id, choose, free_before=free_before, after=after)
        given = self._store.given(rater.id)
        rated = sum(one.score is not None for one in given)
        if current is not None:
            return Standing(rater.name, rated, self.assignment.total, self._shown(current), None)
        if not rater.finished:
            self._store.finish(rater.id)
        return Standing(rater.name, rated, len(given), None, self._ending(rater))

    def _at(self, rater: Rater, place: int) -> Given:
        given = self._store.given(rater.id)
        if not 1 <= place <= len(given):
            raise NoSuchPlaceError(f"statement {place} has not been reached", hint="rate the ones before it first")
        return given[place - 1]

    def _shown(self, given: Given) -> Shown:
        return Shown(given.place, self._statements[given.item], given.score, given.at)

    def _ending(self, rater: Rater) -> Ending:
        code = self.study.completion_code
        return Ending(code, _RETURN_LINK.format(code=code) if rater.origin == PROLIFIC else "")
