"""Export a study as a project of Potato, the annotation tool, and import its annotations.

The config is for Potato 2. The reader takes its `user_state.json` files (a file per annotator), its export
`annotations.jsonl`, and the `annotated_instances.jsonl` of Potato 1: a file, or the folder of all annotators.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cod3s.errors import FileFormatError
from cod3s.io.disk import open_text, read_json, write_json_lines, write_text
from cod3s.study.exchange.incoming import BadRow, Incoming
from cod3s.study.plan.folder import Item, Study

ITEMS, CONFIG = "items.jsonl", "config.yaml"
_SCHEME = "plausibility"
_STATES, _INSTANCES = "user_state.json", "annotated_instances.jsonl"
_TIME = re.compile(r"(\d+)d (\d+)h (\d+)m (\d+)s")


def write_project(folder: Path, study: Study, items: Sequence[Item]) -> None:
    """Write the items in the study's order, and a config for `potato start`."""
    write_json_lines(folder / ITEMS, ({"id": item.id, "text": item.statement} for item in items))
    # JSON values are valid YAML.
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in _config(study).items()]
    write_text(folder / CONFIG, "".join(lines))


def read_annotations(path: Path) -> Iterator[Incoming | BadRow]:
    """The scores of all annotators below `path`."""
    files = [path] if path.is_file() else sorted([*path.rglob(_STATES), *path.rglob(_INSTANCES)])
    if not files:
        raise FileFormatError(f"{path} contains neither {_STATES} nor {_INSTANCES} files from Potato")
    for file in files:
        yield from _read_lines(file) if file.suffix == ".jsonl" else _read_state(file)


def _config(study: Study) -> dict[str, Any]:
    return {
        "annotation_task_name": study.name,
        "task_dir": ".",
        "data_files": [ITEMS],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "output_annotation_dir": "annotation_output",
        "export_annotation_format": "jsonl",
        "user_config": {"allow_all_users": True, "users": []},
        "num_annotators_per_item": study.raters_per_item,
        "max_annotations_per_user": study.per_rater,
        "annotation_schemes": [
            {
                "annotation_type": "radio",
                "name": _SCHEME,
                "description": study.question,
                "labels": [
                    {"name": str(score), "tooltip": label, "key_value": str(score)}
                    for score, label in enumerate(study.scale)
                ],
                "label_requirement": {"required": True},
            }
        ],
        "site_dir": "default",
    }


def _read_state(file: Path) -> Iterator[Incoming | BadRow]:
    content = read_json(file)
    if not isinstance(content, dict) or not isinstance(content.get("instance_id_to_label_to_value"), dict):
        raise FileFormatError(f"{file} is not the state of a Potato annotator")
    rater = str(content.get("user_id") or file.parent.name)
    times = content.get("instance_id_to_behavioral_data")
    times = times if isinstance(times, dict) else {}
    for item, labels in content["instance_id_to_label_to_value"].items():
        location = f"{file.parent.name}/{file.name}, item {item}"
        try:
            scores = [(label["name"], value) for label, value in labels if label["schema"] == _SCHEME]
            seconds = float((times.get(item) or {}).get("total_time_ms") or 0) / 1000
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            yield BadRow(location, f"not an annotation of this study ({error!r})")
            continue
        yield _incoming(location, rater, str(item), [name for name, value in scores if _is_chosen(value)], seconds)


def _read_lines(file: Path) -> Iterator[Incoming | BadRow]:
    with open_text(file) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield _read_line(f"{file.parent.name}/{file.name}, line {number}", line, file.parent.name)


def _read_line(location: str, line: str, folder: str) -> Incoming | BadRow:
    try:
        record = json.loads(line)
        labels = record["labels"] if "labels" in record else record["label_annotations"]
        chosen = [name for name, value in labels[_SCHEME].items() if _is_chosen(value)]
        time = (record.get("behavioral_data") or {}).get("time_string") or ""
        rater, item = str(record.get("user_id") or folder), str(record.get("instance_id") or record["id"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return BadRow(location, f"not an annotation of this study ({error!r})")
    return _incoming(location, rater, item, chosen, _seconds(time))


def _incoming(location: str, rater: str, item: str, chosen: Sequence[str], seconds: float) -> Incoming | BadRow:
    if len(chosen) != 1:
        return BadRow(location, f"{len(chosen)} scores instead of one")
    return Incoming(location, rater, item, str(chosen[0]), seconds)


def _is_chosen(value: Any) -> bool:
    return value not in (None, "", "false") and value is not False


def _seconds(text: str) -> float:
    time = _TIME.search(text)
    if not time:
        return 0.0
    days, hours, minutes, seconds = map(int, time.groups())
    return float(seconds + 60 * (minutes + 60 * (hours + 24 * days)))
