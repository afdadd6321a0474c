"""Operators' acts: deploy a contract, create and revoke capabilities. Each is one transaction and one commit record of
the system partition, so the log tells who did it.

An act runs alone at the door, between batches of commands. Absent: reading applications from files, printing tokens.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from uuid_utils.compat import uuid7

from riffdb.core.canonical import canonical_json
from riffdb.core.errors import RiffError, input_error
from riffdb.core.keys import SYSTEM_PARTITION
from riffdb.core.limits import CAPABILITY_SECONDS_MAX, PRINCIPAL_BYTES_MAX
from riffdb.core.records import Batch, Capability, CommitRecord, DeployedContract, Head
from riffdb.core.suggestions import did_you_mean
from riffdb.core.types import Type, string
from riffdb.core.values import decoder, timestamp_text
from riffdb.database.callers import Caller
from riffdb.database.consumer_rows import CONSUMER_TABLES
from riffdb.database.contracts import Contract, stored_plan
from riffdb.database.deploying import allowed_changes
from riffdb.database.records import EMPTY_CHAIN, chained
from riffdb.database.tokens import new_token, token_hash
from riffdb.plan import Plan
from riffdb.plan.changes import Change, Deployment
from riffdb.plan.plan import to_json
from riffdb.storage.protocol import Transaction

_LIFETIME = decoder(Type("limit", bound=CAPABILITY_SECONDS_MAX), {})
_PRINCIPAL = decoder(string(PRINCIPAL_BYTES_MAX), {})


@dataclass(slots=True)
class Act:
    """One operator's act on its way: `perform` runs inside the transaction, `committed` after it, before any command.

    The door settles it with a `result` or an `error`.
    """

    perform: Callable[[Transaction], Awaitable[Any]]
    committed: Callable[[Any], None] | None = None
    result: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class CreatedCapability:
    """A new capability with its token, which is shown this once."""

    capability: Capability
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new capability shall be: its role (empty: operator), who holds it, where, and for how long.

    None where there is no end, no bound, no name of its own. Values as a caller gave them, in native or wire form.
    """

    role: object
    principal: object
    partition: object
    lifetime_seconds: object


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
    await transaction.prepare([*contract.tables.values(), *contract.tombstones.values(), *CONSUMER_TABLES])
    outcome = "updated" if deployed else "created"
    facts = {"application": plan.application, "contract": plan.contract, "version": plan.version}
    head, record = await system_commit(transaction, contract, caller, "deploy", facts, outcome)
    entry = DeployedContract(plan.application, plan.version, contract.hash, text, record.time)
    await transaction.write(Batch(heads=[head], records=[record], contracts=[entry]))
    return contract, Deployment(outcome, changes)


async def create_capability(
    transaction: Transaction, contract: Contract, caller: Caller, wanted: Wanted
) -> CreatedCapability:
    """A new capability for a role of the contract, or an operator's when the role is empty."""
    role = wanted.role
    roles = [declared.name for declared in contract.plan.roles]
    if not isinstance(role, str) or (role and role not in roles):
        raise input_error("role", f"the contract has no role of that name{did_you_mean(str(role), roles)}")
    partition = None if wanted.partition is None else contract.decode_partition(wanted.partition)
    lifetime = None if wanted.lifetime_seconds is None else _LIFETIME(wanted.lifetime_seconds, "lifetime_seconds")
    identity, token = str(uuid7()), new_token()
    hashed = token_hash(token)
    assert hashed is not None
    principal = _principal(wanted.principal) or f"{role or 'operator'}:{identity[-12:]}"
    facts = {"id": identity, "role": role, "principal": principal, "restricted": partition is not None}
    head, record = await system_commit(transaction, contract, caller, "capability.create", facts, "created")
    capability = Capability(
        id=identity,
        token_hash=hashed,
        principal=principal,
        role=role,
        partition=partition,
        created_at=record.time,
        expires_at=None if lifetime is None else record.time + lifetime * 1_000_000,
        revoked_at=None,
        parent=caller.capability or None,
        creator=caller.principal,
    )
    await transaction.write(Batch(heads=[head], records=[record], capabilities=[capability]))
    return CreatedCapability(capability, token)


async def revoke_capability(transaction: Transaction, contract: Contract, caller: Caller, identity: str) -> Capability:
    """End a capability; one that has ended already stays as it is. `RDB-E-NOT-FOUND` for an unknown id."""
    found = next((known for known in await transaction.capability_list() if known.id == identity), None)
    if found is None:
        raise RiffError("RDB-E-NOT-FOUND", "there is no capability with that id")
    if found.revoked_at is not None:
        return found
    head, record = await system_commit(transaction, contract, caller, "capability.revoke", {"id": identity}, "revoked")
    revoked = found._replace(revoked_at=record.time)
    await transaction.write(Batch(heads=[head], records=[record], capabilities=[revoked]))
    return revoked


def capability_json(capability: Capability) -> dict[str, Any]:
    """The facts of a capability as they may be shown; never its token."""
    return {
        "id": capability.id,
        "role": capability.role or None,
        "operator": not capability.role,
        "principal": capability.principal,
        "expires_at": None if capability.expires_at is None else timestamp_text(capability.expires_at),
        "revoked_at": None if capability.revoked_at is None else timestamp_text(capability.revoked_at),
    }


def _principal(value: object) -> str | None:
    principal: str | None = None if value is None else _PRINCIPAL(value, "principal")
    if principal is not None and not (principal and principal.isprintable()):
        raise input_error("principal", "must be printable text")
    return principal


async def system_commit(
    transaction: Transaction, contract: Contract, caller: Caller, act: str, facts: dict[str, Any], outcome: str
) -> tuple[Head, CommitRecord]:
    """The next record of the system partition, and the head that it makes; to be written with what was done."""
    heads = await transaction.heads({SYSTEM_PARTITION})
    head = heads.get(SYSTEM_PARTITION) or Head(SYSTEM_PARTITION, 0, 0, EMPTY_CHAIN)
    sequence, time = head.sequence + 1, max(await transaction.time(), head.time + 1)
    text = canonical_json(facts)
    unchained = CommitRecord(
        partition=SYSTEM_PARTITION,
        sequence=sequence,
        time=time,
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
    return Head(SYSTEM_PARTITION, sequence, time, record.chain), record
