"""Bulk commands: what a loop knows of its item and of the rows above it, and what it leaves behind.

Cases show each refusal once with its text; here stand the many bodies that one rule must tell apart.
"""

import pytest

from riffdb.compiler import compile
from riffdb.core.spans import Source
from riffdb.core.types import U64, UUID, Type
from riffdb.plan import Plan
from riffdb.plan.commands import BindStep, CommandPlan, ForStep, LeaseStep, ServicePlan
from riffdb.plan.expressions import Input, Item
from riffdb.plan.plan import from_json, to_json

CONTRACT = """
contract Case version 1 {{
  enum State {{ Ready, Done }}
  record Line {{ id: uuid, parent: optional<uuid>, amount: u64, rev: u64, who: uuid, token: u64, tenant: uuid }}
  entity Job {{
    key (tenant: uuid, id: uuid)
    field state: State
    field owner: optional<uuid>
    field until: optional<timestamp>
    field fence: u64
    field amount: u64 = 0
  }}
  entity Note {{
    key (tenant: uuid, id: uuid)
    field amount: u64 = 0
    field ref: optional<uuid>
    field text: string<20>
  }}
  entity Sum {{
    key (tenant: uuid, name: string<20>)
    field total: u64 = 0
    field last: optional<uuid>
    field next: uuid
  }}
  event Seen {{ partition_by (tenant) tenant: uuid total: u64 last: uuid }}
  workflow Life {{
    entity Job state state initial Ready
    transition Finish from (Ready) to Done
    lease hold {{ owner owner expires_at until fencing_token fence duration_seconds (5, 900) }}
  }}
  bulk command Work {{
    input request_key: string<64>
    input tenant: uuid
    input one: uuid
    input rev: u64
    input lines: list<Line, {least}..{most}>
    input ids: list<uuid, 1..8>
    input secret codes: list<string<20>, 0..8>
    service made: uuid_v7
    idempotency_key request_key
    {above}
    for line in lines {{ {body} }}
    return Done {{ {answer} }}
  }}
}}
"""
SUM = 'mutate Sum(tenant, "all") as sum else NoSum {} '
NOTE = "mutate Note(tenant, line.id) as note else NoNote {} "
JOB = "mutate Job(tenant, line.id) as job else NoJob {} "
FENCE = (
    "lease fence hold on job owner line.who fencing_token line.token revision line.rev "
    "stale S {} invalid I {} expired E {} "
)
FINISH = "transition Finish on job revision line.rev stale S {} illegal Closed {} "
NOT_NULL = "require has: sum.last is not null else NoLast {} "


def compiled(
    body: str, above: str = "", answer: str = "", least: int = 0, most: int = 64
) -> tuple[Plan | None, list[str]]:
    """The plan, and the codes of what the compiler says to it."""
    text = CONTRACT.format(body=body, above=above, answer=answer, least=least, most=most)
    compilation = compile("case", [Source("case.riff", text)])
    return compilation.plan, [found.code for found in compilation.diagnostics if not found.lint]


def command(body: str, **parts: str | int) -> CommandPlan:
    """The command of a body that compiles; its plan survives its JSON form."""
    plan, codes = compiled(body, **parts)  # type: ignore[arg-type]  # by name
    assert plan is not None, codes
    assert from_json(to_json(plan)) == plan
    return plan.command("Work")


def test_the_plan_says_what_a_loop_does() -> None:
    plan, _ = compiled(JOB + FENCE + "set job.amount = line.amount")
    assert plan is not None
    types = {part.name: part.type for part in plan.record("Line").fields}
    assert types == {
        "id": UUID,
        "parent": UUID.nullable,
        "amount": U64,
        "rev": U64,
        "who": UUID,
        "token": U64,
        "tenant": UUID,
    }
    work = plan.command("Work")
    lines = next(part.type for part in work.inputs if part.name == "lines")
    assert lines == Type("list", bound=64, element=Type("record", name="Line"))
    assert (work.kind, work.services) == ("bulk", (ServicePlan("made", UUID),))
    [loop] = work.steps
    assert isinstance(loop, ForStep)
    assert (loop.item, loop.items) == ("line", "lines")
    bind, lease, _ = loop.steps
    assert isinstance(bind, BindStep)
    assert bind.key == (Input(UUID, "tenant"), Item(UUID, "id"))
    assert isinstance(lease, LeaseStep)
    assert (lease.owner, lease.revision) == (Item(UUID, "who"), Item(U64, "rev"))


def test_an_item_of_single_values_is_the_value() -> None:
    text = CONTRACT.format(
        body="read Note(tenant, id) as note else NoNote { id: id }", above="", answer="", least=0, most=8
    )
    compilation = compile("case", [Source("case.riff", text.replace("for line in lines", "for id in ids"))])
    assert compilation.plan is not None, [found.code for found in compilation.diagnostics]
    [loop] = compilation.plan.command("Work").steps
    assert isinstance(loop, ForStep)
    [bind] = loop.steps
    assert isinstance(bind, BindStep)
    assert bind.key == (Input(UUID, "tenant"), Item(UUID, ""))


SOUND = [
    # Facts about an item hold within it.
    NOTE
    + "require known: line.parent is not null else No {} emit Seen { tenant: tenant, total: 1, last: line.parent }",
    "require known: line.parent is not null else No {} read Note(tenant, line.parent) as parent else NoNote {} ",
    NOTE
    + "decide note { when line.parent is null none No {} "
    + "otherwise apply { read Job(tenant, line.parent) as j else N {} } }",
    # A key may rest on a row that was bound for the same item, and on the service value beside the item.
    "read Note(tenant, line.id) as note else NoNote {} require refers: note.ref is not null else No {} "
    "maybe Job(tenant, note.ref) as job require free: job is null else J {} ",
    NOTE + "set note.ref = made",
    NOTE + "decide note { when line.amount > 3 none Much {} otherwise apply { set note.amount = line.amount } } ",
    JOB + "decide job { when job.amount > 3 apply { " + FENCE + "} otherwise none Few {} } " + FINISH,
    JOB + FENCE + FINISH,
]


@pytest.mark.parametrize("body", SOUND)
def test_a_loop_does_what_a_body_does(body: str) -> None:
    command(body)


def test_a_row_above_the_loop_may_be_changed_by_every_item() -> None:
    command("set sum.total = sum.total + line.amount", above=SUM, answer="sum: sum")
    command("set sum.last = line.id emit Seen { tenant: tenant, total: sum.total, last: line.id }", above=SUM)


REFUSED = [
    # What one item knows of itself, the next does not know of itself, and after the loop there is none.
    ("set sum.last = line.parent require a: line.parent is not null else N {}", SUM, "last: line.parent", ["RDB-C206"]),
    (NOTE, "", "note: note", ["RDB-C206"]),
    # Items before this one may have changed the row above the loop, whatever was known of it there.
    (
        "set sum.last = line.parent emit Seen { tenant: tenant, total: 1, last: sum.last }",
        SUM + NOT_NULL,
        "",
        ["RDB-C209"],
    ),
    ("emit Seen { tenant: tenant, total: 1, last: sum.last } set sum.last = null", SUM + NOT_NULL, "", ["RDB-C209"]),
    (
        "require b: sum.last == line.id else N {} read Note(tenant, sum.next) as n else N {} set sum.next = line.id",
        SUM,
        "",
        ["RDB-C522"],
    ),
    # The partition, keys.
    ("mutate Note(line.tenant, line.id) as note else N {} ", "", "", ["RDB-C505"]),
    ("mutate Note(made, line.id) as note else N {} ", "", "", ["RDB-C505"]),
    ("mutate Note(tenant, one) as note else N {} ", "", "", ["RDB-C551"]),
    ('create Note(tenant, made) as note else N {} set note.text = "" ', "", "", ["RDB-C551"]),
    ("read Note(tenant, line.id) as a else N {} read Note(tenant, line.id) as b else N {} ", "", "", ["RDB-C515"]),
    ("read Note(tenant, line.parent) as note else N {} ", "", "", ["RDB-C209"]),
    # Leases.
    (JOB + "set job.amount = 1", "", "", ["RDB-C426"]),
    (JOB + FENCE + FENCE, "", "", ["RDB-C428"]),
    (JOB + "decide job { when job.amount > 3 apply { " + FENCE + "} otherwise apply {} } ", "", "", ["RDB-C427"]),
    (JOB + FENCE.replace("line.rev", "line.amount + 1"), "", "", ["RDB-C423"]),
    (JOB + FENCE.replace("line.who", "line.parent"), "", "", ["RDB-C424"]),
    (JOB + FENCE.replace("line.who", "line.whom"), "", "", ["RDB-C206"]),
    (JOB + FENCE.replace("line.who", "made"), "", "", ["RDB-C423"]),
    (FENCE, "mutate Job(tenant, one) as job else NoJob {} ", "", ["RDB-C552"]),
    ("", "delete Job(tenant, one) as job else NoJob {} ", "", ["RDB-C552"]),
    (
        JOB + NOTE + "decide note { otherwise apply { set job.amount = 1 } } ",
        "",
        "",
        ["RDB-C437"],
    ),
    ("create Job(tenant, line.id) as job else J {} ", "", "", ["RDB-C419"]),
    ("create Note(tenant, line.id) as note else N {} ", "", "", ["RDB-C507"]),
    # Values.
    (NOTE + "set note.amount = line", "", "", ["RDB-C215"]),
    (NOTE + "set note.amount = lines", "", "", ["RDB-C208"]),
    (NOTE + "set note.text = codes", "", "", ["RDB-C208"]),
    (NOTE + "emit Seen { tenant: tenant, total: line.sum, last: line.id }", "", "", ["RDB-C206"]),
    (NOTE, "", "lines: lines", ["RDB-C514"]),
    # Names.
    ("read Note(tenant, line.id) as line else N {} ", "", "", ["RDB-C103"]),
    ("read Note(tenant, line.id) as State else N {} ", "", "", ["RDB-C516"]),
    ("read Note(tenant, line.id) as sum else N {} ", SUM, "", ["RDB-C103"]),
]


@pytest.mark.parametrize(("body", "above", "answer", "codes"), REFUSED)
def test_what_a_loop_cannot_do_is_refused(body: str, above: str, answer: str, codes: list[str]) -> None:
    assert compiled(body, above, answer) == (None, codes)


def test_a_created_row_above_the_loop_is_whole_only_if_an_item_comes_for_sure() -> None:
    above, body = 'create Sum(tenant, "all") as sum else There {} ', "set sum.next = line.id"
    command(body, above=above, least=1)
    assert compiled(body, above, least=0) == (None, ["RDB-C507"])


def test_the_list_bounds_the_successor_revisions() -> None:
    new = "create Job(tenant, line.{}) as {} else J {{}} set {}.fence = 0 "
    two = new.format("id", "a", "a", "a") + new.format("who", "b", "b", "b")
    command(new.format("id", "a", "a", "a"), most=256)
    command(two, most=128)
    assert compiled(two, most=129) == (None, ["RDB-C554"])
    arms = (
        NOTE + "decide note { when line.amount > 3 apply { " + new.format("id", "a", "a", "a") + "} otherwise apply { "
    )
    command(arms + new.format("who", "b", "b", "b") + "} } ", most=256)


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ("    idempotency_key request_key\n", "", ["RDB-C501"]),
        ("idempotency_key request_key", "idempotency_key made", ["RDB-C502"]),
        ("idempotency_key request_key", "idempotency_key ids", ["RDB-C502"]),
        ("for line in lines", "for line in codes", ["RDB-C206"]),
        ("for line in lines", "for tenant in ids", ["RDB-C103", "RDB-C205"]),
        ("for line in lines", "for State in ids", ["RDB-C205", "RDB-C516"]),
        ("for line in lines", "for line in line", ["RDB-C550"]),
        ("service made", "service tenant", ["RDB-C103"]),
        ("record Line { id: uuid", "record Line { id: uuid, id: u64", ["RDB-C103"]),
        ("record Line { id: uuid", "record Line { id: text", ["RDB-C201"]),
        ("record Line { id: uuid", "record Line { id: optional<list<u64, 0..2>>", ["RDB-C204"]),
        ("list<uuid, 1..8>", "list<optional<uuid>, 1..8>", ["RDB-C204"]),
        ("list<uuid, 1..8>", "list<uuid, 1..257>", ["RDB-C203"]),
        ("list<uuid, 1..8>", "list<Note, 1..8>", ["RDB-C204"]),
        ("list<uuid, 1..8>", "optional<list<Line, 1..8>>", ["RDB-C204"]),
        ("list<uuid, 1..8>", "list<Line<8>, 1..8>", ["RDB-C202"]),
        ("record Line", "record uuid", ["RDB-C105", "RDB-C201"]),
        ("field text: string<20>", "field text: Line", ["RDB-C204"]),
        ("input one: uuid", "input key of Sum input one: uuid", ["RDB-C103"]),
        ("input one: uuid", "input key of None input one: uuid", ["RDB-C104"]),
    ],
)
def test_a_declaration_that_cannot_be_is_refused_once(old: str, new: str, codes: list[str]) -> None:
    text = CONTRACT.format(body=NOTE + "set note.amount = line.amount", above="", answer="", least=0, most=8)
    assert old in text
    found = compile("case", [Source("case.riff", text.replace(old, new, 1))]).diagnostics
    assert sorted({diagnostic.code for diagnostic in found if not diagnostic.lint}) == codes
