"""The act of deploying: what changed, what of it the stored rows allow, and the tables that it needs.

A change that is not compatible refuses the whole, unless nothing stands against it: its entity has no rows, never had
any, or no work is under way: none of its rows is leased, and of the stream that its schedule follows every delivery is
settled. All are looked up in the transaction that deploys, so no command comes between.
Absent: the classes of changes, which `plan.changes` holds; migrations.
"""

from riffdb.core.errors import RiffError
from riffdb.database.consumer_rows import CONSUMERS, ConsumerRow
from riffdb.database.contracts import Contract
from riffdb.database.layouts import moved_tables
from riffdb.database.walks import Walk
from riffdb.plan import Plan
from riffdb.plan.changes import COMPATIBLE, RULES, Change, change_json
from riffdb.plan.compatibility import contract_changes
from riffdb.plan.queries import SchedulePlan
from riffdb.storage.protocol import Scan, Transaction


async def allowed_changes(transaction: Transaction, deployed: Contract, plan: Plan) -> tuple[Change, ...]:
    """The changes that lead from the deployed contract to the plan; `RDB-E-APPROVAL` unless all may be made now."""
    found = [*contract_changes(deployed.plan, plan), *moved_tables(deployed.plan, plan)]
    changes = [await _judged(transaction, deployed, change) for change in found]
    refused = [change for change in changes if change.verdict != COMPATIBLE]
    if refused:
        told = "; ".join(f"{change.what} ({change.verdict})" for change in refused)
        raise RiffError(
            "RDB-E-APPROVAL",
            f"nothing was deployed, since the deployed contract and its rows do not allow this: {told}",
            detail={"changes": [change_json(change) for change in changes]},
        )
    return tuple(changes)


async def _judged(transaction: Transaction, deployed: Contract, change: Change) -> Change:
    lifted_by = RULES[change.kind].lifted_by
    if not lifted_by or change.entity not in deployed.tables:
        return change
    table = deployed.tables[change.entity]
    if lifted_by == "no rows":
        has_rows = await transaction.scan(Scan(table, None, (), limit=1))
        return change if has_rows else change.lifted(f"`{change.entity}` has no rows")
    if lifted_by == "no rows ever":
        for part in (table, deployed.tombstones[change.entity]):
            if await transaction.scan(Scan(part, None, (), limit=1)):
                return change
        return change.lifted(f"`{change.entity}` never had a row")
    if await _has_held_lease(transaction, deployed, change.entity):
        return change
    if await _has_unsettled_delivery(transaction, deployed.plan.schedule(change.declaration)):
        return change
    return change.lifted(f"no lease of `{change.entity}` is held, and no delivery of `{change.declaration}` unsettled")


async def _has_held_lease(transaction: Transaction, deployed: Contract, entity: str) -> bool:
    workflow = deployed.plan.workflow_of(entity)
    if workflow is None or workflow.lease is None:
        return False
    columns = deployed.plan.entity(entity).columns
    owner, expiry = columns.index(workflow.lease.owner), columns.index(workflow.lease.expires_at)
    now = await transaction.time()
    rows = Walk(transaction, deployed.tables[entity])
    while (row := await rows.next()) is not None:
        if row[owner] is not None and row[expiry] is not None and row[expiry] > now:
            return True
    return False


async def _has_unsettled_delivery(transaction: Transaction, schedule: SchedulePlan) -> bool:
    """Whether the consumer of a schedule's name holds or puts off an event, in any partition."""
    if schedule.source != "stream":
        return False
    rows = Walk(transaction, CONSUMERS)
    while (row := await rows.next()) is not None:
        consumer = ConsumerRow(*row)
        if (consumer.stream, consumer.name) == (schedule.source_name, schedule.name) and consumer.unsettled:
            return True
    return False
