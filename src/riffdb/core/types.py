"""The types of the contract language as plain values, and the one text that names each.

One flat record serves all kinds, so that a type can be compared, hashed, printed and stored as it is. An enum is named
here, never spelt out: appending a variant changes no type. What values a type has stands in `values.py`.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "bool",
    "i64",
    "u64",
    "string",
    "bytes",
    "uuid",
    "timestamp",
    "date",
    "decimal",
    "enum",
    "list",
    "record",
    "limit",
    "cursor",
    "null",
]


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its kind, whether null belongs to it, and what its kind asks for.

    `bound`: bytes of string and bytes, digits of decimal, items of list, the maximum of limit. `scale`: digits after
    the point of decimal, least items of list. `name`: of enum and record. `element`: of list. Kind `null` is the type
    of the literal `null` alone.
    """

    kind: Kind
    optional: bool = False
    bound: int = 0
    scale: int = 0
    name: str = ""
    element: "Type | None" = None

    @property
    def required(self) -> "Type":
        """The same type without null."""
        return Type(self.kind, False, self.bound, self.scale, self.name, self.element)

    @property
    def nullable(self) -> "Type":
        """The same type with null."""
        return Type(self.kind, True, self.bound, self.scale, self.name, self.element)

    def __str__(self) -> str:
        text = self._text()
        return f"optional<{text}>" if self.optional else text

    def _text(self) -> str:
        match self.kind:
            case "string" | "bytes" | "limit":
                return f"{self.kind}<{self.bound}>"
            case "decimal":
                return f"decimal<{self.bound},{self.scale}>"
            case "enum" | "record":
                return self.name
            case "list":
                return f"list<{self.element},{self.scale}..{self.bound}>"
            case _:
                return self.kind


BOOL = Type("bool")
I64 = Type("i64")
U64 = Type("u64")
UUID = Type("uuid")
TIMESTAMP = Type("timestamp")
DATE = Type("date")
NULL = Type("null", optional=True)


def string(bound: int) -> Type:
    """The type of texts of at most `bound` bytes in UTF-8."""
    return Type("string", bound=bound)
