"""Which commits may go: the oldest of a partition, below all that anybody may still ask for.

That is the time for which keys are remembered, and of each consumer what it has not read, not settled, or holds as a
dead letter. The system partition is never trimmed. Absent: trimming.
"""

from dataclasses import dataclass, replace
from typing import Any

from riffdb.core.keys import SYSTEM_PARTITION
from riffdb.core.layout import Table
from riffdb.core.limits import CONSUMERS_MAX, U64_MAX
from riffdb.database.bases import BASE_ROWS, BASES, Base, base_of
from riffdb.database.consumer_rows import BY_RETIRED, CONSUMERS, DEAD_LETTERS, DELIVERIES, ConsumerRow
from riffdb.database.walks import Heads
from riffdb.storage.protocol import Reader, Scan


@dataclass(frozen=True, slots=True)
class Trimmable:
    """The oldest commits of a partition that may go: those behind `base`, up to and with `through`. `held` more are
    old enough, and kept for consumers."""

    partition: bytes
    base: Base | None
    through: int
    held: int

    @property
    def after(self) -> int:
        """The last commit that went before."""
        return 0 if self.base is None else self.base.through

    @property
    def generation(self) -> int:
        """The generation of the base, 0 where there is none."""
        return 0 if self.base is None else self.base.generation

    @property
    def commits(self) -> int:
        """How many may go."""
        return self.through - self.after


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What an interrupted run has left of a partition: rows of generations that are not in force, and commits up to and
    with `through` that a base stands for."""

    partition: bytes
    generations: tuple[int, ...]
    through: int


async def left_over(reader: Reader) -> list[LeftOver]:
    """What of trimmed partitions is still there and should not be."""
    found = []
    for partition in await _partitions(reader, BASES) | await _partitions(reader, BASE_ROWS):
        base = await base_of(reader, partition)
        others = await _values(reader, Scan(BASE_ROWS, None, (partition,), limit=1))
        others.discard(0 if base is None else base.generation)
        oldest = await reader.log(partition, 0, 1)
        is_left = base is not None and bool(oldest) and oldest[0].sequence <= base.through
        if others or is_left:
            found.append(LeftOver(partition, tuple(others), base.through if base is not None and is_left else 0))
    return found


async def _partitions(reader: Reader, table: Table) -> set[bytes]:
    return await _values(reader, Scan(table, None, (), limit=1))


async def _values(reader: Reader, scan: Scan) -> set[Any]:
    """The values of the column that follows the prefix of a walk by the key."""
    found: set[Any] = set()
    place = scan.table.key[len(scan.prefix)]
    while rows := await reader.scan(scan):
        found.add(rows[0][place])
        scan = replace(scan, lower=(rows[0][place], False))
    return found


async def trimmable(reader: Reader, until: int) -> list[Trimmable]:
    """What may go of all partitions that has a time of at most `until` (µs)."""
    found = []
    heads = Heads(reader, SYSTEM_PARTITION)
    while (head := await heads.next()) is not None:
        base = await base_of(reader, head.partition)
        gone = 0 if base is None else base.through
        old = await _last_until(reader, head.partition, gone, head.sequence, until)
        if old > gone:
            through = max(min(old, await settled_through(reader, head.partition)), gone)
            found.append(Trimmable(head.partition, base, through, old - through))
    return found


async def _last_until(reader: Reader, partition: bytes, low: int, high: int, until: int) -> int:
    """The last commit, above `low` and up to `high`, with a time of at most `until`; `low` if there is none."""
    while low < high:
        middle = (low + high + 1) // 2
        if (await reader.records(partition, [middle]))[middle].time <= until:
            low = middle
        else:
            high = middle - 1
    return low


async def settled_through(reader: Reader, partition: bytes) -> int:
    """The last commit of which no consumer can ask for an event again, save by a seek."""
    lowest = []
    consumers = await reader.scan(Scan(CONSUMERS, BY_RETIRED, (partition, False), limit=CONSUMERS_MAX))
    for consumer in map(ConsumerRow._make, consumers):
        lowest.append(consumer.read_sequence)
        for table in (DELIVERIES, DEAD_LETTERS):
            for row in await reader.scan(Scan(table, None, (partition, consumer.id), limit=1)):
                lowest.append(row[2])
    return min(lowest) - 1 if lowest else U64_MAX
