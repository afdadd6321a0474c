"""The attempt identities of `attempt_identity.json`, which every language makes alike.

Each committed identity is computed twice: by the package, and by `_by_the_page`, which was written from the description
of the layout alone and shares nothing with it. 64-bit numbers stand in the file as strings. To add a vector, write it
without `identity` and run with `--update`: the identity then comes from `_by_the_page`.
"""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from riffdb.scheduler.identity import (
    Component,
    Purpose,
    Source,
    Subject,
    attempt_identity,
    business_identity,
)

FILE = Path(__file__).parent / "attempt_identity.json"
VECTORS: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PURPOSES = {"claim": 1, "business": 2, "release": 3, "fail": 4, "renew": 5}


def _text(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack(">I", len(data)) + data


def _by_the_page(vector: dict[str, Any]) -> str:
    source = vector["source"]
    parts = [b"riffdb/schedule-attempt/v1", b"\0", _text(vector["schedule"])]
    parts += [
        {"query": b"\x01", "stream": b"\x02"}[source["kind"]],
        bytes.fromhex(source["hash"]),
        _text(source["name"]),
    ]
    parts += [struct.pack(">q", int(vector["due"])), struct.pack(">B", len(vector["target"]))]
    for component in vector["target"]:
        ((kind, value),) = component.items()
        if kind == "uuid":
            parts += [b"\x01", bytes.fromhex(value.replace("-", ""))]
        elif kind == "text":
            parts += [b"\x02", _text(value)]
        else:
            parts += [b"\x03", struct.pack(">Q", int(value))]
    parts += [struct.pack(">B", PURPOSES[vector["purpose"]])]
    if vector["purpose"] == "business":
        parts += [struct.pack(">B", vector["generation"]), _text(vector["command"])]
    else:
        parts += [struct.pack(">QQ", int(vector["ordinal"]), int(vector["revision"]))]
    return "sched_" + hashlib.sha256(b"".join(parts)).hexdigest()


def _by_the_package(vector: dict[str, Any]) -> str:
    source = vector["source"]
    subject = Subject(
        schedule=vector["schedule"],
        source=Source(source["kind"], bytes.fromhex(source["hash"]), source["name"]),
        due=int(vector["due"]),
        target=tuple(_component(component) for component in vector["target"]),
    )
    if vector["purpose"] == "business":
        return business_identity(subject, vector["command"], vector["generation"])
    purpose = Purpose[vector["purpose"].upper()]
    return attempt_identity(subject, purpose, int(vector["ordinal"]), int(vector["revision"]))


def _component(component: dict[str, str]) -> Component:
    ((kind, value),) = component.items()
    return UUID(value) if kind == "uuid" else value if kind == "text" else int(value)


def _named(vectors: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", vectors, ids=[vector["name"] for vector in vectors])


@pytest.fixture(scope="module", autouse=True)
def rewritten(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update"):
        for vector in VECTORS["accepted"]:
            vector["identity"] = _by_the_page(vector)
        FILE.write_text(json.dumps(VECTORS, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


@_named(VECTORS["accepted"])
def test_an_identity_is_the_committed_one(vector: dict[str, Any]) -> None:
    assert _by_the_page(vector) == vector["identity"]
    assert _by_the_package(vector) == vector["identity"]


@_named(VECTORS["refused"])
def test_a_part_outside_its_bounds_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as refused:
        _by_the_package(vector)
    assert not isinstance(refused.value, UnicodeError)


def test_vectors_differ_in_name_and_identity() -> None:
    assert len({vector["name"] for vector in VECTORS["accepted"] + VECTORS["refused"]}) == len(
        VECTORS["accepted"] + VECTORS["refused"]
    )
    assert len({vector["identity"] for vector in VECTORS["accepted"]}) == len(VECTORS["accepted"])


def test_text_that_json_cannot_carry_is_refused() -> None:
    source = Source("query", bytes(32), "DueWork")
    with pytest.raises(ValueError, match="lone surrogates"):
        Subject("DueWorkItems", source, 0, ("\ud800",))


def test_a_refusal_shows_no_value_and_a_subject_no_target() -> None:
    source = Source("query", bytes(32), "DueWork")
    with pytest.raises(ValueError) as refused:
        Subject("DueWorkItems", source, 0, ("tenant-secret" * 30,))
    assert "secret" not in str(refused.value)
    assert "secret" not in repr(Subject("DueWorkItems", source, 0, ("tenant-secret",)))


def test_a_truth_value_is_no_u64() -> None:
    with pytest.raises(ValueError, match="target component 0"):
        Subject("DueWorkItems", Source("query", bytes(32), "DueWork"), 0, (True,))


def test_an_attempt_identity_is_not_made_for_business() -> None:
    subject = Subject("DueWorkItems", Source("query", bytes(32), "DueWork"), 0, (1,))
    with pytest.raises(ValueError, match="generation"):
        attempt_identity(subject, Purpose.BUSINESS, 1, 1)
