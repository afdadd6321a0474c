"""Everything within a part of a plan, whatever its kind, for whoever looks for uses and cares for no structure.

It follows fields and tuples of structs, so that a new kind of step or expression is seen without a line here; the tree
of a source is made of the same stuff. Absent: order of evaluation, and which of two uses matters.
"""

from collections.abc import Iterator
from functools import cache

import msgspec

from riffdb.core.spans import Span
from riffdb.core.types import Type


def parts_of(part: object) -> Iterator[object]:
    """The part and everything within it, in source order."""
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting.extend(reversed(part))
        elif isinstance(part, msgspec.Struct):
            yield part
            for name in _inner(type(part)):
                value = getattr(part, name)
                if value:  # neither None nor empty
                    waiting.append(value)
        elif isinstance(part, Type):
            yield part
            waiting.append(part.element)


@cache
def _inner(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields that may hold parts, the last one first."""
    leaves = (str, int, bool, Span, str | None)
    return tuple(name for name, held in reversed(kind.__annotations__.items()) if held not in leaves)
