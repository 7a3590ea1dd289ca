"""Who plays which role: an opened bundle's engines, found by relation and role. Names in, engines out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cod3s.bundle import BundleFacts, open_vocabulary, read_facts, require_files
from cod3s.errors import BundleError, UsageError, did_you_mean
from cod3s.model.causal_engine import CausalEngine
from cod3s.model.engine import COMPUTE, Engine, FastEngine, Request
from cod3s.model.memory import RememberingEngine
from cod3s.model.reader import Reader, open_reader
from cod3s.model.roles import tag
from cod3s.model.shape import SHAPES
from cod3s.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Player:
    """An engine and the tag that makes it play one role of one relation."""

    engine: Engine
    tag: int

    def request(self, source: str | None, given: Sequence[int] = ()) -> Request:
        """Read `source`; write on after `given`."""
        return Request(source, (self.tag, *given))


class Players:
    """The players of a bundle; an engine is opened when its first role is asked for."""

    def __init__(self, facts: BundleFacts, vocabulary: Vocabulary, open_engine: Callable[[str], Engine]) -> None:
        self.facts, self.vocabulary = facts, vocabulary
        self._open_engine = open_engine
        self._engines: dict[str, Engine] = {}

    def require_relation(self, relation: str) -> None:
        """An error that names the nearest relation unless the bundle has this one."""
        if relation not in self.facts.models:
            raise UsageError(
                f"the bundle {self.facts.name} has no relation {relation!r}",
                hint=did_you_mean(relation, self.facts.models),
            )

    def plain(self, relation: str) -> Player:
        """p(target given source)."""
        return self._need(relation, "plain")

    def sentence(self, relation: str) -> Player:
        """p(signature + target given source)."""
        return self._need(relation, "sentence")

    def signature(self, relation: str) -> Player:
        """p(signature given source): a role of its own, or else the beginning of what `sentence` writes."""
        return self._find(relation, "signature") or self._need(relation, "sentence")

    def inverse(self, relation: str) -> Player | None:
        """p(source given signature), which MMI ranks signatures by."""
        return self._find(relation, "inverse")

    def backward(self, relation: str) -> Player | None:
        """p(source given target), which MMI ranks sentences by: the plain role of the inverse relation."""
        return self._find(self.facts.relations[relation].get("inverse", ""), "plain")

    def _find(self, relation: str, role: str) -> Player | None:
        name = self.facts.models.get(relation, {}).get(role)
        if name is None:
            return None
        if name not in self._engines:
            self._engines[name] = self._open_engine(name)
        return Player(self._engines[name], self.vocabulary.id(tag(relation, role)))

    def _need(self, relation: str, role: str) -> Player:
        self.require_relation(relation)
        if player := self._find(relation, role):
            return player
        raise BundleError(
            f"the bundle {self.facts.name} has no model for the role {role!r} of {relation!r}",
            hint=f"train it with --roles {','.join([*self.facts.models[relation], role])}",
        )


def open_players(
    folder: Path, threads: int | None = None, compute: str = COMPUTE, *, remember: int = 0
) -> Players:
    """The players of the bundle in `folder`, which is looked over but not hashed."""
    facts = read_facts(folder)
    require_files(folder, facts)
    if facts.shape not in SHAPES:
        raise BundleError(f"{folder} has the unknown shape {facts.shape!r}", hint="upgrade cod3s")
    shape = SHAPES[facts.shape]
    vocabulary = open_vocabulary(folder / "tokens.model", facts)
    if not shape.causal:
        reader = open_reader(shape, vocabulary, folder / "source.json")

    def open_engine(name: str) -> Engine:
        if shape.causal:
            engine: Engine = CausalEngine(
                folder / "models" / name,
                _prompt_readers(facts, vocabulary),
                vocabulary,
                positions=shape.max_tokens,
                threads=threads,
                compute=compute,
            )
            return RememberingEngine(engine, remember) if remember else engine
        engine = FastEngine(
            folder / "models" / name,
            reader,
            vocabulary,
            positions=shape.max_tokens,
            threads=threads,
            compute=compute,
        )
        return RememberingEngine(engine, remember) if remember else engine

    return Players(facts, vocabulary, open_engine)


def _prompt_readers(facts: BundleFacts, vocabulary: Vocabulary) -> dict[int, Reader]:
    """How a language model reads a source, by the tag that follows it."""
    return {
        vocabulary.id(tag(relation, role)): open_reader(
            SHAPES[facts.shape], vocabulary, Path(), facts.relations[relation]["template"]
        )
        for relation, roles in facts.models.items()
        for role in roles
    }
