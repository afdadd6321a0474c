"""From wire forms to inside values and back, for the inputs of commands, rows, keys and events of one contract.

Made once for a contract and called for every command, so what can be decided beforehand is. Canonical forms are the
text that identities are hashed from. Absent: which command may be called, and what its values mean.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from riffdb.core.errors import input_error
from riffdb.core.layout import Key, Row
from riffdb.core.suggestions import did_you_mean
from riffdb.core.types import Type
from riffdb.core.values import Enums, decoder, encoder
from riffdb.plan.commands import InputPlan
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import inside_value

_encode = msgspec.json.Encoder().encode


class InputCodec:
    """Decodes the inputs of a command, or the parameters of a query, and says them in canonical form."""

    def __init__(self, inputs: tuple[InputPlan, ...], enums: Enums, noun: str) -> None:
        self._noun = noun
        self.has_secrets = any(plan.secret for plan in inputs)
        self._places = {plan.name: (place, decoder(plan.type, enums)) for place, plan in enumerate(inputs)}
        self._defaults = tuple(inside_value(plan.type, plan.default) if plan.has_default else None for plan in inputs)
        self._required = tuple(plan for plan in inputs if not (plan.has_default or plan.type.optional))
        order = sorted(range(len(inputs)), key=lambda place: inputs[place].name)
        self._sorted = tuple((place, self._defaults[place], inputs[place].secret) for place in order)
        self._encode = member_encoder([(plan.name, plan.type.nullable) for plan in inputs], enums)

    def decode(self, values: Mapping[str, object], only: frozenset[str] | None = None) -> tuple[Any, ...]:
        """Inside values in declared order; `RDB-E-INPUT` with the path of what is wrong.

        With `only`, the names that matter: the others may be missing and come out as None.
        """
        decoded = list(self._defaults)
        for name, value in values.items():
            known = self._places.get(name)
            if known is None:
                hint = did_you_mean(name, self._places)
                raise input_error(name, f"is no {self._noun} here{hint}")
            place, decode = known
            decoded[place] = decode(value, name)
        for plan in self._required:
            if plan.name not in values and (only is None or plan.name in only):
                raise input_error(plan.name, f"is missing; give a value of type {plan.type}")
        return tuple(decoded)

    def canonical(self, decoded: tuple[Any, ...], *, with_secrets: bool) -> str:
        """Canonical JSON of the values, defaults left out (null is one), so that a new input keeps old forms valid.

        It is the text that `core.canonical` would write, several times faster.
        """
        members = self._encode(decoded)
        return object_text(
            [
                members[place]
                for place, default, is_secret in self._sorted
                if decoded[place] != default and (with_secrets or not is_secret)
            ]
        )


class RowCodec:
    """The JSON texts of one entity's rows: whole without secrets, by changed fields, and of keys.

    The members of the newest row are kept: an answer's payload and the record of the change show the same row.
    """

    def __init__(self, entity: EntityPlan, enums: Enums) -> None:
        self.entity = entity.name
        self.revision_position = len(entity.columns)
        self.sequence_position = self.revision_position + 1
        types, order = entity.types, entity.storage_key
        shown = (*entity.visible, "revision")
        self._encode = member_encoder([(name, types[name]) for name in (*entity.columns, "revision")], enums)
        self._hidden = tuple(place for place, name in enumerate(entity.columns) if name not in shown)
        self._encode_key = member_encoder([(name, types[name]) for name in order], enums)
        self._key_places = tuple(order.index(part.name) for part in entity.key)
        self._newest: tuple[Row, tuple[str, ...]] = ((), ())

    def row(self, row: Row) -> str:
        """The whole row with its revision, secrets left out."""
        members = self._members(row)
        if self._hidden:
            return object_text([member for place, member in enumerate(members) if place not in self._hidden])
        return object_text(members)

    def key(self, key: Key) -> str:
        """A storage key by field name, in declared order."""
        members = self._encode_key(key)
        return object_text([members[place] for place in self._key_places])

    def changed(self, before: Row | None, after: Row | None) -> str:
        """The fields of `after` that differ from `before`; all of them for a new row, none for a deleted one."""
        if after is None:
            return "{}"
        members = self._members(after)[: self.revision_position]
        if before is None:
            return object_text(members)
        return object_text([text for text, old, new in zip(members, before, after, strict=False) if old != new])

    def _members(self, row: Row) -> tuple[str, ...]:
        newest, members = self._newest
        if newest is not row:
            members = self._encode(row)
            self._newest = (row, members)
        return members


def object_text(members: Iterable[str]) -> str:
    """The JSON object of these members."""
    return f"{{{','.join(members)}}}"


def json_text(value: Any) -> str:
    """The JSON text of a wire value."""
    return _encode(value).decode()


def member_encoder(fields: Sequence[tuple[str, Type]], enums: Enums) -> Callable[[Sequence[Any]], tuple[str, ...]]:
    """The function from values, in the order of the fields, to the members of a JSON object, `"name":value` each.

    It is one expression, compiled: the answer and the record of every command pass through it. A name of a contract is
    an identifier, so it needs no escape; it stands in the expression as part of a literal only.
    """
    names: dict[str, Any] = {"json_text": json_text}
    parts = []
    for place, (name, value_type) in enumerate(fields):
        member = _member(name, value_type, f"values[{place}]", f"encode_{place}", enums, names)
        if value_type.optional:
            null = f'"{name}":null'
            member = f"({null!r} if values[{place}] is None else {member})"
        parts.append(member)
    function: Callable[[Sequence[Any]], tuple[str, ...]] = eval(f"lambda values: ({', '.join(parts)},)", names)
    return function


def _member(name: str, value_type: Type, value: str, encode: str, enums: Enums, names: dict[str, Any]) -> str:
    """The expression of one member that is not null; what it needs is put into `names` as `encode`."""
    start = f'"{name}":'
    match value_type.kind:
        case "enum":
            names[encode] = tuple(f'{start}"{variant}"' for variant in enums[value_type.name])
            return f"{encode}[{value}]"
        case "bool":
            return f"({start + 'true'!r} if {value} else {start + 'false'!r})"
        case "string":
            return f"{start!r} + json_text({value})"
        case "i64" | "u64" | "uuid" | "timestamp" | "date" | "decimal" | "bytes":
            names[encode] = encoder(value_type.required, enums)
            return f"{start + chr(34)!r} + {encode}({value}) + {chr(34)!r}"
    names[encode] = encoder(value_type.required, enums)
    return f"{start!r} + json_text({encode}({value}))"
