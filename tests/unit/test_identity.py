"""Identities: what they leave out, what they do not, and that they are the same everywhere.

Units, since a hash shows at the surface only as a whole.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from riffdb.client.application import compiled_plan
from riffdb.compiler import compile
from riffdb.core.diagnostics import render
from riffdb.core.spans import Source
from riffdb.core.types import BOOL, U64, UUID, Type
from riffdb.database.codecs import InputCodec
from riffdb.plan import Plan
from riffdb.plan.commands import CommandPlan, InputPlan, OutcomePlan, OutcomeUse, RequireStep
from riffdb.plan.declarations import EntityPlan, FieldPlan
from riffdb.plan.expressions import Binary, Constant, Input, kept_value
from riffdb.plan.identity import canonical, declaration_hash, declaration_hashes, plan_hash
from riffdb.plan.plan import from_json, to_json

ROOT = Path(__file__).parent.parent.parent
QUEUE = ROOT / "examples" / "queue"
HASHES = ROOT / "tests" / "cases" / "plan" / "queue" / "expected" / "hashes.txt"
TEXT = (QUEUE / "work.riff").read_text("utf-8")

# These stand in attempt identities and in locks: whoever changes one has changed what deployed databases rest on.
GOLDEN = {
    "entities.WorkItem": "acfa14d7ee41a0b6d09d527dc5544847030ce8996092bd28ded9718bdb7a4090",
    "commands.ClaimWork": "dfaaf49d3412b4f8a7f2ae861b34d43d7b46a5b14a620aa6cb5ce35a89c6cad9",
    "queries.DueWork": "cc035b1a022f3dc95a1795e9eec8410424f89f351d74164b166cb09a4b3a5187",
    "schedules.DueWorkItems": "219cca4ab4871700d17e1e0c744590f84e3b4ba68777a064815fee9c8dac3f32",
}


def plan_of(*texts: str, application: str = "queue") -> Plan:
    sources = tuple(Source(f"{number}.riff", text) for number, text in enumerate(texts))
    compilation = compile(application, sources)
    assert compilation.plan is not None, "\n".join(render(found) for found in compilation.diagnostics)
    return compilation.plan


def changed(old: str, new: str, text: str = TEXT) -> Plan:
    assert old in text
    return plan_of(text.replace(old, new, 1))


def names_changed(plan: Plan) -> set[str]:
    before, after = declaration_hashes(QUEUE_PLAN), declaration_hashes(plan)
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


QUEUE_PLAN = plan_of(TEXT)


def test_the_identities_of_the_queue_are_as_committed() -> None:
    found = declaration_hashes(compiled_plan(QUEUE))
    assert {name: found[name].hex() for name in GOLDEN} == GOLDEN
    lines = [line.partition(" ") for line in HASHES.read_text("utf-8").splitlines()]
    committed = {name: identity for identity, _, name in lines}
    assert committed.pop("plan") == plan_hash(compiled_plan(QUEUE)).hex()
    assert committed == {name: identity.hex() for name, identity in found.items()}


def test_identities_do_not_hang_on_the_process() -> None:
    program = (
        "import sys; from pathlib import Path; from riffdb.client.application import compiled_plan\n"
        "from riffdb.plan.identity import plan_hash; from riffdb.plan.plan import to_json\n"
        "plan = compiled_plan(Path(sys.argv[1])); print(plan_hash(plan).hex(), hash(to_json(plan)) and to_json(plan))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, str(QUEUE)],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "TZ": "Asia/Tokyo"},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert outputs == {f"{plan_hash(QUEUE_PLAN).hex()} {to_json(QUEUE_PLAN)}\n".encode()}


def split_at_top() -> list[str]:
    """The declarations of the queue, one text each."""
    starts = [TEXT.index(f"\n{word} ") for word in ("contract", "query", "stream", "role", "schedule")]
    return [TEXT[start:end] for start, end in zip(starts, [*starts[1:], len(TEXT)], strict=True)]


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(plan_of(*split_at_top()), id="files"),
        pytest.param(plan_of(*reversed(split_at_top())), id="files-reversed"),
        pytest.param(plan_of(TEXT, application="other"), id="application"),
        pytest.param(changed("version 1", "version 2"), id="version"),
        pytest.param(changed("/// One unit of work.", "/// Something else."), id="doc-entity"),
        pytest.param(changed("/// Puts work into the queue.", "///"), id="doc-command"),
        pytest.param(changed("    /// The worker that holds", "    // The worker that holds"), id="doc-field"),
        pytest.param(changed("/// What a worker may do now", "// What a worker may do now"), id="doc-query"),
        pytest.param(changed("field due_at: timestamp", "field due_at: timestamp was due"), id="former-name"),
        pytest.param(changed("entity WorkItem {", "entity   WorkItem\n\n{ // so"), id="layout"),
        pytest.param(changed("command ClaimWork, RenewWork,", "command RenewWork command ClaimWork,"), id="role"),
    ],
)
def test_what_is_no_part_of_an_identity(plan: Plan) -> None:
    assert plan_hash(plan) == plan_hash(QUEUE_PLAN)
    assert declaration_hashes(plan) == declaration_hashes(QUEUE_PLAN)
    assert canonical(plan) == canonical(QUEUE_PLAN)


def test_the_order_of_declarations_is_no_part_of_an_identity() -> None:
    start, end = TEXT.index("  /// Puts work into the queue."), TEXT.index("  /// Takes the item for")
    create = TEXT[start:end]
    moved = TEXT.replace(create, "").replace("  /// Clears a lease that", create + "  /// Clears a lease that")
    assert moved != TEXT
    assert plan_hash(plan_of(moved)) == plan_hash(QUEUE_PLAN)


WORKER_ROLE = "command ClaimWork, RenewWork, CompleteWork, ReleaseWork, FailWork"


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("Running, Complete, Failed }", "Running, Complete, Failed, Lost }", {"enums.WorkState"}),
        ("duration_seconds (5, 900)", "duration_seconds (5, 901)", {"workflows.WorkLifecycle"}),
        ("Start from (Queued) to", "Start from (Queued, Running) to", {"workflows.WorkLifecycle"}),
        ("    return Created { work: work }", "    return Created {}", {"commands.CreateWork"}),
        ("AlreadyExists {}", "AlreadyExists { work: work }", {"commands.CreateWork"}),
        ("lease_attempts >= 10", "lease_attempts >= 11", {"commands.FailWork"}),
        ("lease_attempts >= 10", "lease_attempts > 10", {"commands.FailWork"}),
        ("limit<100> = 32", "limit<100> = 33", {"queries.DueWork"}),
        ("available_at <= tx.time", "available_at < tx.time", {"queries.DueWork"}),
        ("role WorkProducer {\n", "role WorkProducer { command ExpireWork\n", {"roles.WorkProducer"}),
        (WORKER_ROLE, WORKER_ROLE.replace(", FailWork", ""), {"roles.WorkScheduler"}),
        ("  fail FailWork\n", "\n", {"schedules.DueWorkItems"}),
        ("index by_available (", "index by_due (", {"entities.WorkItem", "queries.DueWork"}),
        (
            "work_id: uuid revision: u64 }",
            "revision: u64 work_id: uuid }",
            {"events.WorkCompleted", "commands.CompleteWork"},
        ),
        (
            "max(due_at, coalesce(lease_expires_at, due_at))",
            "max(coalesce(lease_expires_at, due_at), due_at)",
            {"entities.WorkItem"},
        ),
    ],
)
def test_what_a_declaration_says_is_its_identity(old: str, new: str, names: set[str]) -> None:
    plan = changed(old, new)
    assert plan_hash(plan) != plan_hash(QUEUE_PLAN)
    assert names_changed(plan) == names


def test_a_declaration_is_found_by_its_name() -> None:
    assert declaration_hash(QUEUE_PLAN, "queries", "DueWork").hex() == GOLDEN["queries.DueWork"]
    with pytest.raises(KeyError):
        declaration_hash(QUEUE_PLAN, "queries", "ClaimWork")


def test_the_whole_text_comes_back_as_it_was() -> None:
    assert from_json(to_json(QUEUE_PLAN)) == QUEUE_PLAN
    assert to_json(from_json(to_json(QUEUE_PLAN))) == to_json(QUEUE_PLAN)


def test_a_constant_survives_the_text_of_a_plan() -> None:
    number, text = FieldPlan("number", U64), Type("bytes", bound=4)
    fields = (
        FieldPlan("holder", UUID, has_default=True, default=kept_value(bytes(range(16)))),
        FieldPlan("mark", text, has_default=True, default=kept_value(b"\xff\x00")),
    )
    condition = Binary(BOOL, "==", Input(text, "mark"), Constant(text, kept_value(b"\xfb\xff")))
    use = OutcomeUse("Done")
    command = CommandPlan(
        name="Look",
        inputs=(InputPlan("number", U64), InputPlan("mark", text, has_default=True, default=kept_value(b"\x01"))),
        idempotency_key=None,
        partition=Input(U64, "number"),
        steps=(RequireStep("marked", condition, OutcomeUse("No")),),
        answer=use,
        outcomes=(OutcomePlan("Done", True, False), OutcomePlan("No", False, False)),
    )
    plan = Plan("marks", "Marks", 1, entities=(EntityPlan("Mark", (number,), "number", fields),), commands=(command,))
    kept = from_json(to_json(plan))
    assert kept == plan
    assert (plan_hash(kept), to_json(kept)) == (plan_hash(plan), to_json(plan))
    assert InputCodec(command.inputs, {}, "input").decode({"number": 1}) == (1, b"\x01")
