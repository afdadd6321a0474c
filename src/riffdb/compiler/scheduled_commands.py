"""The commands of a schedule, read for an adapter: which input takes what, and which outcome says what.

Everything is read off the command's plan. What an adapter could not fill in, or could not read from an answer, is
refused here, at the place in the schedule that names the command.
Absent: what the commands mean together, which is `schedules`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft, EntityDraft
from riffdb.compiler.places import command_place, input_place, operand_places, outcome_places, step_place
from riffdb.compiler.steps import all_steps, answers, evidence_and_refusals
from riffdb.core.diagnostics import Related
from riffdb.core.types import U64, Type
from riffdb.plan.commands import BindStep, CommandPlan, InputPlan, LeaseStep, OutcomeUse, TransitionStep
from riffdb.plan.declarations import LeasePlan, WorkflowPlan
from riffdb.plan.expressions import Expression, Field, Input, Revision, Row
from riffdb.plan.queries import ScheduledCommand
from riffdb.syntax.tree import Name

Purpose = Literal["claim", "renew", "run", "release", "fail"]

IDENTITY_BYTES = 70
"""The bytes of an attempt identity: `sched_` and 64 hexadecimal digits."""

COMPONENTS_MAX = 8
COMPONENT_TEXT_MAX = 256
RETRY_SECONDS = "retry_seconds"


@dataclass(frozen=True, slots=True)
class Leased:
    """What a schedule's items are: rows of an entity, under the lease of its workflow."""

    entity: EntityDraft
    workflow: WorkflowPlan
    lease: LeasePlan


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A command in its place: what it is for, the name that the schedule gives, the leased row's binding in it."""

    purpose: Purpose
    name: Name
    command: CommandPlan
    binding: BindStep

    def leases(self) -> Iterator[LeaseStep]:
        """The lease operations on the leased row, those in arms among them."""
        for step in all_steps(self.command.steps):
            if isinstance(step, LeaseStep) and step.binding == self.binding.name:
                yield step


def adapter_of(
    scheduled: Scheduled, leased: Leased, draft: Draft, collector: Collector, is_from_stream: bool = False
) -> ScheduledCommand | None:
    """How an adapter calls the command; None after at least one diagnostic. Of a claim `is_from_stream` asks for more:
    what an event told may be old, and the claim's own failures tell what is true now."""
    found = len(collector.diagnostics)
    reader = _Reader(scheduled, leased, draft, collector)
    reader.check_failures()
    key = reader.key()
    operands = reader.operands()
    request_key = reader.request_key()
    if len(collector.diagnostics) > found:
        return None
    further = reader.further({request_key, *key, *operands.values()}) if reader.is_distinct() else None
    shown = reader.shown() if scheduled.purpose == "claim" else ("", "")
    evidence = _stream_evidence(scheduled, leased, draft, collector) if is_from_stream else {}
    if further is None or shown is None or evidence is None:
        return None
    return ScheduledCommand(
        command=scheduled.command.name,
        binding=scheduled.binding.name,
        idempotency_key=request_key,
        key=key,
        owner=operands.get("owner"),
        duration=operands.get("duration_seconds"),
        revision=operands.get("revision"),
        fencing_token=operands.get("fencing_token"),
        further=further,
        missing=_name(scheduled.binding.otherwise),
        row=shown[0],
        fence=shown[1],
        releases=reader.releases(),
        **reader.outcomes(),
        **evidence,
    )


class _Reader:
    """One command of a schedule, read purpose by purpose; each input takes one value."""

    def __init__(self, scheduled: Scheduled, leased: Leased, draft: Draft, collector: Collector) -> None:
        self.scheduled = scheduled
        self.leased = leased
        self.collector = collector
        self.command = scheduled.command
        self.decl = draft.declared.commands[scheduled.command.name]
        self.uses: list[tuple[str, str]] = []

    def error(self, code: str, message: str, related: tuple[Related, ...], help: str) -> None:
        self.collector.error(code, message, self.scheduled.name.span, related=related, help=help)

    def check_failures(self) -> None:
        """No outcome may tell of wrong evidence in one place and of the business in another."""
        evidence, refusals = evidence_and_refusals(self.command, self.scheduled.binding.name)
        for name in refusals:
            if name in evidence:
                self.error(
                    "RDB-C817",
                    f"`{name}` of `{self.command.name}` tells of wrong evidence, and elsewhere of a refusal",
                    outcome_places(self.decl, name),
                    "give the two uses two names, so that a worker knows whether anything was decided about the work",
                )

    def key(self) -> tuple[str, ...]:
        """The inputs that take the key of the row, in the order in which the entity declares it."""
        entity = self.leased.entity.plan
        inputs = dict(zip(entity.storage_key, self.scheduled.binding.key, strict=True))
        given = {part.name for part in self.command.inputs}
        for value in inputs.values():
            if not isinstance(value, Input) or value.name not in given:
                self.error(
                    "RDB-C811",
                    f"the key of `{self.scheduled.binding.name}` in `{self.command.name}` is not made of inputs alone",
                    (step_place(self.decl, self.scheduled.binding),),
                    "a worker gives the key of the item that it selected; take each part of it as an input",
                )
                return ()
        names = tuple(_input(inputs[part.name]) for part in entity.key)
        self.uses.extend((f"the key field `{part.name}`", name) for part, name in zip(entity.key, names, strict=True))
        return names

    def operands(self) -> dict[str, str]:
        """The input of each lease operand; the same one wherever the operand is used for this row."""
        found: dict[str, str] = {}
        for step in all_steps(self.command.steps):
            if isinstance(step, TransitionStep) and step.binding == self.scheduled.binding.name:
                self.agree(found, "revision", step.revision)
        for step in self.scheduled.leases():
            self.agree(found, "revision", step.revision)
            self.agree(found, "owner", step.owner)
            self.agree(found, "fencing_token", step.fencing_token)
            self.agree(found, "duration_seconds", step.duration_seconds)
        self.uses.extend((f"the {operand.replace('_', ' ')}", name) for operand, name in found.items())
        return found

    def agree(self, found: dict[str, str], operand: str, value: Expression | None) -> None:
        if value is None:
            return
        name = _input(value)
        first = found.setdefault(operand, name)
        if first != name:
            self.error(
                "RDB-C810",
                f"`{self.command.name}` takes its `{operand}` from `{first}` and from `{name}`",
                operand_places(self.decl, (first, name)),
                "use one input for both, since a worker presents one value",
            )

    def request_key(self) -> str:
        """The input that takes the attempt identity."""
        name = self.command.idempotency_key or ""
        kind = next((part.type for part in self.command.inputs if part.name == name), None)
        self.uses.append(("the idempotency key", name))
        if kind is None or kind.kind != "string" or kind.bound < IDENTITY_BYTES:
            shown = f"`{name}` is `{kind}`" if kind is not None else f"`{self.command.name}` has none"
            self.error(
                "RDB-C808",
                f"a worker's idempotency key has {IDENTITY_BYTES} bytes, and {shown}",
                (input_place(self.decl, name),),
                f"declare it as `string<128>`, or at least `string<{IDENTITY_BYTES}>`",
            )
        return name

    def is_distinct(self) -> bool:
        """Whether no input would have to take two values."""
        taken: dict[str, str] = {}
        for use, name in self.uses:
            first = taken.setdefault(name, use)
            if first != use:
                message = f"`{name}` of `{self.command.name}` would be {first} and {use} at once"
                place = (input_place(self.decl, name),)
                self.error("RDB-C812", message, place, "use an input of its own for each")
                return False
        return True

    def further(self, taken: set[str]) -> tuple[str, ...] | None:
        """The inputs that the handler (of `run`) or the policy (of `fail`) supplies; None after a diagnostic."""
        left = [part for part in self.command.inputs if part.name not in taken]
        if self.scheduled.purpose == "run":
            return tuple(part.name for part in left)
        if self.scheduled.purpose == "fail":
            delays = [part for part in left if part.name == RETRY_SECONDS and part.type == U64]
            left = [part for part in left if part not in delays]
        else:
            delays = []
        open_inputs = [part for part in left if _is_needed(part)]
        for part in open_inputs:
            help = "give it a default, or take it out; only `run` has a handler that computes inputs"
            if self.scheduled.purpose == "fail":
                help = f"give it a default; the policy's delay goes to an input `{RETRY_SECONDS}: u64`"
            message = f"nothing gives `{part.name}` to `{self.command.name}` in a schedule"
            self.error("RDB-C813", message, (input_place(self.decl, part.name),), help)
        return None if open_inputs else tuple(part.name for part in delays)

    def shown(self) -> tuple[str, str] | None:
        """The payload value of the claim's success that is the whole row, or else that which is its fence, and which of
        them it is by its place; None after a diagnostic."""
        binding, fence = self.scheduled.binding.name, self.leased.lease.fencing_token
        rows: list[set[str]] = []
        fences: list[set[str]] = []
        for answer in answers(self.command):
            rows.append({part.name for part in answer.payload if _is_row(part.value, binding)})
            fences.append({part.name for part in answer.payload if _is_field(part.value, binding, fence)})
            if not rows[-1] and not fences[-1]:
                message = f"`{answer.name}` shows neither the row nor its fence, which a worker presents"
                help = f"return the row, as in `{answer.name} {{ {binding}: {binding} }}`"
                self.error("RDB-C814", message, outcome_places(self.decl, answer.name), help)
                return None
        for position, names in enumerate((rows, fences)):
            shared = sorted(set.intersection(*names))
            if shared:
                return (shared[0], "") if position == 0 else ("", shared[0])
        message = f"the answers of `{self.command.name}` show the row, or its fence, under different names"
        self.error("RDB-C814", message, (command_place(self.decl),), "use one name in all its answers")
        return None

    def outcomes(self) -> dict[str, str]:
        """The names of the lease operation's failures, by clause."""
        found: dict[str, str] = {}
        for step in self.scheduled.leases():
            for clause in ("stale", "unavailable", "invalid", "exhausted", "expired"):
                name = _name(getattr(step, clause))
                if name:
                    found.setdefault(clause, name)
        return found

    def releases(self) -> bool:
        """Whether nothing is left to release after success: the lease is given back, or the row is gone."""
        return self.scheduled.binding.kind == "delete" or any(
            step.operation == "release" for step in self.scheduled.leases()
        )


def _stream_evidence(claim: Scheduled, leased: Leased, draft: Draft, collector: Collector) -> dict[str, str] | None:
    """The payload values from which a worker learns a newer revision, and how long to wait; None after a diagnostic."""
    binding = claim.binding.name
    stale, unavailable = next(((step.stale, step.unavailable) for step in claim.leases()), (None, None))
    found: dict[str, str] = {}
    for outcome, code, told in ((stale, "RDB-C815", "revision"), (unavailable, "RDB-C816", "expiry")):
        if outcome is None:
            continue
        row = next((part.name for part in outcome.payload if _is_row(part.value, binding)), "")
        single = next((part.name for part in outcome.payload if _tells(part.value, told, binding, leased)), "")
        if not row and not single:
            message = f"from a stream, `{outcome.name}` of `{claim.command.name}` must show the row or its {told}"
            help = f"write `{outcome.name} {{ {binding}: {binding} }}`"
            places = outcome_places(draft.declared.commands[claim.command.name], outcome.name)
            collector.error(code, message, claim.name.span, related=places, help=help)
            continue
        names = ("stale_row", "stale_revision") if told == "revision" else ("unavailable_row", "unavailable_expires_at")
        found |= {names[0]: row} if row else {names[1]: single}
    return found if len(found) == (stale is not None) + (unavailable is not None) else None


def _tells(value: Expression, told: str, binding: str, leased: Leased) -> bool:
    if told == "revision":
        return isinstance(value, Revision) and value.binding == binding
    return _is_field(value, binding, leased.lease.expires_at)


def check_key(name: Name, leased: Leased, collector: Collector) -> None:
    """The key of the entity can be part of an attempt identity; `name` is where the schedule says what it leases."""
    entity = leased.entity.plan
    for part in entity.key:
        if not _is_component(part.type):
            collector.error(
                "RDB-C809",
                f"a schedule's items have keys of uuid, u64 and short texts, and `{part.name}` is `{part.type}`",
                name.span,
                related=(Related(f"the key of `{entity.name}`", leased.entity.places[part.name.lower()].span),),
                help=f"use uuid, u64 or a string of at most {COMPONENT_TEXT_MAX} bytes",
            )
            return
    if len(entity.key) > COMPONENTS_MAX:
        collector.error(
            "RDB-C809",
            f"a schedule's items have at most {COMPONENTS_MAX} key fields, and `{entity.name}` has {len(entity.key)}",
            name.span,
            help="use fewer fields in the key",
        )


def _is_component(kind: Type) -> bool:
    return kind.kind in ("uuid", "u64") or (kind.kind == "string" and kind.bound <= COMPONENT_TEXT_MAX)


def _is_needed(part: InputPlan) -> bool:
    return not part.has_default and not part.type.optional


def _input(value: Expression) -> str:
    assert isinstance(value, Input)
    return value.name


def _name(outcome: OutcomeUse | None) -> str:
    return "" if outcome is None else outcome.name


def _is_row(value: Expression, binding: str) -> bool:
    return isinstance(value, Row) and value.binding == binding


def _is_field(value: Expression, binding: str, field: str) -> bool:
    return isinstance(value, Field) and value.binding == binding and value.name == field
