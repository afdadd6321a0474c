"""The overlay: rows as a batch sees them, read once and then as its commands left them.

What a command changed is seen by those after it in the batch, and by the store only when the whole batch is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from riffdb.core.layout import Key, Row, Table
from riffdb.core.records import Mutation
from riffdb.storage.protocol import Transaction


@dataclass(slots=True)
class Overlay:
    """Rows as the batch sees them: read once, then as changed so far; and which of them it must write."""

    rows: dict[str, dict[Key, Row | None]] = field(default_factory=dict)
    existed: dict[tuple[str, Key], bool] = field(default_factory=dict)

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

    def mutations(self) -> list[Mutation]:
        """What must be written so that the store agrees with the overlay."""
        return [
            Mutation(table, key, self.rows[table][key], existed)
            for (table, key), existed in self.existed.items()
            if existed or self.rows[table][key] is not None
        ]
