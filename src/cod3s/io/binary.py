"""Recognise binary files by their first bytes, so that an error can say what a file really is."""

from cod3s.errors import FileFormatError

START_BYTES = 1 << 16
"""How much of a file is looked at: the names of an archive's first members are among these bytes."""

_EXPORT = (
    "save it as CSV: tables are read from .csv, .tsv, .jsonl (also with .gz) and .parquet, sentences from text"
)
_TEXT = "give a file of text"
_UNPACK = "unpack it first; of packed files, only .gz is read"
_RENAME = "give it a name that ends in {0}"

_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "a PDF document", "convert it to text first, for example with `pdftotext`"),
    (b"SQLite format 3\0", "an SQLite database", "export the table as CSV first"),
    (b"PAR1", "a Parquet file", _RENAME.format(".parquet")),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", _TEXT),
    (b"\xff\xd8\xff", "a JPEG image", _TEXT),
    (b"GIF8", "a GIF image", _TEXT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Word or Excel file (.doc, .xls)", _EXPORT),
    (b"\x1f\x8b", "a gzip file", _RENAME.format(".gz")),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", _UNPACK),
    (b"BZh", "a bzip2 file", _UNPACK),
    (b"\xfd7zXZ\0", "an xz file", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\x93NUMPY", "a NumPy array", _TEXT),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _EXPORT),
    (b"ARROW1", "an Arrow file", "save it as Parquet first"),
    (b"\x7fELF", "a program", _TEXT),
    (b"{\\rtf", "an RTF document", _EXPORT),
    (b"OggS\0", "an Ogg sound or video file", _TEXT),
    (b"fLaC\0", "a FLAC sound file", _TEXT),
    *((bytes((0x80, protocol)), "a Python pickle", _EXPORT) for protocol in range(2, 6)),
    *((bytes((0xFF, layer)), "an MP3 sound file", _TEXT) for layer in (0xFB, 0xFA, 0xF3, 0xF2)),
    (b"\xff\xfe", "UTF-16 text", "convert it with `iconv -f utf-16 -t utf-8`"),
    (b"\xfe\xff", "UTF-16 text", "convert it with `iconv -f utf-16 -t utf-8`"),
)
_SIGNATURES_BEFORE_NUL: tuple[tuple[bytes, str, str], ...] = (
    (b"ID3", "an MP3 sound file", _TEXT),
    (b"RIFF", "a WAV, AVI or WebP file", _TEXT),
    (b"MZ", "a Windows program", _TEXT),
)
"""Letters that text may start with, too, but not if a NUL byte comes later."""
_ZIP = b"PK\x03\x04"
_ARCHIVE_MEMBERS: tuple[tuple[bytes, str], ...] = (
    (b"xl/", "an Excel workbook (.xlsx)"),
    (b"word/", "a Word document (.docx)"),
    (b"ppt/", "a PowerPoint presentation (.pptx)"),
    (b"mimetypeapplication/vnd.oasis", "an OpenDocument file"),
    (b"mimetypeapplication/epub", "an EPUB book"),
)
"""The names of the first members of office documents, which are zip archives."""


def refuse_binary(start: bytes, name: str) -> None:
    """Raise an error if the first bytes of the file `name` are those of a binary format, or have a NUL byte."""
    refuse_formats(start, name)
    if b"\0" in start:
        hint = f"{_TEXT}; UTF-16 is converted with `iconv -f utf-16 -t utf-8`"
        raise FileFormatError(f"{name} is a binary file, but text is needed", hint=hint)


def refuse_formats(start: bytes, name: str) -> None:
    """Raise an error that says what the file `name` is if its first bytes are those of a binary format."""
    before_nul = _SIGNATURES_BEFORE_NUL if b"\0" in start else ()
    documents = [(_ZIP, kind, _EXPORT) for member, kind in _ARCHIVE_MEMBERS if member in start]
    for signature, kind, hint in (*_SIGNATURES, *before_nul, *documents, (_ZIP, "a zip archive", _UNPACK)):
        if start.startswith(signature):
            raise FileFormatError(f"{name} is {kind}, but text is needed", hint=hint)
