"""Which rows a command reads, as generated source: the partition, then one function for each stage.

Every key that can be computed is asked for, also in arms that will not be taken; keys are over rows as they were found.
A key that cannot be computed, or holds a null, belongs to a binding that evaluation never comes to, or fails at with
the right error. The rows of a loop are asked for item by item.
"""

from collections.abc import Mapping
from itertools import groupby

from riffdb.engine.expressions import expression_text, rowless
from riffdb.engine.loops import Items
from riffdb.engine.slots import Slot
from riffdb.engine.source import Source, note, row_of
from riffdb.engine.views import Views, texts
from riffdb.plan.commands import CommandPlan
from riffdb.plan.expressions import Constant, Expression, Input, Item


def write_partition(partition: Expression, inputs: Mapping[str, str], source: Source) -> None:
    """Write `partition(inputs)`."""
    scope = rowless("the partition", inputs, source.temporary)
    with source.block("def partition(inputs):"):
        source.line(f"return {expression_text(partition, scope)}")


def write_stages(
    command: CommandPlan, slots: tuple[Slot, ...], items: Items | None, views: Views, source: Source
) -> int:
    """Write `stage_0`, `stage_1`, … and give how many there are, at least one."""
    # As declared: after a step that proves an input to be not null, expressions no longer say that it may be.
    given = frozenset(name for name, kind in command.given.items() if not kind.optional)
    if items is not None:
        given |= items.given
    ordered = sorted(slots, key=lambda slot: slot.bind.stage)
    by_stage = {stage: list(group) for stage, group in groupby(ordered, lambda slot: slot.bind.stage)}
    stages = max(by_stage, default=0) + 1
    for stage in range(stages):
        source.line()
        source.line()
        with source.block(f"def stage_{stage}(inputs, rows):"):
            wanted = by_stage.get(stage, [])
            if items is None or not any(slot.in_loop for slot in wanted):
                _write_stage(wanted, given, views, source)
            else:
                _write_looped_stage(wanted, slots, given, items, views, source)
    return stages


def _write_stage(slots: list[Slot], given: frozenset[str], views: Views, source: Source) -> None:
    if all(_is_certain(slot, given) for slot in slots):
        pairs = [pair for slot in slots for pair in _pairs(slot, row_of(texts(slot.bind.key, views.read(slot))))]
        source.line(f"return {row_of(pairs) if pairs else '()'}")
        return
    source.line("found = ()")
    for slot in slots:
        _write_slot(slot, given, views, source)
    source.line("return found")


def _write_looped_stage(
    wanted: list[Slot], slots: tuple[Slot, ...], given: frozenset[str], items: Items, views: Views, source: Source
) -> None:
    source.line("found = []")
    for slot in wanted:
        if not slot.in_loop:
            _write_slot(slot, given, views, source)
    stage = wanted[0].bind.stage
    with source.block(f"for item in {items.list}:"):
        source.line(items.unpacking)
        for slot in slots:
            if slot.in_loop and slot.bind.stage < stage:
                _write_row(slot, views, source)
        for slot in wanted:
            if slot.in_loop:
                _write_slot(slot, given, views, source)
    source.line("return found")


def _write_row(slot: Slot, views: Views, source: Source) -> None:
    """Take the row of a slot of the loop from what an earlier stage asked for."""
    source.line(f"{slot.row} = None")
    with source.block("try:"):
        source.line(f"{slot.row} = rows[{slot.number}].get({row_of(texts(slot.bind.key, views.read(slot)))})")
    with source.block("except UNREACHED:"):
        source.line("pass")


def _write_slot(slot: Slot, given: frozenset[str], views: Views, source: Source) -> None:
    source.line(note(f"{slot.bind.kind} {slot.bind.entity} as {slot.name}"))
    if _is_certain(slot, given):
        pairs = _pairs(slot, row_of(texts(slot.bind.key, views.read(slot))))
        source.line(f"found += {row_of(pairs)}")
        return
    with source.block("try:"):
        source.line(f"{slot.key} = {row_of(texts(slot.bind.key, views.read(slot)))}")
        with source.block(f"if None not in {slot.key}:"):
            source.line(f"found += {row_of(_pairs(slot, slot.key))}")
    with source.block("except UNREACHED:"):
        source.line("pass")


def _pairs(slot: Slot, key: str) -> list[str]:
    """What is read for a slot: its row, and the tombstone that it would go on from."""
    numbers = (slot.number, slot.grave) if slot.reads_tombstone else (slot.number,)
    return [f"({number}, {key})" for number in numbers]


def _is_certain(slot: Slot, given: frozenset[str]) -> bool:
    """Whether the key is there in every call: made of constants, and of inputs and items that are never null."""
    return all(_is_there(part, given) for part in slot.bind.key)


def _is_there(part: Expression, given: frozenset[str]) -> bool:
    match part:
        case Constant():
            return True
        case Input(name=name):
            return name in given
        case Item(name=name):
            return f".{name}" in given
    return False
