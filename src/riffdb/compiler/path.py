"""The path: what a command knows at one point of its body, and the scopes that its expressions see there.

Conditions and effects see rows as the effects above left them; payloads of failures see them as they were before the
command, so that a fact won from a changed value does not hold there. `CommandDraft` is what all points of a body share.
Absent: the statements themselves, each family of which has a module.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft, EntityDraft
from riffdb.compiler.linking import NameScope
from riffdb.compiler.outcomes import Outcomes
from riffdb.compiler.scope import Facts, ItemScope, RowScope, Scope, facts_if
from riffdb.core.spans import Span
from riffdb.core.types import Type
from riffdb.plan.commands import InputPlan, ServicePlan
from riffdb.plan.declarations import WorkflowPlan
from riffdb.plan.expressions import Expression, Field, leaves
from riffdb.syntax.tree import BindStmt, CommandDecl, DecideStmt, Loop, Name, Stmt


@dataclass(frozen=True, slots=True)
class Bound:
    """A row that the command has bound, by the columns `by` (the key in storage order, or those of a unique); `key` are
    their values, fields of other rows' keys already replaced."""

    statement: BindStmt
    entity: EntityDraft
    by: tuple[str, ...]
    key: tuple[Expression, ...]
    stage: int
    workflow: WorkflowPlan | None
    workflow_broken: bool
    arm: DecideStmt | None
    loop: Loop | None

    @property
    def name(self) -> str:
        """The binding's name."""
        return self.statement.name.text

    @property
    def is_leased(self) -> bool:
        """Whether the command changes a row whose workflow has a lease."""
        changed = self.statement.kind in ("mutate", "delete")
        return changed and self.workflow is not None and self.workflow.lease is not None

    @property
    def may_be_new(self) -> bool:
        """Whether the row may begin in this command."""
        return self.statement.kind in ("create", "init_or_mutate")

    def key_value(self, column: str) -> Expression | None:
        """The expression that a column of this row was bound by, if it was."""
        return self.key[self.by.index(column)] if column in self.by else None


@dataclass(slots=True)
class CommandDraft:
    """What all points of one command's body share."""

    draft: Draft
    collector: Collector
    decl: CommandDecl
    outcomes: Outcomes
    names: NameScope
    requires: NameScope
    inputs: dict[str, InputPlan] = field(default_factory=dict)
    services: dict[str, ServicePlan] = field(default_factory=dict)
    loop: Loop | None = None
    """The loop whose body is being lowered, and its item."""
    item: ItemScope | None = None
    items_max: int = 0
    broken: set[str] = field(default_factory=set)
    hidden: dict[str, str] = field(default_factory=dict)
    """Names that stand in an arm or a loop, with the reason why they cannot be used outside."""
    partition: Expression | None = None
    partition_span: Span | None = None
    rows: list[Bound] = field(default_factory=list)
    """Every row that is bound anywhere in the body, in source order."""
    is_broken: bool = False
    """Whether a binding or event failed, so that what is missing may be its."""
    sets_unknown: bool = False
    """Whether something is set that does not exist, and may be the value that is missed elsewhere."""
    bypassed: set[str] = field(default_factory=set)
    """Leased rows that an arm touches without a lease operation at the top level, which has been reported."""
    mutates: Span | None = None
    """Where the first row is changed or event emitted, if anywhere."""

    def input_types(self) -> dict[str, Type]:
        """Every input and service value with its type."""
        return {name: plan.type for name, plan in (self.inputs | self.services).items()}

    def changes_every_time(self, bound: Bound) -> bool:
        """Whether the row is bound outside the loop in whose body the command is, which may come to it many times."""
        return self.loop is not None and bound.loop is None

    def level(self, bound: Bound) -> tuple[Stmt, ...]:
        """The statements of the level at which the row is bound: the body's or the loop's."""
        return self.decl.body if bound.loop is None else bound.loop.body


@dataclass(slots=True)
class Path:
    """One point on the way through a command's body."""

    bound: dict[str, Bound] = field(default_factory=dict)
    known: Facts = frozenset()
    before: Facts = frozenset()
    """Facts about rows as they were before the command."""
    written: set[tuple[str, str]] = field(default_factory=set)
    """Binding and field of what an effect may have changed."""
    assigned: dict[str, set[str]] = field(default_factory=dict)
    """The fields that are set by now, of each row that is created."""

    trusting: bool = False
    """Whether a condition above is broken, so that whatever may be null could have been proven by it."""

    def copy(self) -> "Path":
        """The same point, to go on from in another way."""
        assigned = {name: set(fields) for name, fields in self.assigned.items()}
        return Path(dict(self.bound), self.known, self.before, set(self.written), assigned, self.trusting)

    def learn(self, condition: Expression, holds: bool) -> None:
        """Take in what a condition that holds, or does not, tells."""
        self.know(facts_if(condition, holds))

    def know(self, facts: Facts) -> None:
        """Take in facts; of what no effect has written they hold before the command as well."""
        self.known |= facts
        self.before |= frozenset(fact for fact in facts if (fact[1], fact[2]) not in self.written)

    def change(self, bound: Bound, fields: Mapping[str, bool]) -> None:
        """Note that an effect wrote the fields, each known to be not null now or not; computed ones follow."""
        name = bound.name
        names = set(fields)
        for computed in bound.entity.plan.computed:
            if any(isinstance(leaf, Field) and leaf.name in fields for leaf in leaves(computed.expression)):
                names.add(computed.name)
        self.written |= {(name, column) for column in names}
        gone = frozenset(("field", name, column) for column in names)
        self.known = (self.known - gone) | {("field", name, column) for column, sure in fields.items() if sure}

    def merge(self, ways: "list[Path]") -> None:
        """Go on where several ways meet: only what all of them know is known."""
        if not ways:
            return
        self.known = frozenset.intersection(*(way.known for way in ways))
        self.before = frozenset.intersection(*(way.before for way in ways))
        for way in ways:
            self.written |= way.written
            self.trusting = self.trusting or way.trusting
        for name in self.assigned:
            self.assigned[name] = set.intersection(*(way.assigned[name] for way in ways))


def now(command: CommandDraft, path: Path) -> Scope:
    """What a condition, a key or the value of an effect may use."""
    rows = {name: _row(bound, _not_yet(bound, path)) for name, bound in path.bound.items()}
    return _scope(command, path, rows, path.known, command.hidden)


def committed(command: CommandDraft, path: Path, known: Facts) -> Scope:
    """What a payload of `return` or `emit` may use: rows as they are committed."""
    rows = {name: _row(bound, {}) for name, bound in path.bound.items()}
    return _scope(command, path, rows, known, command.hidden)


def failed(
    command: CommandDraft, path: Path, missing: Name | None = None, condition: Expression | None = None
) -> Scope:
    """What the payload of a failure may use: rows as they were before the command, with what `condition`, not held,
    tells; the row of the binding `missing` is not there."""
    refused = dict(command.hidden)
    if missing is not None:
        refused[missing.text] = f"`{missing.text}` is not there in this case, so nothing of it can be shown"
    rows = {}
    for name, bound in path.bound.items():
        if bound.may_be_new:
            how = "is" if bound.statement.kind == "create" else "may be"
            refused[name] = f"`{name}` {how} created here, and a failure shows rows as they were before the command"
        else:
            rows[name] = _row(bound, {})
    facts = frozenset() if condition is None else facts_if(condition, holds=False)
    facts = frozenset(fact for fact in facts if (fact[1], fact[2]) not in path.written)
    return _scope(command, path, rows, path.before | facts, refused)


def found(command: CommandDraft, path: Path, bound: Bound) -> Scope:
    """What the `else` of a create may use: as a failure, with the row that was found under its name."""
    scope = failed(command, path)
    return _scope(command, path, {**scope.rows, bound.name: _row(bound, {})}, path.before, scope.refused)


def _scope(
    command: CommandDraft, path: Path, rows: Mapping[str, RowScope], known: Facts, refused: Mapping[str, str]
) -> Scope:
    return Scope(
        enums=command.draft.enums,
        inputs=command.input_types(),
        rows=rows,
        item=command.item,
        time=True,
        known=known,
        trusting=path.trusting,
        refused=refused,
        broken=frozenset(command.broken),
        secret_inputs=frozenset(name for name, plan in command.inputs.items() if plan.secret),
    )


def _row(bound: Bound, refused: Mapping[str, str]) -> RowScope:
    entity, name = bound.entity, bound.statement.name.text
    maybe = bound.statement.kind == "maybe"
    title = f"`{entity.plan.name}`"
    return RowScope(
        name, title, entity.plan.name, entity.types, entity.broken, refused, maybe=maybe, secrets=entity.secrets
    )


def unset_fields(bound: Bound, path: Path) -> list[str]:
    """The fields of a created row that have no value yet: not set, without default or injection, not optional."""
    injected = set() if bound.workflow is None else {bound.workflow.state}  # without `initial`: reported at the create
    assigned = path.assigned.get(bound.name, set())
    return [
        part.name
        for part in bound.entity.plan.fields
        if not (part.has_default or part.type.optional or part.name in injected or part.name in assigned)
    ]


def _not_yet(bound: Bound, path: Path) -> dict[str, str]:
    """Why columns of a row that is being created cannot be read yet."""
    name = bound.statement.name.text
    if bound.statement.kind == "init_or_mutate":
        return {"revision": f"`{name}` may be created here, and has no revision before the command then"}
    if bound.statement.kind != "create":
        return {}
    unset = set(unset_fields(bound, path))
    refused = {column: f"`{name}.{column}` has no value yet; set it first" for column in unset}
    for computed in bound.entity.plan.computed:
        for leaf in leaves(computed.expression):
            if isinstance(leaf, Field) and leaf.name in unset:
                refused[computed.name] = f"`{name}.{computed.name}` rests on `{leaf.name}`, which has no value yet"
    return refused | {"revision": f"`{name}` is being created and has no revision before the command"}
