"""Remove the words after `console` and `text` that only the tests understand, before MkDocs reads a page."""

import re
from typing import Any

_MARKED_FENCE = re.compile(r"^```(console|text) [ a-z]+$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _MARKED_FENCE.sub(r"```\1", markdown)
