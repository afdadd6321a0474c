"""Names within a command, query or stream that nothing there uses: inputs, service values, parameters, bindings.

Uses are looked for in the tree, where they stand as they were written. A binding is unused only if it does nothing
else: `read` refuses what is not there, and `one` too, so these may stand for that alone.
Absent: judging whether a use matters.
"""

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.core.diagnostics import Edit, Fix
from riffdb.core.spans import Span
from riffdb.plan.parts import parts_of
from riffdb.syntax.tree import (
    BindStmt,
    CommandDecl,
    DecideStmt,
    InputDecl,
    MemberExpr,
    NameExpr,
    ParamExpr,
    QueryDecl,
    ReimportDecl,
    StreamDecl,
)


def find_unused_names(draft: Draft, collector: Collector) -> None:
    """Report inputs, service values, parameters and bindings that nothing uses."""
    for command in draft.declared.commands.values():
        _command(draft, command, collector)
    for query in draft.declared.queries.values():
        _parameters(query, collector)
        _query_bindings(query, collector)
    for stream in draft.declared.streams.values():
        _parameters(stream, collector)


def _command(draft: Draft, command: CommandDecl | ReimportDecl, collector: Collector) -> None:
    used: set[str] = set()
    absent_rows: list[BindStmt] = []
    for part in parts_of(command):
        match part:
            case NameExpr(name=name) | MemberExpr(owner=name):
                used.add(name.text)
            case DecideStmt(binding=name):
                used.add(name.text)
            case BindStmt(kind="maybe"):
                absent_rows.append(part)
    if command.idempotency_key is not None:
        used.add(command.idempotency_key.text)
    if isinstance(command, ReimportDecl):
        used.add(command.source.text)
    elif command.loop is not None:
        used.add(command.loop.items.text)
    _inputs(draft, command, used, collector)
    for row in absent_rows:
        if row.name.text not in used:
            message = f"nothing looks at `{row.name.text}`, and `maybe` refuses nothing by itself"
            collector.lint("unused-binding", message, row.name.span, fix=_without(row.span, row.name.text))


def _inputs(draft: Draft, command: CommandDecl | ReimportDecl, used: set[str], collector: Collector) -> None:
    for part in command.inputs:
        if isinstance(part, InputDecl):
            if part.name.text not in used:
                message = f"nothing in `{command.name.text}` uses the input `{part.name.text}`"
                collector.lint("unused-input", message, part.name.span, fix=_without(part.span, part.name.text))
            continue
        entity = draft.entities[part.entity.text].plan
        unused = ", ".join(f"`{field.name}`" for field in entity.key if field.name not in used)
        if unused:
            message = f"nothing in `{command.name.text}` uses {unused} of `input key of {entity.name}`"
            collector.lint("unused-input", message, part.entity.span, help="declare one by one what it needs")
    for service in command.services if isinstance(command, CommandDecl) else ():
        if service.name.text not in used:
            message = f"nothing in `{command.name.text}` uses the service value `{service.name.text}`"
            collector.lint("unused-input", message, service.name.span, fix=_without(service.span, service.name.text))


def _parameters(view: QueryDecl | StreamDecl, collector: Collector) -> None:
    used = {part.name.text for part in parts_of(view) if isinstance(part, ParamExpr)}
    for param in view.params:
        if param.name.text not in used:
            message = f"nothing in `{view.name.text}` uses the parameter `${param.name.text}`"
            help_text = "take it out, or use it in a condition"
            collector.lint("unused-parameter", message, param.name.span, help=help_text)


def _query_bindings(query: QueryDecl, collector: Collector) -> None:
    used = set()
    for part in parts_of(query):
        if isinstance(part, NameExpr):
            used.add(part.name.text)
        elif isinstance(part, MemberExpr):
            used.add(part.owner.text)
    for binding in query.bindings:
        if binding.kind != "one" and binding.name.text not in used:
            message = f"`{query.name.text}` reads `{binding.name.text}` and answers nothing of it"
            collector.lint("unused-binding", message, binding.name.span, fix=_without(binding.span, binding.name.text))


def _without(span: Span, name: str) -> Fix:
    """Taking a declaration out, which changes what callers see or what is read, so not without a look."""
    return Fix(f"take `{name}` out, or use it", (Edit(span, ""),), safe=False)
