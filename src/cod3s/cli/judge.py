"""`cod3s judge new|serve`: create a study of human plausibility ratings, and serve its pages."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.judge_results import DatabaseOption, StudyArgument, require_judge
from cod3s.cli.output import print_json, say
from cod3s.cli.parameters import JsonOption, seed_option
from cod3s.cli.serve import AllowHostOption
from cod3s.errors import UsageError
from cod3s.io.disk import open_text
from cod3s.options import SEED

if TYPE_CHECKING:
    from cod3s.study.plan.design import NewStudy


OutputsArgument = Annotated[
    list[Path],
    typer.Argument(help="Files or folders of answers, or - for stdin: the JSON lines of `cod3s generate --json`."),
]


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
    require_judge()
    from cod3s.study.plan.design import INSTRUCTIONS, Design, make_study
    from cod3s.study.plan.folder import Exclusion

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
    if json:
        print_json(_record(new_study, output))
    else:
        _describe(new_study, output)


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
    require_judge()
    from cod3s.study.collect.server import ServerOptions, serve_study
    from cod3s.study.plan.identities import new_token, token_hash
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


def _record(new_study: "NewStudy", folder: Path) -> dict[str, object]:
    study = new_study.study
    return {
        "study": str(folder),
        "items": dict(Counter(item.kind for item in new_study.items)),
        "raters_per_item": study.raters_per_item,
        "per_rater": study.per_rater,
        "raters_needed": new_study.raters_needed,
        "completion_code": study.completion_code,
        "admin_token": new_study.admin_token,
    }


def _describe(new_study: "NewStudy", folder: Path) -> None:
    items = Counter(item.kind for item in new_study.items)
    counts = ", ".join(f"{items[kind]} {kind}" for kind in ("answer", "gold", "check") if kind in items)
    study = new_study.study
    say(f"{folder}: {len(new_study.items)} items ({counts}), {study.raters_per_item} raters per item")
    say(f"needs at least {new_study.raters_needed} raters with {study.per_rater} items each")
    say(f"completion code: {study.completion_code}")
    say(f"admin token, shown only once: {new_study.admin_token}")
    say(f"next: cod3s judge serve {folder}")
