"""Generated text: lines with indentation, names for intermediate values, and its execution.

Names of the contract stand in comments and in quoted texts alone, never as identifiers, so that no contract can write
code. The functions run without built-ins; what they may call is handed to them by name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from riffdb.core.errors import RiffError


class Source:
    """The text of one command or query while it is being written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._temporaries = 0

    def line(self, text: str = "") -> None:
        """Add a line at the present indentation."""
        self._lines.append("    " * self._depth + text if text else "")

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Add an opening line and indent what is added inside the `with`."""
        self.line(opening)
        self._depth += 1
        yield
        self._depth -= 1

    def temporary(self) -> str:
        """A name for an intermediate value, unused so far."""
        self._temporaries += 1
        return f"t{self._temporaries - 1}"

    @property
    def text(self) -> str:
        """Everything written so far."""
        return "\n".join(self._lines) + "\n"


def note(text: str) -> str:
    """A comment; whatever could end it is replaced."""
    return "# " + re.sub(r"[^\w .,:;=()-]", "?", text)


def numbered(names: Sequence[str]) -> str:
    """Names with their positions, for a comment."""
    return ", ".join(f"{number} {name}" for number, name in enumerate(names))


def row_of(parts: list[str]) -> str:
    """The source of a tuple."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def execute(name: str, source: str, offered: Mapping[str, object]) -> dict[str, Any]:
    """Run a generated text, which may use the offered names, and give the names that it defines with them.

    Python refuses what nests too deeply; that is `RDB-E-CONTRACT`, since a contract can ask for it.
    """
    namespace: dict[str, Any] = {"__builtins__": {}, **offered}
    try:
        code = compile(source, f"<riffdb {name}>", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        if isinstance(error, SyntaxError) and "nested" not in error.msg:
            raise
        raise RiffError(
            "RDB-E-CONTRACT",
            f"{name}: an expression nests too deeply to be compiled; give a part of it a computed field of its own",
        ) from error
    exec(code, namespace)
    return namespace
