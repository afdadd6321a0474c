"""RiffDB, a workflow database: contracts compile to durable, idempotent, fenced commands.

`riffdb.open` opens a database in this process, `riffdb.connect` reaches a server; `riffdb.aio` has the same for
coroutines. Importing this package is cheap: the names below load their layers at first use, so that
`riffdb --help` and every short command start at once.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from riffdb import aio
    from riffdb.client.answers import Answer, Commit, QueryAnswer, WorkflowSuccessorRevision
    from riffdb.client.blocking import connect
    from riffdb.client.calls import AsyncClient, Client
    from riffdb.client.consuming import AsyncConsumer, AsyncDelivery, Consumer, Delivery
    from riffdb.client.opening import open
    from riffdb.client.watching import AsyncUpdates, Update, Updates
    from riffdb.core.errors import RiffError

__version__ = "0.1.0"

_PLACES = {
    "Answer": "riffdb.client.answers",
    "AsyncClient": "riffdb.client.calls",
    "AsyncConsumer": "riffdb.client.consuming",
    "AsyncDelivery": "riffdb.client.consuming",
    "AsyncUpdates": "riffdb.client.watching",
    "Client": "riffdb.client.calls",
    "Commit": "riffdb.client.answers",
    "Consumer": "riffdb.client.consuming",
    "Delivery": "riffdb.client.consuming",
    "QueryAnswer": "riffdb.client.answers",
    "RiffError": "riffdb.core.errors",
    "Update": "riffdb.client.watching",
    "Updates": "riffdb.client.watching",
    "WorkflowSuccessorRevision": "riffdb.client.answers",
    "connect": "riffdb.client.blocking",
    "open": "riffdb.client.opening",
}

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncConsumer",
    "AsyncDelivery",
    "AsyncUpdates",
    "Client",
    "Commit",
    "Consumer",
    "Delivery",
    "QueryAnswer",
    "RiffError",
    "Update",
    "Updates",
    "WorkflowSuccessorRevision",
    "aio",
    "connect",
    "open",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "aio":
        return import_module("riffdb.aio")
    if name not in _PLACES:
        raise AttributeError(f"module 'riffdb' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
