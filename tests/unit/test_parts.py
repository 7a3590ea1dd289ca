"""Large files in parts."""

from pathlib import Path

import pytest

from cod3s.errors import FileFormatError
from cod3s.io import parts
from cod3s.io.parts import parts_of, read_whole, split_file


@pytest.mark.parametrize(("size", "number"), [(9, 0), (10, 0), (11, 2), (20, 2), (120, 12)])
def test_a_file_that_is_too_large_is_split_and_read_as_it_was(
    size: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 10)
    path, content = tmp_path / "model.bin", bytes(range(size))
    path.write_bytes(content)
    split_file(path)
    assert len(parts_of(path)) == number
    assert path.is_file() == (number == 0)
    assert read_whole(path) == content


def test_a_file_without_parts_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="no part of it"):
        read_whole(tmp_path / "model.bin")
