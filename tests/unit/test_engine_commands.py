"""Bindings, effects, decisions and payloads: what a command sees at each of its steps, and what it commits."""

from typing import Any

import pytest
from msgspec.structs import replace

from riffdb.core.errors import RiffError
from riffdb.core.limits import U64_MAX
from riffdb.core.types import BOOL, TIMESTAMP, U64, UUID
from riffdb.engine import Change, CompiledCommand, Evaluation, compile_command
from riffdb.plan.commands import ArmPlan, DecideStep, OutcomeUse, RequireStep, SetStep
from riffdb.plan.declarations import FieldPlan
from riffdb.plan.expressions import Binary, Call, Conditional, Constant, Expression, Input, IsNull, TransactionTime
from tests.unit.test_engine_plans import (
    INPUTS,
    KEY,
    NOW,
    ORGANIZATION,
    OTHER,
    OWNER,
    QUEUED,
    RUNNING,
    SEQUENCE,
    WORK,
    WORK_ITEM,
    binary,
    bind,
    bind_note,
    command,
    compiled,
    emit,
    evaluate,
    field,
    given,
    inputs,
    lease,
    note,
    number,
    revision,
    row,
    transition,
    use,
    work,
    work_plan,
)

SET_DUE = SetStep("work", "due_at", given("due_at"))


def require(condition: Expression, otherwise: OutcomeUse | None = None) -> RequireStep:
    return RequireStep("check", condition, otherwise or use("Refused"))


def after(evaluation: Evaluation, change: int = 0) -> Any:
    return evaluation.changes[change].after


# --- bindings ----------------------------------------------------------------------------------------------------


def test_a_row_that_is_only_read_is_not_mutated() -> None:
    read = compiled(bind("read"), answer=use("Read", state=field("state"), revision=revision(), work=row()))
    assert evaluate(read, work()) == ("Read", (QUEUED, 7, work()), (), (), ())
    assert evaluate(read, None).outcome == "Missing"


def test_a_mutate_without_an_effect_mutates_nothing() -> None:
    shown = compiled(bind(), answer=use("Shown", work=row(), available_at=field("available_at")))
    assert evaluate(shown, work()) == ("Shown", (work(), NOW - 10), (), (), ())


def test_a_maybe_row_may_be_absent() -> None:
    is_absent = IsNull(BOOL, row(), False)
    found = Conditional(U64, is_absent, number(0), field("lease_fence"))
    maybe = compiled(bind("maybe"), answer=use("Found", fence=found, work=row()))
    assert evaluate(maybe, None) == ("Found", (0, None), (), (), ())
    assert evaluate(maybe, work()) == ("Found", (3, work()), (), (), ())


def test_a_created_row_starts_from_state_defaults_and_nulls() -> None:
    create = compiled(
        bind("create", otherwise=use("Exists", due_at=field("due_at"), revision=revision())),
        SET_DUE,
        SetStep("work", "lease_fence", number(0)),
        SetStep("work", "lease_attempts", number(0)),
        bind_note("create", "note", given("other_id")),
        answer=use("Created", work=row(), revision=revision(), available_at=field("available_at"), note=row("note")),
    )
    made = (ORGANIZATION, WORK, QUEUED, NOW, None, None, 0, 0, NOW, 1, SEQUENCE)
    noted = (OTHER, ORGANIZATION, 7, None, -1, True, 1, SEQUENCE)
    evaluation = evaluate(create, None, None)
    assert evaluation.payload == (made, 1, NOW, noted)
    assert evaluation.changes == (Change(0, KEY, None, made), Change(1, (ORGANIZATION, OTHER), None, noted))
    assert evaluation.revisions == (("work", 1),)
    assert evaluate(create, work(), None) == ("Exists", (NOW - 10, 7), (), (), ())
    assert evaluate(create, None, note()).outcome == "NoteTaken"


def test_a_created_row_is_unowned_whatever_its_fields_default_to() -> None:
    def defaulted(part: FieldPlan) -> FieldPlan:
        is_end = part.name == "lease_expires_at"
        return replace(part, has_default=True, default=NOW + 1) if is_end else part

    entity = replace(WORK_ITEM, fields=tuple(defaulted(part) for part in WORK_ITEM.fields))
    plan = replace(work_plan(command("Do", bind("create"), SET_DUE)), entities=(entity,))
    assert after(evaluate(compile_command(plan, "Do"), None))[4:6] == (None, None)


def test_a_deleted_row_is_shown_as_it_last_stood() -> None:
    delete = compiled(
        bind("delete"),
        lease("unheld"),
        SET_DUE,
        emit(),
        answer=use("Deleted", work=row(), available_at=field("available_at")),
    )
    evaluation = evaluate(delete, work())
    last = work(due_at=NOW, available_at=NOW, revision=8, sequence=SEQUENCE)
    assert evaluation.payload == (last, NOW)
    assert evaluation.changes == (Change(0, KEY, work(), None), Change(1, KEY, None, (*KEY, 3, 8, SEQUENCE)))
    assert evaluation.events == (("WorkCompleted", (ORGANIZATION, WORK, 8)),)
    assert evaluation.revisions == ()


def test_a_delete_needs_no_effect_and_ends_at_the_last_revision() -> None:
    delete = compiled(bind("delete"))
    changes = ((0, KEY, work(), None), (1, KEY, None, (*KEY, 3, 8, SEQUENCE)))
    assert evaluate(delete, work()) == ("Done", (), changes, (), ())
    with pytest.raises(RiffError) as raised:
        evaluate(delete, work(revision=U64_MAX))
    assert raised.value.code == "RDB-E-REVISION-EXHAUSTED"


@pytest.mark.parametrize("kinds", [("read", "mutate"), ("mutate", "create"), ("maybe", "maybe"), ("delete", "read")])
def test_two_bindings_of_one_row_are_refused(kinds: tuple[str, str]) -> None:
    both = compiled(bind_note(kinds[0], "first", given("other_id")), bind_note(kinds[1], "second", given("work_id")))
    rows = [note(), None if kinds[1] == "create" else note(WORK)]
    assert evaluate(both, *rows).outcome == "Done"
    with pytest.raises(RiffError, match="Do: `first` and `second` name the same row") as raised:
        evaluate(both, note(), note(), work_id=OTHER)
    assert raised.value.code == "RDB-E-ALIASED"


def test_equal_keys_of_two_entities_are_two_rows() -> None:
    both = compiled(bind("read"), bind_note("read", "note", given("other_id")))
    assert evaluate(both, work(), note(WORK), other_id=WORK).outcome == "Done"


def test_an_absent_row_is_told_before_a_later_binding_of_it() -> None:
    both = compiled(bind_note("read", "first", given("other_id")), bind_note("read", "second", given("work_id")))
    assert evaluate(both, None, None, work_id=OTHER).outcome == "NoteMissing"


# --- stages ------------------------------------------------------------------------------------------------------


def test_a_key_may_rest_on_a_row_of_an_earlier_stage() -> None:
    chained = compiled(
        bind_note("read", "first", given("other_id")),
        require(IsNull(BOOL, field("next_id", "first"), True)),
        bind_note("mutate", "second", field("next_id", "first"), stage=1),
        SetStep("second", "count", number(9)),
        bind("read"),
    )
    first, second = note(next_id=WORK), note(WORK)
    assert [stage(inputs(), [first, None, None]) for stage in chained.stages] == [
        ((0, (ORGANIZATION, OTHER)), (2, KEY)),
        ((1, (ORGANIZATION, WORK)),),
    ]
    assert chained.slots == ("Note", "Note", "WorkItem")
    evaluation = evaluate(chained, first, second, work())
    assert evaluation.changes == (
        Change(1, (ORGANIZATION, WORK), second, note(WORK, count=9, revision=3, sequence=SEQUENCE)),
    )


@pytest.mark.parametrize("first", [None, note(next_id=None)], ids=["absent row", "null"])
def test_a_key_that_cannot_be_known_is_not_read(first: Any) -> None:
    chained = compiled(
        bind_note("read", "first", given("other_id")),
        require(IsNull(BOOL, field("next_id", "first"), True)),
        bind_note("read", "second", field("next_id", "first"), stage=1),
    )
    assert chained.stages[1](inputs(), [first, None]) == ()
    assert evaluate(chained, first, None).outcome == ("NoteMissing" if first is None else "Refused")


def test_a_key_that_leaves_its_range_fails_only_where_the_command_comes_to_it() -> None:
    above: Expression = Binary(U64, "+", given("token"), number(1))
    shown = Conditional(UUID, binary(above, ">", number(0)), given("other_id"), given("work_id"))
    counted = compiled(require(binary(given("duration"), "==", number(1))), bind_note("read", "note", shown))
    assert counted.stages[0](inputs(token=1), ()) == ((0, (ORGANIZATION, OTHER)),)
    assert counted.stages[0](inputs(token=U64_MAX), ()) == ()
    assert evaluate(counted, None, token=U64_MAX).outcome == "Refused"
    with pytest.raises(RiffError, match="Do, the key of note: the result leaves the range of u64"):
        evaluate(counted, None, token=U64_MAX, duration=1)


def test_a_command_without_a_binding_reads_nothing() -> None:
    only = compiled(require(binary(given("token"), "==", number(3))))
    assert [stage(inputs(), ()) for stage in only.stages] == [()]
    assert evaluate(only) == ("Done", (), (), (), ())


def test_a_key_that_may_be_null_is_read_where_it_is_not() -> None:
    is_given = require(IsNull(BOOL, Input(UUID.nullable, "other_id"), True))
    # After the require the expression's own type no longer says that it may be null.
    named = command("Do", is_given, bind_note("read", "note", Input(UUID, "other_id")))
    inputs_plan = tuple(replace(part, type=UUID.nullable) if part.name == "other_id" else part for part in INPUTS)
    optional = compile_command(work_plan(replace(named, inputs=inputs_plan)), "Do")
    assert optional.stages[0](inputs(), ()) == ((0, (ORGANIZATION, OTHER)),)
    assert optional.stages[0](inputs(other_id=None), ()) == ()
    assert evaluate(optional, None, other_id=None).outcome == "Refused"


# --- what a step sees --------------------------------------------------------------------------------------------


def test_each_step_sees_what_the_steps_above_left_and_the_revision_before() -> None:
    later = Binary(TIMESTAMP, "+", field("due_at"), Call(U64, "seconds", (number(1),)))
    steps = (
        bind(),
        lease("unheld"),
        SET_DUE,
        require(binary(field("due_at"), "==", given("due_at"))),
        SetStep("work", "due_at", later),
        require(binary(revision(), "==", number(7)), use("RevisionMoved")),
        transition("Start"),
        require(binary(field("state"), "==", Constant(field("state").type, RUNNING)), use("NotRunning")),
    )
    assert after(evaluate(compiled(*steps), work()))[2:4] == (RUNNING, NOW + 1_000_000)


def test_a_computed_column_follows_the_effects_at_once_and_is_kept_at_commit() -> None:
    steps = (
        bind(),
        lease("claim"),
        require(binary(field("available_at"), ">", TransactionTime(TIMESTAMP)), use("NotFollowed")),
        SetStep("work", "due_at", field("available_at")),
    )
    evaluation = evaluate(compiled(*steps), work())
    assert after(evaluation)[3] == after(evaluation)[5] == after(evaluation)[8] == NOW + 60_000_000


def test_payloads_of_failures_see_the_row_before_the_command() -> None:
    shown = use("Refused", due_at=field("due_at"), state=field("state"), revision=revision(), work=row())
    steps = (bind(), transition("Start"), SET_DUE, require(binary(number(1), "==", number(2)), shown))
    assert evaluate(compiled(*steps), work()) == ("Refused", (NOW - 10, QUEUED, 7, work()), (), (), ())


def test_payloads_of_answers_and_events_see_rows_as_committed() -> None:
    steps = (
        emit(),
        transition("Start"),
        SET_DUE,
    )
    shown = use("Done", work=row(), due_at=field("due_at"), available_at=field("available_at"), revision=revision())
    evaluation = evaluate(compiled(bind(), *steps, answer=shown), work())
    committed = work(state=RUNNING, due_at=NOW, available_at=NOW, revision=8, sequence=SEQUENCE)
    assert evaluation.payload == (committed, NOW, NOW, 8)
    assert evaluation.events == (("WorkCompleted", (ORGANIZATION, WORK, 8)),)
    assert evaluation.changes == (Change(0, KEY, work(), committed),)


def test_a_declared_failure_after_effects_and_events_leaves_nothing() -> None:
    steps = (bind(), transition("Start"), emit(), require(binary(given("token"), "==", number(1))))
    assert evaluate(compiled(*steps), work()) == ("Refused", (), (), (), ())


def test_a_payload_stands_in_the_order_of_its_outcome() -> None:
    # One outcome in two places, whose payloads were written in different orders.
    first, second = use("Refused", token=given("token"), due_at=given("due_at")), use("Refused")
    second = OutcomeUse("Refused", tuple(reversed(first.payload)))
    both = compiled(
        require(binary(given("duration"), "==", number(1)), first),
        require(binary(given("token"), "==", number(1)), second),
    )
    assert evaluate(both, duration=60).payload == evaluate(both, duration=1).payload
    assert set(evaluate(both, duration=1).payload) == {3, NOW}


def test_set_to_the_same_value_still_mutates() -> None:
    same = compiled(bind_note("mutate", "note", given("other_id")), SetStep("note", "count", field("count", "note")))
    evaluation = evaluate(same, note())
    assert after(evaluation) == note(revision=3, sequence=SEQUENCE)
    # A row without a workflow is no business of `workflow_revisions`.
    assert evaluation.revisions == ()


def test_a_bool_from_a_store_may_be_a_number() -> None:
    is_open = field("is_open", "note")
    closed = compiled(
        bind_note("read", "note", given("other_id")), require(binary(is_open, "==", Constant(BOOL, True)))
    )
    assert evaluate(closed, note(is_open=1)).outcome == evaluate(closed, note(is_open=True)).outcome == "Done"
    assert evaluate(closed, note(is_open=0)).outcome == evaluate(closed, note(is_open=False)).outcome == "Refused"


# --- decide ------------------------------------------------------------------------------------------------------


def token_is(value: int) -> Expression:
    return binary(given("token"), "==", number(value))


SET_NOTE = SetStep("note", "count", number(9))

DECIDED = compiled(
    bind(),
    lease("unheld"),
    DecideStep(
        "work",
        (
            ArmPlan(token_is(1), (transition("Finish"), emit()), answer=use("Finished", state=field("state"))),
            ArmPlan(binary(given("token"), "<=", number(2)), none=use("Nothing", state=field("state"))),
            ArmPlan(token_is(3), (bind_note("mutate", "note", given("other_id")), SET_NOTE)),
            ArmPlan(token_is(4), (bind_note("create", "made", given("other_id")), emit())),
            ArmPlan(None),
        ),
    ),
    SET_DUE,
    answer=use("Decided", due_at=field("due_at")),
)


def test_slots_go_through_the_arms() -> None:
    note_key = (ORGANIZATION, OTHER)
    assert (DECIDED.slots, DECIDED.tombstones) == (("WorkItem", "Note", "Note"), ("Note",))
    assert DECIDED.stages[0](inputs(), ()) == ((0, KEY), (1, note_key), (2, note_key), (3, note_key))


def test_the_first_arm_that_holds_runs_and_its_answer_replaces_that_of_the_command() -> None:
    evaluation = evaluate(DECIDED, work(), None, None, token=1)
    assert (evaluation.outcome, evaluation.payload) == ("Finished", (2,))
    assert evaluation.events == (("WorkCompleted", (ORGANIZATION, WORK, 8)),)
    # What stands after the decide runs all the same.
    assert after(evaluation) == work(state=2, due_at=NOW, available_at=NOW, revision=8, sequence=SEQUENCE)


def test_none_is_a_failure() -> None:
    assert evaluate(DECIDED, work(), None, None, token=2) == ("Nothing", (QUEUED,), (), (), ())


def test_rows_of_an_arm_are_committed_by_that_arm_alone() -> None:
    changed = evaluate(DECIDED, work(), note(), None, token=3)
    assert [change.slot for change in changed.changes] == [0, 1]
    assert after(changed, 1) == note(count=9, revision=3, sequence=SEQUENCE)
    assert (changed.outcome, changed.payload, changed.events) == ("Decided", (NOW,), ())
    made = evaluate(DECIDED, work(), None, None, token=4)
    assert [change.slot for change in made.changes] == [0, 2]
    assert len(made.events) == 1
    plain = evaluate(DECIDED, work(), note(), note(), token=5)
    assert [change.slot for change in plain.changes] == [0]
    assert plain.revisions == made.revisions == changed.revisions == (("work", 8),)


def test_a_binding_in_an_arm_fails_there() -> None:
    assert evaluate(DECIDED, work(), None, None, token=3).outcome == "NoteMissing"
    assert evaluate(DECIDED, work(), None, note(), token=4).outcome == "NoteTaken"


MUTATED_IN_AN_ARM = compiled(
    bind_note("mutate", "note", given("other_id")),
    bind(),
    DecideStep(
        "work", (ArmPlan(token_is(1), (SET_NOTE,)), ArmPlan(token_is(2), (transition("Start"),)), ArmPlan(None))
    ),
    answer=use(
        "Decided",
        note=row("note"),
        revision=revision("note"),
        work=row(),
        available_at=field("available_at"),
        work_revision=revision(),
    ),
)


@pytest.mark.parametrize(
    ("token", "changed", "revisions"), [(1, [0], ()), (2, [1], (("work", 8),)), (3, [], ())], ids=str
)
def test_a_row_is_mutated_where_an_effect_on_it_ran(token: int, changed: list[int], revisions: Any) -> None:
    evaluation = evaluate(MUTATED_IN_AN_ARM, note(), work(available_at=5), token=token)
    assert [change.slot for change in evaluation.changes] == changed
    assert evaluation.revisions == revisions
    notes = note(count=9, revision=3, sequence=SEQUENCE) if token == 1 else note()
    works = work(state=RUNNING, revision=8, sequence=SEQUENCE) if token == 2 else work(available_at=5)
    assert evaluation.payload == (notes, notes[6], works, works[8], works[9])


def test_a_row_that_is_not_mutated_may_stand_at_its_last_revision() -> None:
    last = note(revision=U64_MAX)
    assert evaluate(MUTATED_IN_AN_ARM, last, work(), token=3).outcome == "Decided"
    with pytest.raises(RiffError, match="the revision of `note`"):
        evaluate(MUTATED_IN_AN_ARM, last, work(), token=1)


def test_each_arm_may_end_the_lease_in_its_own_way() -> None:
    released = compiled(
        bind(),
        DecideStep(
            "work",
            (
                ArmPlan(binary(field("lease_attempts"), ">=", number(10)), (lease("release"), transition("Bury"))),
                ArmPlan(None, (lease("release"), transition("Retry"), SET_DUE)),
            ),
        ),
        answer=use("Failed", work=row()),
    )
    held = {"lease_owner": OWNER, "lease_expires_at": NOW - 1, "state": RUNNING}
    retried = evaluate(released, work(**held))
    assert retried.payload == (work(due_at=NOW, available_at=NOW, revision=8, sequence=SEQUENCE),)
    buried = evaluate(released, work(**held, lease_attempts=10))
    assert buried.payload == (work(state=3, lease_attempts=10, revision=8, sequence=SEQUENCE),)
    # Every success passed an effect, so the text does not ask which arm it was.
    assert "if d0" not in released.source


def test_an_arm_that_fails_is_no_way_to_success() -> None:
    arms = (ArmPlan(token_is(1), none=use("Nothing")), ArmPlan(None, (transition("Start"),)))
    started = compiled(bind(), DecideStep("work", arms))
    assert evaluate(started, work()).revisions == (("work", 8),)
    assert evaluate(started, work(), token=1).outcome == "Nothing"
    assert "if d0" not in started.source


ALIASED_ARMS = compiled(
    DecideStep(
        "work",
        (
            ArmPlan(token_is(1), (bind_note("read", "one", given("other_id")),)),
            ArmPlan(token_is(2), (bind_note("read", "two", given("other_id")),)),
            ArmPlan(None),
        ),
    ),
    bind_note("read", "three", given("work_id")),
)


@pytest.mark.parametrize(("token", "rival"), [(1, "one"), (2, "two")])
def test_a_row_of_the_arm_taken_is_compared_with_later_ones(token: int, rival: str) -> None:
    rows = (note(), note(), note())
    with pytest.raises(RiffError, match=f"`{rival}` and `three`"):
        evaluate(ALIASED_ARMS, *rows, token=token, work_id=OTHER)


def test_two_rows_of_one_arm_are_compared() -> None:
    first, second = bind_note("read", "first", given("other_id")), bind_note("read", "second", given("work_id"))
    arm = compiled(DecideStep("work", (ArmPlan(None, (first, second)),)))
    assert evaluate(arm, note(), note(WORK)).outcome == "Done"
    with pytest.raises(RiffError, match="`first` and `second`"):
        evaluate(arm, note(), note(), work_id=OTHER)


def test_a_row_of_an_arm_not_taken_is_compared_with_nothing() -> None:
    assert evaluate(ALIASED_ARMS, note(), note(), note(), token=3, work_id=OTHER).outcome == "Done"


def test_of_two_arms_with_answers_the_later_one_answers() -> None:
    decides = tuple(
        DecideStep("work", (ArmPlan(token_is(1), answer=use(name)), ArmPlan(None))) for name in ("First", "Second")
    )
    assert evaluate(compiled(*decides), token=1).outcome == "Second"
    assert evaluate(compiled(*decides), token=2).outcome == "Done"


# --- one function, many calls ------------------------------------------------------------------------------------


def test_an_evaluation_leaves_no_trace_in_the_next() -> None:
    claim: CompiledCommand = compiled(bind(), lease("claim"), answer=use("Claimed", work=row()))
    first = evaluate(claim, work())
    assert evaluate(claim, work(), owner_id=OTHER).payload != first.payload
    assert evaluate(claim, work()) == first


def test_inputs_may_be_null_where_their_type_says_so() -> None:
    optional = Input(UUID.nullable, "other_id")
    kept = compiled(bind_note("mutate", "note", given("work_id")), SetStep("note", "next_id", optional))
    assert after(evaluate(kept, note(WORK), other_id=None))[3] is None
    assert after(evaluate(kept, note(WORK), other_id=OTHER))[3] == OTHER
