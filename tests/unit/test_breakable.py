"""What may break, where a loop or a row that may begin makes it hard to see: a clause is asked for exactly then.

Each body stands once with the rules that it must name and none beside them. The outcomes of rules that do break are
tests of the database.
"""

import pytest

from riffdb.compiler import compile
from riffdb.core.spans import Source

CONTRACT = """
contract Case version 1 {{
  record Line {{ id: u64, to: u64, amount: u64 }}
  entity Place {{
    key (tenant: uuid, number: u64)
    field code: optional<u64>
    unique by_code (tenant, code)
  }}
  entity Count {{
    key (tenant: uuid, number: u64)
    field at: u64 = 0
    field next: u64 = 0
  }}
  entity Note {{
    key (tenant: uuid, id: u64)
    field place: optional<u64>
    field code: optional<u64>
    field amount: u64 = 0
    reference lies_at (tenant, place) -> Place (tenant, number)
    reference coded (tenant, code) -> Place (tenant, code)
    index by_code (tenant, code)
    invariant little: amount < 100
  }}
  {bulk} command Work {{
    input request_key: string<64>
    input tenant: uuid
    input one: u64
    input lines: list<Line, 0..8>
    idempotency_key request_key
    {above}
    {body}
    return Done {{}}
  }}
}}
"""
COUNT = "mutate Count(tenant, one) as count else NoCount {} "
NEW_COUNTS = "create Count(tenant, 1) as count else Counted {} create Count(tenant, 2) as other else Counted {} "
PLACE_OF_COUNT = "read Place(tenant, count.at) as place else NoPlace {} "
NOTE = "create Note(tenant, line.id) as note else Noted {} "


def asked_for(body: str, above: str = "", bulk: str = "bulk") -> list[str]:
    """The rules that want a clause."""
    text = f"for line in lines {{ {body} }}" if bulk.endswith("bulk") else body
    source = Source("case.riff", CONTRACT.format(bulk=bulk, above=above, body=text))
    found = [part for part in compile("case", [source]).diagnostics if not part.code.startswith("RDB-C9")]
    assert {part.code for part in found} <= {"RDB-C540"}, [part.message for part in found]
    return [part.message.split("`")[3] for part in found]


@pytest.mark.parametrize(
    ("above", "body", "rules"),
    [
        (COUNT + PLACE_OF_COUNT, NOTE + "set note.place = count.at", []),
        (COUNT + PLACE_OF_COUNT, NOTE + "set note.place = count.at set count.at = count.at + 1", ["lies_at"]),
        (COUNT + PLACE_OF_COUNT, "set count.at = line.to " + NOTE + "set note.place = count.at", ["lies_at"]),
        (NEW_COUNTS, NOTE + "set note.amount = count.at", []),
        (NEW_COUNTS, NOTE + "set note.amount = count.at set count.at = 0", []),
        (NEW_COUNTS, NOTE + "set note.amount = count.at set count.at = line.amount", ["little"]),
        (NEW_COUNTS, NOTE + "set note.amount = count.at set count.at = other.at set other.at = line.to", ["little"]),
        (
            NEW_COUNTS,
            NOTE + "set note.amount = count.at decide note { when line.to == 1 apply { set count.at = 200 } "
            "otherwise apply {} }",
            ["little"],
        ),
        ("", "read Place(tenant, line.to) as place else NoPlace {} " + NOTE + "set note.place = line.to", []),
    ],
    ids=lambda part: None if isinstance(part, list) else part[:60],
)
def test_what_an_item_leaves_to_the_next_may_break_a_rule(above: str, body: str, rules: list[str]) -> None:
    assert asked_for(body, above) == rules


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ("", ["by_code"]),
        ("set place.code = one", ["by_code", "Note.coded"]),
        (
            "decide place { when one == 1 apply { set place.code = null } otherwise apply {} }",
            ["by_code", "Note.coded"],
        ),
    ],
)
def test_a_row_that_only_begins_takes_nothing_from_under_a_reference(body: str, rules: list[str]) -> None:
    row = "init_or_mutate Place(tenant, one) as place initialize { code: one } "
    assert asked_for(row + body, bulk="") == rules


def test_the_fence_of_a_created_row_may_be_that_of_its_last_life() -> None:
    job = """
      enum State { Ready, Done }
      entity Job {
        key (tenant: uuid, id: u64)
        field state: State
        field owner: optional<uuid>
        field until: optional<timestamp>
        field fence: u64
        field attempts: u64
        invariant fresh: fence == 0 || attempts > 0
        invariant counted: attempts < 5
      }
      workflow Life {
        entity Job state state initial Ready
        lease hold { owner owner expires_at until fencing_token fence attempts attempts duration_seconds (5, 900) }
      }
      bulk command"""
    row = "create Job(tenant, line.id) as job else Exists {} set job.fence = 0 set job.attempts = 0"
    assert asked_for(row, bulk=job.removesuffix(" command")) == ["fresh"]


DOUBLED = """
      entity Box {
        key (tenant: uuid, id: u64)
        field size: u64
        field note: u64 = 0
        computed twice: u64 = size * 2
        unique by_twice (tenant, twice)
      }
      """


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ("set box.size = one", ["by_twice"]),
        ("set box.note = one", []),
        ("set box.note = one set box.size = 3", ["by_twice"]),
        ("decide box { when one == 1 apply { set box.size = one } otherwise apply {} }", ["by_twice"]),
    ],
)
def test_a_row_found_by_what_is_computed_may_change_it(body: str, rules: list[str]) -> None:
    found = "mutate Box.by_twice(tenant, one) as box else NoBox {} "
    assert asked_for(found + body, bulk=DOUBLED) == rules
