"""`riffdb worker`: the scheduler's host as a process, over a server or a database of its own.

SIGTERM or SIGINT lets the turns in flight finish, a second one ends them between two operations, a third one ends the
process. The policy is that of the application's `riffdb.toml`, fitted to the contract that is deployed. Absent: any
knowledge of the application; its schedule says which command takes what.
"""

import asyncio
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

import click
from uuid_utils.compat import uuid7

from riffdb.cli.inputs import parse_params
from riffdb.cli.loading import load_handler
from riffdb.cli.output import OutputLostError, note
from riffdb.cli.targets import Target, target_options, token
from riffdb.cli.turns import exit_of, show_turn
from riffdb.client.application import CONFIGURATION_FILE, deployed_policy, read_configuration
from riffdb.client.calls import AsyncClient
from riffdb.client.configuration import Configuration
from riffdb.client.schedule_port import SchedulePort
from riffdb.core.errors import RiffError
from riffdb.core.suggestions import did_you_mean
from riffdb.plan import Plan
from riffdb.scheduler import (
    AuthorizationRevoked,
    Failed,
    Handler,
    Policy,
    SchedulerFailure,
    Timer,
    TurnResult,
    Worker,
    run_host,
    run_once,
)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@click.command("worker", short_help="work on a schedule's items")
@click.argument("schedule", metavar="SCHEDULE")
@click.option("--handler", "place", metavar="MODULE:FUNCTION", help="What computes the further inputs of `run`.")
@click.option("--param", "params", metavar="NAME=VALUE", multiple=True, help="A parameter of the schedule's source.")
@click.option("--owner", metavar="UUID", help="Who holds the leases; made if left out.")
@click.option(
    "--application",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Whose policy and handler, if not this folder's.",
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
    configuration = _configuration(application)
    folders = (Path(), *(() if application is None else (application,)))
    order = _Order(
        schedule=schedule,
        handler=None if place is None else load_handler(place, folders),
        params=parse_params(params),
        owner=uuid7() if owner is None else _owner(owner),
        configuration=configuration,
        once=once,
        as_json=as_json,
    )
    try:
        return asyncio.run(_work(order, target))
    except SchedulerFailure as failure:
        raise _ending(failure) from failure
    except BaseExceptionGroup as group:
        # Several turns may end on one cause, such as a capability that was revoked under all of them.
        failures, others = group.split(SchedulerFailure)
        if failures is None or others is not None:
            raise
        raise _ending(_first(failures)) from group


@dataclass(frozen=True, slots=True)
class _Order:
    """What the command line asks for."""

    schedule: str
    handler: Handler | None
    params: dict[str, str]
    owner: UUID
    configuration: Configuration | None
    once: bool
    as_json: bool


async def _work(order: _Order, target: Target) -> int:
    async with await _client(target) as client:
        plan = await client.plan()
        _check_schedule(plan, order.schedule, is_role=target.server is not None or target.role is not None)
        _check_handler(plan, order)
        policy = Policy(**asdict(deployed_policy(order.configuration, plan, order.schedule)))
        draining, cancellation = _stop_signals()
        port = SchedulePort(client, plan, order.schedule, order.params, draining)
        timer = Timer(lambda: time.clock_gettime(time.CLOCK_BOOTTIME))
        worker = Worker(port, policy, order.owner, timer, order.handler)
        if order.once:
            result = await run_once(worker, cancellation)
            if isinstance(result, Failed) and result.item is None:
                raise result.failure
            show_turn(result, as_json=order.as_json, is_last=True)
            return exit_of(result)

        def observe(result: TurnResult) -> None:
            with suppress(OutputLostError):  # who listened is gone; the work is as needed as before
                show_turn(result, as_json=order.as_json)

        note(f"working on {order.schedule} as {order.owner}")
        await run_host(worker, cancellation, draining=draining, observe=observe)
        return 130 if cancellation.is_set() else 0


def _owner(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise RiffError("RDB-E-USAGE", "--owner takes a UUID") from None


def _configuration(application: Path | None) -> Configuration | None:
    if application is None and not Path(CONFIGURATION_FILE).is_file():
        return None
    return read_configuration(application or Path())


def _check_schedule(plan: Plan, name: str, *, is_role: bool) -> None:
    names = [schedule.name for schedule in plan.schedules]
    if name not in names:
        # Who acts as a role is shown the schedules that it can drive, and nothing of the others.
        role = "; a role sees one only if it lists its source and all of its commands" if is_role else ""
        advice = did_you_mean(name, names) or role
        raise RiffError("RDB-E-NOT-FOUND", f"the contract has no schedule of that name{advice}")


def _check_handler(plan: Plan, order: _Order) -> None:
    """Refuse to begin without the handler that `run` needs: each item would be claimed, and none completed."""
    run = plan.schedule(order.schedule).run
    inputs = [part for part in plan.command(run.command).inputs if part.name in run.further]
    needed = [f"`{part.name}`" for part in inputs if not part.type.optional and not part.has_default]
    if order.handler is None and needed:
        listed = ", ".join(needed)
        message = f"{run.command} takes {listed} from a handler; give --handler module:function"
        raise RiffError("RDB-E-USAGE", message)


async def _client(target: Target) -> AsyncClient:
    if target.server is not None:
        from riffdb.client.suspending import connect

        return connect(target.server, token())
    from riffdb.client.opening import open_async

    assert target.db is not None
    return await open_async(target.db, role=target.role)


def _stop_signals() -> tuple[asyncio.Event, asyncio.Event]:
    draining, cancellation = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if not draining.is_set():
            draining.set()
            return
        cancellation.set()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    return draining, cancellation


def _first(group: BaseExceptionGroup[SchedulerFailure]) -> SchedulerFailure:
    found = [failure for failure in group.exceptions if isinstance(failure, SchedulerFailure)]
    return next((failure for failure in found if isinstance(failure, AuthorizationRevoked)), found[0])


def _ending(failure: SchedulerFailure) -> RiffError:
    """The error that ends the worker."""
    cause = failure.cause
    if not isinstance(cause, RiffError):
        return RiffError("RDB-E-UNAVAILABLE", str(failure))
    reason = f"the worker ends: {cause.message}" if isinstance(failure, AuthorizationRevoked) else cause.message
    return RiffError(cause.code, reason, path=cause.path, detail=cause.detail)
