"""The picture of docs/study.md: a small study is made and served, and its page photographed, wide and on a phone.

    pip install '.[study,test]'     # and a `chromium` on the path
    python benchmarks/study_screenshot.py

Writes docs/study.png.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright

PICTURE = Path(__file__).parent.parent / "docs" / "study.png"
OUTPUTS = {
    "a": ["we ate by candlelight", "the soup stayed cold", "nobody could find the matches"],
    "b": ["we ate by candlelight", "I went to the store", "the neighbours came over"],
}
WIDE: dict[str, Any] = {"viewport": {"width": 820, "height": 560}}
PHONE: dict[str, Any] = {"viewport": {"width": 380, "height": 720}, "is_mobile": True, "has_touch": True}
GAP = 24
COLOURS = 64  # enough for letters and one accent, and a third of the bytes
PATIENCE = 120_000  # milliseconds: the machine may have other work


@contextmanager
def served_study(folder: Path) -> Iterator[str]:
    """The address of a new study's page."""
    for system, texts in OUTPUTS.items():
        record = {"source": "the power went out during dinner", "relation": "effect", "answers": texts}
        (folder / f"{system}.jsonl").write_text(json.dumps(record))
    cod3s = [sys.executable, "-m", "cod3s", "study"]
    name = ["--name", "Causes and effects", "--seed", "5"]
    subprocess.run([*cod3s, "new", folder, "-o", folder / "study", *name], check=True, capture_output=True)
    command = [*cod3s, "serve", str(folder / "study"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as server:
        try:
            assert server.stderr is not None
            yield server.stderr.readline().split()[1]
        finally:
            server.terminate()


def photograph(browser: Browser, address: str, file: Path, options: dict[str, Any]) -> Image.Image:
    """The third statement, after the first two were rated and the second was looked at again."""
    with browser.new_context(device_scale_factor=1, **options) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("button", name="Start rating").click()
        for place in (1, 2, 3):
            page.wait_for_timeout(400)  # the page takes no click in the first moment of a statement
            page.get_by_role("button", name="4 likely", exact=True).click()
            expect(page.locator("#count")).to_contain_text(f"{place + 1} of", timeout=PATIENCE)
        page.get_by_role("button", name="Back").click()
        expect(page.locator("#saving")).to_contain_text("You chose", timeout=PATIENCE)
        page.mouse.move(1, 1)
        page.wait_for_timeout(500)
        page.screenshot(path=file)
    return Image.open(file).convert("RGB")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, served_study(Path(name)) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        wide, phone = (
            photograph(browser, address, Path(name) / f"{number}.png", options)
            for number, options in enumerate((WIDE, PHONE))
        )
        browser.close()
    size = (wide.width + phone.width + 3 * GAP, max(wide.height, phone.height) + 2 * GAP)
    both = Image.new("RGB", size, "#d9d5cb")
    both.paste(wide, (GAP, (size[1] - wide.height) // 2))
    both.paste(phone, (wide.width + 2 * GAP, GAP))
    both.quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {both.width} x {both.height}, {PICTURE.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
