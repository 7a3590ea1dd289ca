"""`cod3s study`: human plausibility studies, from the items to the report."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.evaluate import print_tables
from cod3s.cli.output import print_json, say
from cod3s.cli.parameters import ForceOption, JsonOption, seed_option
from cod3s.cli.serve import AllowHostOption
from cod3s.errors import Cod3sError, UsageError, require_all
from cod3s.io.disk import open_text, require_new
from cod3s.options import SEED, find_name

if TYPE_CHECKING:
    from cod3s.study.analysis import Analysis
    from cod3s.study.folder import Item, Study
    from cod3s.study.store import Store

OutputsArgument = Annotated[
    list[Path],
    typer.Argument(help="Files or folders of answers, or - for stdin: the JSON lines of `cod3s generate --json`."),
]
StudyArgument = Annotated[Path, typer.Argument(help="A study folder, made by `cod3s study new`.")]
DatabaseOption = Annotated[
    str, typer.Option(help="Where ratings are stored, such as postgresql://user@host/name; by default, in a file.")
]
EXPORTS = ("mturk", "prolific", "csv")
IMPORTS = ("mturk", "csv")


def new(
    outputs: OutputsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The study folder to create, new or empty.")],
    name: Annotated[str, typer.Option(help="The title that raters see; by default, the folder's name.")] = "",
    raters: Annotated[int, typer.Option(min=1, help="Raters per item; 4 in the paper.")] = 4,
    per_rater: Annotated[int, typer.Option(min=1, help="Items per rater, without checks.")] = 50,
    top: Annotated[
        list[str] | None, typer.Option(help="Rated answers per source: 3, or cod3s=10 for one system; repeatable.")
    ] = None,
    copa: Annotated[Path | None, typer.Option(help="Questions whose alternatives are mixed in.")] = None,
    gold: Annotated[
        int | None, typer.Option(min=1, help="Number of questions; by default, those that the outputs answer.")
    ] = None,
    checks: Annotated[int, typer.Option(min=0, help="Attention checks per rater.")] = 3,
    max_failed_checks: Annotated[int, typer.Option(min=0, help="Exclude raters who fail more checks.")] = 1,
    min_seconds: Annotated[
        float, typer.Option(min=0, help="Exclude raters whose median time per item is below this.")
    ] = 1.0,
    min_gold_gap: Annotated[
        float | None,
        typer.Option(help="Exclude raters who score right alternatives less than this above wrong ones."),
    ] = None,
    instructions: Annotated[Path | None, typer.Option(help="A file with what raters read first.")] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(help='Statement of your own relation: "reply={source} {target}"; repeatable.'),
    ] = None,
    code: Annotated[str, typer.Option(help="The completion code; by default, a random one.")] = "",
    seed: Annotated[int, seed_option("Seed for the order and all random choices.")] = SEED,
    json: JsonOption = False,
) -> None:
    """Create a blind study from stored outputs: every statement once, with systems, gold items and checks mixed.

    What you set here, such as the exclusion rule, cannot be changed later. The admin token is printed only once.
    """
    require_study()
    from cod3s.study.design import INSTRUCTIONS, Design, make_study, raters_needed
    from cod3s.study.folder import Exclusion

    text = INSTRUCTIONS
    if instructions is not None:
        with open_text(instructions) as stream:
            text = stream.read()
    design = Design(
        name=name,
        seed=seed,
        raters_per_item=raters,
        per_rater=per_rater,
        top=_tops(top or []),
        checks=checks,
        gold=gold,
        templates=_templates(template or []),
        instructions=text,
        completion_code=code,
        exclusion=Exclusion(max_failed_checks if checks else None, min_seconds or None, min_gold_gap),
    )
    new_study = make_study(output, outputs, copa, design)
    study, kinds = new_study.study, Counter(item.kind for item in new_study.items)
    needed = raters_needed(study, new_study.items)
    if json:
        record = {
            "study": str(output),
            "items": dict(kinds),
            "raters_per_item": study.raters_per_item,
            "per_rater": study.per_rater,
            "raters_needed": needed,
            "completion_code": study.completion_code,
            "admin_token": new_study.admin_token,
        }
        print_json(record)
        return
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in ("answer", "gold", "check") if kind in kinds)
    say(f"{output}: {len(new_study.items)} items ({counts}), {study.raters_per_item} raters per item")
    say(f"needs at least {needed} raters with {study.per_rater} items each")
    say(f"completion code: {study.completion_code}")
    say(f"admin token, shown only once: {new_study.admin_token}")
    say(f"next: cod3s study serve {output}")


def serve(
    study: StudyArgument,
    host: Annotated[
        str, typer.Option(help="Address to listen on; use 0.0.0.0 only behind an https proxy.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8001,
    allow_host: AllowHostOption = None,
    database: DatabaseOption = "",
    prolific: Annotated[
        bool, typer.Option("--prolific", help="Admit only raters who come through Prolific's link.")
    ] = False,
    admin_token: Annotated[
        bool, typer.Option("--admin-token", help="Print a new admin token, valid until this server stops.")
    ] = False,
) -> None:
    """Serve the pages of a study until ctrl-C; a rating is shown as saved only once it is on disk."""
    require_study()
    from cod3s.study.raters import new_token, token_hash
    from cod3s.study.server import ServerOptions, serve_study
    from cod3s.web.running import end_process

    token = new_token() if admin_token else ""
    options = ServerOptions(
        host=host,
        allowed_hosts=allow_host or (),
        prolific=prolific,
        admin_token_hash=token_hash(token) if token else "",
    )

    def announce(address: str) -> None:
        entry = "/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
        say(f"raters: {address}{entry if prolific else '/'}")
        say(f"progress: {address}/admin" + (f"#{token}" if token else " (asks for the admin token)"))
        say("ctrl-C to stop; every rating so far is saved")

    serve_study(study, port=port, options=options, database=database, announce=announce)
    end_process()


def export(
    study: StudyArgument,
    to: Annotated[str, typer.Option(help="mturk or prolific: a folder; csv: a file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder or file to write.")],
    per_hit: Annotated[int, typer.Option(min=1, help="mturk: statements per HIT, including checks.")] = 20,
    url: Annotated[str, typer.Option(help="prolific: the address where raters reach `cod3s study serve`.")] = "",
    database: DatabaseOption = "",
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Export a study to another platform, or its ratings without names.

    mturk: a page with variables and a CSV of HITs. prolific: the description of the study and a list of whom to
    pay (with Prolific ids). csv: every rating, with pseudonyms for raters.
    """
    find_name("format", to, EXPORTS)
    if output.resolve() == study.resolve():
        raise Cod3sError("an export into the study's folder could overwrite it", hint="choose another folder")
    require_new(output, force)
    from cod3s.study.exchange import write_mturk, write_prolific, write_ratings

    with open_study(study, database) as (opened, items, store):
        if to == "mturk":
            name, count = "HITs", write_mturk(output, opened, items, per_hit=per_hit)
        elif to == "prolific":
            name, count = "raters", write_prolific(output, opened, items, store, url)
        else:
            name, count = "ratings", write_ratings(output, opened, items, store)
    if json:
        print_json({"to": to, "output": str(output), name: count})
    else:
        say(f"{count} {name}: {output}")


def import_(
    study: StudyArgument,
    results: Annotated[Path, typer.Argument(help="A file of results.")],
    origin: Annotated[str, typer.Option("--from", help="mturk, or csv with rater, item, score, seconds.")],
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip rows that do not fit the study instead of importing nothing.")
    ] = False,
    database: DatabaseOption = "",
    json: JsonOption = False,
) -> None:
    """Import ratings from another platform, all or none; importing a file twice adds nothing."""
    find_name("format", origin, IMPORTS)
    from cod3s.study.exchange import import_ratings, read_mturk, read_ratings

    read = {"mturk": read_mturk, "csv": read_ratings}[origin]
    with open_study(study, database) as (opened, items, store):
        imported = import_ratings(store, opened, items, read(results), skip_bad=skip_bad)
    for row in imported.bad:
        say(f"skipped, {row}")
    if json:
        bad = [{"location": row.location, "reason": row.fault} for row in imported.bad]
        print_json({"ratings": imported.ratings, "added": imported.added, "raters": imported.raters, "bad": bad})
    else:
        say(
            f"{imported.ratings} ratings of {imported.raters} raters, {imported.added} of them new, "
            f"{len(imported.bad)} skipped"
        )


def analyse(
    study: StudyArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the page, the figure and the tables.")
    ] = None,
    simulate: Annotated[
        int | None, typer.Option(min=1, help="Rehearse: analyse the ratings of so many simulated raters instead.")
    ] = None,
    noise: Annotated[
        float, typer.Option(min=0, help="Standard deviation of a simulated rating, in scores.")
    ] = 0.8,
    careless: Annotated[int, typer.Option(min=0, help="How many simulated raters answer at random.")] = 0,
    seed: Annotated[int, seed_option("Seed for the bootstrap and the simulated raters.")] = SEED,
    database: DatabaseOption = "",
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Analyse the ratings: the paper's table 4 and figure 2, agreement, raters, and significant differences.

    Raters are excluded only by the rule that the study fixed before collection; the figures of everyone are shown
    as well. Simulated ratings are never stored, and the true figures behind them are printed.
    """
    require_all("study", "krippendorff", "scipy", "matplotlib", "jinja2")
    if output is not None:
        require_new(output, force)
    from cod3s.study.analysis import analyse as analyse_ratings
    from cod3s.study.folder import read_items, read_study
    from cod3s.study.raters import pseudonyms
    from cod3s.study.simulation import Crowd, simulate_ratings

    if simulate is None:
        with open_study(study, database) as (opened, items, store):
            names = pseudonyms(opened, store.raters())
            analysis = analyse_ratings(opened, items, store.ratings(), names=names, seed=seed)
    else:
        opened, items = read_study(study), read_items(study)
        crowd = Crowd(raters=simulate, noise=noise, careless=careless, seed=seed)
        simulation = simulate_ratings(opened, items, crowd)
        analysis = analyse_ratings(
            opened, items, simulation.ratings, names=simulation.names, simulated=simulation.levels, seed=seed
        )
    if output is not None:
        from cod3s.study.report import write_report

        say(f"report: {write_report(output, analysis)}")
    if json:
        print_json(analysis.record())
    else:
        _print(analysis)


def require_study() -> None:
    """Fail early if an optional library is missing."""
    require_all("study", "pyarrow", "sqlalchemy", "fastapi", "uvicorn")


@contextmanager
def open_study(folder: Path, database: str) -> Iterator[tuple["Study", "list[Item]", "Store"]]:
    """The study in `folder`, its items, and its open store of ratings."""
    require_study()
    from cod3s.study.folder import read_items, read_study
    from cod3s.study.store import database_url, open_store

    study, items = read_study(folder), read_items(folder)
    with open_store(database_url(folder, database), study) as store:
        yield study, items, store


def _tops(texts: list[str]) -> dict[str, int]:
    """Numbers of rated answers by system, "" for the systems that are not named."""
    tops = {}
    for text in texts:
        system, _, number = text.rpartition("=")
        if not number.isdecimal() or int(number) < 1:
            raise UsageError(f"--top takes a number or SYSTEM=NUMBER, not {text!r}", hint="--top 3 --top cod3s=10")
        tops[system] = int(number)
    return tops


def _templates(texts: list[str]) -> dict[str, str]:
    from cod3s.corpus.relations import find_relations

    templates = {}
    for text in texts:
        relation, _, template = text.partition("=")
        templates[relation] = find_relations(relation, template)[0].template
    return templates


def _print(analysis: "Analysis") -> None:
    from cod3s.study.report import agreement_table, banner_of, counted, plausibility_table, report_line

    if analysis.simulated:
        say(banner_of(analysis))
        say("true levels: " + ", ".join(f"{name} {level:.2f}" for name, level in analysis.simulated.items()))
    if analysis.excluded:
        say(f"{len(analysis.excluded)} of {len(analysis.raters)} raters are excluded by the study's rule")
    results = analysis.results
    tables = [plausibility_table(results, relation, counted(analysis)) for relation in results.relations]
    print_tables([*tables, agreement_table(analysis)], report_line(analysis))
