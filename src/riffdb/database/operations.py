"""What operators do beside commands, and what everybody may derive: one method each, as every edge calls it.

Arguments are values as a caller gave them, in wire form; answers are JSON values. Authority is checked here, in the
transaction or snapshot that does the work. What reads much runs beside the batches, on a snapshot of its own. Absent:
how each is done.
"""

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from riffdb.core.errors import RiffError, input_error
from riffdb.core.limits import LOG_ENTRIES_MAX
from riffdb.core.values import SECOND
from riffdb.database import telling
from riffdb.database.acts import Act
from riffdb.database.backups import back_up
from riffdb.database.callers import OPERATOR, Caller, Family, check_operator, check_token, check_unrestricted
from riffdb.database.capabilities import (
    Wanted,
    capability_json,
    create_capability,
    derive_capability,
    revoke_capability,
    shown_capability,
)
from riffdb.database.contracts import Contract
from riffdb.database.doors import Door
from riffdb.database.provenance import history
from riffdb.database.rebuilding import History
from riffdb.database.retention import decode_keys_seconds, set_keys_seconds, trimmed_age
from riffdb.database.settings import Settings
from riffdb.database.trimmable import Trimmable, left_over, trimmable
from riffdb.database.trimming import Trimming
from riffdb.database.verifying import verify
from riffdb.storage.protocol import Reader, Store, Transaction

Result = TypeVar("Result")
_BACKUP_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


class Operations:
    """The operations of one database. `rouse`: let every watch look at its authority."""

    def __init__(
        self,
        store: Store,
        contract: Callable[[], Contract],
        settings: Settings,
        door: Door,
        rouse: Callable[[], None],
    ) -> None:
        self._store = store
        self._contract = contract
        self._settings = settings
        self._door = door
        self._rouse = rouse
        self.backups_folder: str | None = None
        """Where a server writes backups that it is asked for."""

    async def act(
        self,
        caller: Caller,
        perform: Callable[[Transaction], Awaitable[Result]],
        committed: Callable[[Result], None] | None = None,
    ) -> Result:
        """Do something in a transaction of its own; the caller's token is checked in it."""

        async def authorized(transaction: Transaction) -> Result:
            await check_token(transaction, caller)
            return await perform(transaction)

        work = Act(authorized, committed)
        await self._door.submit(work)
        if work.error is not None:
            raise work.error
        result: Result = work.result
        return result

    async def create(
        self,
        caller: Caller,
        *,
        role: object = None,
        operator: object = False,
        principal: object = None,
        partition: object = None,
        expires_seconds: object = None,
    ) -> dict[str, Any]:
        """A new capability with its token: `{"id","token","role","expires_at"}`."""
        check_unrestricted(caller)
        wanted = Wanted(_role_of(role, operator), principal, partition, expires_seconds)
        made = await self.act(
            caller, lambda transaction: create_capability(transaction, self._contract(), caller, wanted)
        )
        return made.to_json()

    async def derive(
        self,
        caller: Caller,
        *,
        role: object = None,
        commands: object = None,
        queries: object = None,
        streams: object = None,
        principal: object = None,
        partition: object = None,
        expires_seconds: object = None,
    ) -> dict[str, Any]:
        """A narrower capability out of the caller's own, with its token: `{"id","token","role","expires_at"}`."""
        names: tuple[tuple[Family, object], ...] = (("command", commands), ("query", queries), ("stream", streams))
        wanted = Wanted(role, principal, partition, expires_seconds, names)
        made = await self.act(
            caller, lambda transaction: derive_capability(transaction, self._contract(), caller, wanted)
        )
        return made.to_json()

    async def revoke(self, caller: Caller, *, identity: str) -> dict[str, Any]:
        """End a capability and what was derived from it; its facts afterwards."""
        check_unrestricted(caller)
        ended = await self.act(
            caller,
            lambda transaction: revoke_capability(transaction, self._contract(), caller, identity),
            lambda _: self._rouse(),
        )
        return capability_json(ended)

    async def capabilities(self, caller: Caller) -> list[dict[str, Any]]:
        """The facts of all capabilities, in order of creation."""
        check_unrestricted(caller)
        async with self._store.snapshot() as reader:
            await check_token(reader, caller)
            return [capability_json(capability) for capability in await reader.capability_list()]

    async def capability(self, caller: Caller, *, identity: str) -> dict[str, Any]:
        """The facts of one capability."""
        check_unrestricted(caller)
        async with self._store.snapshot() as reader:
            await check_token(reader, caller)
            return await shown_capability(reader, identity)

    async def history(self, caller: Caller, *, entity: str, key: Sequence[object]) -> list[dict[str, Any]]:
        """The commits that wrote a row, oldest first."""
        return await self._told(caller, lambda reader: history(reader, self._contract(), caller, entity, key))

    async def row(self, caller: Caller, *, entity: str, key: Sequence[object], at: object = None) -> dict[str, Any]:
        """A row now, or as it stood at a commit sequence or a time."""
        return await self._told_of(caller, lambda reader, known: telling.row_at(reader, known, caller, entity, key, at))

    async def why(self, caller: Caller, *, partition: object, sequence: object) -> dict[str, Any]:
        """One commit with its reasons."""
        place = telling.decode_partition(self._contract(), caller, partition)
        return await self._told_of(caller, lambda reader, known: telling.why(reader, known, place, sequence))

    async def log(
        self,
        caller: Caller,
        *,
        partition: object = None,
        command: str | None = None,
        outcome: str | None = None,
        principal: str | None = None,
        key: str | None = None,
        since: object = None,
        until: object = None,
        before: object = None,
        limit: object = None,
    ) -> list[dict[str, Any]]:
        """The newest commits that pass the filters, oldest first; of all partitions where none is named."""
        if partition is None:
            check_unrestricted(caller)
            if before is not None:
                raise input_error("before", "is a sequence of a partition; name the partition too")
        place = None if partition is None else telling.decode_partition(self._contract(), caller, partition)
        times = (telling.decode_time(since, "since"), telling.decode_time(until, "until"))
        wanted = telling.Filter(command, outcome, principal, key, *times)
        first = None if before is None else telling.decode_sequence(before, "before")
        most = _limit(limit)
        return await self._told_of(
            caller, lambda reader, known: telling.newest(reader, known, place, wanted, first, most)
        )

    async def verify(self, caller: Caller) -> dict[str, Any]:
        """Whether everything that is kept agrees: `{"ok","commits","rows","first_difference","erased","trimmed"}`."""
        check_unrestricted(caller)

        async def compare(reader: Reader) -> dict[str, Any]:
            async with self._store.scratch() as scratch:
                return (await verify(reader, scratch)).to_json()

        return await self._told(caller, compare)

    async def backup(
        self, caller: Caller, *, folder: str, progress: Callable[[int, int], None] | None = None
    ) -> dict[str, Any]:
        """Write a backup of what is committed now into a new folder of this machine; its manifest."""
        check_unrestricted(caller)

        async def copy(reader: Reader) -> dict[str, Any]:
            return await back_up(reader, self._store.incarnation, folder, progress)

        return await self._told(caller, copy)

    async def backup_here(self, caller: Caller, *, name: object) -> dict[str, Any]:
        """Write a backup under this name where the server keeps backups; `{"path","manifest"}`."""
        check_unrestricted(caller)
        if self.backups_folder is None:
            raise RiffError("RDB-E-USAGE", "this server keeps no backups; start it with --backups DIR")
        if not isinstance(name, str) or not _BACKUP_NAME.fullmatch(name):
            raise input_error("name", "must be up to 100 letters, digits, `.`, `_` and `-`, the first no `.`")
        folder = os.path.join(self.backups_folder, name)
        return {"path": folder, "manifest": await self.backup(caller, folder=folder)}

    async def retention(
        self, caller: Caller, *, keys_seconds: object = None, older_than_seconds: object = None, apply: object = False
    ) -> dict[str, Any]:
        """Let request keys be remembered so long, if that is given; and what of the log is older and can be trimmed:
        `{"keys_seconds","older_than_seconds","applied","partitions","commits","held","rows"}`. With `apply` it is."""
        check_unrestricted(caller)
        if not isinstance(apply, bool):
            raise input_error("apply", "must be true or false")
        if keys_seconds is not None:
            seconds = decode_keys_seconds(keys_seconds)

            def remember(_: None) -> None:
                self._settings.keys_seconds = seconds

            await self.act(
                caller, lambda transaction: set_keys_seconds(transaction, self._contract(), caller, seconds), remember
            )
        age = trimmed_age(self._settings, older_than_seconds)

        async def find(reader: Reader) -> list[Trimmable]:
            return await trimmable(reader, await reader.time() - age * SECOND - 1)

        trimming = Trimming(self._store, self._contract, self._door, caller, self.act)
        if apply:
            await trimming.clear(await self._told(caller, left_over))
        found = await self._told(caller, find)
        if apply:
            await trimming.run([part for part in found if part.commits])
        return {
            "keys_seconds": self._settings.keys_seconds,
            "older_than_seconds": age,
            "applied": apply,
            "partitions": trimming.partitions if apply else sum(part.commits > 0 for part in found),
            "commits": trimming.commits if apply else sum(part.commits for part in found),
            "held": sum(part.held for part in found),
            "rows": trimming.rows,
        }

    async def _told_of(self, caller: Caller, tell: Callable[[Reader, History], Awaitable[Result]]) -> Result:
        """What an operator is told of the log, which is read with all contracts that it was written under."""

        async def read(reader: Reader) -> Result:
            return await tell(reader, History(await reader.contracts()))

        return await self._told(caller, read)

    async def _told(self, caller: Caller, tell: Callable[[Reader], Awaitable[Result]]) -> Result:
        """What an operator is told, read beside the batches in one snapshot."""
        check_operator(caller)

        async def read() -> Result:
            async with self._store.snapshot() as reader:
                await check_token(reader, caller)
                return await tell(reader)

        return await self._door.beside(read)


def _role_of(role: object, operator: object) -> str:
    if not isinstance(operator, bool):
        raise input_error("operator", "must be true or false")
    if operator:
        if role is not None:
            raise input_error("role", "cannot stand beside operator; an operator may do everything")
        return OPERATOR
    if not isinstance(role, str) or not role:
        raise input_error("role", "must name a role of the contract; or say operator: true")
    return role


def _limit(value: object) -> int:
    if value is None:
        return 100
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not (isinstance(text, str) and text.isascii() and text.isdecimal() and 1 <= int(text) <= LOG_ENTRIES_MAX):
        raise input_error("limit", f"must be a number from 1 to {LOG_ENTRIES_MAX:,}")
    return int(text)
