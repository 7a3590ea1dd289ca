"""Export what Prolific needs to send raters to `cod3s judge serve`, and the list of people to pay afterwards.

prolific/
  prolific-study.json    the body of the API call that creates the study; the web form has the same fields
  participants.csv       who came, what they finished, and whom the study's rule excludes; it holds Prolific ids
"""

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError
from cod3s.io.disk import write_json
from cod3s.study.collect.rating_service import PROLIFIC
from cod3s.study.exchange.rating_files import write_csv
from cod3s.study.plan.design import raters_needed
from cod3s.study.plan.folder import CHECK, Item, Rater, Study
from cod3s.study.results.raters import RaterReport

STUDY, PARTICIPANTS = "prolific-study.json", "participants.csv"
_PLACEHOLDERS = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
_SECONDS = 9.0  # per statement, to read and choose: an estimate that the study's owner may correct
_COLUMNS = ("participant_id", "session_id", "finished", "ratings", "minutes", "checks_failed", "excluded_because")


def write_prolific(
    folder: Path,
    study: Study,
    items: Sequence[Item],
    raters: Sequence[Rater],
    reports: Mapping[str, RaterReport],
    url: str,
) -> None:
    """Write both files; `url` is where raters reach the server, `reports` are by rater id."""
    if not url.startswith(("https://", "http://")):
        raise Cod3sError(
            f"--url must be the address that raters open, not {url!r}", hint="--url https://study.example.org"
        )
    rows = [_row(rater, reports.get(rater.id, RaterReport(""))) for rater in raters if rater.origin == PROLIFIC]
    write_json(folder / STUDY, study_body(study, items, url))
    write_csv(folder / PARTICIPANTS, _COLUMNS, rows)


def study_body(study: Study, items: Sequence[Item], url: str) -> dict[str, Any]:
    """The study in Prolific's format; its owner fills in the reward."""
    shown = study.per_rater + sum(item.kind == CHECK for item in items)
    parameters = "&".join(f"{name}={{{{%{name}%}}}}" for name in _PLACEHOLDERS)
    return {
        "name": study.name,
        "description": study.instructions.split("\n\n")[0],
        "external_study_url": f"{url.rstrip('/')}/?{parameters}",
        "prolific_id_option": "url_parameters",
        "completion_codes": [
            {"code": study.completion_code, "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]}
        ],
        "total_available_places": raters_needed(study, items),
        "estimated_completion_time": ceil(shown * _SECONDS / 60),
        "reward": None,
    }


def _row(rater: Rater, report: RaterReport) -> list[Any]:
    finished = "yes" if rater.finished else "no"
    minutes = round(report.total_seconds / 60, 1)
    failed, reasons = report.failed_checks, "; ".join(report.reasons)
    return [rater.external, rater.session, finished, report.ratings, minutes, failed, reasons]
