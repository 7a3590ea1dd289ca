"""A small study made from outputs of two systems, and its real server, for tests."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from cod3s.study.collect.rating_store import Store
from cod3s.study.collect.server import ServerOptions, create_app
from cod3s.study.plan.design import Design, NewStudy, make_study
from cod3s.study.plan.folder import Item, Study

SYSTEMS = ("quokka", "narwhal")
"""Words that stand nowhere else, so that a page that shows one gives a system away."""


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


def outputs_folder(folder: Path) -> Path:
    """Outputs of two systems for two sources, some of them the same."""
    folder.mkdir(parents=True)
    own = {"quokka": ["we moved", "we dug deeper"], "narwhal": ["we moved", "the moon sighed"]}
    for system, texts in own.items():
        records = [
            {"source": source, "relation": relation, "system": system, "settings": {"beam": 4},
             "answers": [{"text": text, "forward": -place, "score": 0} for place, text in enumerate(texts, 1)]}
            for source, relation in (("the well ran dry", "effect"), ("the mill stood still", "cause"))
        ]  # fmt: skip
        (folder / f"{system}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def a_made_study(folder: Path, **choices: Any) -> NewStudy:
    design = Design(**{"raters_per_item": 2, "per_rater": 4, "checks": 1, **choices})
    return make_study(folder / "study", [outputs_folder(folder / "outputs")], None, design)
