"""The command line run in this process, from its arguments to its exit code, with standard streams of its own.

It is the whole of `riffdb` but for the last step, the end of the process; what needs a process of its own is in
`processes.py`.
"""

import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from unittest.mock import patch

from riffdb.cli import run
from tests.surface.processes import Done


def run_here(*arguments: str | os.PathLike[str], stdin: bytes = b"", **environment: str) -> Done:
    """Run a command line; no other `RIFFDB_…` variable than the given ones is set."""
    out, err = _stream(), _stream()
    with ExitStack() as stack:
        stack.enter_context(_variables(environment))
        stack.enter_context(patch.object(sys, "stdin", _stream(stdin)))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        code = run([os.fspath(argument) for argument in arguments])
    return Done(code, _text(out), _text(err))


def _stream(content: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="backslashreplace", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@contextmanager
def _variables(given: Mapping[str, str]) -> Iterator[None]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RIFFDB_")}
    with patch.dict(os.environ, kept | {"COLUMNS": "80"} | dict(given), clear=True):
        yield
