"""Every reader of files that a user or a stranger may have made, with valid files for it and how it is called."""

import gzip
import io
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cod3s.bins import open_bins
from cod3s.bundle import open_vocabulary, read_facts, verify
from cod3s.corpus.manifest import load_manifest
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.questions import read_questions
from cod3s.corpus.related_words import build_word_graph
from cod3s.corpus.relations import EFFECT
from cod3s.corpus.sift import Sifter
from cod3s.critic.features import FEATURES
from cod3s.critic.judge import Critic, load_critic, save_critic
from cod3s.decode.word_graph import open_word_graph
from cod3s.evaluate.items import read_data
from cod3s.evaluate.outputs import read_outputs
from cod3s.harvest.documents import read_pieces
from cod3s.io.tables import read_sentences
from cod3s.models import open_models
from cod3s.signatures import load_code
from cod3s.study.design import Design, make_study
from cod3s.study.exchange import check_rows, read_mturk, read_ratings
from cod3s.study.folder import read_items, read_study

Files = Mapping[str, bytes]

PAIRS = [(f"the lamp {n} fell", f"the rug {n} caught fire", "so" if n % 2 else "because") for n in range(60)]
COPA = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE copa-corpus SYSTEM "copa.dtd">
<copa-corpus version="1.0">
<item id="1" asks-for="cause" most-plausible-alternative="1">
<p>The kettle whistled.</p><a1>The water boiled.</a1><a2>The cup was blue.</a2></item>
<item id="2" asks-for="effect" most-plausible-alternative="2">
<p>The rope snapped &amp; frayed.</p><a1>The sky was clear.</a1><a2>The swing came down.</a2></item>
</copa-corpus>
"""


@dataclass(frozen=True)
class Reader:
    """Valid files, the names of those to damage (all, if none is named), and a call that reads all of them."""

    name: str
    files: Files
    read: Callable[[Path], object]
    damaged: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        return self.damaged or tuple(self.files)


def make_readers(bundle: Path, corpus: Path, scratch: Path) -> list[Reader]:
    """All readers; the tiny bundle and corpus give the files that take training to make."""
    return [
        *_question_readers(),
        *_pair_readers(),
        *_text_readers(),
        *_bundle_readers(bundle, scratch),
        Reader("corpus manifest", {"manifest.json": (corpus / "manifest.json").read_bytes()}, _read_manifest),
        Reader("word graph", {"words.npz": _word_graph(corpus, scratch)}, _read_word_graph),
        *_study_readers(scratch),
    ]


def _question_readers() -> Iterable[Reader]:
    copa = {"premise": "It rained.", "choice1": "It is wet.", "choice2": "It is dry.", "question": "effect"}
    ecare = {"premise": "It rained.", "hypothesis1": "It is wet.", "hypothesis2": "It is dry.", "ask-for": "cause"}
    yield Reader("COPA XML", {"copa.xml": COPA}, lambda folder: read_questions(folder / "copa.xml"))
    for name, record in (
        ("SuperGLUE JSONL", {**copa, "label": 0, "idx": 3}),
        ("e-CARE JSONL", {**ecare, "label": 1, "index": "x"}),
    ):
        lines = _json_lines([record] * 3)
        yield Reader(name, {"set.jsonl": lines}, lambda folder: read_data(folder / "set.jsonl"))


def _pair_readers() -> Iterable[Reader]:
    header = ("cause", "effect", "order")
    rows = [header, *PAIRS]
    tsv = "".join("\t".join(row) + "\n" for row in rows).encode()
    text = {
        "pairs.tsv": tsv,
        "pairs.csv": "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows).encode(),
        "pairs.jsonl": _json_lines(dict(zip(header, row, strict=True)) for row in PAIRS),
        "because_mode/a.txt": "".join(f"because\t{effect}\t{cause}\n" for cause, effect, _ in PAIRS).encode(),
        "pairs.tsv.gz": gzip.compress(tsv, mtime=0),
        "pairs.parquet": _parquet(header, PAIRS),
    }
    for name, content in text.items():
        yield Reader(f"pairs, {name.removeprefix('pairs')}", {name: content}, _pair_reader(name))


def _pair_reader(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> None:
        for bad_rows in ("skip", "stop"):
            config = PrepareConfig(filter="none", bad_rows=bad_rows)
            Sifter(config)(folder / name, EFFECT, folder / "part")

    return read


def _text_readers() -> Iterable[Reader]:
    text = "".join(f"{cause}. So {effect}.\n" for cause, effect, _ in PAIRS).encode()
    for name, content in {
        "s.txt": text,
        "s.txt.gz": gzip.compress(text),
    }.items():
        yield Reader(f"sentences, {name[1:]}", {name: content}, _sentence_reader(name))
    table = _json_lines({"text": cause, "id": 1} for cause, _, _ in PAIRS)
    for name, content in {"t.jsonl": table, "t.parquet": _parquet(("text",), [row[:1] for row in PAIRS])}.items():
        yield Reader(f"documents, {name[1:]}", {name: content}, _document_reader(name))
    answers = [{"text": effect, "score": -1.0, "signature": "0101"} for _, effect, _ in PAIRS[:3]]
    outputs = [{"source": cause, "relation": "effect", "answers": answers} for cause, _, _ in PAIRS[:5]]
    yield Reader(
        "outputs", {"outputs.jsonl": _json_lines(outputs)}, lambda folder: read_outputs(folder / "outputs.jsonl")
    )
    sources = b"source\trelation\ttarget\n" + b"it rained\teffect\tit is wet\n" * 5
    yield Reader(
        "evaluation table", {"sources.tsv": sources}, lambda folder: read_data(folder / "sources.tsv", "cause")
    )


def _sentence_reader(name: str) -> Callable[[Path], object]:
    return lambda folder: sum(1 for _ in read_sentences(folder / name))


def _document_reader(name: str) -> Callable[[Path], object]:
    return lambda folder: sum(1 for _ in read_pieces(folder / name, column="text"))


def _bundle_readers(bundle: Path, scratch: Path) -> Iterable[Reader]:
    files = {
        path.relative_to(bundle).as_posix(): path.read_bytes() for path in bundle.rglob("*") if path.is_file()
    }
    code = {name: content for name, content in files.items() if name.startswith("code/")}
    model = {name: content for name, content in files.items() if name.startswith("models/")}
    yield Reader("bundle.json", files, _open_bundle, ("bundle.json",))
    yield Reader("bundle, any file", files, _open_bundle, tuple(set(files) - {"bundle.json", "MODEL_CARD.md"}))
    yield Reader("bins", {"bins.sqlite": _few_bins(scratch, files["bins/effect.sqlite"])}, _read_bins)
    yield Reader("code", code, lambda folder: load_code(folder / "code"))
    yield Reader("tokens.model", files, _read_pieces, ("tokens.model",))
    pieces = {**files, "tokens.model": _tokenizer(scratch, ("<unk>", "</s>", "<pad>"))}
    yield Reader("tokens.model as JSON", pieces, _read_pieces, ("tokens.model",))
    unchecked = {**files, "bundle.json": _with_facts(files["bundle.json"], files={})}
    yield Reader("engine without checksums", unchecked, _run, tuple(model))
    critic = Critic(dict.fromkeys(FEATURES, 0.5), 0.1, 0.2, "static", {"pairs": 100})
    save_critic(scratch / "critic", critic)
    yield Reader("critic.json", {"critic.json": (scratch / "critic/critic.json").read_bytes()}, load_critic)


def _open_bundle(folder: Path) -> None:
    """What generation does first, as far as it can without running the models."""
    models = open_models(folder, threads=1)
    verify(folder, models.facts)
    load_code(folder / "code")
    for relation in models.facts.models:
        models.sentence(relation)
        if bins := models.bins(relation):
            bins.close()


def _run(folder: Path) -> None:
    """Open the engine, and search with what it opened."""
    models = open_models(folder, threads=1)
    for relation in models.facts.models:
        role = models.sentence(relation)
        role.engine.search([role.request("the baker lost the key")], beam=2, max_tokens=4)


def _read_bins(folder: Path) -> None:
    with open_bins(folder / "bins.sqlite") as bins:
        largest = [*bins.largest(5), *bins.bins(), *bins.tree(bins.facts.tree_depth)]
        bins.find(bin.signature for bin in largest)
        bins.neighbors(largest[0].signature if largest else "")


def _read_pieces(folder: Path) -> None:
    vocabulary = open_vocabulary(folder / "tokens.model", read_facts(folder))
    vocabulary.decode_text(vocabulary.encode_text("the baker lost the key, at home"))


def _read_manifest(folder: Path) -> None:
    load_manifest(folder)


def _read_word_graph(folder: Path) -> None:
    open_word_graph(folder / "words.npz").related("the baker lost the key", 5)


def _study_readers(scratch: Path) -> Iterable[Reader]:
    outputs = scratch / "outputs.jsonl"
    rows = [{"source": cause, "relation": "effect", "answers": [effect]} for cause, effect, _ in PAIRS[:4]]
    outputs.write_bytes(_json_lines(rows))
    made = make_study(scratch / "study", [outputs], None, Design(raters_per_item=1, per_rater=4, checks=1))
    items = [item.id for item in made.items]
    study = {name: (scratch / "study" / name).read_bytes() for name in ("study.json", "items.jsonl")}
    ratings = [{"rater": "ada", "item": item, "score": 3, "seconds": 2.5} for item in items]
    cells = [",".join(map(str, row.values())) for row in ratings]
    slots = ",".join(f"Input.id_{n},Answer.score_{n}" for n in range(1, 3))
    hits = f"WorkerId,AssignmentId,WorkTimeInSeconds,{slots}\nada,7,40,{items[0]},3,{items[1]},4\n"

    def checked(read: Callable[[Path], Iterable[Any]], name: str) -> Callable[[Path], object]:
        return lambda folder: check_rows(read(folder / name), made.study, made.items)

    yield Reader("study", study, lambda folder: (read_study(folder), read_items(folder)))
    for name, content, read in (
        ("ratings.csv", "\n".join(["rater,item,score,seconds", *cells]).encode(), read_ratings),
        ("ratings.jsonl", _json_lines(ratings), read_ratings),
        ("mturk.csv", hits.encode(), read_mturk),
    ):
        yield Reader(f"study, {name}", {name: content}, checked(read, name))


def _json_lines(records: Iterable[Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _parquet(names: Iterable[str], rows: Iterable[Iterable[str]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = io.BytesIO()
    pq.write_table(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), written)
    return written.getvalue()


def _word_graph(corpus: Path, scratch: Path) -> bytes:
    build_word_graph(corpus, "effect", scratch / "words.npz", min_pairs=1)
    return (scratch / "words.npz").read_bytes()


def _tokenizer(scratch: Path, special: Sequence[str]) -> bytes:
    """A small tokenizer of BERT's kind."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token=special[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    texts = [f"{cause}, {effect}" for cause, effect, _ in PAIRS]
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=120, special_tokens=[*special]))
    tokenizer.save(str(scratch / "tokenizer.json"))
    return (scratch / "tokenizer.json").read_bytes()


def _few_bins(scratch: Path, content: bytes) -> bytes:
    """The same bins without most of those below the fourth bit: a small file is read more often."""
    path = scratch / "bins.sqlite"
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM bins WHERE length(signature) > 4 AND signature NOT LIKE '0101%'")
    with closing(sqlite3.connect(path)) as database:
        database.execute("VACUUM")
    return path.read_bytes()


def _with_facts(facts: bytes, **changes: Any) -> bytes:
    return json.dumps({**json.loads(facts), **changes}).encode()
