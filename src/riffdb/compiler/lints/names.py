"""Names within a command, query or stream that nothing there uses: inputs, service values, parameters, bindings.

A binding is unused only if it does nothing
else: `read` refuses what is not there, and `one` too, so these may stand for that alone.
Absent: judging whether a use matters.
"""

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.lints.uses import Uses
from riffdb.compiler.places import statements
from riffdb.core.diagnostics import Edit, Fix
from riffdb.core.spans import Span
from riffdb.syntax.tree import BindStmt, CommandDecl, InputDecl, QueryDecl, ReimportDecl, StreamDecl


def find_unused_names(draft: Draft, uses: Uses, collector: Collector) -> None:
    """Report inputs, service values, parameters and bindings that nothing uses."""
    for command in draft.declared.commands.values():
        used = uses.values_of(command)
        _inputs(draft, command, used, collector)
        if isinstance(command, CommandDecl):
            _absent_rows(command, used, collector)
    for query in draft.declared.queries.values():
        _parameters(query, uses.values_of(query), collector)
        _query_bindings(query, uses.values_of(query), collector)
    for stream in draft.declared.streams.values():
        _parameters(stream, uses.values_of(stream), collector)


def _absent_rows(command: CommandDecl, used: set[str], collector: Collector) -> None:
    for row in statements(command):
        if isinstance(row, BindStmt) and row.kind == "maybe" and row.name.text not in used:
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


def _parameters(view: QueryDecl | StreamDecl, used: set[str], collector: Collector) -> None:
    for param in view.params:
        if f"${param.name.text}" not in used:
            message = f"nothing in `{view.name.text}` uses the parameter `${param.name.text}`"
            help_text = "take it out, or use it in a condition"
            collector.lint("unused-parameter", message, param.name.span, help=help_text)


def _query_bindings(query: QueryDecl, used: set[str], collector: Collector) -> None:
    for binding in query.bindings:
        if binding.kind != "one" and binding.name.text not in used:
            message = f"`{query.name.text}` reads `{binding.name.text}` and answers nothing of it"
            collector.lint("unused-binding", message, binding.name.span, fix=_without(binding.span, binding.name.text))


def _without(span: Span, name: str) -> Fix:
    """Taking a declaration out, which changes what callers see or what is read, so not without a look."""
    return Fix(f"take `{name}` out, or use it", (Edit(span, ""),), safe=False)
