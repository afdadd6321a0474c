"""Pure evaluation: a plan becomes one generated function per command, per query and per stream.

The `compile_…` functions write Python source over tuple rows and execute it once; the caller keeps what
they give. The same inputs, rows, time and sequence always give the same `Evaluation`. Absent: clock, storage,
randomness, authority, and any check that the compiler has already made.
"""

from riffdb.engine.commands import compile_command
from riffdb.engine.evaluation import (
    Change,
    CompiledBinding,
    CompiledCommand,
    CompiledPath,
    CompiledQuery,
    CompiledStream,
    Evaluation,
    Guard,
    Guarded,
    Ranges,
    Rows,
)
from riffdb.engine.folding import Fold, new_fold
from riffdb.engine.queries import compile_query
from riffdb.engine.streams import compile_stream

__all__ = [
    "Change",
    "CompiledBinding",
    "CompiledCommand",
    "CompiledPath",
    "CompiledQuery",
    "CompiledStream",
    "Evaluation",
    "Fold",
    "Guard",
    "Guarded",
    "Ranges",
    "Rows",
    "compile_command",
    "compile_query",
    "compile_stream",
    "new_fold",
]
