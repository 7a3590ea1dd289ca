"""`cod3s judge export|import|analyse|simulate`: everything about ratings except collecting them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.evaluate import print_cells
from cod3s.cli.output import print_json, say
from cod3s.cli.parameters import ForceOption, JsonOption, seed_option
from cod3s.errors import Cod3sError, require, require_all
from cod3s.io.disk import require_new
from cod3s.options import SEED, find_name

if TYPE_CHECKING:
    from cod3s.study.collect.rating_store import Store
    from cod3s.study.plan.folder import Item, Study
    from cod3s.study.results.analysis import Analysis

StudyArgument = Annotated[Path, typer.Argument(help="A study folder, made by `cod3s judge new`.")]
DatabaseOption = Annotated[
    str, typer.Option(help="Where ratings are stored, such as postgresql://user@host/name; by default, in a file.")
]
EXPORTS = ("mturk", "prolific", "potato", "csv", "parquet")
IMPORTS = ("mturk", "potato", "csv")


@dataclass(frozen=True)
class OpenStudy:
    """A study with its items and its open store of ratings."""

    study: "Study"
    items: "list[Item]"
    store: "Store"

    @property
    def names(self) -> dict[str, str]:
        from cod3s.study.plan.identities import pseudonyms

        return pseudonyms(self.study, self.store.raters())


@contextmanager
def open_study(folder: Path, database: str) -> Iterator[OpenStudy]:
    """The study in `folder` with its store open."""
    require_judge()
    from cod3s.study.collect.rating_store import database_url, open_store
    from cod3s.study.plan.folder import read_items, read_study

    study = read_study(folder)
    items = read_items(folder)
    with open_store(database_url(folder, database), study) as store:
        yield OpenStudy(study, items, store)


def export(
    study: StudyArgument,
    to: Annotated[str, typer.Option(help="mturk, prolific or potato: a folder; csv or parquet: a file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder or file to write.")],
    per_hit: Annotated[int, typer.Option(min=1, help="mturk: statements per HIT, including checks.")] = 20,
    url: Annotated[str, typer.Option(help="prolific: the address where raters reach `cod3s judge serve`.")] = "",
    database: DatabaseOption = "",
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Export a study to another annotation platform, or its ratings without names.

    mturk: a page with variables and a CSV of HITs. potato: items and a config. prolific: the description of the
    study and a list of whom to pay (with Prolific ids). csv, parquet: every rating, with pseudonyms for raters.
    """
    find_name("format", to, EXPORTS)
    if output.resolve() == study.resolve():
        raise Cod3sError("an export into the study's folder could overwrite it", hint="choose another folder")
    require_new(output, force)
    with open_study(study, database) as opened:
        written = _export(opened, to, output, per_hit, url)
    if json:
        print_json({"to": to, "output": str(output), **written})
    else:
        say(f"{', '.join(f'{count} {name}' for name, count in written.items())}: {output}")


def import_(
    study: StudyArgument,
    results: Annotated[Path, typer.Argument(help="A file of results, or Potato's folder of annotations.")],
    origin: Annotated[str, typer.Option("--from", help="mturk, potato, or csv with rater, item, score, seconds.")],
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip rows that do not fit the study instead of importing nothing.")
    ] = False,
    database: DatabaseOption = "",
    json: JsonOption = False,
) -> None:
    """Import ratings from another platform, all or none; importing a file twice adds nothing."""
    find_name("format", origin, IMPORTS)
    from cod3s.study.exchange.incoming import import_ratings
    from cod3s.study.exchange.mturk import read_results
    from cod3s.study.exchange.potato import read_annotations
    from cod3s.study.exchange.rating_files import read_ratings

    readers = {"mturk": read_results, "potato": read_annotations, "csv": read_ratings}
    with open_study(study, database) as opened:
        imported = import_ratings(
            opened.store, opened.study, opened.items, readers[origin](results), skip_bad=skip_bad
        )
    for row in imported.bad:
        say(f"skipped, {row}")
    if json:
        bad = [{"place": row.location, "reason": row.reason} for row in imported.bad]
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
    seed: Annotated[int, seed_option("Seed for the bootstrap.")] = SEED,
    database: DatabaseOption = "",
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Analyse the ratings: the paper's table 4 and figure 2, agreement, raters, and significant differences.

    Raters are excluded only by the rule that the study fixed before collection; the figures of everyone are shown
    as well.
    """
    require_all("judge", "krippendorff", "scipy", "matplotlib", "jinja2")
    if output is not None:
        require_new(output, force)
    with open_study(study, database) as opened:
        analysis = _analyse(opened, seed)
    if output is not None:
        from cod3s.study.results.rating_report import write_report

        say(f"report: {write_report(output, analysis)}")
    if json:
        print_json(analysis.record())
    else:
        _print(analysis)


def simulate(
    study: StudyArgument,
    raters: Annotated[int, typer.Option(min=1, help="How many raters to simulate.")] = 12,
    noise: Annotated[float, typer.Option(min=0, help="Standard deviation of a rating, in scores.")] = 0.8,
    bias: Annotated[float, typer.Option(min=0, help="Standard deviation between raters.")] = 0.4,
    careless: Annotated[int, typer.Option(min=0, help="How many of them answer at random.")] = 0,
    seed: Annotated[int, seed_option("Seed for all random choices.")] = SEED,
    database: DatabaseOption = "",
    json: JsonOption = False,
) -> None:
    """Rehearse a study: fill its store with simulated ratings, and show what the analysis should find.

    The store must be empty, and every report on it says SIMULATED. For the real study, delete ratings.sqlite or
    use another --database.
    """
    require("scipy", "judge")
    with open_study(study, database) as opened:
        from cod3s.study.plan.simulation import Crowd
        from cod3s.study.plan.simulation import simulate as simulate_ratings

        if opened.store.raters():
            raise Cod3sError(
                "the store already has raters, and simulated ratings cannot be mixed with others",
                hint="use another database: --database sqlite:///rehearsal.sqlite",
            )
        crowd = Crowd(raters=raters, noise=noise, bias=bias, careless=careless, seed=seed)
        simulated = simulate_ratings(opened.study, opened.items, crowd)
        opened.store.add(simulated.raters, simulated.ratings)
    if json:
        truth = {"levels": dict(simulated.levels), "alpha": simulated.alpha}
        print_json({"raters": len(simulated.raters), "ratings": len(simulated.ratings), **truth})
        return
    say(f"{len(simulated.ratings)} SIMULATED ratings of {len(simulated.raters)} raters")
    say("true levels: " + ", ".join(f"{name} {level:.2f}" for name, level in simulated.levels.items()))
    say("expected alpha of all raters: " + ("undefined" if simulated.alpha is None else f"{simulated.alpha:.2f}"))


def require_judge() -> None:
    """Fail early if an optional library is missing."""
    require_all("judge", "pyarrow", "sqlalchemy", "fastapi", "uvicorn")


def _export(opened: OpenStudy, to: str, output: Path, per_hit: int, url: str) -> dict[str, int]:
    """Write the export, and return the counts of what was written."""
    from cod3s.study.exchange import mturk, potato, prolific, rating_files
    from cod3s.study.results.raters import report_raters

    if to == "mturk":
        return {"HITs": mturk.write_batch(output, opened.study, opened.items, per_hit=per_hit)}
    if to == "potato":
        potato.write_project(output, opened.study, opened.items)
        return {"items": len(opened.items)}
    ratings, names = opened.store.ratings(), opened.names
    if to == "prolific":
        by_id = {item.id: item for item in opened.items}
        reports = report_raters(ratings, by_id, opened.study.exclusion, names)
        prolific.write_prolific(output, opened.study, opened.items, opened.store.raters(), reports, url)
        return {"raters": len(reports)}
    rows = rating_files.rating_rows(opened.items, ratings, names)
    if to == "csv":
        rating_files.write_csv(output, rating_files.COLUMNS, rows)
    else:
        rating_files.write_ratings_parquet(output, rows)
    return {"ratings": len(rows)}


def _analyse(opened: OpenStudy, seed: int) -> "Analysis":
    from cod3s.study.plan.identities import SIMULATED
    from cod3s.study.results.analysis import analyse as analyse_ratings

    simulated = any(rater.origin == SIMULATED for rater in opened.store.raters())
    ratings = opened.store.ratings()
    return analyse_ratings(opened.study, opened.items, ratings, names=opened.names, simulated=simulated, seed=seed)


def _print(analysis: "Analysis") -> None:
    from cod3s.study.results.rating_report import banner_of, report_line
    from cod3s.study.results.rating_tables import agreement_table, counted, plausibility_table

    if banner := banner_of(analysis):
        say(banner)
    if analysis.excluded:
        say(f"{len(analysis.excluded)} of {len(analysis.raters)} raters are excluded by the study's rule")
    for relation in analysis.results.relations:
        print_cells(plausibility_table(analysis.results, relation, counted(analysis)), report_line(analysis))
    print_cells(agreement_table(analysis), report_line(analysis))
