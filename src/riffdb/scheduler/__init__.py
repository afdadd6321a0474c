"""The bounded scheduler: a worker's turn over a closed port, its attempt identities, its policy, a host.

It owns no storage, clock, transport or authority: a port, a timer and an owner are given to it, and every change is a
command of the application that the database checks like any other. Delivery is at least once; together with the
attempt identities the business command of each piece of work commits once. Nothing but `riffdb.core` is imported.
"""

from riffdb.scheduler.failures import (
    AuthorizationRevoked,
    Cancelled,
    HandlerError,
    Permanent,
    Retryable,
    SchedulerFailure,
    failure_of,
)
from riffdb.scheduler.handler import Handler, Work
from riffdb.scheduler.host import run_host
from riffdb.scheduler.identity import Component, Source, Target
from riffdb.scheduler.policy import Policy
from riffdb.scheduler.port import (
    Absent,
    Answer,
    Evidence,
    EvidenceKind,
    Item,
    KeyReused,
    Lease,
    Port,
    Refusal,
    Schedule,
    Selection,
    Stored,
    Success,
)
from riffdb.scheduler.results import (
    Completed,
    Deferred,
    DeliveryLost,
    Failed,
    Gone,
    Idle,
    LeaseLost,
    Recovered,
    Refused,
    TurnResult,
)
from riffdb.scheduler.turn import run_once, run_once_sync
from riffdb.scheduler.worker import Cancellation, Timer, Worker

__all__ = [
    "Absent",
    "Answer",
    "AuthorizationRevoked",
    "Cancellation",
    "Cancelled",
    "Completed",
    "Component",
    "Deferred",
    "DeliveryLost",
    "Evidence",
    "EvidenceKind",
    "Failed",
    "Gone",
    "Handler",
    "HandlerError",
    "Idle",
    "Item",
    "KeyReused",
    "Lease",
    "LeaseLost",
    "Permanent",
    "Policy",
    "Port",
    "Recovered",
    "Refusal",
    "Refused",
    "Retryable",
    "Schedule",
    "SchedulerFailure",
    "Selection",
    "Source",
    "Stored",
    "Success",
    "Target",
    "Timer",
    "TurnResult",
    "Work",
    "Worker",
    "failure_of",
    "run_host",
    "run_once",
    "run_once_sync",
]
