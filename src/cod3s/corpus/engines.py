"""Run the steps in turn on this machine, or spread over a Ray cluster."""

import json
import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

from cod3s import errors
from cod3s.errors import Cod3sError, Progress, require

Task = tuple[Any, ...]
Worker = Callable[..., object]


class Engine(Protocol):
    """Runs `make()(*task)` for every task. Results are files, so that a killed run finds them again."""

    def run(self, make: Callable[[], Worker], tasks: Sequence[Task], progress: Progress) -> None: ...


class LocalEngine:
    """One task after another; the libraries inside a step use all cores."""

    def run(self, make: Callable[[], Worker], tasks: Sequence[Task], progress: Progress) -> None:
        if not tasks:
            return
        worker = make()
        for task in tasks:
            worker(*task)
            progress(1)


class RayEngine:
    """Ray Data over the tasks: `workers` actors, each with a worker, and a GPU if there are enough.

    Connects to the cluster at $RAY_ADDRESS; if it is not set, Ray starts on this machine.
    """

    def __init__(self, workers: int = 2) -> None:
        self._ray = require("ray", "ray")
        self._workers = workers

    def run(self, make: Callable[[], Worker], tasks: Sequence[Task], progress: Progress) -> None:
        if not tasks:
            return
        data = require("ray.data", "ray")
        if not self._ray.is_initialized():
            self._ray.init(log_to_driver=False, include_dashboard=False)
        data.DataContext.get_current().enable_progress_bars = False  # we show our own
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        gpus = 1 if self._ray.cluster_resources().get("GPU", 0) >= self._workers else 0
        # One block per task: a worker takes the next when it is free. The numbers come from memory and not from
        # Ray's `range`, because its read tasks would wait for a CPU that the actors hold.
        numbers = data.from_items([{"id": number} for number in range(len(tasks))], override_num_blocks=len(tasks))
        done = numbers.map_batches(
            _RayWorker,
            fn_constructor_args=(make, list(tasks)),
            batch_size=1,
            compute=data.ActorPoolStrategy(size=min(self._workers, len(tasks))),
            num_cpus=1,
            num_gpus=gpus,
        )
        for batch in done.iter_batches(batch_size=None):
            for failed in filter(None, batch["failed"]):
                raise _as_error(failed)
            progress(len(batch["id"]))


class _RayWorker:
    """An actor: the worker, with the models it opens, and the list of all tasks."""

    def __init__(self, make: Callable[[], Worker], tasks: Sequence[Task]) -> None:
        self._make, self._tasks = make, tasks

    @cached_property
    def _worker(self) -> Worker:
        """Create the worker with the first task, so that its failures are reported like any others."""
        return self._make()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch with error messages in `failed`: Ray itself would bury them in stack traces."""
        return {**batch, "failed": [self._run(int(number)) for number in batch["id"]]}

    def _run(self, number: int) -> str:
        try:
            self._worker(*self._tasks[number])
        except Cod3sError as error:
            return json.dumps([type(error).__name__, error.message, error.hint])
        except OSError as error:
            hint = (
                "check that all workers can reach it and that it has space, then run the command again to resume"
            )
            return json.dumps(["LocationError", f"the operating system of a worker refused: {error}", hint])
        return ""


def _as_error(failed: str) -> Cod3sError:
    kind, message, hint = json.loads(failed)
    error: Cod3sError = getattr(errors, kind, Cod3sError)(message, hint)
    return error


def find_engine(name: str, workers: int) -> Engine:
    """The engine called `local` or `ray`."""
    return RayEngine(workers) if name == "ray" else LocalEngine()
