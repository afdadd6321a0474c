"""One source for sync and async: run to its end a coroutine that never waits for an event loop.

Whatever rests on a store or a transport that blocks instead of suspending finishes in one step; a suspension there is
a fault of ours and is reported as such, never waited for.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")
Owner = TypeVar("Owner")


def step(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The coroutine's result; `AssertionError` if it suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    coroutine.close()
    raise AssertionError("a coroutine of the sync interface waited for an event loop")


def stepped(
    method: Callable[Concatenate[Owner, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Owner, Parameters], Result]:
    """The blocking twin of an async method whose transport never suspends."""

    @wraps(method)
    def call(owner: Owner, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return step(method(owner, *args, **kwargs))

    return call
