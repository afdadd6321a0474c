"""`riffdb query run`: one query on one snapshot.

The parameters are one JSON object; the answer names the time and the commit sequence that it was read at.
"""

import click

from riffdb.cli.inputs import read_object
from riffdb.cli.output import show_answer
from riffdb.cli.targets import Target, target_options


@click.group("query", short_help="run a query")
def command() -> None:
    """Run queries of the deployed contract."""


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
    return 0
