"""Both servers against pages from elsewhere, and 50 XSS strings through every page and report."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from browser import chromium
from cod3s.cli.main import app as command_line
from cod3s.decode.generator import load
from cod3s.encode import load_encoder
from cod3s.evaluate.config import EvaluateConfig
from cod3s.evaluate.evaluation import evaluate_outputs
from cod3s.evaluate.grading import Grader
from cod3s.evaluate.items import EvaluationData, Item
from cod3s.evaluate.report import PAGE, write_report
from cod3s.evaluate.sweep import FIGURES, Point, Sweep
from cod3s.records import Answer, AnswerSet
from cod3s.study.analysis import analyse
from cod3s.study.exchange import write_mturk
from cod3s.study.report import write_report as write_study_report
from cod3s.study.server import ServerOptions, create_app
from cod3s.study.simulation import Crowd, simulate_ratings
from cod3s.study.store import Store, database_url, open_store
from cod3s.web.address import Access, access_for
from cod3s.web.app import create_app as create_explorer
from cod3s.web.guard import HEADERS
from cod3s.web.limits import Limits
from studies import new_study
from tiny_bundle import TinyBundle
from web_server import serving

expect.set_options(timeout=30_000)
STRINGS = (Path(__file__).parents[1] / "xss_strings.txt").read_text().splitlines()
LIVE = "script, img, image, iframe, object, embed, base, form, marquee, audio, video, [onload], [onerror]"
"""What would be in a page if one of the strings became markup."""
FOREIGN = LIVE.replace("script, img", 'img:not([src="static/icon.svg"])').replace("form, ", "")
"""The same in the study's pages, which have their own scripts, forms and icon."""


@pytest.fixture(scope="module")
def explorer(tiny_bundle: TinyBundle) -> Iterator[str]:
    with serving(create_explorer(load(tiny_bundle.small), Limits(text=400))) as address:
        yield address


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    folder = tmp_path_factory.mktemp("study")
    made = new_study(folder)
    with (
        open_store(database_url(folder / "study"), made.study) as store,
        serving(create_app(made.study, list(made.items), store, ServerOptions())) as address,
    ):
        yield address, store


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


# Hosts and origins

HOSTS = [
    ("127.0.0.1:{port}", 200, "the address served"),
    ("localhost:{port}", 200, "a local name"),
    ("[::1]:{port}", 200, "a local address"),
    ("LOCALHOST", 200, "names have no case"),
    ("evil.example", 403, "a name that was rebound to this machine"),
    ("evil.example:{port}", 403, "the same with the port"),
    ("localhost.evil.example", 403, "a name that begins like a local one"),
    ("127.0.0.1.evil.example", 403, "a name that begins like a local address"),
    ("192.0.2.7", 403, "an address that is not served"),
]


@pytest.mark.parametrize(("host", "status", "why"), HOSTS, ids=[why for *_, why in HOSTS])
def test_a_server_answers_only_to_its_own_names(
    host: str, status: int, why: str, explorer: str, study: tuple[str, Store]
) -> None:
    for address, path in ((explorer, "/api/info"), (study[0], "/api/study")):
        reply = httpx.get(address + path, headers={"Host": host.format(port=address.rpartition(":")[2])})
        assert reply.status_code == status
        if status == 403:
            assert set(reply.json()["error"]) == {"message", "hint"}
            assert "--allow-host" in reply.json()["error"]["hint"]


ORIGINS = [
    (None, True, "a command-line client"),
    ("{address}", True, "the server's own page"),
    ("https://evil.example", False, "a page from elsewhere"),
    ("http://localhost:1", False, "another server on this machine"),
    ("null", False, "a sandboxed page or a file"),
    ("http://127.0.0.1", False, "the same host on another port"),
]


@pytest.mark.parametrize(("origin", "allowed", "why"), ORIGINS, ids=[why for *_, why in ORIGINS])
def test_pages_from_elsewhere_cannot_rate_join_or_generate(
    origin: str | None, allowed: bool, why: str, explorer: str, study: tuple[str, Store]
) -> None:
    calls: list[tuple[str, str, str, dict[str, Any], int]] = [
        (explorer, "POST", "/api/select", {"candidates": ["it rained", "it snowed"], "k": 1}, 200),
        (study[0], "POST", "/api/raters", {"name": "Ada"}, 201),
        (study[0], "PUT", "/api/statements/1", {"score": 1, "seconds": 1, "key": "12345678"}, 401),
    ]
    if not allowed:
        ask = {"text": "the lights went out", "relation": "effect"}
        calls += [(explorer, "POST", f"/api/{name}", ask, 200) for name in ("generate", "stream")]
    before = len(study[1].raters())
    for address, method, path, body, status in calls:
        headers = {} if origin is None else {"Origin": origin.format(address=address)}
        reply = httpx.request(method, address + path, json=body, headers=headers, timeout=60)
        assert reply.status_code == (status if allowed else 403), path
        if not allowed:
            assert set(reply.json()["error"]) == {"message", "hint"}
            assert {name: reply.headers[name] for name in HEADERS} == HEADERS
    assert len(study[1].raters()) - before == int(allowed)


def test_named_hosts_and_origins_are_let_in() -> None:
    proxied = access_for("127.0.0.1", allowed_hosts=["Study.example.org"], origins=["https://app.example.org"])
    assert proxied.allows_host("study.example.org:443")
    assert proxied.allows_origin("https://study.example.org", "127.0.0.1:8001"), "a proxy that sets its own Host"
    assert proxied.allows_origin("https://app.example.org", "127.0.0.1:8001")
    assert not proxied.allows_origin("https://other.example.org", "127.0.0.1:8001")
    everywhere = access_for("0.0.0.0")
    assert everywhere.allows_host("192.0.2.7:8000"), "an address cannot be rebound"
    assert not everywhere.allows_host("evil.example")
    assert access_for("127.0.0.1", allowed_hosts=["*"]).allows_host("anything.example")
    assert Access().allows_host(""), "HTTP/1.0 has no Host"


@pytest.mark.parametrize("command", [["serve"], ["study", "serve"]])
def test_both_servers_have_the_option(command: list[str]) -> None:
    shown = CliRunner().invoke(command_line, [*command, "--help"], env={"COLUMNS": "200"})
    assert "--allow-host" in shown.output


# XSS


def test_there_are_fifty_strings() -> None:
    assert len(set(STRINGS)) == 50


def test_the_explorer_answers_all_of_them_with_json(explorer: str) -> None:
    with httpx.Client(base_url=explorer, timeout=60, trust_env=False) as client:
        for text in STRINGS:
            reply = client.post("/api/select", json={"candidates": [text, "it rained"], "k": 2})
            assert reply.headers["content-type"] == "application/json"
            assert text in [row["text"] for row in reply.json()["selected"]]
            refused = client.get(f"/api/map?relation={httpx.QueryParams({'r': text})}")
            assert refused.headers["content-type"] == "application/json"


def outputs_of_strings() -> dict[str, list[AnswerSet]]:
    answers = tuple(Answer(text=text, score=0.0, forward=0.0, medoid=text) for text in STRINGS)
    return {
        name: [
            AnswerSet(source=source, relation="effect", system=name, settings={"note": source}, answers=answers)
        ]
        for name, source in zip(STRINGS[:3], (STRINGS[10], STRINGS[10], STRINGS[10]), strict=True)
    }


def evaluation_page(folder: Path) -> Path:
    systems = outputs_of_strings()
    data = EvaluationData(STRINGS[0], "", (Item("effect", STRINGS[10], STRINGS[11]),))
    grader = Grader([load_encoder("static")])
    summary = evaluate_outputs(systems, data, grader, EvaluateConfig(sets=(10, 50)))
    write_report(folder, summary, systems, data.items)
    return folder / PAGE


def sweep_page(folder: Path) -> Path:
    values = dict.fromkeys(FIGURES, 1.0)
    points = tuple(Point(text, STRINGS[at % 3], 2.0, figures=values) for at, text in enumerate(STRINGS))
    Sweep({"sets": (10,), "bundles": STRINGS}, " ".join(STRINGS), points, tuple(STRINGS)).write(folder)
    return folder / "sweep.html"


def notebook_page(folder: Path) -> Path:
    """What a notebook shows of the answers, in a page around it."""
    views = [answers._repr_html_() for sets in outputs_of_strings().values() for answers in sets]
    page = folder / "notebook.html"
    page.write_text(f'<!doctype html><meta charset="utf-8"><body>{"".join(views)}', encoding="utf-8")
    return page


def study_page(folder: Path) -> Path:
    made = new_study(folder)
    items = [replace(item, statement=text) for item, text in zip(made.items, STRINGS, strict=False)]
    study = replace(made.study, name=STRINGS[0])
    simulation = simulate_ratings(study, items, Crowd(raters=4))
    names = dict(zip(simulation.raters, STRINGS, strict=False))
    analysis = analyse(study, items, simulation.ratings, names=names)
    return write_study_report(folder / "report", analysis)


def batch_page(folder: Path) -> Path:
    made = new_study(folder)
    study = replace(made.study, name=STRINGS[8], question=STRINGS[0], instructions="\n\n".join(STRINGS))
    write_mturk(folder / "batch", study, made.items)
    page = folder / "batch" / "template.html"
    own_script = '<script src="https://assets.crowd.aws/crowd-html-elements.js"></script>'
    page.write_text(page.read_text().replace(own_script, ""))
    return page


@pytest.mark.parametrize("write", [evaluation_page, sweep_page, notebook_page, study_page, batch_page])
def test_reports_show_all_of_them_as_text(write: Callable[[Path], Path], tmp_path: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(write(tmp_path).as_uri())
    assert page.title() != "run"
    assert page.locator(LIVE).count() == 0
    assert page.evaluate("getComputedStyle(document.body).display") != "none"
    assert STRINGS[0] in page.locator("body").inner_text()
    if write is not notebook_page:  # the notebook decides how wide its output is
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, "nothing overflows on a phone"


def test_the_studys_pages_show_all_of_them_as_text(tmp_path: Path, browser: Browser) -> None:
    made = new_study(tmp_path, raters_per_item=1, per_rater=4)
    items = [replace(item, statement=text) for item, text in zip(made.items, STRINGS[10:], strict=False)]
    study = replace(made.study, name=STRINGS[0], question=STRINGS[1], instructions="\n\n".join(STRINGS))
    with ExitStack() as stack:
        store = stack.enter_context(open_store(database_url(tmp_path / "study"), study))
        address = stack.enter_context(serving(create_app(study, items, store, ServerOptions())))
        page = browser.new_page()
        violations: list[str] = []
        page.on("console", lambda message: violations.append(message.text))
        page.goto(address)
        expect(page.locator("body")).to_contain_text(STRINGS[-1])
        assert page.locator(FOREIGN).count() == 0
        assert page.title() != "run"
        for name in STRINGS:
            httpx.post(f"{address}/api/raters", json={"name": name[:80]}).raise_for_status()
        page.goto(f"{address}/admin#{made.admin_token}")
        expect(page.locator("body")).to_contain_text(STRINGS[9])
        assert page.locator(FOREIGN).count() == 0
        assert page.title() != "run"
        assert not violations


def test_the_explorers_page_shows_all_of_them_as_text(explorer: str, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    bits = len(httpx.get(f"{explorer}/api/map?relation=effect&limit=1").json()["bins"][0]["signature"])
    bins = [{"signature": f"{n:0{bits}b}", "count": 1, "medoid": STRINGS[-1 - n]} for n in range(len(STRINGS))]
    answers = [{**bin, "text": text, "score": -1.0} for bin, text in zip(bins, STRINGS, strict=True)]
    record = {"source": STRINGS[0], "relation": "effect", "answers": answers, "remarks": STRINGS}
    events = [{"event": "signatures", "signatures": bins}]
    events += [{"event": "answer", "place": place, "answer": answer} for place, answer in enumerate(answers)]
    events.append({"event": "done", "record": record})
    body = "".join(json.dumps(event) + "\n" for event in events)
    page.route("**/api/stream", lambda route: route.fulfill(status=200, body=body))
    page.goto(f"{explorer}/#{httpx.QueryParams({'text': STRINGS[0], 'relation': 'effect'})}")
    page.wait_for_selector("#remarks li")
    assert page.locator("#answers .text").all_text_contents() == STRINGS
    assert page.locator("#answers " + LIVE.replace(", ", ", #answers ")).count() == 0
    assert page.title() != "run"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#to-map").click()
    expect(page.locator("#map-title")).to_be_in_viewport()
    assert not complaints


def test_the_api_page_tries_a_route_and_breaks_no_rule_of_the_policy(explorer: str, browser: Browser) -> None:
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(f"{explorer}/docs")
    route = page.locator(".opblock", has_text="/api/select")
    route.locator(".opblock-summary-control").click()
    route.locator("textarea").fill(json.dumps({"candidates": STRINGS[:3], "k": 1}))
    route.locator("button.execute").click()
    expect(route.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    assert page.title() != "run"
    assert not complaints
