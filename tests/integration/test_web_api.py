"""The JSON API on a real server: the reply of each route, and how each wrong request is refused."""

import json
import logging
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from cod3s.bins import open_bins
from cod3s.decode.config import DecodeConfig
from cod3s.decode.generator import Generator, load
from cod3s.decode.systems import LISTED_SYSTEMS
from cod3s.errors import Cod3sError
from cod3s.io.disk import read_json, write_json
from cod3s.records import Answer
from cod3s.selection import select
from cod3s.web.app import create_app
from cod3s.web.explorer import Explorer
from cod3s.web.guard import HEADERS
from cod3s.web.limits import Limits
from tiny_bundle import SOURCES, TinyBundle
from web_server import serving

QUICK = {"k": 3, "signature_beam": 20, "beam": 6, "samples": 6, "max_tokens": 12, "baseline_beam": 6}
QUESTION = {"text": SOURCES[0], "relation": "effect", **QUICK}
LIMITS = Limits(text=80, k=12, beams=50, candidates=20, body=4096)


@pytest.fixture(scope="module")
def generator(tiny_bundle: TinyBundle) -> Generator:
    return load(tiny_bundle.exact)


@pytest.fixture(scope="module")
def client(generator: Generator) -> Iterator[httpx.Client]:
    with (
        serving(create_app(generator, LIMITS)) as address,
        httpx.Client(base_url=address, timeout=60, trust_env=False) as client,
    ):
        yield client


def close(actual: Any, expected: Any) -> bool:
    """Equal JSON but for the rounding of numbers."""
    if isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(close(actual[name], expected[name]) for name in expected)
    if isinstance(expected, list | tuple):
        return len(actual) == len(expected) and all(close(a, b) for a, b in zip(actual, expected, strict=True))
    return bool(actual == (pytest.approx(expected, abs=1e-3) if isinstance(expected, float) else expected))


def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in response.text.splitlines()]


# Answers

OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({}, "the defaults"),
    ({"per_bin": 2, "min_hamming": 1, "sentence_weight": 0.8}, "options by their names"),
    ({"search": "sample", "seed": 7, "temperature": 2}, "samples of a seed; a whole number is a number"),
    ({"k": 2.0}, "a number that is whole, however it is written"),
    ({"check": True, "bin_fit": "rerank"}, "answers with their own signatures"),
    ({"system": "s2s"}, "plain beam search"),
    ({"system": "cod3s-exact-beam-no-hamming"}, "a system by name"),
]


def test_generate_gives_the_record_of_the_library(client: httpx.Client, generator: Generator) -> None:
    for options, why in OPTIONS:
        values = {name: value for name, value in {**QUICK, **options}.items() if name != "system"}
        values["k"] = int(values["k"])
        system = options.get("system", "cod3s")
        expected = generator.generate(SOURCES[0], "effect", system=system, options=DecodeConfig(**values))
        reply = client.post("/api/generate", json={**QUESTION, **options})
        assert reply.status_code == 200, why
        assert close(reply.json(), json.loads(json.dumps(asdict(expected)))), why


def test_a_stream_names_stages_and_signatures_then_answers_then_the_record(client: httpx.Client) -> None:
    reply = client.post("/api/stream", json=QUESTION)
    assert reply.headers["content-type"] == "application/x-ndjson"
    stages = [event["name"] for event in events_of(reply) if event["event"] == "stage"]
    assert "writing" in stages
    first, *answers, last = [event for event in events_of(reply) if event["event"] != "stage"]
    assert first["event"] == "signatures"
    assert {"signature", "rank", "count", "medoid"} <= set(first["signatures"][0])
    assert [(event["event"], event["place"]) for event in answers] == [("answer", place) for place in range(3)]
    assert last["event"] == "done"
    assert [event["answer"] for event in answers] == last["record"]["answers"]
    assert close(last["record"], client.post("/api/generate", json=QUESTION).json())


CAPTIONS = [
    ("nobody slept well", "I didn't get enough sleep", True, "much the same"),
    ("she had to leave the shop early", "he has to leave", True, "alike"),
    ("the cinema closed", "he was hit by a piece of wood", False, "nothing in common but the bits"),
    ("the phone went silent", "he was hurt by the blow", False, "in the very bin, and still unlike"),
    ("It rained.", "it rained.", False, "the answer itself"),
    ("it rained", "", False, "an empty bin, or a medoid that is not shown"),
]


def test_an_answer_has_a_caption_only_if_its_bin_is_like_it(client: httpx.Client, generator: Generator) -> None:
    explorer = Explorer(generator, LIMITS)
    for text, medoid, shown, why in CAPTIONS:
        answer = Answer(text, score=-1.0, forward=-1.0, signature="0101", count=3, medoid=medoid)
        assert explorer.caption(answer) == (medoid if shown else ""), why
    for event in events_of(client.post("/api/stream", json={**QUESTION, "k": 12, "min_hamming": 0})):
        if event["event"] == "answer":
            assert event["caption"] == explorer.caption(Answer(**event["answer"]))


def test_bins_can_be_requested(client: httpx.Client, generator: Generator) -> None:
    bins, like = ["01001110", "11110000"], "the baker slept in the garden at home"
    for request, expected in (({"signatures": bins}, bins), ({"like": like}, generator.signer.signatures([like]))):
        record = client.post("/api/generate", json={**QUESTION, **request}).json()
        assert [answer["signature"] for answer in record["answers"]] == expected


def test_a_record_without_answers_is_a_record(client: httpx.Client) -> None:
    """A filter that lets nothing pass but the very bin, and one text each: some bins stay empty."""
    strict = {**QUESTION, "bin_fit": "filter", "bin_fit_within": 0, "beam": 1, "per_bin": 1}
    replies = [
        client.post("/api/generate", json={**strict, "signatures": [f"{n:08b}"]}) for n in range(0, 256, 37)
    ]
    assert {reply.status_code for reply in replies} == {200}
    empty = [reply.json() for reply in replies if not reply.json()["answers"]]
    assert "had no sentence" in empty[0]["remarks"][0]


def test_a_seed_gives_the_same_answers_in_whatever_company(client: httpx.Client) -> None:
    """Samples and beams of many clients at once, in batches and alone, in any order: as each gets them alone."""
    seeds = [{"search": "sample", "seed": seed, "text": text} for seed in (1, 2) for text in SOURCES]
    requests = [{**QUESTION, **more} for more in [*seeds, *({"text": text} for text in SOURCES)]]

    def texts(request: dict[str, Any]) -> list[str]:
        return [answer["text"] for answer in client.post("/api/generate", json=request).json()["answers"]]

    alone = [texts(request) for request in requests]
    assert alone[0] != alone[len(SOURCES)], "another seed draws other samples"
    for order in (1, -1):
        with ThreadPoolExecutor(len(requests)) as clients:
            assert list(clients.map(texts, requests[::order]))[::order] == alone


def test_an_option_that_needs_a_missing_encoder_is_refused(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_bundle.small, tmp_path / "bundle"))
    facts = read_json(folder / "bundle.json")
    write_json(folder / "bundle.json", {**facts, "encoder": "fast:another@00000000"})
    with serving(create_app(load(folder), LIMITS)) as address:
        reply = httpx.post(f"{address}/api/generate", json={**QUESTION, "check": True}, timeout=60)
        status, message = refusal(reply)
        assert status in (422, 501)
        assert "encoder" in message or "not installed" in message


# Facts


def test_a_bin_shows_its_contents_and_the_nearest_bins(client: httpx.Client, tiny_bundle: TinyBundle) -> None:
    with open_bins(tiny_bundle.exact / "bins" / "effect.sqlite") as bins:
        stored = {bin.signature: bin for bin in bins.bins()}
    largest = max(stored.values(), key=lambda bin: bin.count)
    reply = client.get(f"/api/bins/{largest.signature}", params={"relation": "effect"}).json()
    assert (reply["count"], reply["medoid"], reply["samples"]) == (
        largest.count,
        largest.medoid,
        [*largest.samples],
    )
    bits = {name: sum(a != b for a, b in zip(name, largest.signature, strict=True)) for name in stored}
    distances = [bin["hamming"] for bin in reply["neighbors"]]
    assert distances == sorted(bits.values())[1 : len(distances) + 1]
    assert all(stored[bin["signature"]].count == bin["count"] for bin in reply["neighbors"])
    empty = next(f"{number:08b}" for number in range(256) if f"{number:08b}" not in stored)
    reply = client.get(f"/api/bins/{empty}?relation=effect").json()
    assert (reply["count"], reply["medoid"], reply["samples"], len(reply["neighbors"])) == (0, "", [], 12)


def test_the_map_has_the_largest_bins_and_does_not_change(client: httpx.Client) -> None:
    whole = client.get("/api/map?relation=cause").json()["bins"]
    assert all(0 <= bin["x"] <= 1 and 0 <= bin["y"] <= 1 for bin in whole)
    assert [bin["count"] for bin in whole] == sorted((bin["count"] for bin in whole), reverse=True)
    assert len({(bin["x"], bin["y"]) for bin in whole}) > len(whole) / 2
    assert client.get("/api/map?relation=cause&limit=5").json()["bins"] == whole[:5]


def test_select_gives_the_record_of_the_library(client: httpx.Client) -> None:
    drafts = ["the road was icy", "the street was icy", "he was in a hurry", "nobody slept"]
    for method in ("signatures", "mmr"):
        reply = client.post("/api/select", json={"candidates": drafts, "k": 2, "method": method}).json()
        assert close(reply, json.loads(json.dumps(asdict(select(drafts, 2, method=method)))))
    reply = client.post("/api/select", json={"candidates": ["\x00", " ", "it rained"], "k": 3}).json()
    assert ([row["text"] for row in reply["selected"]], reply["blank"]) == (["it rained"], [0, 1])


def test_info_lists_what_clients_may_ask_for(client: httpx.Client) -> None:
    info = client.get("/api/info").json()
    assert (info["bits"], info["critic"], info["limits"]["text"]) == (8, False, LIMITS.text)
    assert {row["name"]: row["template"] for row in info["relations"]}["effect"] == "{source}, so {target}"
    assert info["systems"] == [*LISTED_SYSTEMS]
    assert client.get("/healthz").json() == {"status": "ok", "requests": 0}
    reply = client.post("/api/generate", json={**QUESTION, "k": 1, "system": "cod3s-exact-rs-no-hamming-fresh"})
    assert reply.json()["system"] == "cod3s-exact-rs-no-hamming-fresh"


def test_defaults_and_descriptions_keep_the_limits_too(client: httpx.Client) -> None:
    """100 signatures and 1,000 answers, as on the command line, are more than this server allows."""
    record = client.post("/api/generate", json={"text": SOURCES[0], "relation": "effect"}).json()
    assert (record["settings"]["signature_beam"], record["settings"]["k"]) == (LIMITS.beams, 10)
    body = client.get("/openapi.json").json()["paths"]["/api/generate"]["post"]["requestBody"]
    fields = body["content"]["application/json"]["schema"]["properties"]
    assert (fields["k"]["maximum"], fields["signature_beam"]["default"]) == (LIMITS.k, LIMITS.beams)
    assert "1000" not in fields["k"]["description"]
    assert not [name for name, field in fields.items() if "--" in field.get("description", "")]


# How wrong requests are refused


def refusal(reply: httpx.Response) -> tuple[int, str]:
    """The status and the message of an error, which has one shape whatever its reason."""
    body = reply.json()
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"message", "hint"}
    assert body["error"]["message"]
    return reply.status_code, body["error"]["message"]


WRONG_QUESTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"text": "x" * 81}, "at most 80", "longer than a sentence"),
    ({"text": ""}, "at least 1", "nothing to answer"),
    ({"text": " \t\n"}, "empty", "nothing visible"),
    ({"text": "\x00\x07\x1b"}, "empty", "control characters alone"),
    ({"text": None}, "text", "no text at all"),
    ({"text": ["x"]}, "text", "a list"),
    ({"relation": "efect"}, "relation", "no such relation"),
    ({"relation": "../../etc/passwd"}, "relation", "a path"),
    ({"k": 13}, "12", "more answers than allowed"),
    ({"k": 0}, "k", "no answer"),
    ({"k": "3"}, "k", "a number as text"),
    ({"k": 2.5}, "k", "half an answer"),
    ({"k": True}, "k", "a truth value"),
    ({"beam": 51}, "50", "a beam wider than allowed"),
    ({"samples": 51}, "50", "more samples than allowed"),
    ({"signature_beam": 51}, "50", "more signatures than allowed"),
    ({"baseline_beam": 10**9}, "50", "a beam that would fill the memory"),
    ({"per_bin": 51}, "50", "more answers of a bin than allowed"),
    ({"max_tokens": 61}, "60", "longer answers than allowed"),
    ({"min_hamming": 9}, "8", "more bits than a signature has"),
    ({"temperature": 0}, "temperature", "division by zero"),
    ({"seed": -1}, "seed", "below zero"),
    ({"seed": 2**40}, "seed", "more than the engine takes"),
    ({"search": "depth"}, "search", "no such search"),
    ({"system": "dbs"}, "system", "a system on torch weights"),
    ({"system": "cod3s-mmi-mni"}, "did you mean 'cod3s-mmi-mmi'?", "a misspelt system"),
    ({"system": "/etc/passwd"}, "system", "a path"),
    ({"system": "s2s", "search": "sample"}, "decides search", "an option that the name decides"),
    ({"system": "cod3s-oracle-beam"}, "signature", "an oracle without signatures"),
    ({"signatures": ["0101"]}, "signatures", "a signature of another length"),
    ({"signatures": ["0101012x"]}, "signatures", "no signature"),
    ({"signatures": ["01010101"] * 13}, "12", "more bins than answers allowed"),
    ({"signatures": []}, "signatures", "no bins"),
    ({"like": "x" * 81}, "80", "longer than a sentence"),
    ({"bundle": "/etc"}, "bundle", "a field that is none"),
]
WRONG_SELECTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"candidates": []}, "at least 1", "nothing to choose from"),
    ({"candidates": ["x"] * 21}, "at most 20", "more than allowed"),
    ({"candidates": ["x" * 81]}, "at most 80", "a long one"),
    ({"candidates": [1]}, "candidates", "no text"),
    ({"method": "best"}, "method", "no such method"),
    ({"k": 13}, "12", "more than allowed"),
    ({"encoder": "fast:/etc"}, "encoder", "a field that is none"),
]


@pytest.mark.parametrize("route", ["generate", "stream", "select"])
def test_wrong_values_are_refused(route: str, client: httpx.Client) -> None:
    right = {"candidates": ["a", "b"], "k": 1} if route == "select" else QUESTION
    for wrong, message, why in WRONG_SELECTIONS if route == "select" else WRONG_QUESTIONS:
        if route == "stream" and "oracle" in why:
            continue  # noticed after the first stage has begun: a line of the stream says so
        status, told = refusal(client.post(f"/api/{route}", json={**right, **wrong}))
        assert status == 422, why
        assert message in told, why


WRONG_BODIES: list[tuple[bytes, int, str]] = [
    (b"", 422, "nothing"),
    (b"{", 422, "half of an object"),
    (b"null", 422, "no object"),
    (b"[1, 2]", 422, "a list"),
    (b"\xff\xfe\x00", 422, "no text"),
    (b'{"text": "\\ud800", "relation": "effect"}', 422, "half of a character"),
    (b"[" * 4000, 422, "deeper than a parser should follow"),
    (b'{"a":' * 800, 422, "deep objects"),
    (b'{"text": "x", "relation": "effect", "k": NaN}', 422, "no JSON number"),
    (b'{"text": "' + b"x" * 5000 + b'"}', 413, "more bytes than allowed"),
    (b"x" * 10_000_000, 413, "ten megabytes"),
]


def test_wrong_bodies_are_refused(client: httpx.Client) -> None:
    for body, status, why in WRONG_BODIES:
        reply = client.post("/api/generate", content=body, headers={"Content-Type": "application/json"})
        assert refusal(reply)[0] == status, why
    chunks = (b" " * 1000 for _ in range(20))  # without a Content-Length, the bytes are counted as they come
    reply = client.post("/api/generate", content=chunks, headers={"Content-Type": "application/json"})
    assert refusal(reply)[0] == 413
    for kind in ("text/plain", "application/x-www-form-urlencoded"):  # which any page may send without asking
        reply = client.post("/api/generate", content=json.dumps(QUESTION), headers={"Content-Type": kind})
        assert refusal(reply)[0] == 415


WRONG_ADDRESSES = [
    ("GET", "/api/bins/0101?relation=effect", 422, "a signature of another length"),
    ("GET", "/api/bins/..%2f..%2f..%2fetc?relation=effect", 404, "a path for a signature"),
    ("GET", "/api/bins/%00%00%00%00?relation=effect", 422, "null bytes"),
    ("GET", "/api/bins/01010101", 422, "no relation"),
    ("GET", "/api/bins/01010101?relation=../effect", 422, "a path for a relation"),
    ("GET", "/api/map?relation=efect", 422, "no such relation"),
    ("GET", "/api/map?relation=effect&limit=0", 422, "no bins"),
    ("GET", "/api/map?relation=effect&limit=x", 422, "no number"),
    ("GET", "/static/../app.py", 404, "a path upward"),
    ("GET", "/static/..%2fapp.py", 404, "the same, written otherwise"),
    ("GET", "/static/%2e%2e%2fapp.py", 404, "the same, written otherwise again"),
    ("GET", "/static//etc/passwd", 404, "a path from the root"),
    ("GET", "/static/index.html%00.js", 404, "a null byte"),
    ("GET", "/static/", 404, "a folder"),
    ("GET", "/docs/redoc.standalone.js", 404, "a file that is not listed"),
    ("GET", "/nothing", 404, "no such route"),
    ("GET", "/api/generate", 405, "a question is posted"),
    ("DELETE", "/api/info", 405, "nothing can be deleted"),
    ("POST", "/", 405, "a page is not posted to"),
]


def test_wrong_addresses_are_refused(client: httpx.Client) -> None:
    for method, address, status, why in WRONG_ADDRESSES:
        reply = client.request(method, httpx.URL(str(client.base_url).rstrip("/") + address))
        assert refusal(reply)[0] == status, why
        assert status != 405 or "Allow" in reply.headers, why


def test_odd_texts_are_answered(client: httpx.Client) -> None:
    odd = [
        "<img src=x onerror=alert(1)>",
        "the\x00baker\tlost\r\nit",
        "🥐" * 80,
        "面包师丢了钥匙",
        "'; DROP TABLE bins; --",
    ]
    for text in odd:
        reply = client.post("/api/generate", json={**QUESTION, "text": text})
        assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
        assert len(reply.json()["answers"]) >= 1


# Pages, headers, log


def test_every_reply_has_the_headers_that_keep_a_browser_safe(client: httpx.Client) -> None:
    for address in ("/", "/api/info", "/docs", "/docs/swagger-ui.css", "/openapi.json", "/nothing"):
        headers = client.get(address).headers
        expected = {name: text for name, text in HEADERS.items() if (address, name) != ("/docs", _POLICY)}
        assert {name: headers[name] for name in expected} == expected
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


_POLICY = "Content-Security-Policy"


def test_the_page_about_the_api_runs_only_what_it_was_sent_with(client: httpx.Client) -> None:
    reply = client.get("/docs")
    assert "script-src 'self' 'sha256-" in reply.headers[_POLICY]
    assert "http" not in reply.text
    for name in ("swagger-ui.css", "swagger-ui-bundle.js"):
        assert f"/docs/{name}" in reply.text
        assert client.get(f"/docs/{name}").status_code == 200


def test_pages_have_their_types_and_answer_to_head(client: httpx.Client) -> None:
    for address, kind in (("/", "text/html"), ("/static/explorer.js", "text/javascript"), ("/docs", "text/html")):
        reply, head = client.get(address), client.head(address)
        assert reply.headers["content-type"].startswith(kind)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(reply.content))


def test_other_origins_may_call_only_if_they_are_named(generator: Generator, client: httpx.Client) -> None:
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in client.options("/api/generate", headers=headers).headers
    with serving(create_app(generator, LIMITS, origins=["https://example.org"])) as address:
        allowed = httpx.options(f"{address}/api/generate", headers=headers)
        assert allowed.headers["access-control-allow-origin"] == "https://example.org"
        other = httpx.get(f"{address}/api/info", headers={"Origin": "https://example.com"})
        assert "access-control-allow-origin" not in other.headers


def test_the_log_does_not_hold_what_users_write(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        client.post("/api/generate", json={**QUESTION, "text": "a secret sentence"})
        client.get("/?text=a+secret+sentence")
        client.get("/a-secret-sentence")
        client.post("/api/generate", json={**QUESTION, "text": "secret " * 50})
    ours = [record.getMessage() for record in caplog.records if record.name == "cod3s.web"]
    assert [line.rsplit(" ", 2)[0] for line in ours] == [
        "POST /api/generate 200",
        "GET / 200",
        "GET (no route) 404",
        "POST /api/generate 422",
    ]
    assert "secret" not in "".join(ours)


def test_limits_of_nothing_make_no_sense() -> None:
    for name in ("text", "k", "beams", "body", "at_once", "seconds"):
        with pytest.raises(Cod3sError, match=name):
            Limits(**{name: 0})
