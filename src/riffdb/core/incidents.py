"""Incidents: faults of ours, told by an id that ties what a caller sees to the lines that explain it.

What is told of a fault is its kind and place, never its own text, which may hold a value of the caller. Absent: where
it is told, which is the log of a server and stderr of a command. Request keys and ids of rows are UUIDs version 7
(RFC 9562), which `uuid_utils` makes where they are needed.
"""

import os
import traceback
from pathlib import Path


def new_incident(fault: BaseException, place: str) -> tuple[str, str]:
    """A new incident id, twelve hexadecimal digits, and the text that tells of the fault under it."""
    identity = os.urandom(6).hex()
    frames = "".join(traceback.format_tb(fault.__traceback__))
    return identity, f"incident {identity} in {place}: {type(fault).__name__}\n{frames}"


def described(error: BaseException) -> str:
    """The kind of an error of foreign code and where it was raised, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
