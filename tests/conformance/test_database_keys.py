"""Keys that rest on more than plain inputs, over every store: constants, what was null until proven, rows of rows."""

import json
from uuid import UUID

import pytest

from tests.conformance.databases import LOCAL, Place, plan_of

NOTES = """
contract Notes version 1 {
  entity Note {
    key (space: string<20>, id: uuid)
    field parent: optional<uuid>
    field code: bytes<4> = "AQID"
    field writer: uuid = "00000000-0000-0000-0000-00000000000a"
    field text: string<20>
  }
  command Put {
    input request_key: string<64>
    input id: uuid
    input parent: optional<uuid>
    input text: string<20>
    idempotency_key request_key
    create Note("main", id) as note else Exists {}
    set note.parent = parent
    set note.text = text
    return Made { note: note }
  }
  command UpTwo {
    input id: uuid
    maybe Note("main", id) as note
    require there: note is not null else Missing {}
    require has: note.parent is not null else Root { note: note }
    read Note("main", note.parent) as up else Broken {}
    require further: up.parent is not null else One { up: up }
    read Note("main", up.parent) as top else Broken {}
    return Two {
      text: concat(note.text, up.text, top.text),
      same: top.writer == "00000000-0000-0000-0000-00000000000A" && top.code == "AQID",
    }
  }
  command Given {
    input id: optional<uuid>
    require given: id is not null else NotGiven {}
    read Note("main", id) as note else Missing {}
    return Found { text: note.text }
  }
  command OneOf {
    input request_key: string<64>
    input id: optional<uuid>
    input text: string<20>
    idempotency_key request_key
    maybe Note("main", "00000000-0000-0000-0000-000000000001") as first
    decide first {
      when id is not null apply {
        mutate Note("main", id) as note else Missing {}
        set note.text = text
        return Changed { note: note }
      }
      when first is null none Empty {}
      otherwise apply {}
    }
    return Left { text: (if first is null then text else first.text) }
  }
}
"""
FIRST, SECOND, THIRD = (UUID(int=number) for number in (1, 2, 3))


@pytest.fixture
def notes(empty: Place) -> Place:
    """A place with three notes, each under the one before."""
    empty.deploy(plan_of(NOTES, "notes"))
    for key, (note, parent) in enumerate([(FIRST, None), (SECOND, FIRST), (THIRD, SECOND)]):
        made = empty.command("Put", request_key=f"put {key}", id=note, parent=parent, text=f"{key}")
        assert made["payload"]["note"]["code"] == "AQID"
        assert made["commit"]["partition"] == "main"
    return empty


def test_a_row_is_found_by_what_another_row_names(notes: Place) -> None:
    assert notes.command("UpTwo", id=THIRD)["payload"] == {"text": "210", "same": True}
    assert notes.command("UpTwo", id=SECOND)["outcome"] == "One"
    assert notes.command("UpTwo", id=FIRST)["outcome"] == "Root"
    assert notes.command("UpTwo", id=UUID(int=9))["outcome"] == "Missing"


def test_an_optional_input_is_a_key_once_it_is_known(notes: Place) -> None:
    assert notes.command("Given", id=FIRST)["payload"] == {"text": "0"}
    assert notes.command("Given", id=UUID(int=9))["outcome"] == "Missing"
    assert notes.command("Given")["outcome"] == notes.command("Given", id=None)["outcome"] == "NotGiven"


def test_a_key_that_an_arm_has_proven(notes: Place) -> None:
    changed = notes.command("OneOf", request_key="a", id=SECOND, text="new")
    assert (changed["payload"]["note"]["text"], changed["payload"]["note"]["revision"]) == ("new", "2")
    assert notes.command("OneOf", request_key="b", text="new")["payload"] == {"text": "0"}


def test_a_constant_partition_is_resolved_by_the_key_alone(notes: Place) -> None:
    stored = notes.run(notes.database.resolve(LOCAL, "Put", {"request_key": "put 0"}))
    assert json.loads(stored)["replayed"] is True
