"""The explorer page in a real browser: headless Chromium, a real server process, a real bundle.

The tiny bundle answers at once; tests of what is shown meanwhile ask the embedded one, which takes its time. Every
page that a test opens is watched: no request may leave the host, and the console must stay free of errors.
"""

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from browser import chromium
from conftest import ROOT
from tiny_bundle import SOURCES, TinyBundle

SOURCE = SOURCES[0]
HOSTILE = "<img src=x onerror=\"document.title='run'\"><b>bold</b>"
PATIENCE = 60_000  # milliseconds for answers: a loaded machine is slow, and no test is about speed
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
MARGIN = 18  # pixels between the map's edge and its outermost dots

STATIC = [ROOT / "src" / "cod3s" / "web" / room for room in ("static", "shared")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(port: int, *options: str | Path) -> Iterator[str]:
    """A real `cod3s serve`, and its address."""
    command = [sys.executable, "-m", "cod3s", "serve", "--port", str(port), "--seconds", "300"]
    process = subprocess.Popen(
        [*command, *map(str, options)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: healthy(address), f"{address} never answered", alive=process)
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def healthy(address: str) -> bool:
    try:
        with urlopen(f"{address}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def until(
    holds: Callable[[], bool], otherwise: str, *, alive: subprocess.Popen[bytes], seconds: float = 90
) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert alive.poll() is None, f"the server ended with {alive.returncode}"
        assert time.monotonic() < end, otherwise
        time.sleep(0.1)


@dataclass
class Watched:
    """A page of its own context, and what it did: the addresses it asked and the errors in its console."""

    page: Any
    asked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    expected: str = "nothing"  # a pattern of errors that the test provokes

    def run(self, text: str = SOURCE, **settings: str | int) -> None:
        """Opens the page by a link, and waits for its answers."""
        self.open(text=text, **settings)
        self.finished()

    def open(self, **settings: str | int) -> None:
        link = "&".join(f"{name}={quote(str(value))}" for name, value in settings.items())
        self.page.goto("about:blank")  # so that a link to the same page loads it anew
        self.page.goto(f"/#{link}")

    def finished(self) -> None:
        self.page.wait_for_selector(".bin .text", timeout=PATIENCE)
        self.page.wait_for_selector("#find:visible", timeout=PATIENCE)

    def texts(self) -> list[str]:
        return list(self.page.locator("#answers .text").all_text_contents())

    def signatures(self) -> list[str]:
        return list(
            self.page.eval_on_selector_all("#answers .bin", "cards => cards.map(c => c.dataset.signature)")
        )


Open = Callable[..., Watched]


@pytest.fixture(scope="module")
def site(tiny_bundle: TinyBundle) -> Iterator[str]:
    with served(free_port(), "--bundle", tiny_bundle.exact) as address:
        yield address


@pytest.fixture(scope="module")
def embedded_site() -> Iterator[str]:
    with served(free_port()) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def visit(browser: Any, site: str) -> Iterator[Open]:
    """Opens watched pages; afterwards none of them may have spoken to another host or logged an error."""
    contexts, watched = [], []

    def open_page(base: str = site, **options: Any) -> Watched:
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options}
        context = browser.new_context(base_url=base, **options)
        one = Watched(context.new_page())
        one.page.set_default_timeout(PATIENCE)
        one.page.on("request", lambda request: one.asked.append(request.url))
        one.page.on("console", lambda message: message.type == "error" and one.errors.append(message.text))
        one.page.on("pageerror", lambda error: one.errors.append(str(error)))
        contexts.append(context)
        watched.append((base, one))
        return one

    yield open_page
    for base, one in watched:
        assert [url for url in one.asked if not url.startswith((base, "about:", "blob:"))] == []
        assert [error for error in one.errors if not re.search(one.expected, error)] == []
    for context in contexts:
        context.close()


def ask_api(site: str, path: str, body: dict[str, object] | None = None) -> Any:
    request = Request(f"{site}{path}", data=json.dumps(body).encode() if body else None)
    request.add_header("Content-Type", "application/json")
    with urlopen(request, timeout=PATIENCE / 1000) as answer:
        return json.load(answer)


# Answers


def test_answers_arrive_one_after_the_other_and_end_as_the_api_gives_them(visit: Open, site: str) -> None:
    watched = visit()
    watched.page.add_init_script(
        """window.counts = [];
        new MutationObserver(() => window.counts.push([
          document.querySelectorAll("#answers .bin").length, document.querySelectorAll("#answers .text").length,
        ])).observe(document, {childList: true, subtree: true});"""
    )
    watched.run(k=5)
    counts = [tuple(pair) for pair in watched.page.evaluate("window.counts")]
    assert any(cards == 5 and filled < 5 for cards, filled in counts), "bins are announced before their answers"
    assert all(filled <= cards <= 5 for cards, filled in counts)
    record = ask_api(site, "/api/generate", {"text": SOURCE, "relation": "effect", "k": 5})
    assert watched.texts() == [answer["text"] for answer in record["answers"]]
    assert watched.page.locator("#map .mark").count() == 5


def test_a_wait_names_the_stage_and_counts_the_seconds(visit: Open, embedded_site: str) -> None:
    watched = visit(base=embedded_site)
    watched.page.add_init_script(
        """window.said = [];
        new MutationObserver(() => window.said.push(
          ["progress", "elapsed"].map((id) => document.getElementById(id)?.textContent),
        )).observe(document, {childList: true, subtree: true});"""
    )
    watched.run(k=2)
    said = watched.page.evaluate("window.said")
    assert ["waiting for a turn…", "0 s"] in said
    assert any(re.match(r"(?!waiting).+…$", progress or "") for progress, _ in said)
    assert watched.page.locator("#progress").text_content() == "2 answers"
    assert watched.page.locator("#elapsed").text_content() == ""
    watched.page.get_by_role("button", name="the baker overslept").click()
    watched.page.locator("#elapsed", has_text=re.compile(r"^\d+ s \(last time \d+ s\)$")).wait_for()
    watched.page.locator("#stop").click()
    assert watched.page.locator("#elapsed").text_content() == ""


def test_a_card_says_what_its_bin_is_like_if_that_tells_something(visit: Open) -> None:
    watched = visit()
    bins = [{"signature": f"000000{n:02b}", "count": 1, "medoid": "he was hit by a piece of wood"} for n in (0, 1)]
    answers = [{**bin_, "text": "the cinema closed", "score": -1.0} for bin_ in bins]
    captions = ["the film was stopped", ""]
    events = [
        {"event": "signatures", "signatures": bins},
        *(
            {"event": "answer", "place": place, "answer": answer, "caption": text}
            for place, (answer, text) in enumerate(zip(answers, captions, strict=True))
        ),
        {"event": "done", "record": {"source": SOURCE, "relation": "effect", "answers": answers, "remarks": []}},
    ]
    watched.page.route("**/api/stream", lambda route: route.fulfill(status=200, body=as_stream(events)))
    watched.run()
    assert watched.page.locator(".like").all_text_contents() == ["its bin is like: the film was stopped"]
    assert watched.page.locator(".bin", has_text="its bin is like").locator(".number").text_content() == "1"


def test_a_card_shows_the_signature_and_the_size_of_its_bin(visit: Open, site: str) -> None:
    watched = visit()
    watched.run(k=2)
    card = watched.page.locator("#answers .bin").first
    signature = watched.signatures()[0]
    known = ask_api(site, f"/api/bins/{signature}?relation=effect")
    assert f"{known['count']} training sentence" in card.locator(".facts").text_content()
    squares = card.locator(".pattern rect")
    assert "".join("01"["on" in square.get_attribute("class")] for square in squares.all()) == signature


def test_the_other_relation_asks_the_other_way(visit: Open) -> None:
    watched = visit()
    watched.run(k=4)
    first = watched.texts()
    watched.page.get_by_role("radio", name="Why?").check()
    watched.page.locator("#answers-title", has_text=f"{SOURCE} because …").wait_for()
    watched.finished()
    assert watched.texts() != first


def test_stop_ends_a_run_and_says_no_error(visit: Open, embedded_site: str) -> None:
    watched = visit(base=embedded_site)
    watched.open(text=SOURCE, k=30)
    watched.page.locator("#stop").click()
    watched.page.wait_for_selector("#find:visible")
    assert len(watched.texts()) < 30
    assert watched.page.locator(".pending").count() == 0
    assert watched.page.locator("#notice").is_hidden()


def test_the_weight_of_mmi_can_be_set_only_where_mmi_ranks(visit: Open, embedded_site: str) -> None:
    for base, shown in ((None, True), (embedded_site, False)):  # without a critic, and with one
        watched = visit(base=base) if base else visit()
        watched.open()
        watched.page.wait_for_selector("#relations input:checked", state="attached")
        assert watched.page.locator("#k").is_visible()
        assert watched.page.get_by_label("How specific").is_visible() is shown


def test_a_moved_slider_asks_again_once_it_rests(visit: Open) -> None:
    watched = visit()
    watched.run(k=2)
    watched.page.locator("#k").fill("3")
    watched.page.wait_for_selector("#answers .bin:nth-child(3) .text")
    watched.finished()
    assert len(watched.texts()) == 3
    assert "k=3" in watched.page.url


# Asking for a bin


def test_a_click_on_the_map_asks_for_that_bin(visit: Open, site: str) -> None:
    watched = visit()
    watched.run(k=2)
    bins = ask_api(site, "/api/map?relation=effect")["bins"]
    wanted = max(bins, key=lambda one: one["x"] - abs(one["y"] - 0.5))  # a dot at the rim, away from the marks
    click_dot(watched, wanted)
    watched.page.wait_for_selector(".bin.picked .text")
    watched.finished()
    assert watched.signatures()[-1] == wanted["signature"]
    body = {"text": SOURCE, "relation": "effect", "k": 1, "signatures": [wanted["signature"]]}
    assert watched.texts()[-1] == ask_api(site, "/api/generate", body)["answers"][0]["text"]
    assert "picked" in watched.page.locator(".bin.picked").text_content()
    assert wanted["signature"] in watched.page.url


def click_dot(watched: Watched, dot: dict[str, float]) -> None:
    watched.page.get_by_text("largest bins").wait_for()  # answers from the cache may come before the dots
    plane = watched.page.locator("#map")
    plane.scroll_into_view_if_needed()
    box = plane.bounding_box()
    inside = {side: box[side] - 2 - 2 * MARGIN for side in ("width", "height")}  # a border of 1 on each side
    x = box["x"] + 1 + MARGIN + dot["x"] * inside["width"]
    y = box["y"] + 1 + MARGIN + dot["y"] * inside["height"]
    watched.page.mouse.move(x, y)
    assert watched.page.locator("#map .tip .medoid").text_content() == dot["medoid"]
    watched.page.mouse.click(x, y)


def test_a_dot_without_a_sentence_asks_for_the_sentence_first(visit: Open, site: str) -> None:
    watched = visit()
    watched.open()
    click_dot(watched, ask_api(site, "/api/map?relation=effect")["bins"][0])
    assert "Write a sentence first" in watched.page.locator("#text-problem").text_content()
    assert watched.page.evaluate("document.activeElement.id") == "text"


def test_everything_can_be_done_by_keyboard(visit: Open) -> None:
    watched = visit()
    watched.open(k=2)
    press = watched.page.keyboard.press
    watched.page.wait_for_function("document.activeElement.id === 'text'")
    watched.page.keyboard.type(SOURCE)
    press("Enter")
    watched.finished()
    tab_to(watched, "[data-action=nearby]")
    assert watched.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press("Enter")
    watched.page.wait_for_selector(".neighbor")
    tab_to(watched, ".neighbor")
    wanted = watched.page.evaluate("document.activeElement.dataset.action")
    press("Enter")
    watched.page.wait_for_selector(f'.bin.picked[data-signature="{wanted}"] .text')
    watched.finished()
    tab_to(watched, "#map")
    press("ArrowRight")
    spoken = watched.page.locator("#map-speech").text_content()
    assert re.search(r", [\d,]+ sentences?$", spoken)
    assert spoken.startswith(watched.page.locator("#map .tip .medoid").text_content())


def tab_to(watched: Watched, selector: str, most: int = 60) -> None:
    for _ in range(most):
        watched.page.keyboard.press("Tab")
        if watched.page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not reached by the tab key")


# Taking along


def test_a_link_brings_everything_back(visit: Open) -> None:
    first = visit()
    first.run(k=3, min_hamming=1, sentence_weight=1, search="sample", seed=7)
    first.page.locator("[data-action=nearby]").first.click()
    first.page.locator(".neighbor").first.click()
    first.page.wait_for_selector(".bin.picked .text")
    first.finished()
    second = visit()
    second.page.goto(first.page.url)
    second.page.wait_for_selector(".bin.picked .text")
    second.finished()
    assert second.texts() == first.texts()
    assert second.signatures() == first.signatures()
    values = "['text', 'k', 'min_hamming', 'sentence_weight', 'seed'].map(id => document.getElementById(id).value)"
    assert second.page.evaluate(values) == [SOURCE, "3", "1", "1", "7"]
    assert second.page.locator("#search-sample").is_checked()


@pytest.mark.parametrize(
    ("link", "control", "value"),
    [
        ("k=9999", "k", "30"),  # beyond the limit
        ("k=-3", "k", "1"),  # below it
        ("k=abc", "k", "10"),  # no number: as on a fresh page
        ("min_hamming=", "min_hamming", "2"),  # nothing at all
        ("relation=nothing&bins=01x,0101", "k", "10"),  # an unknown relation, signatures that are none
    ],
)
def test_a_wrong_link_does_no_harm(visit: Open, link: str, control: str, value: str) -> None:
    watched = visit()
    watched.page.goto(f"/#{link}")
    watched.page.wait_for_selector("#relations input:checked", state="attached")
    assert watched.page.locator(f"#{control}").input_value() == value


def test_exports_hold_every_answer(visit: Open) -> None:
    watched = visit()
    watched.run(k=3)
    record = json.loads(downloaded(watched, "#export-json"))
    assert [answer["text"] for answer in record["answers"]] == watched.texts()
    assert {"source", "relation", "system", "settings", "remarks"} <= record.keys()
    rows = list(csv.DictReader(downloaded(watched, "#export-csv").splitlines()))
    assert [row["text"] for row in rows] == watched.texts()
    assert [row["signature"] for row in rows] == watched.signatures()
    cards = watched.page.locator("#answers .bin").all()
    for row, card in zip(rows, cards, strict=True):
        shown = card.text_content()
        assert f"{row['count']} training sentence" in shown
        assert row["caption"] in shown
        assert row["plausibility"] or f"{float(row['score']):.2f}".replace("-", "−") in shown


def downloaded(watched: Watched, button: str) -> str:
    with watched.page.expect_download() as download:
        watched.page.locator(button).click()
    return Path(download.value.path()).read_text(encoding="utf-8")


def test_copies_one_answer_all_of_them_and_the_link(visit: Open) -> None:
    watched = visit(permissions=["clipboard-read", "clipboard-write"])
    watched.run(k=2)
    texts = watched.texts()
    for button, wanted in (
        ("[data-action=copy] >> nth=1", texts[1]),
        ("#copy-all", "\n".join(texts)),
        ("#copy-link", watched.page.url),
    ):
        watched.page.locator(button).click()
        watched.page.get_by_role("button", name=re.compile("Copied|Copy answer")).first.wait_for()
        read = "wanted => navigator.clipboard.readText().then(text => text === wanted && text)"
        assert watched.page.wait_for_function(read, arg=wanted).json_value() == wanted


# Troubles


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Write a sentence first"),  # nothing
        ("   ", "Write a sentence first"),  # nothing that can be seen
        ("word " * 80, "400 characters, but at most 300 are allowed"),  # longer than the server reads
    ],
)
def test_a_sentence_that_cannot_be_asked_is_explained_beside_it(visit: Open, text: str, says: str) -> None:
    watched = visit()
    watched.open()
    watched.page.wait_for_selector("#relations input:checked", state="attached")
    watched.page.locator("#text").fill(text)
    watched.page.locator("#find").click()
    assert says in watched.page.locator("#text-problem").text_content()
    assert watched.page.locator("#text").get_attribute("aria-invalid") == "true"
    assert not [url for url in watched.asked if "/api/stream" in url]


def test_a_server_that_has_gone_is_explained_and_can_be_tried_again(visit: Open, tiny_bundle: TinyBundle) -> None:
    port, bundle = free_port(), ("--bundle", tiny_bundle.exact)
    with served(port, *bundle) as address:
        watched = visit(base=address)
        watched.expected = "Failed to load resource"
        watched.open(k=2)
        watched.page.get_by_text("largest bins").wait_for()
    watched.page.locator("#text").fill(SOURCE)
    watched.page.locator("#find").click()
    watched.page.get_by_text("The server is not responding.").wait_for()
    with served(port, *bundle):
        watched.page.locator("#again").click()
        watched.finished()
        assert len(watched.texts()) == 2
        assert watched.page.locator("#notice").is_hidden()


def refusal(status: int, **headers: str) -> dict[str, Any]:
    error = {"error": {"message": "too many requests at once", "hint": ""}}
    return {"status": status, "headers": headers, "json": error}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (refusal(429, **{"Retry-After": "4"}), "Wait about 4 s."),  # the queue is full
        (refusal(503), "try again"),  # the server took too long
        ({"status": 200, "body": ""}, "broke off"),  # nothing came
        ({"status": 200, "body": '{"event": "error", "message": "no room", "hint": "free some"}\n'}, "free some"),
        ({"status": 200, "body": "<html>"}, "not JSON"),  # something between page and server answers instead
    ],
)
def test_what_a_server_in_trouble_sends_becomes_words(visit: Open, answer: dict[str, Any], says: str) -> None:
    watched = visit()
    watched.expected = "Failed to load resource"
    watched.page.route("**/api/stream", lambda route: route.fulfill(**answer))
    watched.open(text=SOURCE)
    watched.page.locator("#again").wait_for()
    assert says in watched.page.locator("#notice").text_content()
    assert watched.page.locator("#elapsed").text_content() == ""


def hostile_stream() -> str:
    signature = "0" * 8
    bin_ = {"signature": signature, "count": 1, "medoid": HOSTILE}
    answer = {**bin_, "text": HOSTILE, "score": -1.0}
    record = {"source": HOSTILE, "relation": "effect", "answers": [answer], "remarks": [HOSTILE]}
    events = [
        {"event": "signatures", "signatures": [bin_]},
        {"event": "answer", "place": 0, "answer": answer, "caption": HOSTILE},
        {"event": "done", "record": record},
    ]
    return as_stream(events)


def as_stream(events: list[dict[str, Any]]) -> str:
    """The events as a server sends them, one on each line."""
    return "".join(json.dumps(event) + "\n" for event in events)


def test_hostile_text_is_shown_as_text(visit: Open) -> None:
    watched = visit()
    watched.page.route("**/api/stream", lambda route: route.fulfill(status=200, body=hostile_stream()))
    watched.run(text=HOSTILE)
    assert watched.texts() == [HOSTILE]
    assert HOSTILE in watched.page.locator("#answers-title").text_content()
    assert watched.page.locator(".like").text_content() == f"its bin is like: {HOSTILE}"
    assert watched.page.locator("main img, main b").count() == 0
    assert watched.page.title() != "run"


def test_a_cell_that_a_spreadsheet_would_run_is_quoted(visit: Open) -> None:
    watched = visit()
    body = hostile_stream().replace(json.dumps(HOSTILE)[1:-1], "=1+1")
    watched.page.route("**/api/stream", lambda route: route.fulfill(status=200, body=body))
    watched.run(text="it rained")
    (row,) = csv.DictReader(downloaded(watched, "#export-csv").splitlines())
    assert (row["text"], row["score"]) == ("'=1+1", "-1")


def test_an_empty_result_says_the_way_out(visit: Open) -> None:
    watched = visit()
    record = {"source": SOURCE, "relation": "effect", "answers": [], "remarks": ["2 of 2 bins had no sentence"]}
    signatures = [{"signature": "0" * 8, "count": 1, "medoid": ""}]
    events = [{"event": "signatures", "signatures": signatures}, {"event": "done", "record": record}]
    watched.page.route("**/api/stream", lambda route: route.fulfill(status=200, body=as_stream(events)))
    watched.open(text=SOURCE)
    watched.page.get_by_text("There is no answer to show").wait_for()
    assert watched.page.locator("#remarks").text_content() == "2 of 2 bins had no sentence"


def test_remarks_are_shown_calmly_and_name_the_controls_of_the_page(visit: Open) -> None:
    watched = visit()
    calm = "this sentence is about somebody who suffers, so nothing was written; `--sensitive` gives answers"
    option = "`cod3s generate --show-doubtful`, or show_doubtful=True"
    cases: list[tuple[dict[str, Any], str, str]] = [
        (
            {"remark": calm, "remarks": []},
            "#nothing",
            "“Answer sensitive sentences” in the settings gives answers",
        ),
        (
            {"remarks": [f"left out 2 implausible answers; {option}, shows them"]},
            "#remarks",
            "left out 2 implausible answers; “Show doubtful answers” in the settings shows them",
        ),
    ]
    for number, (more, place, words) in enumerate(cases):
        done = {"event": "done", "record": {"source": SOURCE, "relation": "effect", "answers": [], **more}}
        body = as_stream([done])
        watched.page.route("**/api/stream", lambda route, _, body=body: route.fulfill(status=200, body=body))
        watched.open(text=SOURCE, k=number + 1)
        watched.page.wait_for_selector("#find:visible")
        watched.page.locator(place).get_by_text(words).wait_for()
        assert watched.page.locator("#notice").is_hidden()
        assert watched.page.get_by_text("There is no answer to show").count() == 0


def test_doubtful_answers_can_be_shown(visit: Open, site: str) -> None:
    watched = visit()
    watched.run(k=2)
    watched.page.get_by_label("Show doubtful answers").check()
    watched.page.wait_for_url("**show_doubtful=true**")
    watched.finished()
    assert watched.texts() == [
        answer["text"]
        for answer in ask_api(
            site, "/api/generate", {"text": SOURCE, "relation": "effect", "k": 2, "show_doubtful": True}
        )["answers"]
    ]


# For everybody


def test_a_phone_has_no_sideways_scroll(visit: Open) -> None:
    watched = visit(**PHONE)
    watched.run(k=1)
    watched.page.locator("#settings summary").click()
    watched.page.locator("[data-action=nearby]").first.click()
    watched.page.wait_for_selector(".neighbor")
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert watched.page.evaluate(TOO_SMALL) == []


def test_a_phone_breaks_a_word_that_is_wider_than_itself(visit: Open) -> None:
    watched = visit(**PHONE)
    word = "w" * 250
    body = hostile_stream().replace(json.dumps(HOSTILE)[1:-1], word)
    watched.page.route("**/api/stream", lambda route: route.fulfill(status=200, body=body))
    watched.run(text=word)
    assert watched.texts() == [word]
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_finger_sees_a_dot_before_it_asks(visit: Open) -> None:
    watched = visit(**PHONE)
    watched.run(k=1)
    plane = watched.page.locator("#map")
    plane.tap(position={"x": 200, "y": 150})
    assert "Tap again" in watched.page.locator("#map .tip").text_content()
    assert watched.page.locator(".bin.picked").count() == 0
    plane.tap(position={"x": 200, "y": 150})
    watched.page.wait_for_selector(".bin.picked")


# Controls smaller than 24 pixels are hard to hit (WCAG 2.2, 2.5.8).
TOO_SMALL = """[...document.querySelectorAll("button, input[type=range], textarea, summary")]
  .filter(one => one.checkVisibility()).filter(one => one.getBoundingClientRect().height < 24)
  .map(one => one.outerHTML)"""

CONTROLS = {"button", "link", "textbox", "slider", "radio", "checkbox", "switch", "spinbutton", "application"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_control_has_a_name_and_every_text_stands_out(visit: Open, scheme: str) -> None:
    watched = visit(color_scheme=scheme)
    watched.run(k=2, search="sample")
    watched.page.locator("[data-action=nearby]").first.click()
    watched.page.locator(".neighbor").first.click()
    watched.page.wait_for_selector(".bin.picked .text")
    watched.finished()
    watched.page.route("**/api/stream", lambda route: route.fulfill(status=200, body=""))
    watched.page.locator(".neighbor").nth(1).click()
    watched.page.locator("#again").wait_for()
    session = watched.page.context.new_cdp_session(watched.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    controls = [node for node in nodes if not node["ignored"] and node["role"]["value"] in CONTROLS]
    assert len(controls) > 15
    assert [node for node in controls if not node["name"]["value"].strip()] == []
    texts = watched.page.evaluate(TEXT_COLOURS)
    assert len(texts) > 30
    faint = [(text, ratio) for text, ink, ground in texts if (ratio := contrast(ink, ground)) < 4.5]
    assert faint == []


# Every visible piece of text with its colour and the colour of the nearest ground that is not transparent.
TEXT_COLOURS = """() => {
  const clear = colour => colour === "rgba(0, 0, 0, 0)" || colour === "transparent";
  const ground = one => { while (one && clear(getComputedStyle(one).backgroundColor)) one = one.parentElement;
                          return getComputedStyle(one ?? document.documentElement).backgroundColor; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || !one.checkVisibility() || one.closest(".unseen, .skip, svg, noscript")) continue;
    found.push([text, getComputedStyle(one).color, ground(one)]);
  }
  return found;
}"""


def contrast(ink: str, ground: str) -> float:
    """The contrast of WCAG 2: (lighter + .05) / (darker + .05) in relative luminance."""
    lighter, darker = sorted((luminance(ink), luminance(ground)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    channels = [int(channel) / 255 for channel in re.findall(r"\d+", colour)[:3]]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    ("ink", "ground", "ratio"),
    [
        ("rgb(0, 0, 0)", "rgb(255, 255, 255)", 21.0),  # the most there is
        ("rgb(255, 255, 255)", "rgb(255, 255, 255)", 1.0),  # the least
        ("rgb(119, 119, 119)", "rgb(255, 255, 255)", 4.48),  # #777, the well-known grey that just fails
    ],
)
def test_the_yardstick_of_contrast(ink: str, ground: str, ratio: float) -> None:
    assert contrast(ink, ground) == pytest.approx(ratio, abs=0.01)


def test_the_page_has_no_inline_code_and_names_no_other_host() -> None:
    for path in (path for folder in STATIC for path in folder.iterdir()):
        content = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(", content), path.name
        assert not re.search(r"https?://|//cdn", content), path.name
        assert path.suffix != ".html" or not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", content)
