"""The `initialize` payload of `init_or_mutate`: the row as it begins when its key has none.

Proven here: it gives every stored field that has neither a default nor null to begin with, and nothing else; the state
of a workflow comes from `initial`, as in a `create`. Its values see what stands above the binding and not the row.
"""

from msgspec import structs

from riffdb.compiler.effects import settable_value
from riffdb.compiler.linking import NameScope
from riffdb.compiler.path import Bound, CommandDraft, Path, now, unset_fields
from riffdb.plan.commands import BindStep, PayloadPlan
from riffdb.syntax.tree import BindStmt, Payload, SetStmt


def lower_initialize(command: CommandDraft, path: Path, statement: BindStmt, step: BindStep | None) -> BindStep | None:
    """The step with the values that a new row begins with; the binding stands in the path already."""
    bound = path.bound.get(statement.name.text)
    if bound is None or bound.statement is not statement or statement.initialize is None:
        return None
    values = _values(command, path, bound, statement.initialize)
    if values is None or step is None:
        return None
    missing = [name for name in unset_fields(bound, path) if name not in values]
    if missing:
        named = ", ".join(f"`{name}`" for name in missing)
        message = f"`{bound.name}` is initialized without {named}"
        help_text = f"add `{missing[0]}: …` to the payload, or give the field a default or an optional type"
        command.collector.error("RDB-C507", message, statement.name.span, help=help_text)
        return None
    return structs.replace(step, initialize=tuple(values.values()))


def _values(command: CommandDraft, path: Path, bound: Bound, payload: Payload) -> dict[str, PayloadPlan] | None:
    above = path.copy()
    del above.bound[bound.name]
    scope = now(command, above)
    names = NameScope("a payload value", command.collector)
    values: dict[str, PayloadPlan] = {}
    sound = True
    for item in payload.items:
        fresh = names.add(item.name)
        statement = SetStmt(bound.statement.name, item.name, item.value, item.span)
        found = settable_value(command, bound, statement, scope)
        if found is None or not fresh:
            sound = False
        else:
            values[found[0].name] = PayloadPlan(found[0].name, found[1])
    return values if sound else None
