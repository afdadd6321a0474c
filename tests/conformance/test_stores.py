"""The suite that every store passes: what is written comes back, in order, whole or not at all."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from riffdb.core.errors import RiffError
from riffdb.core.failpoints import FailpointError, arm
from riffdb.core.layout import Column, Index, Row, Table
from riffdb.core.records import Batch, DeployedContract, Head, Mutation, SecretPart, Trim
from riffdb.core.stepping import step
from riffdb.storage.protocol import SECRET_BYTES, Reader, Scan, Transaction
from tests.conformance.stores import (
    VALUES,
    WORK,
    P,
    Place,
    Q,
    capability,
    deletes,
    everything,
    head,
    inserts,
    place_of,
    record,
    rows_of,
    scan,
    updates,
    wide,
    work,
)

# Writing


def test_updates_and_deletes_reach_rows_and_indexes(place: Place) -> None:
    rows = [work(number, due=number) for number in range(1, 6)]
    place.write(Batch(mutations=inserts(WORK, *rows)), WORK)
    moved, owned = work(1, due=9, revision=2), work(3, due=3, owner=b"me", revision=2)
    place.write(Batch(mutations=updates(WORK, moved, owned) + deletes(WORK, rows[1])))
    assert scan(place, WORK, WORK.indexes[0], ("a",)) == [owned, rows[3], rows[4], moved]
    assert scan(place, WORK, WORK.indexes[1], ("a", b"me")) == [owned]


def test_an_update_of_a_row_that_was_read_reaches_every_index(place: Place) -> None:
    before = [work(number, due=number) for number in (1, 2, 3, 4)]
    place.write(Batch(mutations=inserts(WORK, *before)), WORK)
    after = [
        work(1, due=1, owner=b"x", revision=2),
        work(2, due=-2, revision=2),
        work(3, due=-3, owner=b"x", revision=2),
        work(4, due=4, revision=2),
    ]

    async def read_and_update(transaction: Transaction) -> None:
        assert set((await transaction.rows(WORK, [WORK.key_of(row) for row in before])).values()) == set(before)
        await transaction.write(Batch(mutations=updates(WORK, *after)))

    place.transact(read_and_update)
    place.settle()
    assert place.all_rows(WORK) == set(after)
    assert scan(place, WORK, WORK.indexes[0], ("a",)) == [after[2], after[1], after[0], after[3]]
    assert scan(place, WORK, WORK.indexes[1], ("a", b"x")) == [after[0], after[2]]
    assert scan(place, WORK, WORK.indexes[1], ("a", None)) == [after[1], after[3]]


def test_a_row_made_and_removed_in_one_batch_leaves_nothing(place: Place) -> None:
    place.write(Batch(mutations=[Mutation("work", ("a", b"\1"), None, existed=False)]), WORK)
    assert place.all_rows(WORK) == set()


def test_a_transaction_reads_what_it_wrote_and_prepared(place: Place) -> None:
    async def run(transaction: Transaction) -> list[Row]:
        await transaction.prepare([WORK])
        assert await transaction.rows(WORK, [("a", b"\1")]) == {}
        await transaction.write(
            Batch(mutations=inserts(WORK, work(1)), heads=[head(P, 1)], records=[record(P, 1, "k")])
        )
        assert await transaction.heads([P]) == {P: head(P, 1)}
        assert await transaction.answered([(P, "Claim", "k")]) == {(P, "Claim", "k"): record(P, 1, "k")}
        return await transaction.scan(everything(WORK))

    assert place.transact(run) == [work(1)]


def full_batch() -> Batch:
    return Batch(
        heads=[head(P, 1), head(Q, 1)],
        records=[record(P, 1, "k"), record(Q, 1)],
        mutations=inserts(WORK, work(1)),
        capabilities=[capability("one")],
        contracts=[DeployedContract("queue", 1, b"p" * 32, "{}", 7)],
        secrets=[secret(P, 1)],
    )


def secret(partition: bytes, sequence: int) -> SecretPart:
    return SecretPart(partition, sequence, b"s" * 32, f'{{"pin":"{sequence}ä"}}', "[{}]")


def contents(place: Place) -> list[Any]:
    async def read(reader: Reader) -> list[Any]:
        return [
            await reader.heads([P, Q]),
            await reader.log(P, 0, 10),
            await reader.log(Q, 0, 10),
            await reader.answered([(P, "Claim", "k")]),
            await reader.capability_list(),
            await reader.contracts(),
            await reader.secrets(P, [1, 2]) | await reader.secrets(Q, [1]),
        ]

    return place.read(read)


class ChangedMindError(Exception):
    """Raised in a block to leave it."""


def test_a_batch_is_kept_whole(place: Place) -> None:
    place.write(full_batch(), WORK)
    assert contents(place) == [
        {P: head(P, 1), Q: head(Q, 1)},
        [record(P, 1, "k")],
        [record(Q, 1)],
        {(P, "Claim", "k"): record(P, 1, "k")},
        [capability("one")],
        [DeployedContract("queue", 1, b"p" * 32, "{}", 7)],
        {1: secret(P, 1)},
    ]
    assert place.all_rows(WORK) == {work(1)}


@pytest.mark.parametrize("error", [ChangedMindError, KeyboardInterrupt, GeneratorExit])
def test_a_block_that_raises_leaves_nothing(place: Place, error: type[BaseException]) -> None:
    before = contents(place)

    async def run(transaction: Transaction) -> None:
        await transaction.prepare([WORK])
        await transaction.write(full_batch())
        raise error

    with pytest.raises(error):
        place.transact(run)
    place.settle()
    assert contents(place) == before == [{}, [], [], {}, [], [], {}]
    with pytest.raises(RiffError, match="has no table work"):
        place.all_rows(WORK)
    place.write(full_batch(), WORK)
    assert place.all_rows(WORK) == {work(1)}


CONTRADICTIONS = {
    "a row that is there is made": Batch(mutations=inserts(WORK, work(2), work(1))),
    "a row that is missing is changed": Batch(mutations=updates(WORK, work(1, due=5), work(2))),
    "a row that is missing is removed": Batch(mutations=deletes(WORK, work(1), work(2))),
    "a sequence is used again": Batch(records=[record(P, 2), record(P, 1)]),
    "a token is another capability's": Batch(capabilities=[capability("two"), capability("three", token="one")]),
    "a record has a secret part already": Batch(secrets=[secret(P, 2), secret(P, 1)]),
    "the table is unknown": Batch(mutations=[Mutation("other", (1,), (1,), existed=False)]),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_batch_that_contradicts_the_store_is_refused_whole(place: Place, what: str) -> None:
    place.write(full_batch(), WORK)
    before = contents(place)
    batch = CONTRADICTIONS[what]
    records = [record(Q, 5, "q"), *batch.records]
    batch = replace(batch, heads=[head(P, 9)], records=records, secrets=[secret(Q, 5), *batch.secrets])
    with pytest.raises(RiffError) as caught:
        place.write(batch)
    assert caught.value.code == "RDB-E-INTERNAL"

    async def swallow(transaction: Transaction) -> None:
        with suppress(RiffError):
            await transaction.write(batch)

    with pytest.raises(AssertionError, match="rolled back"):
        place.transact(swallow)
    place.settle()
    assert contents(place) == before
    assert place.all_rows(WORK) == {work(1)}


def test_a_unique_index_refuses_a_second_row_and_ignores_nulls(place: Place) -> None:
    columns = (Column("id", "int"), Column("name", "text", True), Column("revision", "u64"))
    table = Table("named", columns, (0,), (Index("name", (1,), (False,), unique=True),))
    rows = [(1, "a", 1), (2, "b", 1), (3, None, 1), (4, None, 1)]
    place.write(Batch(mutations=inserts(table, *rows)), table)
    for refused in (inserts(table, (5, "a", 1)), updates(table, (2, "a", 2)), updates(table, (3, "b", 2))):
        with pytest.raises(RiffError) as caught:
            place.write(Batch(mutations=refused))
        assert caught.value.code == "RDB-E-INTERNAL"
    exchanged = [(1, "b", 2), (2, "a", 2)]
    place.write(Batch(mutations=updates(table, *exchanged)))
    replaced = (5, "b", 1)
    place.write(Batch(mutations=inserts(table, replaced) + deletes(table, exchanged[0])))
    assert place.all_rows(table) == {exchanged[1], replaced, *rows[2:]}


# Tables


def test_prepare_makes_what_is_missing_and_keeps_the_rows(place: Place) -> None:
    bare = Table(WORK.name, WORK.columns, WORK.key, WORK.indexes[:1])
    place.write(Batch(mutations=inserts(WORK, work(1, due=2), work(2, due=1))), bare)
    place.write(Batch(), WORK, wide("int"))
    assert scan(place, WORK, WORK.indexes[1], ("a", None), reverse=True) == [work(2, due=1), work(1, due=2)]
    assert scan(place, bare, bare.indexes[0], ("a",)) == [work(2, due=1), work(1, due=2)]
    place.write(Batch(mutations=updates(WORK, work(1, due=3, owner=b"x"))), WORK)
    assert scan(place, WORK, WORK.indexes[1], ("a", b"x")) == [work(1, due=3, owner=b"x")]


OTHER_LAYOUTS = {
    "a column less": Table(WORK.name, WORK.columns[1:], WORK.key, ()),
    "a column of another kind": Table(WORK.name, (*WORK.columns[:-1], Column("commit_sequence", "int")), (1, 0)),
    "a column that takes null": Table(
        WORK.name, (*WORK.columns[:2], Column("due", "int", True), *WORK.columns[3:]), WORK.key, WORK.indexes
    ),
    "a column of which older rows have nothing": Table(
        WORK.name, (*WORK.columns, Column("more", "int")), WORK.key, WORK.indexes
    ),
    "another key": Table(WORK.name, WORK.columns, (0, 1), WORK.indexes),
}


@pytest.mark.parametrize("what", OTHER_LAYOUTS)
def test_prepare_lays_no_table_out_anew(place: Place, what: str) -> None:
    place.write(Batch(mutations=inserts(WORK, work(1))), WORK)
    with pytest.raises(RiffError) as caught:
        place.write(Batch(), wide("int"), OTHER_LAYOUTS[what])
    assert caught.value.code == "RDB-E-APPROVAL"
    with pytest.raises(RiffError, match="has no table of_int"):
        place.all_rows(wide("int"))
    assert place.all_rows(WORK) == {work(1)}


INITIALS: list[tuple[Column, Any]] = [
    *((Column("more", kind, initial=values[-1]), values[-1]) for kind, values in VALUES.items()),
    *((Column("more", kind, True), None) for kind in VALUES),
    *((Column("more", kind, True, initial=values[0]), values[0]) for kind, values in VALUES.items()),
    (Column('it\'s "so"', "text", initial='it\'s "so"'), 'it\'s "so"'),
]


@pytest.mark.parametrize(("column", "initial"), INITIALS, ids=str)
def test_a_new_column_has_its_initial_value_in_older_rows(place: Place, column: Column, initial: Any) -> None:
    """It stands in the middle, two others have changed places, and an index leads over it."""
    columns = (WORK.columns[1], WORK.columns[0], WORK.columns[2], column, *WORK.columns[3:])
    index = Index("work__more", (0, 3, 1), (False, True, False))
    moved = Index("work__due", (0, 2, 1), (False, False, False))
    grown = Table(WORK.name, columns, (0, 1), (index, moved))

    def in_new(row: Row, value: Any) -> Row:
        return (row[1], row[0], row[2], value, *row[3:])

    place.write(Batch(mutations=inserts(WORK, work(1), work(2, due=5))), WORK)
    other = VALUES[column.kind][1]
    place.write(Batch(mutations=inserts(grown, in_new(work(3), other))), grown)
    expected = {in_new(work(1), initial), in_new(work(2, due=5), initial), in_new(work(3), other)}
    assert place.all_rows(grown) == expected
    assert rows_of(place, grown, in_new(work(1), initial)) == {("a", b"\1"): in_new(work(1), initial)}
    assert set(scan(place, grown, index, ("a",), limit=9)) == expected
    assert place.all_rows(WORK) == {work(1), work(2, due=5), work(3)}, "a caller that knows the older layout"
    place.write(Batch(mutations=updates(grown, in_new(work(1, due=9), other))), grown)
    assert scan(place, grown, moved, ("a", 9)) == [in_new(work(1, due=9), other)]
    place.reopen()
    place.write(Batch(mutations=deletes(grown, in_new(work(2), initial))), grown)
    assert place.all_rows(grown) == {in_new(work(1, due=9), other), in_new(work(3), other)}


def test_indexes_come_and_go_over_their_rows(place: Place) -> None:
    place.write(Batch(mutations=inserts(WORK, work(1, due=2), work(2, due=1))), WORK)
    turned = Index("work__owner", (1, 2, 0), (False, True, False))
    other = Table(WORK.name, WORK.columns, WORK.key, (turned,))
    place.write(Batch(), other)
    assert scan(place, other, turned, ("a",)) == [work(1, due=2), work(2, due=1)]
    with pytest.raises(RiffError, match="the contract changed") as caught:
        scan(place, WORK, WORK.indexes[0], ("a",))
    assert caught.value.code == "RDB-E-CONTENTION"
    place.write(Batch(), WORK)
    assert scan(place, WORK, WORK.indexes[0], ("a",)) == [work(2, due=1), work(1, due=2)]


def test_a_column_of_a_transaction_that_failed_is_not_there(place: Place) -> None:
    place.write(Batch(mutations=inserts(WORK, work(1))), WORK)
    grown = Table(WORK.name, (*WORK.columns, Column("more", "int", True)), WORK.key, WORK.indexes)

    async def fail(transaction: Transaction) -> None:
        await transaction.prepare([grown])
        assert await transaction.rows(grown, [("a", b"\1")]) == {("a", b"\1"): (*work(1), None)}
        raise KeyError

    with pytest.raises(KeyError):
        place.transact(fail)
    place.write(Batch(mutations=updates(WORK, work(1, due=3))), WORK)
    place.write(Batch(), grown)
    assert place.all_rows(grown) == {(*work(1, due=3), None)}


def test_a_snapshot_keeps_the_layout_of_its_beginning(place: Place) -> None:
    place.write(Batch(mutations=inserts(WORK, work(1))), WORK)
    grown = Table(WORK.name, (Column("more", "text", initial="x"), *WORK.columns), (2, 1))

    async def both() -> None:
        async with place.store.snapshot() as before:
            await before.heads([])
            async with place.store.transaction() as transaction:
                await transaction.prepare([grown])
                await transaction.write(Batch(mutations=inserts(grown, ("y", *work(2)))))
            assert await before.scan(everything(WORK)) == [work(1)]
            assert await before.scan(Scan(WORK, WORK.indexes[0], ("a",))) == [work(1)]

    step(both())
    assert place.all_rows(grown) == {("x", *work(1)), ("y", *work(2))}


@pytest.mark.parametrize("name", ["riffdb_commit", "RiffDB_x", "sqlite_master"])
def test_names_of_the_store_itself_are_not_given_away(place: Place, name: str) -> None:
    with pytest.raises(AssertionError, match="belongs to the store"):
        place.write(Batch(), Table(name, WORK.columns, WORK.key))


# Log, identities, heads, capabilities, contracts


def test_the_log_is_read_without_gaps(place: Place) -> None:
    records = {partition: [record(partition, number) for number in range(1, 21)] for partition in (P, Q)}
    for start in range(0, 20, 5):
        batch = [entry for partition in (P, Q) for entry in records[partition][start : start + 5]]
        place.write(Batch(records=batch))
    read: list[Any] = []
    while page := place.read(lambda reader: reader.log(P, len(read), 7)):
        read.extend(page)
    assert read == records[P]
    assert place.read(lambda reader: reader.log(Q, 18, 100)) == records[Q][18:]
    assert place.read(lambda reader: reader.log(Q, 20, 100)) == []
    assert place.read(lambda reader: reader.log(Q, 0, 0)) == []
    assert place.read(lambda reader: reader.log(b"none", 0, 9)) == []
    assert place.read(lambda reader: reader.records(P, [3, 21, 1])) == {3: records[P][2], 1: records[P][0]}


def test_an_identity_is_one_partition_command_and_key(place: Place) -> None:
    records = [
        record(P, 1, "k"),
        record(P, 2, "K"),
        record(P, 3, "k", "Create"),
        record(Q, 1, "k"),
        record(P, 4),
        record(P, 5),
        record(P, 6, ""),
    ]
    place.write(Batch(records=records))
    asked = [
        *(entry.identity for entry in records if entry.identity is not None),
        (Q, "Create", "k"),
        (P, "Claim", "z"),
    ]
    assert place.read(lambda reader: reader.answered(asked)) == {
        entry.identity: entry for entry in records if entry.identity is not None
    }
    assert place.read(lambda reader: reader.answered([])) == {}


def test_the_oldest_records_of_a_partition_go_with_their_secret_parts(place: Place) -> None:
    records = [record(P, number, f"k{number}") for number in range(1, 6)]
    others = [record(Q, number, f"k{number}") for number in range(1, 6)]
    secrets = [secret(partition, number) for partition in (P, Q) for number in (1, 3, 4)]
    place.write(Batch(heads=[head(P, 5), head(Q, 5)], records=[*records, *others], secrets=secrets))
    place.write(Batch(trims=[Trim(P, 3), Trim(b"none", 9)]))
    place.write(Batch(trims=[Trim(P, 2)]))
    identities = [entry.identity for entry in (*records, *others) if entry.identity is not None]
    assert place.read(lambda reader: reader.log(P, 0, 9)) == records[3:]
    assert place.read(lambda reader: reader.log(Q, 0, 9)) == others
    assert place.read(lambda reader: reader.commits()) == 7
    assert place.read(lambda reader: reader.answered(identities)).keys() == set(identities[3:])
    assert place.read(lambda reader: reader.secrets(P, [1, 3, 4])).keys() == {4}
    assert place.read(lambda reader: reader.secrets(Q, [1, 3, 4])).keys() == {1, 3, 4}
    assert place.read(lambda reader: reader.heads([P])) == {P: head(P, 5)}
    place.write(Batch(heads=[head(P, 6)], records=[record(P, 6, "k1")]))
    assert place.read(lambda reader: reader.answered([(P, "Claim", "k1")])) == {(P, "Claim", "k1"): record(P, 6, "k1")}


def test_of_an_identity_that_is_used_again_the_newest_record_counts(place: Place) -> None:
    place.write(Batch(records=[record(P, 1, "k"), record(P, 2, "k"), record(P, 3, "other")]))
    place.write(Batch(records=[record(P, 4, "k")]))
    identity = (P, "Claim", "k")
    assert place.read(lambda reader: reader.answered([identity])) == {identity: record(P, 4, "k")}


def test_heads_move_and_the_system_partition_has_one(place: Place) -> None:
    place.write(Batch(heads=[head(P, 1), head(b"", 1)]))
    place.write(Batch(heads=[head(P, 2), head(Q, 1)]))
    assert place.read(lambda reader: reader.heads({P, Q, b"", b"none"})) == {
        P: head(P, 2),
        Q: head(Q, 1),
        b"": head(b"", 1),
    }
    latest = Head(P, (1 << 63) - 1, (1 << 63) - 1, b"")
    place.write(Batch(heads=[latest]))
    assert place.read(lambda reader: reader.heads([P])) == {P: latest}


def test_capabilities_stand_in_order_of_creation_and_can_be_revoked(place: Place) -> None:
    names = ["z", "a", "m"]
    for name in names:
        place.write(Batch(capabilities=[capability(name)]))
    revoked = capability("a", revoked_at=9)
    place.write(Batch(capabilities=[revoked]))
    assert place.read(lambda reader: reader.capability_list()) == [capability("z"), revoked, capability("m")]
    hashes = [revoked.token_hash, capability("m").token_hash, b"none"]
    assert place.read(lambda reader: reader.capabilities(hashes)) == {
        hashes[0]: revoked,
        hashes[1]: capability("m"),
    }


def test_contracts_stand_oldest_first(place: Place) -> None:
    contracts = [DeployedContract("queue", version, bytes([version]), "{}", 5) for version in (2, 1, 2)]
    for contract in contracts:
        place.write(Batch(contracts=[contract]))
    assert place.read(lambda reader: reader.contracts()) == contracts


# Views


def test_a_snapshot_sees_one_state_while_others_write(place: Place) -> None:
    place.write(Batch(heads=[head(P, 1)], records=[record(P, 1)], mutations=inserts(WORK, work(1), work(2))), WORK)

    async def run() -> None:
        async with place.store.snapshot() as early:
            for number in (2, 3):
                async with place.store.transaction() as transaction:
                    await transaction.write(
                        Batch(
                            heads=[head(P, number)],
                            records=[record(P, number)],
                            mutations=updates(WORK, work(1, revision=number)) + inserts(WORK, work(10 + number)),
                        )
                    )
                    async with place.store.snapshot() as beside:
                        assert await beside.heads([P]) == {P: head(P, number - 1)}
                        assert (await beside.rows(WORK, [("a", b"\1")]))["a", b"\1"] == work(1, revision=number - 1)
                assert await early.heads([P]) == {P: head(P, 1)}
                assert await early.log(P, 0, 10) == [record(P, 1)]
                assert await early.scan(everything(WORK)) == [work(1), work(2)]

    step(run())
    assert place.all_rows(WORK) == {work(1, revision=3), work(2), work(12), work(13)}


def test_a_view_serves_inside_its_block_alone(place: Place) -> None:
    async def run() -> list[Reader]:
        async with place.store.snapshot() as reader:
            pass
        async with place.store.transaction() as transaction:
            pass
        return [reader, transaction]

    for view in step(run()):
        with pytest.raises(AssertionError, match="outside its block"):
            step(view.contracts())


def test_a_transaction_inside_a_transaction_is_a_fault(place: Place) -> None:
    async def run(_transaction: Transaction) -> None:
        async with place.store.transaction():
            raise ChangedMindError

    with pytest.raises(AssertionError, match="inside a transaction"):
        place.transact(run)
    place.write(Batch(heads=[head(P, 1)]))


def test_a_transaction_writes_once(place: Place) -> None:
    async def run(transaction: Transaction) -> None:
        await transaction.write(Batch(heads=[head(P, 1)]))
        await transaction.write(Batch(heads=[head(P, 2)]))

    with pytest.raises(AssertionError, match="at most once"):
        place.transact(run)
    assert place.read(lambda reader: reader.heads([P])) == {}


def test_a_closed_store_says_so(place: Place) -> None:
    async def run() -> None:
        async with place.store.snapshot() as reader:
            await place.store.close()
            await place.store.close()
            await reader.contracts()

    for attempt in (run, lambda: place.store.snapshot().__aenter__(), lambda: place.store.transaction().__aenter__()):
        with pytest.raises(RiffError) as caught:
            step(attempt())
        assert (caught.value.code, caught.value.message) == (
            "RDB-E-UNAVAILABLE",
            "the store is closed; open it again",
        )
    assert place.store.failure is None


def test_chance_comes_in_any_size_and_never_twice(place: Place) -> None:
    async def run(transaction: Transaction) -> list[bytes]:
        return [await transaction.entropy(size) for size in (1, 10, 32, 32, 32)]

    drawn = place.transact(run)
    assert [len(part) for part in drawn] == [1, 10, 32, 32, 32]
    assert len(set(drawn)) == 5


def test_time_is_the_clock_of_the_store(place: Place) -> None:
    async def run(reader: Reader) -> list[int]:
        return [await reader.time() for _ in range(100)]

    times = place.read(run) + place.transact(run)
    assert times == sorted(times)
    assert times[0] > 1_600_000_000_000_000


def test_the_incarnation_and_the_secret_stay(place: Place, tmp_path: Path) -> None:
    incarnation, secret_key = place.store.incarnation, place.store.secret
    assert len(incarnation) == 36
    assert len(secret_key) == SECRET_BYTES == 32
    place.reopen()
    assert (place.store.incarnation, place.store.secret) == (incarnation, secret_key)
    (tmp_path / "other").mkdir()
    other = place_of(place.kind, tmp_path / "other")
    assert other.store.secret != secret_key
    step(other.store.close())


# Failpoints


@pytest.fixture
def _disarmed() -> Iterator[None]:
    yield
    arm(None)


@pytest.mark.usefixtures("_disarmed")
@pytest.mark.parametrize(("label", "kept"), [("commit.before", set()), ("commit.after", {work(1)})])
def test_failpoints_stand_on_both_sides_of_the_commit(place: Place, label: str, kept: set[Row]) -> None:
    place.write(Batch(), WORK)
    arm(f"{label}:raise")
    place.transact(lambda transaction: transaction.contracts())  # nothing was written: no label is hit
    with pytest.raises(FailpointError):
        place.write(Batch(mutations=inserts(WORK, work(1))))
    place.settle()
    assert place.all_rows(WORK) == kept
    place.write(Batch(mutations=inserts(WORK, work(2))))
    assert place.all_rows(WORK) == kept | {work(2)}
