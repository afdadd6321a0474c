"""The one table of run-time error codes: HTTP status, exit code, whether a retry with the same key is safe, title.

A code never changes its meaning. Edges translate an error by this table and by nothing else; the clients of other
languages are generated from it. Compile-time codes (`RDB-C…`) stand in `diagnostic_codes.py`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What one error code means to a caller."""

    status: int
    exit: int
    retryable: bool
    title: str


CODES: dict[str, Code] = {
    "RDB-E-INPUT": Code(400, 1, False, "The input was refused"),
    "RDB-E-UNAUTHENTICATED": Code(401, 8, False, "No, an unknown, an expired or a revoked token"),
    "RDB-E-FORBIDDEN": Code(403, 8, False, "Not granted to this capability"),
    "RDB-E-NOT-FOUND": Code(404, 5, False, "There is no such thing"),
    "RDB-E-ABSENT": Code(404, 5, True, "Nothing is recorded under this key now"),
    "RDB-E-METHOD": Code(405, 1, False, "This address takes another method"),
    "RDB-E-IDEMPOTENCY-REUSED": Code(409, 6, False, "The key was used with another input"),
    "RDB-E-INCARNATION": Code(409, 6, False, "It belongs to another history of the database"),
    "RDB-E-CONTENTION": Code(409, 6, True, "Concurrent changes kept winning"),
    "RDB-E-APPROVAL": Code(409, 4, False, "The change of the contract is not compatible"),
    "RDB-E-TOO-LARGE": Code(413, 1, False, "A limit of size was passed"),
    "RDB-E-ARITHMETIC": Code(422, 1, False, "A value left its range, or a division by zero"),
    "RDB-E-ALIASED": Code(422, 1, False, "Two bindings name the same row"),
    "RDB-E-REVISION-EXHAUSTED": Code(422, 1, False, "The revision of a row is at its end"),
    "RDB-E-CONTRACT": Code(422, 3, False, "The contract has errors"),
    "RDB-E-SKIPPED": Code(424, 1, True, "A step before it did not give what it needs"),
    "RDB-E-CLIENT-TOO-OLD": Code(426, 1, False, "The answer cannot be said in the client's version"),
    "RDB-E-CAPABILITIES": Code(429, 9, False, "Too many capabilities were derived"),
    "RDB-E-CONSUMERS": Code(429, 9, False, "The partition has too many consumers"),
    "RDB-E-UNSETTLED": Code(429, 9, True, "The consumer has too many deliveries that are not settled"),
    "RDB-E-WATCHES": Code(429, 9, True, "Too many watches are open"),
    "RDB-E-OVERLOADED": Code(503, 9, True, "The queue is full"),
    "RDB-E-UNAVAILABLE": Code(503, 9, True, "The database cannot be reached or has stopped"),
    "RDB-E-DEADLINE": Code(503, 9, True, "The caller's time was over before it was begun"),
    "RDB-E-OUTCOME-UNKNOWN": Code(503, 9, True, "It is not known whether the command was committed"),
    "RDB-E-LOCKED": Code(503, 9, False, "Another process holds the file"),
    "RDB-E-STORAGE": Code(503, 9, True, "The store failed, or has no room"),
    "RDB-E-INTERNAL": Code(500, 1, False, "A fault of RiffDB itself"),
    "RDB-E-USAGE": Code(400, 2, False, "The call is not formed as it must be"),
    "RDB-E-VERIFY": Code(409, 10, False, "Verification failed"),
}
