"""One mistake gives one diagnostic, wherever it stands, and never hides the next one.

Each line changes the first example of the language page in one place and says which code must come of it. The rendered
texts stand in the cases; here it is the number that counts, over many more places than are worth a folder.
"""

import pytest

from riffdb.core.diagnostics import Diagnostic, render
from riffdb.core.limits import EXPRESSION_OPERATORS_MAX, IDENTIFIER_BYTES_MAX, NESTING_MAX, SOURCE_BYTES_MAX
from riffdb.core.spans import Source
from riffdb.syntax import parse
from riffdb.syntax.tree import CommandDecl, ContractDecl, EntityDecl
from riffdb.syntax.words import meant
from tests.unit.syntax_samples import EXAMPLE, mistakes, nodes, parsed

MUTATE = "mutate WorkItem(organization_id, work_id) as work else Missing {}"

CHANGES = [
    # what stands there, what stands there instead, the code, the text at the place
    ("command CompleteWork", "comand CompleteWork", "RDB-C009", "comand"),
    ("contract WorkQueue", "contarct WorkQueue", "RDB-C009", "contarct"),
    ("    field state: WorkState", "    feild state: WorkState", "RDB-C009", "feild"),
    ("    field state: WorkState", "    FIELD state: WorkState", "RDB-C009", "FIELD"),
    ("    field state: WorkState", "    state: WorkState", "RDB-C001", "state"),
    ("field due_at: timestamp", "field due_at:", "RDB-C001", ":"),
    ("field due_at: timestamp", "field due_at timestamp", "RDB-C001", "timestamp"),
    ("field due_at: timestamp", "field due_at: optional<timestamp", "RDB-C001", "p"),
    ("field due_at: timestamp", "field: timestamp", "RDB-C001", ":"),
    ("field due_at: timestamp", "field", "RDB-C001", "d"),
    ("field due_at: timestamp", "field due_at: timestamp = soon", "RDB-C001", "n"),
    ("index by_available (", "index (", "RDB-C001", "("),
    ("(organization_id, state, available_at)", "(organization_id, state available_at)", "RDB-C001", "available_at"),
    ("key (organization_id: uuid, work_id: uuid)", "key organization_id: uuid, work_id: uuid", "RDB-C001", None),
    ("  entity WorkItem {", "  entity WorkItem", "RDB-C001", "m"),
    ("enum WorkState { Queued, Running", "enum WorkState { Queued = 1, Running", "RDB-C001", "="),
    ("enum WorkState {", "enum {", "RDB-C001", "{"),
    ("enum WorkState {", "enum WorkState [", "RDB-C003", "["),
    ("Failed }", "Failed", "RDB-C011", "d"),
    ("contract WorkQueue version 1 {", "contract WorkQueue {", "RDB-C001", "{"),
    ("contract WorkQueue version 1 {", "contract version 1 {", "RDB-C001", "version"),
    ("contract WorkQueue version 1 {", "contract WorkQueue version one {", "RDB-C001", "one"),
    ("contract WorkQueue version 1 {", "", "RDB-C012", "enum"),
    ("revision: u64 }", "revision: u64", "RDB-C011", "4"),
    ("partition_by (organization_id) organization_id", "organization_id", "RDB-C001", "organization_id"),
    ("partition_by (organization_id) organization_id", "partion_by (a) organization_id", "RDB-C009", "partion_by"),
    ("partition_by (organization_id) organization_id", "partition_by () organization_id", "RDB-C001", ")"),
    ("organization_id: uuid work_id: uuid", "organization_id: work_id: uuid", "RDB-C001", "work_id"),
    ("    entity WorkItem\n", "", "RDB-C014", "workflow WorkLifecycle"),
    ("    state state\n", "    state\n", "RDB-C001", "e"),
    ("    initial Queued\n", "    initial\n", "RDB-C001", "l"),
    ("Finish from (Queued, Running) to", "Finish (Queued, Running) to", "RDB-C001", "("),
    ("to Running\n", "Running\n", "RDB-C001", "Running"),
    ("owner lease_owner  expires_at", "owner  expires_at", "RDB-C001", "expires_at"),
    ("expires_at lease_expires_at  ", "", "RDB-C014", "lease execution"),
    ("duration_seconds (5, 900)", "duration_seconds (5)", "RDB-C001", ")"),
    ("input token: u64", "input token u64", "RDB-C001", "u64"),
    ("input token: u64", "input token: u64;", "RDB-C003", ";"),
    ("input token: u64", 'input token: string<"secret">', "RDB-C001", '"secret"'),
    ("    idempotency_key request_key\n    mutate", "    idempotency_key\n    mutate", "RDB-C001", "y"),
    (MUTATE, "mutate WorkItem(organization_id, work_id) work else Missing {}", "RDB-C001", "work"),
    (MUTATE, "mutate WorkItem(organization_id, work_id) as else Missing {}", "RDB-C001", "else"),
    (MUTATE, "mutate WorkItem(organization_id, work_id) as then else Missing {}", "RDB-C007", "then"),
    (MUTATE, "mutate WorkItem(organization_id, work_id as work else Missing {}", "RDB-C001", "as"),
    (MUTATE, "mutate WorkItem(organization_id work_id) as work else Missing {}", "RDB-C001", "work_id"),
    (MUTATE, "mutate WorkItem organization_id, work_id) as work else Missing {}", "RDB-C001", "organization_id"),
    (MUTATE, "mutate WorkItem() as work else Missing {}", "RDB-C001", ")"),
    (MUTATE, "mutate (organization_id, work_id) as work else Missing {}", "RDB-C001", "("),
    (MUTATE, "mutate WorkItem(organization_id, work_id) as work Missing {}", "RDB-C001", "Missing"),
    (MUTATE, "mutate WorkItem(organization_id, work_id) as work", "RDB-C001", "k"),
    (MUTATE, "mutate WorkItem(organization_id, work_id) as work else Missing", "RDB-C001", "Missing"),
    (MUTATE, "mutate WorkItem(organization_id, work_id) as work else {}", "RDB-C001", "{"),
    (MUTATE, "maybe WorkItem(organization_id, work_id) as work else Missing {}", "RDB-C016", "else Missing {}"),
    (MUTATE, "mutaet WorkItem(organization_id, work_id) as work else Missing {}", "RDB-C009", "mutaet"),
    (MUTATE, f"{MUTATE} conflct by_number Taken {{}}", "RDB-C009", "conflct"),
    ("lease fence execution", "lease fense execution", "RDB-C009", "fense"),
    ("lease fence execution", "lease fence", "RDB-C001", "on"),
    ("lease fence execution", "lease execution", "RDB-C001", "execution"),
    ("on work owner owner_id", "on work owner", "RDB-C001", "fencing_token"),
    ("on work revision expected_revision\n", "on work revision\n", "RDB-C001", "n"),
    ("stale WorkStale {} illegal", "stal WorkStale {} illegal", "RDB-C009", "stal"),
    ("stale WorkStale {} illegal", "stale WorkStale {} stale", "RDB-C013", "stale"),
    ("stale WorkStale {} illegal", "stale WorkStale {} expired", "RDB-C016", "expired"),
    ("stale WorkStale {} illegal", "stale WorkStale {} because", "RDB-C001", "because"),
    ("stale WorkStale {} illegal", "stale WorkStale illegal", "RDB-C001", "WorkStale"),
    ("organization_id: organization_id, work_id", "organization_id: organization_id work_id", "RDB-C001", "work_id"),
    ("emit WorkCompleted {", "emit WorkCompleted", "RDB-C001", "organization_id"),
    ("revision: work.revision }\n", "revision: work.revision\n", "RDB-C011", "n"),
    ("    return Completed { work: work }\n  }", "    return Completed { work: work }\n", "RDB-C011", "}"),
    ("    return Completed { work: work }\n", "", "RDB-C014", "command CompleteWork"),
    ("    return Completed { work: work }\n", "    return Completed { work: work\n", "RDB-C011", "}"),
    ("    return Completed { work: work }\n", "    return Completed\n", "RDB-C001", "Completed"),
    ("    return Completed { work: work }\n", "    return { work: work }\n", "RDB-C001", "{"),
    ("    return Completed { work: work }\n", "    return Done {}\n    return Again {}\n", "RDB-C015", "return"),
    ("      return Buried { work: work }\n      }", "      return Buried { work: work }\n", "RDB-C011", "}"),
    ("decide work {", "decide {", "RDB-C001", "{"),
    ("decide work {", "decide work", "RDB-C001", "k"),
    ("otherwise apply {", "otherwise {", "RDB-C001", "{"),
    ("otherwise apply {", "othrwise apply {", "RDB-C009", "othrwise"),
    ("when work.lease_attempts >= 10", "when", "RDB-C001", "apply"),
    ("when work.lease_attempts >= 10", "when work.lease_attempts >=", "RDB-C001", "apply"),
    ("when work.lease_attempts >= 10", "when work.lease_attempts = 10", "RDB-C018", "="),
    ("when work.lease_attempts >= 10", "when work.lease_attempts > 5 and work.x", "RDB-C018", "and"),
    ("when work.lease_attempts >= 10", "when not work.lease_attempts >= 10", "RDB-C018", "not"),
    ("when work.lease_attempts >= 10", "when 5 < work.lease_attempts < 10", "RDB-C020", "<"),
    ("when work.lease_attempts >= 10", "when if work.x then work.y else work.z", "RDB-C001", "if"),
    ("when work.lease_attempts >= 10", "when work.lease_attempts >= 1O", "RDB-C006", "1O"),
    ("when work.lease_attempts >= 10", "when (work.lease_attempts >= 10", "RDB-C001", "apply"),
    ("set work.due_at = tx.time", "work.due_at = tx.time", "RDB-C001", "work"),
    ("set work.due_at = tx.time", "set work = tx.time", "RDB-C001", "="),
    ("set work.due_at = tx.time", "set work.due_at tx.time", "RDB-C001", "tx"),
    ("set work.due_at = tx.time +", "set work.due_at =", "", ""),
    ("tx.time + seconds(retry_seconds)\n", "\n", "RDB-C001", "="),
    ("tx.time + seconds(retry_seconds)", "tx.now + seconds(retry_seconds)", "RDB-C001", "now"),
    ("where organization_id", "wher organization_id", "RDB-C009", "wher"),
    ("order by available_at", "order available_at", "RDB-C001", "available_at"),
    ("take $limit", "tak $limit", "RDB-C009", "tak"),
    ("take $limit", "", "RDB-C014", "many due"),
    ("take $limit", "take limit", "RDB-C001", "limit"),
    ("take $limit", "take $limit take 5", "RDB-C013", "take"),
    ("take $limit", "take $limit by state", "RDB-C016", "by"),
    ("many due from WorkItem", "many from WorkItem", "RDB-C001", "from"),
    ("$limit: limit<100> = 32", "limit: limit<100> = 32", "RDB-C001", "limit"),
    ("partition organization_id ==", "partition organization_id =", "RDB-C001", "="),
    ("  partition organization_id == $organization_id\n", "", "RDB-C014", "stream WorkActivity"),
    ("event WorkCompleted { organization_id work_id", "event { organization_id work_id", "RDB-C001", "{"),
    ("command ClaimWork, RenewWork", "command ClaimWork RenewWork", "RDB-C001", "RenewWork"),
    ("query DueWork\n", "query DueWork,\n", "RDB-C001", ","),
    ("due due_at", "deu due_at", "RDB-C009", "deu"),
    ("  due due_at\n", "", "RDB-C014", "schedule DueWorkItems"),
    ("claim ClaimWork  renew", "claim  renew", "RDB-C001", "renew"),
    ("from query DueWork each items", "from DueWork each items", "RDB-C001", "DueWork"),
    ("  }\n\n  // ClaimWork", "  }}\n\n  // ClaimWork", "RDB-C012", "command"),
    ("Retried { work: work }\n  }\n}", "Retried { work: work }\n  }\n", "RDB-C011", "}"),
    ("Retried { work: work }\n  }\n}", "Retried { work: work }\n  }\n}\n}", "RDB-C012", "}"),
    ("stream WorkActivity", "enum Late { A }\nstream WorkActivity", "RDB-C012", "enum"),
    ("  enum WorkState", "  role Early { query DueWork }\n  enum WorkState", "RDB-C015", "role"),
    ("  // ClaimWork", "  # ClaimWork", "RDB-C003", "#"),
    ("  // ClaimWork", "  /* no\n block */ // ClaimWork", "RDB-C003", "/*"),
]


@pytest.mark.parametrize(("old", "new", "code", "place"), CHANGES, ids=[f"{new[:60]!r}" for _, new, _, _ in CHANGES])
def test_one_mistake_gives_one_diagnostic(old: str, new: str, code: str, place: str | None) -> None:
    assert old in EXAMPLE
    found = mistakes(EXAMPLE.replace(old, new, 1))
    assert [diagnostic.code for diagnostic in found] == ([code] if code else []), [render(each) for each in found]
    if code and place is not None:
        assert found[0].span.text == place


def test_the_declarations_around_a_mistake_are_kept() -> None:
    whole = parsed(EXAMPLE)
    for old, new, _, _ in CHANGES:
        tree, _ = parse(Source("sample.riff", EXAMPLE.replace(old, new, 1)))
        kept = {type(node).__name__ for node in nodes(tree)}
        if "contract" not in old:
            assert len(tree.declarations) >= len(whole.declarations) - 1, new
            assert {"CommandDecl", "EnumDecl"} <= kept or "enum" in old, new


def test_mistakes_in_different_places_are_all_reported() -> None:
    text = EXAMPLE
    for old, new in (
        ("field due_at: timestamp", "field due_at:"),
        ("input token: u64", "input token u64"),
        ("stale WorkStale {} illegal", "stal WorkStale {} illegal"),
        ("decide work {", "decide {"),
        ("return Retried { work: work }\n  }", "return Retried { work: work }\n"),
        ("take $limit", "tak $limit"),
        ("due due_at", "deu due_at"),
    ):
        text = text.replace(old, new, 1)
    lines = [diagnostic.span.source.position(diagnostic.span.start)[0] for diagnostic in mistakes(text)]
    assert len(lines) == 7
    assert lines == sorted(lines)


def test_lines_that_are_broken_in_the_same_way_are_each_reported() -> None:
    members = "".join(f"    field f{number} u64 u64\n" for number in range(9))
    found = mistakes(f"contract C version 1 {{\n  entity E {{\n{members}  }}\n}}\n")
    assert [diagnostic.span.source.position(diagnostic.span.start)[0] for diagnostic in found] == list(range(3, 12))
    found = mistakes("contract C version 1 {\n  entity {}\n  entity {}\n  enum {}\n}\n")
    assert [diagnostic.span.source.position(diagnostic.span.start)[0] for diagnostic in found] == [2, 3, 4]


def test_a_line_that_begins_with_no_keyword_is_reported_behind_a_broken_one() -> None:
    found = mistakes(
        "contract C version 1 {\n  command X {\n    read A(a) b else D {}\n    e.f = 1\n    return Y {}\n  }\n}"
    )
    assert [diagnostic.span.text for diagnostic in found] == ["b", "e"]


def test_the_rest_of_a_split_token_has_its_own_place() -> None:
    (found,) = mistakes("contract C version 1 { entity E { field f: optional<u64>=\n} }")
    assert found.span.text == "="


def _applied(diagnostic: Diagnostic, text: str) -> str:
    assert diagnostic.fix is not None
    for edit in sorted(diagnostic.fix.edits, key=lambda edit: edit.span.start, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


@pytest.mark.parametrize(("old", "new"), [(old, new) for old, new, _, _ in CHANGES])
def test_a_safe_fix_leaves_nothing_to_say(old: str, new: str) -> None:
    text = EXAMPLE.replace(old, new, 1)
    for diagnostic in mistakes(text):
        if diagnostic.fix is not None and diagnostic.fix.safe:
            assert mistakes(_applied(diagnostic, text)) == ()


def test_a_second_clause_points_at_the_first() -> None:
    text = EXAMPLE.replace("stale WorkStale {} illegal", "stale WorkStale {} stale", 1)
    (found,) = mistakes(text)
    (related,) = found.related
    assert related.span.text == "stale" and related.span.end < found.span.start


def test_no_message_holds_what_a_string_holds() -> None:
    for text in (
        "key (a: 'hunter2'\n b: c)",
        'field a: "hunter2\n field',
        'field a: "hunter2"',
        'field a: string<9> = "hunter2" "hunter2"',
        'field a: string<9> = "hunter2\\q"',
    ):
        for found in mistakes(f"contract C version 1 {{ entity E {{ {text} }} }}"):
            assert "hunter2" not in f"{found.message} {found.help} {found.fix} {found.related}".replace(text, "")


def test_a_contract_goes_on_behind_a_brace_too_many() -> None:
    tree, _ = parse(Source("sample.riff", EXAMPLE.replace("  }\n\n  // ClaimWork", "  }}\n\n  // ClaimWork")))
    contract = tree.declarations[0]
    assert isinstance(contract, ContractDecl)
    assert [member.name.text for member in contract.members if isinstance(member, CommandDecl)] == [
        "CompleteWork",
        "FailWork",
    ]


def test_a_broken_member_is_left_out_and_the_others_stay() -> None:
    tree, _ = parse(Source("sample.riff", EXAMPLE.replace("field due_at: timestamp", "field due_at: <")))
    (entity,) = (node for node in nodes(tree) if isinstance(node, EntityDecl))
    assert len(entity.members) == 8


# --- limits ------------------------------------------------------------------------------------------------------


def _computed(expression: str) -> str:
    return f"contract C version 1 {{ entity E {{ computed c: u64 = {expression} }} }}"


@pytest.mark.parametrize(
    ("opener", "core", "closer"),
    [("(", "a", ")"), ("f(", "a", ")"), ("a in (", "b", ")"), ("!", "a", ""), ("(if a then ", "b", " else c)")],
)
def test_expressions_nest_to_the_limit_and_no_deeper(opener: str, core: str, closer: str) -> None:
    parsed(_computed(opener * NESTING_MAX + core + closer * NESTING_MAX))
    for depth in (NESTING_MAX + 1, 5_000):
        (found,) = mistakes(_computed(opener * depth + core + closer * depth))
        assert found.code == "RDB-C010"


def test_types_nest_to_the_limit_and_no_deeper() -> None:
    text = "contract C version 1 {{ entity E {{ field f: {} }} }}"
    parsed(text.format("a<" * NESTING_MAX + "b" + ">" * NESTING_MAX))
    for depth in (NESTING_MAX + 1, 5_000):
        (found,) = mistakes(text.format("a<" * depth + "b" + ">" * depth))
        assert found.code == "RDB-C010"


def test_decisions_nest_to_a_limit() -> None:
    text = "contract C version 1 {{ command X {{ {} return Y {{}} }} }}"
    parsed(text.format("decide a { otherwise apply { " * 14 + "} }" * 14))
    for depth in (40, 3_000):
        (found,) = mistakes(text.format("decide a { otherwise apply { " * depth + "} }" * depth))
        assert found.code == "RDB-C010"


def test_an_expression_has_a_bounded_number_of_operators() -> None:
    parsed(_computed("a" + " + a" * EXPRESSION_OPERATORS_MAX))
    for length in (EXPRESSION_OPERATORS_MAX + 1, 20_000):
        (found,) = mistakes(_computed("a" + " + a" * length))
        assert found.code == "RDB-C017"
    largest = f"max(a{' + a' * 64}, b{' + b' * (EXPRESSION_OPERATORS_MAX - 65)})"  # the second argument counts as one
    parsed(_computed(f"{largest} computed d: u64 = a{' + a' * EXPRESSION_OPERATORS_MAX}"))
    (found,) = mistakes(_computed(f"max({largest}, a)"))
    assert found.code == "RDB-C017"


def test_a_name_has_at_most_sixty_bytes() -> None:
    parsed(_computed("a" * IDENTIFIER_BYTES_MAX))
    (found,) = mistakes(_computed("a" * (IDENTIFIER_BYTES_MAX + 1)))
    assert found.code == "RDB-C008"


def test_numbers_of_any_size_are_read_or_refused() -> None:
    parsed(_computed("1" * 4_000))
    for text in ("1" * 4_001, "1" * 100_000, "1." + "1" * 4_000):
        (found,) = mistakes(_computed(text))
        assert found.code == "RDB-C006"


def test_a_file_has_at_most_one_mebibyte() -> None:
    text = parsed("// " + "é" * ((SOURCE_BYTES_MAX - 3) // 2))
    assert text.declarations == ()
    (found,) = mistakes("// " + "é" * (SOURCE_BYTES_MAX // 2))
    assert (found.code, found.span.start, found.span.end) == ("RDB-C002", 0, 0)


def test_text_that_is_no_unicode_is_refused() -> None:
    (found,) = mistakes('contract C version 1 { /// "\ud800"\n }')
    assert (found.code, found.span.text) == ("RDB-C002", "\ud800")


def test_a_file_full_of_mistakes_ends_after_a_hundred_of_a_kind() -> None:
    assert len(mistakes("@ a " * 100_000)) == 100
    assert len(mistakes("contract C version 1 {\n" + "entity {}\n" * 5_000 + "}")) == 100


@pytest.mark.parametrize(
    ("word", "candidates", "found"),
    [
        ("comand", ("command", "contract"), "command"),
        ("feild", ("field", "index"), "field"),
        ("Command", ("command",), "command"),
        ("on", ("of", "as"), None),
        ("red", ("read", "set"), "read"),
        ("renewal", ("release", "renew"), "renew"),
        ("work", ("for", "where"), None),
        ("mix", ("min", "max"), None),
    ],
)
def test_a_misspelling_is_near_to_one_word_alone(word: str, candidates: tuple[str, ...], found: str | None) -> None:
    assert meant(word, candidates) == found
