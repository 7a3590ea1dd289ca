"""Studies for tests: one made up of records, one made from outputs of two systems, and its real server."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from cod3s.study.design import Design, NewStudy, make_study
from cod3s.study.folder import ANSWER, CHECK, GOLD, RIGHT, WRONG, Credit, Item, Study
from cod3s.study.server import ServerOptions, create_app
from cod3s.study.store import Store

SYSTEMS = ("quokka", "narwhal")
"""Words that appear nowhere else, so that a page that shows one gives a system away."""
STUDY = Study(
    id="made",
    name="made up",
    created="2020-01-01T00:00:00.000Z",
    seed=1,
    raters_per_item=4,
    per_rater=50,
    question="How plausible is this?",
    scale=("impossible", "unlikely", "possible", "plausible", "likely", "certain"),
    instructions="Read each statement.\n\nThen rate it.",
    completion_code="HARBOR77",
    admin_token_hash="",
    templates={"effect": "{source}, so {target}", "cause": "{source} because {target}"},
)


def made_items(
    systems: Mapping[str, int],
    sources: int = 10,
    relations: tuple[str, ...] = ("effect", "cause"),
    checks: int = 3,
    gold: bool = True,
) -> list[Item]:
    """So many answers of each system to each source, ranked in their order."""
    items = []
    for relation in relations:
        word = ", so" if relation == "effect" else " because"
        for number in range(sources):
            start, source = f"Barrel {number} leaked{word}", f"barrel {number} leaked"
            answer = Item("", ANSWER, "", relation, source)
            for system, answers in systems.items():
                for rank in range(1, answers + 1):
                    target, credit = f"{system} said {rank}", Credit(system, rank, rank)
                    name = f"{relation[0]}{number}-{system}-{rank}"
                    text = f"{start} {target}."
                    items.append(replace(answer, id=name, statement=text, target=target, credits=(credit,)))
            for label in (RIGHT, WRONG) if gold else ():
                name, text = f"{relation[0]}{number}-{label}", f"{start} it was {label}."
                items.append(Item(name, GOLD, text, relation, source, label, label=label))
    return items + [
        Item(f"check-{number}", CHECK, f"Please choose {number} here.", expected=(number,))
        for number in range(checks)
    ]


def outputs_folder(folder: Path) -> Path:
    """Outputs of two systems for two sources, some of them the same."""
    folder.mkdir(parents=True)
    texts = {"quokka": ["we moved", "we dug deeper"], "narwhal": ["we moved", "the moon sighed"]}
    for system in SYSTEMS:
        records = [
            {"source": source, "relation": relation, "system": system, "settings": {"beam": 4},
             "answers": [{"text": text, "forward": -n, "score": 0} for n, text in enumerate(texts[system], 1)]}
            for source, relation in (("the well ran dry", "effect"), ("the mill stood still", "cause"))
        ]  # fmt: skip
        (folder / f"{system}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def new_study(folder: Path, **choices: Any) -> NewStudy:
    """A study of six answers and a check in `folder`/study."""
    design = Design(**{"raters_per_item": 2, "per_rater": 4, "checks": 1, **choices})
    return make_study(folder / "study", [outputs_folder(folder / "outputs")], None, design)


@contextmanager
def served(study: Study, items: list[Item], store: Store, **options: Any) -> Iterator[httpx.Client]:
    """A client of the real server, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:  # it listens now: no client comes too early
        app = create_app(study, items, store, ServerOptions(**options))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()
