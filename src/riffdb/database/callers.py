"""Who asks: principal, role, the capability's facts, and the edge the request came in by.

A caller is a claim until the transaction that seals the request has read the capability's row; `check_capability` is
that check, and the same one serves admission. Names unknown and names not granted answer alike, save to operators.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.records import Capability
from riffdb.core.suggestions import did_you_mean
from riffdb.plan import Plan
from riffdb.plan.commands import CommandPlan
from riffdb.plan.narrowing import narrowed
from riffdb.plan.queries import QueryPlan, RolePlan, StreamPlan
from riffdb.storage.protocol import Reader

OPERATOR = ""
Family = Literal["command", "query", "stream"]
PLURALS: dict[Family, str] = {"command": "commands", "query": "queries", "stream": "streams"}
_GRANTS_KEPT = 1_024


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. An empty `role` is an operator; `token_hash` is None for who opened the file itself; `grants` are those
    of the capability."""

    principal: str
    role: str
    ingress: str
    capability: str = ""
    token_hash: bytes | None = None
    partition: bytes | None = None
    grants: str = ""

    @property
    def is_operator(self) -> bool:
        """Whether the caller may run everything."""
        return self.role == OPERATOR


def check_capability(capability: Capability | None, time: int) -> Capability:
    """The capability, if it is known, unrevoked and unexpired at `time` (µs); else `RDB-E-UNAUTHENTICATED`."""
    if capability is None:
        raise RiffError("RDB-E-UNAUTHENTICATED", "the token is not known here")
    if capability.revoked_at is not None:
        raise RiffError("RDB-E-UNAUTHENTICATED", "the token was revoked")
    if capability.expires_at is not None and capability.expires_at <= time:
        raise RiffError("RDB-E-UNAUTHENTICATED", "the token has expired")
    return capability


async def check_token(reader: Reader, caller: Caller) -> None:
    """Refuse a caller whose capability does not hold any more; who opened the file needs none."""
    if caller.token_hash is not None:
        known = await reader.capabilities({caller.token_hash})
        check_capability(known.get(caller.token_hash), await reader.time())


def check_command(plan: Plan, caller: Caller, name: str) -> None:
    """Refuse a command that the caller may not run, before its input is looked at."""
    _check(plan, caller, "command", name)


def check_query(plan: Plan, caller: Caller, name: str) -> None:
    """Refuse a query that the caller may not run, before its parameters are looked at."""
    _check(plan, caller, "query", name)


def check_stream(plan: Plan, caller: Caller, name: str) -> None:
    """Refuse a stream that the caller may not consume, before anything else is looked at."""
    _check(plan, caller, "stream", name)


def check_operator(caller: Caller) -> None:
    """Refuse everyone but operators."""
    if not caller.is_operator:
        raise RiffError("RDB-E-FORBIDDEN", "only an operator may do this")


def check_unrestricted(caller: Caller) -> None:
    """Refuse everyone but operators of the whole database: what concerns all partitions is theirs alone."""
    check_operator(caller)
    if caller.partition is not None:
        raise RiffError("RDB-E-FORBIDDEN", "only an operator who is not restricted to one partition may do this")


def check_partition(caller: Caller, partition: bytes) -> None:
    """Refuse a partition outside the capability's restriction."""
    if caller.partition is not None and caller.partition != partition:
        raise RiffError("RDB-E-FORBIDDEN", "the capability is restricted to another partition")


def granted(plan: Plan, caller: Caller, family: Family) -> frozenset[str]:
    """The names of a family that the caller's role grants now, as far as the capability has not fewer."""
    names = frozenset(name for role in plan.roles if role.name == caller.role for name in _named(role, family))
    return names & kept_names(caller.grants)[family] if caller.grants else names


def visible_plan(plan: Plan, caller: Caller) -> Plan:
    """The plan as far as the caller may use it."""
    if caller.is_operator:
        return plan
    if caller.grants:
        names = {PLURALS[family]: tuple(sorted(granted(plan, caller, family))) for family in PLURALS}
        roles = tuple(msgspec.structs.replace(role, **names) for role in plan.roles if role.name == caller.role)
        plan = msgspec.structs.replace(plan, roles=roles)
    return narrowed(plan, caller.role)


@lru_cache(_GRANTS_KEPT)
def kept_names(grants: str) -> dict[Family, frozenset[str]]:
    """The names that a capability with fewer than its role has kept."""
    told = json.loads(grants)
    return {family: frozenset(told[plural]) for family, plural in PLURALS.items()}


def _check(plan: Plan, caller: Caller, family: Family, name: str) -> None:
    if caller.is_operator or _grants(plan, caller, family, name):
        declared = _declared(plan, family)
        for part in declared:
            if part.name == name:
                return
        if caller.is_operator:
            hint = did_you_mean(name, [part.name for part in declared])
            raise RiffError("RDB-E-NOT-FOUND", f"the contract has no {family} of that name{hint}")
    raise RiffError("RDB-E-FORBIDDEN", f"the capability does not grant this {family}")


def _declared(plan: Plan, family: Family) -> Sequence[CommandPlan | QueryPlan | StreamPlan]:
    match family:
        case "command":
            return plan.commands
        case "query":
            return plan.queries
        case "stream":
            return plan.streams


def _grants(plan: Plan, caller: Caller, family: Family, name: str) -> bool:
    for role in plan.roles:
        if role.name == caller.role and name in _named(role, family):
            return not caller.grants or name in kept_names(caller.grants)[family]
    return False


def _named(role: RolePlan, family: Family) -> tuple[str, ...]:
    if family == "command":
        return role.commands
    return role.queries if family == "query" else role.streams
