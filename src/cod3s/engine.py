"""Opens CTranslate2, the inference engine, without torch. Knows nothing about models."""

import sys
from functools import cache
from typing import Any


@cache
def ctranslate2() -> Any:
    """The `ctranslate2` module.

    Its package imports torch where torch happens to be installed, only to convert torch tensors, which this
    project never hands to it: seconds of start-up for nothing. Hiding torch for that one import avoids it.
    """
    hide = "torch" not in sys.modules
    if hide:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        import ctranslate2
    finally:
        if hide:
            del sys.modules["torch"]
    return ctranslate2
