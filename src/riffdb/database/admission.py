"""Admit: the first step of a command. Check the grant of the name, decode the input, derive partition and key.

What comes out is a request that needs nothing more from outside. A refusal here is an error, never an outcome, and
leaves no record under the key. Absent: the store; whether the capability still holds is asked at the seal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from riffdb.core.errors import RiffError, input_error
from riffdb.core.records import Identity
from riffdb.database.callers import Caller, check_command, check_partition
from riffdb.database.contracts import Contract, PreparedCommand


@dataclass(slots=True)
class CommandRequest:
    """An admitted command on its way; `settled` with an `answer` or an `error` by the pipeline.

    `canonical` is the input without its secret parts, which are `secret_input`; `input_hash` is of the former.
    `inputs` have the service values behind them once it is sealed, and `sealed` is their canonical JSON, if it has any.
    `deadline`: when, by the monotonic clock, its caller has no use for it any more, None for never.
    `answer` is the stored text up to, not including, `"replayed"`. `stale_contract`: another contract was deployed
    meanwhile, and the request must be admitted again.
    """

    contract: Contract
    command: PreparedCommand
    inputs: tuple[object, ...]
    partition: bytes
    identity: Identity | None
    canonical: str
    input_hash: bytes
    caller: Caller
    secret_input: str
    sealed: str = ""
    answer: str = ""
    replayed: bool = False
    error: Exception | None = None
    stale_contract: bool = False
    deadline: float | None = None


def admit(contract: Contract, caller: Caller, name: str, values: Mapping[str, object]) -> CommandRequest:
    """The request that these values make; `RDB-E-FORBIDDEN`, `RDB-E-NOT-FOUND` or `RDB-E-INPUT` otherwise."""
    check_command(contract.plan, caller, name)
    command = contract.command(name)
    inputs = command.inputs.decode(values)
    partition = command.partition_bytes(command.compiled.partition(inputs))
    check_partition(caller, partition)
    key = command.request_key(inputs)
    canonical = command.inputs.canonical(inputs)
    return CommandRequest(
        contract,
        command,
        inputs,
        partition,
        None if key is None else (partition, name, key),
        canonical,
        sha256(canonical.encode()).digest(),
        caller,
        command.inputs.secret(inputs) if command.inputs.has_secrets else "{}",
    )


def admit_resolve(contract: Contract, caller: Caller, name: str, values: Mapping[str, object]) -> Identity:
    """The idempotency identity that the partition's inputs and the key name; other inputs are not needed."""
    check_command(contract.plan, caller, name)
    command = contract.command(name)
    if command.plan.idempotency_key is None:
        raise RiffError("RDB-E-INPUT", "this command has no idempotency key, so nothing is recorded of it")
    needed = command.partition_inputs | {command.plan.idempotency_key}
    for missing in sorted(needed - values.keys()):
        raise input_error(missing, "is missing; a stored answer is found by the partition and the key")
    inputs = command.inputs.decode(values, only=needed)
    partition = command.partition_bytes(command.compiled.partition(inputs))
    check_partition(caller, partition)
    key = command.request_key(inputs)
    assert key is not None
    return (partition, name, key)
