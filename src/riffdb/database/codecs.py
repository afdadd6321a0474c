"""From wire forms to inside values and back, for the inputs of commands, rows, keys and events of one contract.

Made once for a contract and called for every command, so what can be decided beforehand is. Canonical forms are the
text that identities are hashed from. Absent: which command may be called, and what its values mean.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring as string_text
from typing import Any

import msgspec

from riffdb.core.errors import input_error
from riffdb.core.layout import Key, Row
from riffdb.core.suggestions import did_you_mean
from riffdb.core.types import Type
from riffdb.core.values import NO_RECORDS, Enums, Records, decoder, encoder
from riffdb.plan.commands import InputPlan, PayloadField
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import inside_value

_encode = msgspec.json.Encoder().encode


class InputCodec:
    """Decodes the inputs of a command, or the parameters of a query, and says them in canonical form."""

    def __init__(self, inputs: tuple[InputPlan, ...], enums: Enums, noun: str, records: Records = NO_RECORDS) -> None:
        self._noun = noun
        self.has_secrets = any(plan.secret for plan in inputs)
        self._names = dict.fromkeys(plan.name for plan in inputs)
        self._defaults = tuple(inside_value(plan.type, plan.default) if plan.has_default else None for plan in inputs)
        self._required = {plan.name: plan for plan in inputs if not (plan.has_default or plan.type.optional)}
        self._decode = _decoders([(plan.name, plan.type) for plan in inputs], self._defaults, enums, records)
        order = sorted(range(len(inputs)), key=lambda place: inputs[place].name)
        self._sorted = tuple((place, self._defaults[place], inputs[place].secret) for place in order)
        self._encode = member_encoder([(plan.name, plan.type.nullable) for plan in inputs], enums, records)
        self._whole = None
        if len(self._required) == len(inputs) and not self.has_secrets:
            named = [(inputs[place].name, inputs[place].type, place) for place in order]
            self._whole = object_encoder(named, enums, records)

    def decode(self, values: Mapping[str, object], only: frozenset[str] | None = None) -> tuple[Any, ...]:
        """Inside values in declared order; `RDB-E-INPUT` with the path of what is wrong.

        With `only`, the names that matter: the others may be missing and come out as None.
        """
        if not values.keys() <= self._names.keys():
            name = next(name for name in values if name not in self._names)
            raise input_error(name, f"is no {self._noun} here{did_you_mean(name, self._names)}")
        decoded = self._decode(values)
        if len(values) < len(decoded):
            for name, plan in self._required.items():
                if name not in values and (only is None or name in only):
                    raise input_error(name, f"is missing; give a value of type {plan.type}")
        return decoded

    def canonical(self, decoded: tuple[Any, ...]) -> str:
        """Canonical JSON of the values that are no secret, defaults left out (null is one), so that a new input keeps
        old forms valid. It is the text that `core.canonical` would write, several times faster."""
        return self._some(decoded, secret=False) if self._whole is None else self._whole(decoded)

    def secret(self, decoded: tuple[Any, ...]) -> str:
        """The same of those that are secret."""
        return self._some(decoded, secret=True)

    def _some(self, decoded: tuple[Any, ...], *, secret: bool) -> str:
        members = self._encode(decoded)
        return object_text(
            [
                members[place]
                for place, default, is_secret in self._sorted
                if decoded[place] != default and is_secret == secret
            ]
        )


class RowCodec:
    """The JSON texts of one entity's rows: whole without secrets, of keys, and of changes.

    The members of the newest row are kept: an answer's payload and the record of the change show the same row.
    """

    def __init__(self, entity: EntityPlan, enums: Enums) -> None:
        self._columns = entity.columns
        self._revision = len(entity.columns)
        self._sequence = self._revision + 1
        types = entity.types
        self._encode = member_encoder([(name, types[name]) for name in entity.columns], enums)
        visible = entity.visible
        self._hidden = tuple(place for place, name in enumerate(entity.columns) if name not in visible)
        self.has_secrets = bool(self._hidden)
        order = entity.storage_key
        key = [(part.name, part.type, order.index(part.name)) for part in entity.key]
        self.key = object_encoder(key, enums)
        """The text of a storage key by field name, in declared order."""
        self._start = f'{{"entity":"{entity.name}","key":'
        self._keys = len(key)
        self._newest: tuple[Row, tuple[str, ...]] = ((), ())

    def row(self, row: Row) -> str:
        """The whole row with its revision, secrets left out."""
        shown: Iterable[str] = self._members(row)
        if self._hidden:
            shown = [member for place, member in enumerate(shown) if place not in self._hidden]
        return f'{{{",".join(shown)},"revision":"{row[self._revision]}"}}'

    def change(self, key: Key, before: Row | None, after: Row | None, ended: int | None) -> str:
        """What a record tells of a change: the key, the revisions, the commit that wrote the row before, and the fields
        that differ: all of them for a new row, none for a deleted one. For a new row of a key that had one, `ended` is
        the commit that deleted it."""
        if after is None:
            assert before is not None, "a row that was not there is not deleted"
            start = self._start + self.key(key)
            revision, sequence = before[self._revision], before[self._sequence]
            return f'{start},"before":"{revision}","after":null,"previous":"{sequence}","fields":{{}}}}'
        members, revision = self._members(after), after[self._revision]
        start = f"{self._start}{{{','.join(members[: self._keys])}}}"
        if self._hidden:
            return start + self._change_beside_secrets(before, after, ended)
        if before is None:
            previous = "null" if ended is None else f'"{ended}"'
            fields = ",".join(members)
            return f'{start},"before":null,"after":"{revision}","previous":{previous},"fields":{{{fields}}}}}'
        # There are as many members as columns, behind which the rows have revision and sequence.
        stored = zip(members, before, after, strict=False)
        fields = ",".join([text for text, old, new in stored if old is not new and old != new])
        found, sequence = before[self._revision], before[self._sequence]
        return f'{start},"before":"{found}","after":"{revision}","previous":"{sequence}","fields":{{{fields}}}}}'

    def secret_change(self, before: Row | None, after: Row | None) -> str:
        """What `change` keeps back: the secret fields that differ, with their values."""
        if after is None:
            return "{}"
        members = self._members(after)
        return object_text(
            [members[place] for place in self._hidden if before is None or before[place] != after[place]]
        )

    def _change_beside_secrets(self, before: Row | None, after: Row, ended: int | None) -> str:
        """What `change` tells behind the key; secret fields that differ are named, without their values."""
        members = self._members(after)
        differing = [place for place in range(self._revision) if before is None or before[place] != after[place]]
        fields = ",".join([members[place] for place in differing if place not in self._hidden])
        secret = ",".join([f'"{self._columns[place]}"' for place in differing if place in self._hidden])
        found, sequence = (None, ended) if before is None else (before[self._revision], before[self._sequence])
        revisions = [("before", found), ("after", after[self._revision]), ("previous", sequence)]
        told = ",".join([f'"{name}":null' if value is None else f'"{name}":"{value}"' for name, value in revisions])
        return f',{told},"fields":{{{fields}}},"secret":[{secret}]}}'

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


def _decoders(
    fields: Sequence[tuple[str, Type]], defaults: Sequence[Any], enums: Enums, records: Records
) -> Callable[[Mapping[str, object]], tuple[Any, ...]]:
    """The function from values by name to inside values in the order of the fields, with defaults for missing ones; one
    expression, as that of `member_encoder`."""
    names: dict[str, Any] = {}
    terms = []
    for place, (name, value_type) in enumerate(fields):
        names[f"decode_{place}"] = decoder(value_type, enums, records)
        names[f"default_{place}"] = defaults[place]
        terms.append(f"decode_{place}(values['{name}'], '{name}') if '{name}' in values else default_{place}, ")
    function: Callable[[Mapping[str, object]], tuple[Any, ...]] = eval(f"lambda values: ({''.join(terms)})", names)
    return function


def member_encoder(
    fields: Sequence[tuple[str, Type]], enums: Enums, records: Records = NO_RECORDS
) -> Callable[[Sequence[Any]], tuple[str, ...]]:
    """The function from values, in the order of the fields, to the members of a JSON object, `"name":value` each.

    It is one expression, compiled: the answer and the record of every command pass through it. A name of a contract is
    an identifier, so it needs no escape; it stands in the expression as part of a literal only.
    """
    made = _Encoders(enums, records)
    members = [made.member(name, value_type, place) for place, (name, value_type) in enumerate(fields)]
    function: Callable[[Sequence[Any]], tuple[str, ...]] = made.function(
        f"({', '.join(_text(member) for member in members)},)"
    )
    return function


def object_encoder(
    fields: Sequence[tuple[str, Type, int]], enums: Enums, records: Records = NO_RECORDS
) -> Callable[[Sequence[Any]], str]:
    """The function from values to the JSON object of the named fields, each with the place of its value."""
    made = _Encoders(enums, records)
    return made.object([made.member(*field) for field in fields])


def answer_encoder(
    fields: Sequence[PayloadField], rows: Mapping[str, RowCodec], enums: Enums
) -> Callable[[Sequence[Any]], str]:
    """The function from an answer's values to its payload, where an entity is shown as its whole row."""
    made = _Encoders(enums, NO_RECORDS)
    return made.object(
        [
            made.row(field.name, place, rows[field.entity].row)
            if field.entity
            else made.member(field.name, field.type, place)
            for place, field in enumerate(fields)
        ]
    )


class _Encoders:
    """Writes the members of JSON objects as the insides of an f-string, which may hold other quotes and no backslash,
    and knows what the names in them mean."""

    def __init__(self, enums: Enums, records: Records) -> None:
        self._enums, self._records = enums, records
        self._names: dict[str, Any] = {"json_text": json_text, "string_text": string_text}

    def function(self, expression: str) -> Any:
        """The function from `values` to the value of the expression."""
        return eval(f"lambda values: {expression}", self._names)

    def object(self, members: Iterable[str]) -> Callable[[Sequence[Any]], str]:
        """The function from values to the object of these members."""
        function: Callable[[Sequence[Any]], str] = self.function(_text(f"{{{{{','.join(members)}}}}}"))
        return function

    def member(self, name: str, value_type: Type, place: int) -> str:
        """The member of the value in this place."""
        text = self._value(value_type, place)
        return f'"{name}":{_or_null(place, _inner(text))}' if value_type.optional else f'"{name}":{text}'

    def row(self, name: str, place: int, encode: Callable[[Row], str]) -> str:
        """The member of the row in this place, which may be missing."""
        self._names[f"encode_{place}"] = encode
        return f'"{name}":{_or_null(place, f"encode_{place}(values[{place}])")}'

    def _value(self, value_type: Type, place: int) -> str:
        """The text of a value that is not null."""
        value, encode = f"values[{place}]", f"encode_{place}"
        match value_type.kind:
            case "enum":
                self._names[encode] = tuple(f'"{variant}"' for variant in self._enums[value_type.name])
                return f"{{{encode}[{value}]}}"
            case "bool":
                self._names[encode] = ("false", "true")
                return f"{{{encode}[{value}]}}"
            case "string":
                return f"{{string_text({value})}}"
            case "i64" | "u64":
                return f'"{{{value}}}"'
            case "uuid" | "timestamp" | "date" | "decimal" | "bytes":
                self._names[encode] = encoder(value_type.required, self._enums)
                return f'"{{{encode}({value})}}"'
        self._names[encode] = encoder(value_type.required, self._enums, self._records)
        return f"{{json_text({encode}({value}))}}"


def _text(inside: str) -> str:
    return f"f'''{inside}'''"


def _inner(inside: str) -> str:
    return f"f'{inside}'"


def _or_null(place: int, expression: str) -> str:
    return f"{{'null' if values[{place}] is None else {expression}}}"
