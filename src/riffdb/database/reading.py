"""Queries: admit, observe the time, evaluate on one snapshot, answer.

A query reads one partition and leaves no record. Its time is the store's clock, never before the partition's newest
commit, and is returned with the answer. A `one` without a row ends the reading with its own outcome. Absent: how ranges
are merged (`merging`), and what a cursor is (`cursors`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from riffdb.core.keys import partition_text
from riffdb.core.layout import Row
from riffdb.core.limits import QUERY_ENTRIES_MAX
from riffdb.core.values import timestamp_text
from riffdb.database.callers import Caller, check_capability, check_partition, check_query
from riffdb.database.codecs import json_text
from riffdb.database.contracts import Contract, PreparedQuery
from riffdb.database.cursors import Signer, context_of
from riffdb.database.merging import Order, add_values, first_rows, range_behind
from riffdb.engine import CompiledBinding, CompiledPath, new_fold
from riffdb.storage.protocol import Reader, Scan, Store

_ALL_ENTRIES = 1 << 62


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with its parameters, admitted under one contract; `canonical` tells equal parameters apart.

    `positions` are the places of the cursors, for each binding that has one.
    """

    contract: Contract
    query: PreparedQuery
    params: tuple[Any, ...]
    partition: bytes
    signer: Signer
    positions: Mapping[str, tuple[Any, ...]]

    @property
    def canonical(self) -> str:
        """The parameters as canonical JSON."""
        return self.query.params.canonical(self.params)


def admit_query(store: Store, contract: Contract, caller: Caller, name: str, values: Mapping[str, object]) -> Asked:
    """What these values ask for; `RDB-E-FORBIDDEN`, `RDB-E-NOT-FOUND`, `RDB-E-INPUT` or `RDB-E-INCARNATION`
    otherwise."""
    check_query(contract.plan, caller, name)
    query = contract.query(name)
    params = query.params.decode(values)
    partition = query.partition_bytes(query.compiled.partition(params))
    check_partition(caller, partition)
    signer = Signer(store.secret, store.incarnation)
    asked = Asked(contract, query, params, partition, signer, {})
    return replace(asked, positions=_positions(asked)) if any(part.cursor for part in query.plan.bindings) else asked


async def run_query(store: Store, contract: Contract, caller: Caller, name: str, values: Mapping[str, object]) -> bytes:
    """The JSON answer of a query."""
    asked = admit_query(store, contract, caller, name, values)
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
    outcome, values = await _evaluate(reader, asked, time)
    payload = query.encode[outcome](values)
    sequence = 0 if head is None else head.sequence
    as_of = {"partition": partition_text(partition), "time": timestamp_text(time), "sequence": str(sequence)}
    return f'{{"outcome":"{outcome}","payload":{payload},"as_of":{json_text(as_of)}}}'.encode()


async def _evaluate(reader: Reader, asked: Asked, time: int) -> tuple[str, tuple[Any, ...]]:
    """The outcome and its values."""
    compiled = asked.query.compiled
    found: list[Any] = [None] * len(compiled.bindings)
    cursors: list[str | None] = [None] * len(compiled.bindings)
    for number, binding in enumerate(compiled.bindings):
        kind, missing = binding.plan.kind, binding.plan.missing
        if kind == "many":
            found[number], cursors[number] = await _page(reader, asked, binding, time)
        elif kind in ("one", "maybe"):
            found[number] = await _single(reader, asked, binding, time)
            if found[number] is None and missing is not None and binding.missing is not None:
                return missing.name, binding.missing(asked.params, time, found, cursors)
        else:
            found[number] = await _folded(reader, asked, binding, time)
    return asked.query.plan.outcome, compiled.select(asked.params, time, found, cursors)


async def _single(reader: Reader, asked: Asked, binding: CompiledBinding, time: int) -> Row | None:
    """The one row that meets the condition, if there is one."""
    path = binding.path(asked.params)
    meets = None if path.residual is None else path.residual(asked.params, time)
    for scan in path_scans(asked, binding, path, time):
        for row in await reader.scan(replace(scan, limit=1)):
            if meets is None or meets(row):
                return row
    return None


async def _folded(reader: Reader, asked: Asked, binding: CompiledBinding, time: int) -> Any:
    """What an aggregate comes to."""
    plan, path = binding.plan, binding.path(asked.params)
    kind = asked.contract.plan.entity(plan.entity).types[plan.field or plan.by] if plan.field or plan.by else None
    fold = new_fold(asked.query.plan.name, plan, kind)
    scans = path_scans(asked, binding, path, time)
    if path.is_led:
        for scan in scans:
            await add_values(reader, [scan], binding.column, 1, fold.add)
    else:
        await add_values(reader, scans, binding.column, binding.take(asked.params), fold.add)
    return fold.result()


async def _page(reader: Reader, asked: Asked, binding: CompiledBinding, time: int) -> tuple[Sequence[Row], str | None]:
    """The rows of a `many`, in its order, and the cursor that goes on from them where something follows."""
    plan, path = binding.plan, binding.path(asked.params)
    order, scans = path.order, path_scans(asked, binding, path, time)
    is_backwards = plan.cursor_kind == "before"
    if is_backwards:
        order = tuple((place, not descends) for place, descends in order)
        scans = [replace(scan, reverse=not scan.reverse) for scan in scans]
    position = asked.positions.get(plan.name)
    if position is not None:
        behind = [range_behind(scan, order, position) for scan in scans]
        scans = [scan for scan in behind if scan is not None]
    take = binding.take(asked.params)
    meets = None if path.residual is None else path.residual(asked.params, time)
    entries_max = _ALL_ENTRIES if meets is None else QUERY_ENTRIES_MAX
    has_next = plan.name in asked.query.paged
    found = await first_rows(reader, scans, order, take + has_next, meets, entries_max) if scans else None
    if found is None:
        return [], None
    rows, last = found.rows[:take], found.cut
    if len(found.rows) > take:
        last = rows[-1]
    cursor = _cursor(asked, binding, path, last) if has_next and last is not None else None
    return rows[::-1] if is_backwards else rows, cursor


def path_scans(asked: Asked, binding: CompiledBinding, path: CompiledPath, time: int) -> list[Scan]:
    """The walks of a path, one for each range."""
    contract, entity = asked.contract, binding.plan.entity
    table, index = contract.tables[entity], contract.index(entity, path.index)
    ranges = path.ranges(asked.params, time)
    return [Scan(table, index, prefix, ranges.lower, ranges.upper, path.reverse) for prefix in ranges.prefixes]


def _positions(asked: Asked) -> dict[str, tuple[Any, ...]]:
    """The places that the cursors among the parameters name."""
    found = {}
    for binding in asked.query.compiled.bindings:
        text = None if binding.cursor is None else asked.params[binding.cursor]
        if text is not None:
            context = _context(asked, binding, binding.path(asked.params).order)
            found[binding.plan.name] = asked.signer.position(context, text, binding.plan.cursor)
    return found


def _cursor(asked: Asked, binding: CompiledBinding, path: CompiledPath, row: Row) -> str:
    position = [row[place] for place, _ in path.order]
    return asked.signer.cursor(_context(asked, binding, path.order), position)


def _context(asked: Asked, binding: CompiledBinding, order: Order) -> bytes:
    query, contract = asked.query, asked.contract
    columns = contract.plan.entity(binding.plan.entity).columns
    chosen = query.choosing.canonical(tuple(asked.params[place] for place in query.choosing_places))
    named = [(columns[place], descends) for place, descends in order]
    return context_of(contract.identities[f"queries.{query.plan.name}"], binding.plan.name, named, chosen)
