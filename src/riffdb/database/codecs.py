"""From wire forms to inside values and back, for the inputs of commands, rows, keys and events of one contract.

Made once for a contract and called for every command, so what can be decided beforehand is. Canonical forms are the
text that identities are hashed from. Absent: which command may be called, and what its values mean.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from riffdb.core.errors import input_error
from riffdb.core.layout import Key, Row
from riffdb.core.suggestions import did_you_mean
from riffdb.core.types import Type
from riffdb.core.values import Enums, decoder, encoder, unchanged
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
        self._sorted = sorted(
            (plan.name, place, encoder(plan.type, enums), self._defaults[place], plan.secret)
            for place, plan in enumerate(inputs)
        )

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

        The names are in order already, and msgspec writes the text that `core.canonical` would, several times faster.
        """
        form = {
            name: encode(decoded[place])
            for name, place, encode, default, is_secret in self._sorted
            if decoded[place] != default and (with_secrets or not is_secret)
        }
        return _encode(form).decode()


class RowCodec:
    """The wire forms of one entity's rows: whole without secrets, by changed fields, and of keys.

    The wire form of the newest row is kept: an answer's payload and the record of the change show the same row.
    """

    def __init__(self, entity: EntityPlan, enums: Enums) -> None:
        self.entity = entity.name
        self.revision_position = len(entity.columns)
        self.sequence_position = self.revision_position + 1
        types, shown, order = entity.types, frozenset(entity.visible), entity.storage_key
        self._positions = tuple(enumerate(entity.columns))
        self._hidden = tuple(name for name in entity.columns if name not in shown)
        self._encode = mapping_encoder([(name, types[name]) for name in (*entity.columns, "revision")], enums)
        key = mapping_encoder([(name, types[name]) for name in order], enums)
        declared = tuple(part.name for part in entity.key)
        self._encode_key = key if declared == order else lambda values: _in_order(key(values), declared)
        self._newest: tuple[Row, dict[str, Any]] = ((), {})

    def row(self, row: Row) -> dict[str, Any]:
        """The whole row with its revision, secrets left out."""
        wire = self._whole(row)
        return {name: wire[name] for name in wire if name not in self._hidden} if self._hidden else wire

    def key(self, key: Key) -> dict[str, Any]:
        """A storage key by field name, in declared order."""
        return self._encode_key(key)

    def changed(self, before: Row | None, after: Row | None) -> dict[str, Any]:
        """The fields of `after` that differ from `before`; all of them for a new row, none for a deleted one."""
        if after is None:
            return {}
        wire = self._whole(after)
        return {
            name: wire[name]
            for position, name in self._positions
            if before is None or before[position] != after[position]
        }

    def _whole(self, row: Row) -> dict[str, Any]:
        newest, wire = self._newest
        if newest is not row:
            wire = self._encode(row)
            self._newest = (row, wire)
        return wire


def mapping_encoder(fields: Sequence[tuple[str, Type]], enums: Enums) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """The function from values, in the order of the fields, to their wire forms by name.

    It is one expression, compiled: the record of every command passes through it. Names stand in it as literals only.
    """
    names: dict[str, Any] = {}
    parts = []
    for position, (name, value_type) in enumerate(fields):
        value, encode = f"values[{position}]", encoder(value_type.required, enums)
        if encode is unchanged:
            parts.append(f"{name!r}: {value}")
            continue
        names[f"encode_{position}"] = encode
        guard = f"None if {value} is None else " if value_type.optional else ""
        parts.append(f"{name!r}: {guard}encode_{position}({value})")
    function: Callable[[Sequence[Any]], dict[str, Any]] = eval(f"lambda values: {{{', '.join(parts)}}}", names)
    return function


def _in_order(mapping: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: mapping[name] for name in names}
