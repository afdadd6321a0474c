"""Contracts by chance: source text with every construct that commands are made of, drawn from a seed.

What is drawn is meant to compile. Where it does not (two bindings that are visibly one row, say), the command at fault
is left out and the rest compiled again; `Drawn.refused` tells which codes that were, so that a test can hold it small.
"""

from random import Random
from typing import NamedTuple

from riffdb.compiler import compile
from riffdb.core.spans import Source
from riffdb.core.types import BOOL, I64, TIMESTAMP, U64, UUID, Type, string
from riffdb.plan import Plan
from tests.model.drawing import Atom, Expressions, literal

SCALARS = (
    BOOL,
    I64,
    U64,
    U64,
    string(20),
    UUID,
    TIMESTAMP,
    Type("date"),
    Type("decimal", bound=9, scale=2),
    Type("bytes", bound=8),
    Type("enum", name="Colour"),
)
KEYS = (UUID, U64, I64, string(20), Type("date"), TIMESTAMP, Type("enum", name="Colour"))
NAMES = (
    "amount", "order", "select", "group", "class", "def", "lambda", "values", "rows", "now", "key", "field", "set",
    "index", "note", "due", "table", "primary", "None", "import", "limit", "self", "sequence", "inputs", "failed",
)  # fmt: skip


class Drawn(NamedTuple):
    """A contract: its seed, its text, its plan, and the codes for which commands were left out."""

    seed: int
    text: str
    plan: Plan
    refused: list[str]


class Stored(NamedTuple):
    """A field as it is declared."""

    name: str
    kind: Type
    has_default: bool = False
    secret: bool = False


class Lease(NamedTuple):
    """The fields of a lease, and whether it counts attempts."""

    owner: str
    expiry: str
    fence: str
    attempts: str | None


class Entity(NamedTuple):
    """An entity as it is declared: enough to write commands on it."""

    name: str
    key: list[Stored]
    partition: str
    fields: list[Stored]
    computed: list[Stored]
    uniques: list[tuple[str, list[str]]]
    conflicts: list[str]
    deleting: list[str]
    violates: list[str]
    state: str | None
    transitions: list[str]
    lease: Lease | None
    text: str

    @property
    def columns(self) -> list[Stored]:
        """What an expression may read."""
        shown = [*self.key, *(part for part in self.fields if not part.secret), *self.computed]
        return [*shown, Stored("revision", U64)]


def draw(seed: int) -> Drawn:
    """The contract of a seed."""
    random = Random(seed)
    parts = _Contract(random)
    commands = [Command(random, parts, number).text() for number in range(random.randint(6, 12))]
    commands += [BulkCommand(random, parts, 20 + number).text() for number in range(random.choice((0, 1, 2)))]
    if random.random() < 0.4:
        commands.append(restoration(random.choice(parts.entities)))
    refused: list[str] = []
    while True:
        heading = parts.text()
        text = f"contract Drawn version 1 {{\n{heading}\n" + "\n".join(commands) + "\n}\n"
        compilation = compile("drawn", [Source("drawn.riff", text)])
        if compilation.plan is not None:
            return Drawn(seed, text, compilation.plan, refused)
        errors = [found for found in compilation.diagnostics if found.severity == "error"]
        ends, line = [], heading.count("\n") + 2
        for command in commands:
            ends.append((line, line + command.count("\n")))
            line += command.count("\n") + 1
        at_fault = set()
        for error in errors:
            where = text.count("\n", 0, error.span.start) + 1
            hit = [place for place, (first, last) in enumerate(ends) if first <= where <= last]
            assert hit, f"seed {seed}: {error.code} {error.message}\n{text.splitlines()[where - 1]}"
            at_fault.add(hit[0])
            refused.append(f"{error.code} {error.message}")
        commands = [command for place, command in enumerate(commands) if place not in at_fault]
        assert commands, f"seed {seed}: no command compiles: {refused}"


class _Contract:
    """The data of a contract."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.partition = random.choice((UUID, UUID, U64, string(20), I64, Type("date"), Type("enum", name="Colour")))
        self.entities: list[Entity] = []
        for number in range(random.randint(1, 3)):
            self.entities.append(self._entity(number))
        kinds = [(f"value{number}", random.choice(SCALARS)) for number in range(random.randint(0, 3))]
        self.event = [(name, kind.nullable if random.random() < 0.4 else kind) for name, kind in kinds]

    def text(self) -> str:
        """The declarations."""
        event = " ".join(f"{name}: {kind}" for name, kind in self.event)
        return "\n".join(
            [
                "  enum Colour { Red, Green, Blue }",
                "  enum Phase { Queued, Running, Complete }",
                f"  event Told {{ partition_by (part) part: {self.partition} {event} }}",
                *(entity.text for entity in self.entities),
            ]
        )

    def _entity(self, number: int) -> Entity:
        random = self.random
        name = ("Thing", "Order", "Select")[number]
        names = random.sample(NAMES, 9)
        key = [Stored("part", self.partition)]
        key += [Stored(f"id{place}", random.choice(KEYS)) for place in range(random.randint(1, 2))]
        if random.random() < 0.2:
            key.reverse()
        fields = []
        for field in names[: random.randint(1, 5)]:
            kind = random.choice(SCALARS)
            kind = kind.nullable if random.random() < 0.4 else kind
            fields.append(Stored(field, kind, not kind.optional and random.random() < 0.3))
        if random.random() < 0.2:
            fields.append(Stored("hidden", random.choice((string(20), U64.nullable)), False, True))
        lines = [f"    key ({', '.join(f'{part.name}: {part.kind}' for part in key)})"]
        if key[0].name != "part":
            lines.append("    partition_by (part)")
        state, lease, workflow, transitions = self._workflow(name, fields)
        columns = [Atom(part.name, part.kind) for part in (*key, *fields) if not part.secret]
        expressions = Expressions(random, columns)
        computed = []
        for field in names[6 : 6 + random.choice((0, 0, 1, 2))]:
            kind = random.choice(SCALARS)
            computed.append(Stored(field, kind))
            lines.append(f"    computed {field}: {kind} = {expressions.of(kind, 2)}")
        rules, uniques, conflicts, violates = self._rules(name, key, fields, computed, expressions)
        for part in fields:
            default = f" = {literal(part.kind, random)}" if part.has_default else ""
            lines.append(f"    field {'secret ' if part.secret else ''}{part.name}: {part.kind}{default}")
        text = "\n".join([f"  entity {name} {{", *lines, *rules, "  }", *workflow])
        deleting: list[str] = []
        return Entity(
            name, key, "part", fields, computed, uniques, conflicts, deleting, violates, state, transitions, lease, text
        )

    def _workflow(self, name: str, fields: list[Stored]) -> tuple[str | None, Lease | None, list[str], list[str]]:
        random = self.random
        if random.random() < 0.25:
            return None, None, [], []
        fields.append(Stored("state", Type("enum", name="Phase"), True))
        lines = [f"  workflow {name}Flow {{", f"    entity {name}", "    state state", "    initial Queued"]
        transitions = ["Start", "Finish", "Again"]
        lines += [
            "    transition Start from (Queued) to Running",
            f"    transition Finish from (Running{random.choice(('', ', Queued'))}) to Complete",
            f"    transition Again from ({random.choice(('Running', 'Running, Complete'))}) to Running",
        ]
        lease = None
        if random.random() < 0.75:
            lease = Lease("owner", "until", "fence", "attempts" if random.random() < 0.7 else None)
            fields += [Stored("owner", UUID.nullable), Stored("until", TIMESTAMP.nullable), Stored("fence", U64)]
            lines += ["    lease hold {", "      owner owner expires_at until fencing_token fence"]
            if lease.attempts:
                fields.append(Stored("attempts", U64))
                lines.append("      attempts attempts")
            low = random.choice((1, 5, 60))
            lines += [f"      duration_seconds ({low}, {random.choice((low, 900, 86_400))})", "    }"]
        fields[:] = [part._replace(has_default=False) if part.name == "state" else part for part in fields]
        return "state", lease, [*lines, "  }"], transitions

    def _rules(
        self, name: str, key: list[Stored], fields: list[Stored], computed: list[Stored], expressions: Expressions
    ) -> tuple[list[str], list[tuple[str, list[str]]], list[str], list[str]]:
        """Indexes, uniques, references and invariants."""
        random = self.random
        lines: list[str] = []
        uniques: list[tuple[str, list[str]]] = []
        conflicts: list[str] = []
        violates: list[str] = []
        open_ = [part.name for part in (*fields, *computed) if not part.secret]
        if open_ and random.random() < 0.7:
            chosen = random.sample(open_, min(len(open_), random.randint(1, 2)))
            order = ", ".join(f"{field} {random.choice(('asc', 'desc'))}" for field in chosen)
            lines.append(f"    index by_some (part, {order})")
        if open_ and random.random() < 0.35:
            chosen = random.sample(open_, min(len(open_), random.randint(1, 2)))
            uniques.append(("one_only", chosen))
            conflicts.append("one_only")
            lines.append(f"    unique one_only (part, {', '.join(chosen)})")
        if random.random() < 0.35:
            conflicts += self._reference(fields, lines)
        if random.random() < 0.3:
            violates.append("sound")
            lines.append(f"    invariant sound: {expressions.condition(1)}")
        return lines, uniques, conflicts, violates

    def _reference(self, fields: list[Stored], lines: list[str]) -> list[str]:
        for target in self.entities:
            others = [part for part in target.key if part.name != "part"]
            names = []
            for other in others:
                name = f"to_{target.name.lower()}_{other.name}"
                kind = other.kind.nullable if self.random.random() < 0.5 else other.kind
                fields.append(Stored(name, kind))
                names.append(name)
            targets = ", ".join(part.name for part in others)
            lines.append(f"    reference parent (part, {', '.join(names)}) -> {target.name}(part, {targets})")
            lines.append(f"    index by_parent (part, {', '.join(names)})")
            target.deleting.append("parent")
            return ["parent"]
        return []


class Bound(NamedTuple):
    """A binding that statements may use."""

    name: str
    entity: Entity
    kind: str


class Command:
    """One command: inputs are added as statements need them."""

    def __init__(self, random: Random, contract: _Contract, number: int) -> None:
        self.random, self.contract, self.name = random, contract, f"Do{number}"
        self.inputs: list[str] = []
        self.atoms: list[Atom] = [Atom("tx.time", TIMESTAMP)]
        self.found: list[Atom] = []
        self.bound: list[Bound] = []
        self.lines: list[str] = []
        self.outcomes = 0
        self.count = 0
        self.is_mutating = False
        self.record: list[str] | None = None
        """The fields of the item, inside a loop."""

    def text(self) -> str:
        """The command."""
        random = self.random
        self._input(self.contract.partition, "part")
        self.found.append(self.atoms[-1])
        if random.random() < 0.15:
            self._service()
        for _ in range(random.choice((1, 1, 1, 2, 2, 3))):
            self._bind(in_arm=False)
            if random.random() < 0.25:
                self._require()
        for bound in list(self.bound):
            self._effects(bound)
            if random.random() < 0.15:
                self._require()
        if random.random() < 0.4:
            self._emit()
        answer = f"    return Done {self._payload(committed=True)}"
        key = []
        if self.is_mutating or random.random() < 0.5:
            kind = random.choice((string(64), string(64), UUID))
            self.inputs.append(f"    input request_key: {kind}")
            key = ["    idempotency_key request_key"]
        body = "\n".join(self.lines)
        return "\n".join([f"  command {self.name} {{", *self.inputs, *key, body, answer, "  }"])

    def _input(self, kind: Type, name: str = "", *, secret: bool = False, plain: bool = False) -> str:
        random = self.random
        self.count += 1
        name = name or f"given{self.count}"
        if self.record is not None and not secret:
            self.record.append(f"{name}: {kind}")
            self.atoms.append(Atom(f"item.{name}", kind))
            self.found.append(self.atoms[-1])
            return f"item.{name}"
        default = ""
        if not plain and name != "part" and not kind.optional and random.random() < 0.15:
            default = f" = {literal(kind, random)}"
        self.inputs.append(f"    input {'secret ' if secret else ''}{name}: {kind}{default}")
        if not secret:
            atom = Atom(name, kind)
            self.atoms.append(atom)
            self.found.append(atom)
        return name

    def _service(self) -> None:
        self.inputs.append("    service made: uuid_v7")
        self.atoms.append(Atom("made", UUID))
        self.found.append(self.atoms[-1])

    def _expressions(self, atoms: list[Atom] | None = None) -> Expressions:
        return Expressions(self.random, self.atoms if atoms is None else atoms)

    def _value(self, kind: Type) -> str:
        """A value for a field: a fresh input, or an expression."""
        random = self.random
        if random.random() < 0.5:
            return self._input(kind)
        return self._expressions().of(kind, 2)

    # --- outcomes ------------------------------------------------------------------------------------------

    def _failure(self, found: list[Atom] | None = None) -> str:
        self.outcomes += 1
        if self.random.random() < 0.6:
            return f"No{self.outcomes} {{}}"
        return f"No{self.outcomes} {self._payload(committed=False, atoms=found)}"

    def _payload(self, *, committed: bool, atoms: list[Atom] | None = None) -> str:
        random = self.random
        atoms = (self.atoms if committed else self.found) if atoms is None else atoms
        parts = []
        for number in range(random.randint(0, 2)):
            readable = [atom for atom in atoms if atom.kind.kind != "null"]
            if readable:
                atom = random.choice(readable)
                text = atom.text if random.random() < 0.6 else Expressions(random, atoms).of(atom.kind.required, 1)
                if text[0] not in '-"0123456789' and text not in ("true", "false", "null"):
                    parts.append(f"value{number}: {text}")
        rows = [bound for bound in self.bound if committed or bound.kind not in ("create", "init_or_mutate")]
        if rows and random.random() < 0.7:
            parts.append(f"row: {random.choice(rows).name}")
        return f"{{ {', '.join(parts)} }}"

    # --- bindings ------------------------------------------------------------------------------------------

    def _bind(self, *, in_arm: bool, above_loop: bool = False) -> None:
        random = self.random
        entities = [one for one in self.contract.entities if not (in_arm and one.lease)]
        if not entities:
            return
        entity = random.choice(entities)
        kinds = ["create"] * 5 + ["mutate"] * 8 + ["delete"] * 2 + ["read"] * 2 + ["maybe"] * 2
        kind = random.choice([*kinds, *([] if entity.lease else ["init_or_mutate"] * 3)])
        if above_loop:
            kind = random.choice(("read", "maybe", "mutate", "delete"))
        name = f"row{len(self.bound) + self.count}"
        self.count += 1
        by, values = "", [self._key(part) for part in entity.key]
        if entity.uniques and kind in ("mutate", "delete", "read", "maybe") and random.random() < 0.3:
            types = {part.name: part.kind for part in entity.columns}
            columns = entity.uniques[0][1]
            by, values = ".one_only", ["part", *(self._input(types[column].required, plain=True) for column in columns)]
        head = f"    {kind} {entity.name}{by}({', '.join(values)}) as {name}"
        if kind == "create":
            head += f" else {self._failure()}"
        elif kind == "init_or_mutate":
            needed = [part for part in entity.fields if part.name != entity.state]
            needed = [part for part in needed if random.random() < 0.5 or not (part.kind.optional or part.has_default)]
            head += " initialize { " + ", ".join(f"{part.name}: {self._field(part)}" for part in needed) + " }"
        elif kind != "maybe":
            head += f" else {self._failure()}"
        bound = Bound(name, entity, kind)
        if kind not in ("read", "maybe"):
            self.is_mutating = True
            head += self._breaches(bound)
        self.lines.append(head)
        self.bound.append(bound)
        self._learn(bound)
        if kind == "create":
            for part in entity.fields:
                if entity.lease and part.name in (entity.lease.fence, entity.lease.attempts):
                    self.lines.append(f"    set {name}.{part.name} = 0")
                elif part.name == entity.state or (entity.lease and part.name in entity.lease):
                    continue
                elif random.random() < 0.6 or not (part.kind.optional or part.has_default):
                    self.lines.append(f"    set {name}.{part.name} = {self._field(part)}")
            self.atoms += [Atom(f"{name}.{part.name}", part.kind) for part in entity.columns if part.name != "revision"]

    def _key(self, part: Stored) -> str:
        random = self.random
        if part.name == "part":
            return "part"
        # A key field of a row is what that row is bound by, and would name it twice.
        read = [atom for atom in self.found if atom.kind == part.kind and "." in atom.text and "(" not in atom.text]
        rows = [Atom("made", UUID)] if part.kind == UUID and Atom("made", UUID) in self.found else []
        rows += [atom for atom in read if not atom.text.partition(".")[2].startswith("id")]
        if rows and random.random() < 0.4:
            return random.choice(rows).text
        return self._input(part.kind, plain=True)

    def _field(self, part: Stored) -> str:
        if part.secret:
            return self._input(part.kind, secret=True)
        return self._value(part.kind)

    def _breaches(self, bound: Bound) -> str:
        entity = bound.entity
        if bound.kind == "delete":
            children = [
                (child, name) for child in self.contract.entities for name in child.conflicts if name in entity.deleting
            ]
            clauses = [f"conflict {child.name}.{name}" for child, name in children]
        else:
            clauses = [f"conflict {name}" for name in entity.conflicts] + [
                f"violates {name}" for name in entity.violates
            ]
        self.random.shuffle(clauses)
        return "".join(f"\n      {clause} {self._failure()}" for clause in clauses)

    def _learn(self, bound: Bound) -> None:
        name, entity = bound.name, bound.entity
        if bound.kind in ("read", "mutate", "delete"):
            atoms = [Atom(f"{name}.{part.name}", part.kind) for part in entity.columns]
        elif bound.kind == "maybe":
            atoms = [
                Atom(
                    f"(if {name} is not null then {name}.{part.name} else {_plain(part.kind, self.random)})", part.kind
                )
                for part in entity.columns
                if part.kind.kind in ("u64", "i64", "bool")
            ]
        else:
            return
        self.atoms += atoms
        self.found += atoms

    # --- effects -------------------------------------------------------------------------------------------

    def _effects(self, bound: Bound) -> None:
        random = self.random
        if bound.kind not in ("mutate", "delete", "init_or_mutate"):
            return
        if bound.kind == "mutate" and random.random() < 0.3:
            self._decide(bound)
            return
        self._lease(bound)
        self._changes(bound)

    def _changes(self, bound: Bound) -> None:
        random, entity = self.random, bound.entity
        if entity.state and bound.kind != "init_or_mutate":
            for _ in range(random.choice((0, 1, 1, 2))):
                revision = self._operand(bound, "revision", U64)
                clauses = [f"stale {self._failure()}", f"illegal {self._failure()}"]
                random.shuffle(clauses)
                transition = random.choice(entity.transitions)
                self.lines.append(
                    f"    transition {transition} on {bound.name} revision {revision} {' '.join(clauses)}"
                )
        if bound.kind == "delete":
            return
        settable = [part for part in entity.fields if part.name != entity.state]
        settable = [part for part in settable if not (entity.lease and part.name in entity.lease)]
        for part in random.sample(settable, min(len(settable), random.randint(0, 3))):
            self.lines.append(f"    set {bound.name}.{part.name} = {self._field(part)}")
            self._forget(bound, part)

    def _forget(self, bound: Bound, part: Stored) -> None:
        """A key rests on nothing that was changed, so what was set is no key any more."""
        stale = {f"{bound.name}.{name.name}" for name in (part, *bound.entity.computed)}
        self.found = [atom for atom in self.found if atom.text not in stale]

    def _lease(self, bound: Bound) -> None:
        if not bound.entity.lease:
            return
        operation = self.random.choice(("claim", "claim", "renew", "release", "expire", "fence", "fence", "unheld"))
        wanted = {
            "claim": ("owner duration_seconds revision", "stale unavailable invalid exhausted"),
            "renew": ("owner fencing_token duration_seconds revision", "stale invalid expired exhausted"),
            "release": ("owner fencing_token revision", "stale invalid"),
            "expire": ("revision", "stale active"),
            "fence": ("owner fencing_token revision", "stale invalid expired"),
            "unheld": ("revision", "stale unavailable"),
        }[operation]
        operands = [
            f"{name} {self._operand(bound, name, UUID if name == 'owner' else U64)}" for name in wanted[0].split()
        ]
        clauses = [f"{name} {self._failure()}" for name in wanted[1].split()]
        self.random.shuffle(operands)
        self.random.shuffle(clauses)
        self.lines.append(f"    lease {operation} hold on {bound.name} {' '.join(operands)}\n      {' '.join(clauses)}")

    def _operand(self, bound: Bound, name: str, kind: Type) -> str:
        given = f"{bound.name}_{name}"
        if self.record is not None:
            known = any(field.startswith(f"{given}:") for field in self.record)
            return f"item.{given}" if known else self._input(kind, given, plain=True)
        if not any(line.startswith(f"    input {given}:") for line in self.inputs):
            self._input(kind, given, plain=True)
        return given

    def _decide(self, bound: Bound) -> None:
        random = self.random
        self.lines.append(f"    decide {bound.name} {{")
        arms = [True, *([True] if random.random() < 0.4 else []), False]
        outside = self.atoms, self.found, self.bound
        for number, is_conditional in enumerate(arms):
            self.atoms, self.found, self.bound = list(outside[0]), list(outside[1]), list(outside[2])
            head = f"when {self._expressions().condition(2)}" if is_conditional else "otherwise"
            if number and random.random() < 0.25:
                self.lines.append(f"      {head} none {self._failure()}")
                continue
            self.lines.append(f"      {head} apply {{")
            if random.random() < 0.3:
                self._bind(in_arm=True)
            self._lease(bound)
            self._changes(bound)
            if random.random() < 0.3:
                self._emit()
            if random.random() < 0.3:
                self._require()
            if random.random() < 0.3 and self.record is None:
                self.lines.append(f"        return Otherwise{number} {self._payload(committed=True)}")
            self.lines.append("      }")
        self.atoms, self.found, self.bound = outside
        if bound.kind == "mutate":
            for part in bound.entity.fields:
                self._forget(bound, part)
        self.lines.append("    }")

    def _require(self) -> None:
        self.outcomes += 1
        condition = self._expressions().condition(2)
        self.lines.append(f"    require rule{self.outcomes}: {condition} else {self._failure()}")

    def _emit(self) -> None:
        self.is_mutating = True
        values = "".join(f", {name}: {self._expressions().of(kind, 2)}" for name, kind in self.contract.event)
        self.lines.append(f"    emit Told {{ part: part{values} }}")


class BulkCommand(Command):
    """A command with a loop over a list of records."""

    def text(self) -> str:
        """The record and the command."""
        random = self.random
        self.inputs += ["    input request_key: string<64>"]
        self._input(self.contract.partition, "part")
        if random.random() < 0.2:
            self._service()
        if random.random() < 0.4:
            self._bind(in_arm=True, above_loop=True)
            if random.random() < 0.3:
                self._require()
        outside = list(self.atoms), list(self.found), list(self.bound)
        self.record = []
        before, self.lines = self.lines, []
        for _ in range(random.choice((1, 1, 2))):
            self._bind(in_arm=False)
        for bound in self.bound[len(outside[2]) :]:
            self._effects(bound)
        if outside[2] and random.random() < 0.3:
            self._effects(outside[2][0])
        if random.random() < 0.3:
            self._require()
        if random.random() < 0.5:
            self._emit()
        loop, self.lines = self.lines, before
        record = self.record or ["unread: bool"]
        self.record = None
        self.atoms, self.found, self.bound = outside
        low, high = random.choice(((0, 8), (1, 4), (2, 100)))
        head = [f"  record {self.name}Item {{ {' '.join(record)} }}", f"  bulk command {self.name} {{", *self.inputs]
        head += [f"    input items: list<{self.name}Item, {low}..{high}>", "    idempotency_key request_key"]
        answer = f"    return Done {self._payload(committed=True)}"
        return "\n".join([*head, *self.lines, "    for item in items {", *loop, "    }", answer, "  }"])


def restoration(entity: Entity) -> str:
    """The reimport command of an entity."""
    secret = "secret " if any(part.secret for part in entity.fields) else ""
    return "\n".join(
        [
            "  reimport command Restore {",
            "    input request_key: string<64>",
            f"    input {secret}whole: {entity.name}",
            "    idempotency_key request_key",
            f"    reconstitute {entity.name} from whole else InTheWay {{}}",
            "    return Restored { row: whole }",
            "  }",
        ]
    )


def _plain(kind: Type, random: Random) -> str:
    return "null" if kind.optional else literal(kind, random)
