"""Reword a bundle's bins: the counts stay, and the model's sentences replace those of the training corpus.

The new bundle can be published even if the training sentences cannot.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from cod3s.bins import BinsFile, build_bins, open_bins
from cod3s.bins.file import write_bins
from cod3s.bundle import NAME as FACTS
from cod3s.bundle import read_facts, write_facts
from cod3s.decode.decode_config import DecodeConfig
from cod3s.decode.generator import Generator
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError, Progress
from cod3s.io.disk import replaced_folder
from cod3s.records import Bin
from cod3s.signatures import load_code
from cod3s.signatures.signer import encode_sentences, open_encoder
from cod3s.train.pairs import read_rows

# Coverage matters more than quality: many bins of many sources, a narrow beam in each, no reranking.
WIDELY = DecodeConfig(
    k=20,
    signature_beam=40,
    rerank_signatures="none",
    min_hamming=0,
    beam=3,
    rerank_sentences="none",
    per_bin=3,
    bins_per_answer=1,
    faithful="none",
)


def choose_sources(bundle: Path, corpus: Path, number: int) -> dict[str, list[str]]:
    """Up to `number` sources of each relation of the bundle, spread over the whole corpus."""
    chosen = {}
    for relation in read_facts(bundle).models:
        sources = list(dict.fromkeys(read_rows(corpus, relation, "train").source))
        chosen[relation] = sources[:: max(1, len(sources) // number)][:number]
    return chosen


def reword(
    bundle: Path,
    output: Path,
    sources: Mapping[str, Sequence[str]],
    *,
    encoder: Encoder | None = None,
    samples: int = 3,
    progress: Progress = lambda _: None,
) -> dict[str, int]:
    """Write the bundle again with reworded bins; returns how many bins of each relation got sentences.

    `sources` are sentences of each relation for the model to answer; they are not kept.
    """
    generator = Generator(bundle, encoder=encoder)
    missing = set(generator.facts.models) - {name for name, texts in sources.items() if texts}
    if missing:
        raise Cod3sError(f"there are no sources for {' and '.join(sorted(missing))}")
    signer = encoder or open_encoder(generator.facts.encoder)
    code, _ = load_code(bundle / "code")
    worded = {}
    with replaced_folder(output, FACTS) as partial, TemporaryDirectory() as scratch:
        shutil.copytree(bundle, partial, dirs_exist_ok=True)
        for relation in generator.facts.models:
            sentences = _write(generator, relation, sources[relation], progress)
            build_bins(
                Path(scratch) / relation, encode_sentences(signer, sentences), code, signer.id, samples=samples
            )
            path = Path("bins") / f"{relation}.sqlite"
            with open_bins(bundle / path) as counted, open_bins(Path(scratch) / relation) as written:
                write_bins(partial / path, counted.facts, _reworded(counted, written))
                filled = {row.signature for row in written.bins()}
                worded[relation] = sum(row.signature in filled for row in counted.bins())
        write_facts(partial, replace(read_facts(bundle), medoids="model"))
    return worded


def _write(generator: Generator, relation: str, sources: Sequence[str], progress: Progress) -> Iterator[str]:
    """Every distinct sentence that the model writes for the sources."""
    seen: set[str] = set()
    for answers in generator.generate_many(sources, relation, options=WIDELY):
        progress(1)
        for answer in answers:
            if answer.text not in seen:
                seen.add(answer.text)
                yield answer.text


def _reworded(counted: BinsFile, written: BinsFile) -> Iterator[Bin]:
    """The bins and inner nodes of `counted`, with the sentences of `written`.

    A bin without an answer gets the medoid of the smallest node above it that has one: as near as the model's
    sentences come.
    """
    depth = min(counted.facts.tree_depth, counted.facts.bits - 1)
    rows = {
        row.signature: row for row in chain(written.tree(min(depth, written.facts.tree_depth)), written.bins())
    }
    for row in chain(counted.tree(depth), counted.bins()):
        lengths = range(len(row.signature), -1, -1)
        words = next(rows[start] for length in lengths if (start := row.signature[:length]) in rows)
        own_samples = words.samples if words.signature == row.signature else ()
        yield Bin(row.signature, row.count, words.medoid, own_samples)
