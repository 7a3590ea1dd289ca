"""The rater's and the administrator's page in real Chromium, against the real server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Response, Route, expect

from browser import chromium
from cod3s.study.design import NewStudy
from cod3s.study.store import Store, database_url, open_store
from studies import SYSTEMS, new_study, served

TOTAL = 5  # four items and one check
SETTLE = 300  # milliseconds that a person needs to read anything
expect.set_options(timeout=20_000)

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


class Site:
    """A study that is being served, and its store."""

    def __init__(self, made: NewStudy, store: Store, client: httpx.Client) -> None:
        self.made, self.store, self.address = made, store, str(client.base_url)

    def scores(self) -> list[int]:
        """The scores of all raters, in the order of their first ratings."""
        every = self.store.ratings(every_revision=True)
        first = {(rating.rater, rating.item): rating.at for rating in every if rating.revision == 1}
        latest = sorted(self.store.ratings(), key=lambda rating: first[rating.rater, rating.item])
        return [rating.score for rating in latest]


Serve = Callable[..., Site]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(**options: Any) -> Site:
            made = new_study(tmp_path, name="Wells and mills")
            store = stack.enter_context(open_store(database_url(tmp_path / "study"), made.study))
            return Site(made, store, stack.enter_context(served(made.study, list(made.items), store, **options)))

        yield start


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens pages in a browser of their own each; at the end, none may have complained."""
    complaints: list[str] = []
    with ExitStack() as stack:

        def start(address: str, *, received: list[str] | None = None, **options: Any) -> Page:
            page = stack.enter_context(browser.new_context(**options)).new_page()
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            if received is not None:
                page.on("response", lambda response: received.append(content(response)))
            page.goto(address)
            return page

        yield start
    assert not [text for text in complaints if "net::ERR_" not in text]


def content(response: Response) -> str:
    return response.url + str(response.headers) + response.text()


def begin(page: Page, name: str = "Ada") -> None:
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("button", name="Start rating").click()
    expect(page.locator("#count")).to_have_text(f"1 of {TOTAL}")


def press(page: Page, key: str, then: str) -> None:
    """Presses a number key as a person would, after the page has settled, and waits for what comes."""
    page.wait_for_timeout(SETTLE)
    page.keyboard.press(key)
    expect(page.locator("#count")).to_have_text(then)


def test_a_rater_does_the_whole_study_by_keyboard_alone(serve: Serve, open_page: Open) -> None:
    site = serve()
    received: list[str] = []
    page = open_page(site.address, received=received)
    expect(page).to_have_title("Wells and mills")
    expect(page.get_by_label("Your name")).to_be_focused()
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Before you begin")).to_be_focused()
    expect(page.locator("#instructions-scale li")).to_have_count(6)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    seen = []
    for position in range(1, TOTAL + 1):
        expect(page.locator("#count")).to_have_text(f"{position} of {TOTAL}")
        expect(page.locator("#statement")).to_be_focused()  # so a screen reader reads it
        seen.append(page.locator("#statement").inner_text())
        assert page.locator("#bar").get_attribute("value") == str(position - 1)
        page.wait_for_timeout(SETTLE)
        page.keyboard.press(str(position))
    expect(page.get_by_role("heading", name="Thank you")).to_be_focused()
    expect(page.locator("#code")).to_have_text(site.made.study.completion_code)
    assert page.locator("#return").is_hidden()
    assert len(set(seen)) == TOTAL
    assert set(seen) <= {item.statement for item in site.made.items}
    assert site.scores() == [1, 2, 3, 4, 5]
    told = "\n".join(received)
    assert len(received) > TOTAL
    for secret in (*SYSTEMS, *(item.id for item in site.made.items)):
        assert secret not in told


def test_going_back_changes_a_rating_and_a_reload_goes_on(serve: Serve, open_page: Open) -> None:
    site = serve()
    page = open_page(site.address)
    begin(page)
    first = page.locator("#statement").inner_text()
    expect(page.get_by_role("button", name="Back")).to_be_disabled()
    page.wait_for_timeout(SETTLE)
    page.get_by_role("button", name="4 likely", exact=True).click()
    expect(page.locator("#count")).to_have_text(f"2 of {TOTAL}")
    press(page, "1", f"3 of {TOTAL}")
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_role("button", name="1 very unlikely")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#statement")).to_have_text(first)
    press(page, "0", f"2 of {TOTAL}")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#count")).to_have_text(f"3 of {TOTAL}")
    page.reload()
    expect(page.locator("#count")).to_have_text(f"3 of {TOTAL}")
    assert site.scores() == [0, 1]
    assert [rating.score for rating in site.store.ratings(every_revision=True) if rating.revision == 2] == [0]


def test_the_link_goes_on_in_another_browser_and_the_address_alone_in_the_same(
    serve: Serve, open_page: Open
) -> None:
    site = serve()
    page = open_page(site.address)
    begin(page)
    press(page, "3", f"2 of {TOTAL}")
    page.get_by_role("button", name="Pause").click()
    link = page.get_by_label("Your own link").input_value()
    page.get_by_role("button", name="Continue rating").click()
    expect(page.locator("#count")).to_have_text(f"2 of {TOTAL}")
    statement = page.locator("#statement").inner_text()
    elsewhere = open_page(link)
    expect(elsewhere.locator("#count")).to_have_text(f"2 of {TOTAL}")
    expect(elsewhere.locator("#statement")).to_have_text(statement)
    page.goto("about:blank")
    page.goto(site.address)
    page.get_by_role("button", name="Continue where you stopped").click()
    expect(page.locator("#statement")).to_have_text(statement)
    assert len(site.store.raters()) == 1


def test_a_rating_is_sent_again_until_it_is_acknowledged_and_saved_once(serve: Serve, open_page: Open) -> None:
    site = serve()
    page = open_page(site.address)
    begin(page)
    attempts: list[str] = []

    def unreliable(route: Route) -> None:
        attempts.append(route.request.post_data or "")
        if len(attempts) == 1:
            route.abort()  # never arrives
        elif len(attempts) == 2:
            route.fetch()  # arrives, but the answer is lost
            route.abort()
        else:
            route.continue_()

    page.route("**/api/statements/1", unreliable)
    page.wait_for_timeout(SETTLE)
    page.keyboard.press("5")
    expect(page.locator("#saving")).to_contain_text("Not saved yet")
    page.keyboard.press("2")  # is not taken while the first is on its way
    expect(page.locator("#count")).to_have_text(f"2 of {TOTAL}")
    assert len(attempts) == 3
    assert len(set(attempts)) == 1, "every attempt is the same click"
    assert [(rating.score, rating.revision) for rating in site.store.ratings(every_revision=True)] == [(5, 1)]


def test_a_click_on_a_statement_that_was_taken_back_is_not_saved_for_another(
    serve: Serve, browser: Browser
) -> None:
    site = serve()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(site.address)
        begin(page)
        [rater] = site.store.raters()
        [open_item] = site.store.assigned(rater.id)
        other = next(item for item in site.made.items if item.id != open_item.item)
        site.store.assign_next(
            rater.id, lambda _items, _load: other.id, free_before="9999"
        )  # as after the claim's time
        page.wait_for_timeout(SETTLE)
        page.keyboard.press("5")
        expect(page.locator("#saving")).to_contain_text("Not saved: this statement was open for too long")
        expect(page.locator("#statement")).to_have_text(other.statement)
        assert site.scores() == []
        press(page, "2", f"2 of {TOTAL}")
        assert [(rating.item, rating.score) for rating in site.store.ratings()] == [(other.id, 2)]


def test_a_participant_of_prolific_comes_by_its_link_and_returns(serve: Serve, open_page: Open) -> None:
    site = serve(prolific=True)
    link = f"{site.address}/?PROLIFIC_PID=5f00aa&STUDY_ID=s1&SESSION_ID=t1"
    page = open_page(link)
    page.get_by_role("button", name="Start rating").click()
    press(page, "3", f"2 of {TOTAL}")
    assert "PROLIFIC_PID" not in page.url
    page = open_page(link)  # from another device
    for position in range(2, TOTAL):
        expect(page.locator("#count")).to_have_text(f"{position} of {TOTAL}")
        press(page, "3", f"{position + 1} of {TOTAL}")
    page.wait_for_timeout(SETTLE)
    page.keyboard.press("3")
    back = page.get_by_role("link", name="Return to Prolific")
    expect(back).to_have_attribute(
        "href", f"https://app.prolific.com/submissions/complete?cc={site.made.study.completion_code}"
    )
    assert [rater.external for rater in site.store.raters()] == ["5f00aa"]
    stranger = open_page(site.address)
    expect(stranger.get_by_role("alert")).to_contain_text("open this study from its page on Prolific")


def test_a_phone_shows_statement_and_scale_without_scrolling_sideways(serve: Serve, open_page: Open) -> None:
    site = serve()
    page = open_page(site.address, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    begin(page)
    buttons = page.locator("#scores button")
    boxes = [box for box in (button.bounding_box() for button in buttons.all()) if box]
    assert len(boxes) == 6
    assert all(box["height"] >= 44 and box["x"] >= 0 and box["x"] + box["width"] <= 360 for box in boxes)
    assert boxes[-1]["y"] + boxes[-1]["height"] <= 740, "the whole scale is in view"
    page.wait_for_timeout(SETTLE)
    buttons.nth(5).tap()
    expect(page.locator("#count")).to_have_text(f"2 of {TOTAL}")
    page.get_by_role("button", name="Instructions").tap()
    expect(page.get_by_role("dialog", name="Instructions")).to_be_visible()
    page.keyboard.press("4")  # is not taken for a rating while the instructions are open
    page.get_by_role("button", name="Back to the statement").tap()
    expect(page.locator("#count")).to_have_text(f"2 of {TOTAL}")
    assert site.scores() == [5]


def test_the_administrator_needs_the_token_and_sees_the_raters(serve: Serve, browser: Browser) -> None:
    site = serve()
    with browser.new_context() as context:
        rater = context.new_page()
        rater.goto(site.address)
        begin(rater, "<b>Ada</b>")
        press(rater, "3", f"2 of {TOTAL}")
        page = context.new_page()
        page.goto(f"{site.address}/admin")
        page.get_by_label("admin token").fill("wrong")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("alert")).to_contain_text("not the admin token")
        assert page.locator("#raters tr").count() == 0, "a wrong token shows nobody"
        page.get_by_label("admin token").fill(site.made.admin_token)
        page.get_by_role("button", name="Open").click()
        expect(page.locator("#raters tr")).to_have_count(1)
        expect(page.locator("#raters")).to_contain_text("<b>Ada</b>")  # shown as text, not run as markup
        expect(page.locator("#figures")).to_contain_text("12 wanted")
        assert page.locator("#raters b").count() == 0
