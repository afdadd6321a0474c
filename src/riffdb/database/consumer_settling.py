"""Settling deliveries: acknowledge, give back, extend; and the transaction that calls of many consumers share.

Whoever does not hold the newest, unexpired token of an event changes nothing and is told `StateChanged`. Each call is
whole or nothing, and one call's failure never harms its neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Literal, TypeAlias

from riffdb.core.errors import RiffError
from riffdb.core.limits import DELIVERY_ATTEMPTS_MAX
from riffdb.core.records import Batch
from riffdb.core.values import SECOND
from riffdb.database.callers import check_capability
from riffdb.database.consumer_batch import ConsumerBatch
from riffdb.database.consumer_granting import NextRequest, grant
from riffdb.database.consumer_requests import Subject, unknown_consumer
from riffdb.database.contracts import Contract
from riffdb.database.pipeline import incident
from riffdb.database.streams import Position
from riffdb.storage.protocol import Store


@dataclass(slots=True)
class SettleRequest:
    """A call about one delivery on its way through the door; `seconds` is the delay of a nack or the new lease."""

    subject: Subject
    kind: Literal["ack", "nack", "extend"]
    position: Position
    token_hash: bytes
    seconds: int = 0
    is_applied: bool = False
    error: Exception | None = None
    stale_contract: bool = False


ConsumerRequest: TypeAlias = NextRequest | SettleRequest


async def run_consumers(store: Store, contract: Contract, requests: Sequence[ConsumerRequest]) -> None:
    """Do all of the calls. An error of one is kept in it; a failure of the store is raised and concerns them all."""
    current = [request for request in requests if request.subject.contract is contract]
    for request in requests:
        request.stale_contract = request.subject.contract is not contract
    tokens = {token for request in current if (token := request.subject.caller.token_hash) is not None}
    async with store.transaction() as transaction:
        batch = await ConsumerBatch.of(transaction, {request.subject.partition for request in current})
        capabilities = await transaction.capabilities(tokens)
        for request in current:
            subject = request.subject
            try:
                if subject.caller.token_hash is not None:
                    check_capability(capabilities.get(subject.caller.token_hash), batch.time(subject.partition))
                await (grant(batch, request) if isinstance(request, NextRequest) else _settle(batch, request))
            except RiffError as error:
                request.error = error
            except Exception as error:  # noqa: BLE001  # logged with an incident id; the neighbours go on
                request.error = incident(error, f"stream {subject.stream.plan.name}")
        if mutations := batch.mutations():
            await transaction.write(Batch(mutations=mutations))


async def _settle(batch: ConsumerBatch, request: SettleRequest) -> None:
    subject = request.subject
    consumer = await batch.consumer(subject)
    if consumer is None or consumer.is_retired:
        raise unknown_consumer()
    delivery = await batch.delivery(subject, request.position)
    time = batch.time(subject.partition)
    if delivery is None or not delivery.is_leased or delivery.available_at <= time:
        return
    if not compare_digest(delivery.token_hash or b"", request.token_hash):
        return
    request.is_applied = True
    if request.kind == "ack":
        batch.put(batch.settle(consumer, delivery))
    elif request.kind == "nack" and delivery.tries >= DELIVERY_ATTEMPTS_MAX:
        batch.put(batch.bury(consumer, delivery))
    else:
        changed = delivery._replace(available_at=time + request.seconds * SECOND, revision=delivery.revision + 1)
        if request.kind == "nack":
            changed = changed._replace(is_leased=False, token_hash=None)
        batch.put_delivery(changed)
