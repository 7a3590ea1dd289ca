"""The folder of a corpus: what is where in it, and whether it is finished.

While a corpus is being made, the results of the steps are in `.work` inside its folder; the manifest comes last.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cod3s.corpus.manifest import FORMAT, NAME, WORK, InputFile, Manifest, check_format, load_manifest
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.shards import NO_ENCODER, ShardTask
from cod3s.corpus.split import Shard
from cod3s.errors import Cod3sError
from cod3s.io.locations import Location
from cod3s.options import changed_values


@dataclass(frozen=True)
class CorpusFolder:
    """A corpus at `location`, made from `inputs` with `config`."""

    location: Location
    config: PrepareConfig
    inputs: list[InputFile]

    @property
    def work(self) -> Location:
        return self.location / WORK

    @property
    def plan(self) -> Location:
        """Written when the pairs are split: which shards there are, and what was counted."""
        return self.work / "plan.json"

    def part(self, relation: str, number: int) -> Location:
        """The sifted rows of a file: this with .parquet, its counts with .json."""
        return self.work / relation / f"part-{number:05d}"

    def unsigned(self, shard: Shard) -> Location:
        return self.work / f"{shard.name}.parquet"

    def task(self, shard: Shard) -> ShardTask:
        with_vectors = self.config.bins and shard.split == "train" and self.config.encoder != NO_ENCODER
        return ShardTask(
            name=shard.name,
            unsigned=self.unsigned(shard),
            signed=self.location / f"{shard.name}.parquet",
            facts=self.work / f"{shard.name}.json",
            vectors=self.work / f"{shard.name}.f32" if with_vectors else None,
        )

    def finished(self) -> Manifest | None:
        """The manifest, if the corpus is finished and complete; a different corpus in the folder is an error."""
        if not (self.location / NAME).exists():
            return None
        manifest = load_manifest(self.location)
        self._compare(asdict(manifest.config), [asdict(file) for file in manifest.inputs])
        for facts in manifest.relations.values():
            for file in [*facts.shards, *([facts.bins] if facts.bins else [])]:
                location = self.location / file.name
                if location.size() != file.bytes:
                    raise Cod3sError(
                        f"{location.url} is missing or damaged", hint="delete the folder and prepare again"
                    )
        return manifest

    def begin(self) -> None:
        """Record what is being made, or check that an unfinished run was making the same corpus."""
        record = self.work / "config.json"
        if record.exists():
            before = record.read_json()
            check_format(before.get("format", 1), self.location)
            self._compare(before["config"], before["inputs"])
        elif self.location.files():
            raise Cod3sError(
                f"{self.location.url} already contains files, but no corpus", hint="choose a new or empty folder"
            )
        else:
            inputs = [asdict(file) for file in self.inputs]
            record.write_json({"format": FORMAT, "config": asdict(self.config), "inputs": inputs})

    def finish(self, manifest: Manifest) -> None:
        (self.location / NAME).write_json(asdict(manifest))
        self.work.remove()

    def abandon(self) -> None:
        """Leave nothing behind, so that a corrected input can start over."""
        self.work.remove()
        if self.location.exists() and not self.location.files():
            self.location.remove()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder on this machine for temporary files: inside the corpus if that is local."""
        if self.work.local:
            self.work.local.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="scratch-", dir=self.work.local) as folder:
            yield Path(folder)

    def _compare(self, config: dict[str, Any], files: list[dict[str, Any]]) -> None:
        changed = changed_values(config, asdict(self.config))
        if files != [asdict(file) for file in self.inputs]:
            changed.append("the input files are different")
        if changed:
            raise Cod3sError(
                f"{self.location.url} was made with a different configuration: {'; '.join(changed)}",
                hint="choose another folder with -o, or delete this folder first",
            )
