"""PostgreSQL: two study servers on one database that is killed and restarted while people rate.

    PYTHONPATH=benchmarks:tests python -m campaign.databases --cases 5

Every click is sent again, to either server, until it is acknowledged. None may be lost, none saved twice.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx

from campaign.tally import Budget, Tally, budget_of, parser, print_all
from cod3s.study.store import open_store
from postgresql_server import Cluster, cluster, find_binaries
from studies import new_study, served

_RATERS, _CLICKS = 3, 12
_MOST_TRIES = 400


def rate_through_kills(server: Cluster, folder: Path, kills: int) -> list[str]:
    """Let raters click while the database is killed so many times; what was lost, saved twice or refused."""
    made = new_study(folder)
    done = threading.Event()
    with ExitStack() as stack:
        stores = [stack.enter_context(open_store(server.url, made.study)) for _ in range(2)]
        clients = [stack.enter_context(served(made.study, list(made.items), store)) for store in stores]
        with ThreadPoolExecutor(_RATERS + 1) as pool:
            killing = pool.submit(_kill_again_and_again, server, kills, done)
            clicking = [pool.submit(_click, clients, f"rater{number}") for number in range(_RATERS)]
            acknowledged = [key for future in clicking for key in future.result()]
            done.set()
            killing.result()
        kept = Counter(rating.key for rating in stores[0].ratings(every_revision=True))
    expected = _RATERS * _CLICKS
    findings = [] if len(acknowledged) == expected else [f"{len(acknowledged)} of {expected} acknowledged"]
    findings += [f"{key} was acknowledged and is lost" for key in acknowledged if key not in kept]
    return findings + [f"{key} is stored {count} times" for key, count in kept.items() if count > 1]


def _click(clients: list[httpx.Client], name: str) -> list[str]:
    """The keys of the clicks that were acknowledged; every other click goes to the other server."""
    token = _insist(clients, 0, "POST", "/api/raters", {"name": name}).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    _insist(clients, 0, "GET", "/api/standing", None, headers)
    keys = []
    for number in range(_CLICKS):
        key = f"{name}-click-{number:04}"
        body = {"score": number % 6, "seconds": 1, "key": key}
        _insist(clients, number, "PUT", "/api/statements/1", body, headers)
        keys.append(key)
    return keys


def _insist(
    clients: list[httpx.Client],
    first: int,
    method: str,
    path: str,
    body: dict[str, object] | None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """Send a request to the servers in turn until one of them answers it."""
    for attempt in range(_MOST_TRIES):
        reply = clients[(first + attempt) % len(clients)].request(method, path, json=body, headers=headers)
        if reply.status_code < 300:
            return reply
        if reply.status_code != 503:
            raise RuntimeError(f"{method} {path}: {reply.status_code} {reply.text[:200]}")
        time.sleep(0.05)
    raise RuntimeError(f"{method} {path} was not answered after {_MOST_TRIES} tries")


def _kill_again_and_again(server: Cluster, kills: int, done: threading.Event) -> None:
    for _ in range(kills):
        if done.wait(0.2):
            return
        server.kill()
        server.start()


def kill_databases(budget: Budget, kills: int = 3) -> Tally:
    tally = Tally(f"PostgreSQL: {kills} kills, two study servers")
    if find_binaries() is None:
        tally.remark = "skipped: PostgreSQL is not installed"
        return tally
    for number in budget.numbers():
        with cluster(fsync=True) as server, tempfile.TemporaryDirectory() as folder:
            try:
                findings = rate_through_kills(server, Path(folder), kills)
            except RuntimeError as error:
                findings = [str(error)]
        tally.count(f"case {number}", "; ".join(findings[:3]))
    return tally


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    yield kill_databases(budget_of(options))


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=5, seconds=300).parse_args())))
