"""Uniques, references and invariants over every store: they hold in every committed prefix, and a breach has a name."""

from typing import Any

import pytest

from tests.conformance.databases import ORGANIZATION, OTHER, Place, plan_of

SHELVES = """
contract Shelves version 1 {
  entity Shelf {
    key (owner: uuid, number: u64)
    field label: string<20>
    field capacity: u64
    field used: u64
    computed free: u64 = capacity - used
    unique by_label (owner, label)
    invariant fits: used <= capacity
    invariant named: length(label) > 0
  }
  entity Book {
    key (owner: uuid, isbn: string<13>)
    field code: optional<u64>
    field shelf: optional<u64>
    field shelf_label: optional<string<20>>
    unique by_code (owner, code)
    reference stands_on (owner, shelf) -> Shelf (owner, number)
    reference labelled (owner, shelf_label) -> Shelf (owner, label)
    index by_shelf (owner, shelf)
    index by_shelf_label (owner, shelf_label)
  }
  command AddShelf {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input label: string<20>
    input capacity: u64
    idempotency_key request_key
    create Shelf(owner, number) as shelf else Exists {}
      conflict by_label LabelTaken { label: label } violates fits Overfull {} violates named Nameless {}
    set shelf.label = label
    set shelf.capacity = capacity
    set shelf.used = 0
    return Added { shelf: shelf }
  }
  command Fill {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input used: u64
    idempotency_key request_key
    mutate Shelf(owner, number) as shelf else Missing {}
      violates fits Overfull { used: shelf.used, capacity: shelf.capacity }
    set shelf.used = used
    return Filled { free: shelf.free }
  }
  command Exchange {
    input request_key: string<64>
    input owner: uuid
    input first: u64
    input second: u64
    input first_label: string<20>
    input second_label: string<20>
    idempotency_key request_key
    mutate Shelf(owner, first) as left else Missing {}
      conflict by_label LabelTaken {} conflict Book.labelled Named {} violates named Nameless {}
    mutate Shelf(owner, second) as right else Missing {}
      conflict by_label LabelTaken {} conflict Book.labelled Named {} violates named Nameless {}
    set left.label = first_label
    set right.label = second_label
    return Exchanged {}
  }
  command DropShelf {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    idempotency_key request_key
    delete Shelf(owner, number) as shelf else Missing {}
      conflict Book.stands_on InUse { label: shelf.label } conflict Book.labelled Named {}
    return Dropped {}
  }
  command AddBook {
    input request_key: string<64>
    input owner: uuid
    input isbn: string<13>
    input code: optional<u64>
    input shelf: optional<u64>
    input shelf_label: optional<string<20>>
    idempotency_key request_key
    create Book(owner, isbn) as book else Exists {}
      conflict by_code CodeTaken {} conflict stands_on NoShelf {} conflict labelled NoLabel {}
    set book.code = code
    set book.shelf = shelf
    set book.shelf_label = shelf_label
    return AddedBook { book: book }
  }
  command DropBook {
    input request_key: string<64>
    input owner: uuid
    input isbn: string<13>
    idempotency_key request_key
    delete Book(owner, isbn) as book else Missing {}
    return DroppedBook {}
  }
  command Find {
    input owner: uuid
    input code: u64
    input other: string<13>
    read Book.by_code(owner, code) as book else Missing {}
    maybe Book(owner, other) as second
    return Found { isbn: book.isbn, second: (if second is null then "none" else second.isbn) }
  }
  command Recode {
    input request_key: string<64>
    input owner: uuid
    input code: u64
    input new_code: optional<u64>
    idempotency_key request_key
    mutate Book.by_code(owner, code) as book else Missing {} conflict by_code CodeTaken { isbn: book.isbn }
    set book.code = new_code
    return Recoded { book: book }
  }
  command Forget {
    input request_key: string<64>
    input owner: uuid
    input code: u64
    idempotency_key request_key
    delete Book.by_code(owner, code) as book else Missing {}
    return Forgotten { isbn: book.isbn }
  }
}
"""


@pytest.fixture
def shelves(empty: Place) -> Place:
    """A place with `SHELVES`."""
    empty.deploy(plan_of(SHELVES, "shelves"))
    return empty


def call(place: Place, name: str, key: str, **values: Any) -> Any:
    """The answer of a command of one owner."""
    return place.command(name, request_key=key, **{"owner": ORGANIZATION, **values})


def shelf(key: str, number: int, label: str, **values: Any) -> tuple[str, dict[str, Any]]:
    given = {"request_key": key, "owner": ORGANIZATION, "number": number, "label": label, "capacity": 9, **values}
    return "AddShelf", given


def book(key: str, isbn: str, **values: Any) -> tuple[str, dict[str, Any]]:
    return "AddBook", {"request_key": key, "owner": ORGANIZATION, "isbn": isbn, **values}


def outcomes(answers: list[Any]) -> list[str]:
    assert [answer for answer in answers if isinstance(answer, Exception)] == []
    return [answer["outcome"] for answer in answers]


# --- uniques ---------------------------------------------------------------------------------------------------------


def test_two_rows_never_share_a_unique(shelves: Place) -> None:
    assert outcomes(shelves.together(shelf("a", 1, "x"), shelf("b", 2, "x"), shelf("c", 2, "y"))) == [
        *("Added", "LabelTaken", "Added")
    ]
    refused = call(shelves, "AddShelf", "d", number=3, label="y", capacity=1)
    assert (refused["outcome"], refused["payload"]) == ("LabelTaken", {"label": "y"})
    assert refused["workflow_revisions"] == []
    shelves.reopen()
    assert call(shelves, "AddShelf", "e", number=3, label="x", capacity=1)["outcome"] == "LabelTaken"
    other = call(shelves, "AddShelf", "f", number=3, label="x", capacity=1, owner=OTHER)
    assert other["outcome"] == "Added"
    shelves.check_log()


def test_a_unique_with_a_null_holds_nobody(shelves: Place) -> None:
    answers = shelves.together(*(book(f"b{number}", f"{number}") for number in range(3)))
    assert outcomes(answers) == ["AddedBook"] * 3
    assert outcomes(shelves.together(book("c", "8", code=1), book("d", "9", code=1))) == ["AddedBook", "CodeTaken"]


def test_values_are_exchanged_within_one_command(shelves: Place) -> None:
    shelves.together(shelf("a", 1, "x"), shelf("b", 2, "y"))
    turned = call(shelves, "Exchange", "c", first=1, second=2, first_label="y", second_label="x")
    assert turned["outcome"] == "Exchanged"
    same = call(shelves, "Exchange", "d", first=1, second=2, first_label="z", second_label="z")
    assert same["outcome"] == "LabelTaken"
    # The row keeps its own value, so it is not in its own way.
    again = call(shelves, "Exchange", "e", first=1, second=2, first_label="y", second_label="w")
    assert again["outcome"] == "Exchanged"


def test_a_value_that_a_neighbour_of_the_batch_frees_is_free(shelves: Place) -> None:
    shelves.together(shelf("a", 1, "x"), shelf("b", 2, "y"))
    exchange = {"owner": ORGANIZATION, "first": 1, "second": 2, "first_label": "n", "second_label": "m"}
    answers = shelves.together(
        ("Exchange", {"request_key": "c", **exchange}),
        shelf("d", 3, "x"),
        ("DropShelf", {"request_key": "e", "owner": ORGANIZATION, "number": 2}),
        shelf("f", 4, "m"),
        shelf("g", 5, "n"),
    )
    assert outcomes(answers) == ["Exchanged", "Added", "Dropped", "Added", "LabelTaken"]
    shelves.reopen()
    assert call(shelves, "AddShelf", "h", number=6, label="y", capacity=1)["outcome"] == "Added"


def test_a_row_whose_value_stays_is_in_nobodys_way(empty: Place) -> None:
    empty.deploy(
        plan_of("""
        contract Seats version 1 {
          entity Seat { key (owner: uuid, number: u64) field guest: optional<u64> unique by_guest (owner, guest) }
          command Take {
            input request_key: string<64>
            input owner: uuid
            input number: u64
            input guest: u64
            input other_number: u64
            input other_guest: u64
            idempotency_key request_key
            init_or_mutate Seat(owner, number) as seat initialize {} conflict by_guest Kept {}
            create Seat(owner, other_number) as other else Exists {} conflict by_guest Late {}
            set seat.guest = guest
            set other.guest = other_guest
            return Taken {}
          }
        }
        """)
    )
    both = {"guest": 7, "other_number": 8, "other_guest": 7}
    assert call(empty, "Take", "a", number=1, **both)["outcome"] == "Kept"
    assert call(empty, "Take", "b", number=1, guest=7, other_number=9, other_guest=6)["outcome"] == "Taken"
    # Seat 1 keeps the guest that it has, so it is the new one that takes what is taken.
    assert call(empty, "Take", "c", number=1, **both)["outcome"] == "Late"


# --- references ------------------------------------------------------------------------------------------------------


def test_a_reference_leads_to_a_row(shelves: Place) -> None:
    answers = shelves.together(
        book("a", "1", shelf=1),
        shelf("b", 1, "x"),
        book("c", "1", shelf=1),
        book("d", "2", shelf_label="x"),
        book("e", "3", shelf_label="y"),
    )
    assert outcomes(answers) == ["NoShelf", "Added", "AddedBook", "AddedBook", "NoLabel"]


def test_a_row_that_is_referenced_stays(shelves: Place) -> None:
    shelves.together(shelf("a", 1, "x"), book("b", "1", shelf=1), book("c", "2", shelf_label="x"))
    refused = call(shelves, "DropShelf", "d", number=1)
    assert (refused["outcome"], refused["payload"]) == ("InUse", {"label": "x"})
    drop = {"owner": ORGANIZATION}
    answers = shelves.together(
        ("DropBook", {"request_key": "e", "isbn": "1", **drop}),
        ("DropShelf", {"request_key": "f", "number": 1, **drop}),
        ("DropBook", {"request_key": "g", "isbn": "2", **drop}),
        ("DropShelf", {"request_key": "h", "number": 1, **drop}),
        book("i", "1", shelf=1),
    )
    assert outcomes(answers) == ["DroppedBook", "Named", "DroppedBook", "Dropped", "NoShelf"]


def test_of_several_rows_that_name_it_one_is_enough(shelves: Place) -> None:
    shelves.together(shelf("a", 1, "x"), *(book(f"b{number}", f"{number}", shelf=1) for number in range(3)))
    drop = {"owner": ORGANIZATION}
    answers = shelves.together(
        ("DropBook", {"request_key": "c", "isbn": "0", **drop}),
        ("DropBook", {"request_key": "d", "isbn": "1", **drop}),
        ("DropShelf", {"request_key": "e", "number": 1, **drop}),
    )
    assert outcomes(answers) == ["DroppedBook", "DroppedBook", "InUse"]
    assert call(shelves, "DropBook", "f", isbn="2")["outcome"] == "DroppedBook"
    assert call(shelves, "DropShelf", "g", number=1)["outcome"] == "Dropped"


def test_a_row_that_names_it_is_found_behind_many_that_are_gone(shelves: Place) -> None:
    many, drop = 20, {"owner": ORGANIZATION}
    shelves.together(shelf("a", 1, "x"), *(book(f"b{n:02}", f"{n:02}", shelf=1) for n in range(many)))
    gone = [("DropBook", {"request_key": f"c{n:02}", "isbn": f"{n:02}", **drop}) for n in range(many)]
    shelf_goes = [("DropShelf", {"request_key": f"d{n}", "number": 1, **drop}) for n in range(2)]
    answers = shelves.together(*gone[:-1], shelf_goes[0], gone[-1], shelf_goes[1])
    assert outcomes(answers) == ["DroppedBook"] * (many - 1) + ["InUse", "DroppedBook", "Dropped"]


def test_a_value_that_is_referenced_may_go_to_another_row(shelves: Place) -> None:
    shelves.together(shelf("a", 1, "x"), shelf("b", 2, "y"), book("c", "1", shelf_label="x"))
    lost = call(shelves, "Exchange", "d", first=1, second=2, first_label="z", second_label="w")
    assert lost["outcome"] == "Named"
    kept = call(shelves, "Exchange", "e", first=1, second=2, first_label="y", second_label="x")
    assert kept["outcome"] == "Exchanged"


# --- invariants ------------------------------------------------------------------------------------------------------


def test_an_invariant_holds_in_every_row(shelves: Place) -> None:
    assert call(shelves, "AddShelf", "a", number=1, label="", capacity=5)["outcome"] == "Nameless"
    assert call(shelves, "AddShelf", "b", number=1, label="x", capacity=5)["outcome"] == "Added"
    assert call(shelves, "Fill", "c", number=1, used=5)["payload"] == {"free": "0"}
    refused = shelves.refused("Fill", request_key="d", owner=ORGANIZATION, number=1, used=6)
    assert refused.code == "RDB-E-ARITHMETIC"  # `free` is computed before the invariant is looked at


def test_uniques_come_before_references_and_invariants(shelves: Place) -> None:
    shelves.together(shelf("a", 1, "x"), book("b", "1", code=1))
    assert call(shelves, "AddBook", "c", isbn="2", code=1, shelf=7, shelf_label="q")["outcome"] == "CodeTaken"
    assert call(shelves, "AddBook", "d", isbn="2", code=2, shelf=7, shelf_label="q")["outcome"] == "NoShelf"
    assert call(shelves, "AddBook", "e", isbn="2", code=2, shelf=1, shelf_label="q")["outcome"] == "NoLabel"
    shelves.together(shelf("f", 2, "y"), shelf("g", 99, "z"))
    empty = call(shelves, "Exchange", "h", first=1, second=2, first_label="", second_label="z")
    assert empty["outcome"] == "LabelTaken"
    empty = call(shelves, "Exchange", "i", first=1, second=2, first_label="", second_label="w")
    assert empty["outcome"] == "Nameless"


# --- look-ups by a unique --------------------------------------------------------------------------------------------


def test_a_row_is_found_by_a_unique(shelves: Place) -> None:
    shelves.together(book("a", "1", code=11), book("b", "2", code=22))
    found = shelves.command("Find", owner=ORGANIZATION, code=22, other="9")
    assert (found["outcome"], found["payload"]) == ("Found", {"isbn": "2", "second": "none"})
    assert shelves.command("Find", owner=ORGANIZATION, code=33, other="1")["outcome"] == "Missing"
    aliased = shelves.refused("Find", owner=ORGANIZATION, code=22, other="2")
    assert aliased.code == "RDB-E-ALIASED"


def test_a_look_up_sees_what_the_batch_did_so_far(shelves: Place) -> None:
    shelves.together(book("a", "1", code=11), book("b", "2", code=22))
    recode = {"owner": ORGANIZATION}
    answers = shelves.together(
        ("Recode", {"request_key": "c", "code": 11, "new_code": 22, **recode}),
        ("Recode", {"request_key": "d", "code": 11, "new_code": 33, **recode}),
        ("Recode", {"request_key": "e", "code": 22, "new_code": 11, **recode}),
        ("Recode", {"request_key": "f", "code": 33, **recode}),
        ("Forget", {"request_key": "g", "code": 33, **recode}),
        ("Forget", {"request_key": "h", "code": 11, **recode}),
        ("Recode", {"request_key": "i", "code": 11, "new_code": 44, **recode}),
    )
    assert outcomes(answers) == [*("CodeTaken", "Recoded", "Recoded", "Recoded", "Missing", "Forgotten", "Missing")]
    assert answers[1]["payload"]["book"]["revision"] == "2"
    assert answers[5]["payload"] == {"isbn": "2"}


DOUBLED = """
contract Boxes version 1 {
  entity Box {
    key (owner: uuid, number: u64)
    field size: u64
    computed twice: u64 = size * 2
    unique by_twice (owner, twice)
  }
  command AddBox {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input size: u64
    idempotency_key request_key
    create Box(owner, number) as box else Exists {} conflict by_twice Taken {}
    set box.size = size
    return Added { box: box }
  }
  command Resize {
    input request_key: string<64>
    input owner: uuid
    input twice: u64
    input size: u64
    idempotency_key request_key
    mutate Box.by_twice(owner, twice) as box else Missing {} conflict by_twice Taken { twice: box.twice }
    set box.size = size
    return Resized { box: box }
  }
}
"""


def test_a_row_found_by_what_is_computed_is_held_to_it(empty: Place) -> None:
    empty.deploy(plan_of(DOUBLED, "boxes"))
    for number in (1, 2):
        empty.command("AddBox", request_key=f"a{number}", owner=ORGANIZATION, number=number, size=number)
    taken = empty.command("Resize", request_key="r1", owner=ORGANIZATION, twice=2, size=2)
    assert (taken["outcome"], taken["payload"]) == ("Taken", {"twice": "2"})
    same = empty.command("Resize", request_key="r2", owner=ORGANIZATION, twice=2, size=1)
    moved = empty.command("Resize", request_key="r3", owner=ORGANIZATION, twice=2, size=3)
    assert (same["outcome"], moved["payload"]["box"]["twice"]) == ("Resized", "6")
