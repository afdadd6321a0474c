"""Names that are words of SQL, of a target language or of the language itself, over every store: they work as any."""

import builtins
import keyword
from uuid import UUID

import pytest

from riffdb.syntax.words import RESERVED
from tests.conformance.databases import LOCAL, ORGANIZATION, Place, plan_of

SQL = """
abort action add after all alter analyze and any as asc attach autoincrement before begin between by cascade case cast
check collate column commit conflict constraint create cross current current_date current_time current_timestamp
database default deferrable deferred delete desc detach distinct do drop each else end escape except exclude exclusive
exists explain fail filter first following for foreign from full generated glob group groups having if ignore immediate
in index indexed initially inner insert instead intersect into is isnull join key last left like limit match
materialized natural no not nothing notnull null nulls of offset on or order others outer over partition plan pragma
preceding primary query raise range recursive references regexp reindex release rename replace restrict returning right
rollback row rows savepoint select set table temp temporary then ties to transaction trigger unbounded union unique
update using vacuum values view virtual when where window with without user rowid oid _rowid_ sqlite_master
"""
OTHERS = """
abstract arguments async await boolean break byte catch char class const continue debugger default delete double dyn
enum eval export extends extern final finally float fn func function go goto impl implements import instanceof int
interface let long loop map mod move mut native new override package private protected pub public ref return select
self Self short static string struct super switch synchronized this throw throws trait transient try type typeof uint
unsafe use var void volatile where while yield chan defer fallthrough make nil len cap error init main
"""
OWN = """
contract version entity key partition_by field secret computed index unique reference invariant event workflow state
initial transition lease owner expires_at fencing_token attempts duration_seconds command bulk reimport input service
idempotency_key read mutate delete maybe create init_or_mutate initialize conflict violates require set emit on stale
illegal claim renew release expire fence unheld decide when otherwise apply none reconstitute many one count sum min max
take after before of stream role schedule due run fail payload outcome bool u64 uuid timestamp coalesce
"""


def words() -> list[str]:
    """Every such word that may be a name, once, whatever its case."""
    listed = [*f"{SQL} {OTHERS} {OWN}".split(), *keyword.kwlist, *keyword.softkwlist, *dir(builtins)]
    plain = {word.lower(): word for word in listed if word.isidentifier() and not word.startswith("__")}
    return [word for lower, word in sorted(plain.items()) if lower not in RESERVED and lower != "revision"]


@pytest.mark.parametrize("part", range(4))
def test_any_word_is_a_name_of_everything(empty: Place, part: int) -> None:
    names = words()[part::4]
    fields = [name for name in names if name not in ("id", "tenant")]
    text = f"""
    contract {names[0]} version 1 {{
      enum {names[1]} {{ {", ".join(names)} }}
      entity {names[2]} {{
        key (tenant: uuid, id: u64)
        {" ".join(f"field {name}: optional<u64>" for name in fields)}
        index {names[4]} (tenant, {fields[0]})
      }}
      event {names[3]} {{ partition_by (tenant) tenant: uuid {" ".join(f"{name}: optional<u64>" for name in fields)} }}
      command {names[4]} {{
        input request_key: string<64>
        input tenant: uuid
        input id: u64
        {" ".join(f"input {name}: optional<u64>" for name in fields)}
        idempotency_key request_key
        create {names[2]}(tenant, id) as row_of_all else {names[5]} {{}}
        {" ".join(f"set row_of_all.{name} = {name}" for name in fields)}
        emit {names[3]} {{ tenant: tenant, {", ".join(f"{name}: {name}" for name in fields)} }}
        return {names[6]} {{ {", ".join(f"{name}: row_of_all.{name}" for name in fields)} }}
      }}
    }}
    query {names[4]}($tenant: uuid, ${fields[0]}: u64) {{
      many found from {names[2]} where tenant == $tenant && {fields[0]} == ${fields[0]} order by id take 5
      return {names[6]} {{ {names[7]}: found {{ {" ".join(fields)} }} }}
    }}
    role {names[3]} {{ query {names[4]} command {names[4]} }}
    """
    empty.deploy(plan_of(text, "words"))
    values = {name: number for number, name in enumerate(fields)}
    answer = empty.command(names[4], request_key="k", tenant=ORGANIZATION, id=1, **values)
    assert answer["outcome"] == names[6]
    assert answer["payload"] == {name: str(number) for name, number in values.items()}
    empty.reopen()
    assert empty.command(names[4], request_key="k", tenant=ORGANIZATION, id=1, **values)["replayed"]
    found = empty.run(empty.database.query(LOCAL, names[4], {"tenant": str(UUID(int=0xA)), fields[0]: 0}))
    assert found.count(b'"') > len(fields)
    history = empty.run(empty.database.operations.history(LOCAL, entity=names[2], key=[str(ORGANIZATION), "1"]))
    assert len(history[0]["changes"]) == len(fields) + 2
