"""The payload of a query's answer as JSON, and which secrets it may hold.

Rows are objects of their selected fields, `many` an array of them; a number of rows is a decimal string, what was
counted by a value an array of objects in the order of the values; a cursor is a string, or null where nothing follows.
A plan that shows a secret without revealing it is no compiler's, and nothing is made of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from riffdb.core.types import U64, Type
from riffdb.core.values import Enums
from riffdb.database.codecs import json_text, member_encoder, object_encoder, object_text
from riffdb.engine.folding import sum_type
from riffdb.plan import Plan
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.queries import BindingPlan, QueryField, QueryPlan

Encode = Callable[[Any], str]

COUNT = "n"
"""The name of the number beside the value that it was counted by."""


def payload_encoder(plan: Plan, query: QueryPlan, payload: Sequence[QueryField]) -> Callable[[tuple[Any, ...]], str]:
    """The function from the values of an outcome to its payload."""
    parts = tuple(_member(plan, query, part) for part in payload)
    return lambda values: object_text([encode(value) for encode, value in zip(parts, values, strict=True)])


def _member(plan: Plan, query: QueryPlan, part: QueryField) -> Encode:
    enums = plan.enum_variants()
    if part.value is not None:
        return _single(part.name, part.value.type, enums)
    start = f'"{part.name}":'
    if part.is_cursor:
        return lambda cursor: start + ("null" if cursor is None else json_text(cursor))
    binding = next(binding for binding in query.bindings if binding.name == part.binding)
    entity = plan.entity(binding.entity)
    if binding.kind not in ("one", "maybe", "many"):
        return _number(part.name, binding, entity, enums)
    _check_secrets(query, entity, part.fields)
    encode_row = _object([(name, entity.types[name]) for name in part.fields], enums)
    if binding.kind == "many":
        return lambda rows: f"{start}[{','.join(map(encode_row, rows))}]"
    return lambda row: start + ("null" if row is None else encode_row(row))


def _number(name: str, binding: BindingPlan, entity: EntityPlan, enums: Enums) -> Encode:
    if binding.kind == "count" and not binding.by:
        return _single(name, U64, enums)
    column = entity.types[binding.by or binding.field]
    if binding.kind == "count":
        encode_pair = _object([(binding.by, column), (COUNT, U64)], enums)
        return lambda pairs: f'"{name}":[{",".join(map(encode_pair, pairs))}]'
    return _single(name, sum_type(column) if binding.kind == "sum" else column.nullable, enums)


def _single(name: str, value_type: Type, enums: Enums) -> Encode:
    encode = member_encoder([(name, value_type)], enums)
    return lambda value: encode((value,))[0]


def _object(fields: Sequence[tuple[str, Type]], enums: Enums) -> Encode:
    return object_encoder([(name, value_type, place) for place, (name, value_type) in enumerate(fields)], enums)


def _check_secrets(query: QueryPlan, entity: EntityPlan, fields: Sequence[str]) -> None:
    revealed = {part.field for part in query.reveals if part.entity == entity.name}
    hidden = {part.name for part in entity.fields if part.secret} - revealed
    if hidden.intersection(fields):
        raise AssertionError(f"the query {query.name} shows a secret that it does not reveal")
