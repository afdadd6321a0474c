"""What an error of SQLite means to a caller, and whether the store may serve on after it.

After a failed sync the system may have dropped what was to be written and report success the next time, so the first
such error, like a failed read or a damaged page, ends the store. A full disk does not: nothing was acknowledged, and
the rolled back transaction leaves the file as it was.
"""

import apsw

from riffdb.core.errors import RiffError

_FATAL = (apsw.IOError, apsw.CorruptError, apsw.NotADBError, apsw.FormatError)
_UNAVAILABLE = (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError, apsw.NoMemError)


def reason_of(error: apsw.Error) -> str:
    """What SQLite says, with the name of the extended code where there is one."""
    if getattr(error, "extendedresult", -1) == apsw.SQLITE_IOERR_DATA:
        return "a page of the file does not match its checksum"
    name = apsw.mapping_extended_result_codes.get(getattr(error, "extendedresult", -1))
    return f"{error} ({name})" if isinstance(name, str) else str(error)


def is_fatal(error: apsw.Error) -> bool:
    """Whether the store may serve nothing more after this error."""
    return isinstance(error, _FATAL)


def end_of_store(error: apsw.Error) -> RiffError:
    """What a store that died of this error answers from then on."""
    return RiffError("RDB-E-STORAGE", f"the store failed and serves nothing more: {reason_of(error)}")


def error_of(error: apsw.Error) -> RiffError:
    """The error to raise for one of SQLite."""
    reason = reason_of(error)
    if is_fatal(error):
        return end_of_store(error)
    if isinstance(error, apsw.FullError):
        return RiffError("RDB-E-STORAGE", f"the disk is full and nothing was written; make room: {reason}")
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return RiffError("RDB-E-UNAVAILABLE", f"another program keeps the file busy; try again: {reason}")
    if isinstance(error, _UNAVAILABLE):
        return RiffError("RDB-E-UNAVAILABLE", f"the file cannot be used: {reason}")
    if isinstance(error, apsw.ConstraintError):
        return RiffError("RDB-E-INTERNAL", f"the batch contradicts the store: {reason}; nothing of it was written")
    return RiffError("RDB-E-INTERNAL", f"RiffDB used SQLite wrongly: {reason}")
