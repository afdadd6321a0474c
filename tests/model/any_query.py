"""Queries nobody wrote: conditions, orders and kinds put together at random, over indexes that the compiler asks for.

Each is a text, so that it goes the whole way; the indexes that it lacks are added by the fixes of the diagnostics, as
somebody who takes every advice would. What cannot be answered by any index is no query here.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from riffdb.compiler import compile
from riffdb.core.repair import repair
from riffdb.core.spans import Source
from riffdb.plan import Plan
from tests.model.boards import BOARDS

NOW = 1_800_000_000_000_000
_NUMBERS = st.integers(-2, 6)
_TIMES = _NUMBERS.map(lambda number: NOW + number * 1_000_000)
_STAGES = st.integers(0, 3)

HELD: dict[str, tuple[str, list[str], st.SearchStrategy[Any], bool]] = {
    "stage": ("Stage", ["Stage.New", "Stage.Held", "Stage.Done"], _STAGES, False),
    "hue": ("Stage", ["Stage.New", "Stage.Active"], _STAGES, True),
    "owner": ("uuid", [], st.sampled_from([b"o" * 16, b"p" * 16]), True),
    "label": ("string<16>", ['"a"', '""', '"é"'], st.sampled_from(["", "a", "ab", "é"]), True),
    "open": ("bool", ["true", "false"], st.booleans(), False),
}
"""Columns that are held equal: type, constants, values, and whether null may stand there."""

RANGED: dict[str, tuple[str, list[str], st.SearchStrategy[Any]]] = {
    "due": ("timestamp", ["tx.time", "tx.time - seconds(1)"], _TIMES),
    "late": ("timestamp", ["tx.time"], _TIMES),
    "size": ("i64", ["-1", "0", "3"], _NUMBERS),
    "weight": ("u64", ["0", "4"], _NUMBERS.map(abs)),
    "day": ("date", [], _NUMBERS),
}
RESIDUAL = (
    "weight != 3",
    "(open || size > 1)",
    "stage not in (Stage.Held, Stage.Active)",
    "(hue is null || day == day)",
)
ORDERED = ("due", "size", "weight", "day", "label", "hue", "stage", "owner", "price", "id")


@dataclass
class Query:
    """The text of a query named `Any`, and where the values of its parameters come from, `board` and `limit` aside."""

    text: str
    values: dict[str, st.SearchStrategy[Any]] = field(default_factory=dict)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Any query of one binding over `Card`."""
    values: dict[str, st.SearchStrategy[Any]] = {}
    params = ["$board: uuid", "$limit: limit<20> = 7"]
    parts = ["board == $board"]

    def param(name: str, kind: str, strategy: st.SearchStrategy[Any]) -> str:
        params.append(f"${name}: {kind}")
        values[name] = strategy
        return f"${name}"

    held = draw(st.lists(st.sampled_from(sorted(HELD)), max_size=2, unique=True))
    for name in held:
        parts.append(_held(draw, name, param))
    ranged = draw(st.none() | st.sampled_from(sorted(RANGED)))
    if ranged is not None:
        parts += _ranged(draw, ranged, param)
    columns = draw(st.lists(st.sampled_from(ORDERED), min_size=1, max_size=2, unique=True))
    columns = list(dict.fromkeys(columns if ranged is None else [ranged, *columns]))
    where = " && ".join(parts)
    fold = draw(st.sampled_from(["", "", "", "", "count", "count by", "sum", "min", "max"]))
    if fold:
        text = _aggregate(draw, fold, where)
    else:
        parts += [draw(st.sampled_from(RESIDUAL))] if draw(st.integers(0, 3)) == 0 else []
        order = ", ".join(f"{name}{' desc' * draw(st.booleans())}" for name in columns)
        way = draw(st.sampled_from(["after", "before"]))
        params.append("$cursor: optional<cursor>")
        text = f"many xs from Card where {' && '.join(parts)} order by {order} take $limit {way} $cursor\n"
        text += "  return Answer { xs: xs, next: xs.next }"
    return Query(f"query Any({', '.join(params)}) {{\n  {text}\n}}\n", values)


def _held(draw: st.DrawFn, name: str, param: Any) -> str:
    kind, constants, strategy, is_optional = HELD[name]
    forms = ["param", "list", "filter"] + ["null"] * is_optional + ["constant", "in", "or"] * (len(constants) > 1)
    match draw(st.sampled_from(forms)):
        case "null":
            return f"{name} is null"
        case "constant":
            return f"{name} == {draw(st.sampled_from(constants))}"
        case "in":
            return f"{name} in ({', '.join(draw(st.lists(st.sampled_from(constants), min_size=1, max_size=3)))})"
        case "or":
            return f"({name} == {constants[0]} || {name} == {draw(st.sampled_from(constants))})"
        case "list":
            lists = st.lists(strategy, min_size=1, max_size=3).map(tuple)
            return f"{name} in {param(name, f'list<{kind}, 1..3>', lists)}"
        case "filter":
            given = param(name, f"optional<{kind}>", st.none() | strategy)
            return f"({given} is null || {name} == {given})"
    if is_optional and draw(st.booleans()):
        return f"{name} == {param(name, f'optional<{kind}>', st.none() | strategy)}"
    return f"{name} == {param(name, kind, strategy)}"


def _ranged(draw: st.DrawFn, name: str, param: Any) -> list[str]:
    kind, constants, strategy = RANGED[name]
    found = []
    for sign, number in ((">", "low"), ("<", "high")):
        if draw(st.booleans()):
            value = draw(st.sampled_from([*constants, ""])) or param(f"{name}_{number}", kind, strategy)
            found.append(f"{name} {sign}{draw(st.sampled_from(['', '=']))} {value}")
    return found


def _aggregate(draw: st.DrawFn, fold: str, where: str) -> str:
    take = draw(st.sampled_from([5, 100_000])) if fold == "count" else 100_000
    match fold:
        case "count":
            text = f"count n from Card where {where} take {take}"
        case "count by":
            column = draw(st.sampled_from(["stage", "hue", "label", "price"]))
            text = f"count n from Card where {where} by {column} take {take}"
        case "sum":
            column = draw(st.sampled_from(["size", "weight", "price"]))
            text = f"sum n of {column} from Card where {where} take {take}"
        case _:
            column = draw(st.sampled_from(["size", "due", "day", "price"]))
            text = f"{fold} n of {column} from Card where {where} take {take}"
    return f"{text}\n  return Answer {{ n: n }}"


def with_indexes(text: str) -> Plan | None:
    """The plan of the boards with this query, and the indexes that it lacks; None where none would do."""
    source = Source("boards.riff", BOARDS + text)
    for _ in range(8):
        compilation = compile("boards", [source])
        if compilation.plan is not None:
            return compilation.plan
        offered = [(found, found.fix) for found in compilation.diagnostics if found.fix is not None]
        mended = repair([replace(found, fix=replace(fix, safe=True)) for found, fix in offered])
        if not mended.applied:
            return None
        source = mended.sources["boards.riff"]
    return None
