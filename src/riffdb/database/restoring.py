"""A database made of a backup: built whole in a folder of its own beside its place, and put there as the last step.

So there is never half of one, and none is ever written over. It is the whole copy, or what the log makes for an earlier
moment; either way it begins a history of its own, whose log tells of the restore. Absent: what a backup is.
"""

import os
from tempfile import TemporaryDirectory
from typing import Any

from riffdb.core.errors import RiffError
from riffdb.core.keys import partition_text
from riffdb.core.records import Batch
from riffdb.core.values import timestamp_text
from riffdb.database.acts import system_commit
from riffdb.database.backups import FILE, checked_manifest
from riffdb.database.callers import Caller
from riffdb.database.earlier import Earlier, restore_until
from riffdb.database.rebuilding import History
from riffdb.database.telling import decode_partition
from riffdb.database.trimming import PARTITIONS_AT_ONCE, put_in_force
from riffdb.storage.protocol import Store
from riffdb.storage.sqlite.copying import new_history, put_in_place
from riffdb.storage.sqlite.opening import open_sqlite


async def restore(
    folder: str, place: str, caller: Caller, *, until: int | None = None, commit: tuple[str, int] | None = None
) -> dict[str, Any]:
    """Make the database of a backup at a place where nothing is: `{"incarnation","from","until","ended"}`.

    `until`: as it stood at this time (µs); `commit`: right after this one, a partition in its wire form and a sequence.
    """
    place = os.path.abspath(os.path.expanduser(place))
    if os.path.lexists(place):
        raise RiffError("RDB-E-USAGE", f"{place} is there already; restore to a path where nothing is")
    if not os.path.isdir(os.path.dirname(place)):
        raise RiffError("RDB-E-USAGE", f"the folder {os.path.dirname(place)} does not exist; make it first")
    manifest = checked_manifest(folder)
    with TemporaryDirectory(prefix=f".{os.path.basename(place)}-restoring-", dir=os.path.dirname(place)) as own:
        built = os.path.join(own, "whole.db")
        new_history(os.path.join(folder, FILE), built)
        store: Store = open_sqlite(built, create=False)
        earlier = Earlier()
        try:
            moment = await _moment(store, caller, until, commit)
            if moment is not None:
                whole, built = store, os.path.join(own, "earlier.db")
                store = open_sqlite(built, secret=whole.secret)
                earlier = await _from(whole, store, moment)
            facts = {
                "from": manifest.incarnation,
                "until": None if moment is None else timestamp_text(moment),
                "ended": earlier.ended,
            }
            await _tell(store, caller, facts, earlier)
            told = {"incarnation": store.incarnation, **facts}
        finally:
            await store.close()
        put_in_place(built, place)
    return told


async def _from(whole: Store, store: Store, moment: int) -> Earlier:
    try:
        async with whole.snapshot() as reader:
            return await restore_until(reader, store, moment)
    finally:
        await whole.close()


async def _moment(store: Store, caller: Caller, until: int | None, commit: tuple[str, int] | None) -> int | None:
    """The moment that is meant (µs), None for all that there is."""
    if commit is None:
        return until
    text, sequence = commit
    async with store.snapshot() as reader:
        partition = decode_partition(History(await reader.contracts()).newest, caller, text)
        record = (await reader.records(partition, [sequence])).get(sequence)
    if record is None:
        place = f"{partition_text(partition)}:{sequence}"
        raise RiffError("RDB-E-NOT-FOUND", f"the backup has no commit {place}, or it was trimmed")
    return record.time


async def _tell(store: Store, caller: Caller, facts: dict[str, Any], earlier: Earlier) -> None:
    """Let the log of the restored history tell where it comes from, and what that brought along."""
    async with store.snapshot() as reader:
        newest = History(await reader.contracts()).newest
    for start in range(0, len(earlier.bases), PARTITIONS_AT_ONCE):
        async with store.transaction() as transaction:
            await put_in_force(transaction, newest, caller, earlier.bases[start : start + PARTITIONS_AT_ONCE])
    async with store.transaction() as transaction:
        head, record = await system_commit(transaction, newest, caller, "restore", facts, "restored")
        ended = [
            known._replace(revoked_at=record.time)
            for known in await transaction.capability_list()
            if known.id in facts["ended"]
        ]
        await transaction.write(Batch(heads=[head], records=[record], capabilities=ended))
