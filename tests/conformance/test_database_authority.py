"""Who may do what, over every store: asked at admission and again at the seal, from the capability's row alone."""

import json
from collections.abc import Callable
from hashlib import sha256
from uuid import UUID

import pytest

from riffdb.core.limits import CAPABILITY_SECONDS_MAX
from riffdb.core.records import Capability
from riffdb.core.values import timestamp_text
from riffdb.database.admission import CommandRequest, admit
from riffdb.database.callers import OPERATOR, Caller
from riffdb.database.tokens import new_token, token_hash
from tests.conformance.databases import (
    LOCAL,
    ORGANIZATION,
    OTHER,
    SECOND,
    Place,
    account,
    changed_ledger,
    claim,
    queue_plan,
    work,
)


def revoke(place: Place, caller: Caller) -> None:
    place.run(place.database.operations.revoke(LOCAL, identity=caller.capability))


def sealed(place: Place, request: CommandRequest) -> None:
    """Put an admitted request to the door, as `Database.command` does."""
    place.run(place.database._door.submit(request))


# --- tokens ---------------------------------------------------------------------------------------------------------


def test_a_token_tells_its_holder(queue: Place) -> None:
    caller = queue.run(queue.database.authenticate(queue.token("WorkScheduler", principal="worker 7"), "http"))
    assert (caller.principal, caller.role, caller.ingress, caller.partition) == (
        "worker 7",
        "WorkScheduler",
        "http",
        None,
    )
    assert not caller.is_operator
    assert queue.caller().is_operator
    assert queue.caller("WorkProducer").principal.startswith("WorkProducer:")


def test_a_text_that_is_no_token_here_is_nobody(queue: Place) -> None:
    token = queue.token()
    for text, words in (
        (new_token(), "not known here"),
        ("", "not a token of RiffDB"),
        ("rdb_", "not a token of RiffDB"),
        (token[:-1], "not a token of RiffDB"),
        (token + "0", "not a token of RiffDB"),
        (token.removeprefix("rdb_"), "not a token of RiffDB"),
        (token.upper(), "not a token of RiffDB"),
        (" " + token, "not a token of RiffDB"),
        ("rdb_" + "ä" * 49, "not a token of RiffDB"),
    ):
        error = queue.error_of(queue.database.authenticate(text, "test"))
        assert (error.code, error.facts.status) == ("RDB-E-UNAUTHENTICATED", 401)
        assert words in error.message
        assert len(text) < 5 or text not in error.message


def test_every_mistyped_character_is_noticed_without_the_store() -> None:
    for _ in range(3):
        token = new_token()
        assert token_hash(token) is not None
        for position, right in enumerate(token):
            for wrong in {"0", "1", "Z", "a", "z", "_", " ", "é", right.swapcase(), chr(ord(right) ^ 1)} - {right}:
                assert token_hash(token[:position] + wrong + token[position + 1 :]) is None
            assert token_hash(token[:position] + token[position + 1 :]) is None
        for position in range(len(token) - 1):
            swapped = token[:position] + token[position + 1] + token[position] + token[position + 2 :]
            assert (token_hash(swapped) is None) == (swapped != token)


def test_tokens_are_new_and_formed_alike() -> None:
    tokens = {new_token() for _ in range(1_000)}
    assert len(tokens) == 1_000
    assert {len(token) for token in tokens} == {53}
    assert all(token.isascii() and token.startswith("rdb_") and token[4:].isalnum() for token in tokens)


def test_a_token_is_kept_nowhere(queue: Place) -> None:
    token = queue.token("WorkScheduler")
    queue.command("CreateWork", queue.run(queue.database.authenticate(queue.token(), "test")), **work("k"))
    created = queue.run(queue.database.operations.create(LOCAL, role="WorkProducer"))
    kept = queue.read(lambda reader: reader.capability_list())
    texts = [repr(kept), repr(queue.log(None)), repr(queue.log())]
    if queue.kind == "sqlite":
        texts += [path.read_bytes().decode("latin-1") for path in queue.path.parent.iterdir() if path.is_file()]
        assert len(texts) > 4, "the file and its log"
    for text in texts:
        assert token[4:20] not in text
        assert created["token"][4:20] not in text
    assert token_hash(token) in {capability.token_hash for capability in kept}


# --- what a capability is made of -----------------------------------------------------------------------------------


def test_a_capability_is_recorded_by_its_facts(queue: Place) -> None:
    operator = queue.caller(principal="root")
    created = queue.run(
        queue.database.operations.create(
            operator, role="WorkScheduler", principal="w", partition=str(ORGANIZATION), expires_seconds=60
        )
    )
    record = queue.check_log(None)[-1]
    hashed = token_hash(created["token"]) or b""
    facts = queue.read(lambda reader: reader.capabilities([hashed]))[hashed]
    assert facts == Capability(
        id=created["id"],
        token_hash=hashed,
        principal="w",
        role="WorkScheduler",
        partition=b"\x01" + ORGANIZATION.bytes,
        created_at=record.time,
        expires_at=record.time + 60 * SECOND,
        revoked_at=None,
        parent=None,
        creator="root",
    )
    assert (record.command, record.outcome, record.principal) == ("capability.create", "created", "root")
    assert json.loads(record.input) == {
        "id": facts.id,
        "principal": "w",
        "role": "WorkScheduler",
        "partition": "01" + ORGANIZATION.hex,
        "expires_at": created["expires_at"],
        "parent": None,
        "creator": "root",
        "grants": "",
        "token": sha256(hashed).hexdigest(),
    }


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ({"role": "NoSuch"}, "role"),
        ({"role": None}, "role"),
        ({"role": 7}, "role"),
        ({"partition": "not a uuid"}, "partition"),
        ({"partition": 7}, "partition"),
        ({"expires_seconds": 0}, "expires_seconds"),
        ({"expires_seconds": -1}, "expires_seconds"),
        ({"expires_seconds": 1.5}, "expires_seconds"),
        ({"expires_seconds": CAPABILITY_SECONDS_MAX + 1}, "expires_seconds"),
        ({"principal": ""}, "principal"),
        ({"principal": "a\nb"}, "principal"),
        ({"principal": "ä" * 129}, "principal"),
    ],
)
def test_a_capability_that_cannot_be_is_refused(queue: Place, wanted: dict[str, object], path: str) -> None:
    before = queue.log(None)
    making = queue.database.operations.create(LOCAL, **({"role": "WorkScheduler"} | wanted))
    error = queue.error_of(making)
    assert (error.code, error.path) == ("RDB-E-INPUT", path)
    assert queue.log(None) == before


def test_a_role_is_misspelt(queue: Place) -> None:
    error = queue.error_of(queue.database.operations.create(LOCAL, role="WorkSheduler"))
    assert "did you mean `WorkScheduler`?" in error.message


# --- grants ---------------------------------------------------------------------------------------------------------


def test_unknown_and_ungranted_names_answer_alike(queue: Place) -> None:
    producer = queue.caller("WorkProducer")
    nonsense: dict[str, object] = {"no": "input is looked at"}

    def answers(calls: list[Callable[[str], object]]) -> list[object]:
        return [call(name) for call in calls for name in ("ClaimWork", "DueWork", "NoSuch", "", "CreateWrok")]

    def commands(name: str) -> object:
        return queue.error_of(queue.database.command(producer, name, nonsense)).to_json()

    def resolves(name: str) -> object:
        return queue.error_of(queue.database.resolve(producer, name, nonsense)).to_json()

    def queries(name: str) -> object:
        return queue.error_of(queue.database.query(producer, name, nonsense)).to_json()

    for call in (commands, resolves, queries):
        first, *others = answers([call])
        assert isinstance(first, dict)
        assert (first["code"], first["status"]) == ("RDB-E-FORBIDDEN", 403)
        assert all(other == first for other in others)
    assert queue.command("CreateWork", producer, **work("k"))["outcome"] == "Created"


def test_a_role_that_the_contract_has_not_grants_nothing(ledger: Place) -> None:
    teller = ledger.caller("Teller")
    ledger.deploy(changed_ledger(("role Teller", "role Clerk")))
    assert ledger.refused("Look", teller, owner=ORGANIZATION, number=1).code == "RDB-E-FORBIDDEN"
    assert ledger.error_of(ledger.database.query(teller, "Accounts", {"owner": ORGANIZATION})).code == "RDB-E-FORBIDDEN"


def test_operators_alone_act_on_the_database(queue: Place) -> None:
    queue.command("CreateWork", **work("k"))
    worker, target = queue.caller("WorkScheduler"), queue.caller("WorkProducer")
    database, before = queue.database, queue.log(None)
    for attempt in (
        database.deploy(worker, queue_plan()),
        database.operations.create(worker, role="WorkScheduler"),
        database.operations.create(worker, operator=True),
        database.operations.revoke(worker, identity=target.capability),
        database.operations.revoke(worker, identity=worker.capability),
        database.operations.history(worker, entity="WorkItem", key=(ORGANIZATION, UUID(int=1))),
        database.operations.history(worker, entity="NoSuch", key=()),
        database.operations.row(worker, entity="WorkItem", key=(ORGANIZATION, UUID(int=1))),
        database.operations.log(worker),
        database.operations.log(worker, partition=str(ORGANIZATION)),
        database.operations.why(worker, partition=str(ORGANIZATION), sequence="1"),
        database.operations.verify(worker),
        database.operations.capabilities(worker),
        database.operations.capability(worker, identity=worker.capability),
    ):
        error = queue.error_of(attempt)
        assert (error.code, error.message) == ("RDB-E-FORBIDDEN", "only an operator may do this")
    assert queue.log(None) == before


def test_a_restriction_to_a_partition_holds_everywhere(queue: Place) -> None:
    worker = queue.caller("WorkScheduler", partition=ORGANIZATION)
    producer = queue.caller("WorkProducer", partition=str(OTHER).upper())
    queue.command("CreateWork", **work("k"))
    assert queue.command("ClaimWork", worker, **claim("c"))["outcome"] == "Claimed"
    assert queue.command("CreateWork", producer, **work("k", organization_id=OTHER))["outcome"] == "Created"
    database = queue.database
    elsewhere: dict[str, object] = {"organization_id": OTHER}
    for attempt in (
        database.command(worker, "ClaimWork", claim("d", organization_id=OTHER)),
        database.command(producer, "CreateWork", work("k")),
        database.resolve(producer, "CreateWork", {"organization_id": ORGANIZATION, "request_key": "k"}),
        database.query(worker, "DueWork", elsewhere),
    ):
        assert queue.error_of(attempt).code == "RDB-E-FORBIDDEN"
    assert queue.run(database.query(worker, "DueWork", {"organization_id": ORGANIZATION}))


def test_an_operator_of_one_partition_has_no_say_over_the_others(queue: Place) -> None:
    operator = queue.caller(partition=ORGANIZATION)
    queue.command("CreateWork", operator, **work("k"))
    queue.command("CreateWork", **work("k", organization_id=OTHER))
    database = queue.database
    assert (
        len(queue.run(database.operations.history(operator, entity="WorkItem", key=(ORGANIZATION, UUID(int=1))))) == 1
    )
    for attempt in (
        database.command(operator, "CreateWork", work("l", organization_id=OTHER)),
        database.operations.history(operator, entity="WorkItem", key=(OTHER, UUID(int=1))),
        database.operations.create(operator, operator=True),
        database.operations.revoke(operator, identity=operator.capability),
        database.deploy(operator, queue_plan()),
    ):
        assert queue.error_of(attempt).code == "RDB-E-FORBIDDEN"


def test_a_partition_is_read_as_the_first_entity_that_can(empty: Place) -> None:
    changes = (
        ("  event Moved", "  entity Name { key (name: string<40>) field n: u64 }\n  event Moved"),
        ("  entity Account", "  entity Number { key (number: u64) field n: u64 }\n  entity Account"),
    )
    empty.deploy(changed_ledger(*changes))
    for given, partition in (
        (str(OTHER), b"\x01" + OTHER.bytes),
        (7, b"\x03" + (7).to_bytes(8, "big")),
        ("7", b"\x03" + (7).to_bytes(8, "big")),
        ("seven", b"\x02seven"),
    ):
        assert empty.caller(partition=given).partition == partition


# --- the end of a capability ----------------------------------------------------------------------------------------


def test_a_revoked_token_does_nothing_more(queue: Place) -> None:
    token = queue.token("WorkProducer")
    producer = queue.run(queue.database.authenticate(token, "test"))
    queue.command("CreateWork", producer, **work("k"))
    told = queue.run(queue.database.operations.revoke(LOCAL, identity=producer.capability))
    assert told == {
        "id": producer.capability,
        "role": "WorkProducer",
        "operator": False,
        "principal": producer.principal,
        "partition": None,
        "grants": None,
        "created_at": timestamp_text(queue.log(None)[-2].time),
        "expires_at": None,
        "parent": None,
        "creator": "local:test",
        "revoked_at": timestamp_text(queue.log(None)[-1].time),
    }
    database = queue.database
    for attempt in (
        database.authenticate(token, "test"),
        database.command(producer, "CreateWork", work("l", 2)),
        database.command(producer, "CreateWork", work("k")),  # never the stored answer
        database.resolve(producer, "CreateWork", {"organization_id": ORGANIZATION, "request_key": "k"}),
    ):
        error = queue.error_of(attempt)
        assert (error.code, error.message) == ("RDB-E-UNAUTHENTICATED", "the token was revoked")
    before = queue.check_log(None)
    assert queue.run(database.operations.revoke(LOCAL, identity=producer.capability)) == told, (
        "once more changes nothing"
    )
    assert queue.log(None) == before
    assert queue.error_of(database.operations.revoke(LOCAL, identity="nobody")).code == "RDB-E-NOT-FOUND"
    assert len(queue.check_log()) == 1


def test_a_revoked_operator_acts_no_more(queue: Place) -> None:
    operator = queue.caller()
    revoke(queue, operator)
    database = queue.database
    for attempt in (
        database.deploy(operator, queue_plan()),
        database.operations.create(operator, operator=True),
        database.operations.history(operator, entity="WorkItem", key=(ORGANIZATION, UUID(int=1))),
        database.query(operator, "DueWork", {"organization_id": ORGANIZATION}),
    ):
        assert queue.error_of(attempt).code == "RDB-E-UNAUTHENTICATED"


def test_a_token_ends_at_its_time(queue: Place) -> None:
    token = queue.token("WorkProducer", expires_seconds=60)
    producer = queue.run(queue.database.authenticate(token, "test"))
    expires = queue.log(None)[-1].time + 60 * SECOND
    queue.now = expires - 1
    assert queue.command("CreateWork", producer, **work("k"))["outcome"] == "Created"
    database = queue.database
    error = queue.error_of(database.command(producer, "CreateWork", work("l", 2)))
    assert (error.code, error.message) == ("RDB-E-UNAUTHENTICATED", "the token has expired"), "by the sealed time"
    queue.now = expires
    for attempt in (
        database.authenticate(token, "test"),
        database.command(producer, "CreateWork", work("k")),
        database.resolve(producer, "CreateWork", {"organization_id": ORGANIZATION, "request_key": "k"}),
    ):
        assert queue.error_of(attempt).message == "the token has expired"
    assert len(queue.check_log()) == 1


def test_a_revocation_counts_between_admission_and_seal(queue: Place) -> None:
    producer = queue.caller("WorkProducer")
    request = admit(queue.database.contract, producer, "CreateWork", work("k"))
    revoke(queue, producer)
    sealed(queue, request)
    assert request.error is not None
    assert "revoked" in str(request.error)
    assert queue.log() == []


def test_an_end_counts_between_admission_and_seal(queue: Place) -> None:
    producer = queue.caller("WorkProducer", expires_seconds=60)
    request = admit(queue.database.contract, producer, "CreateWork", work("k"))
    queue.now += 61 * SECOND
    sealed(queue, request)
    assert "expired" in str(request.error)
    assert queue.log() == []


def test_a_revocation_stands_in_line_with_commands(queue: Place) -> None:
    producer = queue.caller("WorkProducer")
    database = queue.database
    first, revoked, second, other = queue.all_of(
        [
            database.command(producer, "CreateWork", work("a", 1)),
            database.operations.revoke(LOCAL, identity=producer.capability),
            database.command(producer, "CreateWork", work("b", 2)),
            database.command(LOCAL, "CreateWork", work("c", 3)),
        ]
    )
    assert queue.batches[-1:] == [4]
    assert (first["outcome"], other["outcome"]) == ("Created", "Created")
    assert revoked["revoked_at"] is not None
    assert second.code == "RDB-E-UNAUTHENTICATED"
    assert [record.key for record in queue.check_log()] == ["a", "c"]


def test_who_opened_the_file_needs_no_token_and_may_act_as_a_role(ledger: Place) -> None:
    teller = Caller("local:test", "Teller", "test")
    assert ledger.command("OpenAccount", teller, **account("k"))["outcome"] == "Opened"
    assert ledger.refused("Audit", teller, **account("k")).code == "RDB-E-FORBIDDEN"
    assert ledger.command("Audit", Caller("local:test", OPERATOR, "test"), **account("k"))["outcome"] == "Audited"
    assert [(record.principal, record.role, record.capability) for record in ledger.check_log()] == [
        ("local:test", "Teller", ""),
        ("local:test", "", ""),
    ]
