"""Rows that a reimport command puts back: where the parts of the input stand, and what such a row must be by itself.

The row comes in as one value, its parts read under their names with a leading point, as those of a loop's item are. Its
revision and fence are its own, and never below those that the key's last life left.
"""

from collections.abc import Mapping

from riffdb.core.errors import RiffError, input_error
from riffdb.core.layout import TOMBSTONE_FENCE, TOMBSTONE_REVISION
from riffdb.engine.slots import Slot
from riffdb.plan import Plan
from riffdb.plan.commands import CommandPlan, ReconstituteStep


def restored_names(plan: Plan, command: CommandPlan, inputs: Mapping[str, str]) -> dict[str, str]:
    """The texts of the parts of the row that the command puts back, if it does; `inputs` are those of its inputs."""
    last = command.steps[-1] if command.steps else None
    if not isinstance(last, ReconstituteStep):
        return {}
    fields = plan.restored_fields(last.entity)
    return {f".{name}": f"{inputs[last.source]}[{place}]" for place, (name, _) in enumerate(fields)}


def misfits(slot: Slot, inputs: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """What such a row cannot be whatever is stored: conditions, the field to name, and what is wrong with it."""
    found = [(f"{inputs['.revision']} == 0", "revision", "must be at least 1, as of any row")]
    if slot.lease is not None:
        owner, expires_at = inputs[f".{slot.lease.owner}"], inputs[f".{slot.lease.expires_at}"]
        told = f"must be null exactly if `{slot.lease.expires_at}` is"
        found.append((f"({owner} is None) != ({expires_at} is None)", slot.lease.owner, told))
    return found


def is_behind(slot: Slot, inputs: Mapping[str, str]) -> str:
    """The condition under which the key's last life went further."""
    grave = slot.tombstone
    behind = f"{inputs['.revision']} < {grave}[{TOMBSTONE_REVISION}]"
    if slot.lease is not None:
        behind += f" or {inputs[f'.{slot.lease.fencing_token}']} < ({grave}[{TOMBSTONE_FENCE}] or 0)"
    return f"{grave} is not None and ({behind})"


def unfit(source: str, field: str, message: str) -> RiffError:
    """The refusal of a row that cannot be."""
    return input_error(f"{source}.{field}", message)
