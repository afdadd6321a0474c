"""One story of one contract, told to all: drawn, run, compared, and made small where they disagree.

A seed gives a contract and its story, always the same. `told` runs them and returns how many commands that were; a
disagreement is a `DisagreementError` whose text has the seed, the contract, and the fewest commands that still show it.
"""

from collections import Counter
from pathlib import Path
from random import Random

from riffdb.plan import Plan
from tests.model.contracts import Drawn, draw
from tests.model.running import Row
from tests.model.stories import Storyteller
from tests.model.worlds import DisagreementError, Moment, World

COMMANDS = 400
BATCHES = (1, 1, 2, 4, 16, 48)
STATE_EVERY = 8
ATTEMPTS = 400

Rows = list[tuple[str, Row]]


def told(seed: int, folder: Path, outcomes: Counter[str], commands: int = COMMANDS) -> Drawn:
    """Run the story of a seed; its contract. `outcomes` counts how commands ended."""
    drawn = draw(seed)
    told_plan(seed, drawn.plan, drawn.text, folder, outcomes, commands)
    return drawn


def told_plan(
    seed: int,
    plan: Plan,
    text: str,
    folder: Path,
    outcomes: Counter[str],
    commands: int,
    *,
    is_late: bool | None = None,
) -> None:
    """Run a story of this contract; one that `is_late` happens where timestamps end."""
    random = Random(f"story {seed}")
    teller = Storyteller(plan, random, is_late=is_late)
    rows = teller.rows() if seed % 3 else []  # without, the log tells of every row, and can be held against them
    moments: list[Moment] = []
    world = World(plan, folder, rows)
    try:
        _tell(world, teller, random, moments, commands)
    except DisagreementError as error:
        world.close()
        raise DisagreementError(_report(seed, plan, text, folder, rows, moments, error)) from error
    finally:
        world.close()
    outcomes.update(world.twin.ended)


def _tell(world: World, teller: Storyteller, random: Random, moments: list[Moment], commands: int) -> None:
    twin, number = world.twin, 0
    while number < commands:
        moment = Moment(teller.moment(twin), [])
        moments.append(moment)
        twin.now = moment.now
        expected = []
        for _ in range(random.choice(BATCHES)):
            moment.calls.append(teller.call(twin))
            expected.append(world.expected(moment.calls[-1]))
        number += len(expected)
        world.compare_answers(moment, expected)
        if len(moments) % STATE_EVERY == 0:
            world.compare_state()
    world.compare_state()
    world.verify()


def disagreement(plan: Plan, folder: Path, rows: Rows, moments: list[Moment]) -> DisagreementError | None:
    """Run the same again; how twin and databases differ, or None."""
    world = World(plan, folder, rows)
    try:
        for moment in moments:
            world.twin.now = moment.now
            world.compare_answers(moment, [world.expected(call) for call in moment.calls])
            world.compare_state()
    except DisagreementError as error:
        return error
    finally:
        world.close()
    return None


def smallest(plan: Plan, folder: Path, rows: Rows, moments: list[Moment]) -> tuple[Rows, list[Moment]]:
    """Leave out moments, commands and rows as long as the disagreement stays."""
    left = ATTEMPTS

    def still(some_rows: Rows, some: list[Moment]) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and disagreement(plan, folder, some_rows, some) is not None

    size = max(len(moments) // 2, 1)
    while size:
        place = 0
        while place < len(moments):
            fewer = moments[:place] + moments[place + size :]
            if still(rows, fewer):
                moments = fewer
            else:
                place += size
        size //= 2
    for moment in moments:
        for call in list(moment.calls):
            before = moment.calls
            moment.calls = [one for one in before if one is not call]
            if not still(rows, moments):
                moment.calls = before
    for row in list(rows):
        fewer_rows = [one for one in rows if one is not row]
        if still(fewer_rows, moments):
            rows = fewer_rows
    return rows, moments


def _report(
    seed: int, plan: Plan, text: str, folder: Path, rows: Rows, moments: list[Moment], error: DisagreementError
) -> str:
    first = disagreement(plan, folder, rows, moments)
    if first is not None:
        rows, moments = smallest(plan, folder, rows, moments)
        error = disagreement(plan, folder, rows, moments) or error
    named = {name for moment in moments for name, _ in moment.calls}
    lines = [f"seed {seed}", _of_interest(text, named), *(f"row {name} {row}" for name, row in rows)]
    for moment in moments:
        lines.append(f"at {moment.now}")
        lines += [f"  {name} {values}" for name, values in moment.calls]
    return "\n".join([*lines, str(error)])


def _of_interest(text: str, commands: set[str]) -> str:
    """The contract without the commands that are not run."""
    lines, is_shown = [], True
    for line in text.splitlines():
        words = line.split()
        if line.startswith(("  command ", "  bulk command ", "  reimport command ")):
            is_shown = words[-2] in commands
        elif line.startswith("  record "):
            is_shown = words[1].removesuffix("Item") in commands
        if is_shown or line == "}":
            lines.append(line)
    return "\n".join(lines)
