"""Offer `generate`, `select` and `sign` as Model Context Protocol tools. Needs the extra `mcp`.

Sizes are limited, because an agent may send anything: a call that asks for more gets an error with the limit.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

import cod3s
from cod3s.errors import Cod3sError, require

MOST_ANSWERS = 30
MOST_CANDIDATES = 2000
MOST_SENTENCES = 200
MOST_COMPARED = 50  # sentences; the number of pairs grows with the square
MOST_CHARACTERS = 2000  # of a text

Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]


def make_server(bundle: Path | None = None) -> Any:
    """An MCP server with the three tools; the bundle is opened at the first `generate`."""
    sdk = require("mcp.server.mcpserver", "mcp")
    exceptions = require("mcp.server.mcpserver.exceptions", "mcp")
    server = sdk.MCPServer(
        "cod3s",
        version=cod3s.__version__,
        instructions="Answers that mean different things: generate them, select them from candidates, or compare "
        "sentences by their signatures.",
    )

    @cache
    def generator() -> Any:
        return cod3s.load(bundle)

    def generate(
        source: Annotated[str, Field(max_length=MOST_CHARACTERS, description="A sentence, such as a cause.")],
        relation: Annotated[str, Field(description="`effect`: what follows; `cause`: what led to it.")] = "effect",
        k: Annotated[int, Field(ge=1, le=MOST_ANSWERS, description="How many answers.")] = 5,
    ) -> dict[str, Any]:
        """Write k effects or causes of a sentence that mean different things."""
        return asdict(generator().generate(source, relation=relation, k=k))

    def select(
        candidates: Annotated[list[Text], Field(max_length=MOST_CANDIDATES, description="Texts, best first.")],
        k: Annotated[int, Field(ge=1, le=MOST_CANDIDATES, description="How many to keep.")] = 5,
        scores: Annotated[
            list[float] | None,
            Field(max_length=MOST_CANDIDATES, description="One per candidate; higher is better."),
        ] = None,
    ) -> dict[str, Any]:
        """Keep k of the candidates so that they mean different things."""
        return cod3s.select(candidates, k, scores=scores).to_dict()

    def sign(
        sentences: Annotated[list[Text], Field(min_length=1, max_length=MOST_SENTENCES)],
        bits: Annotated[int, Field(ge=1, le=256, description="Bits per signature.")] = 128,
    ) -> dict[str, Any]:
        """Sign sentences; for up to 50 of them, also report how far apart each pair is."""
        with_pairs = len(sentences) <= MOST_COMPARED
        return asdict(cod3s.sign(sentences, encoder="static", bits=bits, with_pairs=with_pairs))

    def explained(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        @wraps(tool)
        def call(**arguments: Any) -> dict[str, Any]:
            try:
                return tool(**arguments)
            except Cod3sError as error:
                raise exceptions.ToolError(error.message + (f" ({error.hint})" if error.hint else "")) from error

        return call

    for tool in (generate, select, sign):
        server.tool()(explained(tool))
    return server
