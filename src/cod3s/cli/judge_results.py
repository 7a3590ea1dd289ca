"""`cod3s judge export|import|analyse|simulate`: ratings out of a study, into it, and what they say."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.evaluate import print_cells
from cod3s.cli.judge_options import DatabaseOption, StudyArgument, require_judge
from cod3s.cli.options import JsonOption, seed_option
from cod3s.cli.output import print_json, say
from cod3s.errors import Cod3sError, UsageError, did_you_mean, require
from cod3s.options import SEED

if TYPE_CHECKING:
    from cod3s.judge.collect.store import Store
    from cod3s.judge.results.analysis import Analysis
    from cod3s.judge.study.study import Item, Study

EXPORTS = ("mturk", "prolific", "potato", "csv", "parquet")
IMPORTS = ("mturk", "potato", "csv")


def register(group: typer.Typer) -> None:
    """Add the commands to the group `cod3s judge`."""
    group.command("export", epilog="Example: cod3s judge export study/ --to mturk -o batch/")(export)
    group.command("import", epilog="Example: cod3s judge import study/ results.csv --from mturk")(import_)
    group.command("analyse", epilog="Example: cod3s judge analyse study/ -o report/")(analyse)
    group.command("simulate", epilog="Example: cod3s judge simulate study/ --raters 12 --noise 0.8")(simulate)


@dataclass(frozen=True)
class Opened:
    """A study with its items and its store."""

    study: "Study"
    items: "list[Item]"
    store: "Store"

    @property
    def names(self) -> dict[str, str]:
        from cod3s.judge.exchange.pseudonyms import pseudonyms

        return pseudonyms(self.study, self.store.raters())


@contextmanager
def opened(folder: Path, database: str) -> Iterator[Opened]:
    """The study in `folder` with its store open."""
    require_judge()
    from cod3s.judge.collect.store import database_url, open_store
    from cod3s.judge.study.study import read_items, read_study

    study = read_study(folder)
    items = read_items(folder)
    with open_store(database_url(folder, database), study) as store:
        yield Opened(study, items, store)


def export(
    study: StudyArgument,
    to: Annotated[str, typer.Option("--to", help="mturk, prolific or potato: a folder; csv or parquet: a file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder or file to write.")],
    per_hit: Annotated[
        int, typer.Option("--per-hit", min=1, help="mturk: statements a HIT, checks included.")
    ] = 20,
    url: Annotated[str, typer.Option("--url", help="prolific: where raters reach `cod3s judge serve`.")] = "",
    database: DatabaseOption = "",
    json: JsonOption = False,
) -> None:
    """Write a study for another place where people rate, or its ratings without names.

    mturk: a page with variables and a CSV of HITs. potato: items and a config. prolific: the study's description
    and a list of who may be paid (which holds Prolific ids). csv, parquet: every rating, raters by pseudonyms.
    """
    _known(to, EXPORTS, "--to")
    if output.resolve() == study.resolve():
        raise Cod3sError("an export into the study's own folder could overwrite it", hint="name another folder")
    with opened(study, database) as own:
        written = _export(own, to, output, per_hit, url)
    if json:
        print_json({"to": to, "output": str(output), **written})
    else:
        say(f"{', '.join(f'{count} {name}' for name, count in written.items())}: {output}")


def import_(
    study: StudyArgument,
    results: Annotated[Path, typer.Argument(help="A results file; for Potato also its folder of annotations.")],
    origin: Annotated[str, typer.Option("--from", help="mturk, potato, or csv with rater, item, score, seconds.")],
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out what does not fit the study, instead of importing nothing."),
    ] = False,
    database: DatabaseOption = "",
    json: JsonOption = False,
) -> None:
    """Bring ratings from another place into the study, all or none; a file imported twice adds nothing."""
    _known(origin, IMPORTS, "--from")
    from cod3s.judge.exchange.incoming import import_ratings
    from cod3s.judge.exchange.mturk import read_results
    from cod3s.judge.exchange.potato import read_annotations
    from cod3s.judge.exchange.ratings_csv import read_ratings

    readers = {"mturk": read_results, "potato": read_annotations, "csv": read_ratings}
    with opened(study, database) as own:
        done = import_ratings(own.store, own.study, own.items, readers[origin](results), skip_bad=skip_bad)
    for row in done.bad:
        say(f"left out, {row}")
    if json:
        bad = [{"place": row.place, "reason": row.reason} for row in done.bad]
        print_json({"ratings": done.ratings, "added": done.added, "raters": done.raters, "bad": bad})
    else:
        say(f"{done.ratings} ratings of {done.raters} raters, {done.added} of them new, {len(done.bad)} left out")


def analyse(
    study: StudyArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the page, the figure and the tables.")
    ] = None,
    seed: Annotated[int, seed_option("Of the bootstrap.")] = SEED,
    database: DatabaseOption = "",
    json: JsonOption = False,
) -> None:
    """What the ratings say: the paper's table 4 and figure 2, agreement, raters, and which differences are real.

    Raters are excluded only by the rule that the study fixed before collection; the figures of everyone stand
    beside.
    """
    require_analysis()
    with opened(study, database) as own:
        found = _analyse(own, seed)
    if output is not None:
        from cod3s.judge.results.report import write_report

        say(f"report: {write_report(output, found)}")
    if json:
        print_json(found.record())
    else:
        _print(found)


def simulate(
    study: StudyArgument,
    raters: Annotated[int, typer.Option("--raters", min=1, help="Simulated raters.")] = 12,
    noise: Annotated[
        float, typer.Option("--noise", min=0, help="Standard deviation of a rating, in scores.")
    ] = 0.8,
    bias: Annotated[float, typer.Option("--bias", min=0, help="Standard deviation between raters.")] = 0.4,
    careless: Annotated[int, typer.Option("--careless", min=0, help="So many of them do not read.")] = 0,
    seed: Annotated[int, seed_option("Of everything that is drawn by lot.")] = SEED,
    database: DatabaseOption = "",
    json: JsonOption = False,
) -> None:
    """Rehearse: fill the store with simulated ratings, and say what the analysis should find.

    Only an empty store is taken, and every report on it says SIMULATED. Delete its ratings.sqlite, or use
    another --database, for the real study.
    """
    require("scipy", "judge")
    with opened(study, database) as own:
        from cod3s.judge.study.simulation import Crowd
        from cod3s.judge.study.simulation import simulate as simulate_ratings

        if own.store.raters():
            raise Cod3sError(
                "the store has raters already, and simulated ratings may not be mixed with any",
                hint="name another database: --database sqlite:///rehearsal.sqlite",
            )
        crowd = Crowd(raters=raters, noise=noise, bias=bias, careless=careless, seed=seed)
        made = simulate_ratings(own.study, own.items, crowd)
        own.store.add(made.raters, made.ratings)
    if json:
        truth = {"levels": dict(made.levels), "alpha": made.alpha}
        print_json({"raters": len(made.raters), "ratings": len(made.ratings), **truth})
        return
    say(f"{len(made.ratings)} SIMULATED ratings of {len(made.raters)} raters")
    say("true levels: " + ", ".join(f"{name} {level:.2f}" for name, level in made.levels.items()))
    say("alpha of all raters should be near " + ("nothing" if made.alpha is None else f"{made.alpha:.2f}"))


def require_analysis() -> None:
    """Say at once which install is missing."""
    for module in ("krippendorff", "scipy", "matplotlib", "jinja2"):
        require(module, "judge")


def _known(name: str, names: tuple[str, ...], option: str) -> None:
    if name not in names:
        raise UsageError(f"{option} {name!r} is not known", hint=did_you_mean(name, names))


def _export(own: Opened, to: str, output: Path, per_hit: int, url: str) -> dict[str, int]:
    """Write it; what was written, counted."""
    from cod3s.judge.exchange import mturk, potato, prolific, raw
    from cod3s.judge.results.raters import report_raters

    if to == "mturk":
        return {"HITs": mturk.write_batch(output, own.study, own.items, per_hit=per_hit)}
    if to == "potato":
        potato.write_project(output, own.study, own.items)
        return {"items": len(own.items)}
    ratings, names = own.store.ratings(), own.names
    if to == "prolific":
        by_id = {item.id: item for item in own.items}
        reports = report_raters(ratings, by_id, own.study.exclusion, names)
        prolific.write_prolific(output, own.study, own.items, own.store.raters(), reports, url)
        return {"raters": len(reports)}
    rows = raw.rating_rows(own.items, ratings, names)
    write = raw.write_ratings_csv if to == "csv" else raw.write_ratings_parquet
    write(output, rows)
    return {"ratings": len(rows)}


def _analyse(own: Opened, seed: int) -> "Analysis":
    from cod3s.judge.exchange.pseudonyms import SIMULATED
    from cod3s.judge.results.analysis import analyse as analyse_ratings

    simulated = any(rater.origin == SIMULATED for rater in own.store.raters())
    ratings = own.store.ratings()
    return analyse_ratings(own.study, own.items, ratings, names=own.names, simulated=simulated, seed=seed)


def _print(found: "Analysis") -> None:
    from cod3s.judge.results.report import banner_of, report_line
    from cod3s.judge.results.tables import agreement_table, counted, plausibility_table

    if banner := banner_of(found):
        say(banner)
    if found.excluded:
        say(f"{len(found.excluded)} of {len(found.raters)} raters are excluded by the study's rule")
    for relation in found.results.relations:
        print_cells(plausibility_table(found.results, relation, counted(found)), report_line(found))
    print_cells(agreement_table(found), report_line(found))
