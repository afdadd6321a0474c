"""Roles: lists of exact names. Each exists, stands once, and implies nothing beyond itself.

Absent: judging whether a role suffices for a schedule or a client; it is the operator's to grant what is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.core.diagnostics import Related
from riffdb.plan.queries import RolePlan
from riffdb.syntax.tree import Name, ReimportDecl, RoleDecl


def lower_roles(draft: Draft, collector: Collector) -> Draft:
    """Fill in the roles of the plan."""
    roles = {name: _role(decl, draft, collector) for name, decl in draft.declared.roles.items()}
    return replace(draft, roles=roles)


def _role(decl: RoleDecl, draft: Draft, collector: Collector) -> RolePlan:
    families = {
        "query": draft.declared.queries,
        "command": draft.declared.commands,
        "stream": draft.declared.streams,
    }
    return RolePlan(
        name=decl.name.text,
        queries=_names("query", decl.queries, families, collector),
        commands=_names("command", decl.commands, families, collector),
        streams=_names("stream", decl.streams, families, collector),
        doc=decl.doc,
    )


def _names(
    family: str, names: Sequence[Name], families: Mapping[str, Mapping[str, object]], collector: Collector
) -> tuple[str, ...]:
    seen: dict[str, Name] = {}
    for name in names:
        first = seen.setdefault(name.text, name)
        if first is not name:
            related = (Related("first named here", first.span),)
            message = f"`{name.text}` stands in this role already"
            collector.error("RDB-C710", message, name.span, related=related, help="take one of the two out")
        elif name.text not in families[family]:
            _report_unknown(family, name, families, collector)
        elif isinstance(families[family][name.text], ReimportDecl):
            message = f"`{name.text}` puts rows back, which an operator alone may do"
            collector.error("RDB-C712", message, name.span, help="take it out of the role")
    return tuple(seen)


def _report_unknown(
    family: str, name: Name, families: Mapping[str, Mapping[str, object]], collector: Collector
) -> None:
    for other, declared in families.items():
        if name.text in declared:
            message = f"`{name.text}` is a {other}, not a {family}"
            collector.error("RDB-C711", message, name.span, help=f"write `{other} {name.text}`")
            return
    collector.unknown("RDB-C104", f"there is no {family} `{name.text}`", name, families[family])
