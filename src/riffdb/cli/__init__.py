"""The command line: one module a command; `main` finds it, runs it, and turns every error into its exit code.

Data goes to stdout, all else to stderr; with `--json` stdout holds one JSON document, also when there is an error. The
table below is all that `--help` needs, so a command's module and its layers load only when it runs. Absent: any work
of its own; a command composes what the layers below offer.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from riffdb import __version__
from riffdb.cli.output import OutputLostError, note, report, report_fault
from riffdb.core import failpoints
from riffdb.core.errors import RiffError

COMMANDS = {
    "new": "make a ready application folder",
    "check": "compile a contract and show what is wrong with it",
    "explain": "explain a code",
    "fmt": "lay the sources of a contract out",
    "lock": "keep the identities of a contract, or check them",
    "graph": "draw the workflows of a contract",
    "deploy": "put a contract on a database",
    "serve": "serve a database over HTTP",
    "command": "run a command",
    "query": "run, watch or explain a query",
    "stream": "consume a stream",
    "worker": "work on a schedule's items",
    "history": "show who did what to a row",
    "get": "show a row, now or as it stood",
    "log": "show the newest commits",
    "why": "explain a commit",
    "backup": "write a backup, while others go on",
    "restore": "make a database of a backup",
    "retention": "trim the log, and say how long keys are remembered",
    "verify": "compare everything that is kept with the log",
    "capability": "create, derive, show and revoke capabilities",
}


class LazyGroup(click.Group):
    """A group whose commands are modules of this package, imported when they run."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of that name."""
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"riffdb.cli.{name}").command
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without an import."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The named command; a misspelt one is refused with the nearest name."""
        from riffdb.core.suggestions import did_you_mean

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(f"there is no command `{args[0]}`{did_you_mean(args[0], COMMANDS)}", context)
        return super().resolve_command(context, args)


EXIT_CODES = """\b
Exit codes: 0 done, 1 failed, 2 usage, 3 the contract has errors, 4 the change needs approval, 5 not found,
6 conflict, 7 a declared failure outcome, 8 not authorized, 9 unavailable or unknown, 10 verification failed,
130 interrupted."""


@click.group(cls=LazyGroup, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="riffdb %(version)s")
def root() -> None:
    """RiffDB, a workflow database: contracts compile to durable, idempotent, fenced commands."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    _open_missing_streams()
    code = run(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # whoever read it is gone, and the code says how it went
            stream.flush()
    # The HTTP server's threads may be about to enter Python; tearing it down just then would abort the process.
    os._exit(code)


def run(arguments: list[str]) -> int:
    """The exit code of a command line; whatever goes wrong is told here and not raised."""
    as_json = "--json" in arguments
    try:
        _arm_failpoint()
        code: Any = root.main(arguments, prog_name="riffdb", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        note(error.format_message())
        return error.exit_code
    except click.ClickException as error:
        return report(RiffError("RDB-E-USAGE", _plain(error)), as_json=as_json, remedy=_help_of(error))
    except RiffError as error:
        return report(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        note("interrupted")
        return 130
    except OutputLostError as lost:
        if lost.reason:
            note(f"error: stdout cannot be written: {lost.reason}")
        return 1
    except OSError as error:
        refusal = f"the system refused what RiffDB needs: {error.strerror or type(error).__name__}"
        return report(RiffError("RDB-E-UNAVAILABLE", refusal), as_json=as_json)
    except SystemExit as end:  # so click ends when nobody reads its help
        return end.code if isinstance(end.code, int) else 1
    except Exception as fault:  # noqa: BLE001  # told as ours, with its place
        return report_fault(fault, as_json=as_json)


def _arm_failpoint() -> None:
    try:
        failpoints.arm(os.environ.get(failpoints.VARIABLE))
    except ValueError as error:
        raise RiffError("RDB-E-USAGE", str(error)) from None


def _plain(error: click.ClickException) -> str:
    """What click says, in the form of our own messages."""
    message = error.format_message().removesuffix(".")
    return message if message[1:2].isupper() else message[:1].lower() + message[1:]


def _help_of(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return "" if context is None else f"see `{context.command_path} --help`"


def _open_missing_streams() -> None:
    """Fill the places of closed standard streams, so that no file of ours comes to lie under one of them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
