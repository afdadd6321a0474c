"""The words of the language: the ten that are reserved, every other keyword, the shapes that statements begin with.

Only a reserved word is never a name. A shape says which tokens follow a keyword when it begins a declaration or a
statement; recovery and the search for a missing name rest on shapes, the parse of valid text never does.
Absent: the grammar itself, which is the code of the parsers.
"""

from collections.abc import Iterable

RESERVED = frozenset(("true", "false", "null", "if", "then", "else", "is", "in", "not", "tx"))

OPERANDS = frozenset(("owner", "fencing_token", "duration_seconds", "revision"))
LEASE_OUTCOMES = frozenset(("stale", "unavailable", "invalid", "exhausted", "expired", "active"))
TRANSITION_OUTCOMES = frozenset(("stale", "illegal"))
CLAUSES = OPERANDS | LEASE_OUTCOMES | TRANSITION_OUTCOMES
LEASE_OPERATIONS = ("claim", "renew", "release", "expire", "fence", "unheld")

_NAMED = (("NAME", "{"),)
_KEYED = (("NAME", "("), ("NAME", ".", "NAME", "("))
_TYPED = (("NAME", ":"),)
_COMPARED = tuple(
    ("NAME", *rest)
    for rest in (
        *((operator,) for operator in ("==", "!=", "<", "<=", ">", ">=", "is", "in", "not", "(")),
        (".", "NAME"),
    )
)

# The tokens after a word that make it the beginning of a declaration, whatever stands around it.
DECLARATIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "contract": (("NAME", "version", "INT"), ("version", "INT")),
    "enum": _NAMED,
    "record": _NAMED,
    "entity": _NAMED,
    "event": _NAMED,
    "workflow": _NAMED,
    "command": _NAMED,
    "bulk": (("command", "NAME", "{"),),
    "reimport": (("command", "NAME", "{"),),
    "query": (("NAME", "("),),
    "stream": (("NAME", "("),),
    "role": _NAMED,
    "schedule": _NAMED,
}

# The same for members, statements and clauses, each only where its block allows the word.
SHAPES: dict[str, tuple[tuple[str, ...], ...]] = {
    "key": (("(",),),
    "partition_by": (("(",),),
    "field": (*_TYPED, ("secret", "NAME", ":")),
    "computed": _TYPED,
    "index": (("NAME", "("),),
    "unique": (("NAME", "("),),
    "reference": (("NAME", "("),),
    "invariant": _TYPED,
    "transition": (("NAME", "on"), ("NAME", "from")),
    "lease": (("NAME", "NAME", "on"), ("NAME", "{")),
    "input": (*_TYPED, ("secret", "NAME", ":"), ("key", "of")),
    "service": _TYPED,
    "read": _KEYED,
    "mutate": _KEYED,
    "delete": _KEYED,
    "maybe": (*_KEYED, ("NAME", "from", "NAME", "where")),
    "create": (("NAME", "("),),
    "init_or_mutate": (("NAME", "("),),
    "require": _TYPED,
    "set": (("NAME", ".", "NAME", "="),),
    "emit": _NAMED,
    "decide": _NAMED,
    "return": _NAMED,
    "for": (("NAME", "in"),),
    "when": (*_COMPARED, ("(",), ("!",)),
    "otherwise": (("apply", "{"), ("none", "NAME", "{")),
    "reconstitute": (("NAME", "from"),),
    "one": (("NAME", "from", "NAME", "where"),),
    "many": (("NAME", "from", "NAME", "where"),),
    "count": (("NAME", "from", "NAME", "where"),),
    "sum": (("NAME", "of", "NAME", "from"),),
    "min": (("NAME", "of", "NAME", "from"),),
    "max": (("NAME", "of", "NAME", "from"),),
    "partition": (("NAME", "=="),),
    "from": (("query", "NAME"), ("stream", "NAME")),
}

BEGINNINGS = DECLARATIONS.keys() | SHAPES.keys()

WORDS = frozenset(
    (
        *BEGINNINGS,
        *CLAUSES,
        *LEASE_OPERATIONS,
        *("version", "secret", "was", "asc", "desc", "state", "initial", "to", "expires_at", "attempts", "of"),
        *("uuid_v7", "idempotency_key", "as", "initialize", "conflict", "violates", "on", "apply", "none"),
        *("where", "order", "by", "take", "after", "before", "reveals", "each", "due", "run", "fail"),
    )
)

# The keywords that can stand behind a name or an expression within one declaration or statement.
CONTINUATIONS = CLAUSES | frozenset(
    (
        *("version", "was", "asc", "desc", "from", "to", "of", "as", "initialize", "conflict", "violates", "on"),
        *("apply", "none", "where", "order", "by", "take", "after", "before", "reveals", "each", "event"),
    )
)

# How a declaration or statement is written: the remedy that goes with its syntax errors.
FORMS: dict[str, str] = {
    "contract": "contract NAME version 1 { … }",
    "enum": "enum NAME { VARIANT, VARIANT }",
    "record": "record NAME { NAME: TYPE, … }",
    "entity": "entity NAME { key (NAME: TYPE, …) field NAME: TYPE … }",
    "event": "event NAME { partition_by (FIELD) FIELD: TYPE … }",
    "workflow": "workflow NAME { entity ENTITY state FIELD initial VARIANT transition … lease … }",
    "command": "command NAME { input … idempotency_key INPUT … return OUTCOME { … } }",
    "bulk": "bulk command NAME { input … idempotency_key INPUT … for ITEM in INPUT { … } return OUTCOME { … } }",
    "reimport": "reimport command NAME { input … reconstitute ENTITY from INPUT else OUTCOME {} return OUTCOME {} }",
    "query": "query NAME($PARAMETER: TYPE, …) { many NAME from ENTITY … return OUTCOME { … } }",
    "stream": "stream NAME($PARAMETER: TYPE) { partition FIELD == $PARAMETER event EVENT { FIELD … } }",
    "role": "role NAME { query NAME, NAME command NAME, NAME }",
    "schedule": "schedule NAME { from query QUERY each ROWS due FIELD claim COMMAND run COMMAND release COMMAND }",
    "key": "key (NAME: TYPE, …)",
    "partition_by": "partition_by (FIELD)",
    "field": "field NAME: TYPE = DEFAULT",
    "computed": "computed NAME: TYPE = EXPRESSION",
    "index": "index NAME (FIELD, FIELD desc)",
    "unique": "unique NAME (FIELD, …)",
    "reference": "reference NAME (FIELD, …) -> ENTITY (FIELD, …)",
    "invariant": "invariant NAME: CONDITION",
    "input": "input NAME: TYPE",
    "service": "service NAME: uuid_v7",
    "idempotency_key": "idempotency_key INPUT",
    "read": "read ENTITY(KEY, …) as NAME else OUTCOME {}",
    "mutate": "mutate ENTITY(KEY, …) as NAME else OUTCOME {}",
    "delete": "delete ENTITY(KEY, …) as NAME else OUTCOME {}",
    "create": "create ENTITY(KEY, …) as NAME else OUTCOME {}",
    "init_or_mutate": "init_or_mutate ENTITY(KEY, …) as NAME initialize { FIELD: VALUE, … }",
    "require": "require NAME: CONDITION else OUTCOME {}",
    "set": "set BINDING.FIELD = EXPRESSION",
    "emit": "emit EVENT { FIELD: VALUE, … }",
    "decide": "decide BINDING { when CONDITION apply { … } otherwise none OUTCOME {} }",
    "when": "when CONDITION apply { … }, or when CONDITION none OUTCOME {}",
    "otherwise": "otherwise apply { … }, or otherwise none OUTCOME {}",
    "return": "return OUTCOME { NAME: VALUE, … }",
    "for": "for ITEM in INPUT { … }",
    "reconstitute": "reconstitute ENTITY from INPUT else OUTCOME {}",
    "one": "one NAME from ENTITY where CONDITION else OUTCOME {}",
    "many": "many NAME from ENTITY where CONDITION order by FIELD take 32",
    "count": "count NAME from ENTITY where CONDITION take 1000",
    "sum": "sum NAME of FIELD from ENTITY where CONDITION take 1000",
    "min": "min NAME of FIELD from ENTITY where CONDITION take 1000",
    "max": "max NAME of FIELD from ENTITY where CONDITION take 1000",
    "partition": "partition FIELD == $PARAMETER",
    "transition": "transition TRANSITION on BINDING revision INPUT stale OUTCOME {} illegal OUTCOME {}",
    "lease": "lease claim LEASE on BINDING owner INPUT … revision INPUT stale OUTCOME {} …",
    "duration_seconds": "duration_seconds (5, 900)",
}

# How a clause is written that a declaration must have.
CLAUSE_FORMS: dict[str, str] = {
    "entity": "entity ENTITY",
    "initial": "initial VARIANT",
    "from": "from query QUERY each ROWS",
    "where": "where CONDITION",
    "order": "order by FIELD",
    "take": "take 32",
    "else": "else OUTCOME {}",
    **{
        word: f"{word} FIELD"
        for word in ("state", "due", "owner", "expires_at", "fencing_token", "attempts", "revision")
    },
    **{word: f"{word} COMMAND" for word in ("claim", "renew", "run", "release", "fail")},
    **{word: FORMS[word] for word in ("return", "for", "reconstitute", "partition", "duration_seconds")},
}


def _distance(left: str, right: str) -> int:
    """Edits between two words; two neighbours that changed places are one edit."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, character in enumerate(left, 1):
        earlier, before, row = before, row, [i]
        for j, other in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (character != other))
            if i > 1 and j > 1 and character == right[j - 2] and left[i - 2] == other:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


def meant(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` is most surely a misspelling of, if one is near enough and no other is as near."""
    lowered = word.lower()
    allowed = 0 if len(word) <= 2 else 1 if len(word) <= 5 else 2
    near = sorted(
        (_distance(lowered, candidate), candidate)
        for candidate in candidates
        if abs(len(candidate) - len(word)) <= allowed
    )
    if not near or near[0][0] > allowed or (len(near) > 1 and near[1][0] == near[0][0]):
        return None
    return near[0][1]
