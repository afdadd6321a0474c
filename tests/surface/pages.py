"""The blocks that a page prints, and a reader who types them: files are written, commands run in real terminals.

A block's first line says what it is. `console` is what a terminal shows: lines after `$ ` are typed, the others are
what must be printed, where `…` stands for anything in a line, and alone on a line for any lines. With a name, as in
`console server`, it is another terminal, whose last command goes on running until `^C` is typed there. Any other
language with a name is a file. An unnamed `python` is a script. A server listens on a free port instead of the one
that the page shows.
"""

import codecs
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 120
SHOWN_ADDRESS = "127.0.0.1:7433"
END = "--- end of a command:"
_FENCE = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    place: str
    language: str
    name: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    title = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page.name
    return [
        Block(
            f"{title}:{text.count(chr(10), 0, match.start()) + 1}",
            match["language"],
            match["name"] or "",
            match["text"],
        )
        for match in _FENCE.finditer(text)
    ]


class Reader:
    """Someone who does what a page says, in one folder, from top to bottom."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._terminals: dict[str, _Terminal] = {}
        self._address = SHOWN_ADDRESS

    def follow(self, page: Path) -> None:
        """Do all that the page says; an `AssertionError` tells the place where it does not hold."""
        for block in blocks_of(page):
            match block.language:
                case "console":
                    self._type(block)
                case "python" if not block.name:
                    self._run_script(block)
                case _ if block.name:
                    self._place(block.name).write_text(self._here(block.text), encoding="utf-8")

    def end(self) -> None:
        """End every terminal and what still runs in it."""
        for terminal in self._terminals.values():
            terminal.end()

    def _here(self, text: str) -> str:
        return text.replace(SHOWN_ADDRESS, self._address)

    def _place(self, name: str) -> Path:
        place = self._folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def _run_script(self, block: Block) -> None:
        done = subprocess.run(
            [sys.executable, "-c", self._here(block.text)],
            cwd=self._folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, f"{block.place}\n{done.stdout}{done.stderr}"

    def _type(self, block: Block) -> None:
        terminal = self._terminals.get(block.name)
        if terminal is None:
            terminal = self._terminals[block.name] = _Terminal(self._folder)
        entries = list(_entries(block.text))
        for i, (typed, shown) in enumerate(entries):
            goes_on = block.name != "" and i == len(entries) - 1 and typed != "^C"
            if typed == "^C":
                terminal.interrupt()
            else:
                terminal.type(self._here(typed))
            printed = terminal.wait_for(_pattern(shown)) if goes_on else terminal.wait_for_end()
            found = _pattern(shown).fullmatch(printed)
            assert found, f"{block.place}: {typed}\n--- the page shows\n{shown}\n--- printed\n{printed}"
            self._address = next((address for address in found.groups() if address), self._address)


def environment() -> dict[str, str]:
    """The variables of a reader: the commands of this installation first, no variable of RiffDB but where to listen."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RIFFDB_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return kept | {"PATH": path, "RIFFDB_LISTEN": "127.0.0.1:0", "PYTHONUNBUFFERED": "1"}


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """What is typed, with the lines that the page shows after it; an open quote or a last backslash goes on."""
    typed, shown = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ ") or line == "^C":
            if typed:
                yield typed, "\n".join(shown)
            typed, shown = line.removeprefix("$ "), []
        elif (typed.endswith("\\") or typed.count("'") % 2) and not shown:
            typed += f"\n{line}"
        else:
            assert typed, f"nothing is typed before {line!r}"
            shown.append(line)
    if typed:
        yield typed, "\n".join(shown)


def _pattern(shown: str) -> re.Pattern[str]:
    """What may be printed; each group is the address at which a server listens."""
    lines = []
    for line in shown.splitlines():
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            pieces = ".*?".join(re.escape(piece) for piece in line.split("…"))
            lines.append(pieces.replace(re.escape(SHOWN_ADDRESS), r"(127\.0\.0\.1:\d+)") + r"\n")
    return re.compile("".join(lines))


# A job in the background ignores Ctrl-C and passes that on; a terminal's shell does not.
_SHELL = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("bash", ["bash", "--noprofile", "--norc", sys.argv[1]])
"""


class _Terminal:
    """A shell that is typed into; what its commands print is read until they end, or until what is awaited stands."""

    def __init__(self, folder: Path) -> None:
        # What is typed comes through a pipe of its own: a command that reads stdin must not get the next ones.
        typed, self._keyboard = os.pipe()
        self._shell = subprocess.Popen(
            [sys.executable, "-c", _SHELL, f"/dev/fd/{typed}"],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[typed],
        )
        os.close(typed)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._unread = ""
        self._write("trap : INT\n")

    def type(self, command: str) -> None:
        """Type a command; the shell tells its end on a line of its own, and keeps its exit code for `$?`."""
        self._write(f'{command}\n_code=$?; printf "\\n{END}\\n"; (exit $_code)\n')

    def interrupt(self) -> None:
        """Type Ctrl-C: the command that runs gets SIGINT, the shell goes on."""
        os.killpg(self._shell.pid, signal.SIGINT)

    def wait_for(self, pattern: re.Pattern[str]) -> str:
        """What is printed, as soon as it is all that is awaited."""
        while not pattern.fullmatch(self._unread) and END not in self._unread:
            self._read()
        printed, self._unread = self._unread, ""
        return printed

    def wait_for_end(self) -> str:
        """What is printed until the command ends."""
        while f"\n{END}\n" not in self._unread:
            self._read()
        printed, _, self._unread = self._unread.partition(f"\n{END}\n")
        return f"{printed}\n" if printed and not printed.endswith("\n") else printed

    def end(self) -> None:
        """End the shell and everything that was started in it."""
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        assert self._shell.stdout is not None
        self._shell.stdout.close()
        os.close(self._keyboard)

    def _write(self, text: str) -> None:
        os.write(self._keyboard, text.encode())

    def _read(self) -> None:
        assert self._shell.stdout is not None
        ready, _, _ = select.select([self._shell.stdout], [], [], PATIENCE_SECONDS)
        assert ready, f"nothing more is printed; so far:\n{self._unread}"
        piece = os.read(self._shell.stdout.fileno(), 65_536)
        assert piece, f"the shell ended; it printed:\n{self._unread}"
        self._unread += self._decoder.decode(piece)
