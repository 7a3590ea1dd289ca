"""`cod3s judge`: make a study of human plausibility ratings, and serve its pages."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli import judge_results
from cod3s.cli.judge_options import DatabaseOption, StudyArgument, require_judge
from cod3s.cli.options import JsonOption, seed_option
from cod3s.cli.output import print_json, say
from cod3s.errors import UsageError
from cod3s.options import SEED

if TYPE_CHECKING:
    from cod3s.judge.study.design import Made


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Human plausibility studies: make one, collect ratings, analyse them.")
    group.command("new", epilog="Example: cod3s judge new outputs/*.jsonl -o study/ --copa copa-dev.xml")(new)
    group.command("serve", epilog="Example: cod3s judge serve study/ --port 8001")(serve)
    judge_results.register(group)
    app.add_typer(group, name="judge", no_args_is_help=True)


def new(
    outputs: Annotated[
        list[Path], typer.Argument(help="Files or folders of answers: the JSON lines of `cod3s generate --json`.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The study folder to make.")],
    name: Annotated[
        str, typer.Option("--name", help="What raters see above the page; default the folder's.")
    ] = "",
    raters: Annotated[int, typer.Option("--raters", min=1, help="Raters an item; the paper has 4.")] = 4,
    per_rater: Annotated[int, typer.Option("--per-rater", min=1, help="Items a rater, checks not counted.")] = 50,
    top: Annotated[
        list[str] | None,
        typer.Option(
            "--top", help="How many of a source's answers are rated: 3, or cod3s=10 for one system; repeat."
        ),
    ] = None,
    copa: Annotated[
        Path | None, typer.Option("--copa", help="Questions whose right and wrong alternatives are mixed in.")
    ] = None,
    gold: Annotated[
        int | None, typer.Option("--gold", min=1, help="So many of them; default those that the outputs answer.")
    ] = None,
    checks: Annotated[int, typer.Option("--checks", min=0, help="Attention checks that every rater meets.")] = 3,
    max_failed_checks: Annotated[
        int, typer.Option("--max-failed-checks", min=0, help="Raters who fail more are excluded.")
    ] = 1,
    min_seconds: Annotated[
        float, typer.Option("--min-seconds", min=0, help="Raters whose median time is lower are excluded.")
    ] = 1.0,
    min_gold_gap: Annotated[
        float | None,
        typer.Option("--min-gold-gap", help="Raters who score right above wrong by less are excluded."),
    ] = None,
    instructions: Annotated[
        Path | None, typer.Option("--instructions", help="Text that raters read first; default a written one.")
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option("--template", help='How a relation of your own reads: "reply={source} {target}"; repeat it.'),
    ] = None,
    code: Annotated[str, typer.Option("--code", help="The completion code; default a random one.")] = "",
    seed: Annotated[int, seed_option("Of the order and of what is drawn by lot.")] = SEED,
    json: JsonOption = False,
) -> None:
    """Make a blind study from stored outputs: every statement once, systems, gold items and checks mixed.

    What is fixed here, such as who will be excluded, cannot be changed after ratings came in. The admin token is
    printed once.
    """
    require_judge()
    from cod3s.files.disk import open_text
    from cod3s.judge.study.design import Design, make_study
    from cod3s.judge.study.study import Exclusion
    from cod3s.judge.study.wording import INSTRUCTIONS

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
    made = make_study(output, outputs, copa, design)
    if json:
        print_json(_record(made, output))
    else:
        _describe(made, output)


def serve(
    study: StudyArgument,
    host: Annotated[
        str, typer.Option("--host", help="0.0.0.0 lets others in; put a proxy with https before it.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any free one.")] = 8001,
    database: DatabaseOption = "",
    prolific: Annotated[
        bool, typer.Option("--prolific", help="Raters come from Prolific, with its URL parameters, and only so.")
    ] = False,
    admin_token: Annotated[
        bool, typer.Option("--admin-token", help="Print a new admin token, which holds until this server ends.")
    ] = False,
) -> None:
    """Serve the rater's page until ctrl-C; every rating is on the disk before its rater sees it as saved."""
    require_judge()
    from cod3s.judge.collect.app import ServerOptions
    from cod3s.judge.collect.server import serve_study
    from cod3s.judge.collect.tokens import new_token, token_hash

    token = new_token() if admin_token else ""
    options = ServerOptions(prolific=prolific, admin_token_hash=token_hash(token) if token else "")

    def announce(address: str) -> None:
        entry = "/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
        say(f"raters: {address}{entry if prolific else '/'}")
        say(f"progress: {address}/admin" + (f"#{token}" if token else " (asks for the admin token)"))
        say("ctrl-C ends it; every rating so far is saved")

    serve_study(study, host=host, port=port, database=database, options=options, announce=announce)


def _tops(texts: list[str]) -> dict[str, int]:
    """By system, "" for those that are not named."""
    found = {}
    for text in texts:
        system, _, number = text.rpartition("=")
        if not number.isdecimal() or int(number) < 1:
            raise UsageError(f"--top takes a number or SYSTEM=NUMBER, not {text!r}", hint="--top 3 --top cod3s=10")
        found[system] = int(number)
    return found or {"": 3}


def _templates(texts: list[str]) -> dict[str, str]:
    from cod3s.corpus.relations import find_relations

    found = {}
    for text in texts:
        relation, _, template = text.partition("=")
        found[relation] = find_relations(relation, template)[0].template
    return found


def _record(made: "Made", folder: Path) -> dict[str, object]:
    from collections import Counter

    study = made.study
    return {
        "study": str(folder),
        "items": dict(Counter(item.kind for item in made.items)),
        "raters_per_item": study.raters_per_item,
        "per_rater": study.per_rater,
        "raters_needed": made.raters_needed,
        "completion_code": study.completion_code,
        "admin_token": made.admin_token,
    }


def _describe(made: "Made", folder: Path) -> None:
    record = _record(made, folder)
    items = record["items"]
    assert isinstance(items, dict)
    counts = ", ".join(f"{items[kind]} {kind}" for kind in ("answer", "gold", "check") if kind in items)
    study = made.study
    say(f"{folder}: {len(made.items)} items ({counts}), {study.raters_per_item} raters an item")
    say(f"at least {made.raters_needed} raters with {study.per_rater} items each are needed")
    say(f"completion code: {study.completion_code}")
    say(f"admin token, shown only now: {made.admin_token}")
    say(f"next: cod3s judge serve {folder}")
