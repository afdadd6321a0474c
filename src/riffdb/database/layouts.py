"""From a plan's entities to tables: names in snake case, columns in row order, the partition first in every key.

The layout of a deployed entity never depends on the order of declarations. The last two columns of every table are
the row's revision and the sequence of the commit that last wrote it.
"""

import re

from riffdb.core.layout import Column, ColumnKind, Index, Table
from riffdb.core.types import Type
from riffdb.plan import Plan
from riffdb.plan.declarations import EntityPlan

SYSTEM_PREFIX = "riffdb_"

_KINDS: dict[str, ColumnKind] = {
    "bool": "bool",
    "i64": "int",
    "u64": "u64",
    "string": "text",
    "bytes": "blob",
    "uuid": "blob",
    "timestamp": "int",
    "date": "int",
    "decimal": "decimal",
    "enum": "int",
}


def tables(plan: Plan) -> dict[str, Table]:
    """The table of every entity, by the entity's name."""
    taken: set[str] = set()
    result = {}
    for entity in sorted(plan.entities, key=lambda entity: entity.name):
        name = _free(table_name(entity.name), taken)
        result[entity.name] = _table(entity, name)
    return result


def moved_tables(old: Plan, new: Plan) -> list[str]:
    """One sentence for each entity whose table another entity of the new plan would take."""
    before, after = tables(old), tables(new)
    return [
        f"the table `{table.name}` of entity `{entity}` would go to another; name the new entity otherwise"
        for entity, table in before.items()
        if entity in after and after[entity].name != table.name
    ]


def table_name(entity: str) -> str:
    """The snake-case name of an entity, with a trailing underscore where it would look like a table of RiffDB."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", entity))
    name = words.lower()
    return f"{name}_" if name.startswith((SYSTEM_PREFIX, "sqlite_")) else name


def _table(entity: EntityPlan, name: str) -> Table:
    types = entity.types
    taken = {column.lower() for column in entity.columns}
    system = (Column("revision", "u64"), Column(_free("commit_sequence", taken), "u64"))
    columns = tuple(_column(column, types[column]) for column in entity.columns) + system
    positions = {column.name: position for position, column in enumerate(columns)}
    return Table(
        name=name,
        columns=columns,
        key=tuple(positions[part] for part in entity.storage_key),
        indexes=tuple(
            Index(f"{name}__{index.name}", tuple(positions[part] for part in index.columns), index.descending)
            for index in entity.indexes
        ),
    )


def _column(name: str, value_type: Type) -> Column:
    return Column(name, _KINDS[value_type.kind], value_type.optional)


def _free(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name
