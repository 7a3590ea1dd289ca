"""Files made to do harm: entity bombs, bombs of compressed text, names and links that lead out of a bundle.

    PYTHONPATH=benchmarks:tests python -m campaign.strangers

Each must be refused with a Cod3sError, within 10 seconds and 1 GiB.
"""

import argparse
import gzip
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

from campaign.guarded import Guarded, Try, refused_or_done
from campaign.material import bundle_and_corpus
from campaign.tally import Tally, parser, print_all
from cod3s.bins import open_bins
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.questions import read_questions
from cod3s.corpus.relations import EFFECT
from cod3s.corpus.sift import Sifter
from cod3s.evaluate.outputs import read_outputs
from cod3s.io.tables import read_sentences
from cod3s.models import open_models
from cod3s.signatures import load_code

_BOMB_BYTES = 2 << 30
_BLOCK_BYTES = 1 << 22
_SECRET = "/etc/passwd"
_ITEM = '<item id="1" asks-for="cause"><p>&{0};</p><a1>It rained.</a1><a2>It snowed.</a2></item>'


@dataclass(frozen=True)
class Trap:
    """A hostile file or bundle: `lay` makes it in an empty folder, `spring` reads it."""

    name: str
    lay: Callable[[Path], None]
    spring: Callable[[Path], object]


def traps(bundle: Path) -> list[Trap]:
    return [*_xml_traps(), *_bombs(), *_bundle_traps(bundle), *_binary_traps()]


def _xml_traps() -> Iterator[Trap]:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    definitions = {
        "entity bomb": f'[<!ENTITY l0 "ha">{laughs}]',
        "external entity": f'[<!ENTITY l11 SYSTEM "file://{_SECRET}">]',
        "parameter entity": f'[<!ENTITY % l11 SYSTEM "file://{_SECRET}">%l11;]',
        "undefined entity": 'SYSTEM "copa.dtd"',
    }
    for name, definition in definitions.items():
        text = f"<!DOCTYPE copa-corpus {definition}><copa-corpus>{_ITEM.format('l11')}</copa-corpus>"
        yield Trap(
            f"COPA: {name}",
            _writing("copa.xml", text.encode()),
            lambda folder: read_questions(folder / "copa.xml"),
        )


def _bombs() -> Iterator[Trap]:
    yield Trap("text bomb", _bomb("s.txt.gz", b"a"), lambda folder: [*read_sentences(folder / "s.txt.gz")])
    yield Trap("JSONL bomb", _bomb("o.jsonl.gz", b"["), lambda folder: read_outputs(folder / "o.jsonl.gz"))
    yield Trap("CSV bomb", _bomb("t.csv.gz", b'"'), lambda folder: [*read_sentences(folder / "t.csv.gz", "a")])
    yield Trap("COPA bomb", _bomb("c.xml.gz", b"<"), lambda folder: read_questions(folder / "c.xml.gz"))
    yield Trap("pairs bomb", _bomb("p.tsv.gz", b"a\t"), lambda folder: _read_pairs(folder / "p.tsv.gz"))


def _read_pairs(path: Path) -> None:
    Sifter(PrepareConfig())(path, EFFECT, path.parent / "part")


def _bundle_traps(bundle: Path) -> Iterator[Trap]:
    def edited(**changes: Callable[[Any], Any]) -> Callable[[Path], None]:
        def lay(folder: Path) -> None:
            copytree(bundle, folder / "bundle")
            facts = json.loads((folder / "bundle" / "bundle.json").read_text())
            facts |= {name: change(facts[name]) for name, change in changes.items()}
            (folder / "bundle" / "bundle.json").write_text(json.dumps(facts))

        return lay

    def linked(name: str, to: str) -> Callable[[Path], None]:
        def lay(folder: Path) -> None:
            edited(files=lambda files: {file: sha for file, sha in files.items() if file != name})(folder)
            path = folder / "bundle" / name
            if path.exists():
                path.replace(folder / "outside")
            path.symlink_to(folder / to)

        return lay

    relation = {"template": "{source}, so {target}", "inverse": ""}
    bundles = {
        "a file above it": edited(files=lambda files: {**files, "../outside": ""}),
        "an absolute file": edited(files=lambda files: {**files, _SECRET: ""}),
        "a file by backslashes": edited(files=lambda files: {**files, "..\\outside": ""}),
        "a model above it": edited(
            models=lambda models: {name: dict.fromkeys(models[name], "../x") for name in models}
        ),
        "an absolute model": edited(
            models=lambda models: {name: dict.fromkeys(models[name], "/x") for name in models}
        ),
        "a relation above it": edited(
            relations=lambda relations: {**relations, "../x": relation},
            models=lambda models: {**models, "../x": {}},
        ),
        "an encoder above it": edited(own_encoder=lambda _: "../x"),
        "a critic above it": edited(critic=lambda _: ".."),
        "a name without end": edited(files=lambda files: {**files, "a/" * 5000 + "a": ""}),
        "a link to a file": linked("tokens.model", "outside"),
        "a link to a folder": linked("models", "outside"),
        "a link to itself": linked("tokens.model", "bundle/tokens.model"),
        "a link to a secret": linked("source.json", _SECRET),
    }
    for name, lay in bundles.items():
        yield Trap(f"bundle: {name}", lay, lambda folder: open_models(folder / "bundle", threads=1))


def _binary_traps() -> Iterator[Trap]:
    def header(shape: str, kind: str) -> bytes:
        text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()

    facts = {"format": 1, "kind": "random", "seed": 1, "bits": 8, "dim": 4, "encoder": "static"}
    for name, content in {
        "huge array": header("(8, 10000000000)", "<f8"),
        "pickled array": header("(8, 4)", "|O") + b"c",
        "header without end": b"\x93NUMPY\x02\x00" + b"\xff" * 4,
    }.items():
        code = {"code.json": json.dumps(facts).encode(), "hyperplanes.npy": content, "thresholds.npy": content}
        yield Trap(f"code: {name}", _writing_all(code), load_code)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS content FROM n"

    def lay(folder: Path) -> None:
        with sqlite3.connect(folder / "bins.sqlite") as database:
            database.execute(f"CREATE VIEW facts AS {endless}")
            database.execute(f"CREATE VIEW bins AS {endless}")

    yield Trap("bins: an endless view", lay, lambda folder: open_bins(folder / "bins.sqlite"))


def _writing(name: str, content: bytes) -> Callable[[Path], None]:
    return _writing_all({name: content})


def _writing_all(files: dict[str, bytes]) -> Callable[[Path], None]:
    def lay(folder: Path) -> None:
        for name, content in files.items():
            (folder / name).write_bytes(content)

    return lay


def _bomb(name: str, text: bytes) -> Callable[[Path], None]:
    """A small file that becomes 2 GiB without a line end when it is unpacked: the same part again and again."""

    def lay(folder: Path) -> None:
        block = text * (_BLOCK_BYTES // len(text))
        (folder / name).write_bytes(gzip.compress(block) * (_BOMB_BYTES // _BLOCK_BYTES))

    return lay


def spring_all(bundle: Path, only: str = "") -> Tally:
    """Lay and spring every trap."""
    chosen = [trap for trap in traps(bundle) if only in trap.name]
    tally = Tally("files made to do harm")
    with tempfile.TemporaryDirectory() as scratch:
        for number, trap in enumerate(chosen):
            (Path(scratch) / str(number)).mkdir()
            trap.lay(Path(scratch) / str(number))

        def prepare() -> Try:
            return lambda number: refused_or_done(
                lambda: chosen[number].spring(Path(scratch) / str(number)), must_refuse=True
            )

        with Guarded(prepare) as attempt:
            for number, trap in enumerate(chosen):
                tally.count(trap.name, attempt(number))
    return tally


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    yield spring_all(bundle_and_corpus()[0], options.only)


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=1, seconds=60).parse_args())))
