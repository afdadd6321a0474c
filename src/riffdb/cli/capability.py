"""`riffdb capability`: create and revoke the tokens by which servers know their callers.

A token is printed once, on stdout, and kept nowhere; its id, which is no secret, is what `revoke` takes. Only operators
do this: whoever opens the file, or the holder of an operator's capability.
"""

import re

import click

from riffdb.cli.output import note, print_json, print_text
from riffdb.cli.targets import Target, operator_options
from riffdb.core.errors import RiffError

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LIFETIME = re.compile(r"([1-9][0-9]{0,8})([smhd])")


@click.group("capability", short_help="create and revoke capabilities")
def command() -> None:
    """Create and revoke capabilities."""


@command.command("create")
@click.option("--role", metavar="ROLE", help="The role of the contract that it grants.")
@click.option("--operator", is_flag=True, help="Grant everything instead of a role.")
@click.option("--partition", metavar="P", help="Restrict it to this partition.")
@click.option("--expires", metavar="TIME", help="End it after this time, such as 30d, 12h, 15m.")
@click.option("--name", "principal", metavar="PRINCIPAL", help="Who holds it, as provenance shows it.")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def create(
    role: str | None,
    operator: bool,
    partition: str | None,
    expires: str | None,
    principal: str | None,
    target: Target,
    as_json: bool,
) -> int:
    """Create a capability and print its token, which is shown this once."""
    if (role is None) == (not operator):
        raise click.UsageError("give one of --role ROLE and --operator")
    if role == "":  # below, no role means an operator, which nobody may become by an unset variable of a script
        raise click.UsageError("--role takes the name of a role of the contract")
    with target.open() as client:
        created = client.create_capability(
            role=role or "", principal=principal, partition=partition, lifetime_seconds=_lifetime_seconds(expires)
        )
    if as_json:
        print_json(created)
    else:
        note(f"capability {created['id']} for {created['role'] or 'an operator'}; its token is shown this once")
        print_text(created["token"])
    return 0


@command.command("revoke")
@click.argument("identity", metavar="ID")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def revoke(identity: str, target: Target, as_json: bool) -> int:
    """End the capability ID; nothing sealed afterwards uses its token."""
    with target.open() as client:
        revoked = client.revoke_capability(identity)
    if as_json:
        print_json(revoked)
    else:
        note(f"capability {revoked['id']} ended at {revoked['revoked_at']}")
    return 0


def _lifetime_seconds(text: str | None) -> int | None:
    if text is None:
        return None
    match = _LIFETIME.fullmatch(text)
    if match is None:
        raise RiffError("RDB-E-USAGE", "--expires takes a number and a unit: 15m, 12h, 30d")
    return int(match[1]) * _SECONDS[match[2]]
