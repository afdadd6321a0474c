"""From a plan's entities to tables: names in snake case, columns in row order, the partition first in every key.

The layout of a deployed entity never depends on the order of declarations. In a column that is new, older rows have the
default of its field, or null. The last two columns of every table are
the row's revision and the sequence of the commit that last wrote it.
"""

import re
from collections.abc import Iterator
from typing import Any

from riffdb.core.layout import Column, ColumnKind, Index, Table
from riffdb.core.types import Type
from riffdb.plan import Plan
from riffdb.plan.changes import Change, change
from riffdb.plan.declarations import EntityPlan
from riffdb.plan.expressions import inside_value

SYSTEM_PREFIX = "riffdb_"
TOMBSTONE_SUFFIX = "__deleted"

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

_ZEROS: dict[ColumnKind, Any] = {"bool": False, "int": 0, "u64": 0, "text": "", "blob": b"", "decimal": 0}


def tables(plan: Plan) -> dict[str, Table]:
    """The table of every entity, by its name; names of entities differ as words, so no two share a table."""
    return {entity.name: _table(entity, table_name(entity.name)) for entity in plan.entities}


def tombstone_table(table: Table) -> Table:
    """The table of what is left of an entity's deleted rows: the key, then fence, revision and commit sequence."""
    keys = tuple(table.columns[position] for position in table.key)
    taken = {column.name.lower() for column in keys}
    fence, sequence = Column(_free("fence", taken), "u64", True), Column(_free("commit_sequence", taken), "u64")
    columns = (*keys, fence, Column("revision", "u64"), sequence)
    return Table(f"{table.name}{TOMBSTONE_SUFFIX}", columns, tuple(range(len(keys))))


def moved_tables(old: Plan, new: Plan) -> Iterator[Change]:
    """A change for each entity in which a column that every row has would go to a field of the new plan."""
    before, after = tables(old), tables(new)
    for entity, table in before.items():
        name = table.columns[-1].name
        if entity in after and after[entity].columns[-1].name != name:
            what = f"the column `{name}` of entity `{entity}` keeps the commit of each row; name the field otherwise"
            yield change("table-moved", "entities", entity, what, name)


def table_name(entity: str) -> str:
    """The snake-case name of an entity, with a trailing underscore where it would look like a table that is none."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", entity))
    name = words.lower()
    is_taken = name.startswith((SYSTEM_PREFIX, "sqlite_")) or name.endswith(TOMBSTONE_SUFFIX)
    return f"{name}_" if is_taken else name


def _table(entity: EntityPlan, name: str) -> Table:
    types = entity.types
    taken = {column.lower() for column in entity.columns}
    system = (Column("revision", "u64"), Column(_free("commit_sequence", taken), "u64"))
    defaults = {field.name: inside_value(field.type, field.default) for field in entity.fields if field.has_default}
    columns = tuple(_column(column, types[column], defaults.get(column)) for column in entity.columns) + system
    positions = {column.name: position for position, column in enumerate(columns)}
    return Table(
        name=name,
        columns=columns,
        key=tuple(positions[part] for part in entity.storage_key),
        indexes=(
            *(
                Index(f"{name}__{index.name}", tuple(positions[part] for part in index.columns), index.descending)
                for index in entity.indexes
            ),
            *(
                Index(
                    f"{name}__{unique.name}",
                    tuple(positions[part] for part in unique.columns),
                    (False,) * len(unique.columns),
                    unique=True,
                )
                for unique in entity.uniques
            ),
        ),
    )


def _column(name: str, value_type: Type, default: Any) -> Column:
    kind = _KINDS[value_type.kind]
    no_value = None if value_type.optional else _ZEROS[kind]  # for a table without rows
    return Column(name, kind, value_type.optional, no_value if default is None else default)


def _free(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name
