"""Copy a bundle, with some layers of its language models rounded to 31 levels, which take less space.

    python recipes/coarsen_layers.py BUNDLE -o SMALLER --layers 4-6,15-17

Layers differ in how much they lose by it: docs/measured/training.md compares them.
"""

import argparse
import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np

from cod3s.bundle import NAME, read_facts, write_facts
from cod3s.encode.engine_file import EngineFile, read_engine_file
from cod3s.encode.weights import nearest_levels
from cod3s.io.disk import replaced_folder
from cod3s.model.parts import model_files, split_weights

LEVELS = 15  # on either side of zero
INT8 = 127


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--layers", type=layer_numbers, required=True, help="such as 4-6,15-17; the first is 0")
    options = parser.parse_args()
    facts = read_facts(options.bundle)
    with replaced_folder(options.output, NAME) as partial:
        shutil.copytree(options.bundle, partial, dirs_exist_ok=True)
        for index in sorted(partial.glob("models/*/model.bin.json")):
            coarsen(index.parent, options.layers)
        write_facts(partial, facts)


def layer_numbers(text: str) -> list[int]:
    """The layers that a list of numbers and ranges names."""
    ranges = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [layer for ends in ranges for layer in range(ends[0], ends[-1] + 1)]


def coarsen(folder: Path, layers: list[int]) -> None:
    """Round the matrices of these layers, and write the weights anew."""
    weights = BytesIO(model_files(folder)["model.bin"])
    file = read_engine_file(weights.getbuffer(), str(folder / "model.bin"))
    for name in matrices(file, layers):
        rows, scales = file.stored(name), file.scales(name)
        rounded = nearest_levels(rows.astype(np.float32), LEVELS)
        growth = INT8 / np.abs(rounded).max(axis=1).clip(1e-12)
        rows[:] = np.rint(rounded * growth[:, None])
        scales *= growth
    del file, rows, scales  # which are parts of the weights
    for part in folder.glob("model.bin.*"):
        part.unlink()
    (folder / "model.bin").write_bytes(weights.getvalue())
    split_weights(folder)


def matrices(file: EngineFile, layers: list[int]) -> Iterator[str]:
    """The weights of these layers that are stored in int8."""
    prefixes = tuple(f"decoder/layer_{layer}/" for layer in layers)
    for name in file.variables:
        if name.startswith(prefixes) and file.scales(name) is not None:
            yield name


if __name__ == "__main__":
    main()
