"""Where the steps run: one after another on this machine, or spread over a Ray cluster. Knows no step."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cod3s.errors import Progress, require

Task = tuple[Any, ...]
Worker = Callable[..., object]


class Engine(Protocol):
    """Runs `make()(*task)` for every task. Results travel as files, so that a killed run finds them again."""

    def run(self, make: Callable[[], Worker], tasks: Sequence[Task], progress: Progress) -> None: ...


class LocalEngine:
    """One task after another; the libraries inside a step use all cores."""

    def run(self, make: Callable[[], Worker], tasks: Sequence[Task], progress: Progress) -> None:
        worker = make() if tasks else None
        for task in tasks:
            assert worker is not None
            worker(*task)
            progress(1)


class RayEngine:
    """Ray Data over the tasks: `workers` actors, each with a worker of its own, and a GPU if there is one.

    Connects to the cluster of $RAY_ADDRESS; without one, Ray starts on this machine.
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
        data.DataContext.get_current().enable_progress_bars = False
        gpus = 1 if self._ray.cluster_resources().get("GPU", 0) >= self._workers else 0
        # A block a task: a worker takes the next one when it is free.
        numbers = data.range(len(tasks), override_num_blocks=len(tasks))
        done = numbers.map_batches(
            _RayWorker,
            fn_constructor_args=(make, list(tasks)),
            batch_size=1,
            compute=data.ActorPoolStrategy(size=min(self._workers, len(tasks))),
            num_cpus=1,
            num_gpus=gpus,
        )
        for batch in done.iter_batches(batch_size=None):
            progress(len(batch["id"]))


class _RayWorker:
    """What an actor holds: the worker, with its encoder, and the list that the rows are numbers of."""

    def __init__(self, make: Callable[[], Worker], tasks: Sequence[Task]) -> None:
        self._worker, self._tasks = make(), tasks

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        for number in batch["id"]:
            self._worker(*self._tasks[int(number)])
        return batch


def find_engine(name: str, workers: int) -> Engine:
    """The engine called `local` or `ray`."""
    return RayEngine(workers) if name == "ray" else LocalEngine()
