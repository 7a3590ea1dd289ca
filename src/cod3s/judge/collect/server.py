"""Running a study's server: a folder and an address in, pages until it is told to stop."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn

from cod3s.judge.collect.app import ServerOptions, create_app
from cod3s.judge.collect.store import database_url, open_store
from cod3s.judge.study.study import read_items, read_study
from cod3s.serving.listener import link, listen


def serve_study(
    folder: Path,
    *,
    host: str,
    port: int,
    database: str = "",
    options: ServerOptions | None = None,
    announce: Callable[[str], None] = lambda _address: None,
) -> None:
    """Serve until ctrl-C; `announce` is told the address once the port is ours."""
    study, items = read_study(folder), read_items(folder)
    with open_store(database_url(folder, database), study) as store, listen(host, port) as listener:
        app = create_app(study, items, store, options)
        # No access log: it would hold what raters do. No server header: it helps nobody but attackers.
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
        announce(link(host, listener))
        with suppress(KeyboardInterrupt):  # raised once more after the server has ended in good order
            uvicorn.Server(config).run(sockets=[listener])
