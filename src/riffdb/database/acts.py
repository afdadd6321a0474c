"""Acts beside commands: each is one transaction and one commit record of the system partition, so the log tells who did
it. Here are what they share and deploying; `capabilities` and `consumer_acts` have the others.

An act runs alone at the door, between batches of commands. Absent: reading applications from files.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from riffdb.core.canonical import canonical_json
from riffdb.core.keys import SYSTEM_PARTITION
from riffdb.core.records import Batch, CommitRecord, DeployedContract, Head
from riffdb.database.bases import BASE_TABLES
from riffdb.database.callers import Caller
from riffdb.database.consumer_rows import CONSUMER_TABLES
from riffdb.database.contracts import Contract, stored_plan
from riffdb.database.deploying import allowed_changes
from riffdb.database.records import EMPTY_CHAIN, chained
from riffdb.database.settings import SETTINGS
from riffdb.plan import Plan
from riffdb.plan.changes import Change, Deployment
from riffdb.plan.plan import to_json
from riffdb.storage.protocol import Transaction

DATABASE_TABLES = (*CONSUMER_TABLES, SETTINGS, *BASE_TABLES)
"""What a database keeps beside the rows of entities."""


@dataclass(slots=True)
class Act:
    """One operator's act on its way: `perform` runs inside the transaction, `committed` after it, before any command.

    The door settles it with a `result` or an `error`.
    """

    perform: Callable[[Transaction], Awaitable[Any]]
    committed: Callable[[Any], None] | None = None
    result: Any = None
    error: Exception | None = None


async def deploy(transaction: Transaction, plan: Plan, caller: Caller) -> tuple[Contract, Deployment]:
    """Put the plan on the database, whole or not at all; the contract, and what came of it."""
    contract = Contract(plan)
    deployed = await transaction.contracts()
    text = to_json(plan)
    if deployed and deployed[-1].plan == text:
        return contract, Deployment("unchanged")
    changes: tuple[Change, ...] = ()
    if deployed:
        changes = await allowed_changes(transaction, Contract(stored_plan(deployed[-1])), plan)
    await transaction.prepare([*contract.tables.values(), *contract.tombstones.values(), *DATABASE_TABLES])
    outcome = "updated" if deployed else "created"
    facts = {"application": plan.application, "contract": plan.contract, "version": plan.version}
    head, record = await system_commit(transaction, contract, caller, "deploy", facts, outcome)
    entry = DeployedContract(plan.application, plan.version, contract.hash, text, record.time)
    await transaction.write(Batch(heads=[head], records=[record], contracts=[entry]))
    return contract, Deployment(outcome, changes)


async def system_time(transaction: Transaction) -> int:
    """The time of the next record of the system partition (µs)."""
    return await _time_after(transaction, await _system_head(transaction))


async def system_commit(
    transaction: Transaction,
    contract: Contract,
    caller: Caller,
    act: str,
    facts: dict[str, Any],
    outcome: str,
    time: int | None = None,
) -> tuple[Head, CommitRecord]:
    """The next record of the system partition, and the head that it makes; to be written with what was done. `time`:
    that of `system_time` in the same transaction, where the facts rest on it."""
    head = await _system_head(transaction)
    text = canonical_json(facts)
    unchained = CommitRecord(
        partition=SYSTEM_PARTITION,
        sequence=head.sequence + 1,
        time=await _time_after(transaction, head) if time is None else time,
        command=act,
        key=None,
        input_hash=sha256(text.encode()).digest(),
        input=text,
        sealed="",
        secret_hash="",
        outcome=outcome,
        answer="",
        principal=caller.principal,
        capability=caller.capability,
        role=caller.role,
        ingress=caller.ingress,
        contract_version=contract.plan.version,
        plan_hash=contract.hash,
        changes="[]",
        events="[]",
        chain=head.chain,
    )
    record = chained(unchained)
    return record.head, record


async def _system_head(transaction: Transaction) -> Head:
    heads = await transaction.heads({SYSTEM_PARTITION})
    return heads.get(SYSTEM_PARTITION) or Head(SYSTEM_PARTITION, 0, 0, EMPTY_CHAIN)


async def _time_after(transaction: Transaction, head: Head) -> int:
    return max(await transaction.time(), head.time + 1)
