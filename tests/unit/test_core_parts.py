"""Small parts of the core that everything rests on: byte forms of partitions, the nearest name, stepping.

Units, since their corners hardly show at the surface.
"""

import asyncio
from itertools import combinations
from uuid import UUID

import pytest

from riffdb.core.errors import RiffError, input_error
from riffdb.core.keys import SYSTEM_PARTITION, partition_encoder, partition_text
from riffdb.core.limits import I64_MAX, I64_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, U64_MAX
from riffdb.core.stepping import step, stepped
from riffdb.core.suggestions import did_you_mean, nearest
from riffdb.core.types import BOOL, DATE, I64, TIMESTAMP, U64, Type, string
from riffdb.core.types import UUID as UUID_TYPE

PARTITIONS = [
    (UUID_TYPE, bytes(16), b"\x01" + bytes(16), str(UUID(int=0))),
    (UUID_TYPE, b"\xff" * 16, b"\x01" + b"\xff" * 16, str(UUID(int=2**128 - 1))),
    (string(8), "", b"\x02", ""),
    (string(8), "ä", b"\x02\xc3\xa4", "ä"),
    (U64, 0, b"\x03" + bytes(8), "0"),
    (U64, U64_MAX, b"\x03" + b"\xff" * 8, str(U64_MAX)),
    (I64, I64_MIN, b"\x04" + bytes(8), str(I64_MIN)),
    (I64, I64_MAX, b"\x04" + b"\xff" * 8, str(I64_MAX)),
    (DATE, -719_162, b"\x05" + (2**63 - 719_162).to_bytes(8, "big"), "-719162"),
    (TIMESTAMP, TIMESTAMP_MIN, b"\x06" + (2**63 + TIMESTAMP_MIN).to_bytes(8, "big"), str(TIMESTAMP_MIN)),
    (TIMESTAMP, TIMESTAMP_MAX, b"\x06" + (2**63 + TIMESTAMP_MAX).to_bytes(8, "big"), str(TIMESTAMP_MAX)),
    (Type("enum", name="Colour"), 3, b"\x07" + (3).to_bytes(8, "big"), "3"),
]


@pytest.mark.parametrize(("value_type", "inside", "form", "text"), PARTITIONS)
def test_a_partition_has_one_byte_form_and_one_text(value_type: Type, inside: object, form: bytes, text: str) -> None:
    assert partition_encoder(value_type)(inside) == form
    assert partition_text(form) == text


def test_partitions_of_different_types_never_meet() -> None:
    forms = [form for *_, form, _ in PARTITIONS] + [SYSTEM_PARTITION]
    assert all(one != other for one, other in combinations(forms, 2))
    assert partition_text(SYSTEM_PARTITION) == "system"
    with pytest.raises(AssertionError, match="no key type"):
        partition_encoder(BOOL)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ClaimWrok", "ClaimWork"),
        ("claimwork", "ClaimWork"),
        ("CLAIM_WORK", "ClaimWork"),
        ("Zebra", None),
        ("", None),
        ("ClaimWork" * 20, None),
    ],
)
def test_the_nearest_name_is_offered_if_it_is_near(name: str, found: str | None) -> None:
    assert nearest(name, ["CreateWork", "ClaimWork", "FailWork"]) == found
    assert did_you_mean(name, ["ClaimWork"]) == ("" if found is None else "; did you mean `ClaimWork`?")
    assert nearest(name, []) is None


def test_a_coroutine_that_never_waits_is_stepped() -> None:
    class Thing:
        async def twice(self, number: int) -> int:
            """Twice the number."""
            return 2 * number

        async def broken(self) -> None:
            raise OSError("broken")

    thing = Thing()
    assert step(thing.twice(2)) == 4
    assert stepped(Thing.twice)(thing, number=3) == 6
    assert stepped(Thing.twice).__doc__ == "Twice the number."
    with pytest.raises(OSError, match="broken"):
        step(thing.broken())
    with pytest.raises(AssertionError, match="waited for an event loop"):
        step(asyncio.sleep(0))


def test_an_error_survives_its_problem_object() -> None:
    error = RiffError("RDB-E-OVERLOADED", "full", key="k", detail={"retry_after": 3})
    problem = error.to_json()
    assert problem["type"] == "urn:riffdb:error:RDB-E-OVERLOADED"
    assert (problem["status"], problem["retryable"], problem["key"], problem["retry_after"]) == (503, True, "k", 3)
    again = RiffError.from_json(problem)
    assert (again.code, again.message, again.path, again.key, again.detail) == (
        "RDB-E-OVERLOADED",
        "full",
        None,
        "k",
        {"retry_after": 3},
    )
    refusal = RiffError.from_json(input_error("a.b[0]", "must be so").to_json())
    assert (refusal.code, refusal.path, refusal.message) == ("RDB-E-INPUT", "a.b[0]", "a.b[0]: must be so")
    assert RiffError.from_json({"code": "RDB-E-TOMORROW", "title": "New"}).message == "New"
