"""Tell plausible pairs from others with a bundle's own language model, tuned by an adapter."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode.protocol import length_sorted_batches
from cod3s.errors import BundleError
from cod3s.model.adapter import Adapter, adapted_files
from cod3s.model.causal_engine import CausalEngine
from cod3s.model.engine import Files, Request

NAME = "verifier.npz"
_BATCH_TOKENS = 512


class Verifier(CausalEngine):
    """The language model in `folder` with an adapter that has a head, open."""

    def __init__(self, folder: Path, adapter: Adapter, **options: Any) -> None:
        if adapter.head is None:
            raise BundleError(
                "the adapter has no head to judge pairs with", hint="tune it with `cod3s critic tune`"
            )
        self._adapter, self._bias = adapter, adapter.head.bias
        super().__init__(folder, **options)

    def log_odds(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[int]]
    ) -> npt.NDArray[np.float64]:
        """How plausible each continuation is after its request: log p(plausible) - log p(implausible)."""
        rows = list(map(self.pair_row, requests, continuations))
        values = np.empty(len(rows))

        def fill(batch: list[int]) -> None:
            states = np.asarray(
                self._model.forward_batch([rows[number] for number in batch])
            )  # (batch, longest, 8)
            values[batch] = [states[position, len(rows[row]) - 1, 0] for position, row in enumerate(batch)]

        with ThreadPoolExecutor(self._threads) as workers:
            list(workers.map(fill, length_sorted_batches([*map(len, rows)], _BATCH_TOKENS)))
        return values + self._bias

    def _files(self) -> Files:
        return adapted_files(self._folder, self._adapter)
