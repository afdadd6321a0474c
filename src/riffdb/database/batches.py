"""Many steps in one request: commands, stored answers and queries, each its own transaction with its own authority.

Unordered, all commands are admitted first and go through the door as one, so that they share a flush. Ordered, a step
begins when the one before has its answer, and an input may be the exact successor revision that an earlier step gave
for a binding. A step that fails has its problem in the place of its answer and stops no other. Absent: one transaction
over several steps, which nothing offers.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from riffdb.core.errors import RiffError, input_error
from riffdb.core.limits import BATCH_STEPS_MAX
from riffdb.core.suggestions import did_you_mean
from riffdb.database.codecs import json_text

VERBS = {"command": "input", "resolve": "input", "query": "params"}
SUCCESSOR = "$successor"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a verb of `VERBS`, the name of what it runs, and its values."""

    verb: str
    name: str
    values: Mapping[str, Any]


Run = Callable[[Step], Awaitable[bytes]]
"""Runs one step; `RiffError` for what cannot be done."""


class _Revision(msgspec.Struct):
    binding: str
    revision: str


class _Answer(msgspec.Struct):
    workflow_revisions: list[_Revision] = []


_revisions_of = msgspec.json.Decoder(_Answer).decode


def decode_steps(steps: object, ordered: object) -> list[Step]:
    """The steps of a batch; `RDB-E-INPUT` with the path of what makes it none, `RDB-E-TOO-LARGE` for too many."""
    if not isinstance(ordered, bool):
        raise input_error("ordered", "must be true or false")
    if not isinstance(steps, list | tuple):
        raise input_error("steps", "must be a list")
    if len(steps) > BATCH_STEPS_MAX:
        raise RiffError("RDB-E-TOO-LARGE", f"a batch has at most {BATCH_STEPS_MAX} steps", path="steps")
    return [_step(step, f"steps[{place}]") for place, step in enumerate(steps)]


async def run_in_order(steps: Sequence[Step], run: Run) -> list[bytes]:
    """The answers, each step begun after the one before."""
    answers: list[bytes] = []
    revisions: list[dict[str, str]] = []
    for place, step in enumerate(steps):
        try:
            answer = await run(Step(step.verb, step.name, _with_successors(step.values, place, revisions)))
            told = _revisions_of(answer).workflow_revisions
            revisions.append({revision.binding: revision.revision for revision in told})
        except RiffError as error:
            answer = problem(error)
            revisions.append({})
        answers.append(answer)
    return answers


def problem(error: RiffError) -> bytes:
    """What stands in the place of an answer."""
    return json_text(error.to_json()).encode()


def check_no_successors(step: Step) -> None:
    """Refuse a reference to another step where steps have no order."""
    for name, value in step.values.items():
        if _is_successor(value):
            raise input_error(name, f"may be {SUCCESSOR} only in a batch that is ordered")


def _step(step: object, path: str) -> Step:
    if not isinstance(step, Mapping):
        raise input_error(path, "must be a JSON object")
    verbs = [verb for verb in VERBS if verb in step]
    if len(verbs) != 1:
        raise input_error(path, "must have one of command, resolve and query, with a name")
    (verb,) = verbs
    member = VERBS[verb]
    for name in step:
        if name not in (verb, member):
            raise input_error(f"{path}.{name}", f"is no member of this step{did_you_mean(str(name), (verb, member))}")
    if not isinstance(step[verb], str):
        raise input_error(f"{path}.{verb}", "must be a name")
    values = step.get(member)
    if not isinstance(values, Mapping):
        raise input_error(f"{path}.{member}", "must be a JSON object")
    return Step(verb, step[verb], values)


def _with_successors(values: Mapping[str, Any], place: int, revisions: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The values with each reference replaced; `RDB-E-SKIPPED` where the step that it names gave no such revision."""
    return {
        name: _successor(name, value[SUCCESSOR], place, revisions) if _is_successor(value) else value
        for name, value in values.items()
    }


def _is_successor(value: object) -> bool:
    return isinstance(value, Mapping) and SUCCESSOR in value


def _successor(name: str, named: object, place: int, revisions: Sequence[Mapping[str, str]]) -> str:
    if not (isinstance(named, list | tuple) and len(named) == 2 and type(named[0]) is int and type(named[1]) is str):
        raise input_error(name, f"must be {{{SUCCESSOR!r}: [step, binding]}}, a number and a name")
    step, binding = named
    if not 0 <= step < place:
        raise input_error(name, "names a step that is not before this one; steps are counted from 0")
    revision = revisions[step].get(binding)
    if revision is None:
        raise RiffError(
            "RDB-E-SKIPPED",
            f"step {step} gave no successor revision of that binding, so this one was not run",
            path=name,
        )
    return revision
