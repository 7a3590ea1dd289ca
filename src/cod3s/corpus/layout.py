"""The folder of a corpus: what is where in it, and whether it is finished.

corpus/
  manifest.json                  what it was made from, how, and what it holds; written last
  RELATION/SPLIT-00000.parquet   shards of train, dev and test: source, target, source_signature, signature, order,
                                 pattern and corpus, all text; the rows of train are in random order
  RELATION/bins.sqlite           the bins of the targets of train
  code/                          the code that signed it
  .work/                         the results of the steps, while the corpus is being made
"""

import shutil
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
from cod3s.io.disk import read_json, write_json
from cod3s.options import changed_values


@dataclass(frozen=True)
class CorpusFolder:
    """A corpus at `path`, made from `inputs` with `config`."""

    path: Path
    config: PrepareConfig
    inputs: list[InputFile]

    @property
    def work(self) -> Path:
        return self.path / WORK

    @property
    def plan(self) -> Path:
        """Written when the pairs are split: which shards there are, and what was counted."""
        return self.work / "plan.json"

    def part(self, relation: str, number: int) -> Path:
        """The sifted rows of a file: this with .parquet, its counts with .json."""
        return self.work / relation / f"part-{number:05d}"

    def unsigned(self, shard: Shard) -> Path:
        return self.work / f"{shard.name}.parquet"

    def task(self, shard: Shard) -> ShardTask:
        with_vectors = self.config.bins and shard.split == "train" and self.config.encoder != NO_ENCODER
        return ShardTask(
            name=shard.name,
            unsigned=self.unsigned(shard),
            signed=self.path / f"{shard.name}.parquet",
            facts=self.work / f"{shard.name}.json",
            vectors=self.work / f"{shard.name}.f32" if with_vectors else None,
        )

    def finished(self) -> Manifest | None:
        """The manifest, if the corpus is finished and complete; a different corpus in the folder is an error."""
        if not (self.path / NAME).exists():
            return None
        manifest = load_manifest(self.path)
        self._compare(asdict(manifest.config), [asdict(file) for file in manifest.inputs])
        for facts in manifest.relations.values():
            for file in [*facts.shards, *([facts.bins] if facts.bins else [])]:
                path = self.path / file.name
                if not path.is_file() or path.stat().st_size != file.bytes:
                    raise Cod3sError(f"{path} is missing or damaged", hint="delete the folder and prepare again")
        return manifest

    def begin(self) -> None:
        """Record what is being made, or check that an unfinished run was making the same corpus."""
        record = self.work / "config.json"
        if record.exists():
            before = read_json(record)
            check_format(before.get("format", 1), self.path)
            self._compare(before["config"], before["inputs"])
        elif self.path.is_dir() and any(not file.name.startswith(".") for file in self.path.iterdir()):
            raise Cod3sError(
                f"{self.path} already contains files, but no corpus", hint="choose a new or empty folder"
            )
        else:
            inputs = [asdict(file) for file in self.inputs]
            write_json(record, {"format": FORMAT, "config": asdict(self.config), "inputs": inputs})

    def finish(self, manifest: Manifest) -> None:
        for killed in self.path.rglob(".*.part"):
            killed.unlink(missing_ok=True)
        write_json(self.path / NAME, asdict(manifest))
        shutil.rmtree(self.work)

    def abandon(self) -> None:
        """Leave nothing behind, so that a corrected input can start over."""
        shutil.rmtree(self.work, ignore_errors=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for temporary files, inside the corpus."""
        self.work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="scratch-", dir=self.work) as folder:
            yield Path(folder)

    def _compare(self, config: dict[str, Any], files: list[dict[str, Any]]) -> None:
        changed = changed_values(config, asdict(self.config))
        if files != [asdict(file) for file in self.inputs]:
            changed.append("the input files are different")
        if changed:
            raise Cod3sError(
                f"{self.path} was made with a different configuration: {'; '.join(changed)}",
                hint="choose another folder with -o, or delete this folder first",
            )
