"""The handlers of the demo's workers: a little work, one item that fails twice, one worker that never comes back.

The environment says who plays which part: `DEMO_FLAKY` names the item that fails at its first two attempts, `DEMO_HOLD`
says at which call this worker tells what it holds and then waits to be killed.
"""

import json
import os
import threading
import time
from itertools import count

from riffdb.scheduler import Work

_calls = count(1)
_never = threading.Event()


def work(item: Work) -> None:
    """Work on one item for a moment; `CompleteWork` takes no input of its own."""
    row = item.claimed["work"]
    assert isinstance(row, dict)
    if next(_calls) == int(os.environ.get("DEMO_HOLD", "0")):
        held = {"work_id": str(row["work_id"]), "fence": str(item.fencing_token), "revision": str(row["revision"])}
        print(json.dumps(held), flush=True)
        _never.wait()
    if str(row["work_id"]) == os.environ.get("DEMO_FLAKY") and row["lease_attempts"] <= 2:
        raise RuntimeError("this item's handler fails at its first two attempts")
    time.sleep(0.01)
