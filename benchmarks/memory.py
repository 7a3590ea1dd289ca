"""Does memory grow with the number of inputs? One call on many made-up sources, its resident memory as it goes.

    python benchmarks/memory.py BUNDLE 10000

By the command line's own way: a file given to --input, read and answered as it is streamed.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from side_by_side import made_up_sentences

OPTIONS = ["-k", "3", "--beam", "4", "--signature-beam", "10", "--json"]


def resident_mb(process: int) -> float:
    """What the process holds in memory now, as Linux counts it."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main(bundle: str, inputs: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        sources = Path(scratch) / "sources.txt"
        sources.write_text("\n".join(made_up_sentences(inputs, seed=1)) + "\n")
        command = ["generate", "effect", "--bundle", bundle, "--input", str(sources), *OPTIONS]
        process = subprocess.Popen(
            [sys.executable, "-m", "cod3s", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        marks = {max(1, inputs * share // 100) for share in (1, 5, 10, 25, 50, 75, 100)}
        start = time.perf_counter()
        print("| answered | resident MB | seconds |\n|---|---|---|")
        for answered, _ in enumerate(process.stdout, start=1):
            if answered in marks:
                seconds = time.perf_counter() - start
                print(f"| {answered} | {resident_mb(process.pid):.0f} | {seconds:.0f} |", flush=True)
        if process.wait():
            raise SystemExit(f"generate ended with {process.returncode}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
