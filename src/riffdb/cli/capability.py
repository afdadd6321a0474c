"""`riffdb capability`: the tokens by which servers know their callers: create, derive, list, show, revoke.

A token is printed once, on stdout, and kept nowhere; its id, which is no secret, is what `show` and `revoke` take. Only
operators do this: whoever opens the file, or the holder of an operator's capability. Any holder derives from his own.
"""

from typing import Any

import click

from riffdb.cli.inputs import parse_seconds
from riffdb.cli.output import note, print_json, print_text
from riffdb.cli.targets import Target, operator_options


@click.group("capability", short_help="create, derive, show and revoke capabilities")
def command() -> None:
    """Create, derive, show and revoke capabilities."""


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
            role=role or "",
            principal=principal,
            partition=partition,
            lifetime_seconds=parse_seconds(expires, "--expires"),
        )
    return _show_created(created, as_json=as_json)


@command.command("derive")
@click.option("--role", metavar="ROLE", help="The role that it grants; for operators.")
@click.option("--command", "commands", metavar="NAME", multiple=True, help="Keep it to this command; may be repeated.")
@click.option("--query", "queries", metavar="NAME", multiple=True, help="Keep it to this query; may be repeated.")
@click.option("--stream", "streams", metavar="NAME", multiple=True, help="Keep it to this stream; may be repeated.")
@click.option("--partition", metavar="P", help="Restrict it to this partition.")
@click.option("--expires", metavar="TIME", help="End it after this time, such as 30d, 12h, 15m.")
@click.option("--name", "principal", metavar="PRINCIPAL", help="Who holds it; else whoever derives it.")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def derive(
    role: str | None,
    commands: tuple[str, ...],
    queries: tuple[str, ...],
    streams: tuple[str, ...],
    partition: str | None,
    expires: str | None,
    principal: str | None,
    target: Target,
    as_json: bool,
) -> int:
    """Derive a narrower capability from one's own and print its token, which is shown this once."""
    lifetime_seconds = parse_seconds(expires, "--expires")
    with target.open() as client:
        created = client.derive_capability(
            role=role,
            commands=commands or None,
            queries=queries or None,
            streams=streams or None,
            principal=principal,
            partition=partition,
            lifetime_seconds=lifetime_seconds,
        )
    return _show_created(created, as_json=as_json)


@command.command("list")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a line.")
def list_capabilities(target: Target, as_json: bool) -> int:
    """List all capabilities, oldest first; never their tokens."""
    with target.open() as client:
        found = client.capabilities()
    for capability in found:
        if as_json:
            print_json(capability)
        else:
            end = f"ended {capability['revoked_at']}" if capability["revoked_at"] else "not ended"
            who = f"{capability['role'] or 'operator'}  {capability['principal']}"
            print_text(f"{capability['id']}  {who}  expires {capability['expires_at'] or 'never'}  {end}")
    return 0


@command.command("show")
@click.argument("identity", metavar="ID")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(identity: str, target: Target, as_json: bool) -> int:
    """Show the facts of the capability ID; never its token."""
    with target.open() as client:
        found = client.capability(identity)
    if as_json:
        print_json(found)
    else:
        for name, value in found.items():
            print_text(f"{name.replace('_', ' ')}: {'none' if value is None else value}")
    return 0


@command.command("revoke")
@click.argument("identity", metavar="ID")
@operator_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def revoke(identity: str, target: Target, as_json: bool) -> int:
    """End the capability ID and all that were derived from it; nothing sealed afterwards uses their tokens."""
    with target.open() as client:
        revoked = client.revoke_capability(identity)
    if as_json:
        print_json(revoked)
    else:
        note(f"capability {revoked['id']} ended at {revoked['revoked_at']}")
    return 0


def _show_created(created: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(created)
    else:
        note(f"capability {created['id']} for {created['role'] or 'an operator'}; its token is shown this once")
        print_text(created["token"])
    return 0
