"""`cod3s mcp`, tested over stdin and stdout with the client of the official SDK."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conftest import ROOT

sdk = pytest.importorskip("mcp")


def talk(conversation: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        parameters = sdk.StdioServerParameters(
            command=sys.executable,
            args=["-m", "cod3s", "mcp"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        async with sdk.Client(parameters) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(run(), 240))


def test_the_tools_are_listed_with_their_limits() -> None:
    tools = {tool.name: tool for tool in talk(lambda client: client.list_tools()).tools}
    assert set(tools) == {"generate", "select", "sign"}
    assert all(tool.description for tool in tools.values())
    assert tools["select"].input_schema["properties"]["candidates"]["maxItems"] == 2000


def test_tools_give_what_the_library_gives() -> None:
    drafts = ["He called a locksmith.", "he called a locksmith", "She slept in the car.", "It rained."]

    async def conversation(client: Any) -> tuple[Any, Any, Any]:
        return (
            await client.call_tool("select", {"candidates": drafts, "k": 3}),
            await client.call_tool("sign", {"sentences": drafts, "bits": 16}),
            await client.call_tool("generate", {"source": "the power went out", "relation": "effect", "k": 2}),
        )

    selected, signed, generated = talk(conversation)
    assert [chosen["index"] for chosen in selected.structured_content["selected"]] == [0, 2, 3]
    assert [len(row["signature"]) for row in signed.structured_content["sentences"]] == [16] * 4
    assert len(signed.structured_content["pairs"]) == 6
    assert len(generated.structured_content["answers"]) == 2


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("select", {"candidates": ["x"] * 2001, "k": 2}, "2000"),
        ("select", {"candidates": ["x" * 2001], "k": 1}, "2000"),
        ("select", {"candidates": ["x", "y"], "k": 1, "scores": [1.0]}, "1 scores were given for 2"),
        ("sign", {"sentences": ["x"], "bits": 1000}, "256"),
        ("sign", {"sentences": [" "]}, "empty sentence"),
        ("generate", {"source": "it rained", "relation": "weather"}, "weather"),
        ("generate", {"source": "it rained", "k": 1000}, "30"),
    ],
)
def test_what_is_too_large_or_wrong_is_refused(tool: str, arguments: dict[str, Any], message: str) -> None:
    result = talk(lambda client: client.call_tool(tool, arguments))
    assert result.is_error
    assert message in result.content[0].text
