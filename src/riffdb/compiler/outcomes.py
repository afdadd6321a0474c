"""Outcomes of a command: every answer it can give, each name with one payload shape, never both success and failure.

Payload values are lowered in the scope that their statement gives them. An outcome used twice must carry the same
names with types that have one in common; the wider one is its shape. Absent: which scope that is, which `path` knows.
"""

from dataclasses import dataclass, field

from riffdb.compiler.collector import Collector
from riffdb.compiler.expressions import infer, secrets_of
from riffdb.compiler.linking import NameScope
from riffdb.compiler.scope import Scope
from riffdb.compiler.typing import joined
from riffdb.core.diagnostics import Related
from riffdb.core.types import Type
from riffdb.plan.commands import OutcomePlan, OutcomeUse, PayloadField, PayloadPlan
from riffdb.plan.expressions import Expression
from riffdb.syntax.tree import Name, Outcome, Payload, PayloadItem

SCALARS = ("bool", "i64", "u64", "string", "bytes", "uuid", "timestamp", "date", "decimal", "enum", "record")


@dataclass(slots=True)
class _Shape:
    """What is known of an outcome so far; `types` is None once a payload of it was broken."""

    name: Name
    success: bool
    evidence: bool
    types: dict[str, Type] | None = field(default_factory=dict)


class Outcomes:
    """The outcomes of one command, in the order of their first appearance."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.shapes: dict[str, _Shape] = {}
        self.names = NameScope("an outcome", collector)

    def use(self, outcome: Outcome, scope: Scope, *, success: bool, evidence: bool = False) -> OutcomeUse | None:
        """Lower one use of an outcome; None if its payload is broken."""
        shape = self.shapes.get(outcome.name.text)
        payload = self._payload(outcome.payload, scope, shape)
        types = None if payload is None else {item.name: item.value.type for item in payload}
        if shape is None:
            self.names.add(outcome.name)
            self.shapes[outcome.name.text] = _Shape(outcome.name, success, evidence and not success, types)
        else:
            self._agree(shape, outcome, success, types)
            shape.evidence = shape.evidence or (evidence and not shape.success)
        return None if payload is None else OutcomeUse(outcome.name.text, payload)

    def plans(self) -> tuple[OutcomePlan, ...]:
        """Every outcome with its final shape."""
        return tuple(
            OutcomePlan(
                name,
                shape.success,
                shape.evidence,
                tuple(
                    PayloadField(item, kind, kind.name if kind.kind == "record" else "")
                    for item, kind in (shape.types or {}).items()
                ),
            )
            for name, shape in self.shapes.items()
        )

    def _payload(self, payload: Payload, scope: Scope, shape: _Shape | None) -> tuple[PayloadPlan, ...] | None:
        names = NameScope("a payload value", self.collector)
        hints = {} if shape is None or shape.types is None else shape.types
        items: list[PayloadPlan] = []
        broken = False
        for item in payload.items:
            value = self._value(item, scope, hints.get(item.name.text)) if names.add(item.name) else None
            if value is None:
                broken = True
            else:
                items.append(PayloadPlan(item.name.text, value))
        return None if broken else tuple(items)

    def _value(self, item: PayloadItem, scope: Scope, hint: Type | None) -> Expression | None:
        value = infer(item.value, scope, hint, self.collector)
        if value is None:
            return None
        if value.type.kind not in SCALARS:
            message, help_text = f"a payload value cannot be `{value.type}`", "name single values"
            if value.type.kind == "null":
                message, help_text = "null alone has no type to show", "leave the value out"
            self.collector.error("RDB-C514", message, item.value.span, help=help_text)
            return None
        for name in secrets_of(value, scope):
            message = f"`{name}` is secret and stands in no payload"
            self.collector.error("RDB-C217", message, item.value.span, help="leave it out; a query may reveal it")
            return None
        return value

    def _agree(self, shape: _Shape, outcome: Outcome, success: bool, types: dict[str, Type] | None) -> None:
        first = (Related("first used here", shape.name.span),)
        name = outcome.name
        if shape.success != success:
            was, now = ("success", "failure") if shape.success else ("failure", "success")
            message = f"`{name.text}` is a {was} of this command, so it cannot be a {now} too"
            help_text = "give one of the two another name"
            self.collector.error("RDB-C512", message, name.span, related=first, help=help_text)
            return
        if shape.types is None or types is None:
            shape.types = None
            return
        merged = {item: joined(kind, types[item]) for item, kind in shape.types.items() if item in types}
        if merged.keys() == shape.types.keys() == types.keys() and None not in merged.values():
            shape.types = {item: kind for item, kind in merged.items() if kind is not None}
            return
        message = f"`{name.text}` has another payload here than where it was used first"
        help_text = "give the payloads the same names and types, or one outcome another name"
        self.collector.error("RDB-C513", message, name.span, related=first, help=help_text)
