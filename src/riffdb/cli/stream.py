"""`riffdb stream`: a consumer of a durable stream, one call a command; and what operators do with one.

Each command is one call of the consumer's protocol. `--json` prints its answer as HTTP gives it; for people a delivery
is shown with what `ack`, `nack` and `extend` need of it. That a delivery was no longer the caller's (`StateChanged`)
is an answer and exits 0.
"""

import json
from collections.abc import Callable
from typing import Any

import click

from riffdb.cli.inputs import parse_params
from riffdb.cli.output import note, print_json, print_text
from riffdb.cli.targets import Target, operator_options, target_options

Call = dict[str, object]
Show = Callable[[dict[str, Any]], None]


@click.group("stream", short_help="consume a stream")
def command() -> None:
    """Consume streams of the deployed contract."""


def consumer_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what names a consumer: STREAM, `--param`, `--consumer`."""
    stream = click.argument("stream", metavar="STREAM")
    param = click.option(
        "--param", "params", metavar="NAME=VALUE", multiple=True, help="A parameter of the stream, in its wire form."
    )
    consumer = click.option("--consumer", metavar="NAME", required=True, help="The name of the consumer.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON document.")
    return stream(param(consumer(as_json(function))))


def delivery_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what names a delivery: `--event`, `--token`, `--incarnation`."""
    event = click.option("--event", "event_id", metavar="ID", required=True, help="The event's id.")
    token = click.option("--token", metavar="T", required=True, help="The delivery's token.")
    incarnation = click.option(
        "--incarnation", metavar="ID", help="The incarnation that the delivery came with; the database's if left out."
    )
    return event(token(incarnation(function)))


@command.command("next")
@consumer_options
@click.option("--max", "max_items", metavar="N", type=int, help="At most so many deliveries; 1 if left out.")
@click.option("--lease-seconds", metavar="S", type=int, help="How long they are this caller's; 30 if left out.")
@click.option("--wait", "wait_seconds", metavar="S", type=int, help="Wait so long for an event; not if left out.")
@click.option("--from", "start", metavar="start|now", help="Where a consumer that is new begins; start if left out.")
@target_options
def take(
    stream: str,
    params: tuple[str, ...],
    consumer: str,
    max_items: int | None,
    lease_seconds: int | None,
    wait_seconds: int | None,
    start: str | None,
    target: Target,
    as_json: bool,
) -> int:
    """Take the next deliveries of STREAM."""
    values: Call = {
        "max_items": max_items,
        "delivery_lease_seconds": lease_seconds,
        "wait_seconds": wait_seconds,
        "start": start,
    }
    given = {name: value for name, value in values.items() if value is not None}
    return _call(target, "next", (stream, params, consumer), given, None if as_json else _show_deliveries)


@command.command("ack")
@consumer_options
@delivery_options
@target_options
def ack(target: Target, as_json: bool, **named: Any) -> int:
    """Settle a delivery: the event is dealt with."""
    return _settle(target, "ack", named, {}, as_json=as_json)


@command.command("nack")
@consumer_options
@delivery_options
@click.option("--delay", "delay_seconds", metavar="S", type=int, default=0, help="Not before so many seconds.")
@target_options
def nack(target: Target, as_json: bool, delay_seconds: int, **named: Any) -> int:
    """Put an event back, to be delivered again."""
    return _settle(target, "nack", named, {"delay_seconds": delay_seconds}, as_json=as_json)


@command.command("extend")
@consumer_options
@delivery_options
@click.option("--seconds", metavar="S", type=int, required=True, help="How long, from now.")
@target_options
def extend(target: Target, as_json: bool, seconds: int, **named: Any) -> int:
    """Hold a delivery for longer."""
    return _settle(target, "extend", named, {"seconds": seconds}, as_json=as_json)


@command.command("status")
@consumer_options
@target_options
def status(stream: str, params: tuple[str, ...], consumer: str, target: Target, as_json: bool) -> int:
    """Show where a consumer stands."""
    return _call(target, "status", (stream, params, consumer), {}, None if as_json else _show_facts)


@command.command("seek")
@consumer_options
@click.option("--to", metavar="start|now|ID|TIME", required=True, help="Where it goes on.")
@operator_options
def seek(stream: str, params: tuple[str, ...], consumer: str, to: str, target: Target, as_json: bool) -> int:
    """Let a consumer go on from somewhere else, for operators."""
    return _call(target, "seek", (stream, params, consumer), {"to": to}, None if as_json else _show_facts)


@command.command("redrive")
@consumer_options
@click.option("--event", "event_id", metavar="ID", help="The dead letter's event id.")
@click.option("--all", "is_all", is_flag=True, help="All dead letters of the consumer.")
@operator_options
def redrive(
    stream: str,
    params: tuple[str, ...],
    consumer: str,
    event_id: str | None,
    is_all: bool,
    target: Target,
    as_json: bool,
) -> int:
    """Deliver dead letters again, for operators."""
    if (event_id is None) == (not is_all):
        raise click.UsageError("give one of --event ID and --all")
    given: Call = {} if event_id is None else {"event_id": event_id}
    return _call(target, "redrive", (stream, params, consumer), given, None if as_json else _show_facts)


@command.command("retire")
@consumer_options
@operator_options
def retire(stream: str, params: tuple[str, ...], consumer: str, target: Target, as_json: bool) -> int:
    """End a consumer, for operators."""
    return _call(target, "retire", (stream, params, consumer), {}, None if as_json else _show_facts)


def _call(
    target: Target, verb: str, names: tuple[str, tuple[str, ...], str], arguments: Call, show: Show | None
) -> int:
    stream, params, consumer = names
    values = parse_params(params)
    with target.open() as client:
        answer = client.consumer(stream, name=consumer, params=values).call(verb, **arguments)
    if show is None:
        print_json(answer)
    else:
        show(answer)
    return 0


def _settle(target: Target, verb: str, named: dict[str, Any], more: Call, *, as_json: bool) -> int:
    values = parse_params(named["params"])
    with target.open() as client:
        consumer = client.consumer(named["stream"], name=named["consumer"], params=values)
        incarnation = named["incarnation"] or consumer.status()["incarnation"]
        delivery = {"event_id": named["event_id"], "token": named["token"], "incarnation": incarnation}
        answer = consumer.call(verb, **delivery, **more)
    if as_json:
        print_json(answer)
    else:
        print_text(answer["disposition"])
    return 0


def _show_deliveries(answer: dict[str, Any]) -> None:
    if not answer["deliveries"]:
        note("nothing to deliver")
    for delivery in answer["deliveries"]:
        fields = json.dumps(delivery["fields"], indent=2, ensure_ascii=False)
        print_text(f"{delivery['event_id']}  {delivery['event']}, attempt {delivery['attempt']}, {delivery['time']}")
        print_text(f"{fields}\ntoken: {delivery['token']}")


def _show_facts(facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        print_text(f"{name.replace('_', ' ')}: {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{part.replace('_', ' ')} {_shown(inner)}" for part, inner in value.items())
    return "none" if value is None else {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
