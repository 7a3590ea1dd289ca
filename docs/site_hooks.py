"""Remove the words after `console` that only the tests understand, before MkDocs reads a page."""

import re
from typing import Any

_MARKED_FENCE = re.compile(r"^```console [ a-z]+$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _MARKED_FENCE.sub("```console", markdown)
