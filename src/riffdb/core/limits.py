"""Named limits with their defaults, in one place.

Each has one meaning and one error; what is over a limit is refused, never cut.
"""

SOURCE_BYTES_MAX = 1 << 20
NESTING_MAX = 32
EXPRESSION_OPERATORS_MAX = 128
OPTIONS_MAX = 1_000
"""Values of one `in (…)`."""
ENTITY_MEMBERS_MAX = 1_000
COMMAND_INPUTS_MAX = 1_000
COMMAND_STATEMENTS_MAX = 1_000
COMMAND_BINDINGS_MAX = 256
DECIDE_ARMS_MAX = 128
DIAGNOSTICS_MAX = 100
IDENTIFIER_BYTES_MAX = 60
TEXT_BYTES_MAX = 65_536
LIST_ITEMS_MAX = 256
WORKFLOW_REVISIONS_MAX = 256
KEY_BYTES_MAX = 1_024
LEASE_SECONDS_MAX = 86_400
QUERY_ROWS_MAX = 1_000
QUERY_RANGES_MAX = 16
"""Ranges of an index that one binding of a query merges."""
QUERY_ENTRIES_MAX = 10_000
"""Entries that a binding with a residual condition reads."""
CURSOR_TEXT_MAX = 4_096
"""Characters of a cursor: it holds at most the columns of one index."""
AGGREGATE_ENTRIES_MAX = 100_000
"""Entries that an aggregate reads."""
HEAD_BYTES_MAX = 1 << 16
BODY_BYTES_MAX = 1 << 20
BODY_DRAIN_BYTES_MAX = 64 << 20
BODY_WAIT_SECONDS_MAX = 60
WAIT_SECONDS_MAX = 30
"""How long a call may wait for something to be committed."""
DELIVERIES_MAX = 8
"""Deliveries that one call gives."""
DELIVERY_SECONDS_MIN = 5
DELIVERY_SECONDS_MAX = 900
NACK_DELAY_SECONDS_MAX = 3_600
DELIVERY_ATTEMPTS_MAX = 10
"""Attempts after which an event is a dead letter."""
CONSUMERS_MAX = 1_000
"""Consumers of one partition."""
CONSUMER_NAME_BYTES_MAX = 128
UNSETTLED_MAX = 10_000
"""Deliveries of one consumer that are neither settled nor dead letters."""
EVENT_RECORDS_MAX = 10_000
"""Commit records that one look for events reads."""
WATCHES_MAX = 2_000
HEARTBEAT_SECONDS = 15
"""How long a watch is silent at most."""
WATCH_RING_CHANGES_MAX = 64
WATCH_RING_BYTES_MAX = 1 << 20
WATCH_KEEP_SECONDS = 60
"""How long the changes of a query are kept for those whose watch broke."""
WATCH_GROUPS_KEPT_MAX = 1_000
KEYS_SECONDS = 30 * 86_400
"""How long request keys are remembered, unless an operator sets it."""
KEYS_SECONDS_MIN = 3_600
KEYS_SECONDS_MAX = 3_650 * 86_400
LOG_ENTRIES_MAX = 1_000
"""Commits that one look at the log shows."""
PLAN_BYTES_MAX = 16 << 20
PLAN_DEPTH_MAX = 256
CAPABILITY_SECONDS_MAX = 315_360_000
PRINCIPAL_BYTES_MAX = 256
CAPABILITIES_DERIVED_MAX = 1_000
"""Living capabilities that were derived from one that grants a role, over all generations."""
CAPABILITY_GENERATIONS_MAX = 8
"""How often may be derived from what was derived."""
CONNECTIONS_MAX = 4_096
JSON_DEPTH_MAX = 64
BATCH_STEPS_MAX = 256
"""Steps of one request to `/v1/batch`."""
BATCH_BODY_BYTES_MAX = 4 << 20
TIMEOUT_MS_MAX = 86_400_000
"""The longest time that a caller may give a request."""
BATCH_COMMANDS_MAX = 256
BATCH_BYTES_MAX = 4 << 20
QUEUE_COMMANDS_MAX = 4_096
U64_MAX = (1 << 64) - 1
I64_MIN = -(1 << 63)
I64_MAX = (1 << 63) - 1
TIMESTAMP_MIN = -62_135_596_800_000_000
TIMESTAMP_MAX = 253_402_300_799_999_999
