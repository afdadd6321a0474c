"""A command as generated source: its partition, the stages of its reads, and its evaluation.

`evaluate` runs the steps in source order over local names, returns at the first declared failure, and only then forms
what is committed: successor revisions, computed columns, rows, events, and the answer, which sees them. Names:
`i3` input, `r0` row of a slot as found, `g0` the tombstone of its key, `r0_4` a column of it as it is now, `k0` its
key, `v0` its successor revision, `n0` its row as committed, `d0` the arm that a decide took, `t0` a value on the way;
and those of `loops`.
"""

from functools import partial

from riffdb.core.errors import RiffError
from riffdb.engine.arithmetic import offered_functions
from riffdb.engine.commit import CommitWriter
from riffdb.engine.evaluation import Change, CompiledCommand, Evaluation, Guard, Guarded
from riffdb.engine.loops import items_of
from riffdb.engine.restoring import restored_names, unfit
from riffdb.engine.slots import Slot, lay_out
from riffdb.engine.source import Source, execute, note, numbered
from riffdb.engine.stages import write_partition, write_stages
from riffdb.engine.steps import StepWriter
from riffdb.engine.views import Views
from riffdb.plan import Plan
from riffdb.plan.commands import CommandPlan


def compile_command(plan: Plan, name: str) -> CompiledCommand:
    """The functions of a command; `KeyError` if there is none, `RDB-E-CONTRACT` for what no function can be made of."""
    command = plan.command(name)
    slots = lay_out(plan, command)
    source = Source()
    stages = _write_reads(plan, command, slots, source)
    constants = _write_evaluate(plan, command, slots, source)
    namespace = execute(name, source.text, _offered(name) | constants)
    return CompiledCommand(
        name,
        tuple(slot.entity.name for slot in slots),
        tuple(slot.entity.name for slot in slots if slot.grave is not None),
        {slot.number: slot.bind.unique for slot in slots if slot.bind.unique},
        tuple(namespace[f"stage_{number}"] for number in range(stages)),
        namespace["partition"],
        namespace["evaluate"],
        source.text,
        tuple(number for slot in slots if slot.in_loop for number in (slot.number, slot.grave) if number is not None),
    )


def _write_reads(plan: Plan, command: CommandPlan, slots: tuple[Slot, ...], source: Source) -> int:
    inputs = {name: f"inputs[{number}]" for number, name in enumerate(command.given)}
    inputs |= restored_names(plan, command, inputs)
    items = items_of(plan, command, inputs)
    views = Views(inputs if items is None else inputs | items.fields, source.temporary)
    write_partition(command.partition, inputs, source)
    return write_stages(command, slots, items, views, source)


def _write_evaluate(plan: Plan, command: CommandPlan, slots: tuple[Slot, ...], source: Source) -> dict[str, Evaluation]:
    given = {name: f"i{number}" for number, name in enumerate(command.given)}
    inputs = given | restored_names(plan, command, given)
    items = items_of(plan, command, inputs)
    views = Views(inputs if items is None else inputs | items.fields, source.temporary)
    source.line()
    source.line()
    with source.block("def evaluate(inputs, rows, now, sequence):"):
        source.line(note(f"inputs: {numbered(list(given))}"))
        _unpack(list(given.values()), "inputs", source)
        graves = [
            slot.looked_up_tombstone if slot.in_loop else slot.tombstone for slot in slots if slot.grave is not None
        ]
        _unpack([*(slot.looked_up if slot.in_loop else slot.row for slot in slots), *graves], "rows", source)
        steps = StepWriter(plan, command, slots, items, views, source)
        steps.write()
        CommitWriter(plan, command, slots, views, source).write(steps)
    return steps.constants


def _unpack(names: list[str], whole: str, source: Source) -> None:
    if names:
        source.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {whole}")


def _offered(name: str) -> dict[str, object]:
    return offered_functions(name) | {
        # `tuple.__new__` takes half the time of a named tuple's own constructor.
        "new": tuple.__new__,
        "enumerate": enumerate,
        "Change": Change,
        "Evaluation": Evaluation,
        "Guard": Guard,
        "Guarded": Guarded,
        "RiffError": RiffError,
        "failed": _failed,
        "unfit": unfit,
        "aliased": partial(_aliased, name),
        # What computing a key that must not be computed can raise: arithmetic, or a null or absent row as an operand.
        "UNREACHED": (RiffError, TypeError, AttributeError),
        "revision_exhausted": partial(_revision_exhausted, name),
    }


def _failed(outcome: str, payload: tuple[object, ...]) -> Evaluation:
    return Evaluation(outcome, payload, (), (), ())


def _aliased(command: str, first: str, second: str) -> RiffError:
    return RiffError(
        "RDB-E-ALIASED",
        f"{command}: `{first}` and `{second}` name the same row; give inputs that name different ones",
    )


def _revision_exhausted(command: str, binding: str) -> RiffError:
    return RiffError(
        "RDB-E-REVISION-EXHAUSTED",
        f"{command}: the revision of `{binding}` is at its end, so the row cannot change any more; create another row",
    )
