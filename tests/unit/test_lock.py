"""Locks: the same text everywhere, and no text that is not a lock is taken for one. Units, since the surface shows a
lock only as a whole."""

import random
from pathlib import Path

import pytest

from riffdb.cli.files import replace_file
from riffdb.client.application import compiled_plan
from riffdb.compiler import compile
from riffdb.core.errors import RiffError
from riffdb.core.spans import Source
from riffdb.plan import Plan
from riffdb.plan.lock import LOCK_FILE, Difference, differences, lock_text

QUEUE = Path(__file__).parent.parent.parent / "examples" / "queue"
TEXT = (QUEUE / "work.riff").read_text("utf-8")


def plan_of(*texts: str) -> Plan:
    compilation = compile("any", tuple(Source(f"{number}.riff", text) for number, text in enumerate(texts)))
    assert compilation.plan is not None
    return compilation.plan


LOCK = lock_text(plan_of(TEXT))


@pytest.mark.parametrize(
    "example", [path.parent for path in QUEUE.parent.glob("*/riffdb.toml")], ids=lambda path: path.name
)
def test_an_example_is_as_its_lock_says(example: Path) -> None:
    assert lock_text(compiled_plan(example)) == (example / LOCK_FILE).read_text("utf-8"), f"run `riffdb lock {example}`"


def test_files_comments_and_version_are_no_part_of_a_lock() -> None:
    start = TEXT.index("\nquery ")
    text = TEXT[:start].replace("version 1", "version 9").replace("/// One unit of work.", "// Another.")
    assert lock_text(plan_of(TEXT[start:], text)) == LOCK


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", []),
        ("contract WorkQueue", "contract Works", [("changed", "contract")]),
        ("Complete, Failed }", "Complete, Failed, Lost }", [("changed", "enums.WorkState")]),
        ("command StartWork {", "command Begin {", [("new", "commands.Begin"), ("missing", "commands.StartWork")]),
    ],
)
def test_each_difference_is_named(old: str, new: str, found: list[tuple[str, str]]) -> None:
    named = [
        (difference.kind, difference.name) for difference in differences(LOCK, "", plan_of(TEXT.replace(old, new)))
    ]
    assert [(kind, name) for kind, name in named if not name.startswith("roles.")] == found


def test_line_ends_of_another_system_do_not_matter() -> None:
    assert differences(LOCK.replace("\n", "\r\n"), "", plan_of(TEXT)) == []


def test_no_edit_of_a_lock_passes_for_one() -> None:
    lines, chance = LOCK.splitlines(keepends=True), random.Random(7)
    edited = [
        LOCK[:-1],
        LOCK + "\n",
        "",
        "\n",
        LOCK + LOCK,
        "".join(lines[1:]),
        LOCK.replace("commands.", "command."),
        "end ",
    ]
    edited += ["".join(line for line in lines if line is not left) for left in lines]
    for _ in range(300):
        place = chance.randrange(len(LOCK))
        edited.append(LOCK[:place] + chance.choice("0a \n.\0") + LOCK[place + 1 :])
    for text in edited:
        if text == LOCK:
            continue
        with pytest.raises(RiffError, match=r"^at/riffdb.lock (is not as|has format \d+, and)") as caught:
            differences(text, "at/riffdb.lock", plan_of("contract Small version 1 {}"))
        assert caught.value.code == "RDB-E-USAGE"


def test_a_lock_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).mkdir()
    with pytest.raises(RiffError, match="cannot be written"):
        replace_file(tmp_path / LOCK_FILE, "text")
    assert [path.name for path in tmp_path.iterdir()] == [LOCK_FILE]


def test_a_contract_of_its_own_words_has_a_lock() -> None:
    odd = plan_of(
        "contract end version 1 { enum format { end, plan } entity contract { key (end: uuid) field plan: format } }"
    )
    assert differences(lock_text(odd), "", odd) == []
    assert Difference("missing", "enums.format") in differences(
        lock_text(odd), "", plan_of("contract end version 1 {}")
    )
