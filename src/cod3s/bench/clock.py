"""Measure wall time and processor time together."""

from time import perf_counter, process_time


class Clock:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._since = perf_counter(), process_time()

    def lap(self) -> tuple[float, float]:
        """Seconds of wall time and of processor time since the last lap."""
        wall, processor = self._since
        self._since = perf_counter(), process_time()
        return self._since[0] - wall, self._since[1] - processor
