"""Real headless Chromium for tests of pages; skips where there is none, and fails where CI runs the tests."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright


@contextmanager
def chromium() -> Iterator[Browser]:
    """The distribution's Chromium, driven by playwright."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        reason = "Chromium is not installed (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(f"{reason}; it has to be there in CI")
        pytest.skip(reason)
    with sync_playwright() as playwright:
        # Without a sandbox because tests may run as root, where Chromium refuses to have one.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
