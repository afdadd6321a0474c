"""The closed classes of failure that a port may raise, and which of them an error of RiffDB belongs to.

A failure carries the adapter's error in `cause`, for whoever may see it; its own text is fixed, so that nothing of the
error (tokens, keys, inputs) reaches a log by way of a message, a `repr` or a chained traceback.
"""

from riffdb.core.errors import RiffError


class SchedulerFailure(Exception):  # noqa: N818  # the four classes are named by the protocol
    """An operation of the port could not be done; one of the four classes below."""

    reason = "an operation of the turn failed"

    def __init__(self, cause: BaseException | None = None, reason: str = "") -> None:
        super().__init__(reason or self.reason)
        self.cause = cause
        self.__suppress_context__ = True


class Retryable(SchedulerFailure):
    """It may be tried again later; whether it was done is not known."""

    reason = "an operation of the turn may be tried again"


class HandlerError(Retryable):
    """The user's handler raised; `cause` is its exception."""

    reason = "the handler raised"


class AuthorizationRevoked(SchedulerFailure):
    """The capability no longer allows it; nothing was done, and no further operation will be allowed."""

    reason = "the capability no longer allows the operation"


class Cancelled(SchedulerFailure):
    """The worker was told to stop, and stopped between two operations."""

    reason = "the turn was cancelled between two operations"


class Permanent(SchedulerFailure):
    """It was refused, nothing was done, and trying the same again will not help."""

    reason = "an operation of the turn was refused for good"


def failure_of(error: RiffError) -> SchedulerFailure:
    """The failure that an error counts as, by its code, with the error in `cause`.

    `RDB-E-IDEMPOTENCY-REUSED` and `RDB-E-ABSENT` are answers of the port (`KeyReused`, `Absent`), not failures.
    """
    if error.code in ("RDB-E-UNAUTHENTICATED", "RDB-E-FORBIDDEN"):
        return AuthorizationRevoked(error)
    return Retryable(error) if error.facts.retryable else Permanent(error)
