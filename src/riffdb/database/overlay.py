"""The overlay: rows as a batch sees them, read once and then as its commands left them.

What a command changed is seen by those after it in the batch, and by the store only when the whole batch is written.
Changed rows are found by their values too, in columns that somebody has asked for: a guard must not walk the batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from riffdb.core.layout import Key, Row, Table
from riffdb.core.records import Mutation
from riffdb.storage.protocol import Transaction

Values = tuple[Any, ...]


class RowsByValues:
    """Rows of one table by their values in some columns; a deleted row has none."""

    def __init__(self, positions: tuple[int, ...]) -> None:
        self._positions = positions
        self._rows: dict[Values, dict[Key, Row]] = {}
        self._values: dict[Key, Values] = {}

    def put(self, key: Key, row: Row | None) -> None:
        """Let the row be `row` from now on."""
        before = self._values.pop(key, None)
        if before is not None:
            del self._rows[before][key]
        if row is not None:
            values = self._values[key] = tuple(row[position] for position in self._positions)
            self._rows.setdefault(values, {})[key] = row

    def holders(self, values: Values) -> Mapping[Key, Row]:
        """The rows with these values."""
        return self._rows.get(values, {})


@dataclass(slots=True)
class Overlay:
    """Rows as the batch sees them: read once, then as changed so far; and which of them it must write."""

    rows: dict[str, dict[Key, Row | None]] = field(default_factory=dict)
    existed: dict[tuple[str, Key], bool] = field(default_factory=dict)
    by_values: dict[str, dict[tuple[int, ...], RowsByValues]] = field(default_factory=dict)

    def of(self, table: Table) -> dict[Key, Row | None]:
        """The known rows of a table; None for one that does not exist."""
        known = self.rows.get(table.name)
        if known is None:
            known = self.rows[table.name] = {}
        return known

    async def load(self, transaction: Transaction, table: Table, keys: Sequence[Key]) -> None:
        """Read those of the rows that are not known yet."""
        known = self.of(table)
        missing = [key for key in keys if key not in known]
        if missing:
            found = await transaction.rows(table, missing)
            for key in missing:
                known[key] = found.get(key)

    def change(self, table: Table, key: Key, row: Row | None) -> None:
        """Let the row be `row` from now on."""
        known = self.of(table)
        self.existed.setdefault((table.name, key), known.get(key) is not None)
        known[key] = row
        for rows in self.by_values.get(table.name, {}).values():
            rows.put(key, row)

    def changed(self, table: Table, positions: tuple[int, ...]) -> RowsByValues:
        """The changed rows of a table by their values in these columns, kept from now on."""
        of_table = self.by_values.setdefault(table.name, {})
        found = of_table.get(positions)
        if found is None:
            found = of_table[positions] = RowsByValues(positions)
            for name, key in self.existed:
                if name == table.name:
                    found.put(key, self.rows[name][key])
        return found

    def mutations(self) -> list[Mutation]:
        """What must be written so that the store agrees with the overlay."""
        return [
            tuple.__new__(Mutation, (table, key, self.rows[table][key], existed))  # faster than its own constructor
            for (table, key), existed in self.existed.items()
            if existed or self.rows[table][key] is not None
        ]
