"""The adapter from a client to the scheduler's port, for any schedule of the deployed contract.

Which input of which command takes the key, the owner, the token, the revision stands in the schedule's plan, so nothing
here is particular to an application. Where the items come from, and how they are settled, is the source's affair.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from riffdb.client.answers import Answer
from riffdb.client.calls import AsyncClient
from riffdb.client.query_source import QuerySource
from riffdb.client.stream_source import StreamSource
from riffdb.core.errors import RiffError
from riffdb.plan import Plan
from riffdb.plan.identity import declaration_hash
from riffdb.plan.queries import ScheduledCommand, SchedulePlan
from riffdb.scheduler import (
    Absent,
    Evidence,
    Item,
    KeyReused,
    Lease,
    Permanent,
    Refusal,
    Schedule,
    Selection,
    Source,
    Success,
    failure_of,
)
from riffdb.scheduler.port import Answer as PortAnswer
from riffdb.scheduler.port import EvidenceKind, Stored

_KINDS: tuple[EvidenceKind, ...] = ("stale", "unavailable", "invalid", "exhausted", "expired", "missing")


class ItemSource(Protocol):
    """Where a schedule's items come from and are settled."""

    async def next(self, selection: Selection) -> tuple[Item, ...]:
        """Select items."""

    async def claimed(self, item: Item, is_won: bool, lease_seconds: int) -> bool:
        """Learn how the claim of an item ended; after a won one, whether the item is still this worker's to settle."""

    async def renewed(self, item: Item, lease_seconds: int) -> None:
        """Learn that the lease of an item was renewed."""

    async def acknowledge(self, item: Item) -> None:
        """Settle the item."""

    async def negative_acknowledge(self, item: Item, delay_seconds: int) -> None:
        """Put the item back."""


class SchedulePort:
    """The port of one schedule; `params` are its source's parameters. A selection ends with nothing once `stopping` is
    set."""

    def __init__(
        self, client: AsyncClient, plan: Plan, name: str, params: Mapping[str, object], stopping: asyncio.Event
    ) -> None:
        self._client = client
        self._plan = plan
        self._schedule = plan.schedule(name)
        lease = plan.workflow(self._schedule.workflow).lease
        assert lease is not None, "the workflow of a schedule has a lease"
        self._lease = lease
        self.schedule = port_schedule(plan, self._schedule)
        source = QuerySource if self._schedule.source == "query" else StreamSource
        self._source: ItemSource = source(client, plan, self._schedule, self.schedule, params, stopping)

    async def next(self, selection: Selection) -> tuple[Item, ...]:
        """Select items from the source."""
        return await self._source.next(selection)

    async def resolve(self, item: Item, key: str) -> Stored:
        """Fetch the stored answer of the business command."""
        run = self._schedule.run
        partition = self._key(run, item)[0]
        inputs = {partition[0]: partition[1], run.idempotency_key: key}
        try:
            answer = await self._client.resolve(run.command, **inputs)
        except RiffError as error:
            if error.code == "RDB-E-ABSENT":
                return Absent()
            raise failure_of(error) from None
        stored = self._told(run, answer)
        assert not isinstance(stored, KeyReused)
        return stored

    async def claim(self, item: Item, key: str, owner: UUID, lease_seconds: int, revision: int) -> PortAnswer:
        """Claim the row."""
        claim = self._schedule.claim
        values = {claim.owner: owner, claim.duration: lease_seconds, claim.revision: revision}
        told = await self._send(claim, item, key, values)
        is_kept = await self._source.claimed(item, isinstance(told, Success), lease_seconds)
        return replace(told, delivery_kept=is_kept) if isinstance(told, Success) else told

    async def renew(self, item: Item, key: str, lease: Lease, lease_seconds: int) -> PortAnswer:
        """Renew the row's lease."""
        renew = self._schedule.renew
        if renew is None:
            raise Permanent(reason="the schedule names no command that renews")
        told = await self._send(renew, item, key, {renew.duration: lease_seconds} | _evidence(renew, lease))
        if isinstance(told, Success):
            await self._source.renewed(item, lease_seconds)
        return told

    async def execute(self, item: Item, key: str, lease: Lease, inputs: Mapping[str, object]) -> PortAnswer:
        """Send the business command with the handler's inputs."""
        run = self._schedule.run
        if inputs.keys() - set(run.further):
            left = ", ".join(f"`{name}`" for name in run.further) or "nothing"
            raise Permanent(reason=f"the handler gave another input than {run.command} leaves to it: {left}")
        return await self._send(run, item, key, dict[str | None, object](inputs.items()) | _evidence(run, lease))

    async def release(self, item: Item, key: str, lease: Lease) -> PortAnswer:
        """Release the row's lease."""
        release = self._schedule.release
        return await self._send(release, item, key, _evidence(release, lease))

    async def fail(self, item: Item, key: str, lease: Lease, retry_seconds: int) -> PortAnswer:
        """Send the schedule's `fail` command."""
        fail = self._schedule.fail
        if fail is None:
            raise Permanent(reason="the schedule names no command that fails an item")
        delay: dict[str | None, object] = {name: retry_seconds for name in fail.further if name == "retry_seconds"}
        return await self._send(fail, item, key, delay | _evidence(fail, lease))

    async def acknowledge(self, item: Item) -> None:
        """Settle the item where it came from."""
        await self._source.acknowledge(item)

    async def negative_acknowledge(self, item: Item, delay_seconds: int) -> None:
        """Put the item back where it came from."""
        await self._source.negative_acknowledge(item, delay_seconds)

    async def _send(
        self, scheduled: ScheduledCommand, item: Item, key: str, values: Mapping[str | None, object]
    ) -> PortAnswer:
        inputs = dict(self._key(scheduled, item)) | {name: value for name, value in values.items() if name is not None}
        inputs[scheduled.idempotency_key] = key
        try:
            answer = await self._client.command(scheduled.command, **inputs)
        except RiffError as error:
            if error.code == "RDB-E-IDEMPOTENCY-REUSED":
                return KeyReused()
            raise failure_of(error) from None
        return self._told(scheduled, answer)

    def _key(self, scheduled: ScheduledCommand, item: Item) -> list[tuple[str, object]]:
        """Inputs that take the key, the partition's first."""
        entity = self._plan.entity(self._schedule.entity)
        values = dict(zip(entity.storage_key, item.target, strict=True))
        declared = zip((part.name for part in entity.key), scheduled.key, strict=True)
        inputs = [(name, values[part]) for part, name in declared]
        return sorted(inputs, key=lambda pair: pair[0] != scheduled.key[self._partition_position()])

    def _partition_position(self) -> int:
        entity = self._plan.entity(self._schedule.entity)
        return [part.name for part in entity.key].index(entity.partition)

    def _told(self, scheduled: ScheduledCommand, answer: Answer) -> PortAnswer:
        outcome = self._plan.command(scheduled.command).outcome(answer.outcome)
        if outcome.success:
            revision = next(
                (item.revision for item in answer.workflow_revisions if item.binding == scheduled.binding), None
            )
            fence = _shown(answer, scheduled.row, self._lease.fencing_token, scheduled.fence)
            return Success(answer.outcome, revision, fence, answer.payload)
        if not outcome.evidence:
            return Refusal(answer.outcome)
        kinds = [kind for kind in _KINDS if getattr(scheduled, kind) == answer.outcome]
        # One outcome may stand in several clauses; then its name alone does not tell which.
        kind = kinds[0] if len(kinds) == 1 else "other"
        revision = _shown(answer, scheduled.stale_row, "revision", scheduled.stale_revision)
        expiry = _shown(answer, scheduled.unavailable_row, self._lease.expires_at, scheduled.unavailable_expires_at)
        if kind == "stale":
            return Evidence(answer.outcome, kind, revision=revision)
        if kind == "unavailable" and expiry is not None and answer.commit is not None:
            remaining = (expiry - answer.commit.time) // timedelta(microseconds=1)
            return Evidence(answer.outcome, kind, remaining_microseconds=remaining)
        return Evidence(answer.outcome, kind)


def _shown(answer: Answer, row: str, column: str, field: str) -> Any:
    """What an answer shows of the leased row, as a column of the whole row or by itself; None where it does not."""
    shown = answer.payload.get(row) if row else None
    return shown[column] if shown is not None else answer.payload.get(field)


def port_schedule(plan: Plan, schedule: SchedulePlan) -> Schedule:
    """The schedule as a turn needs it."""
    family = "queries" if schedule.source == "query" else "streams"
    source = Source(schedule.source, declaration_hash(plan, family, schedule.source_name), schedule.source_name)
    return Schedule(
        name=schedule.name,
        source=source,
        run=schedule.run.command,
        renews=schedule.renew is not None,
        fails=schedule.fail is not None,
        run_ends_lease=schedule.run.releases,
    )


def _evidence(scheduled: ScheduledCommand, lease: Lease) -> dict[str | None, object]:
    return {
        scheduled.owner: lease.owner,
        scheduled.fencing_token: lease.fencing_token,
        scheduled.revision: lease.revision,
    }
