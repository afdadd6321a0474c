"""Where things stand in the source of a command, for errors that are found elsewhere and want to point there.

The plan knows no places, so they are looked up in the tree by name. Of several the first in source order comes first.
Absent: reimports, which no plan has yet.
"""

from collections.abc import Iterator, Sequence

from riffdb.compiler.steps import all_steps
from riffdb.core.diagnostics import Related
from riffdb.plan.commands import BindStep, CommandPlan, DecideStep, ForStep, RequireStep, Step
from riffdb.syntax.tree import (
    BindStmt,
    CommandDecl,
    DecideStmt,
    InputDecl,
    LeaseStmt,
    NameExpr,
    OperandClause,
    Outcome,
    ReimportDecl,
    RequireStmt,
    Stmt,
    TransitionStmt,
)

Declared = CommandDecl | ReimportDecl


def is_whole(decl: Declared, command: CommandPlan) -> bool:
    """Whether every statement has its step; one that has none was refused, and what rests on it is not judged."""
    steps = [step for step in all_steps(command.steps) if not isinstance(step, ForStep)]
    return sum(1 for _ in statements(decl)) == len(steps)


def command_place(decl: Declared) -> Related:
    """The name of the command."""
    return Related("the command", decl.name.span)


def input_place(decl: Declared, name: str) -> Related:
    """The declaration of an input, or the command where `input key of` brought it."""
    for part in decl.inputs:
        if isinstance(part, InputDecl) and part.name.text == name:
            return Related("the input", part.span)
    return command_place(decl)


def outcome_places(decl: Declared, name: str) -> tuple[Related, ...]:
    """Every use of an outcome in the command."""
    found = (outcome for outcome in _outcomes(decl) if outcome.name.text == name)
    return tuple(Related(f"`{name}` is answered here", outcome.span) for outcome in found)


def operand_places(decl: Declared, names: Sequence[str]) -> tuple[Related, ...]:
    """The first operand that is each of these inputs."""
    operands = [operand for stmt in statements(decl) for operand in _operands(stmt)]
    found: list[Related] = []
    for name in names:
        uses = [part for part in operands if isinstance(part.value, NameExpr) and part.value.name.text == name]
        found.extend(Related(f"`{name}` is presented here", part.span) for part in uses[:1])
    return tuple(found)


def step_place(decl: Declared, step: Step) -> Related:
    """The statement of a binding, a require or a decide."""
    for stmt in statements(decl):
        if isinstance(stmt, BindStmt) and isinstance(step, BindStep) and stmt.name.text == step.name:
            return Related("the statement", stmt.span)
        if isinstance(stmt, RequireStmt) and isinstance(step, RequireStep) and stmt.name.text == step.name:
            return Related("the statement", stmt.span)
        if isinstance(stmt, DecideStmt) and isinstance(step, DecideStep) and stmt.binding.text == step.binding:
            return Related("the statement", stmt.binding.span)
    return command_place(decl)


def statements(decl: Declared) -> Iterator[Stmt]:
    """Every statement, those of all arms and of the loop among them."""
    if not isinstance(decl, CommandDecl):
        return
    for stmt in (*decl.body, *(() if decl.loop is None else decl.loop.body)):
        yield stmt
        if isinstance(stmt, DecideStmt):
            for arm in stmt.arms:
                yield from arm.body


def _operands(stmt: Stmt) -> tuple[OperandClause, ...]:
    return stmt.operands if isinstance(stmt, TransitionStmt | LeaseStmt) else ()


def _outcomes(decl: Declared) -> Iterator[Outcome]:
    for stmt in statements(decl):
        match stmt:
            case BindStmt(otherwise=outcome) | RequireStmt(otherwise=outcome) if outcome is not None:
                yield outcome
            case TransitionStmt() | LeaseStmt():
                yield from (clause.outcome for clause in stmt.outcomes)
            case DecideStmt():
                for arm in stmt.arms:
                    if arm.none is not None:
                        yield arm.none
                    if arm.answer is not None:
                        yield arm.answer.outcome
    if decl.answer is not None:
        yield decl.answer.outcome
