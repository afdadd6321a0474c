"""One script of calls through every way to a database: `riffdb.open`, `riffdb.connect`, and both of `riffdb.aio`.

The remote ones speak to a real server. What comes back must be the same values, of the same types, everywhere.
"""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

import riffdb
import riffdb.aio
from riffdb.client.application import compiled_plan
from riffdb.core.errors import RiffError
from riffdb.core.limits import I64_MAX, I64_MIN, U64_MAX
from riffdb.plan.changes import RULES, Deployment, change_of
from tests.conformance.databases import QUEUE
from tests.conformance.ways import KINDS, Way, opened

CONTRACT = """
contract Things version 1 {
  enum Colour { Red, Green, mro }
  entity Thing {
    key (owner: uuid, name: string<40>)
    field flag: bool
    field signed: i64
    field unsigned: u64
    field text: string<40>
    field raw: bytes<8>
    field other: uuid
    field moment: timestamp
    field day: date
    field price: decimal<38,2>
    field colour: Colour
    field secret pin: string<8>
    field maybe: optional<timestamp>
    index by_colour (owner, colour)
  }
  command MakeThing {
    input request_key: string<64>
    input owner: uuid
    input name: string<40>
    input flag: bool
    input signed: i64
    input unsigned: u64
    input text: string<40>
    input raw: bytes<8>
    input other: uuid
    input moment: timestamp
    input day: date
    input price: decimal<38,2>
    input colour: Colour
    input secret pin: string<8>
    input maybe: optional<timestamp>
    idempotency_key request_key
    create Thing(owner, name) as thing else Exists { thing: thing }
    set thing.flag = flag
    set thing.signed = signed
    set thing.unsigned = unsigned
    set thing.text = text
    set thing.raw = raw
    set thing.other = other
    set thing.moment = moment
    set thing.day = day
    set thing.price = price
    set thing.colour = colour
    set thing.pin = pin
    set thing.maybe = maybe
    return Made { thing: thing, at: tx.time }
  }
  record NewThing {
    name: string<40>
    flag: bool
    signed: i64
    unsigned: u64
    text: string<40>
    raw: bytes<8>
    other: uuid
    moment: timestamp
    day: date
    price: decimal<38,2>
    colour: Colour
    maybe: optional<timestamp>
  }
  bulk command MakeThings {
    input request_key: string<64>
    input owner: uuid
    input news: list<NewThing, 1..8>
    input marks: list<date, 0..2>
    input secret pin: string<8>
    service batch: uuid_v7
    idempotency_key request_key
    for new in news {
      create Thing(owner, new.name) as thing else Exists { thing: thing }
      set thing.flag = new.flag
      set thing.signed = new.signed
      set thing.unsigned = new.unsigned
      set thing.text = new.text
      set thing.raw = new.raw
      set thing.other = new.other
      set thing.moment = new.moment
      set thing.day = new.day
      set thing.price = new.price
      set thing.colour = new.colour
      set thing.maybe = new.maybe
      set thing.pin = pin
    }
    return MadeAll { batch: batch }
  }
  command Raise {
    input request_key: string<64>
    input owner: uuid
    input name: string<40>
    input by: u64
    idempotency_key request_key
    mutate Thing(owner, name) as thing else Missing {}
    set thing.unsigned = thing.unsigned + by
    return Raised { unsigned: thing.unsigned, revision: thing.revision }
  }
  command Look {
    input owner: uuid
    input name: string<40>
    read Thing(owner, name) as thing else Missing {}
    return Seen { thing: thing }
  }
}
query OfColour($owner: uuid, $colour: Colour) {
  many found from Thing where owner == $owner && colour == $colour order by name take 10
  return Found { things: found { name flag signed unsigned text raw other moment day price colour maybe revision } }
}
role Maker { query OfColour command MakeThing, MakeThings, Raise }
"""
OWNER = UUID(int=0xFACE)
LEAST: dict[str, Any] = {
    "flag": False,
    "signed": I64_MIN,
    "unsigned": 0,
    "text": "",
    "raw": b"",
    "other": UUID(int=0),
    "moment": datetime.min.replace(tzinfo=UTC),
    "day": date.min,
    "price": Decimal("-" + "9" * 36 + ".99"),
    "colour": "Red",
    "maybe": None,
}
GREATEST: dict[str, Any] = {
    "flag": True,
    "signed": I64_MAX,
    "unsigned": U64_MAX,
    "text": 'ä\n"\\\U0001f600\u2028',
    "raw": b"\x00\xff\xfe\xfd",
    "other": UUID(int=2**128 - 1),
    "moment": datetime.max.replace(tzinfo=UTC),
    "day": date.max,
    "price": Decimal("9" * 36 + ".99"),
    "colour": "mro",
    "maybe": datetime(2027, 1, 15, 8, 0, 0, 1, tzinfo=UTC),
}
NAME = "a/b ../%2F?ä"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("things")
    (folder / "riffdb.toml").write_text('[application]\nname = "things"\n')
    (folder / "things.riff").write_text(CONTRACT)
    return folder


@pytest.fixture(params=KINDS)
def way(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[Way]:
    with opened(request.param, f"sqlite:{tmp_path / 'things.db'}", folder) as way:
        yield way


def make(way: Way, values: dict[str, Any], **changes: object) -> Any:
    """Run `MakeThing`."""
    return way.call("command", "MakeThing", **({"owner": OWNER, "name": NAME, "pin": "1234"} | values | changes))


def same(found: Any, expected: dict[str, Any]) -> None:
    """The row holds the values, of the very types that a Python caller expects."""
    for name, value in expected.items():
        assert found[name] == value
        assert type(found[name]) is type(value) or (name == "colour" and isinstance(found[name], StrEnum))


@pytest.mark.parametrize("values", [LEAST, GREATEST], ids=["least", "greatest"])
def test_native_values_go_in_and_come_out(way: Way, values: dict[str, Any]) -> None:
    made = make(way, values, request_key="k")
    assert (made.outcome, made.is_success, made.replayed) == ("Made", True, False)
    row = made.payload["thing"]
    same(row, values | {"owner": OWNER, "name": NAME, "revision": 1})
    assert "pin" not in row
    assert made.payload["at"] == made.commit.time
    assert made.commit.time.tzinfo is UTC
    assert (made.commit.partition, made.commit.sequence) == (str(OWNER), 1)
    queried = way.call("query", "OfColour", owner=OWNER, colour=row["colour"])
    same(queried.payload["things"][0], values | {"name": NAME, "revision": 1})
    same(way.call("command", "Look", owner=OWNER, name=NAME).payload["thing"], values)
    again = make(way, {name: row[name] for name in values}, request_key="k")
    assert again.replayed, "what came out goes in again"
    assert json.loads(again.raw) == json.loads(made.raw) | {"replayed": True}


def test_wire_forms_are_the_same_values(way: Way) -> None:
    make(way, GREATEST, request_key="k")
    wire = {
        "owner": str(OWNER).upper(),
        "flag": True,
        "signed": str(I64_MAX),
        "unsigned": str(U64_MAX),
        "raw": "AP_-_Q",
        "other": "FFFFFFFF-ffff-ffff-ffff-ffffffffffff",
        "moment": datetime.max.replace(tzinfo=UTC).isoformat(),
        "day": "9999-12-31",
        "price": "9" * 36 + ".99",
        "maybe": datetime(2027, 1, 15, 9, 30, 0, 1, tzinfo=timezone(timedelta(minutes=90))),
    }
    assert make(way, GREATEST | wire, request_key="k").replayed
    make(way, LEAST | {"price": 5}, name="five", request_key="five")
    for price in ("5", "5.00", Decimal("5.0"), 5):
        assert make(way, LEAST | {"price": price}, name="five", request_key="five").replayed
    big = make(way, LEAST | {"price": 10**35}, name="big")
    assert big.payload["thing"]["price"] == Decimal(10**35)


def test_lists_of_records_are_lists_of_dicts(way: Way) -> None:
    news = [LEAST | {"name": "least"}, GREATEST | {"name": "greatest"}]
    values = {"owner": OWNER, "pin": "1234", "marks": [date(2027, 1, 2)], "request_key": "k"}
    made = way.call("command", "MakeThings", news=news, **values)
    assert (made.outcome, made.replayed, made.payload["batch"].version) == ("MadeAll", False, 7)
    for new in news:
        same(way.call("command", "Look", owner=OWNER, name=new["name"]).payload["thing"], new)
    wire = [
        {name: value for name, value in news[0].items() if value is not None} | {"price": "-" + "9" * 36 + ".99"},
        tuple(news)[1] | {"raw": "AP_-_Q", "day": "9999-12-31", "unsigned": str(U64_MAX)},
    ]
    again = way.call("command", "MakeThings", news=tuple(wire), **values | {"marks": ("2027-01-02",)})
    assert (again.replayed, again.payload) == (True, made.payload)
    assert way.call("resolve", "MakeThings", owner=OWNER, request_key="k").payload == made.payload


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"news": {}}, "news"),
        ({"news": [LEAST | {"name": "x"}, 5]}, "news[1]"),
        ({"news": [LEAST | {"name": "x"}, GREATEST | {"name": "y", "price": Decimal("0.001")}]}, "news[1].price"),
        ({"news": [LEAST | {"name": "x", "other": object()}]}, "news[0].other"),
        ({"news": [LEAST | {"name": "\ud800"}]}, "news[0].name"),
        ({"news": [LEAST]}, "news[0].name"),
        ({"news": [LEAST | {"name": "x", "maybe": datetime(2027, 1, 1)}]}, "news[0].maybe"),  # noqa: DTZ001  # on purpose
        ({"news": [LEAST | {"name": "x", "5": 5}]}, "news[0].5"),
        ({"marks": [date(2027, 1, 1)] * 3}, "marks"),
        ({"marks": [date(2027, 1, 1), None]}, "marks[1]"),
    ],
)
def test_an_item_that_cannot_be_is_refused_with_its_path(way: Way, change: dict[str, object], path: str) -> None:
    values = {"owner": OWNER, "pin": "1234", "marks": [], "news": [LEAST | {"name": "x"}]} | change
    error = way.refusal("command", "MakeThings", **values)
    assert (error.code, error.path) == ("RDB-E-INPUT", path)


def test_a_declared_failure_is_an_answer(way: Way) -> None:
    make(way, LEAST)
    failed = make(way, GREATEST)
    assert (failed.outcome, failed.is_success, failed.workflow_revisions) == ("Exists", False, ())
    same(failed.payload["thing"], LEAST)
    missing = way.call("command", "Look", owner=OWNER, name="none")
    assert (missing.outcome, missing.is_success, missing.payload, missing.commit) == ("Missing", False, {}, None)


def test_a_key_is_made_and_time_ordered(way: Way) -> None:
    make(way, LEAST)
    raised = [way.call("command", "Raise", owner=OWNER, name=NAME, by=1) for _ in range(3)]
    assert [answer.payload for answer in raised] == [{"unsigned": n, "revision": n + 1} for n in (1, 2, 3)]
    assert [answer.replayed for answer in raised] == [False] * 3


def test_a_stored_answer_is_found_by_its_key(way: Way) -> None:
    made = make(way, LEAST, request_key="k")
    found = way.call("resolve", "MakeThing", owner=OWNER, request_key="k")
    assert (found.outcome, found.payload, found.commit, found.replayed) == ("Made", made.payload, made.commit, True)
    absent = way.refusal("resolve", "MakeThing", owner=OWNER, request_key="other")
    assert (absent.code, absent.facts.retryable) == ("RDB-E-ABSENT", True)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"flag": "true"}, "flag"),
        ({"signed": I64_MAX + 1}, "signed"),
        ({"unsigned": -1}, "unsigned"),
        ({"unsigned": 2**64}, "unsigned"),
        ({"unsigned": 10**5_000}, "unsigned"),
        ({"unsigned": 1.5}, "unsigned"),
        ({"unsigned": True}, "unsigned"),
        ({"text": "ä" * 21}, "text"),
        ({"text": "\ud800"}, "text"),
        ({"text": 5}, "text"),
        ({"raw": b"123456789"}, "raw"),
        ({"raw": "A"}, "raw"),
        ({"other": "nobody"}, "other"),
        ({"other": object()}, "other"),
        ({"moment": datetime(2027, 1, 1)}, "moment"),  # noqa: DTZ001  # naive on purpose
        ({"moment": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))}, "moment"),
        ({"moment": date(2027, 1, 1)}, "moment"),
        ({"day": datetime(2027, 1, 1, tzinfo=UTC)}, "day"),
        ({"price": Decimal("0.001")}, "price"),
        ({"price": Decimal("NaN")}, "price"),
        ({"price": Decimal("1E+9999999")}, "price"),
        ({"price": 1.5}, "price"),
        ({"colour": "red"}, "colour"),
        ({"maybe": ""}, "maybe"),
        ({"request_key": ""}, "request_key"),
        ({"request_key": None}, "request_key"),
        ({"colur": "Red"}, "colur"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_path(way: Way, changes: dict[str, object], path: str) -> None:
    error = way.refusal("command", "MakeThing", **({"owner": OWNER, "name": NAME, "pin": "1234"} | LEAST | changes))
    assert (error.code, error.path) == ("RDB-E-INPUT", path)
    assert error.message.startswith(f"{path}: ")


def test_errors_are_the_same_everywhere(way: Way) -> None:
    make(way, LEAST | {"unsigned": U64_MAX}, request_key="k")
    told = [
        way.refusal("command", "Raise", owner=OWNER, name=NAME, by=1),
        way.refusal("command", "MakeThing", **(LEAST | {"owner": OWNER, "name": "x", "pin": "1", "request_key": "k"})),
        way.refusal("command", "MakeThnig"),
        way.refusal("command", "Look", owner=OWNER),
        way.refusal("query", "OfColor", owner=OWNER),
        way.refusal("query", "OfColour", owner=OWNER, colour="Blue"),
        way.refusal("history", "Thing", OWNER),
        way.refusal("history", "Thing", OWNER, "none"),
        way.refusal("revoke_capability", "nobody"),
        way.refusal("create_capability", role="Makers"),
    ]
    assert [(error.code, error.path, error.key) for error in told] == [
        ("RDB-E-ARITHMETIC", None, None),
        ("RDB-E-IDEMPOTENCY-REUSED", None, "k"),
        ("RDB-E-NOT-FOUND", None, None),
        ("RDB-E-INPUT", "name", None),
        ("RDB-E-NOT-FOUND", None, None),
        ("RDB-E-INPUT", "colour", None),
        ("RDB-E-INPUT", "key", None),
        ("RDB-E-NOT-FOUND", None, None),
        ("RDB-E-NOT-FOUND", None, None),
        ("RDB-E-INPUT", "role", None),
    ]
    assert "did you mean `MakeThing`?" in told[2].message
    assert "did you mean `OfColour`?" in told[4].message


def test_a_history_tells_the_same_everywhere(way: Way) -> None:
    make(way, GREATEST | {"unsigned": 1})
    way.call("command", "Raise", owner=OWNER, name=NAME, by=2)
    entries = way.call("history", "Thing", OWNER, NAME)
    assert [(entry["sequence"], entry["command"], entry["revision"]) for entry in entries] == [
        ("1", "MakeThing", "1"),
        ("2", "Raise", "2"),
    ]
    assert entries[0]["changes"]["pin"] == "[redacted]"
    assert entries[1]["changes"] == {"unsigned": "3"}
    assert set(entries[0]) == {"sequence", "time", "command", "outcome", "principal", "revision", "changes"}


def test_a_contract_is_seen_and_deployed(way: Way, folder: Path) -> None:
    plan = way.call("plan")
    assert plan == compiled_plan(folder)
    assert way.call("deploy", plan) == Deployment("unchanged")
    colours, *others = plan.enums
    grown = structs.replace(plan, enums=(structs.replace(colours, variants=(*colours.variants, "Grey")), *others))
    deployed = way.call("deploy", grown)
    assert (deployed.outcome, [change.kind for change in deployed.changes]) == ("updated", ["variant-appended"])
    with pytest.raises(RiffError) as caught:
        way.call("deploy", plan)
    told_changes = caught.value.detail["changes"]
    assert isinstance(told_changes, list)
    [told] = told_changes
    assert (caught.value.code, change_of(told).kind, told["reason"]) == (
        "RDB-E-APPROVAL",
        "variant-changed",
        RULES["variant-changed"].reason,
    )


def test_capabilities_are_made_and_end(way: Way) -> None:
    made = way.call("create_capability", role="Maker", principal="m", partition=OWNER, lifetime_seconds=60)
    assert set(made) == {"id", "token", "role", "expires_at"}
    assert (made["role"], made["token"][:4]) == ("Maker", "rdb_")
    assert datetime.fromisoformat(made["expires_at"]) > datetime.now(UTC)
    ended = way.call("revoke_capability", made["id"])
    assert (ended["id"], ended["principal"], ended["operator"]) == (made["id"], "m", False)
    assert ended["revoked_at"] is not None
    operator = way.call("create_capability")
    assert (operator["role"], operator["expires_at"]) == (None, None)


def test_no_repr_shows_a_value(way: Way) -> None:
    made = make(way, GREATEST, request_key="hush-hush")
    again = make(way, GREATEST, request_key="hush-hush")
    queried = way.call("query", "OfColour", owner=OWNER, colour="mro")
    assert [repr(made), repr(again), repr(queried)] == ["Answer(Made)", "Answer(Made, replayed)", "QueryAnswer(Found)"]
    assert str(OWNER) not in repr(way.client)


# --- opening a file -------------------------------------------------------------------------------------------------


def test_a_file_is_opened_again_without_its_application(folder: Path, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'things.db'}"
    with riffdb.open(url, application=str(folder)) as client:
        assert client.command("MakeThing", owner=OWNER, name="a", pin="", **LEAST).outcome == "Made"
    with riffdb.open(url) as client:
        assert client.command("Look", owner=OWNER, name="a").outcome == "Seen"
        with pytest.raises(RiffError) as caught:
            riffdb.open(url)
        assert caught.value.code == "RDB-E-LOCKED"
    with pytest.raises(RiffError) as caught:
        client.command("Look", owner=OWNER, name="a")
    assert caught.value.code == "RDB-E-UNAVAILABLE"
    client.close()

    async def main() -> None:
        async with await riffdb.aio.open(url) as client:
            assert (await client.command("Look", owner=OWNER, name="a")).outcome == "Seen"

    asyncio.run(main())


def test_who_opens_may_act_as_a_role(folder: Path, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'things.db'}"
    with riffdb.open(url, folder, role="Maker") as client:
        assert client.command("MakeThing", owner=OWNER, name="a", pin="", **LEAST).outcome == "Made"
        with pytest.raises(RiffError) as caught:
            client.command("Look", owner=OWNER, name="a")
        assert caught.value.code == "RDB-E-FORBIDDEN"
    with pytest.raises(RiffError) as caught:
        riffdb.open(url, role="Makre")
    assert "did you mean `Maker`?" in caught.value.message
    with riffdb.open(url):
        """What was refused let go of the file."""


@pytest.mark.parametrize(
    ("url", "application", "code", "words"),
    [
        ("sqlite:{folder}/none.db", None, "RDB-E-USAGE", "there is no database at"),
        ("sqlite:{folder}/none/x.db", QUEUE, "RDB-E-USAGE", "does not exist; make it first"),
        ("sqlite:{folder}", None, "RDB-E-USAGE", "is a folder"),
        ("sqlite:{folder}/x.db", "{folder}/none", "RDB-E-USAGE", "is not there"),
        ("sqlite:{folder}/x.db", "{folder}", "RDB-E-USAGE", "has no riffdb.toml"),
        ("sqlite:{folder}/x.db", "{folder}/wrong", "RDB-E-CONTRACT", "RDB-C"),
        ("postgresql://host/x", None, "RDB-E-USAGE", "is no store"),
        ("work.db", None, "RDB-E-USAGE", "write sqlite:PATH"),
        ("http://127.0.0.1:7433", None, "RDB-E-USAGE", "riffdb.connect"),
    ],
)
def test_what_cannot_be_opened_says_what_to_do(
    tmp_path: Path, url: str, application: str | Path | None, code: str, words: str
) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "riffdb.toml").write_text('[application]\nname = "wrong"\n')
    (wrong / "wrong.riff").write_text("contract Wrong version 1 { entity E { key (a: uid) } }")
    named = application.format(folder=tmp_path) if isinstance(application, str) else application
    with pytest.raises(RiffError) as caught:
        riffdb.open(url.format(folder=tmp_path), named)
    assert caught.value.code == code
    assert words in caught.value.message
    assert not (tmp_path / "x.db").exists(), "nothing is left behind"


def test_an_empty_database_says_what_to_do(tmp_path: Path) -> None:
    with riffdb.open(f"sqlite:{tmp_path / 'x.db'}", create=True) as client:
        with pytest.raises(RiffError) as caught:
            client.command("CreateWork")
        assert (caught.value.code, "riffdb deploy" in caught.value.message) == ("RDB-E-NOT-FOUND", True)
        assert client.deploy(compiled_plan(QUEUE)).outcome == "created"
        assert client.query("DueWork", organization_id=OWNER).payload == {"items": []}


def test_a_user_without_a_name_opens_as_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_123_456)
    with riffdb.open("memory:", QUEUE) as client:
        organization, item = UUID(int=1), UUID(int=2)
        client.command("CreateWork", organization_id=organization, work_id=item, due_at=datetime.now(UTC))
        assert client.history("WorkItem", organization, item)[0]["principal"] == "local:4000123456"
