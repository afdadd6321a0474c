"""`riffdb query run`: one query on one snapshot. `watch`: its answer, and what changes of it. `explain`: its paths.

The parameters are one JSON object; an answer names the time and the commit sequence that it was read at, and exit 7
tells that a `one` found no row. A watch lasts until it is interrupted, or until nobody reads what it prints, which it
looks at whenever it hears something.
"""

import json
import select
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from riffdb.cli.inputs import read_object
from riffdb.cli.output import OutputLostError, print_json, print_text, show_answer
from riffdb.cli.targets import Target, operator_options, target_options

if TYPE_CHECKING:
    from riffdb.client.watching import Update

_MARKS = {"insert": "+", "remove": "-", "replace": "~", "set": "="}


@click.group("query", short_help="run, watch or explain a query")
def command() -> None:
    """Run queries of the deployed contract, watch them, or see how they find their rows."""


@command.command("run")
@click.argument("name", metavar="NAME")
@click.option("--input", "text", metavar="JSON|@FILE|-", help="The parameters as a JSON object.")
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON document.")
def run(name: str, text: str | None, target: Target, as_json: bool) -> int:
    """Run the query NAME."""
    params = read_object(text, "--input")
    with target.open() as client:
        answer = client.query(name, **params)
    show_answer(answer.outcome, answer.raw, as_json=as_json)
    return 0 if answer.is_success else 7


@command.command("explain")
@click.argument("name", metavar="NAME")
@click.option("--input", "text", metavar="JSON|@FILE|-", help="Parameters, to explain their case alone.")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as one JSON document.")
def explain(name: str, text: str | None, target: Target, as_json: bool) -> int:
    """Tell how the query NAME finds its rows, in plain words and in the store's own. No row is read."""
    params = None if text is None else read_object(text, "--input")
    with target.open() as client:
        told = client.explain(name, params)
    if as_json:
        print_json(told)
    else:
        print_text(_explained(told))
    return 0


@command.command("watch")
@click.argument("name", metavar="NAME")
@click.option("--input", "text", metavar="JSON|@FILE|-", help="The parameters as a JSON object.")
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line for each event.")
def watch(name: str, text: str | None, target: Target, as_json: bool) -> int:
    """Watch the query NAME until Ctrl-C: its answer, and then what changes of it."""
    params = read_object(text, "--input")
    with target.open() as client, client.watch(name, **params) as updates:
        while (update := updates.next(with_pings=True)) is not None:
            if update.kind == "ping":
                _check_reader()
            elif as_json:
                print_json({"event": update.kind} | json.loads(update.data))
            else:
                _show(update)
    return 0


def _show(update: "Update") -> None:
    told = json.loads(update.data)
    as_of = told["as_of"]
    print_text(f"{update.kind}: {told['outcome']} as of {as_of['time']}, sequence {as_of['sequence']}")
    if "changes" in told:
        print_text("\n".join(_step_line(step) for step in told["changes"]))
    else:
        print_text(json.dumps(told["payload"], indent=2, ensure_ascii=False))


def _step_line(told: dict[str, Any]) -> str:
    place = f"[{told['index']}]" if "index" in told else ""
    return f"{_MARKS[told['op']]} {told['path']}{place} {json.dumps(told['value'], ensure_ascii=False)}"


def _check_reader() -> None:
    """End as soon as stdout is a pipe that nobody reads any more, which only a write would tell otherwise."""
    poll = select.poll()
    with suppress(OSError, ValueError, AttributeError):  # a closed one is told by the next write
        poll.register(sys.stdout.fileno(), 0)
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        raise OutputLostError("")


def _explained(told: Mapping[str, Any]) -> str:
    """The explanation as people read it."""
    lines = [f"{told['query']}, in the partition {told['partition']}"]
    for binding in told["bindings"]:
        lines += ["", f"{binding['kind']} {binding['name']} from {binding['entity']} where {binding['where']}"]
        for case in binding["cases"]:
            lines += _case_lines(binding["filters"], case)
    return "\n".join(lines)


def _case_lines(filters: Sequence[str], case: Mapping[str, Any]) -> list[str]:
    lines = []
    if filters:
        given = [f"${name}" for name in case["given"]]
        lines.append(f"  with {' and '.join(given)}:" if given else "  without a filter:")
    indent = "    " if filters else "  "
    lines += [f"{indent}{line}" for line in case["path"]]
    return lines + [f"{indent}store: {line}" for text in case["store"] for line in text.splitlines()]
