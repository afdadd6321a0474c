"""`riffdb why`: one commit with its reasons: who, what came in, which checks it passed, what changed.

A commit is named as an answer names it, `PARTITION:SEQUENCE`. Lease operands and secrets come redacted from the
database.
"""

import json
from typing import Any

import click

from riffdb.cli.inputs import parse_commit
from riffdb.cli.output import print_json, print_text
from riffdb.cli.targets import Target, operator_options

_FACTS = ("time", "outcome", "key", "principal", "capability", "role", "ingress", "contract_version", "contract_hash")


@click.command("why", short_help="explain a commit")
@click.argument("commit", metavar="PARTITION:SEQUENCE")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(commit: str, target: Target, as_json: bool) -> int:
    """Explain the commit of PARTITION with this SEQUENCE."""
    partition, sequence = parse_commit(commit)
    with target.open() as client:
        told = client.why(partition, sequence)
    if as_json:
        print_json(told)
    else:
        _show(told)
    return 0


def _show(told: dict[str, Any]) -> None:
    print_text(f"{told['command']}, commit {told['sequence']} of {told['partition']}")
    for name in _FACTS:
        if told[name] is not None:
            print_text(f"  {name.replace('_', ' ')}: {told[name]}")
    print_text(f"  input: {_text(told['input'])}")
    for check in told["checks"]:
        print_text(f"  {check['result']:<11}  {check['check']}; else {check['outcome']}")
    for change in told["changes"]:
        revisions = f"{change['before'] or 'none'} to {change['after'] or 'none'}"
        print_text(f"  {change['entity']} {_text(change['key'])}: revision {revisions}, {_text(change['fields'])}")
    for event in told["events"]:
        print_text(f"  event {event['event']}: {_text(event['fields'])}")


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
