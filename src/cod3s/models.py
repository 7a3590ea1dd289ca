"""The models that decoding runs, by relation and role: those of a bundle, or a user's model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Protocol

from cod3s.bins import BinsFile, open_bins
from cod3s.bundle import (
    BundleFacts,
    bins_path,
    model_folder,
    open_vocabulary,
    read_facts,
    require_files,
    require_weights,
)
from cod3s.errors import BundleError, UsageError, did_you_mean
from cod3s.model.causal_engine import CausalEngine
from cod3s.model.engine import COMPUTE, Engine, Request
from cod3s.model.memory import RememberingEngine
from cod3s.model.reader import Reader, open_reader
from cod3s.model.roles import tag
from cod3s.model.seq2seq_engine import Seq2SeqEngine
from cod3s.model.shape import SHAPES
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary

AUTO = "auto"


class Words(Protocol):
    """What decoding needs from a vocabulary; `Vocabulary` provides it, and says what each part does."""

    signature: SignatureTokens

    def id(self, token: str) -> int: ...
    def encode_text(self, text: str) -> list[int]: ...
    def encode_signature(self, signature: str) -> list[int]: ...
    def decode_text(self, ids: Iterable[int]) -> str: ...
    def read_signature(self, ids: Sequence[int]) -> str | None: ...


@dataclass(frozen=True)
class RoleModel:
    """An engine in one role of a relation; its decoder begins with `start`, the role's tag in a bundle."""

    engine: Engine
    words: Words
    start: tuple[int, ...]

    def request(self, source: str | None, prefix: Sequence[int] = ()) -> Request:
        """The request to read `source` and to continue `prefix`."""
        return Request(source, (*self.start, *prefix))

    def score(
        self,
        sources: Sequence[str | None],
        texts: Sequence[str],
        prefixes: Sequence[tuple[int, ...]] | None = None,
        *,
        longest: int | None = None,
        then: int | None = None,
    ) -> list[Hypothesis]:
        """Each text after its source and prefix, in a single call; equal rows are scored once.

        Of a text, at most the `longest` first tokens count; `then` is a token after the end, as for the engine.
        """
        rows = list(zip(sources, prefixes or [()] * len(texts), texts, strict=True))
        distinct = list(dict.fromkeys(rows))
        ids = {text: self.words.encode_text(text)[:longest] for text in dict.fromkeys(texts)}
        requests = [self.request(source, prefix) for source, prefix, _ in distinct]
        scored = self.engine.score(requests, [ids[text] for *_, text in distinct], then=then)
        by_row = dict(zip(distinct, scored, strict=True))
        return [by_row[row] for row in rows]


class Models(ABC):
    """The models of the two stages; those that a set of models may lack are None here."""

    label: str  # the name of these models in messages
    has_encoder: bool  # whether answers can be signed without loading another model; if so, `auto` signs them
    has_critic: bool = False  # whether a critic judges answers; if so, `auto` ranks by it

    @abstractmethod
    def signature(self, relation: str) -> RoleModel:
        """p(signature given source)."""

    @abstractmethod
    def sentence(self, relation: str) -> RoleModel:
        """p(signature + target given source)."""

    def inverse(self, relation: str) -> RoleModel | None:
        """p(source given signature), which MMI ranks signatures by."""
        return None

    def backward(self, relation: str) -> RoleModel | None:
        """p(source given target), which MMI ranks sentences by."""
        return None

    def bins(self, relation: str) -> BinsFile | None:
        """The bins of the training targets, opened."""
        return None

    def need_inverse(self, relation: str) -> RoleModel:
        """The model that MMI ranks signatures by; an error if it is missing."""
        return self._for_mmi(self.inverse(relation), relation, "p(source given signature)", "signatures")

    def need_backward(self, relation: str) -> RoleModel:
        """The model that MMI ranks sentences by; an error if it is missing."""
        return self._for_mmi(self.backward(relation), relation, "p(source given sentence)", "sentences")

    def _for_mmi(self, model: RoleModel | None, relation: str, meaning: str, stage: str) -> RoleModel:
        if model is None:
            raise BundleError(
                f"MMI needs {meaning}, but {self.label} has no model of it for {relation!r}",
                hint=f"choose none for rerank {stage}, or train the inverse relation too",
            )
        return model


class BundleModels(Models):
    """The models of a bundle; an engine is opened when any of its roles is first used."""

    def __init__(
        self,
        folder: Path,
        facts: BundleFacts,
        vocabulary: Vocabulary,
        open_engine: Callable[[str], Engine],
    ) -> None:
        self.folder, self.facts, self.vocabulary = folder, facts, vocabulary
        self.label = f"the bundle {facts.name}"
        self.has_encoder, self.has_critic = bool(facts.own_encoder), bool(facts.critic)
        self._open_engine: Callable[[str], Engine] = cache(open_engine)

    def require_relation(self, relation: str) -> None:
        """Raise an error that suggests the nearest relation, unless the bundle has this relation."""
        if relation not in self.facts.models:
            raise UsageError(
                f"{self.label} has no relation {relation!r}", hint=did_you_mean(relation, self.facts.models)
            )

    def plain(self, relation: str) -> RoleModel:
        """p(target given source)."""
        return self._need(relation, "plain")

    def sentence(self, relation: str) -> RoleModel:
        return self._need(relation, "sentence")

    def signature(self, relation: str) -> RoleModel:
        """p(signature given source): the role `signature`, or else the beginning of what `sentence` writes."""
        return self._find(relation, "signature") or self._need(relation, "sentence")

    def inverse(self, relation: str) -> RoleModel | None:
        return self._find(relation, "inverse")

    def backward(self, relation: str) -> RoleModel | None:
        """p(source given target): the plain role of the inverse relation."""
        return self._find(self.facts.relations[relation].get("inverse", ""), "plain")

    def bins(self, relation: str) -> BinsFile | None:
        """The relation's bins, opened again each time, because an SQLite connection belongs to one thread."""
        path = bins_path(self.folder, relation)
        return open_bins(path) if path.is_file() else None

    def without_memory(self) -> "BundleModels":
        """The same models, which compute everything anew even if a cache was asked for."""

        def open_engine(name: str) -> Engine:
            engine = self._open_engine(name)
            return engine.engine if isinstance(engine, RememberingEngine) else engine

        return BundleModels(self.folder, self.facts, self.vocabulary, open_engine)

    def _find(self, relation: str, role: str) -> RoleModel | None:
        name = self.facts.models.get(relation, {}).get(role)
        if name is None:
            return None
        return RoleModel(self._open_engine(name), self.vocabulary, (self.vocabulary.id(tag(relation, role)),))

    def _need(self, relation: str, role: str) -> RoleModel:
        self.require_relation(relation)
        if model := self._find(relation, role):
            return model
        raise BundleError(
            f"{self.label} has no model for the role {role!r} of {relation!r}",
            hint=f"train it with --roles {','.join([*self.facts.models[relation], role])}",
        )


def open_models(
    folder: Path, threads: int | None = None, compute: str = AUTO, *, cache_size: int = 0
) -> BundleModels:
    """The models of the bundle in `folder`. Its files must be there; weights are checked when they are opened."""
    facts = read_facts(folder)
    require_files(folder, facts)
    if facts.shape not in SHAPES:
        raise BundleError(f"{folder} has the unknown shape {facts.shape!r}", hint="upgrade cod3s")
    shape = SHAPES[facts.shape]
    vocabulary = open_vocabulary(folder / "tokens.model", facts)
    open_model: Callable[..., Engine]
    if shape.causal:
        readers = _prompt_readers(facts, vocabulary)
        open_model = partial(CausalEngine, readers=readers)
    else:
        open_model = partial(Seq2SeqEngine, reader=open_reader(shape, vocabulary))
    if compute == AUTO:
        compute = "int8" if shape.causal else COMPUTE

    def open_engine(name: str) -> Engine:
        require_weights(folder, facts, name)
        engine = open_model(
            folder=model_folder(folder, name),
            vocabulary=vocabulary,
            positions=shape.max_tokens,
            threads=threads,
            compute=compute,
        )
        return RememberingEngine(engine, cache_size) if cache_size else engine

    return BundleModels(folder, facts, vocabulary, open_engine)


def _prompt_readers(facts: BundleFacts, vocabulary: Vocabulary) -> dict[int, Reader]:
    """How a language model reads a source, by the tag that follows it."""
    return {
        vocabulary.id(tag(relation, role)): open_reader(
            SHAPES[facts.shape], vocabulary, facts.relations[relation]["template"]
        )
        for relation, roles in facts.models.items()
        for role in roles
    }
