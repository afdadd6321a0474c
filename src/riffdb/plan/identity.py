"""The identity of a plan and of each declaration: SHA-256 over the canonical form.

The canonical form leaves out doc comments, former names, the contract's version, the application's name, the order in
which declarations stand in files and that of the names in a role; it is the same text on every machine. Parts that are
at their default are left out, so that a form which learns something new keeps the identity of what does not use it.
"""

from functools import cache
from typing import Any

import msgspec

from riffdb.core.canonical import canonical_hash, canonical_json
from riffdb.core.types import Type
from riffdb.plan.plan import Plan
from riffdb.plan.queries import RolePlan

_FAMILIES = (
    "enums",
    "records",
    "entities",
    "events",
    "workflows",
    "commands",
    "queries",
    "streams",
    "roles",
    "schedules",
)
_UNSAID = ("doc", "was")
_GRANTS = ("queries", "commands", "streams")


def canonical(plan: Plan) -> str:
    """The canonical JSON text of the plan."""
    return canonical_json(_canonical_value(plan))


def plan_hash(plan: Plan) -> bytes:
    """The identity of the whole plan, 32 bytes."""
    return canonical_hash(_canonical_value(plan))


def declaration_hashes(plan: Plan) -> dict[str, bytes]:
    """The identity of every declaration by `family.name`, such as `queries.DueWork`; 32 bytes each."""
    value = _canonical_value(plan)
    return {
        f"{family}.{declaration['name']}": canonical_hash(declaration)
        for family in _FAMILIES
        for declaration in value.get(family, ())
    }


def declaration_hash(plan: Plan, family: str, name: str) -> bytes:
    """The identity of one declaration; `KeyError` if there is none."""
    return declaration_hashes(plan)[f"{family}.{name}"]


def _canonical_value(plan: Plan) -> dict[str, Any]:
    families = {
        family: [_form(part) for part in sorted(parts, key=lambda part: str(part.name))]
        for family in _FAMILIES
        if (parts := getattr(plan, family))
    }
    return {"contract": plan.contract, **families}


def _form(part: Any) -> Any:
    if isinstance(part, Type):
        return str(part)
    if isinstance(part, RolePlan):
        part = msgspec.structs.replace(part, **{name: tuple(sorted(getattr(part, name))) for name in _GRANTS})
    if isinstance(part, tuple):
        return [_form(item) for item in part]
    if not isinstance(part, msgspec.Struct):
        return part
    config = part.__struct_config__
    form = {} if config.tag is None else {config.tag_field: config.tag}
    for field in _fields(type(part)):
        value = getattr(part, field.name)
        at_default = type(value) is type(field.default) and value == field.default
        if field.name not in _UNSAID and not at_default:
            form[field.name] = _form(value)
    return form


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a struct, which are found once a type: asking again costs most of a hash."""
    return msgspec.structs.fields(kind)
