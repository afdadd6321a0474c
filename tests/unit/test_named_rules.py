"""Every rule that the language names has a case that breaks it, and the case shows the code of that rule.

A unit test, since it looks at the cases as a whole: a rule that is added stands here with its case, and a case that is
taken away leaves its rule behind.
"""

import re
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "cases" / "diagnostics"
RULES = """
-- names and text
a file is at most 1 MiB | RDB-C002-file-too-large
a clause stands exactly once | RDB-C013-clause-twice
a clause that an operation needs stands | RDB-C014-clauses-missing
nesting is at most 32 | RDB-C010-nested-too-deeply
a name has at most 60 bytes | RDB-C008-name-too-long
names of one scope differ beyond case | RDB-C103-name-twice
ten words are reserved | RDB-C007-reserved-word
no field is called `revision` | RDB-C305-field-revision
a binding may not have an enum's name | RDB-C516-binding-named-as-enum
names collide in a target language | RDB-C106-one-name
an escape of a string is one of five | RDB-C005-unknown-escape
-- types and expressions
a string or list has a bound in its range | RDB-C203-bound-out-of-range
a limit is a query parameter only | RDB-C204-type-out-of-place
a record is an item of a list input only | RDB-C204-record-that-is-no-item
a literal that does not fit its place | RDB-C210-literal-does-not-fit
no value changes its type by itself | RDB-C208-other-type
all but equality needs a value that is not null | RDB-C209-may-be-null
there is no clock but tx.time, and no key rests on it | RDB-C214-time-not-known
comparisons do not chain | RDB-C020-chained-comparison
-- entities
an entity has a key | RDB-C301-no-key
a key is of scalar fields that are not optional | RDB-C303-key-type
the partition is a component of the key | RDB-C304-partition-outside-key
a key is at most 1,024 bytes | RDB-C309-key-too-large
an index begins with the partition | RDB-C307-index-without-partition
a secret stands in no payload, event or index | RDB-C217-secret-shown
a secret is set from secret inputs only | RDB-C217-secrets-where-they-would-be-seen
a computed field is never set | RDB-C510-computed-is-set
a revision is never set | RDB-C511-revision-is-set
a key never changes | RDB-C509-key-is-set
a reference leads to a key or a unique | RDB-C322-target
a reference and its target are of the same types | RDB-C321-types
a rule that may break has an outcome | RDB-C540-no-outcome
a clause that cannot happen is a warning | RDB-C915-needless-clause
a row is deletable where references are indexed | RDB-C544-no-index
-- workflows
the state field is an enum | RDB-C402-state-no-enum
the state field is no key | RDB-C403-state-in-key
initial is a variant | RDB-C404-initial-no-variant
a source is a variant | RDB-C405-source-no-variant
a destination is a variant | RDB-C406-destination-no-variant
a transition is declared once | RDB-C407-transition-twice
a lease's owner is optional<uuid> | RDB-C408-owner-type
a lease's expiry is optional<timestamp> | RDB-C409-expiry-type
a lease's fence is u64 | RDB-C410-token-type
a lease's attempts are u64 | RDB-C411-attempts-type
lease fields do not overlap each other | RDB-C412-lease-fields-overlap
lease fields do not overlap the key | RDB-C412-lease-field-is-key
lease fields do not overlap the state | RDB-C412-lease-field-is-state
duration bounds are not zero | RDB-C413-duration-zero
duration bounds are not reversed | RDB-C414-duration-reversed
duration bounds are not over 86,400 | RDB-C415-duration-over-a-day
an entity has one workflow | RDB-C416-second-workflow
a state field is never set | RDB-C417-state-is-set
a lease field is never set | RDB-C418-lease-field-is-set
fence and attempts of a created row are both set | RDB-C419-create-without-counters
and to the literal 0 | RDB-C420-counter-not-zero
a create needs the workflow's initial | RDB-C421-create-without-initial
a leased entity is not init_or_mutate | RDB-C422-init-or-mutate-leased
a lease operand is a direct input | RDB-C423-evidence-not-an-input
item.f of a bulk element counts as one | RDB-C423-evidence-of-an-item
a lease operand is of the right type | RDB-C424-evidence-type
nothing is substituted for a lease operand | RDB-C425-evidence-with-default
a command that mutates a leased row has a lease operation | RDB-C426-around-the-lease
also one that deletes it | RDB-C426-delete-around-the-lease
also inside a loop | RDB-C426-leased-row-in-a-loop
also in every apply arm, an empty one too | RDB-C427-arm-around-the-lease
there are no two lease operations on one path | RDB-C428-two-lease-operations
also not at the top and in an arm | RDB-C428-two-in-an-arm
a transition or lease operation is on mutate or delete | RDB-C429-not-bound-to-change
-- commands
a key is known before anything is changed | RDB-C522-key-rests-on-an-effect
a command is confined to one partition | RDB-C504-two-partitions
derived from its inputs alone | RDB-C505-partition-from-a-row
two bindings of one row, where visible | RDB-C515-one-row-twice
an idempotency key is string<N> or uuid | RDB-C502-idempotency-key
it is required where anything is mutated or emitted | RDB-C501-no-idempotency-key
a create sets every field that it must | RDB-C507-create-incomplete
also when it initializes | RDB-C507-initialized
an outcome is success or failure, never both | RDB-C512-success-and-failure
an outcome has one payload shape | RDB-C513-two-payloads
at most 256 rows of workflows are mutated | RDB-C554-too-many-revisions
no decide stands in an arm | RDB-C521-decide-in-an-arm
the last arm is otherwise | RDB-C519-no-otherwise
no arm stands behind it | RDB-C520-after-otherwise
an arm touches no other leased row without its operation | RDB-C437-arm-touches-another
a loop runs over a list input | RDB-C550-loop-over-no-list
a reimport puts back a row of its entity | RDB-C560-restored
an operator alone reimports | RDB-C712-restoring-role
an event's partition is a field of it | RDB-C310-event-partition-unknown
-- queries, streams, roles
a query is confined to one partition | RDB-C612-two-partitions
an index answers each binding | RDB-C620-no-index
functions in where apply to parameters and tx.time | RDB-C622-function-of-a-field
take is at most 1,000 | RDB-C603-take-too-many
a query shows no secret that it does not reveal | RDB-C632-secret-selected
a stream is of one partition | RDB-C701-event-of-another-partition
a role lists each name once | RDB-C710-name-twice-in-a-role
a role lists what there is | RDB-C711-name-of-another-kind
-- schedules
a schedule's query excludes held leases | RDB-C840-query-selects-what-is-held
no residual condition in a schedule's query | RDB-C841-condition-beside-the-range
a resolved item does not stay selected | RDB-C842-what-is-done-stays-selected
claim is a claim | RDB-C800-claim-is-no-claim
renew is a renewal | RDB-C801-renew-is-no-renewal
release is a release | RDB-C802-release-is-no-release
run's first binding is the leased row | RDB-C804-run-begins-elsewhere
run's lease operation is a fence or release at the top | RDB-C805-run-proves-no-lease
it stands before any other else and any require | RDB-C806-run-can-refuse-before
fail releases the lease on every path | RDB-C807-fail-keeps-the-lease
also in each arm | RDB-C807-fail-keeps-the-lease-in-one-arm
the items show their key | RDB-C822-items-without-key
the items show their due time | RDB-C823-items-without-due
the items show their revision | RDB-C825-items-without-revision
a claim's success shows the row | RDB-C814-claim-without-row
a stale payload from a stream shows the revision | RDB-C815-stale-without-revision
an unavailable payload shows the expiry | RDB-C816-unavailable-without-expiry
an idempotency input holds 70 bytes | RDB-C808-idempotency-key-too-short
key fields are uuid, u64 or string | RDB-C809-key-of-another-type
policy seconds are within the lease's bounds | RDB-C881-policy-outside-the-lease
an evidence outcome has no other use in a schedule | RDB-C817-one-outcome-for-two-failures
"""
NAMED = [tuple(part.strip() for part in line.split("|")) for line in RULES.splitlines() if "|" in line]


@pytest.mark.parametrize(("rule", "case"), NAMED, ids=[case for _, case in NAMED])
def test_a_rule_of_the_language_has_its_case(rule: str, case: str) -> None:
    code = re.match(r"RDB-C\d+", case)
    shown = CASES / case / "expected" / "check.txt"
    assert code is not None and shown.is_file(), rule
    assert f"[{code.group()}]" in shown.read_text("utf-8"), rule


def test_there_are_as_many_codes_as_were_promised() -> None:
    codes = {folder.name[:8] for folder in CASES.iterdir() if folder.name.startswith("RDB-C")}
    assert len(codes) >= 90
