"""Limit the cost of a run: calls per minute, and calls, tokens and dollars in all, over all of its rows."""

import asyncio
import time

from cod3s.ask.config import DEFAULT, DiversifyConfig, Prices
from cod3s.ask.replies import Tokens


class Meter:
    """Counts what all rows of a run spend, and admits a call only within the limits of the config."""

    def __init__(self, config: DiversifyConfig = DEFAULT) -> None:
        self._config, self._prices = config, config.prices
        self._interval = 60 / config.rate if config.rate else 0.0  # seconds between calls
        self._next_start = 0.0
        self._under_way = 0
        self.calls = 0
        self.is_used_up = False  # whether a call was refused
        self.tokens = Tokens()

    @property
    def cost(self) -> float | None:
        """Dollars so far; None if the prices are unknown."""
        return None if self._prices is None else cost_of(self.tokens, self._prices)

    async def admit(self) -> bool:
        """Wait until the rate allows a call; False if the limits allow none. `settle` ends what this begins."""
        if self._config.select_only or not self._is_within_limits():
            self.is_used_up = not self._config.select_only
            return False
        self.calls += 1
        self._under_way += 1
        if self._interval:
            now = time.monotonic()
            start = max(now, self._next_start)
            self._next_start = start + self._interval
            await asyncio.sleep(start - now)
        return True

    def settle(self, tokens: Tokens | None) -> None:
        """Count the tokens of a call that `admit` admitted."""
        self._under_way -= 1
        self.tokens += tokens or Tokens()

    def _is_within_limits(self) -> bool:
        """Calls under way count as much as the mean of those before, so that they do not overshoot together."""
        config = self._config
        if config.total_calls is not None and self.calls >= config.total_calls:
            return False
        settled = self.calls - self._under_way
        expected = 1 + self._under_way / settled if settled else 1.0
        if config.total_tokens is not None and self.tokens.total * expected >= config.total_tokens:
            return False
        return config.total_cost is None or (self.cost or 0.0) * expected < config.total_cost


def cost_of(tokens: Tokens, prices: Prices) -> float:
    """Dollars for these tokens."""
    return (tokens.prompt * prices.prompt + tokens.completion * prices.completion) / 1e6
