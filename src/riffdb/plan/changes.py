"""What a change of a contract is called, which class it has, and why: one table.

A change is *incompatible* if something that is stored, or a call that was sent before, would be taken for something
else or could never be settled; it *needs migration* if rows must be written or looked through first; all else is
*compatible*. A rule may be lifted: by an entity without rows, by one that never had any, or by one of which no lease
is held. Absent: finding changes, which `compatibility` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

Verdict = Literal["compatible", "needs migration", "incompatible"]
LiftedBy = Literal["", "no rows", "no rows ever", "no work under way"]

COMPATIBLE: Verdict = "compatible"
MIGRATION: Verdict = "needs migration"
INCOMPATIBLE: Verdict = "incompatible"


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change from the deployed contract to another. `kind` is its rule, `reason` why it has its class; `member` the
    part of the declaration that it is about, empty for the whole; `entity` the one whose rows or leases may lift it."""

    verdict: Verdict = msgspec.field(name="class")
    kind: str
    family: str
    declaration: str
    what: str
    reason: str
    member: str = ""
    entity: str = ""

    def lifted(self, reason: str) -> "Change":
        """The same change where nothing stands against it."""
        return msgspec.structs.replace(self, verdict=COMPATIBLE, what=f"{self.what}; {reason}")


class Deployment(msgspec.Struct, frozen=True):
    """What a deployment did: `created`, `updated` or `unchanged`, and the changes that it made."""

    outcome: str
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of change: its class, what it is, and why it has this class."""

    verdict: Verdict
    words: str
    reason: str
    lifted_by: LiftedBy = ""


def change(kind: str, family: str, declaration: str, what: str, member: str = "", entity: str = "") -> Change:
    """A change of that kind, with the class that the table gives it."""
    rule = RULES[kind]
    return Change(rule.verdict, kind, family, declaration, what, rule.reason, member, entity)


def change_json(found: Change) -> dict[str, str]:
    """A change as it is told over the wire."""
    facts: dict[str, str] = msgspec.to_builtins(found)
    return facts


def change_of(told: object) -> Change:
    """The change that `change_json` told; `msgspec.ValidationError` for anything else."""
    return msgspec.convert(told, Change)


_KEEP = "rows keep what they have"
_ANSWERS = "answers that are stored stay as they were given"
_NEW_CALLS = "calls that do not fit are refused and do nothing"
_RETRY = "what was sent before could not be settled by sending it again"
_READ_ANEW = "stored values would be read as something else"
_GRANT = "authority is looked up at each call"
_CONSUMERS = "events that are stored lack it, and the log is never rewritten"

RULES: Mapping[str, Rule] = {
    "contract-other": Rule(INCOMPATIBLE, "another application or contract", "a database belongs to one application"),
    # --- enums and records ---
    "enum-added": Rule(COMPATIBLE, "a new enum", "nothing has its type yet"),
    "enum-removed": Rule(COMPATIBLE, "an enum less", "whatever had its type is judged by itself"),
    "variant-appended": Rule(
        COMPATIBLE, "a variant at the end of an enum", "the variants before it keep their numbers"
    ),
    "variant-changed": Rule(INCOMPATIBLE, "a variant removed, renamed or in another place", _READ_ANEW),
    "record-added": Rule(COMPATIBLE, "a new record", "nothing has its type yet"),
    "record-removed": Rule(COMPATIBLE, "a record less", "whatever had its type is judged by itself"),
    "record-field-added": Rule(COMPATIBLE, "an optional field more in a record", "null is left out of a stored input"),
    "record-field-required": Rule(INCOMPATIBLE, "a field more in a record that is not optional", _RETRY),
    "record-field-removed": Rule(INCOMPATIBLE, "a field less in a record", _RETRY),
    "record-field-widened": Rule(
        COMPATIBLE, "a wider type of a record's field", "each old value is one of the new type"
    ),
    "record-field-retyped": Rule(INCOMPATIBLE, "another type of a record's field", _RETRY),
    # --- entities ---
    "entity-added": Rule(COMPATIBLE, "a new entity", "it has no rows"),
    "entity-removed": Rule(MIGRATION, "an entity less", "its rows are thrown away only where that is said"),
    "table-moved": Rule(INCOMPATIBLE, "a name that takes the table or column of another", _READ_ANEW),
    "key-changed": Rule(INCOMPATIBLE, "other components of a key", "rows, partitions and request keys are found by it"),
    "key-widened": Rule(COMPATIBLE, "a wider type of a key component", "each old value is one of the new type"),
    "partition-changed": Rule(INCOMPATIBLE, "another partition", "commits and request keys belong to a partition"),
    "field-added": Rule(COMPATIBLE, "a field that is optional or has a default", "older rows read null or the default"),
    "field-required": Rule(MIGRATION, "a field that is neither", "older rows have no value for it", "no rows"),
    "field-removed": Rule(MIGRATION, "a field less", "its values are thrown away only where that is said"),
    "field-renamed": Rule(MIGRATION, "a field with `was` and its former name", "its values move to another column"),
    "field-widened": Rule(COMPATIBLE, "a wider type of a field", "each old value is one of the new type"),
    "field-nullable": Rule(MIGRATION, "a field that becomes optional", "its column is laid out without null"),
    "field-retyped": Rule(INCOMPATIBLE, "a field of a narrower or another type", "stored values may not fit it"),
    "field-default": Rule(COMPATIBLE, "a default more, less or another", f"it is for creates; {_KEEP}"),
    "field-secret": Rule(COMPATIBLE, "a field that becomes secret", "it is hidden from now on; the log stays as it is"),
    "field-revealed": Rule(
        INCOMPATIBLE, "a field that is secret no more", "values that were given as secrets would show"
    ),
    "field-moved": Rule(COMPATIBLE, "fields in another order", "columns are found by their names"),
    "computed-added": Rule(MIGRATION, "a new computed field", "older rows have no value for it", "no rows"),
    "computed-changed": Rule(MIGRATION, "another expression of a computed field", "rows hold the old value", "no rows"),
    "computed-retyped": Rule(MIGRATION, "another type of a computed field", "rows hold values of the old type"),
    "computed-removed": Rule(MIGRATION, "a computed field less", "the column stands in every row"),
    "index-added": Rule(MIGRATION, "a new index", "older rows have no entry in it", "no rows"),
    "index-changed": Rule(MIGRATION, "other columns of an index", "its entries are in another order", "no rows"),
    "index-removed": Rule(COMPATIBLE, "an index less", _KEEP),
    "unique-added": Rule(MIGRATION, "a new unique", "older rows were not held to it", "no rows"),
    "unique-changed": Rule(MIGRATION, "other columns of a unique", "older rows were not held to it", "no rows"),
    "unique-removed": Rule(COMPATIBLE, "a unique less", _KEEP),
    "reference-added": Rule(MIGRATION, "a new reference", "older rows were not held to it", "no rows"),
    "reference-changed": Rule(MIGRATION, "another reference of a name", "older rows were not held to it", "no rows"),
    "reference-removed": Rule(COMPATIBLE, "a reference less", _KEEP),
    "invariant-added": Rule(MIGRATION, "a new invariant", "older rows were not held to it", "no rows"),
    "invariant-changed": Rule(MIGRATION, "another invariant of a name", "older rows were not held to it", "no rows"),
    "invariant-removed": Rule(COMPATIBLE, "an invariant less", _KEEP),
    # --- events ---
    "event-added": Rule(COMPATIBLE, "a new event", "nothing was emitted as it"),
    "event-removed": Rule(COMPATIBLE, "an event less", "what was emitted stays in the log"),
    "event-partition": Rule(INCOMPATIBLE, "another partition of an event", "what was emitted lies in the old one"),
    "event-field-added": Rule(COMPATIBLE, "an optional field more in an event", "older events read null"),
    "event-field-required": Rule(INCOMPATIBLE, "a field more in an event that is not optional", _CONSUMERS),
    "event-field-removed": Rule(COMPATIBLE, "a field less in an event", "what was emitted stays in the log"),
    "event-field-widened": Rule(
        COMPATIBLE, "a wider type of an event's field", "each old value is one of the new type"
    ),
    "event-field-retyped": Rule(INCOMPATIBLE, "another type of an event's field", _READ_ANEW),
    # --- workflows ---
    "workflow-added": Rule(COMPATIBLE, "a new workflow", "any variant of the enum is a state"),
    "workflow-removed": Rule(COMPATIBLE, "a workflow less", _KEEP),
    "workflow-state": Rule(COMPATIBLE, "another entity, state field or initial state", "any variant is a state"),
    "transition-added": Rule(COMPATIBLE, "a new transition", _KEEP),
    "transition-removed": Rule(COMPATIBLE, "a transition less", _KEEP),
    "transition-changed": Rule(COMPATIBLE, "other sources or another end of a transition", _KEEP),
    "lease-laid": Rule(
        MIGRATION,
        "a lease on fields that others wrote",
        "their values are no lease, and a row that comes again could get a token that an earlier lease gave out",
        "no rows ever",
    ),
    "lease-bounds": Rule(COMPATIBLE, "other bounds of a lease", "what is held keeps its expiry"),
    "lease-renamed": Rule(COMPATIBLE, "another name of a lease, or no count of attempts", _KEEP),
    "lease-removed": Rule(COMPATIBLE, "a lease less", _KEEP),
    # --- commands ---
    "command-added": Rule(COMPATIBLE, "a new command", "nothing was sent to it"),
    "command-removed": Rule(COMPATIBLE, "a command less", f"{_NEW_CALLS}; what is stored under its keys stays"),
    "command-does": Rule(COMPATIBLE, "other checks or effects", _ANSWERS),
    "command-kind": Rule(COMPATIBLE, "`bulk` or `reimport` more or less", _ANSWERS),
    "command-key": Rule(INCOMPATIBLE, "another idempotency key, or none", "what was sent before could be done twice"),
    "command-keyed": Rule(COMPATIBLE, "an idempotency key for the first time", "nothing was stored before"),
    "command-partition": Rule(
        INCOMPATIBLE, "another input for the partition", "what was sent before could be done twice"
    ),
    "command-unrecorded": Rule(
        COMPATIBLE, "inputs or payloads of a command without a key", f"nothing is stored of it; {_NEW_CALLS}"
    ),
    "input-added": Rule(
        COMPATIBLE, "an input that is optional or has a default", "left out, it is no part of a stored input"
    ),
    "input-required": Rule(INCOMPATIBLE, "an input that is neither", _RETRY),
    "input-removed": Rule(INCOMPATIBLE, "an input less", _RETRY),
    "input-widened": Rule(COMPATIBLE, "a wider type of an input", "each old value is one of the new type"),
    "input-retyped": Rule(INCOMPATIBLE, "a narrower or another type of an input", _RETRY),
    "input-default": Rule(
        INCOMPATIBLE, "a default more, less or another", f"it is left out of a stored input, so {_RETRY}"
    ),
    "input-secret": Rule(COMPATIBLE, "an input that becomes secret or is no more", "what is recorded stays as it is"),
    "outcome-added": Rule(COMPATIBLE, "a new outcome", _ANSWERS),
    "outcome-removed": Rule(COMPATIBLE, "an outcome less", _ANSWERS),
    "outcome-turned": Rule(
        INCOMPATIBLE, "a success that becomes a failure, or back", "stored answers would mean the other"
    ),
    "outcome-evidence": Rule(
        COMPATIBLE, "a failure that speaks of the caller's evidence, or no more", "neither had an effect"
    ),
    "payload-added": Rule(COMPATIBLE, "a value more in a payload", f"{_ANSWERS}, without it"),
    "payload-removed": Rule(
        INCOMPATIBLE, "a value less in a payload", "callers read it; a new outcome may leave it out"
    ),
    "payload-widened": Rule(COMPATIBLE, "a wider type of a payload value", "each old value is one of the new type"),
    "payload-retyped": Rule(INCOMPATIBLE, "another type of a payload value", _READ_ANEW),
    # --- queries, streams, roles, schedules ---
    "query-added": Rule(COMPATIBLE, "a new query over indexes that exist", _KEEP),
    "query-removed": Rule(COMPATIBLE, "a query less", _NEW_CALLS),
    "query-changed": Rule(COMPATIBLE, "another query of a name", "nothing is stored of it"),
    "stream-added": Rule(COMPATIBLE, "a new stream", "it has no consumers"),
    "stream-removed": Rule(COMPATIBLE, "a stream less", _NEW_CALLS),
    "stream-changed": Rule(
        COMPATIBLE, "other events, fields or conditions of a stream", "deliveries to come follow them"
    ),
    "stream-params": Rule(INCOMPATIBLE, "other parameters of a stream", "its consumers are named by them"),
    "role-added": Rule(COMPATIBLE, "a new role", _GRANT),
    "role-removed": Rule(COMPATIBLE, "a role less", f"{_GRANT}; whoever holds it may do nothing"),
    "grant-added": Rule(COMPATIBLE, "a name more in a role", _GRANT),
    "grant-removed": Rule(COMPATIBLE, "a name less in a role", _GRANT),
    "schedule-added": Rule(COMPATIBLE, "a new schedule", "nothing was done for it"),
    "schedule-removed": Rule(COMPATIBLE, "a schedule less", "workers of it are told"),
    "schedule-changed": Rule(
        COMPATIBLE, "another claim, renewal, release or failure command", "attempts carry their own keys"
    ),
    "schedule-source": Rule(
        MIGRATION,
        "another source, due time or business command, or another declaration of the source",
        "attempts are named after it, so what is under way could be done twice",
        "no work under way",
    ),
    # --- all ---
    "written-otherwise": Rule(COMPATIBLE, "another form of what means the same", _KEEP),
}
"""Every kind of change, in the order of the families."""
