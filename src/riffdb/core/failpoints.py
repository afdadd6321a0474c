"""Labelled places where a test may kill, pause, delay or fail: `RIFFDB_FAILPOINT=<label>:<action>[:nth]`.

Actions: `kill` (SIGKILL of this process), `raise`, `pause` (SIGSTOP of this process until it is continued),
`delay=MS`. `nth` counts hits of the label from 1; without it the first hit acts. What acts says so first, in one line
on stderr, since a process that dies of SIGKILL tells nothing of it. Inert when the variable is unset. The labels are
part of the outer surface; an unknown one is refused so that a misspelt test cannot pass.
"""

import os
import signal
import time
from dataclasses import dataclass

LABELS = frozenset(
    [
        f"turn.{step}.{side}"
        for step in ("selection", "resolve", "claim", "business", "event", "release", "checkpoint")
        for side in ("before", "after")
    ]
    + ["command.admitted", "command.sealed", "command.evaluated", "commit.before", "commit.after", "answer.sent"]
    + ["recover.before", "recover.after", "backup.mid", "migrate.step"]
)
VARIABLE = "RIFFDB_FAILPOINT"


class FailpointError(Exception):
    """Raised at a label whose action is `raise`."""


@dataclass(slots=True)
class Failpoint:
    """One armed label: what to do, and at which hit."""

    label: str
    action: str
    nth: int
    delay_ms: int = 0
    hits: int = 0


def parse(text: str) -> Failpoint:
    """The failpoint that `text` describes; `ValueError` with the reason when it describes none."""
    label, _, rest = text.partition(":")
    action, _, nth = rest.partition(":")
    if label not in LABELS:
        raise ValueError(f"{VARIABLE}: unknown label {label!r}")
    delay_ms = 0
    if action.startswith("delay="):
        action, delay = "delay", action.removeprefix("delay=")
        if not delay.isdecimal():
            raise ValueError(f"{VARIABLE}: delay takes milliseconds")
        delay_ms = int(delay)
    elif action not in ("kill", "raise", "pause"):
        raise ValueError(f"{VARIABLE}: unknown action {action!r}; kill, raise, pause or delay=MS")
    if nth and not (nth.isdecimal() and int(nth) > 0):
        raise ValueError(f"{VARIABLE}: nth counts from 1")
    return Failpoint(label, action, int(nth or "1"), delay_ms)


def arm(text: str | None) -> Failpoint | None:
    """Arm the failpoint that the variable's text describes, or none; the process's entry point calls it once."""
    _STATE[:] = [parse(text)] if text else []
    return _STATE[0] if _STATE else None


def hit(label: str) -> None:
    """Act if `label` is armed and this is the hit that counts; otherwise do nothing."""
    if _STATE:
        _act(_STATE[0], label)


def _act(point: Failpoint, label: str) -> None:
    if label != point.label:
        return
    point.hits += 1
    if point.hits != point.nth:
        return
    os.write(2, f"failpoint {label}: {point.action} at hit {point.nth}\n".encode())
    if point.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif point.action == "pause":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif point.action == "delay":
        time.sleep(point.delay_ms / 1000)
    else:
        raise FailpointError(f"failpoint {label}")


_STATE: list[Failpoint] = []
