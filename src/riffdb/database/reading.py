"""Queries: admit, observe the time, evaluate on one snapshot, answer.

A query reads one partition and leaves no record. Its time is the store's clock, never before the partition's newest
commit, and is returned with the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from riffdb.core.keys import partition_text
from riffdb.core.values import timestamp_text
from riffdb.database.callers import Caller, check_capability, check_partition, check_query
from riffdb.database.codecs import json_text
from riffdb.database.contracts import Contract, PreparedQuery
from riffdb.engine import IndexRange
from riffdb.storage.protocol import Reader, Scan, Store


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with its parameters, admitted under one contract; `canonical` tells equal parameters apart."""

    contract: Contract
    query: PreparedQuery
    params: tuple[object, ...]
    partition: bytes

    @property
    def canonical(self) -> str:
        """The parameters as canonical JSON."""
        return self.query.params.canonical(self.params)


def admit_query(contract: Contract, caller: Caller, name: str, values: Mapping[str, object]) -> Asked:
    """What these values ask for; `RDB-E-FORBIDDEN`, `RDB-E-NOT-FOUND` or `RDB-E-INPUT` otherwise."""
    check_query(contract.plan, caller, name)
    query = contract.query(name)
    params = query.params.decode(values)
    partition = query.partition_bytes(query.compiled.partition(params))
    check_partition(caller, partition)
    return Asked(contract, query, params, partition)


async def run_query(store: Store, contract: Contract, caller: Caller, name: str, values: Mapping[str, object]) -> bytes:
    """The JSON answer of a query."""
    asked = admit_query(contract, caller, name, values)
    async with store.snapshot() as reader:
        return await read_answer(reader, asked, caller)


async def read_answer(reader: Reader, asked: Asked, caller: Caller | None) -> bytes:
    """The JSON answer in one snapshot; None asks on behalf of callers who are checked elsewhere."""
    partition, query = asked.partition, asked.query
    head = (await reader.heads({partition})).get(partition)
    now = await reader.time()
    time = now if head is None else max(now, head.time)
    if caller is not None and caller.token_hash is not None:
        check_capability((await reader.capabilities({caller.token_hash})).get(caller.token_hash), time)
    ranges = query.compiled.ranges(asked.params, time)
    rows = [await reader.scan(_scan(asked.contract, index_range)) for index_range in ranges]
    payload = query.encode(query.compiled.select(rows))
    sequence = 0 if head is None else head.sequence
    as_of = {"partition": partition_text(partition), "time": timestamp_text(time), "sequence": str(sequence)}
    return f'{{"outcome":"{query.plan.outcome}","payload":{payload},"as_of":{json_text(as_of)}}}'.encode()


def _scan(contract: Contract, wanted: IndexRange) -> Scan:
    table, index = contract.tables[wanted.entity], contract.index(wanted.entity, wanted.index)
    return Scan(table, index, wanted.prefix, wanted.lower, wanted.upper, wanted.reverse, wanted.limit)
