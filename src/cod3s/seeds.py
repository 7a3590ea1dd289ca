"""Seeds: the numbers that every generator of random numbers here takes."""

from cod3s.errors import UsageError

MAX_SEED = 2**32 - 1


def check_seed(seed: int) -> int:
    """`seed` itself when it is one, else a clear error."""
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"{seed} is no seed", hint=f"choose 0 to {MAX_SEED}")
    return seed
