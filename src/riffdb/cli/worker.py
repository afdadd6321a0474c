"""`riffdb worker`: the scheduler's host as a process, over a server or a database of its own.

SIGTERM or SIGINT lets the turns in flight finish; a second one ends them between two operations.
"""

import asyncio
import importlib
import json
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from uuid import UUID

import click

from riffdb.cli.inputs import parse_params
from riffdb.cli.targets import Target, target_options, token
from riffdb.client.application import CONFIGURATION_FILE, load_application
from riffdb.client.calls import AsyncClient
from riffdb.client.opening import connect_async, open_async
from riffdb.client.schedule_port import SchedulePort
from riffdb.core.errors import RiffError
from riffdb.core.ids import uuid7
from riffdb.core.suggestions import did_you_mean
from riffdb.plan import Plan
from riffdb.scheduler import (
    Failed,
    Handler,
    Idle,
    Policy,
    SchedulerFailure,
    Timer,
    TurnResult,
    Worker,
    run_host,
    run_once,
)


@click.command("worker", short_help="work on a schedule's items")
@click.argument("schedule", metavar="SCHEDULE")
@click.option("--handler", "place", metavar="MODULE:FUNCTION", help="What computes the further inputs of `run`.")
@click.option("--param", "params", metavar="NAME=VALUE", multiple=True, help="A parameter of the schedule's source.")
@click.option("--owner", metavar="UUID", help="Who holds the leases; made if left out.")
@click.option(
    "--application", metavar="DIR", type=click.Path(path_type=Path), help="Where the policy stands; default ."
)
@click.option("--once", is_flag=True, help="Run one turn.")
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document a turn.")
def command(
    schedule: str,
    place: str | None,
    params: tuple[str, ...],
    owner: str | None,
    application: Path | None,
    once: bool,
    target: Target,
    as_json: bool,
) -> int:
    """Work on the items of SCHEDULE until SIGTERM."""
    handler = None if place is None else load_handler(place)
    identity = uuid7() if owner is None else _owner(owner)
    policy = _policy(application, schedule)
    values = parse_params(params)

    async def work() -> int:
        async with await _client(target) as client:
            plan = await client.plan()
            _check_schedule(plan, schedule, policy)
            draining, cancellation = _stop_signals()
            port = SchedulePort(client, plan, schedule, values, draining)
            timer = Timer(lambda: time.clock_gettime(time.CLOCK_BOOTTIME))
            worker = Worker(port, policy, identity, timer, handler)
            if once:
                result = await run_once(worker, cancellation)
                _show(result, as_json)
                return _exit(result)
            click.echo(f"working on {schedule} as {identity}", err=True)
            await run_host(worker, cancellation, draining=draining, observe=lambda result: _show(result, as_json))
            return 0

    try:
        return asyncio.run(work())
    except SchedulerFailure as failure:
        raise _cause(failure) from failure


def load_handler(place: str) -> Handler:
    """The function that `module:function` names; modules of the current folder are found."""
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise RiffError("RDB-E-USAGE", "--handler takes module:function, such as handlers:complete")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise RiffError("RDB-E-USAGE", f"--handler: there is no module `{error.name}` here or installed") from error
    except Exception as error:
        raise RiffError("RDB-E-USAGE", f"--handler: importing `{module_name}` raised {type(error).__name__}") from error
    found = getattr(module, name, None)
    if not callable(found):
        raise RiffError("RDB-E-USAGE", f"--handler: `{module_name}` has no function `{name}`")
    handler: Handler = found
    return handler


def _owner(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise RiffError("RDB-E-USAGE", "--owner takes a UUID") from None


def _policy(application: Path | None, schedule: str) -> Policy:
    if application is None and not Path(CONFIGURATION_FILE).is_file():
        return Policy()
    settings = load_application(application or Path()).schedules.get(schedule)
    return Policy() if settings is None else Policy(**asdict(settings))


def _check_schedule(plan: Plan, name: str, policy: Policy) -> None:
    names = [schedule.name for schedule in plan.schedules]
    if name not in names:
        raise RiffError("RDB-E-NOT-FOUND", f"the contract has no schedule of that name{did_you_mean(name, names)}")
    schedule = plan.schedule(name)
    if schedule.source != "query":
        raise RiffError("RDB-E-USAGE", "this version works on schedules that select from a query")
    lease = plan.workflow(schedule.workflow).lease
    if lease is not None:
        policy.fit_lease(lease.seconds_min, lease.seconds_max)


async def _client(target: Target) -> AsyncClient:
    if target.server is not None:
        return connect_async(target.server, token())
    assert target.db is not None
    return await open_async(target.db, role=target.role)


def _stop_signals() -> tuple[asyncio.Event, asyncio.Event]:
    draining, cancellation = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        (cancellation if draining.is_set() else draining).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return draining, cancellation


def _show(result: TurnResult, as_json: bool) -> None:
    facts = _facts(result)
    if as_json:
        with suppress(BrokenPipeError):
            click.echo(json.dumps(facts))
        return
    if not isinstance(result, Idle):
        click.echo(" ".join(str(value) for value in facts.values() if value is not None), err=True)


def _facts(result: TurnResult) -> Mapping[str, object]:
    item = None if isinstance(result, Idle) else result.item
    facts: dict[str, object] = {
        "result": type(result).__name__,
        "key": None if item is None else "/".join(str(part) for part in item.target),
        "outcome": getattr(result, "outcome", None),
        "delay_seconds": getattr(result, "delay_seconds", None),
    }
    if isinstance(result, Failed):
        cause = result.failure.cause
        facts["failure"] = type(result.failure).__name__
        facts["cause"] = None if cause is None else cause.code if isinstance(cause, RiffError) else type(cause).__name__
    return facts


def _exit(result: TurnResult) -> int:
    if not isinstance(result, Failed):
        return 0
    cause = result.failure.cause
    return cause.facts.exit if isinstance(cause, RiffError) else 1


def _cause(failure: SchedulerFailure) -> RiffError:
    if isinstance(failure.cause, RiffError):
        return failure.cause
    return RiffError("RDB-E-UNAVAILABLE", str(failure))
