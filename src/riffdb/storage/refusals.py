"""The errors that every store raises alike.

A contradiction is a fault of ours (the batch does not fit the rows), told as such so that nothing of it is kept. No
message holds a value of a row.
"""

from riffdb.core.errors import RiffError


def contradiction(what: str) -> RiffError:
    """The refusal of a batch that does not fit what the store holds."""
    return RiffError("RDB-E-INTERNAL", f"the batch contradicts the store: {what}; nothing of it was written")


def unknown_table(name: str) -> RiffError:
    """The refusal to read or write a table that was never prepared."""
    return RiffError("RDB-E-INTERNAL", f"the store has no table {name}; nothing was read or written")


def layout_refused(table: str, what: str) -> RiffError:
    """The refusal to lay a table out anew over its rows."""
    return RiffError("RDB-E-APPROVAL", f"table {table}: {what}; the rows that are there need a migration")


def index_gone() -> RiffError:
    """The refusal of a walk over an index that was dropped after its caller had asked for it."""
    return RiffError("RDB-E-CONTENTION", "the contract changed while the query was on its way; ask again")


def outcome_unknown(reason: str) -> RiffError:
    """The refusal to say whether a commit was made at which the store failed."""
    return RiffError(
        "RDB-E-OUTCOME-UNKNOWN",
        f"{reason}; it is not known whether this was committed; a command is settled by its key and input, sent again",
    )


def files_lost(path: str) -> RiffError:
    """What a store answers from then on whose file is not in its place any more."""
    return RiffError(
        "RDB-E-STORAGE",
        f"the store serves nothing more: {path} was moved, deleted or replaced while it was open; put the file back, "
        "with its -wal file, and start again",
    )


def store_closed() -> RiffError:
    """The refusal of a store that was closed."""
    return RiffError("RDB-E-UNAVAILABLE", "the store is closed; open it again")


def forked() -> RiffError:
    """The refusal to use a file from a process that inherited it."""
    return RiffError("RDB-E-USAGE", "the database was opened before this process was forked; open it after the fork")


def ended() -> AssertionError:
    """The fault of using a transaction or snapshot outside its block."""
    return AssertionError("a transaction or snapshot was used outside its block")


def write_failed() -> AssertionError:
    """The fault of leaving a transaction's block in peace although its write failed."""
    return AssertionError("a transaction whose write failed was to be committed; it was rolled back")
