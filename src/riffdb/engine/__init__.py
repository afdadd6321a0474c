"""Pure evaluation: a plan becomes one generated function per command and per query.

`compile_command` and `compile_query` write Python source over tuple rows and execute it once; the caller keeps what
they give. The same inputs, rows, time and sequence always give the same `Evaluation`. Absent: clock, storage,
randomness, authority, and any check that the compiler has already made.
"""

from riffdb.engine.commands import compile_command
from riffdb.engine.evaluation import (
    Change,
    CompiledCommand,
    CompiledQuery,
    Evaluation,
    Guard,
    Guarded,
    IndexRange,
    Rows,
)
from riffdb.engine.queries import compile_query

__all__ = [
    "Change",
    "CompiledCommand",
    "CompiledQuery",
    "Evaluation",
    "Guard",
    "Guarded",
    "IndexRange",
    "Rows",
    "compile_command",
    "compile_query",
]
