"""How far a command travels: the functions of cod3s that it runs through, and in how many files.

python benchmarks/call_path.py generate effect "the harbor froze"
python benchmarks/call_path.py select texts.txt -k 2
"""

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import cod3s

PACKAGE = str(Path(cod3s.__file__).parent)


class Trace:
    """The functions that were called, in the order of their calls in this thread."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.edges: set[tuple[str, str, str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name.startswith("<"):
            return
        self.functions.add((code.co_filename, code.co_name))
        caller = frame.f_back.f_code if frame.f_back else code
        if caller.co_filename.startswith(PACKAGE) and caller.co_filename != code.co_filename:
            self.edges.add((caller.co_filename, caller.co_name, code.co_filename, code.co_name))


def main() -> None:
    from cod3s.__main__ import main as run

    path = Trace()
    sys.argv = ["cod3s", *sys.argv[1:]]
    threading.setprofile(path)
    sys.setprofile(path)
    try:
        run()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    files = {file for file, _ in path.functions}
    print(f"{len(path.functions)} functions in {len(files)} files, {len(path.edges)} kinds of calls between files")


if __name__ == "__main__":
    main()
