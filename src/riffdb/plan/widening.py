"""How one type, or one expression, follows another of the same place.

Absent: what that means for a declaration, which the rules of `changes` say.
"""

from typing import Any, Literal

import msgspec

from riffdb.core.types import Type

Step = Literal["same", "wider", "nullable", "other"]


def type_step(old: Type, new: Type) -> Step:
    """How `new` follows `old`: `wider` holds every value of it in the same form, `nullable` does, and null beside."""
    if old == new:
        return "same"
    if old.optional and not new.optional:
        return "other"
    if not _holds(old, new):
        return "other"
    return "wider" if old.optional == new.optional else "nullable"


def _holds(old: Type, new: Type) -> bool:
    if (old.kind, old.name) != (new.kind, new.name) or new.bound < old.bound:
        return False
    if old.element is not None and new.element is not None:
        return new.scale <= old.scale and type_step(old.element, new.element) != "other"
    return old.scale == new.scale


def meaning(part: object) -> Any:
    """What a part of a plan says, without types that come from elsewhere; a constant keeps the kind of its own."""
    if isinstance(part, Type):
        return (part.kind, part.name, part.scale)
    if isinstance(part, tuple):
        return tuple(meaning(item) for item in part)
    if not isinstance(part, msgspec.Struct):
        return part
    tag = part.__struct_config__.tag
    names = [
        name
        for name in part.__struct_fields__
        if name not in ("doc", "was") and (name != "type" or tag in (None, "constant"))
    ]
    return (tag, *(meaning(getattr(part, name)) for name in names))
