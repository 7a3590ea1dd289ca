"""Kills of `study serve`: a rater clicks, the server is killed at a random moment and started again.

    PYTHONPATH=benchmarks:tests python -m campaign.study_kills --cases 50 --seconds 600

No acknowledged rating may be lost and none saved twice; only the one that was on its way may be saved or not.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx

from campaign.forked import ForkedCommand
from campaign.tally import Budget, Tally, budget_of, parser, print_all
from cod3s.study.store import database_url, open_store
from studies import new_study

_MOST_CLICKS = 30  # before the one that the kill hits
_LONGEST_SECONDS = 0.03  # from sending that click to the kill
_START_SECONDS = 120.0


class Rater:
    """One rater, whose token is good for every server of the study."""

    def __init__(self) -> None:
        self.acknowledged: list[str] = []
        self._headers: dict[str, str] = {}

    def join(self, client: httpx.Client) -> None:
        if not self._headers:
            token = client.post("/api/raters", json={"name": "Ada"}).raise_for_status().json()["token"]
            self._headers = {"Authorization": f"Bearer {token}"}
        client.get("/api/standing", headers=self._headers).raise_for_status()

    def click_until_it_dies(self, client: httpx.Client, case: int, clicks: int, killer: threading.Timer) -> str:
        """Click until the server is gone, soon after `clicks`; a reply that is no success is a finding."""
        for number in range(100_000):
            key = f"case-{case:04}-click-{number:05}"
            if number == clicks:
                killer.start()
            try:
                body = {"score": number % 6, "seconds": 1, "key": key}
                reply = client.put("/api/statements/1", json=body, headers=self._headers)
            except httpx.TransportError:
                return ""
            if reply.status_code >= 300:
                return f"status {reply.status_code}: {reply.text[:200]}"
            self.acknowledged.append(key)
        return "it was not killed"


def kill_study(budget: Budget) -> Tally:
    """Kill the server of one study again and again while a rater clicks."""
    tally, rater = Tally("kills: study serve"), Rater()
    with tempfile.TemporaryDirectory() as scratch:
        made = new_study(Path(scratch))
        study = Path(scratch) / "study"
        for number in budget.numbers():
            draw = budget.draw("study serve", number)
            clicks, moment = draw.randint(0, _MOST_CLICKS), draw.uniform(0, _LONGEST_SECONDS)
            before = len(rater.acknowledged)
            finding = _click_and_kill(study, rater, number, clicks, moment)
            with open_store(database_url(study, ""), made.study) as store:
                kept = Counter(rating.key for rating in store.ratings(every_revision=True))
            lost = [key for key in rater.acknowledged if key not in kept]
            doubled = [key for key, times in kept.items() if times > 1]
            ahead = len(kept) - len(rater.acknowledged) - number  # one per kill may have been on its way
            if lost or doubled or ahead > 1:
                finding = f"{len(lost)} lost, {len(doubled)} saved twice, {ahead} more than were sent"
            tally.count(f"case {number}, killed after {len(rater.acknowledged) - before} clicks", finding)
    tally.remark = f"{len(rater.acknowledged):,} clicks"
    return tally


def _click_and_kill(study: Path, rater: Rater, number: int, clicks: int, moment: float) -> str:
    server = ForkedCommand(("study", "serve", study, "--port", "0"), study.parent)
    killer = threading.Timer(moment, server.kill)
    try:
        with httpx.Client(base_url=_address(server), timeout=60, trust_env=False) as client:
            rater.join(client)
            finding = rater.click_until_it_dies(client, number, clicks, killer)
        return finding
    finally:
        killer.cancel()
        if killer.ident:
            killer.join()
        server.kill()
        server.wait()


def _address(server: ForkedCommand) -> str:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        for line in server.complaint().splitlines()[:-1]:
            if line.startswith("raters: "):
                return line.split()[1].rstrip("/")
        time.sleep(0.01)
    raise RuntimeError(f"the study did not start: {server.complaint()[-300:]}")


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    yield kill_study(budget_of(options))


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=50, seconds=600).parse_args())))
