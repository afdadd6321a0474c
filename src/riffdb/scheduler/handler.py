"""The user's handler: what it is given, what it gives back, how it is called.

A handler computes the further inputs of the business command and may run more than once for one piece of work; effects
outside belong behind the commit. A sync handler runs in a thread, an async one on the loop. However it ends, its end is
a value here: an exception never crosses from a thread by itself.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from riffdb.scheduler.identity import Target


@dataclass(frozen=True, slots=True)
class Work:
    """What a handler is given: the selected fields and the claim's payload in native values, due in µs, and the count
    of tries from 1.

    For systems outside: `key` is the same for every try at this work, as long as its due time stays; `fencing_token`
    grows with every claim.
    """

    schedule: str
    due: int
    target: Target = field(repr=False)
    tries: int
    key: str = field(repr=False)
    fencing_token: int = field(repr=False)
    fields: Mapping[str, object] = field(repr=False)
    claimed: Mapping[str, object] = field(repr=False)


Inputs: TypeAlias = Mapping[str, object]
Handler: TypeAlias = Callable[[Work], Inputs | None] | Callable[[Work], Awaitable[Inputs | None]]


@dataclass(frozen=True, slots=True)
class Produced:
    """The handler returned the further inputs of the business command."""

    inputs: Inputs = field(repr=False)


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler raised, or returned something that is no mapping."""

    error: BaseException


def is_async(handler: Handler) -> bool:
    """Whether calling the handler gives a coroutine, which can be cancelled; a thread cannot."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


async def call(handler: Handler, work: Work) -> Produced | Raised:
    """Run the handler to its end."""
    try:
        returned: object = (
            handler(work) if is_async(handler) else await asyncio.to_thread(_call_in_thread, handler, work)
        )
        if isinstance(returned, Raised):
            return returned
        inputs = await returned if inspect.isawaitable(returned) else returned
    except Exception as error:  # noqa: BLE001  # whatever the user's code raises is an end of this turn, and carried in it
        return Raised(error)
    if inputs is None:
        return Produced({})
    if not isinstance(inputs, Mapping):
        return Raised(TypeError("a handler returns a mapping of the command's further inputs, or None"))
    return Produced(inputs)


def _call_in_thread(handler: Handler, work: Work) -> object:
    try:
        return handler(work)
    except Exception as error:  # noqa: BLE001  # a StopIteration would never arrive as the exception of a future
        return Raised(error)
