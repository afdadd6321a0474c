"""The loop of a bulk command as generated text: its items, and what the second run over them needs of the first.

`evaluate` runs over the items twice: first the steps, so that the first item that fails gives the outcome, then what is
committed, since payloads are evaluated last. Names: `f0` a field of the item, `q1` the rows of a slot and
`h1` its tombstones by key, `s0` the keys that were bound so far of one entity with the binding of each, `m2` whether
the loop changed a row above it.
"""

from dataclasses import dataclass

from riffdb.engine.slots import Slot
from riffdb.plan import Plan
from riffdb.plan.commands import CommandPlan, ForStep


@dataclass(frozen=True, slots=True)
class Items:
    """The items of the loop: the text of the list, and of each field by the name that expressions know it by.

    Those that are `given` are never null, as declared.
    """

    list: str
    fields: dict[str, str]
    given: frozenset[str]

    @property
    def unpacking(self) -> str:
        """The statement that gives the fields of `item` their names."""
        names = list(self.fields.values())
        if "." in self.fields:
            return f"{names[0]} = item"
        return f"{', '.join(names)}{',' if len(names) == 1 else ''} = item"


def loop_of(command: CommandPlan) -> ForStep | None:
    """The loop of a bulk command, which is its last step."""
    last = command.steps[-1] if command.steps else None
    return last if isinstance(last, ForStep) else None


def items_of(plan: Plan, command: CommandPlan, inputs: dict[str, str]) -> Items | None:
    """The items of the command's loop, if it has one; `inputs` are the texts of its inputs."""
    loop = loop_of(command)
    if loop is None:
        return None
    element = next(part.type.element for part in command.inputs if part.name == loop.items)
    assert element is not None, "a loop runs over a list"
    types = {"": element}
    if element.kind == "record":
        types = {part.name: part.type for part in plan.record(element.name).fields}
    fields = {f".{name}": f"f{number}" for number, name in enumerate(types)}
    return Items(inputs[loop.items], fields, frozenset(f".{name}" for name, kind in types.items() if not kind.optional))


def kept_names(slots: tuple[Slot, ...], items: Items, decides: int) -> list[str]:
    """The names of one item's run that the second run reads: fields, rows, keys, written columns, arms."""
    names = list(items.fields.values())
    for slot in slots:
        tombstone = [slot.tombstone] if slot.reads_tombstone else []
        names += [slot.row, slot.key, *tombstone, *sorted(slot.local(column) for column in slot.written)]
    return names + [f"d{decide}" for decide in range(decides)]
