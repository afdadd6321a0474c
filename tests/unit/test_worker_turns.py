"""What the end of a worker's turn means as an exit code and as data.

Here because most of these ends need a second worker, at one moment, to happen.
"""

import pytest

from riffdb.cli.turns import exit_of, turn_facts
from riffdb.core.errors import RiffError
from riffdb.scheduler import (
    Cancelled,
    Completed,
    Deferred,
    DeliveryLost,
    Failed,
    Gone,
    HandlerError,
    Idle,
    Item,
    LeaseLost,
    Permanent,
    Recovered,
    Refused,
    Retryable,
    Schedule,
    Source,
    TurnResult,
)

ITEM = Item(Schedule("Due", Source("query", b"\0" * 32, "DueWork"), "Work"), 0, ("acme", 1), 0, 1)


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (Idle(), 0),
        (Completed(ITEM, "Done"), 0),
        (Recovered(ITEM, "Done"), 0),
        (Gone(ITEM), 0),
        (Deferred(ITEM, 1), 0),
        (DeliveryLost(ITEM), 0),
        (Refused(ITEM, "Closed"), 7),
        (LeaseLost(ITEM, 1), 6),
        (Failed(ITEM, Retryable(RiffError("RDB-E-UNAVAILABLE", "gone")), 1), 9),
        (Failed(ITEM, Permanent(RiffError("RDB-E-INPUT", "wrong")), 1), 1),
        (Failed(ITEM, Permanent(reason="refused"), 1), 1),
        (Failed(ITEM, HandlerError(ValueError("wrong")), 1), 1),
        (Failed(ITEM, Cancelled()), 1),
    ],
)
def test_the_exit_code_of_one_turn(result: TurnResult, code: int) -> None:
    assert exit_of(result) == code
    facts = turn_facts(result)
    assert facts["result"] == type(result).__name__
    assert facts["key"] == (None if isinstance(result, Idle) else "acme/1")
