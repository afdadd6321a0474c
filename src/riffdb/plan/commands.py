"""The commands of a plan: inputs, steps in source order, and every outcome with its payload.

A command is a list of steps that the engine turns into one function. Which rows it reads is known from its inputs and
earlier rows alone (`stage`). Payload expressions of `return` and `emit` see rows as committed, those of a failure the
rows before the command.
"""

from typing import Literal, TypeAlias

import msgspec

from riffdb.core.types import Type
from riffdb.plan.expressions import Expression, Kept


class InputPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """An input. One that is optional, or has a default, may be left out."""

    name: str
    type: Type
    secret: bool = False
    has_default: bool = False
    default: Kept = None
    doc: str = ""


class ServicePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that the database makes when it seals the command, read as an `Input` of that name."""

    name: str
    type: Type


class PayloadPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """One named value of a payload."""

    name: str
    value: Expression


class OutcomeUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """An outcome as a statement answers it."""

    name: str
    payload: tuple[PayloadPlan, ...] = ()


class PayloadField(msgspec.Struct, frozen=True, omit_defaults=True):
    """The shape of one payload value: a type, or the whole row of an `entity` (empty: none)."""

    name: str
    type: Type
    entity: str = ""


class OutcomePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A declared outcome of a command. An `evidence` failure: the caller's evidence was wrong, nothing else."""

    name: str
    success: bool
    evidence: bool
    payload: tuple[PayloadField, ...] = ()


class BreachPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome when the effects on a binding broke a rule of `entity`: `conflict` a unique or a reference of that
    name, `violates` an invariant. `incoming`: a reference, of whatever entity, that names the binding's row, which is
    deleted or changes what it is named by."""

    kind: Literal["conflict", "violates"]
    entity: str
    name: str
    outcome: OutcomeUse
    incoming: bool = False


class BindStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="bind", tag_field="step"):
    """Bind a row by key (values in the entity's storage key order), or by the unique that `unique` names (values in the
    order of its columns). Kind `create` fails when the row exists, the others when it does not; `maybe` never fails;
    `init_or_mutate` creates the row from `initialize` when it is not there, and mutates it otherwise. `stage` 0 needs
    inputs alone, stage n rows of stages below n. `breaches`: what the effects on it may break, in the order in which
    that is checked."""

    kind: Literal["read", "mutate", "delete", "create", "maybe", "init_or_mutate"]
    name: str
    entity: str
    key: tuple[Expression, ...]
    otherwise: OutcomeUse | None = None
    stage: int = 0
    unique: str = ""
    initialize: tuple[PayloadPlan, ...] = ()
    breaches: tuple[BreachPlan, ...] = ()


class RequireStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="require", tag_field="step"):
    """Go on only if the condition holds."""

    name: str
    condition: Expression
    otherwise: OutcomeUse


class SetStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="set", tag_field="step"):
    """Set a field of a bound row."""

    binding: str
    field: str
    value: Expression


class EmitStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="emit", tag_field="step"):
    """Emit an event if the command succeeds."""

    event: str
    payload: tuple[PayloadPlan, ...]


class TransitionStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="transition", tag_field="step"):
    """Move the workflow state of a bound row; `revision` is a direct input."""

    workflow: str
    transition: str
    binding: str
    revision: Expression
    stale: OutcomeUse
    illegal: OutcomeUse


class LeaseStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="lease", tag_field="step"):
    """A lease operation on a bound row; operands are direct inputs, outcomes those that the operation can have."""

    operation: Literal["claim", "renew", "release", "expire", "fence", "unheld"]
    workflow: str
    binding: str
    revision: Expression
    owner: Expression | None = None
    fencing_token: Expression | None = None
    duration_seconds: Expression | None = None
    stale: OutcomeUse | None = None
    unavailable: OutcomeUse | None = None
    invalid: OutcomeUse | None = None
    exhausted: OutcomeUse | None = None
    expired: OutcomeUse | None = None
    active: OutcomeUse | None = None


class ArmPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """One arm of a decide: taken when `condition` (None: otherwise) holds. With `none` it answers that failure; else
    its steps run, and its own `answer`, if it has one, is the command's success."""

    condition: Expression | None
    steps: tuple["Step", ...] = ()
    none: OutcomeUse | None = None
    answer: OutcomeUse | None = None


class DecideStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="decide", tag_field="step"):
    """Take the first arm whose condition holds; the last has none."""

    binding: str
    arms: tuple[ArmPlan, ...]


class ForStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="for", tag_field="step"):
    """Run the steps once for each element of the list input `items`, whose fields they read as `Item`; the last step
    of a bulk command, at most once."""

    item: str
    items: str
    steps: tuple["Step", ...]


class ReconstituteStep(msgspec.Struct, frozen=True, omit_defaults=True, tag="reconstitute", tag_field="step"):
    """Put a row of the entity back as the input `source`, a whole row, says; the only step of a reimport command.
    `otherwise` answers when the key has a row, or a past that is further on."""

    entity: str
    source: str
    otherwise: OutcomeUse


Step: TypeAlias = (
    BindStep | RequireStep | SetStep | EmitStep | TransitionStep | LeaseStep | DecideStep | ForStep | ReconstituteStep
)


class CommandPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command. `partition` is the expression, over inputs alone, that confines it; its type is a key type.

    A create's injected values (`initial`, null optionals, defaults) are not steps: the engine starts a created row from
    the key, field defaults, nulls and the workflow's initial state, and the steps set the rest.
    """

    name: str
    inputs: tuple[InputPlan, ...]
    idempotency_key: str | None
    partition: Expression
    steps: tuple[Step, ...]
    answer: OutcomeUse
    outcomes: tuple[OutcomePlan, ...]
    services: tuple[ServicePlan, ...] = ()
    kind: Literal["command", "bulk", "reimport"] = "command"
    doc: str = ""

    @property
    def given(self) -> dict[str, Type]:
        """Every input and, after them, service value with its type, in the order in which evaluation is given them."""
        return {part.name: part.type for part in self.inputs} | {part.name: part.type for part in self.services}

    def outcome(self, name: str) -> OutcomePlan:
        """The outcome of that name; `KeyError` if there is none."""
        for outcome in self.outcomes:
            if outcome.name == name:
                return outcome
        raise KeyError(name)
