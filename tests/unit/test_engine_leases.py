"""Transitions and lease operations: the order of their checks, their boundaries, and what they write.

The first table is meant to be read beside the table of the language page: in each line every later check of the
operation would fail too, wherever that can be. After it the same is said as a list of checks per operation, and tried
over every combination.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pytest
from msgspec.structs import replace

from riffdb.core.errors import RiffError
from riffdb.core.limits import TIMESTAMP_MAX, U64_MAX
from riffdb.engine import CompiledCommand, Evaluation, compile_command
from tests.unit.test_engine_plans import (
    COMPLETE,
    FAILED,
    KEY,
    LIFECYCLE,
    NOW,
    OTHER,
    OWNER,
    QUEUED,
    RUNNING,
    SEQUENCE,
    bind,
    command,
    compiled,
    evaluate,
    given,
    lease,
    number,
    transition,
    use,
    work,
    work_plan,
)

TABLE = """
operation   revision  duration  owner    token    lease    overflow  state     outcome

transition  differs   -         -        -        -        -         Complete  Stale
transition  same      -         -        -        -        -         Complete  Illegal
transition  same      -         -        -        -        -         Queued    Done

claim       differs   4         -        -        held     fence     -         Stale
claim       same      4         -        -        held     fence     -         Invalid
claim       same      901       -        -        held     fence     -         Invalid
claim       same      5         -        -        held     fence     -         Unavailable
claim       same      5         -        -        ends     fence     -         Exhausted
claim       same      5         -        -        unowned  fence     -         Exhausted
claim       same      5         -        -        unowned  attempts  -         Exhausted
claim       same      5         -        -        unowned  expiry    -         Exhausted
claim       same      5         -        -        unowned  none      -         Done
claim       same      900       -        -        expired  none      -         Done
claim       same      900       -        -        ends     none      -         Done

renew       differs   4         differs  differs  ends     expiry    -         Stale
renew       same      4         same     same     ends     expiry    -         Invalid
renew       same      901       same     same     ends     expiry    -         Invalid
renew       same      5         differs  same     ends     expiry    -         Invalid
renew       same      5         same     differs  ends     expiry    -         Invalid
renew       same      5         same     same     unowned  expiry    -         Invalid
renew       same      5         same     same     ends     expiry    -         Expired
renew       same      5         same     same     expired  expiry    -         Expired
renew       same      5         same     same     held     expiry    -         Exhausted
renew       same      5         same     same     held     fence     -         Done
renew       same      900       same     same     held     none      -         Done

release     differs   -         differs  differs  held     -         -         Stale
release     same      -         differs  same     held     -         -         Invalid
release     same      -         same     differs  held     -         -         Invalid
release     same      -         same     same     unowned  -         -         Invalid
release     same      -         same     same     held     -         -         Done
release     same      -         same     same     expired  -         -         Done

expire      differs   -         -        -        held     -         -         Stale
expire      same      -         -        -        held     -         -         Active
expire      same      -         -        -        unowned  -         -         Active
expire      same      -         -        -        ends     -         -         Done
expire      same      -         -        -        expired  -         -         Done

fence       differs   -         differs  differs  ends     -         -         Stale
fence       same      -         differs  same     ends     -         -         Invalid
fence       same      -         same     differs  ends     -         -         Invalid
fence       same      -         same     same     unowned  -         -         Invalid
fence       same      -         same     same     ends     -         -         Expired
fence       same      -         same     same     expired  -         -         Expired
fence       same      -         same     same     held     -         -         Done

unheld      differs   -         -        -        held     -         -         Stale
unheld      same      -         -        -        held     -         -         Unavailable
unheld      same      -         -        -        ends     -         -         Done
unheld      same      -         -        -        expired  -         -         Done
unheld      same      -         -        -        unowned  -         -         Done
"""

HEADER, *LINES = (line.split() for line in TABLE.splitlines() if line)
OPERATIONS: dict[str, CompiledCommand] = {
    name: compiled(bind(), lease(name)) for name in ("claim", "renew", "release", "expire", "fence", "unheld")
} | {"transition": compiled(bind(), transition("Finish"))}


@dataclass(frozen=True)
class Situation:
    """One situation in words; `-` where it does not matter."""

    operation: str
    revision: str
    duration: str
    owner: str
    token: str
    lease: str
    overflow: str
    state: str

    def evaluate(self) -> Evaluation:
        now = TIMESTAMP_MAX - int(self.duration) * 1_000_000 + 1 if self.overflow == "expiry" else NOW
        end = {"held": now + 1, "ends": now, "expired": now - 1}.get(self.lease)
        found = work(
            state={"Complete": COMPLETE, "-": QUEUED, "Queued": QUEUED}[self.state],
            lease_owner=None if end is None else OTHER if self.owner == "differs" else OWNER,
            lease_expires_at=end,
            lease_fence=U64_MAX if self.overflow == "fence" else 3,
            lease_attempts=U64_MAX if self.overflow == "attempts" else 5,
        )
        return evaluate(
            OPERATIONS[self.operation],
            found,
            now=now,
            expected_revision=8 if self.revision == "differs" else 7,
            duration=60 if self.duration == "-" else int(self.duration),
            token=4 if self.token == "differs" else found[6],
        )


def test_the_table_names_every_fact_of_a_situation() -> None:
    assert [*Situation.__dataclass_fields__, "outcome"] == HEADER


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_order_of_checks(line: list[str]) -> None:
    *facts, outcome = line
    evaluation = Situation(*facts).evaluate()
    assert evaluation.outcome == outcome
    if outcome != "Done":
        assert evaluation == (outcome, (), (), (), ())


Condition = Callable[[Situation], bool]


def is_stale(case: Situation) -> bool:
    return case.revision == "differs"


def is_outside(case: Situation) -> bool:
    return not 5 <= int(case.duration) <= 900


def is_held(case: Situation) -> bool:
    return case.lease == "held"


def is_expired(case: Situation) -> bool:
    return case.lease in ("ends", "expired")


def is_foreign(case: Situation) -> bool:
    return case.lease == "unowned" or "differs" in (case.owner, case.token)


CHECKS: dict[str, list[tuple[Condition, str]]] = {
    "claim": [
        (is_stale, "Stale"),
        (is_outside, "Invalid"),
        (is_held, "Unavailable"),
        (lambda case: case.overflow != "none", "Exhausted"),
    ],
    "renew": [
        (is_stale, "Stale"),
        (lambda case: is_outside(case) or is_foreign(case), "Invalid"),
        (is_expired, "Expired"),
        (lambda case: case.overflow == "expiry", "Exhausted"),
    ],
    "release": [(is_stale, "Stale"), (is_foreign, "Invalid")],
    "expire": [(is_stale, "Stale"), (lambda case: not is_expired(case), "Active")],
    "fence": [(is_stale, "Stale"), (is_foreign, "Invalid"), (is_expired, "Expired")],
    "unheld": [(is_stale, "Stale"), (is_held, "Unavailable")],
}


@pytest.mark.parametrize("operation", CHECKS)
def test_every_combination_has_the_outcome_of_its_first_failing_check(operation: str) -> None:
    facts = product(
        ("same", "differs"),
        ("4", "5", "60", "900", "901"),
        ("same", "differs"),
        ("same", "differs"),
        ("held", "ends", "expired", "unowned"),
        ("none", "fence", "attempts", "expiry"),
        ("-",),
    )
    for fact in facts:
        case = Situation(operation, *fact)
        expected = next((outcome for fails, outcome in CHECKS[operation] if fails(case)), "Done")
        assert case.evaluate().outcome == expected, case


HELD = {"lease_owner": OWNER, "lease_expires_at": NOW + 1}

WRITES = """
operation  found              owner  expires  fence  attempts
claim      owner=-  end=-     mine   +60      4      6
claim      owner=o  end=0     mine   +60      4      6
renew      owner=m  end=1     mine   +60      3      5
release    owner=m  end=-5    -      -        3      5
expire     owner=o  end=0     -      -        3      5
fence      owner=m  end=1     mine   1        3      5
unheld     owner=o  end=0     other  0        3      5
"""


@pytest.mark.parametrize("line", WRITES.splitlines()[2:])
def test_what_an_operation_writes(line: str) -> None:
    operation, owner, end, *after = line.split()
    before = work(
        lease_owner={"-": None, "o": OTHER, "m": OWNER}[owner[-1]],
        lease_expires_at=None if end == "end=-" else NOW + int(end.removeprefix("end=")),
    )
    evaluation = evaluate(OPERATIONS[operation], before)
    owner_after = {"mine": OWNER, "other": OTHER, "-": None}[after[0]]
    end_after = {"-": None, "+60": NOW + 60_000_000, "1": NOW + 1, "0": NOW}[after[1]]
    available = max(NOW - 10, NOW - 10 if end_after is None else end_after)
    row = (*before[:4], owner_after, end_after, int(after[2]), int(after[3]), available, 8, SEQUENCE)
    assert evaluation == ("Done", (), ((0, KEY, before, row),), (), (("work", 8),))


def test_an_operation_that_writes_no_field_still_makes_a_revision() -> None:
    evaluation = evaluate(OPERATIONS["fence"], work(**HELD))
    assert evaluation.changes[0].after == work(**HELD, available_at=NOW + 1, revision=8, sequence=SEQUENCE)


def test_a_lease_without_attempts_counts_the_fence_alone() -> None:
    assert LIFECYCLE.lease is not None
    without = replace(LIFECYCLE, lease=replace(LIFECYCLE.lease, attempts=None))
    plan = replace(work_plan(command("Do", bind(), lease("claim"))), workflows=(without,))
    evaluation = evaluate(compile_command(plan, "Do"), work(lease_attempts=U64_MAX))
    assert evaluation.changes[0].after is not None
    assert evaluation.changes[0].after[6:8] == (4, U64_MAX)


def test_the_last_fence_and_attempt_can_be_reached() -> None:
    evaluation = evaluate(OPERATIONS["claim"], work(lease_fence=U64_MAX - 1, lease_attempts=U64_MAX - 1))
    assert evaluation.changes[0].after is not None
    assert evaluation.changes[0].after[6:8] == (U64_MAX, U64_MAX)


def test_the_last_microsecond_of_the_year_9999_is_a_possible_expiry() -> None:
    evaluation = evaluate(OPERATIONS["claim"], work(), now=TIMESTAMP_MAX - 60_000_000)
    assert evaluation.changes[0].after is not None
    assert evaluation.changes[0].after[5] == TIMESTAMP_MAX


def test_at_the_last_revision_a_success_fails_closed_and_a_declared_failure_stays_one() -> None:
    at_end = {"revision": U64_MAX}
    with pytest.raises(RiffError, match="Do: the revision of `work` is at its end") as raised:
        evaluate(OPERATIONS["claim"], work(**at_end), expected_revision=U64_MAX)
    assert raised.value.code == "RDB-E-REVISION-EXHAUSTED"
    held = work(**at_end, lease_owner=OTHER, lease_expires_at=NOW + 1)
    assert evaluate(OPERATIONS["claim"], held, expected_revision=U64_MAX).outcome == "Unavailable"
    before_end = evaluate(OPERATIONS["claim"], work(revision=U64_MAX - 1), expected_revision=U64_MAX - 1)
    assert before_end.revisions == (("work", U64_MAX),)


def test_several_transitions_follow_each_other_on_one_revision() -> None:
    start_finish = compiled(bind(), transition("Start"), transition("Finish"))
    evaluation = evaluate(start_finish, work())
    assert evaluation.changes[0].after is not None
    assert (evaluation.changes[0].after[2], evaluation.revisions) == (COMPLETE, (("work", 8),))
    finish_start = compiled(bind(), transition("Finish"), transition("Start"))
    assert evaluate(finish_start, work()).outcome == "Illegal"


@pytest.mark.parametrize("state", [QUEUED, RUNNING, COMPLETE, FAILED])
def test_a_transition_leaves_its_sources_alone(state: int) -> None:
    assert evaluate(compiled(bind(), transition("Start")), work(state=state)).outcome == (
        "Done" if state == QUEUED else "Illegal"
    )
    assert evaluate(compiled(bind(), transition("Retry")), work(state=state)).outcome == (
        "Done" if state in (QUEUED, RUNNING) else "Illegal"
    )


def test_a_missing_row_comes_before_every_check() -> None:
    missing = compiled(bind(otherwise=use("Missing", owner=given("owner_id"), limit=number(3))), lease("claim"))
    assert evaluate(missing, None, duration=1) == ("Missing", (OWNER, 3), (), (), ())
