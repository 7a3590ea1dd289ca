"""`cod3s generate`: k answers that mean different things."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.options import BundleOption, ColumnOption, JsonOption, seed_option
from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.errors import Cod3sError, Progress, UsageError
from cod3s.records import Answer, AnswerSet
from cod3s.text import settings_line

if TYPE_CHECKING:
    from cod3s.decode.generator import Generator

_SHOWN = (
    "bundle",
    "rerank_signatures",
    "min_hamming",
    "search",
    "beam",
    "samples",
    "top_k",
    "rerank_sentences",
    "seed",
)
_OTHER_SEARCH = {"beam": ("samples", "top_k"), "sample": ("beam",)}  # options that have no part in a search
_STAGE_1, _STAGE_2, _CHECK = "Stage 1, signatures", "Stage 2, sentences", "What the answers turned out to mean"

SystemOption = Annotated[
    str, typer.Option("--system", help="cod3s, cod3s-mmi-mmi-rs, s2s, s2s-rs, dbs, dpc, …: see docs/decoding.md.")
]
InputOption = Annotated[
    Path | None, typer.Option("--input", "-i", help="Read sources from a file, or - for stdin; streamed.")
]
SignatureSearchOption = Annotated[
    str | None, typer.Option("--signature-search", help="beam or exact.", rich_help_panel=_STAGE_1)
]
SignatureBeamOption = Annotated[
    int | None, typer.Option("--signature-beam", help="Signatures to rank; 100.", rich_help_panel=_STAGE_1)
]
RerankSignaturesOption = Annotated[
    str | None, typer.Option("--rerank-signatures", help="mmi, prior or none.", rich_help_panel=_STAGE_1)
]
MinHammingOption = Annotated[
    int | None,
    typer.Option(
        "--min-hamming", help="Signatures differ in more bits than this; 2. 0 is off.", rich_help_panel=_STAGE_1
    ),
]
ApartOption = Annotated[
    str | None,
    typer.Option("--apart", help="If too few differ so: relax, refill or strict.", rich_help_panel=_STAGE_1),
]
SignatureOption = Annotated[
    list[str] | None,
    typer.Option("--signature", help="Write in this bin; repeat it.", rich_help_panel=_STAGE_1),
]
LikeOption = Annotated[
    list[str] | None,
    typer.Option("--like", help="Write in the bin of this sentence; repeat it.", rich_help_panel=_STAGE_1),
]
SearchOption = Annotated[str | None, typer.Option("--search", help="beam or sample.", rich_help_panel=_STAGE_2)]
BeamOption = Annotated[
    int | None,
    typer.Option(
        "--beam", help="Width of the beam, 20, or how many samples, 40 (s2s: 30).", rich_help_panel=_STAGE_2
    ),
]
TopKOption = Annotated[
    int | None,
    typer.Option("--top-k", help="Sample among this many tokens; 40 (s2s: 30).", rich_help_panel=_STAGE_2),
]
PenaltyOption = Annotated[
    float | None,
    typer.Option(
        "--diversity-penalty",
        help="dbs: what a token costs that another group took; 0.5.",
        rich_help_panel=_STAGE_2,
    ),
]
TemperatureOption = Annotated[
    float | None, typer.Option("--temperature", help="Of sampling; 1.", rich_help_panel=_STAGE_2)
]
RerankSentencesOption = Annotated[
    str | None, typer.Option("--rerank-sentences", help="mmi or none.", rich_help_panel=_STAGE_2)
]
PerBinOption = Annotated[
    int | None, typer.Option("--per-bin", help="Answers of each bin; 1.", rich_help_panel=_STAGE_2)
]
SeedOption = Annotated[int | None, seed_option("Of sampling; 1234.", rich_help_panel=_STAGE_2)]
FreshOption = Annotated[
    bool | None,
    typer.Option(
        "--fresh/--any",
        help="Put answers that only repeat the source or themselves last, or leave them; fresh.",
        rich_help_panel=_STAGE_2,
    ),
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Sign the answers and compare with their bins.", rich_help_panel=_CHECK)
]
FaithfulOption = Annotated[
    str | None,
    typer.Option(
        "--faithful",
        help="weigh, rerank or filter by how near they are, or none; auto weighs where the bundle can sign.",
        rich_help_panel=_CHECK,
    ),
]


def register(app: typer.Typer) -> None:
    app.command("generate", epilog='Example: cod3s generate effect "the tenant misplaced his keys" -k 5')(generate)


def generate(
    relation: Annotated[str, typer.Argument(help="A relation of the bundle, such as effect or cause.")],
    sources: Annotated[list[str] | None, typer.Argument(help="Sentences to answer.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 10,
    bundle: BundleOption = None,
    input: InputOption = None,
    column: ColumnOption = None,
    system: SystemOption = "cod3s",
    preset: Annotated[str, typer.Option("--preset", help="default or paper: the options not given.")] = "default",
    signature_search: SignatureSearchOption = None,
    signature_beam: SignatureBeamOption = None,
    rerank_signatures: RerankSignaturesOption = None,
    min_hamming: MinHammingOption = None,
    apart: ApartOption = None,
    signature: SignatureOption = None,
    like: LikeOption = None,
    search: SearchOption = None,
    beam: BeamOption = None,
    top_k: TopKOption = None,
    diversity_penalty: PenaltyOption = None,
    temperature: TemperatureOption = None,
    rerank_sentences: RerankSentencesOption = None,
    fresh: FreshOption = None,
    per_bin: PerBinOption = None,
    seed: SeedOption = None,
    check: CheckOption = False,
    faithful: FaithfulOption = None,
    json: JsonOption = False,
) -> None:
    """Answer each source k times, each time in another semantic bin."""
    from cod3s.decode.config import find_preset
    from cod3s.decode.generator import load
    from cod3s.decode.systems import find_system
    from cod3s.files.sentences import read_sentences

    if column and input is None:
        raise UsageError("--column is for the tables that --input names", hint="add --input FILE")
    if not sources and input is None:
        raise UsageError("there is no source", hint=f'give one: cod3s generate {relation} "it rained all day"')
    given = {
        "signature_search": signature_search,
        "signature_beam": signature_beam,
        "rerank_signatures": rerank_signatures,
        "min_hamming": min_hamming,
        "apart": apart,
        "search": search,
        "beam": beam,
        "samples": beam,
        "baseline_beam": beam,
        "top_k": top_k,
        "baseline_top_k": top_k,
        "diversity_penalty": diversity_penalty,
        "temperature": temperature,
        "rerank_sentences": rerank_sentences,
        "per_bin": per_bin,
        "seed": seed,
        "fresh": fresh,
        "faithful": faithful,
    }
    values = {name: value for name, value in given.items() if value is not None}
    find_system(system).require_undecided(values)
    options = find_preset(preset).with_values(k=k, check=check, **values)
    generator = load(bundle)
    chosen = _chosen_bins(generator, signature or [], like or [])
    skipped: list[int] = []
    stream = chain(sources or [], read_sentences(input, column, skipped.append) if input else [])
    given_to = ((source, chosen) for source in stream)
    with progress("sources", len(sources or []) if input is None else None) as advance:
        found = generator.generate_many(given_to, relation, system=system, options=options)
        answered = _print_all(found, advance, json)
    if skipped:
        say(f"{len(skipped)} lines of {input} with nothing visible in them were skipped")
    if not answered:
        raise Cod3sError(f"{input} holds no sentence")


def _print_all(sets: Iterator[AnswerSet], advance: Progress, json: bool) -> int:
    """Print each source's answers when they are there, and a remark once; how many sources there were."""
    said: set[str] = set()
    answered = 0
    for found in sets:
        answered += 1
        advance(1)
        for remark in found.remarks:
            if remark not in said:
                say(f"{found.source[:60]}: {remark}")
        said.update(found.remarks)
        print_json(asdict(found)) if json else _print_answers(found)
        sys.stdout.flush()
    return answered


def _chosen_bins(generator: "Generator", signatures: Sequence[str], like: Sequence[str]) -> list[str] | None:
    """The bins that the user names, None where stage 1 is to infer them."""
    wanted = [*signatures, *(generator.signer.signatures(like) if like else [])]
    return wanted or None


def _print_answers(found: AnswerSet) -> None:
    signed = any(answer.signature for answer in found.answers)
    checked = any(answer.realised for answer in found.answers)
    columns = ["#", "answer", "score"]
    columns += ["signature", "sentences", "its bin is like"] if signed else []
    held = any(answer.constraint for answer in found.answers)
    columns += ["made to hold"] if held else []
    columns += ["off by" if signed else "realised"] if checked else []

    def row(number: int, answer: Answer) -> list[str | int]:
        cells: list[str | int] = [number, answer.text, f"{answer.score:.3f}"]
        cells += [answer.signature, answer.count, answer.medoid] if signed else []
        cells += [answer.constraint] if held else []
        off = "" if answer.hamming is None else answer.hamming
        return cells + ([off if signed else answer.realised] if checked else [])

    rows = [row(number, answer) for number, answer in enumerate(found.answers, 1)]
    hidden = _OTHER_SEARCH[str(found.settings["search"])]
    shown = {name: value for name, value in found.settings.items() if name in _SHOWN and name not in hidden}
    settings = {"system": found.system, **shown}
    print_table(f"{found.relation} of: {found.source}", columns, rows, settings_line(settings))
