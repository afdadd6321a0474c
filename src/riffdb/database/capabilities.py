"""Capabilities: created by operators, derived by whoever holds one, shown, and ended with all that came of them.

A derived capability may do less than the one it comes from, never more: fewer names, one partition, a shorter life.
What it is derived from is read in the transaction that makes it. Ending one ends its whole family in one transaction,
so a check of a token stays a look at one row. The token stands in the answer that makes it and nowhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from uuid_utils.compat import uuid7

from riffdb.core.canonical import canonical_json
from riffdb.core.errors import RiffError, input_error
from riffdb.core.keys import partition_text
from riffdb.core.limits import (
    CAPABILITIES_DERIVED_MAX,
    CAPABILITY_GENERATIONS_MAX,
    CAPABILITY_SECONDS_MAX,
    PRINCIPAL_BYTES_MAX,
)
from riffdb.core.records import Batch, Capability
from riffdb.core.suggestions import did_you_mean
from riffdb.core.types import Type, string
from riffdb.core.values import SECOND, decoder, timestamp_text
from riffdb.database.acts import system_commit, system_time
from riffdb.database.callers import PLURALS, Caller, Family, check_capability, granted, kept_names
from riffdb.database.contracts import Contract
from riffdb.database.tokens import new_token, token_hash
from riffdb.storage.protocol import Reader, Transaction

_LIFETIME = decoder(Type("limit", bound=CAPABILITY_SECONDS_MAX), {})
_PRINCIPAL = decoder(string(PRINCIPAL_BYTES_MAX), {})


@dataclass(frozen=True, slots=True)
class CreatedCapability:
    """A new capability with its token, which is shown this once."""

    capability: Capability
    token: str = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """The answer to whoever made it."""
        capability = self.capability
        return {
            "id": capability.id,
            "token": self.token,
            "role": capability.role or None,
            "expires_at": _time_text(capability.expires_at),
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new capability shall be: its role (empty: operator), who holds it, where, and for how long.

    None where there is no end, no bound, no name of its own. `names`: those of each family that it shall be kept to,
    None where all. Values as a caller gave them, in native or wire form.
    """

    role: object
    principal: object
    partition: object
    lifetime_seconds: object
    names: tuple[tuple[Family, object], ...] = ()


async def create_capability(
    transaction: Transaction, contract: Contract, caller: Caller, wanted: Wanted
) -> CreatedCapability:
    """A new capability for a role of the contract, or an operator's when the role is empty."""
    role = _role(contract, wanted.role)
    partition = None if wanted.partition is None else contract.decode_partition(wanted.partition)
    principal = _principal(wanted.principal)
    return await _made(
        transaction, contract, caller, "capability.create", role, principal, partition, wanted.lifetime_seconds
    )


async def derive_capability(
    transaction: Transaction, contract: Contract, caller: Caller, wanted: Wanted
) -> CreatedCapability:
    """A narrower capability out of the caller's own; `RDB-E-FORBIDDEN` for anything that it does not grant itself."""
    parent = await _own(transaction, caller)
    role = caller.role if wanted.role is None else _derived_role(contract, caller, wanted.role)
    acting = caller if role == caller.role else Caller(caller.principal, role, caller.ingress)
    grants = _narrower(contract, acting, wanted.names)
    partition = caller.partition
    if wanted.partition is not None:
        partition = contract.decode_partition(wanted.partition)
        if caller.partition not in (None, partition):
            raise RiffError("RDB-E-FORBIDDEN", "the capability is restricted to another partition")
    principal = _principal(wanted.principal) or caller.principal
    return await _made(
        transaction,
        contract,
        caller,
        "capability.derive",
        role,
        principal,
        partition,
        wanted.lifetime_seconds,
        grants,
        parent,
    )


async def revoke_capability(transaction: Transaction, contract: Contract, caller: Caller, identity: str) -> Capability:
    """End a capability and all that were derived from it; one that has ended already stays as it is.

    `RDB-E-NOT-FOUND` for an unknown id.
    """
    family = await _family(transaction, identity)
    living = [member for member in family if member.revoked_at is None]
    if not living:
        return family[0]
    facts = {"id": identity, "ended": [member.id for member in living]}
    head, record = await system_commit(transaction, contract, caller, "capability.revoke", facts, "revoked")
    ended = [member._replace(revoked_at=record.time) for member in living]
    await transaction.write(Batch(heads=[head], records=[record], capabilities=ended))
    return next((member for member in ended if member.id == identity), family[0])


async def shown_capability(reader: Reader, identity: str) -> dict[str, Any]:
    """The facts of a capability; `RDB-E-NOT-FOUND` for an unknown id."""
    return capability_json((await _family(reader, identity))[0])


def capability_json(capability: Capability) -> dict[str, Any]:
    """The facts of a capability as they may be shown; never its token."""
    partition = capability.partition
    return {
        "id": capability.id,
        "role": capability.role or None,
        "operator": not capability.role,
        "principal": capability.principal,
        "partition": None if partition is None else partition_text(partition),
        "grants": _told_grants(capability.grants),
        "created_at": timestamp_text(capability.created_at),
        "expires_at": _time_text(capability.expires_at),
        "revoked_at": _time_text(capability.revoked_at),
        "parent": capability.parent,
        "creator": capability.creator,
    }


def capability_facts(capability: Capability) -> dict[str, Any]:
    """What the log keeps of a new capability, so that its row can be compared with it. Of the token that is a hash of
    its hash, with which nothing can be presented and nothing be looked up."""
    partition = capability.partition
    return {
        "id": capability.id,
        "role": capability.role,
        "principal": capability.principal,
        "partition": None if partition is None else partition.hex(),
        "expires_at": _time_text(capability.expires_at),
        "parent": capability.parent,
        "creator": capability.creator,
        "grants": capability.grants,
        "token": sha256(capability.token_hash).hexdigest(),
    }


async def _made(
    transaction: Transaction,
    contract: Contract,
    caller: Caller,
    act: str,
    role: str,
    principal: str | None,
    partition: bytes | None,
    lifetime_seconds: object,
    grants: str = "",
    parent: Capability | None = None,
) -> CreatedCapability:
    lifetime = None if lifetime_seconds is None else _LIFETIME(lifetime_seconds, "expires_seconds")
    identity, token = str(uuid7()), new_token()
    hashed = token_hash(token)
    assert hashed is not None
    now = await system_time(transaction)
    expires_at = None if lifetime is None else now + lifetime * SECOND
    if parent is not None and parent.expires_at is not None:
        expires_at = parent.expires_at if expires_at is None else expires_at
        if expires_at > parent.expires_at:
            end = timestamp_text(parent.expires_at)
            raise input_error("expires_seconds", f"must end no later than {end}, as the capability it is derived from")
    capability = Capability(
        id=identity,
        token_hash=hashed,
        principal=principal or f"{role or 'operator'}:{identity[-12:]}",
        role=role,
        partition=partition,
        created_at=now,
        expires_at=expires_at,
        revoked_at=None,
        parent=None if parent is None else parent.id,
        creator=caller.principal,
        grants=grants,
    )
    facts = capability_facts(capability)
    head, record = await system_commit(transaction, contract, caller, act, facts, "created", now)
    await transaction.write(Batch(heads=[head], records=[record], capabilities=[capability]))
    return CreatedCapability(capability, token)


async def _own(transaction: Transaction, caller: Caller) -> Capability | None:
    """The capability that the caller holds, as long as more may come of it; None for who opened the file."""
    if caller.token_hash is None:
        return None
    known = await transaction.capabilities({caller.token_hash})
    own = check_capability(known.get(caller.token_hash), await transaction.time())
    generations, member = 1, own
    while True:
        if member.role:
            family = await transaction.capability_family(member.id)
            living = [other for other in family if other.revoked_at is None and other.id != member.id]
            if len(living) >= CAPABILITIES_DERIVED_MAX:
                raise _too_many(f"{CAPABILITIES_DERIVED_MAX:,} living ones")
        if member.parent is None:
            return own
        generations += 1
        if generations >= CAPABILITY_GENERATIONS_MAX:
            raise _too_many(f"{CAPABILITY_GENERATIONS_MAX} generations")
        member = (await _family(transaction, member.parent))[0]


def _too_many(bound: str) -> RiffError:
    return RiffError("RDB-E-CAPABILITIES", f"at most {bound} are derived from one capability; ask for one of your own")


async def _family(reader: Reader, identity: str) -> list[Capability]:
    family = await reader.capability_family(identity)
    if not family:
        raise RiffError("RDB-E-NOT-FOUND", "there is no capability with that id")
    return family


def _role(contract: Contract, role: object) -> str:
    roles = [declared.name for declared in contract.plan.roles]
    if not isinstance(role, str) or (role and role not in roles):
        raise input_error("role", f"the contract has no role of that name{did_you_mean(str(role), roles)}")
    return role


def _derived_role(contract: Contract, caller: Caller, role: object) -> str:
    if caller.is_operator:
        return _role(contract, role)
    if role != caller.role:
        raise RiffError("RDB-E-FORBIDDEN", "the capability does not grant this role")
    return caller.role


def _narrower(contract: Contract, acting: Caller, wanted: Sequence[tuple[Family, object]]) -> str:
    """The names that the new capability is kept to. A family that is not named keeps what it has, unless it is the
    others that are named: then nothing of it is kept."""
    if all(names is None for _, names in wanted):
        return acting.grants
    if acting.is_operator:
        raise input_error("role", "is missing; an operator's capability is kept to names by way of a role")
    kept: dict[str, list[str]] = {}
    for family, names in wanted:
        plural, allowed = PLURALS[family], granted(contract.plan, acting, family)
        if names is None:
            kept[plural] = []
            continue
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise input_error(plural, "must be a list of names")
        if not allowed.issuperset(names):
            raise RiffError("RDB-E-FORBIDDEN", f"the capability does not grant all of these {plural}")
        kept[plural] = sorted(set(names))
    return canonical_json(kept)


def _told_grants(grants: str) -> dict[str, list[str]] | None:
    return None if not grants else {plural: sorted(kept_names(grants)[family]) for family, plural in PLURALS.items()}


def _principal(value: object) -> str | None:
    principal: str | None = None if value is None else _PRINCIPAL(value, "principal")
    if principal is not None and not (principal and principal.isprintable()):
        raise input_error("principal", "must be printable text")
    return principal


def _time_text(time: int | None) -> str | None:
    return None if time is None else timestamp_text(time)
