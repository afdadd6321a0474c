"""Queries: admit, observe the time, evaluate on one snapshot, answer.

A query reads one partition and leaves no record. Its time is the store's clock, never before the partition's newest
commit, and is returned with the answer.
"""

from collections.abc import Mapping

from riffdb.core.keys import partition_text
from riffdb.core.values import timestamp_text
from riffdb.database.callers import Caller, check_capability, check_partition, check_query
from riffdb.database.codecs import json_text
from riffdb.database.contracts import Contract
from riffdb.engine import IndexRange
from riffdb.storage.protocol import Scan, Store


async def run_query(store: Store, contract: Contract, caller: Caller, name: str, values: Mapping[str, object]) -> bytes:
    """The JSON answer of a query."""
    check_query(contract.plan, caller, name)
    query = contract.query(name)
    params = query.params.decode(values)
    partition = query.partition_bytes(query.compiled.partition(params))
    check_partition(caller, partition)
    async with store.snapshot() as reader:
        head = (await reader.heads({partition})).get(partition)
        now = await reader.time()
        time = now if head is None else max(now, head.time)
        if caller.token_hash is not None:
            check_capability((await reader.capabilities({caller.token_hash})).get(caller.token_hash), time)
        rows = [await reader.scan(_scan(contract, index_range)) for index_range in query.compiled.ranges(params, time)]
    payload = query.encode(query.compiled.select(rows))
    sequence = 0 if head is None else head.sequence
    as_of = {"partition": partition_text(partition), "time": timestamp_text(time), "sequence": str(sequence)}
    return f'{{"outcome":"{query.plan.outcome}","payload":{payload},"as_of":{json_text(as_of)}}}'.encode()


def _scan(contract: Contract, wanted: IndexRange) -> Scan:
    table, index = contract.tables[wanted.entity], contract.index(wanted.entity, wanted.index)
    return Scan(table, index, wanted.prefix, wanted.lower, wanted.upper, wanted.reverse, wanted.limit)
