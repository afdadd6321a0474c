"""`riffdb command run`: one command, durably; exit 7 tells a declared failure.

The inputs are one JSON object; a request key that is left out is made, and shown where the outcome stays unknown, so
that the caller can ask again with it.
"""

import click
from uuid_utils.compat import uuid7

from riffdb.cli.inputs import read_object
from riffdb.cli.output import note, show_answer
from riffdb.cli.targets import Target, target_options


@click.group("command", short_help="run a command")
def command() -> None:
    """Run commands of the deployed contract."""


@command.command("run")
@click.argument("name", metavar="NAME")
@click.option("--input", "text", metavar="JSON|@FILE|-", help="The inputs as a JSON object.")
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON document.")
def run(name: str, text: str | None, target: Target, as_json: bool) -> int:
    """Run the command NAME. Without a request key in the input, a new one is made."""
    inputs = read_object(text, "--input")
    with target.open() as client:
        key_name = next((known.idempotency_key for known in client.plan().commands if known.name == name), None)
        if key_name is not None:
            inputs.setdefault(key_name, str(uuid7()))
        try:
            answer = client.command(name, **inputs)
        except KeyboardInterrupt:
            key = "" if key_name is None else f"; to learn it, ask again with the same key: {inputs[key_name]}"
            note(f"it is not known whether the command was committed{key}")
            raise
    show_answer(answer.outcome, answer.raw, as_json=as_json)
    return 0 if answer.is_success else 7
