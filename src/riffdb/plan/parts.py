"""Everything within a part of a plan, whatever its kind, for whoever looks for uses and cares for no structure.

It follows fields and tuples of structs, so that a new kind of step or expression is seen without a line here; the tree
of a source is made of the same stuff. Absent: order of evaluation, and which of two uses matters.
"""

from collections.abc import Iterator

import msgspec

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
            waiting.extend([getattr(part, name) for name in reversed(part.__struct_fields__)])
        elif isinstance(part, Type):
            yield part
            if part.element is not None:
                waiting.append(part.element)
