"""The pictures of docs/explorer.md: starts `cod3s serve` on the embedded bundle and photographs the page.

    pip install '.[serve,test]'     # and a `chromium` on the path
    python benchmarks/screenshots.py [--only NAME] [--url http://127.0.0.1:8000]

Writes docs/explorer.png and docs/explorer-phone.png, each below 200 KB. With --url it
asks a server that runs already.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).parent.parent / "docs"
PORT = 8765
COLOURS = 256  # of a picture: a third of the bytes, and nothing that the eye misses
PATIENCE = 300_000  # milliseconds: the machine may have other work


@dataclass(frozen=True)
class Picture:
    name: str
    state: dict[str, str | int]
    act: Callable[[Page], None]
    browser: dict[str, Any] = field(default_factory=dict)


def settled(page: Page) -> None:
    page.wait_for_selector("#answers .text", timeout=PATIENCE)
    page.wait_for_selector("#find:visible", timeout=PATIENCE)


def ask_a_dot(page: Page) -> None:
    """An answer from a dot of the map, and the pointer resting on another dot."""
    settled(page)
    box = page.locator("#map").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.55 * box["width"], box["y"] + 0.2 * box["height"])
    page.wait_for_selector(".bin.picked .text", timeout=PATIENCE)
    settled(page)
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.5 * box["height"])


PICTURES = [
    Picture(
        "explorer",
        {"text": "the power went out during dinner", "relation": "effect", "k": 6},
        ask_a_dot,
        {"viewport": {"width": 1280, "height": 960}},
    ),
    Picture(
        "explorer-phone",
        {"text": "the power went out during dinner", "relation": "effect", "k": 10},
        settled,
        {
            "viewport": {"width": 360, "height": 780},
            "device_scale_factor": 1.5,
            "is_mobile": True,
            "has_touch": True,
        },
    ),
]


@contextmanager
def served(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    server = subprocess.Popen([sys.executable, "-m", "cod3s", "serve", "--port", str(PORT), "--seconds", "300"])
    try:
        yield f"http://127.0.0.1:{PORT}"
    finally:
        server.terminate()
        server.wait()


def opened(page: Page, address: str, *, tries: int = 120) -> None:
    """Opens the page; a server that has just started needs a moment."""
    for left in reversed(range(tries)):
        try:
            page.goto(address)
            return
        except Exception as error:
            if not left or not re.search("ERR_CONNECTION_REFUSED", str(error)):
                raise
            page.wait_for_timeout(500)


def photograph(browser: Any, base: str, picture: Picture) -> Path:
    context = browser.new_context(reduced_motion="reduce", **picture.browser)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    opened(page, f"{base}/#{urlencode(picture.state)}")
    picture.act(page)
    page.get_by_text("largest bins").wait_for(timeout=PATIENCE)
    page.wait_for_timeout(500)
    path = DOCS / f"{picture.name}.png"
    page.screenshot(path=path)
    context.close()
    with Image.open(path) as image:
        palette = image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    palette.save(path, optimize=True)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[picture.name for picture in PICTURES])
    parser.add_argument("--url")
    options = parser.parse_args()
    with served(options.url) as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for picture in PICTURES:
            if options.only in (None, picture.name):
                path = photograph(browser, base, picture)
                print(f"{path.relative_to(DOCS.parent)}  {path.stat().st_size // 1024} KB")
        browser.close()


if __name__ == "__main__":
    main()
