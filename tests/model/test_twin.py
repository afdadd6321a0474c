"""Generated contracts and stories over the twin, the memory store and SQLite: a smaller part of the campaign.

Each test is one seed, which its name tells. `RIFFDB_MODEL_SEED` gives another first seed and `RIFFDB_MODEL_STORIES`
another number of stories; `make twin` runs as many commands as it is told.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.databases import ledger_plan, queue_plan
from tests.model.agreement import told, told_plan
from tests.model.contracts import draw
from tests.model.twin import Twin
from tests.model.wire import RefusedError
from tests.model.worlds import DisagreementError

FIRST = int(os.environ.get("RIFFDB_MODEL_SEED", "1"))
STORIES = int(os.environ.get("RIFFDB_MODEL_STORIES", "60"))

HAPPENS = (
    *("success", "replayed", "require", "decide none", "create exists", "mutate missing", "delete missing"),
    *("transition stale", "transition illegal", "conflict", "violates", "restored behind"),
    *("claim stale", "claim invalid", "claim unavailable", "claim exhausted"),
    *("renew stale", "renew invalid", "renew expired", "renew exhausted", "release stale", "release invalid"),
    *("expire stale", "expire active", "fence stale", "fence invalid", "fence expired"),
    *("unheld stale", "unheld unavailable"),
    *("RDB-E-INPUT", "RDB-E-ALIASED", "RDB-E-ARITHMETIC", "RDB-E-IDEMPOTENCY-REUSED", "RDB-E-REVISION-EXHAUSTED"),
)


@pytest.fixture(scope="module")
def ended() -> Counter[str]:
    """How commands ended, over all stories of this module."""
    return Counter()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + STORIES))
def test_all_agree(seed: int, tmp_path: Path, ended: Counter[str]) -> None:
    drawn = told(seed, tmp_path, ended)
    assert len(drawn.refused) <= len(drawn.plan.commands), f"most of what is drawn compiles: {drawn.refused}"


@pytest.mark.parametrize(("name", "is_late"), [("queue", False), ("queue", True), ("ledger", False)])
def test_all_agree_on_a_contract_that_somebody_wrote(
    name: str, is_late: bool, tmp_path: Path, ended: Counter[str]
) -> None:
    plan = queue_plan() if name == "queue" else ledger_plan()
    told_plan(FIRST, plan, name, tmp_path, ended, 1_500, is_late=is_late)


def test_stories_come_to_every_end(ended: Counter[str]) -> None:
    # Were nearly all commands refused at the door, agreement would say little.
    missing = [name for name in HAPPENS if not ended[name]]
    assert not missing or STORIES < 60
    assert ended["success"] > sum(ended.values()) / 12


def test_a_story_is_the_same_every_time() -> None:
    assert draw(FIRST).text == draw(FIRST).text


def test_a_disagreement_tells_seed_contract_and_the_commands_that_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Twin.command

    def lying(twin: Twin, name: str, values: dict[str, object]) -> bytes:
        if name == "Deposit" and values.get("amount") == "3":
            raise RefusedError("RDB-E-ABSENT")
        return honest(twin, name, values)

    monkeypatch.setattr(Twin, "command", lying)
    with pytest.raises(DisagreementError) as caught:
        told_plan(7, ledger_plan(), "the text", tmp_path, Counter(), 1_500)
    text = str(caught.value)
    assert text.startswith("seed 7\nthe text\n")
    assert text.count("\n  Deposit {") == text.count("\nat ") == 1
    assert "memory answers otherwise than the twin" in text
