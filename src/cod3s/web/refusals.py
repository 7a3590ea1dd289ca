"""Why a request is not answered: errors with the status they are sent with."""

from cod3s.errors import Cod3sError


class RefusedError(Cod3sError):
    """A request that the server does not answer; `status` is the HTTP status, `headers` go with it."""

    status = 400
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed


class WrongTypeError(RefusedError):
    """A body that does not say it is JSON: what a page of another origin may send unasked."""

    status = 415


class TooLargeError(RefusedError):
    """A body of more bytes than are read."""

    status = 413


class TooSlowError(RefusedError):
    """A body that does not arrive in time."""

    status = 408


class BusyError(RefusedError):
    """More requests than may wait."""

    status = 503

    def __init__(self, seconds: int) -> None:
        super().__init__("too many requests are waiting", hint=f"try again in {seconds} seconds")
        self.headers = {"Retry-After": str(seconds)}


class OutOfTimeError(RefusedError):
    """An answer that takes longer than the server gives it."""

    status = 504

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"this took longer than {seconds:g} seconds",
            hint="ask for fewer answers or a narrower beam, or try later",
        )
