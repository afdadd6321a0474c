"""The frame of snapshots and transactions: served inside their block alone, driver errors translated at every call.

A store's readers derive from `View` and mark each method of the protocol with `served`. Absent: what they read.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from riffdb.storage.refusals import ended

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")
Viewing = TypeVar("Viewing", bound="View")


class View:
    """A snapshot or a transaction of a store."""

    driver_errors: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self) -> None:
        self.is_open = False

    def check_store(self) -> None:
        """Raise what a store that serves nothing more answers."""
        raise NotImplementedError

    def failed(self, error: Exception) -> Exception:
        """The error to raise for one of the driver."""
        raise NotImplementedError


def served(
    method: Callable[Concatenate[Viewing, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Viewing, Parameters], Coroutine[Any, Any, Result]]:
    """The method, refused outside the view's block and by a dead store, raising no error of a driver."""

    @wraps(method)
    async def call(view: Viewing, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not view.is_open:
            raise ended()
        view.check_store()
        try:
            return await method(view, *args, **kwargs)
        except view.driver_errors as error:
            raise view.failed(error) from error

    return call
