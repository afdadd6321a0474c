"""Lints at their edges: what is certain of a condition, and where a finding would be noise.

The cases show each lint as a user sees it; the many contracts that must stay silent would be one folder each.
"""

import pytest

from riffdb.compiler import compile
from riffdb.core.diagnostic_codes import DIAGNOSTIC_CODES
from riffdb.core.lints import LINTS
from riffdb.core.spans import Source

CONTRACT = """contract Notes version 1 {{
  enum Mood {{ Glad, Sad, Odd }}
  entity Note {{
    key (team_id: uuid, note_id: uuid)
    field mood: Mood
    field other: Mood
    field maybe_mood: optional<Mood>
    field stars: u64
    field points: i64
  }}
  command Mark {{
    input request_key: string<128>
    input key of Note
    idempotency_key request_key
    mutate Note(team_id, note_id) as note else Missing {{}}
    {body}
    return Marked {{ note: note }}
  }}
}}
"""


def found(text: str) -> list[str]:
    """The names of the lints that find something in a sound contract."""
    compilation = compile("case", [Source("case.riff", text)])
    assert compilation.plan is not None, compilation.diagnostics
    return [diagnostic.lint for diagnostic in compilation.diagnostics]


@pytest.mark.parametrize(
    ("condition", "is_certain"),
    [
        ("true", True),
        ("!false", True),
        ("note.stars >= 0", True),
        ("0 <= note.stars", True),
        ("0 > note.stars", True),
        ("note.stars > 0", False),
        ("note.points >= 0", False),
        ("note.mood == note.mood", True),
        ("note.mood == note.other", False),
        ("note.mood != note.mood", True),
        ("note.mood == Mood.Glad || note.stars >= 0", True),
        ("note.mood == Mood.Glad && note.stars >= 0", False),
        ("note.mood == Mood.Glad && note.stars < 0", True),
        ("!(note.mood == Mood.Glad)", False),
        ("1 < 2", False),
        ("Mood.Glad == Mood.Sad", True),
        ("note.maybe_mood == note.maybe_mood", True),
    ],
)
def test_what_is_certain_of_a_condition(condition: str, is_certain: bool) -> None:
    text = CONTRACT.format(body=f"require wanted: {condition} else Unwanted {{}}")
    assert found(text) == ["impossible-outcome"] * is_certain


@pytest.mark.parametrize(
    ("conditions", "is_certain"),
    [
        (["note.mood == Mood.Glad", "note.mood == Mood.Sad", "Mood.Odd == note.mood"], True),
        (["note.mood in (Mood.Glad, Mood.Sad)", "note.mood == Mood.Odd"], True),
        (["note.mood == Mood.Glad || note.mood == Mood.Odd", "note.mood == Mood.Sad"], True),
        (["note.mood == Mood.Glad", "note.mood == Mood.Sad"], False),
        (["note.mood == Mood.Glad", "note.mood == Mood.Sad", "note.other == Mood.Odd"], False),
        (["note.mood == Mood.Glad || note.other == Mood.Odd", "note.mood in (Mood.Sad, Mood.Odd)"], False),
        (["note.maybe_mood == Mood.Glad", "note.maybe_mood in (Mood.Sad, Mood.Odd)"], False),
        (["note.mood not in (Mood.Glad, Mood.Sad)", "note.mood == Mood.Glad"], False),
    ],
)
def test_arms_that_leave_nothing_over(conditions: list[str], is_certain: bool) -> None:
    arms = "".join(f" when {condition} apply {{ set note.stars = 1 }}" for condition in conditions)
    text = CONTRACT.format(body=f"decide note {{{arms} otherwise none Left {{}} }}")
    assert found(text) == ["impossible-outcome"] * is_certain


def test_an_outcome_that_happens_elsewhere_is_possible() -> None:
    assert found(CONTRACT.format(body="require wanted: note.stars >= 0 else Missing {}")) == []
    body = "decide note { when note.stars > 1 apply { return Marked { note: note } } otherwise none No {} }"
    assert found(CONTRACT.format(body=body)) == []


FLOW = """contract Papers version 1 {{
  enum PaperState {{ Draft, Sent, Kept }}
  entity Paper {{ key (team_id: uuid, paper_id: uuid) field state: PaperState }}
  entity Letter {{ key (team_id: uuid, letter_id: uuid) field state: PaperState }}
  workflow PaperLife {{ entity Paper state state {paper} }}
  workflow LetterLife {{ entity Letter state state {letter} }}
  command Move {{
    input request_key: string<128>
    input key of Paper
    input letter_id: uuid
    input expected_revision: u64
    idempotency_key request_key
    mutate Paper(team_id, paper_id) as paper else Missing {{}}
    mutate Letter(team_id, letter_id) as letter else Missing {{}}
    {body}
    return Moved {{}}
  }}
}}
"""
SEND = "transition Send from (Draft) to Sent "
USE = "transition {} on {} revision expected_revision stale Stale {{}} illegal Illegal {{}} "


def flow(paper: str, letter: str, *used: str) -> list[str]:
    """What is found in two workflows over one enum; `used` are transitions of papers, then of letters, in pairs."""
    body = "".join(USE.format(name, row) for name, row in zip(used[::2], used[1::2], strict=True))
    return found(FLOW.format(paper=paper, letter=letter, body=body))


def test_a_state_is_reached_in_any_workflow_of_its_enum() -> None:
    keep = "transition Keep from (Draft) to Kept "
    both = ("Send", "paper", "Keep", "letter")
    assert flow(f"initial Draft {SEND}", f"initial Draft {keep}", *both) == []
    assert flow(f"initial Draft {SEND}", f"initial Sent {keep}", *both) == ["unreachable-state"]


def test_without_an_initial_state_rows_may_begin_anywhere() -> None:
    assert flow(SEND, f"{SEND}", "Send", "paper", "Send", "letter") == []


def test_a_cycle_that_is_not_reached_is_told_once() -> None:
    around = "transition Round from (Sent) to Kept transition Back from (Kept) to Sent "
    text = FLOW.format(paper=f"initial Draft {around}", letter=f"initial Draft {around}", body="")
    lints = found(text)
    assert lints.count("unreachable-state") == 1
    assert lints.count("unused-transition") == 4 and "no-way-out" not in lints


def test_each_lint_has_its_own_code_and_a_title() -> None:
    codes = [lint.code for lint in LINTS.values()]
    assert len(set(codes)) == len(codes)
    assert set(codes) == {code for code in DIAGNOSTIC_CODES if code.startswith("RDB-C9")}
