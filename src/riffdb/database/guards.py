"""Rules that only the store can tell: uniques, references, and rows found by a unique.

All is judged over rows as they would be: those of the store, as the batch changed them so far, as the command itself
would leave them. So values may be exchanged within one command, and a neighbour's change counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from riffdb.core.errors import RiffError
from riffdb.core.layout import Index, Key, Row, Table
from riffdb.database.admission import CommandRequest
from riffdb.database.contracts import Contract
from riffdb.database.overlay import Overlay, RowsByValues
from riffdb.engine import Evaluation, Guard, Guarded
from riffdb.storage.protocol import Scan, Transaction

_FIRST_LOOK = 8

Changes = Mapping[str, Mapping[Key, Row | None]]


async def held(transaction: Transaction, overlay: Overlay, request: CommandRequest, guarded: Guarded) -> Evaluation:
    """What comes after the guards if all of them hold, else the failure of the first that does not."""
    changes: dict[str, dict[Key, Row | None]] = {}
    for slot, key, _, after in guarded.changes:
        changes.setdefault(request.command.tables[slot].name, {})[key] = after
    sight = _Sight(transaction, overlay, changes)
    for guard in guarded.guards:
        if await _is_broken(sight, request.contract, guard):
            return guard.failure()
    if isinstance(guarded.evaluation, RiffError):
        raise guarded.evaluation
    return guarded.evaluation


async def found_by(
    transaction: Transaction, overlay: Overlay, table: Table, index: Index | None, values: tuple[Any, ...]
) -> Row | None:
    """The row with these values in a unique; the overlay knows it from then on."""
    rows = await _Sight(transaction, overlay, {}).holders(table, index, values)
    if not rows:
        return None
    overlay.of(table)[table.key_of(rows[0])] = rows[0]
    return rows[0]


async def _is_broken(sight: "_Sight", contract: Contract, guard: Guard) -> bool:
    entity = contract.plan.entity(guard.entity)
    if guard.kind == "unique":
        table = contract.tables[guard.entity]
        return bool(await sight.holders(table, contract.index(guard.entity, guard.rule), guard.values, guard.key))
    reference = next(rule for rule in entity.references if rule.name == guard.rule)
    target = contract.tables[reference.entity], contract.index(reference.entity, reference.unique)
    if guard.kind == "left":
        way = entity.way_in(reference.columns)
        assert way is not None, "a row that is referenced is deleted only where the reference can be looked up"
        name, order = way
        values = tuple(guard.values[reference.columns.index(column)] for column in order)
        if not await sight.holders(contract.tables[guard.entity], contract.index(guard.entity, name), values):
            return False
    return not await sight.holders(*target, guard.values)


class _Sight:
    """Rows as they would be after the command: its own, then those that the batch changed, then the store's."""

    def __init__(self, transaction: Transaction, overlay: Overlay, changes: Changes) -> None:
        self._transaction, self._overlay, self._changes = transaction, overlay, changes
        self._own: dict[tuple[str, tuple[int, ...]], RowsByValues] = {}

    async def holders(
        self, table: Table, index: Index | None, values: tuple[Any, ...], besides: Key | None = None
    ) -> list[Row]:
        """Rows with these values in the first columns of an index (None: the key), `besides` one that the command
        changed itself; some, if there are any."""
        own, batch = self._changes.get(table.name, {}), self._overlay.existed
        columns = table.key if index is None else index.columns
        if index is None and len(values) == len(columns):
            known = own if values in own else self._overlay.of(table)
            if values in known:
                row = known[values]
                return [] if row is None else [row]
        positions = columns[: len(values)]
        found = [row for key, row in self._own_rows(table, positions).holders(values).items() if key != besides]
        changed = self._overlay.changed(table, positions).holders(values)
        found.extend(row for key, row in changed.items() if key not in own)
        return found or await self._stored(
            Scan(table, index, values, limit=_FIRST_LOOK), lambda key: key in own or (table.name, key) in batch
        )

    def _own_rows(self, table: Table, positions: tuple[int, ...]) -> RowsByValues:
        rows = self._own.get((table.name, positions))
        if rows is None:
            rows = self._own[table.name, positions] = RowsByValues(positions)
            for key, row in self._changes.get(table.name, {}).items():
                rows.put(key, row)
        return rows

    async def _stored(self, scan: Scan, is_outdated: Callable[[Key], bool]) -> list[Row]:
        """Rows of the store that still are as it has them; further looks are longer, since most need one."""
        while True:
            rows = await self._transaction.scan(scan)
            found = [row for row in rows if not is_outdated(scan.table.key_of(row))]
            if found or len(rows) < scan.limit:
                return found
            scan = replace(scan, limit=scan.limit * 16)
