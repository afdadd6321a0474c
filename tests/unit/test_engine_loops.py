"""Loops: what is looked at first, what an item sees, and what all of them commit."""

from typing import Any

import pytest
from msgspec.structs import replace

from riffdb.core.errors import RiffError
from riffdb.core.limits import U64_MAX
from riffdb.core.types import BOOL, U64, UUID, Type
from riffdb.engine import Change, CompiledCommand, Evaluation, compile_command
from riffdb.plan.commands import (
    ArmPlan,
    DecideStep,
    EmitStep,
    ForStep,
    InputPlan,
    PayloadPlan,
    RequireStep,
    ServicePlan,
    SetStep,
    Step,
)
from riffdb.plan.declarations import FieldPlan, RecordPlan
from riffdb.plan.expressions import Input, IsNull, Item
from tests.unit.test_engine_plans import (
    NOW,
    ORGANIZATION,
    SEQUENCE,
    binary,
    bind_note,
    command,
    field,
    given,
    inputs,
    note,
    number,
    use,
    work_plan,
)

LINE = RecordPlan("Line", (FieldPlan("id", UUID), FieldPlan("amount", U64), FieldPlan("next", UUID.nullable)))
LINES = InputPlan("lines", Type("list", bound=256, element=Type("record", name="Line")))
ID, AMOUNT = Item(UUID, "id"), Item(U64, "amount")
A, B, C, D = (letter * 16 for letter in (b"a", b"b", b"c", b"d"))

FIND = bind_note("mutate", "note", ID)
COUNT = SetStep("note", "count", AMOUNT)
ENOUGH = RequireStep("enough", binary(AMOUNT, ">", number(0)), use("TooFew", amount=AMOUNT))


def bulk(*steps: Step, above: tuple[Step, ...] = (), services: tuple[ServicePlan, ...] = ()) -> CompiledCommand:
    """A bulk command over `lines` with these steps in its loop."""
    flat = command("Do", *above, *steps, answer=use("Done"))
    whole = replace(
        flat,
        kind="bulk",
        steps=(*above, ForStep("line", "lines", steps)),
        inputs=(*flat.inputs, LINES),
        services=services,
    )
    return compile_command(replace(work_plan(whole), records=(LINE,)), "Do")


def asked(loop: CompiledCommand, *lines: tuple[Any, ...], rows: Any = ()) -> list[list[tuple[int, Any]]]:
    """What each stage asks for."""
    return [list(stage((*inputs(), lines), rows)) for stage in loop.stages]


def run(loop: CompiledCommand, *lines: tuple[Any, ...], notes: Any = (), above: Any = None) -> Evaluation:
    """Evaluate over these lines; `notes` are all there are, `above` is the row of a slot above the loop."""
    known = {(ORGANIZATION, row[0]): row for row in notes}
    slots: list[Any] = [known if slot in loop.looped else above for slot in range(len(loop.slots))]
    evaluation = loop.evaluate((*inputs(), lines), [*slots, *[{} for _ in loop.tombstones]], NOW, SEQUENCE)
    assert isinstance(evaluation, Evaluation)
    return evaluation


def line(identity: bytes, amount: int = 1, following: bytes | None = None) -> tuple[Any, ...]:
    return (identity, amount, following)


# --- rows --------------------------------------------------------------------------------------------------------


def test_every_item_asks_for_its_rows() -> None:
    chained = bulk(
        bind_note("read", "first", ID),
        bind_note("read", "second", Item(UUID.nullable, "next")),
        bind_note("mutate", "third", field("next_id", "first"), stage=1),
    )
    lines = line(A), line(B, 1, C)
    first, second = asked(chained, *lines, rows=[{(ORGANIZATION, A): note(A, next_id=D)}, {}, {}])
    assert first == [(0, (ORGANIZATION, A)), (0, (ORGANIZATION, B)), (1, (ORGANIZATION, C))]
    assert second == [(2, (ORGANIZATION, D))], "a row that is not there leads no further"
    assert chained.looped == (0, 1, 2)


def test_changes_stand_in_the_order_of_the_items() -> None:
    done = run(bulk(FIND, COUNT), line(B, 8), line(A, 9), notes=[note(A), note(B)])
    after = [note(B, count=8, revision=3, sequence=SEQUENCE), note(A, count=9, revision=3, sequence=SEQUENCE)]
    assert done == (
        "Done",
        (),
        (
            Change(0, (ORGANIZATION, B), note(B), after[0]),
            Change(0, (ORGANIZATION, A), note(A), after[1]),
        ),
        (),
        (),
    )
    assert run(bulk(FIND, COUNT)) == ("Done", (), (), (), ())


def test_a_row_above_the_loop_is_changed_once_and_only_if_an_item_comes_to_it() -> None:
    total = binary(field("count", "sum"), "+", AMOUNT, U64)
    large = binary(AMOUNT, ">", number(2))
    arms = (ArmPlan(large, (SetStep("sum", "count", total),)), ArmPlan(None))
    above = (bind_note("mutate", "sum", given("other_id")),)
    loop = bulk(FIND, DecideStep("note", arms), above=above)
    row = note()
    assert run(loop, above=row).changes == ()
    assert run(loop, line(A, 1), line(B, 2), notes=[note(A), note(B)], above=row).changes == ()
    [change] = run(loop, line(A, 3), line(B, 1), line(C, 4), notes=[note(A), note(B), note(C)], above=row).changes
    assert change == Change(0, (ORGANIZATION, row[0]), row, note(count=8, revision=3, sequence=SEQUENCE))


def test_a_binding_in_an_arm_is_there_for_the_items_that_take_it() -> None:
    inner = (bind_note("create", "made", Item(UUID, "next")), SetStep("made", "count", AMOUNT))
    arms = (ArmPlan(IsNull(BOOL, Item(UUID.nullable, "next"), negated=True), inner), ArmPlan(None, (COUNT,)))
    lines = line(A, 5, C), line(B, 6), line(D, 7, C[:15] + b"!")
    done = run(bulk(FIND, DecideStep("note", arms)), *lines, notes=[note(A), note(B), note(D)])
    assert [(change.key[1], change.before is None) for change in done.changes] == [
        (C, True),
        (B, False),
        (C[:15] + b"!", True),
    ]


# --- what comes first --------------------------------------------------------------------------------------------


def test_the_first_item_that_fails_gives_the_outcome() -> None:
    loop = bulk(FIND, ENOUGH, COUNT)
    lines = line(A), line(B, 0), line(C)
    assert run(loop, *lines, notes=[note(A), note(B)]) == ("TooFew", (0,), (), (), ())
    assert run(loop, *lines, notes=[note(A), note(C)]).outcome == "NoteMissing"


def test_a_failure_of_any_item_comes_before_what_is_committed() -> None:
    over = binary(AMOUNT, "+", number(U64_MAX), U64)
    payload = (("organization_id", given("organization_id")), ("work_id", ID), ("revision", over))
    loud = EmitStep("WorkCompleted", tuple(PayloadPlan(name, value) for name, value in payload))
    loop = bulk(FIND, ENOUGH, COUNT, loud)
    assert run(loop, line(A), line(B, 0), notes=[note(A), note(B)]).outcome == "TooFew"
    with pytest.raises(RiffError, match="leaves the range of u64"):
        run(loop, line(A), line(B), notes=[note(A), note(B)])
    ended = [note(A, revision=U64_MAX), note(B)]
    assert run(bulk(FIND, ENOUGH, COUNT), line(A), line(B, 0), notes=ended).outcome == "TooFew"
    with pytest.raises(RiffError, match="the revision of `note` is at its end"):
        run(bulk(FIND, ENOUGH, COUNT), line(A), line(B), notes=ended)


def test_items_of_one_row_are_told_before_any_is_evaluated() -> None:
    with pytest.raises(RiffError, match=r"`note\[1\]` and `note\[3\]` name the same row"):
        run(bulk(FIND, ENOUGH), line(A, 0), line(B), line(C), line(B), notes=[])
    above = (bind_note("read", "other", given("other_id")),)
    with pytest.raises(RiffError, match=r"`other` and `note\[0\]` name the same row"):
        run(bulk(FIND, above=above), line(note()[0]), above=note())
    two = bulk(FIND, bind_note("read", "following", Item(UUID, "next")))
    with pytest.raises(RiffError, match=r"`following\[0\]` and `note\[1\]` name the same row"):
        run(two, line(A, 1, B), line(B, 1, C), notes=[note(A), note(B), note(C)])


def test_items_of_one_row_that_a_row_leads_to_are_told_when_they_come_to_it() -> None:
    chained = bulk(bind_note("read", "first", ID), bind_note("mutate", "then", field("next_id", "first"), stage=1))
    notes = [note(A, next_id=C), note(B, next_id=C), note(C)]
    with pytest.raises(RiffError, match=r"`then\[0\]` and `then\[1\]` name the same row"):
        run(chained, line(A), line(B), notes=notes)
    with pytest.raises(RiffError, match=r"`then\[0\]` and `first\[1\]`|`first\[1\]` and `then\[0\]`"):
        run(chained, line(A), line(C), notes=notes)


def test_service_values_stand_behind_the_inputs() -> None:
    loop = bulk(FIND, SetStep("note", "next_id", Input(UUID, "made")), services=(ServicePlan("made", UUID),))
    known = {(ORGANIZATION, A): note(A)}
    done = loop.evaluate((*inputs(), (line(A),), D), [known], NOW, SEQUENCE)
    assert isinstance(done, Evaluation)
    assert done.changes[0].after == note(A, next_id=D, revision=3, sequence=SEQUENCE)
