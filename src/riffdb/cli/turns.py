"""How the end of a worker's turn is shown, as a line for people or as a JSON document, and what exit code it means.

No value of a row but its key is shown, and nothing of what a handler's error says: only its kind and place.
"""

from riffdb.cli.output import note, print_json
from riffdb.core.errors import RiffError
from riffdb.core.incidents import described
from riffdb.scheduler import Failed, HandlerError, Idle, LeaseLost, Refused, SchedulerFailure, TurnResult


def show_turn(result: TurnResult, *, as_json: bool, is_last: bool = False) -> None:
    """Show the end of a turn; people are told nothing of an idle one, and of no delay that nobody will wait for."""
    facts = turn_facts(result)
    if as_json:
        print_json(facts)
    elif not isinstance(result, Idle):
        delay = "" if is_last or facts["delay_seconds"] is None else f"; again in {facts['delay_seconds']} s"
        told = facts.get("detail") or facts["outcome"]
        note(f"{facts['result']} {facts['key'] or 'selection'}{'' if told is None else f': {told}'}{delay}")


def turn_facts(result: TurnResult) -> dict[str, object]:
    """The end of a turn as data; `cause` is the code of an error of RiffDB, or the kind of another."""
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
        facts["detail"] = _detail(result.failure)
    return facts


def exit_of(result: TurnResult) -> int:
    """The exit code of a worker that ran this one turn."""
    match result:
        case Refused():
            return 7
        case LeaseLost():
            return 6
        case Failed(failure=SchedulerFailure(cause=RiffError() as cause)):
            return cause.facts.exit
        case Failed():
            return 1
    return 0


def _detail(failure: SchedulerFailure) -> str:
    cause = failure.cause
    if isinstance(cause, RiffError):
        return cause.message
    if isinstance(failure, HandlerError) and cause is not None:
        # An error that was never raised is the scheduler's own word on what the handler returned.
        return f"the handler raised {described(cause)}" if cause.__traceback__ is not None else str(cause)
    return str(failure)
