"""How a query finds its rows: the path of every binding in plain words, and what the store itself says of it.

With parameters, the path of their case and its ranges; without, the paths of all cases. No value of a parameter stands
in it, and no row is read. Absent: the choice of paths, which the compiler has made.
"""

from dataclasses import replace
from math import prod
from typing import Any

from riffdb.core.limits import QUERY_ENTRIES_MAX
from riffdb.core.values import Enums
from riffdb.database.contracts import Contract
from riffdb.database.reading import Asked, path_scans
from riffdb.engine import CompiledBinding, CompiledPath
from riffdb.engine.queries import walked_columns
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.queries import BindingPlan, PathPlan, PrefixPlan, QueryPlan
from riffdb.plan.wording import wording
from riffdb.storage.protocol import Reader, Scan


async def explain_query(reader: Reader, contract: Contract, name: str, asked: Asked | None) -> dict[str, Any]:
    """The paths of a query; with `asked` those that its parameters take, at the time that the store shows."""
    query = contract.query(name)
    time = await reader.time()
    told = []
    for binding in query.compiled.bindings:
        cases = []
        for plan in binding.plan.paths:
            path = binding.path(_sample(query.plan, plan))
            if asked is None:
                scans = [_blank(contract, binding, path, plan)]
                ranges = _ranges_max(plan)
            elif path is binding.path(asked.params):
                scans = path_scans(asked, binding, path, time)
                ranges = len(scans)
            else:
                continue
            store = list(dict.fromkeys([await reader.explain(scan) for scan in scans]))
            cases.append(
                {
                    "given": list(plan.given),
                    "ranges": ranges,
                    "path": path_words(contract, binding, plan, ranges),
                    "store": store,
                }
            )
        told.append(_binding(binding.plan, contract.enums, cases))
    return {"query": name, "partition": wording(query.plan.partition, contract.enums), "bindings": told}


def _binding(plan: BindingPlan, enums: Enums, cases: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": plan.name,
        "kind": plan.kind,
        "entity": plan.entity,
        "where": wording(plan.where, enums),
        "filters": list(plan.filters),
        "cases": cases,
    }


def path_words(contract: Contract, binding: CompiledBinding, path: PathPlan, ranges: int) -> list[str]:
    """What a path does, a line for each thing."""
    plan, enums = binding.plan, contract.enums
    entity = contract.plan.entity(plan.entity)
    columns = walked_columns(entity, path.index)
    listed = ", ".join(name + " desc" * descends for name, descends in columns)
    names = [name for name, _ in columns]
    conditions = [_held(name, part, enums) for name, part in zip(names, path.prefix, strict=False)]
    for bound, sign in ((path.lower, ">"), (path.upper, "<")):
        if bound is not None:
            conditions.append(f"{names[len(path.prefix)]} {sign}{'=' * bound.inclusive} {wording(bound.value, enums)}")
    lines = [f"reads {_source(entity, path.index)} ({listed})", f"where {' && '.join(conditions)}"]
    if plan.kind in ("one", "maybe"):
        lines.append("one entry at most")
    else:
        lines += _order_words(plan, path, ranges)
    if path.residual is not None:
        lines.append(f"asks of each entry: {wording(path.residual, enums)}")
        if plan.kind == "many":
            lines.append(f"reads {QUERY_ENTRIES_MAX:,} entries at most, and answers what it has")
    return lines


def _order_words(plan: BindingPlan, path: PathPlan, ranges: int) -> list[str]:
    lines = ["backwards"] if path.reverse else []
    order = ", ".join(name + " desc" * descends for name, descends in path.order or plan.order)
    if ranges > 1:
        merged = f", merged in the order {order}" if order else ", one after another"
        lines.append(f"{ranges} ranges{merged}")
    elif order:
        lines.append(f"in the order {order}")
    if plan.cursor:
        lines.append(f"begins {plan.cursor_kind} ${plan.cursor}, by value")
    take = f"${plan.take}" if isinstance(plan.take, str) else f"{plan.take:,}"
    lines.append(f"{take} {'rows' if plan.kind == 'many' else 'entries'} at most")
    return lines


def _held(name: str, part: PrefixPlan, enums: Enums) -> str:
    if part.among is not None:
        return f"{name} in {wording(part.among, enums)}"
    values = [wording(value, enums) for value in part.values]
    if len(values) > 1:
        return f"{name} in ({', '.join(values)})"
    return f"{name} is null" if values == ["null"] else f"{name} == {values[0]}"


def _source(entity: EntityPlan, index: str) -> str:
    if not index:
        return f"the key of {entity.name}"
    is_unique = any(unique.name == index for unique in entity.uniques)
    return f"the {'unique' if is_unique else 'index'} {index} of {entity.name}"


def _ranges_max(path: PathPlan) -> int:
    return prod(len(part.values) if part.among is None else part.among.type.bound for part in path.prefix)


def _sample(query: QueryPlan, path: PathPlan) -> tuple[Any, ...]:
    """Parameters of the case of the path, good for nothing but to find it."""
    return tuple(True if part.name in path.given else None for part in query.params)


def _blank(contract: Contract, binding: CompiledBinding, path: CompiledPath, plan: PathPlan) -> Scan:
    """A walk of the shape that the path has, without values."""
    table, index = contract.tables[binding.plan.entity], contract.index(binding.plan.entity, path.index)
    blank = Scan(table, index, (None,) * len(path.prefix), reverse=path.reverse)
    lower = None if plan.lower is None else (None, plan.lower.inclusive)
    upper = None if plan.upper is None else (None, plan.upper.inclusive)
    return replace(blank, lower=lower, upper=upper)
