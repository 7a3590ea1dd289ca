"""Sources: what a user wants answered, checked and cut into batches. Texts in, clean texts out."""

from collections.abc import Iterable, Iterator, Sequence

from cod3s.errors import SentenceError
from cod3s.text import clean

MAX_CHARACTERS = 10_000  # of a source: what is longer is no sentence, and a mistake
Given = Sequence[str]
"""The signatures that a user wants for one source, instead of stage 1."""


def check_source(source: str) -> str:
    """The source on one clean line; what is empty, too long or no text is a clear error."""
    if isinstance(source, str) and len(source) > MAX_CHARACTERS:
        raise SentenceError(
            f"a source of {len(source)} characters was given, at most {MAX_CHARACTERS} are read",
            hint="give one sentence; a file with one a line goes to --input",
        )
    return clean(source)


def in_batches(
    sources: Iterable[str | tuple[str, Given | None]], size: int
) -> Iterator[list[tuple[str, Given | None]]]:
    """The sources with their signatures, `size` at a time; before one that cannot be read, those there are."""
    batch: list[tuple[str, Given | None]] = []
    for number, one in enumerate(sources, 1):
        source, given = one if isinstance(one, tuple) else (one, None)
        try:
            batch.append((check_source(source), given))
        except SentenceError as error:
            if batch:
                yield batch
            raise SentenceError(f"source {number}: {error.message}", error.hint) from error
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
