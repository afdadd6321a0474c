"""Backups: a copy of one snapshot, with a manifest that says what it is and has the hash of its file.

The manifest is written last, and everything is durable before it; a folder without one is no backup. Absent: where
backups are kept and for how long; making a database of one, which `restoring` does.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import file_digest, sha256
from typing import Any

import msgspec

from riffdb.core.errors import RiffError
from riffdb.core.keys import partition_text
from riffdb.core.records import Head
from riffdb.core.values import timestamp_text
from riffdb.database.walks import Heads
from riffdb.storage.durable import sync
from riffdb.storage.protocol import Reader

FILE, MANIFEST = "database.sqlite", "manifest.json"
FORMAT = 1


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """What a backup is: its file with size and hash, the history it is of, and how far that had come."""

    format: int
    file: str
    bytes: int
    sha256: str
    incarnation: str
    taken_at: str
    application: str | None
    contract_version: int | None
    contract_hash: str | None
    partitions: int
    commits: int
    newest_commit: dict[str, str] | None
    checksum: str = ""
    """The SHA-256 of the manifest's text with this empty."""

    def text(self) -> str:
        """What stands in the file."""
        return json.dumps(msgspec.to_builtins(self), indent=2) + "\n"

    def sealed(self) -> "Manifest":
        """The manifest with its checksum."""
        self.checksum = ""
        self.checksum = sha256(self.text().encode()).hexdigest()
        return self


async def back_up(
    reader: Reader, incarnation: str, folder: str, progress: Callable[[int, int], None] | None
) -> dict[str, Any]:
    """Write the backup of a snapshot into a new folder, or nothing; its manifest."""
    path, manifest = os.path.join(folder, FILE), os.path.join(folder, MANIFEST)
    _make_folder(folder)
    try:
        await reader.copy(path, progress)
        made = (await _manifest(reader, incarnation, path)).sealed()
        _write_last(manifest, made.text())
    except BaseException as error:
        for part in (path, f"{path}-journal", f"{manifest}.new"):
            with suppress(OSError):
                os.unlink(part)
        with suppress(OSError):
            os.rmdir(folder)
        if isinstance(error, OSError):
            raise RiffError("RDB-E-UNAVAILABLE", f"{folder} cannot be written: {error.strerror}") from error
        raise
    told: dict[str, Any] = msgspec.to_builtins(made)
    return told


async def _manifest(reader: Reader, incarnation: str, path: str) -> Manifest:
    partitions = 0
    newest: Head | None = None
    heads = Heads(reader)
    while (head := await heads.next()) is not None:
        partitions += 1
        if newest is None or head.time > newest.time:
            newest = head
    deployed = await reader.contracts()
    return Manifest(
        format=FORMAT,
        file=FILE,
        bytes=os.path.getsize(path),
        sha256=_digest(path),
        incarnation=incarnation,
        taken_at=timestamp_text(await reader.time()),
        application=deployed[-1].application if deployed else None,
        contract_version=deployed[-1].version if deployed else None,
        contract_hash=deployed[-1].plan_hash.hex() if deployed else None,
        partitions=partitions,
        commits=await reader.commits(),
        newest_commit=None if newest is None else _place(newest),
    )


def checked_manifest(folder: str) -> Manifest:
    """The manifest of a backup whose file is what it says; `RDB-E-USAGE` where there is none, `RDB-E-VERIFY` if not."""
    try:
        with open(os.path.join(folder, MANIFEST), "rb") as file:
            content = file.read()
        manifest = msgspec.json.decode(content, type=Manifest)
    except OSError:
        raise RiffError("RDB-E-USAGE", f"{folder} is no backup, or not a whole one: it has no {MANIFEST}") from None
    except msgspec.DecodeError:
        raise RiffError("RDB-E-VERIFY", f"the {MANIFEST} of {folder} is damaged") from None
    if manifest.sealed().text().encode() != content:
        raise RiffError("RDB-E-VERIFY", f"the {MANIFEST} of {folder} is damaged")
    if manifest.format != FORMAT or manifest.file != FILE:
        raise RiffError("RDB-E-USAGE", f"{folder} was written by another version of RiffDB; restore it with that one")
    path = os.path.join(folder, FILE)
    try:
        is_whole = os.path.getsize(path) == manifest.bytes and _digest(path) == manifest.sha256
    except OSError as error:
        raise RiffError("RDB-E-VERIFY", f"{path} cannot be read: {error.strerror}") from error
    if not is_whole:
        raise RiffError("RDB-E-VERIFY", f"{path} is not the file that the manifest has the hash of; it is damaged")
    return manifest


def _place(head: Head) -> dict[str, str]:
    return {
        "partition": partition_text(head.partition),
        "sequence": str(head.sequence),
        "time": timestamp_text(head.time),
    }


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.listdir(folder):
            raise RiffError("RDB-E-USAGE", f"{folder} is not empty; a backup takes a folder of its own")
    except OSError as error:
        raise RiffError("RDB-E-UNAVAILABLE", f"{folder} cannot be made: {error.strerror}") from error


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _write_last(path: str, text: str) -> None:
    """Write the file whole or not at all."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    sync(f"{path}.new")
    os.rename(f"{path}.new", path)
    sync(os.path.dirname(path))
