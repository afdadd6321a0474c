"""The async interface: `open` and `connect` as in `riffdb`, giving clients whose methods are coroutines."""

from riffdb.client.answers import Answer, QueryAnswer
from riffdb.client.calls import AsyncClient
from riffdb.client.consuming import AsyncConsumer, AsyncDelivery
from riffdb.client.opening import open_async as open
from riffdb.client.suspending import connect
from riffdb.client.watching import AsyncUpdates, Update

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncConsumer",
    "AsyncDelivery",
    "AsyncUpdates",
    "QueryAnswer",
    "Update",
    "connect",
    "open",
]
