"""What the suite of the database shares: a place with a store, a clock that the test moves, and the database over it.

A `Place` runs everything on one event loop, so that what is sent `together` is one batch; `batches` tells their sizes.
Contracts: the queue of `examples/queue`, and `LEDGER`, whose commands can go wrong in the ways that the queue's cannot.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest

from riffdb.client.application import compiled_plan
from riffdb.compiler import compile
from riffdb.core.diagnostics import render
from riffdb.core.errors import RiffError
from riffdb.core.keys import SYSTEM_PARTITION
from riffdb.core.layout import TOMBSTONE_REVISION, TOMBSTONE_SEQUENCE
from riffdb.core.records import Batch, CommitRecord, DeployedContract, Mutation
from riffdb.core.spans import Source
from riffdb.database.callers import OPERATOR, Caller
from riffdb.database.database import Database
from riffdb.database.doors import LoopDoor, Run
from riffdb.database.records import EMPTY_CHAIN
from riffdb.plan import Plan
from riffdb.storage import open_store
from riffdb.storage.protocol import Reader

Result = TypeVar("Result")

KINDS = ("memory", "sqlite")
QUEUE = Path(__file__).parent.parent.parent / "examples" / "queue"
LOCAL = Caller("local:test", OPERATOR, "test")
START = 1_800_000_000_000_000
"""2027-01-15T08:00:00Z, where the clock of a place begins."""
SECOND = 1_000_000
ORGANIZATION = UUID(int=0xA)
OTHER = UUID(int=0xB)

LEDGER = """
contract Ledger version 1 {
  enum Standing { Open, Closed }
  entity Account {
    key (owner: uuid, number: u64)
    field balance: u64
    field standing: Standing
    field note: optional<string<20>>
  }
  event Moved { partition_by (owner) owner: uuid amount: u64 }

  command OpenAccount {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input balance: u64 = 0
    input opened_at: optional<timestamp>
    input note: optional<string<20>>
    idempotency_key request_key
    create Account(owner, number) as account else Exists { account: account }
    set account.balance = balance
    set account.standing = Standing.Open
    set account.note = note
    return Opened { account: account }
  }
  command Deposit {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    input amount: u64
    idempotency_key request_key
    mutate Account(owner, number) as account else Missing {}
    require is_open: account.standing == Standing.Open else NotOpen { balance: account.balance }
    set account.balance = account.balance + amount
    return Deposited { balance: account.balance }
  }
  command Move {
    input request_key: uuid
    input owner: uuid
    input source: u64
    input target: u64
    input amount: u64
    idempotency_key request_key
    mutate Account(owner, source) as from_account else Missing {}
    mutate Account(owner, target) as to_account else Missing {}
    require covered: from_account.balance >= amount else Uncovered {}
    set from_account.balance = from_account.balance - amount
    set to_account.balance = to_account.balance + amount
    emit Moved { owner: owner, amount: amount }
    return Done { from_account: from_account, to_account: to_account }
  }
  command CloseAccount {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    idempotency_key request_key
    delete Account(owner, number) as account else Missing {}
    return ClosedAccount { balance: account.balance }
  }
  command Look {
    input owner: uuid
    input number: u64
    read Account(owner, number) as account else Missing {}
    return Seen { account: account }
  }
  command Audit {
    input request_key: string<64>
    input owner: uuid
    input number: u64
    idempotency_key request_key
    read Account(owner, number) as account else Missing {}
    return Audited { balance: account.balance }
  }
}
query Accounts($owner: uuid, $limit: limit<100> = 50) {
  many found from Account where owner == $owner order by number take $limit
  return Listed { accounts: found { number balance standing note revision } }
}
role Teller { query Accounts command OpenAccount, Deposit, Look }
role Auditor { command Audit, Look }
"""


def plan_of(text: str, application: str = "ledger") -> Plan:
    """The plan of a contract's text."""
    compilation = compile(application, [Source("contract.riff", text)])
    assert compilation.plan is not None, "\n".join(render(found) for found in compilation.diagnostics)
    return compilation.plan


@cache
def ledger_plan() -> Plan:
    """The plan of `LEDGER`."""
    return plan_of(LEDGER)


@cache
def queue_plan() -> Plan:
    """The plan of `examples/queue`."""
    return compiled_plan(QUEUE)


def changed_ledger(*changes: tuple[str, str]) -> Plan:
    """The plan of `LEDGER` with each text replaced by another."""
    text = LEDGER
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return plan_of(text)


class Place:
    """A store of one kind with a database over it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.path = folder / "place.db"
        self.now = START
        self.batches: list[int] = []
        self.is_tampered = False
        """Whether a test wrote rows past the database."""
        self.runner = asyncio.Runner()
        self._url = "memory:" if kind == "memory" else f"sqlite:{self.path}"
        self.store = self.run(open_store(self._url, clock=lambda: self.now))
        self.database = self.run(Database.open(self.store, self._door))

    def _door(self, run: Run) -> LoopDoor:
        async def counted(works: list[Any]) -> None:
            self.batches.append(len(works))
            await run(works)

        return LoopDoor(counted)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run on the loop of the place."""
        return self.runner.run(coroutine)

    @property
    def is_closed(self) -> bool:
        """Whether a test has closed the store."""
        try:
            self.read(lambda reader: reader.time())
        except RiffError:
            return True
        return False

    def verify(self) -> None:
        """Hold whatever a test has done against the log of it."""
        found = self.run(self.database.operations.verify(LOCAL))
        assert found["ok"], found["first_difference"]

    def close(self) -> None:
        """Release the store and end the loop."""
        self.run(self.store.close())
        self.runner.close()

    def reopen(self) -> None:
        """The database as a new process would find it; a memory store stays, what was made of it does not."""
        if self.kind == "sqlite":
            self.run(self.store.close())
            self.store = self.run(open_store(self._url, create=False, clock=lambda: self.now))
        self.database = self.run(Database.open(self.store, self._door))

    def deploy(self, plan: Plan, caller: Caller = LOCAL) -> str:
        """Deploy a contract."""
        return self.run(self.database.deploy(caller, plan)).outcome

    def raw(self, name: str, caller: Caller = LOCAL, /, **values: object) -> bytes:
        """Run a command; the bytes of its answer."""
        return self.run(self.database.command(caller, name, values))

    def command(self, name: str, caller: Caller = LOCAL, /, **values: object) -> Any:
        """Run a command; its answer."""
        return json.loads(self.raw(name, caller, **values))

    def refused(self, name: str, caller: Caller = LOCAL, /, **values: object) -> RiffError:
        """The error that a command ends with."""
        return self.error_of(self.database.command(caller, name, values))

    def error_of(self, coroutine: Coroutine[Any, Any, object]) -> RiffError:
        """The error that the call ends with."""
        with pytest.raises(RiffError) as caught:
            self.run(coroutine)
        return caught.value

    def together(self, *calls: tuple[Any, ...]) -> list[Any]:
        """Run commands as one batch, each `(name, values)` or `(name, values, caller)`; answers and errors in order."""
        coroutines = [self.database.command(rest[0] if rest else LOCAL, name, values) for name, values, *rest in calls]
        return self.all_of(coroutines)

    def all_of(self, coroutines: list[Coroutine[Any, Any, Any]]) -> list[Any]:
        """Run calls as one batch; answers (parsed where they are JSON) and errors in order."""

        async def gathered() -> list[Any]:
            return await asyncio.gather(*coroutines, return_exceptions=True)

        return [json.loads(found) if isinstance(found, bytes) else found for found in self.run(gathered())]

    def token(self, role: str = "", **restrictions: Any) -> str:
        """The token of a new capability."""
        wanted: dict[str, Any] = {"role": role} if role else {"operator": True}
        return str(self.run(self.database.operations.create(LOCAL, **wanted, **restrictions))["token"])

    def caller(self, role: str = "", **restrictions: Any) -> Caller:
        """The holder of a new capability."""
        return self.run(self.database.authenticate(self.token(role, **restrictions), "test"))

    def read(self, work: Callable[[Reader], Awaitable[Result]]) -> Result:
        """Read in one snapshot."""

        async def reading() -> Result:
            async with self.store.snapshot() as reader:
                return await work(reader)

        return self.run(reading())

    def log(self, partition: UUID | None = ORGANIZATION) -> list[CommitRecord]:
        """The commit records of a partition; of the system partition for None."""
        key = SYSTEM_PARTITION if partition is None else b"\x01" + partition.bytes
        return self.read(lambda reader: reader.log(key, 0, 100_000))

    def put_revision(self, entity: str, key: tuple[Any, ...], revision: int) -> None:
        """Let the tombstone of a key have that revision, as after countless lives."""
        self.is_tampered = True
        table = self.database.contract.tombstones[entity]

        async def put() -> None:
            async with self.store.transaction() as transaction:
                found = (await transaction.rows(table, [key]))[key]
                row = (*found[:TOMBSTONE_REVISION], revision, *found[TOMBSTONE_SEQUENCE:])
                await transaction.write(Batch(mutations=[Mutation(table.name, key, row, True)]))

        self.run(put())

    def contracts(self) -> list[DeployedContract]:
        """All deployed contracts."""
        return self.read(lambda reader: reader.contracts())

    def check_log(self, partition: UUID | None = ORGANIZATION) -> list[CommitRecord]:
        """The records of a partition, after a look at what always holds of them: gapless, later and later, chained."""
        records = self.log(partition)
        key = SYSTEM_PARTITION if partition is None else b"\x01" + partition.bytes
        chain, time = EMPTY_CHAIN, 0
        for sequence, record in enumerate(records, start=1):
            assert record.sequence == sequence
            assert record.partition == key
            assert record.time > time
            fields = [field.hex() if isinstance(field, bytes) else field for field in (*record[:-1], chain)]
            chain = sha256("\0".join("" if field is None else str(field) for field in fields).encode()).digest()
            assert record.chain == chain
            time = record.time
        head = self.read(lambda reader: reader.heads([key])).get(key)
        assert (0, 0, EMPTY_CHAIN) if head is None else head[1:] == (len(records), time, chain)
        return records


def work(key: str, item: int = 1, **changes: object) -> dict[str, object]:
    """The input of `CreateWork`."""
    return {
        "request_key": key,
        "organization_id": ORGANIZATION,
        "work_id": UUID(int=item),
        "due_at": "2027-01-01T00:00:00Z",
    } | changes


def claim(key: str, item: int = 1, **changes: object) -> dict[str, object]:
    """The input of `ClaimWork` at the first revision."""
    return {
        "request_key": key,
        "organization_id": ORGANIZATION,
        "work_id": UUID(int=item),
        "owner_id": UUID(int=0xC),
        "duration": 60,
        "expected_revision": 1,
    } | changes


def account(key: str, number: int = 1, **changes: object) -> dict[str, object]:
    """The inputs that most commands of the ledger take."""
    return {"request_key": key, "owner": ORGANIZATION, "number": number} | changes


def without_replayed(raw: bytes) -> bytes:
    """The bytes of an answer without the one word in which a replay differs."""
    for word in (b',"replayed":false}', b',"replayed":true}'):
        if raw.endswith(word):
            return raw.removesuffix(word)
    raise AssertionError("an answer ends in `replayed`")
