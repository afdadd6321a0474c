"""A process that commits and tells each acknowledgement on its standard output, to be killed at any point.

`python -m tests.conformance.committing DATABASE COUNT` prints `open`, then the sequence of every batch that was
acknowledged, then `done`, and waits for its standard input to end. `RIFFDB_FAILPOINT` says where it dies on its own.
"""

import os
import sys

from riffdb.core.failpoints import VARIABLE, arm
from riffdb.core.records import Batch
from riffdb.core.stepping import step
from riffdb.storage import open_store
from riffdb.storage.protocol import Store
from tests.conformance.stores import head, record

PARTITION = b"\x02p"


async def commit(store: Store) -> int:
    """Commit the next sequence; it is acknowledged when this returns."""
    async with store.transaction() as transaction:
        known = (await transaction.heads([PARTITION])).get(PARTITION)
        sequence = 1 if known is None else known.sequence + 1
        await transaction.write(Batch([head(PARTITION, sequence)], [record(PARTITION, sequence, f"k{sequence}")]))
    return sequence


def main(path: str, count: int) -> None:
    """Open, commit `count` times, wait."""
    arm(os.environ.get(VARIABLE))
    store = step(open_store(f"sqlite:{path}"))
    print("open", flush=True)
    for _ in range(count):
        print(step(commit(store)), flush=True)
    print("done", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
