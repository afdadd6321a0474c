"""`riffdb.lock`: the identities of a contract's declarations as a text that is kept beside its sources.

The text is a function of the plan's identities alone, so it is the same on every machine and whatever the order of
files, comments and version. Its last line is the hash of those above, so that what an edit or a merge left behind is
never taken for a lock. Absent: reading and writing the file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from riffdb.core.errors import RiffError
from riffdb.plan.identity import declaration_hashes, plan_hash
from riffdb.plan.plan import Plan

LOCK_FILE = "riffdb.lock"
FORMAT = 1

_HEADING = "# The identity of each declaration, written by `riffdb lock`; not to be edited.\n"
_FORMAT_LINE = re.compile(r"^format (\d{1,9})$", re.MULTILINE)
_LINE = re.compile(r"(?P<name>[a-z]+(?:\.\w+)?) (?P<identity>[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Difference:
    """A declaration, as `family.name`, that the contract and its lock do not have alike; `contract` is its name.

    `missing` is in the lock alone, `new` in the contract alone.
    """

    kind: Literal["changed", "missing", "new"]
    name: str


def lock_text(plan: Plan) -> str:
    """The lock of a plan."""
    lines = "".join(f"{name} {identity}\n" for name, identity in sorted(_identities(plan).items()))
    body = f"{_HEADING}format {FORMAT}\n{lines}"
    return f"{body}end {_hash(body)}\n"


def differences(text: str, place: str, plan: Plan) -> list[Difference]:
    """What the plan has not as the lock says, by name; `RDB-E-USAGE` with `place` for a text that is no sound lock."""
    locked, present = _read(text.replace("\r\n", "\n"), place), _identities(plan)
    return list(_compared(locked, present))


def _identities(plan: Plan) -> dict[str, str]:
    """Every identity as a lock writes it; the contract's own is its name's, since the plan's changes with anything."""
    declared = {name: identity.hex() for name, identity in declaration_hashes(plan).items()}
    return {"contract": _hash(plan.contract), "plan": plan_hash(plan).hex(), **declared}


def _compared(locked: dict[str, str], present: dict[str, str]) -> Iterator[Difference]:
    for name in sorted(locked.keys() | present.keys()):
        if name not in present:
            yield Difference("missing", name)
        elif name not in locked:
            yield Difference("new", name)
        elif locked[name] != present[name] and name != "plan":
            yield Difference("changed", name)


def _read(text: str, place: str) -> dict[str, str]:
    named = _FORMAT_LINE.search(text)
    if named is not None and int(named[1]) > FORMAT:
        raise RiffError(
            "RDB-E-USAGE",
            f"{place} has format {named[1]}, and this version of RiffDB knows {FORMAT}; a newer version wrote it",
        )
    body, mark, rest = text.rpartition("end ")
    if named is None or not mark or not body.startswith(_HEADING) or rest != f"{_hash(body)}\n":
        raise RiffError(
            "RDB-E-USAGE",
            f"{place} is not as `riffdb lock` wrote it: it was edited, merged or cut; take an older one back, or look"
            " at what changed in the contract and run `riffdb lock` again",
        )
    return {match["name"]: match["identity"] for match in _LINE.finditer(body)}


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
