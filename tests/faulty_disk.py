"""A disk whose reads, writes or syncs fail on command: a VFS under every connection that is opened while it is there.

Run as a program it is `riffdb` on such a disk, with the fault that the file of `RIFFDB_TEST_FAULT` names for as long as
that file is there: `CALL SUFFIX ERROR`, such as `sync -wal IOError`.
"""

import os
import sys
from pathlib import Path

import apsw

from riffdb.cli import main

Fault = tuple[str, str, type[apsw.Error]]
"""The call that fails (`read`, `write`, `sync`), how the names of the files end on which it does, and with what."""
VARIABLE = "RIFFDB_TEST_FAULT"


class FaultyFile(apsw.VFSFile):
    """A file whose calls fail while its disk has a fault."""

    def __init__(self, disk: "FaultyDisk", name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(disk.base_name, name, flags)
        self.disk = disk
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802  # the name that SQLite calls
        self.disk.act("read", self.name)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # the name that SQLite calls
        self.disk.act("write", self.name)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802  # the name that SQLite calls
        self.disk.act("sync", self.name)
        super().xSync(flags)


class FaultyDisk(apsw.VFS):
    """The disk under every connection that is opened while it exists."""

    def __init__(self) -> None:
        self.base_name = apsw.vfs_names()[0]
        self.fault: Fault | None = None
        self.hits = 0
        super().__init__("faulty", self.base_name, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> FaultyFile:  # noqa: N802  # the name that SQLite calls
        return FaultyFile(self, name, flags)

    def current(self) -> Fault | None:
        """The fault that the disk has now."""
        return self.fault

    def act(self, call: str, name: str) -> None:
        """Fail if this is what fails now."""
        fault = self.current()
        if fault is not None and call == fault[0] and name.endswith(fault[1]):
            self.hits += 1
            raise fault[2]("the fault of the test")


class ToldDisk(FaultyDisk):
    """A disk whose fault stands in a file, so that another process may say it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def current(self) -> Fault | None:
        """The fault that the file names, if it is there."""
        try:
            call, suffix, error = self.path.read_text(encoding="utf-8").split()
        except FileNotFoundError:
            return None
        return call, suffix, getattr(apsw, error)


if __name__ == "__main__":
    DISK = ToldDisk(Path(os.environ.pop(VARIABLE)))
    main(sys.argv[1:])
