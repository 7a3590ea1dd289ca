"""`cod3s mcp`, tested over stdin and stdout with the client of the official SDK."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conftest import ROOT
from tiny_bundle import SOURCES, TinyBundle
from upstreams import TEXTS, Scripted, app_of
from web_server import serving

sdk = pytest.importorskip("mcp")


def talk(conversation: Callable[[Any], Awaitable[Any]], *options: str) -> Any:
    async def run() -> Any:
        parameters = sdk.StdioServerParameters(
            command=sys.executable,
            args=["-m", "cod3s", "mcp", *options],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        async with sdk.Client(parameters) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(run(), 240))


def test_tools_are_listed_and_their_replies_are_brief(tiny_bundle: TinyBundle) -> None:
    drafts = ["He called a locksmith.", "he called a locksmith", "She slept in the car.", "It rained."]

    async def conversation(client: Any) -> list[Any]:
        call = client.call_tool
        return [
            {tool.name: tool for tool in (await client.list_tools()).tools},
            await call("select", {"candidates": drafts, "k": 3}),
            await call("sign", {"sentences": drafts, "bits": 16}),
            await call("generate", {"source": SOURCES[0], "k": 3}),
            await call("generate", {"source": SOURCES[0], "k": 3, "detail": True}),
        ]

    tools, selected, signed, generated, detailed = talk(conversation, "--bundle", str(tiny_bundle.small))
    assert set(tools) == {"generate", "select", "sign"}
    assert all(tool.description for tool in tools.values())
    assert tools["select"].input_schema["properties"]["candidates"]["maxItems"] == 2000
    assert selected.structured_content["selected"] == [{"index": i, "text": drafts[i]} for i in (0, 2, 3)]
    assert [len(signature) for signature in signed.structured_content["signatures"]] == [16] * 4
    assert len(signed.structured_content["pairs"]) == 6
    answers = generated.structured_content["answers"]
    assert [set(answer) for answer in answers] == [{"text", "score"}] * 3
    assert len(generated.content[0].text) < 700, "three answers in less than 700 bytes"
    whole = detailed.structured_content
    assert [answer["text"] for answer in whole["answers"]] == [answer["text"] for answer in answers]
    assert {"source", "relation", "settings"} <= set(whole)


def test_a_model_is_asked_until_its_answers_differ() -> None:
    async def conversation(client: Any) -> Any:
        arguments = {"prompt": "Name a use for a brick.", "k": 3, "unlike": [TEXTS[2]]}
        return await client.call_tool("diversify", arguments)

    with serving(app_of(Scripted())) as address:
        reply = talk(conversation, "--server", address, "--model", "m")
    texts = [answer["text"] for answer in reply.structured_content["selected"]]
    assert len(set(texts)) == 3
    assert TEXTS[2] not in texts
    assert reply.structured_content["stopped"] == "filled"
    assert len(reply.content[0].text) < 700


def test_what_is_too_large_or_wrong_is_refused() -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("select", {"candidates": ["x"] * 2001, "k": 2}, "2000"),
        ("select", {"candidates": ["x" * 2001], "k": 1}, "2000"),
        ("select", {"candidates": ["x", "y"], "k": 1, "scores": [1.0]}, "1 scores were given for 2"),
        ("sign", {"sentences": ["x"], "bits": 1000}, "256"),
        ("sign", {"sentences": [" "]}, "empty sentence"),
        ("generate", {"source": "it rained", "k": 1000}, "30"),
    ]

    async def conversation(client: Any) -> list[Any]:
        return [await client.call_tool(tool, arguments) for tool, arguments, _ in cases]

    for result, (tool, _, message) in zip(talk(conversation), cases, strict=True):
        assert result.is_error, tool
        assert message in result.content[0].text
