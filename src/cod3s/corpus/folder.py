"""The folder of a corpus: what is where in it, whether it is finished, and whether it is the one asked for.

While a corpus is made, the results of the steps lie in `.work` inside its folder; the manifest comes last.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cod3s.corpus.config import PrepareConfig
from cod3s.corpus.manifest import (
    FORMAT,
    NAME,
    InputFile,
    Manifest,
    as_json,
    check_format,
    load_manifest,
)
from cod3s.corpus.shards import ShardTask
from cod3s.corpus.split import Shard
from cod3s.errors import Cod3sError
from cod3s.files.locations import Place


@dataclass(frozen=True)
class CorpusFolder:
    """A corpus at `place`, to be made from `inputs` with `config`."""

    place: Place
    config: PrepareConfig
    inputs: list[InputFile]

    @property
    def work(self) -> Place:
        return self.place / ".work"

    @property
    def plan(self) -> Place:
        """Written when the pairs are split: which shards there are, and what was counted."""
        return self.work / "plan.json"

    def part(self, relation: str, number: int) -> Place:
        """The sifted rows of one file: this with .parquet, its counts with .json."""
        return self.work / relation / f"part-{number:05d}"

    def unsigned(self, shard: Shard) -> Place:
        return self.work / f"{shard.name}.parquet"

    def task(self, shard: Shard, with_vectors: bool) -> ShardTask:
        return ShardTask(
            name=shard.name,
            unsigned=self.unsigned(shard),
            signed=self.place / f"{shard.name}.parquet",
            facts=self.work / f"{shard.name}.json",
            vectors=self.work / f"{shard.name}.f32" if with_vectors else None,
        )

    def finished(self) -> Manifest | None:
        """The manifest, if the corpus is there and whole; another corpus in its place is an error."""
        if not (self.place / NAME).exists():
            return None
        manifest = load_manifest(self.place)
        self._compare(asdict(manifest.config), [asdict(file) for file in manifest.inputs])
        for facts in manifest.relations.values():
            for made in [*facts.shards, *([facts.bins] if facts.bins else [])]:
                if (self.place / made.name).size() != made.bytes:
                    missing = (self.place / made.name).url
                    raise Cod3sError(f"{missing} is missing or damaged", hint="delete the folder, prepare again")
        return manifest

    def begin(self) -> None:
        """Note what is being made, or check that a run that was broken off was making the same."""
        begun = self.work / "config.json"
        if begun.exists():
            before = begun.read_json()
            check_format(before.get("format", 1), self.place)
            self._compare(before["config"], before["inputs"])
        elif self.place.files():
            raise Cod3sError(
                f"{self.place.url} already holds files, and no corpus", hint="choose a new or an empty folder"
            )
        else:
            inputs = [asdict(file) for file in self.inputs]
            begun.write_json({"format": FORMAT, "config": asdict(self.config), "inputs": inputs})

    def finish(self, manifest: Manifest) -> None:
        (self.place / NAME).write_json(as_json(manifest))
        self.work.remove()

    def abandon(self) -> None:
        """Leave nothing behind, so that a corrected input starts anew."""
        self.work.remove()
        if self.place.exists() and not self.place.files():
            self.place.remove()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder on this machine for what is spilled: inside the corpus, or a temporary one."""
        if self.work.local:
            self.work.local.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="scratch-", dir=self.work.local) as folder:
            yield Path(folder)

    def _compare(self, config: dict[str, Any], files: list[dict[str, Any]]) -> None:
        now = asdict(self.config)
        changed = [
            f"{name} was {config.get(name)!r}, is {value!r}"
            for name, value in now.items()
            if config.get(name) != value
        ]
        if files != [asdict(file) for file in self.inputs]:
            changed.append("the input files are other ones")
        if changed:
            raise Cod3sError(
                f"{self.place.url} was made with another configuration: {'; '.join(changed)}",
                hint="choose another folder with -o, or delete this one first",
            )
