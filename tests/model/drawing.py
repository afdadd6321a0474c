"""Expressions by chance, as text: of a wanted type, over atoms whose types are known, exact as the language asks.

A literal takes the type of its place, so it never stands alone where nothing gives it one.
"""

from random import Random
from typing import NamedTuple

from riffdb.core.types import Type

ORDERED = ("i64", "u64", "decimal", "string", "bytes", "uuid", "timestamp", "date", "enum")


class Atom(NamedTuple):
    """A name, or something as simple, and its type."""

    text: str
    kind: Type


def literal(kind: Type, random: Random) -> str:
    """A constant of the type."""
    if kind.optional and random.random() < 0.3:
        return "null"
    match kind.kind:
        case "bool":
            return random.choice(("true", "false"))
        case "i64":
            return random.choice(("0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808"))
        case "u64":
            return random.choice(("0", "1", "2", "3", "10", "18446744073709551615"))
        case "string":
            return random.choice(('""', '"a"', '"B"', '"\\u{e4}\\n"', '"\\"q\\\\"'))
        case "bytes":
            return random.choice(('"AAE"', '"_w"'))
        case "uuid":
            return random.choice(('"00000000-0000-0000-0000-000000000001"', '"ffffffff-ffff-ffff-ffff-ffffffffffff"'))
        case "timestamp":
            return random.choice(('"2027-01-15T08:00:00Z"', '"9999-12-31T23:59:59.999999Z"'))
        case "date":
            return random.choice(('"2027-01-15"', '"0001-01-01"'))
        case "decimal":
            return random.choice(("0", "1.5", "-2.25", "9999999.99"))
        case "enum":
            variants = ("Red", "Green", "Blue") if kind.name == "Colour" else ("Queued", "Running", "Complete")
            return f"{kind.name}.{random.choice(variants)}"
    raise AssertionError(kind)


class Expressions:
    """Draws expressions over some atoms."""

    def __init__(self, random: Random, atoms: list[Atom]) -> None:
        self.random, self.atoms = random, atoms

    def of(self, kind: Type, depth: int) -> str:
        """An expression for a place of this type."""
        if kind.optional:
            fitting = [atom for atom in self.atoms if _fits(atom.kind, kind)]
            if fitting and self.random.random() < 0.4:
                return self.random.choice(fitting).text
            if self.random.random() < 0.2:
                return "null"
            kind = kind.required
        return self._typed(kind, depth) or literal(kind, self.random)

    def condition(self, depth: int) -> str:
        """A condition."""
        random = self.random
        if depth and random.random() < 0.4:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return random.choice((f"({left} && {right})", f"({left} || {right})", f"!({left})"))
        compared = [atom for atom in self.atoms if atom.kind.kind != "null"]
        if not compared:
            return "true == true" if random.random() < 0.5 else "1 < 2"
        atom = random.choice(compared)
        if atom.kind.optional:
            other = self._typed(atom.kind.required, 0) or literal(atom.kind.required, random)
            tests = [f"{atom.text} is null", f"{atom.text} is not null", f"{atom.text} == {other}"]
            tests.append(f"{atom.text} != {other}")
            if atom.kind.kind in ORDERED:
                tests.append(f"({atom.text} is null || {atom.text} <= {other})")
                tests.append(f"({atom.text} is not null && {atom.text} > {other})")
            return random.choice(tests)
        other = self._typed(atom.kind, depth) or literal(atom.kind, random)
        if random.random() < 0.15:
            return f"{atom.text} {random.choice(('in', 'not in'))} ({other}, {literal(atom.kind, random)})"
        signs = ("==", "!=", "<", "<=", ">", ">=") if atom.kind.kind in ORDERED else ("==", "!=")
        return f"{atom.text} {random.choice(signs)} {other}"

    def _typed(self, kind: Type, depth: int) -> str | None:
        """An expression that has the type by itself; None where no atom helps."""
        random = self.random
        plain = [atom for atom in self.atoms if not atom.kind.optional and _fits(atom.kind, kind)]
        if depth and random.random() < 0.65:
            made = self._composed(kind, depth, plain)
            if made is not None:
                return made
        return random.choice(plain).text if plain else None

    def _composed(self, kind: Type, depth: int, plain: list[Atom]) -> str | None:
        random = self.random
        nullable = [atom for atom in self.atoms if atom.kind.optional and _fits(atom.kind.required, kind)]
        first = self._typed(kind, depth - 1)
        options: list[str] = []
        if first is not None:
            second = self.of(kind, depth - 1)
            options.append(f"(if {self.condition(depth - 1)} then {first} else {second})")
            if kind.kind in ORDERED:
                options.append(f"{random.choice(('min', 'max'))}({first}, {second})")
            options += self._calculated(kind, first, second)
            if nullable:
                null = random.choice(nullable).text
                options.append(f"coalesce({null}, {second})")
                options.append(f"(if {null} is not null then {null} else {first})")
        options += self._called(kind, depth)
        return random.choice(options) if options else None

    def _calculated(self, kind: Type, first: str, second: str) -> list[str]:
        match kind.kind:
            case "i64" | "u64":
                sign = self.random.choice("++-*/%")
                return [f"({first} {sign} {second})"] * 3 + ([f"-({first})"] if kind.kind == "i64" else [])
            case "decimal":
                return [f"({first} {self.random.choice('+-')} {second})", f"({first} * 3)"]
            case "string":
                return [f"lower({first})"]
            case "bool":
                return [f"!({first})"]
        return []

    def _called(self, kind: Type, depth: int) -> list[str]:
        def some(name: str) -> list[str]:
            return [atom.text for atom in self.atoms if atom.kind.kind == name and not atom.kind.optional]

        random = self.random
        match kind.kind:
            case "u64":
                return [f"length({text})" for text in some("string")[:1] + some("bytes")[:1]]
            case "i64" if some("timestamp"):
                return [f"seconds_between({random.choice(some('timestamp'))}, {random.choice(some('timestamp'))})"]
            case "timestamp" if some("timestamp") and some("u64"):
                moment, count = random.choice(some("timestamp")), random.choice(some("u64"))
                return [f"({moment} {random.choice('++-')} seconds({count}))"]
            case "bool":
                return [f"({self.condition(depth - 1)})"]
        return []


def _fits(found: Type, wanted: Type) -> bool:
    if found.optional and not wanted.optional:
        return False
    found, wanted = found.required, wanted.required
    return found == wanted or (found.kind == wanted.kind == "string" and found.bound <= wanted.bound)
