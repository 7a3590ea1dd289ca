"""Offer `generate`, `select`, `diversify` and `sign` as Model Context Protocol tools. Needs the extra `mcp`.

Sizes are limited, because an agent may send anything: a call that asks for more gets an error with the limit.
Replies have what an agent reads, and with `detail` the whole record.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import cache, partial, wraps
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

import cod3s
from cod3s.errors import Cod3sError, require

MOST_ANSWERS = 30
MOST_CANDIDATES = 2000
MOST_SENTENCES = 200
MOST_COMPARED = 50  # sentences; the number of pairs grows with the square
MOST_CALLS = 40  # of a model, for one prompt
MOST_CHARACTERS = 2000  # of a text
MOST_CHARACTERS_OF_PROMPT = 20_000

Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Count = Annotated[int, Field(ge=1, le=MOST_ANSWERS, description="How many answers.")]
Detail = Annotated[bool, Field(description="Reply with the whole record.")]
Record = dict[str, Any]


def make_server(bundle: Path | None = None, writer: Any = None) -> Any:
    """An MCP server with the tools; the bundle is opened at the first `generate`.

    `diversify` asks `writer`, a CompletionServer; without one, it is not offered.
    """
    sdk = require("mcp.server.mcpserver", "mcp")
    exceptions = require("mcp.server.mcpserver.exceptions", "mcp")
    threads = require("anyio.to_thread", "mcp")
    server = sdk.MCPServer(
        "cod3s",
        version=cod3s.__version__,
        instructions="Answers that mean different things: write effects or causes of a sentence, select from "
        "candidates, ask a model until its answers differ, or compare sentences by their signatures.",
    )

    @cache
    def generator() -> Any:
        return cod3s.load(bundle)

    def generate(
        source: Annotated[str, Field(max_length=MOST_CHARACTERS, description="A sentence, such as a cause.")],
        relation: Annotated[str, Field(description="`effect`: what follows; `cause`: what led to it.")] = "effect",
        k: Count = 5,
        detail: Detail = False,
    ) -> Record:
        """Write k effects or causes of a sentence that mean different things."""
        record = asdict(generator().generate(source, relation=relation, k=k))
        return record if detail else _brief(record, "answers", ("text", "score"), plausible=True)

    def select(
        candidates: Annotated[list[Text], Field(max_length=MOST_CANDIDATES, description="Texts, best first.")],
        k: Annotated[int, Field(ge=1, le=MOST_CANDIDATES, description="How many to keep.")] = 5,
        scores: Annotated[
            list[float] | None,
            Field(max_length=MOST_CANDIDATES, description="One per candidate; higher is better."),
        ] = None,
        detail: Detail = False,
    ) -> Record:
        """Keep k of the candidates so that they mean different things; `index` is the place among them."""
        record: Record = cod3s.select(candidates, k, scores=scores).to_dict()
        return record if detail else _brief(record, "selected", ("index", "text"))

    async def diversify(
        prompt: Annotated[str, Field(max_length=MOST_CHARACTERS_OF_PROMPT, description="What to ask the model.")],
        k: Count = 5,
        strategy: Annotated[str, Field(description="auto, resample, avoid, verbalized, persona …")] = "auto",
        unlike: Annotated[
            list[Text] | None, Field(max_length=MOST_CANDIDATES, description="Earlier answers to keep away from.")
        ] = None,
        detail: Detail = False,
    ) -> Record:
        """Ask a language model until k of its answers mean different things."""
        result = await cod3s.diversify_async(
            writer, prompt, k, strategy=strategy, budget=MOST_CALLS, unlike=unlike or ()
        )
        record: Record = result.to_dict()
        if detail:
            return record
        return {**_brief(record["selection"], "selected", ("text", "score")), "stopped": result.stopped}

    def sign(
        sentences: Annotated[list[Text], Field(min_length=1, max_length=MOST_SENTENCES)],
        bits: Annotated[int, Field(ge=1, le=256, description="Bits per signature.")] = 128,
        detail: Detail = False,
    ) -> Record:
        """Sign sentences; for up to 50 of them, also report how far apart each pair is, in bits and by cosine."""
        with_pairs = len(sentences) <= MOST_COMPARED
        record = asdict(cod3s.sign(sentences, encoder="static", bits=bits, with_pairs=with_pairs))
        if detail:
            return record
        pairs = [
            {name: pair[name] for name in ("a", "b", "hamming")} | {"cosine": round(pair["cosine"], 2)}
            for pair in record["pairs"]
        ]
        return {"signatures": [row["signature"] for row in record["sentences"]], "pairs": pairs}

    def explained(tool: Callable[..., Any]) -> Callable[..., Awaitable[Record]]:
        @wraps(tool)
        async def call(**arguments: Any) -> Record:
            try:
                if inspect.iscoroutinefunction(tool):
                    record: Record = await tool(**arguments)
                else:
                    record = await threads.run_sync(partial(tool, **arguments))
            except Cod3sError as error:
                raise exceptions.ToolError(error.message + (f" ({error.hint})" if error.hint else "")) from error
            return record

        return call

    tools: list[Callable[..., Any]] = [generate, select, sign]
    for tool in [*tools, diversify] if writer is not None else tools:
        server.tool()(explained(tool))
    return server


def _brief(record: Record, items: str, fields: tuple[str, ...], *, plausible: bool = False) -> Record:
    """The items with these fields, as far as they have a value, and the remarks if there are any."""
    rows = []
    for item in record[items]:
        row = {name: item[name] for name in fields if item[name] is not None}
        if plausible and item.get("plausibility") is not None:
            row["score"] = item["plausibility"]
        rows.append(row | ({"score": round(row["score"], 2)} if "score" in row else {}))
    remarks = [*filter(None, [record.get("remark")]), *record.get("remarks", ())]
    return {items: rows, **({"remarks": remarks} if remarks else {})}
