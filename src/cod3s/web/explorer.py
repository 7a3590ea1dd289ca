"""The work behind the explorer's routes: answer, select, show bins and maps."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from threading import Lock

from cod3s import __version__
from cod3s.bins import BinMap, open_bins
from cod3s.bundle import bins_path
from cod3s.decode.generator import Generator
from cod3s.decode.systems import LISTED_SYSTEMS, find_system
from cod3s.encode import Encoder, load_encoder
from cod3s.encode.static import StaticEncoder
from cod3s.errors import BundleError
from cod3s.records import Answer, AnswerSet, Bin, Event
from cod3s.selection import Selection, select
from cod3s.signatures import from_text, load_code
from cod3s.signatures.signer import embed
from cod3s.unsuitable import presentable
from cod3s.web.limits import Limits
from cod3s.web.replies import BinReply, Info, MapReply, Relation
from cod3s.web.requests import GenerateRequest, SelectRequest

NEIGHBORS = 12  # of a bin
LIKE = 0.4  # cosine by `static`: below it, an answer and the medoid of its bin have little to do with each other


class Explorer:
    """A bundle and what clients may ask of it; safe to share between threads. Encoders open when needed."""

    def __init__(self, generator: Generator, limits: Limits) -> None:
        self._generator, self._limits = generator, limits
        self._maps: dict[str, BinMap] = {}
        self._drawing = Lock()

    def warm_up(self) -> None:
        """Open the engines and draw the maps."""
        quick = self._generator.defaults.with_values(k=1, beam=1, signature_beam=1, max_tokens=1)
        for relation in self._generator.facts.models:
            self._generator.generate("it rained", relation, options=quick)
            with suppress(BundleError):  # a client that asks for the map of a relation without bins gets the error
                self._map_of(relation)

    def answer(
        self, request: GenerateRequest, *, group: int | None = None, stages: bool = False
    ) -> Iterator[Event]:
        """The answers as they are made, `group` bins at a time; the last is the whole set."""
        find_system(request.system).require_undecided(request.model_fields_set)
        yield from self._generator.stream(
            request.text,
            request.relation,
            system=request.system,
            options=request.options(),
            signatures=self._requested_bins(request),
            group=group,
            stages=stages,
        )

    def answer_all(self, requests: Sequence[GenerateRequest]) -> list[AnswerSet]:
        """The same sets for several requests whose `settings_key` is equal, decoded in one batch."""
        first = requests[0]
        sources = [(request.text, self._requested_bins(request)) for request in requests]
        sets = self._generator.generate_many(
            sources, first.relation, system=first.system, options=first.options(), batch=len(sources)
        )
        return list(sets)

    def settings_key(self, request: GenerateRequest) -> Hashable:
        """Equal for requests that can be decoded in one batch and then get the answers that they get alone.

        Samples depend on what else is drawn, so the key of a request for them equals no other.
        """
        system = find_system(request.system)
        system.require_undecided(request.model_fields_set)
        options = system.configure(request.options())
        if options.search == "sample":
            return object()
        chooses_bins = request.signatures is not None or request.like is not None
        return request.relation, request.system, options, chooses_bins

    def caption(self, answer: Answer) -> str:
        """The medoid of the answer's bin, or "" if it repeats the answer or is unlike it.

        The model follows its signature only roughly, so an answer can be unlike the other sentences of its bin.
        """
        if not answer.medoid or answer.medoid.casefold() == answer.text.casefold():
            return ""
        text, medoid = embed(self._static, [answer.text, answer.medoid])
        return answer.medoid if text @ medoid >= LIKE else ""

    def select(self, request: SelectRequest) -> Iterator[Selection]:
        """The candidates that mean different things, as a single step."""
        yield select(request.candidates, request.k, method=request.method, encoder=self._static)

    def bin(self, signature: str, relation: str) -> BinReply:
        """One bin, which may be empty, and the populated bins nearest to it."""
        bin_map = self._map_of(relation)
        from_text(signature, self._generator.facts.bits)
        with open_bins(bins_path(self._generator.folder, relation)) as bins:
            bin = bins.get(signature) or Bin(signature, count=0, medoid="", samples=())
        samples, neighbors = tuple(filter(presentable, bin.samples)), tuple(bin_map.near(signature, NEIGHBORS))
        return BinReply(signature, relation, bin.count, presentable(bin.medoid), samples, neighbors)

    def map(self, relation: str, limit: int) -> MapReply:
        """The largest bins, up to `limit`, and where they are."""
        return MapReply(relation, tuple(self._map_of(relation).bins[:limit]))

    @cached_property
    def info(self) -> Info:
        """The bundle's facts, and what clients may ask for."""
        facts = self._generator.facts
        return Info(
            name=facts.name,
            version=__version__,
            bits=facts.bits,
            encoder=facts.encoder,
            critic=bool(facts.critic),
            relations=tuple(
                Relation(name, facts.relations[name]["template"], facts.relations[name].get("inverse", ""))
                for name in facts.models
            ),
            systems=LISTED_SYSTEMS,
            limits=asdict(self._limits),
            decoding=asdict(self._generator.defaults),
        )

    def _requested_bins(self, request: GenerateRequest) -> list[str] | None:
        like = self._generator.signer.signatures([request.like]) if request.like else []
        return [*(request.signatures or []), *like] or None

    def _map_of(self, relation: str) -> BinMap:
        """The relation's map, drawn once."""
        self._generator.require_relation(relation)  # so no other name becomes part of a path
        facts, folder = self._generator.facts, self._generator.folder
        with self._drawing:
            if relation not in self._maps:
                if not bins_path(folder, relation).is_file():
                    raise BundleError(
                        f"the bundle {facts.name} has no bins for {relation!r}", hint="export it with bins"
                    )
                code, _ = load_code(folder / "code")
                with open_bins(bins_path(folder, relation)) as bins:
                    self._maps[relation] = BinMap(bins, code)
            return self._maps[relation]

    @cached_property
    def _static(self) -> Encoder:
        """The encoder of the base install; it is not opened twice for a bundle that signs with it."""
        if self._generator.facts.encoder == StaticEncoder.id:
            return self._generator.encoder
        return load_encoder("static")
