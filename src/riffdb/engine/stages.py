"""Which rows a command reads, as generated source: the partition, then one function for each stage.

Every key that can be computed is asked for, also in arms that will not be taken; keys are over rows as they were found.
A key that cannot be computed, or holds a null, belongs to a binding that evaluation never comes to, or fails at with
the right error.
"""

from collections.abc import Mapping
from itertools import groupby

from riffdb.engine.expressions import expression_text, rowless
from riffdb.engine.slots import Slot
from riffdb.engine.source import Source, note, row_of
from riffdb.engine.views import Views, texts
from riffdb.plan.commands import CommandPlan
from riffdb.plan.expressions import Constant, Expression, Input


def write_partition(partition: Expression, inputs: Mapping[str, str], source: Source) -> None:
    """Write `partition(inputs)`."""
    scope = rowless("the partition", inputs, source.temporary)
    with source.block("def partition(inputs):"):
        source.line(f"return {expression_text(partition, scope)}")


def write_stages(command: CommandPlan, slots: tuple[Slot, ...], views: Views, source: Source) -> int:
    """Write `stage_0`, `stage_1`, … and give how many there are, at least one."""
    # As declared: after a step that proves an input to be not null, expressions no longer say that it may be.
    given = frozenset(part.name for part in command.inputs if not part.type.optional)
    ordered = sorted(slots, key=lambda slot: slot.bind.stage)
    by_stage = {stage: list(group) for stage, group in groupby(ordered, lambda slot: slot.bind.stage)}
    stages = max(by_stage, default=0) + 1
    for stage in range(stages):
        source.line()
        source.line()
        with source.block(f"def stage_{stage}(inputs, rows):"):
            _write_stage(by_stage.get(stage, []), given, views, source)
    return stages


def _write_stage(slots: list[Slot], given: frozenset[str], views: Views, source: Source) -> None:
    if all(_is_certain(slot, given) for slot in slots):
        pairs = [pair for slot in slots for pair in _pairs(slot, row_of(texts(slot.bind.key, views.read(slot))))]
        source.line(f"return {row_of(pairs) if pairs else '()'}")
        return
    source.line("found = ()")
    for slot in slots:
        source.line(note(f"{slot.bind.kind} {slot.bind.entity} as {slot.name}"))
        if _is_certain(slot, given):
            pairs = _pairs(slot, row_of(texts(slot.bind.key, views.read(slot))))
            source.line(f"found += {row_of(pairs)}")
            continue
        with source.block("try:"):
            source.line(f"{slot.key} = {row_of(texts(slot.bind.key, views.read(slot)))}")
            with source.block(f"if None not in {slot.key}:"):
                source.line(f"found += {row_of(_pairs(slot, slot.key))}")
        with source.block("except UNREACHED:"):
            source.line("pass")
    source.line("return found")


def _pairs(slot: Slot, key: str) -> list[str]:
    """What is read for a slot: its row, and the tombstone that it would go on from."""
    numbers = (slot.number, slot.grave) if slot.reads_tombstone else (slot.number,)
    return [f"({number}, {key})" for number in numbers]


def _is_certain(slot: Slot, given: frozenset[str]) -> bool:
    """Whether the key is there in every call: made of constants and inputs that are never null."""
    return all(isinstance(part, Constant) or (isinstance(part, Input) and part.name in given) for part in slot.bind.key)
