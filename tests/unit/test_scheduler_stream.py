"""The turn over a stream's delivery, with answers given one by one, and answers that no world gives by itself.

Here and not in a wider suite because no database of this version has consumers yet, and the turn already keeps their
rules: the durable attempt as ordinal, one more claim after a stale one, a delivery that is put back or lost.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import pytest

from riffdb.scheduler import (
    Absent,
    AuthorizationRevoked,
    Completed,
    Deferred,
    DeliveryLost,
    Evidence,
    Failed,
    Gone,
    Item,
    KeyReused,
    Lease,
    LeaseLost,
    Permanent,
    Policy,
    Refusal,
    Retryable,
    Schedule,
    SchedulerFailure,
    Selection,
    Source,
    Success,
    Timer,
    TurnResult,
    Worker,
    run_once_sync,
)
from riffdb.scheduler.identity import Purpose, Subject, attempt_identity

STREAM = Source("stream", bytes(32), "PipelineTransitions")
SCHEDULE = Schedule("Pipelines", STREAM, "StartPipeline")
TARGET = (UUID(int=7), "build-7")
OWNER = UUID(int=1)


class ScriptedPort:
    """Answers from a script, by operation; what is not in it succeeds."""

    def __init__(self, attempt: int = 1, **script: list[Any]) -> None:
        self.item = Item(SCHEDULE, 1_000, TARGET, attempt, 7, delivery="token")
        self.script = script
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def answer(self, name: str, otherwise: Any, *operands: Any) -> Any:
        self.calls.append((name, operands))
        answer = self.script.get(name, []).pop(0) if self.script.get(name) else otherwise
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def next(self, selection: Selection) -> tuple[Item, ...]:
        items: tuple[Item, ...] = self.answer("next", (self.item,))
        return items

    async def resolve(self, item: Item, key: str) -> Any:
        return self.answer("resolve", Absent(), key)

    async def claim(self, item: Item, key: str, owner: UUID, lease_seconds: int, revision: int) -> Any:
        return self.answer("claim", Success("Claimed", revision + 1, 3), key, revision)

    async def renew(self, item: Item, key: str, lease: Lease, lease_seconds: int) -> Any:
        return self.answer("renew", Success("Renewed", lease.revision + 1), key)

    async def execute(self, item: Item, key: str, lease: Lease, inputs: Mapping[str, object]) -> Any:
        return self.answer("execute", Success("Started", lease.revision + 1), lease.revision)

    async def release(self, item: Item, key: str, lease: Lease) -> Any:
        return self.answer("release", Success("Released", lease.revision + 1), lease.revision)

    async def fail(self, item: Item, key: str, lease: Lease, retry_seconds: int) -> Any:
        return self.answer("fail", Success("Retried", lease.revision + 1), lease.revision)

    async def acknowledge(self, item: Item) -> None:
        self.answer("acknowledge", None, item.delivery)

    async def negative_acknowledge(self, item: Item, delay_seconds: int) -> None:
        self.answer("negative_acknowledge", None, delay_seconds)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def turn(port: ScriptedPort, policy: Policy | None = None, monotonic: Callable[[], float] = lambda: 0.0) -> TurnResult:
    policy = policy or Policy(base_retry_seconds=2)
    return run_once_sync(Worker(port, policy, OWNER, Timer(monotonic)), asyncio.Event())


def claim_key(ordinal: int, revision: int) -> str:
    return attempt_identity(Subject("Pipelines", STREAM, 1_000, TARGET), Purpose.CLAIM, ordinal, revision)


def test_a_delivery_is_acknowledged_when_all_is_done() -> None:
    port = ScriptedPort()
    assert isinstance(turn(port), Completed)
    assert port.names == ["next", "resolve", "claim", "execute", "release", "acknowledge"]
    assert [operands[0] for name, operands in port.calls if name in ("execute", "release")] == [8, 9]
    assert port.calls[-1] == ("acknowledge", ("token",))


def test_a_stale_claim_that_shows_a_newer_revision_is_made_once_more() -> None:
    port = ScriptedPort(attempt=2, claim=[Evidence("Stale", "stale", revision=9)])
    assert isinstance(turn(port), Completed)
    assert [operands for name, operands in port.calls if name == "claim"] == [
        (claim_key(2, 7), 7),
        (claim_key(2, 9), 9),
    ]


@pytest.mark.parametrize("shown", [None, 6, 7])
def test_a_stale_claim_that_shows_no_newer_revision_is_put_back(shown: int | None) -> None:
    port = ScriptedPort(claim=[Evidence("Stale", "stale", revision=shown)])
    assert isinstance(turn(port), Deferred)
    assert port.names == ["next", "resolve", "claim", "negative_acknowledge"]


def test_a_claim_that_is_stale_again_is_put_back() -> None:
    stale = [Evidence("Stale", "stale", revision=9), Evidence("Stale", "stale", revision=11)]
    port = ScriptedPort(attempt=3, claim=stale)
    result = turn(port)
    assert isinstance(result, Deferred) and result.delay_seconds == 8
    assert port.names == ["next", "resolve", "claim", "claim", "negative_acknowledge"]
    assert port.calls[-1][1] == (8,)


@pytest.mark.parametrize(
    ("answer", "delay"),
    [
        (Evidence("Held", "unavailable", remaining_microseconds=40_000_001), 41),
        (Evidence("Held", "unavailable", remaining_microseconds=1), 2),
        (Evidence("Held", "unavailable", remaining_microseconds=7_200_000_000), 3_600),
        (Evidence("Held", "unavailable"), 2),
        (Evidence("Other", "other"), 2),
        (Refusal("Paused"), 2),
        (KeyReused(), 2),
    ],
)
def test_a_delivery_whose_row_cannot_be_claimed_is_put_back(answer: object, delay: int) -> None:
    port = ScriptedPort(claim=[answer])
    assert isinstance(turn(port), Deferred)
    assert port.calls[-1] == ("negative_acknowledge", (delay,))


@pytest.mark.parametrize("kind", ["invalid", "exhausted"])
def test_a_claim_that_is_invalid_or_exhausted_is_permanent(kind: Any) -> None:
    port = ScriptedPort(claim=[Evidence("Wrong", kind)])
    result = turn(port)
    assert isinstance(result, Failed) and isinstance(result.failure, Permanent)
    assert port.names[-1] == "negative_acknowledge"


def test_a_missing_row_is_acknowledged() -> None:
    port = ScriptedPort(claim=[Evidence("Missing", "missing")])
    assert isinstance(turn(port), Gone)
    assert port.names[-1] == "acknowledge"


def test_a_delivery_lost_during_the_claim_is_released_and_not_settled() -> None:
    port = ScriptedPort(claim=[Success("Claimed", 8, 3, delivery_kept=False)])
    assert isinstance(turn(port), DeliveryLost)
    assert port.names == ["next", "resolve", "claim", "release"]


def test_the_policys_last_attempt_runs() -> None:
    assert isinstance(turn(ScriptedPort(attempt=3), Policy(attempts=3)), Completed)


@pytest.mark.parametrize(("seconds", "end"), [(59.5, Completed), (60.0, LeaseLost)])
def test_a_lease_is_over_at_its_end(seconds: float, end: type) -> None:
    port = ScriptedPort()

    def monotonic() -> float:
        return seconds if "claim" in port.names else 0.0

    assert isinstance(turn(port, Policy(lease_seconds=60), monotonic), end)
    assert ("execute" in port.names) is (end is Completed)


def test_deliveries_beyond_the_policys_attempts_do_not_run() -> None:
    port = ScriptedPort(attempt=2)
    result = turn(port, Policy(attempts=1, max_retry_seconds=50))
    assert isinstance(result, Failed) and isinstance(result.failure, Permanent)
    assert port.names == ["next", "resolve", "negative_acknowledge"]
    assert port.calls[-1][1] == (50,)


def test_deliveries_beyond_the_policys_attempts_are_still_cleaned_up() -> None:
    port = ScriptedPort(attempt=2, resolve=[Success("Started", 9)])
    turn(port, Policy(attempts=1))
    assert port.names == ["next", "resolve", "claim", "release", "acknowledge"]


@pytest.mark.parametrize("operation", ["next", "resolve", "claim", "execute", "release", "acknowledge"])
@pytest.mark.parametrize("failure", [Retryable, AuthorizationRevoked])
def test_a_failure_of_the_port_ends_the_turn_where_it_stands(operation: str, failure: type[SchedulerFailure]) -> None:
    error = failure(OSError("10.0.0.1 refused"))
    port = ScriptedPort(attempt=2, **{operation: [error]})
    result = turn(port)
    assert isinstance(result, Failed) and result.failure is error
    assert result.delay_seconds == (2 if operation == "next" else 4)
    assert port.names[-1] == operation
    assert "10.0.0.1" not in f"{result!r} {result.failure}"


def test_a_fault_of_the_adapter_is_not_taken_for_a_failure() -> None:
    with pytest.raises(ZeroDivisionError):
        turn(ScriptedPort(claim=[ZeroDivisionError()]))


def test_evidence_at_execute_means_that_the_lease_is_lost() -> None:
    port = ScriptedPort(execute=[Evidence("LeaseExpired", "expired")])
    turn(port)
    assert port.names == ["next", "resolve", "claim", "execute", "negative_acknowledge"]


@pytest.mark.parametrize("answer", [Evidence("WrongHolder", "invalid"), Refusal("No"), KeyReused()])
def test_a_release_that_does_nothing_is_no_failure(answer: object) -> None:
    port = ScriptedPort(release=[answer])
    assert isinstance(turn(port), Completed)
    assert port.names[-1] == "acknowledge"
