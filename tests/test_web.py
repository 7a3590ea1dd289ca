"""The JSON API on a real server: what each route gives, and how each wrong request is refused."""

import json
import logging
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest

from cod3s.bins import open_bins
from cod3s.decode.decode_config import DecodeConfig
from cod3s.decode.generator import Generator, load
from cod3s.decode.systems import ENGINE_SYSTEMS
from cod3s.encode import load_encoder
from cod3s.errors import Cod3sError
from cod3s.io.disk import read_json, write_json
from cod3s.records import Answer
from cod3s.selection import select
from cod3s.web.app import create_app
from cod3s.web.explorer import Explorer, caption
from cod3s.web.guard import HEADERS
from cod3s.web.limits import Limits
from tiny_bundle import SOURCES, TinyBundle
from web_server import serving

QUICK = {"k": 3, "signature_beam": 20, "beam": 6, "samples": 6, "max_tokens": 12, "baseline_beam": 6}
ASK = {"text": SOURCES[0], "relation": "effect", **QUICK}
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


def close(found: Any, wanted: Any) -> bool:
    """Equal JSON but for the rounding of numbers."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(close(found[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(close(a, b) for a, b in zip(found, wanted, strict=True))
    return bool(found == (pytest.approx(wanted, abs=1e-3) if isinstance(wanted, float) else wanted))


def test_a_bundle_that_signs_with_static_opens_it_once(generator: Generator) -> None:
    explorer = Explorer(generator, LIMITS)
    assert explorer._static is explorer._encoder is generator.encoder


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in response.text.splitlines()]


# What the routes give

ASKED: list[tuple[dict[str, Any], str]] = [
    ({}, "the defaults"),
    ({"per_bin": 2, "min_hamming": 1, "sentence_weight": 0.8}, "options by their names"),
    ({"search": "sample", "seed": 7, "temperature": 2}, "samples of a seed; a whole number is a number"),
    ({"k": 2.0}, "a number that is whole, however it is written"),
    ({"check": True, "faithful": "rerank"}, "answers with their own signatures"),
    ({"system": "s2s"}, "plain beam search"),
    ({"system": "cod3s-exact-beam-no-hamming"}, "a system by name"),
]


@pytest.mark.parametrize(("more", "why"), ASKED, ids=[why for _, why in ASKED])
def test_generate_gives_the_record_of_the_library(
    more: dict[str, Any], why: str, client: httpx.Client, generator: Generator
) -> None:
    values = {name: value for name, value in {**QUICK, **more}.items() if name != "system"}
    values["k"] = int(values["k"])
    wanted = generator.generate(
        SOURCES[0], "effect", system=more.get("system", "cod3s"), options=DecodeConfig(**values)
    )
    reply = client.post("/api/generate", json={**ASK, **more})
    assert reply.status_code == 200
    assert close(reply.json(), json.loads(json.dumps(asdict(wanted))))


def test_a_stream_tells_signatures_then_answers_then_the_record(client: httpx.Client) -> None:
    reply = client.post("/api/stream", json=ASK)
    assert reply.headers["content-type"] == "application/x-ndjson"
    first, *made, last = lines(reply)
    assert first["event"] == "signatures"
    assert len(first["signatures"]) == 3
    assert {"signature", "rank", "count", "medoid"} <= set(first["signatures"][0])
    assert [(one["event"], one["place"]) for one in made] == [("answer", place) for place in range(3)]
    assert last["event"] == "done"
    assert [one["answer"] for one in made] == last["record"]["answers"]
    assert close(last["record"], client.post("/api/generate", json=ASK).json())


CAPTIONS = [
    ("nobody slept well", "I didn't get enough sleep", True, "much the same"),
    ("she had to leave the shop early", "he has to leave", True, "alike"),
    ("the cinema closed", "he was hit by a piece of wood", False, "nothing in common but the bits"),
    ("the phone went silent", "he was hurt by the blow", False, "in the very bin, and still unlike"),
    ("It rained.", "it rained.", False, "the answer itself"),
    ("it rained", "", False, "an empty bin, or a medoid that is not shown"),
]


@pytest.mark.parametrize(("text", "medoid", "shown", "why"), CAPTIONS, ids=[why for *_, why in CAPTIONS])
def test_an_answer_has_a_caption_only_if_its_bin_is_like_it(text: str, medoid: str, shown: bool, why: str) -> None:
    answer = Answer(text, score=-1.0, forward=-1.0, signature="0101", count=3, medoid=medoid)
    assert caption(answer, load_encoder("static")) == (medoid if shown else "")


def test_a_stream_gives_each_answer_its_caption(client: httpx.Client) -> None:
    _, *made, _ = lines(client.post("/api/stream", json={**ASK, "k": 12, "min_hamming": 0}))
    wanted = [caption(Answer(**one["answer"]), load_encoder("static")) for one in made]
    assert [one["caption"] for one in made] == wanted


def test_bins_can_be_asked_for(client: httpx.Client, generator: Generator) -> None:
    wanted = ["01001110", "11110000"]
    like = "the baker slept in the garden at home"
    record = client.post("/api/generate", json={**ASK, "signatures": wanted}).json()
    assert [one["signature"] for one in record["answers"]] == wanted
    record = client.post("/api/generate", json={**ASK, "like": like}).json()
    assert [one["signature"] for one in record["answers"]] == generator.signer.signatures([like])


def test_a_record_without_answers_is_a_record(client: httpx.Client) -> None:
    """A filter that lets nothing pass but the very bin, and one text each: some bins stay empty."""
    strict = {**ASK, "faithful": "filter", "faithful_within": 0, "beam": 1, "per_bin": 1}
    replies = [
        client.post("/api/generate", json={**strict, "signatures": [f"{n:08b}"]}) for n in range(0, 256, 37)
    ]
    assert {reply.status_code for reply in replies} == {200}
    empty = [reply.json() for reply in replies if not reply.json()["answers"]]
    assert empty
    assert "had no sentence" in empty[0]["remarks"][0]


def test_a_comparison_counts_what_each_says(client: httpx.Client, generator: Generator) -> None:
    found = client.post("/api/compare", json=ASK).json()
    assert [found[name]["system"] for name in ("cod3s", "s2s")] == ["cod3s", "s2s"]
    counts = found["distinct"]
    for name in ("cod3s", "s2s"):
        assert 1 <= counts[name] <= len(found[name]["answers"])
    assert counts["threshold"] == 0.1
    assert counts["encoder"] == generator.facts.encoder


def test_without_the_bundles_encoder_another_compares_and_is_named(
    tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    """As where the extra that brings the encoder is not installed; what needs that one encoder is refused."""
    folder = Path(shutil.copytree(tiny_bundle.small, tmp_path / "bundle"))
    facts = read_json(folder / "bundle.json")
    write_json(folder / "bundle.json", {**facts, "encoder": "fast:another@00000000"})
    with serving(create_app(load(folder), LIMITS)) as address:
        found = httpx.post(f"{address}/api/compare", json=ASK, timeout=60).json()
        assert found["distinct"]["encoder"].startswith("static:")
        status, message = refusal(httpx.post(f"{address}/api/generate", json={**ASK, "check": True}, timeout=60))
        assert status in (422, 501)
        assert "encoder" in message or "not installed" in message


def test_a_bin_shows_what_it_holds_and_what_is_near(client: httpx.Client, tiny_bundle: TinyBundle) -> None:
    with open_bins(tiny_bundle.exact / "bins" / "effect.sqlite") as bins:
        held = {one.signature: one for one in bins.bins()}
    (full,) = [one for one in held.values() if one.count == max(own.count for own in held.values())][:1]
    found = client.get(f"/api/bins/{full.signature}", params={"relation": "effect"}).json()
    assert (found["count"], found["medoid"], found["samples"]) == (full.count, full.medoid, [*full.samples])
    near = found["neighbours"]
    assert [one["hamming"] for one in near] == sorted(one["hamming"] for one in near)
    assert full.signature not in {one["signature"] for one in near}
    bits = {one: sum(a != b for a, b in zip(one, full.signature, strict=True)) for one in held}
    assert sorted(one["hamming"] for one in near) == sorted(bits.values())[1 : len(near) + 1]
    assert all(
        (held[one["signature"]].count, bits[one["signature"]]) == (one["count"], one["hamming"]) for one in near
    )


def test_an_empty_bin_is_shown_as_empty(client: httpx.Client, tiny_bundle: TinyBundle) -> None:
    with open_bins(tiny_bundle.exact / "bins" / "effect.sqlite") as bins:
        held = {one.signature for one in bins.bins()}
    empty = next(f"{number:08b}" for number in range(256) if f"{number:08b}" not in held)
    found = client.get(f"/api/bins/{empty}?relation=effect").json()
    assert (found["count"], found["medoid"], found["samples"]) == (0, "", [])
    assert len(found["neighbours"]) == 12


def test_the_map_holds_the_largest_bins_and_stays_as_it_is(client: httpx.Client) -> None:
    whole = client.get("/api/map?relation=cause").json()["bins"]
    assert all(0 <= one["x"] <= 1 and 0 <= one["y"] <= 1 for one in whole)
    assert [one["count"] for one in whole] == sorted((one["count"] for one in whole), reverse=True)
    assert len({(one["x"], one["y"]) for one in whole}) > len(whole) / 2
    assert client.get("/api/map?relation=cause&limit=5").json()["bins"] == whole[:5]


def test_select_gives_the_record_of_the_library(client: httpx.Client) -> None:
    drafts = ["the road was icy", "the street was icy", "he was in a hurry", "nobody slept"]
    for method in ("signatures", "mmr"):
        found = client.post("/api/select", json={"candidates": drafts, "k": 2, "method": method}).json()
        assert close(found, json.loads(json.dumps(asdict(select(drafts, 2, method=method)))))


def test_info_tells_what_may_be_asked(client: httpx.Client, generator: Generator) -> None:
    info = client.get("/api/info").json()
    assert info["bits"] == 8
    assert {one["name"]: one["template"] for one in info["relations"]}["effect"] == "{source}, so {target}"
    assert info["limits"]["text"] == LIMITS.text
    assert info["decoding"]["k"] == 10
    assert info["critic"] is False
    assert "s2s" in info["systems"]
    assert not {"dbs", "dpc"} & set(info["systems"])
    assert client.get("/healthz").json() == {"status": "ok", "taken": 0}


def test_what_is_not_asked_for_keeps_the_limits_too(client: httpx.Client) -> None:
    """The default of 100 signatures is more than this server allows."""
    record = client.post("/api/generate", json={"text": SOURCES[0], "relation": "effect"}).json()
    assert record["settings"]["signature_beam"] == LIMITS.beams
    assert record["settings"]["k"] == 10


def test_the_api_lists_the_rows_and_answers_to_every_name(client: httpx.Client) -> None:
    listed = client.get("/api/info").json()["systems"]
    assert listed == [*ENGINE_SYSTEMS]
    assert len(listed) < 12
    reply = client.post("/api/generate", json={**ASK, "k": 1, "system": "cod3s-exact-rs-no-hamming-fresh"})
    assert reply.json()["system"] == "cod3s-exact-rs-no-hamming-fresh"


# How wrong requests are refused


def refusal(reply: httpx.Response) -> tuple[int, str]:
    """The status and the message of a refusal, which has one shape whatever its reason."""
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


@pytest.mark.parametrize(
    ("more", "message", "why"), WRONG_QUESTIONS, ids=[f"{[*more][-1]}: {why}" for more, _, why in WRONG_QUESTIONS]
)
@pytest.mark.parametrize("route", ["/api/generate", "/api/stream"])
def test_wrong_questions_are_refused(
    route: str, more: dict[str, Any], message: str, why: str, client: httpx.Client
) -> None:
    status, found = refusal(client.post(route, json={**ASK, **more}))
    assert status == 422
    assert message in found
    assert "Traceback" not in found


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


@pytest.mark.parametrize(("body", "status", "why"), WRONG_BODIES, ids=[why for *_, why in WRONG_BODIES])
def test_wrong_bodies_are_refused(body: bytes, status: int, why: str, client: httpx.Client) -> None:
    reply = client.post("/api/generate", content=body, headers={"Content-Type": "application/json"})
    assert refusal(reply)[0] == status


def test_a_body_in_chunks_is_measured_too(client: httpx.Client) -> None:
    """Without a Content-Length the bytes are counted as they come."""
    chunks = (b" " * 1000 for _ in range(20))
    reply = client.post("/api/generate", content=chunks, headers={"Content-Type": "application/json"})
    assert refusal(reply)[0] == 413


def test_a_body_that_is_not_marked_as_json_is_refused(client: httpx.Client) -> None:
    """A page of another origin may send text or forms without asking, but not this."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        reply = client.post("/api/generate", content=json.dumps(ASK), headers={"Content-Type": kind})
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
    ("GET", "/nothing", 404, "no such route"),
    ("GET", "/api/generate", 405, "a question is posted"),
    ("DELETE", "/api/info", 405, "nothing can be deleted"),
    ("POST", "/", 405, "a page is not posted to"),
]


@pytest.mark.parametrize(
    ("method", "address", "status", "why"),
    WRONG_ADDRESSES,
    ids=[f"{a}: {why}" for _, a, _, why in WRONG_ADDRESSES],
)
def test_wrong_addresses_are_refused(
    method: str, address: str, status: int, why: str, client: httpx.Client
) -> None:
    reply = client.request(method, httpx.URL(str(client.base_url).rstrip("/") + address))
    assert refusal(reply)[0] == status
    if status == 405:
        assert "Allow" in reply.headers


WRONG_SELECTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"candidates": []}, "at least 1", "nothing to choose from"),
    ({"candidates": ["x"] * 21}, "at most 20", "more than allowed"),
    ({"candidates": ["x" * 81]}, "at most 80", "a long one"),
    ({"candidates": [1]}, "candidates", "no text"),
    ({"method": "best"}, "method", "no such method"),
    ({"k": 13}, "12", "more than allowed"),
    ({"encoder": "fast:/etc"}, "encoder", "a field that is none"),
]


@pytest.mark.parametrize(("more", "message", "why"), WRONG_SELECTIONS, ids=[why for *_, why in WRONG_SELECTIONS])
def test_wrong_selections_are_refused(more: dict[str, Any], message: str, why: str, client: httpx.Client) -> None:
    status, found = refusal(client.post("/api/select", json={"candidates": ["a", "b"], "k": 1, **more}))
    assert status == 422
    assert message in found


ODD_TEXTS = [
    "<img src=x onerror=alert(1)>",
    "the\x00baker\tlost\r\nit",
    "🥐" * 80,
    "面包师丢了钥匙",
    "'; DROP TABLE bins; --",
]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_are_answered(text: str, client: httpx.Client) -> None:
    reply = client.post("/api/generate", json={**ASK, "text": text})
    assert reply.status_code == 200
    assert len(reply.json()["answers"]) >= 1
    assert reply.headers["content-type"] == "application/json"


def test_candidates_that_cannot_be_seen_are_told(client: httpx.Client) -> None:
    found = client.post("/api/select", json={"candidates": ["\x00", " ", "it rained"], "k": 3}).json()
    assert [one["text"] for one in found["selected"]] == ["it rained"]
    assert found["blank"] == [0, 1]


# What goes with every answer


@pytest.mark.parametrize(
    "address", ["/", "/api/info", "/api/docs", "/docs", "/static/docs.css", "/openapi.json", "/nothing"]
)
def test_every_answer_has_the_headers_that_keep_a_browser_safe(address: str, client: httpx.Client) -> None:
    headers = client.get(address).headers
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


def test_the_page_and_its_files_come_with_their_types(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    script = client.get("/static/explorer.js")
    assert script.status_code == 200
    assert script.headers["content-type"].startswith("text/javascript")


def test_the_manual_shows_every_route_and_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/api/docs").text
    assert client.get("/docs").text == page
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page
    assert "http" not in page.replace("Content-Type", "")
    assert page.count("<script") == page.count('<script src="/static/docs.js" type="module"></script>') == 1
    assert "at most 80 characters" in page


def test_other_origins_may_ask_only_if_they_are_named(generator: Generator, client: httpx.Client) -> None:
    ask = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in client.options("/api/generate", headers=ask).headers
    with serving(create_app(generator, LIMITS, origins=["https://example.org"])) as address:
        allowed = httpx.options(f"{address}/api/generate", headers=ask)
        assert allowed.headers["access-control-allow-origin"] == "https://example.org"
        other = httpx.get(f"{address}/api/info", headers={"Origin": "https://example.com"})
        assert "access-control-allow-origin" not in other.headers


def test_the_log_does_not_hold_what_users_write(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        client.post("/api/generate", json={**ASK, "text": "a secret sentence"})
        client.get("/?text=a+secret+sentence")
        client.get("/a-secret-sentence")
        client.post("/api/generate", json={**ASK, "text": "secret " * 50})
    ours = [record.getMessage() for record in caplog.records if record.name == "cod3s.web"]
    assert [line.rsplit(" ", 2)[0] for line in ours] == [
        "POST /api/generate 200",
        "GET / 200",
        "GET (no route) 404",
        "POST /api/generate 422",
    ]
    assert "secret" not in "".join(ours)


@pytest.mark.parametrize("name", ["text", "k", "beams", "body", "at_once", "seconds"])
def test_limits_of_nothing_make_no_sense(name: str) -> None:
    with pytest.raises(Cod3sError, match=name):
        Limits(**{name: 0})
