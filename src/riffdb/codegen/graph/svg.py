"""Diagrams as an SVG picture: states in rows from the initial one down, moves between them with their commands.

Text is set in a monospaced font, whose widths are known, and everything is as wide as its text, so that no text lies on
another. Terminal states have a double border, moves that no command makes are dashed, the lease is a note at the side.
Absent: where things stand (`layout`), scripts, anything that a viewer would have to fetch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from riffdb.codegen.graph.diagrams import Diagram, Move
from riffdb.codegen.graph.layout import Box, Layout, Link, Point, laid_out
from riffdb.core.errors import RiffError

FONT_SIZE = 13
CHARACTER = 8.0
LINE = 17.0
MOVES_MAX = 500
MARGIN = 20.0
STATE_HEIGHT = 34.0
LOOP = 26.0
"""How far the loop of a move from a state to itself stands out."""
START = 7.0

STYLE = f"""\
text {{ font: {FONT_SIZE}px monospace; fill: #1c2430 }}
.title, .name {{ font-weight: bold }}
.command {{ fill: #4a5a70 }}
.state {{ fill: #eaf1fb; stroke: #2f5f9e; stroke-width: 1.5 }}
.inner {{ fill: none; stroke: #2f5f9e }}
.note {{ fill: #fff8dc; stroke: #b59b4c }}
.move {{ fill: none; stroke: #4a5a70; stroke-width: 1.3; marker-end: url(#arrow) }}
.idle {{ stroke-dasharray: 5 4 }}
.page, .label {{ fill: #ffffff }}"""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text with its class."""

    text: str
    kind: str = "command"


@dataclass(frozen=True, slots=True)
class Arrow:
    """All moves from one state to another as one arrow."""

    source: str
    destination: str
    lines: tuple[Line, ...]
    is_idle: bool


def svg(diagrams: tuple[Diagram, ...]) -> str:
    """One picture with all the diagrams, one below the other; `RDB-E-USAGE` for one of too many arrows."""
    for diagram in diagrams:
        if len(diagram.moves) > MOVES_MAX:
            raise RiffError(
                "RDB-E-USAGE",
                f"`{diagram.workflow}` has {len(diagram.moves):,} arrows, and a picture has room for {MOVES_MAX};"
                " `--format dot` has them all",
            )
    parts: list[str] = []
    width, top = 0.0, MARGIN
    for diagram in diagrams:
        drawn, right, bottom = _drawn(diagram, top)
        parts.extend(drawn)
        width, top = max(width, right), bottom + 2 * MARGIN
    size = f'width="{_number(width + MARGIN)}" height="{_number(top - MARGIN)}"'
    box = f"0 0 {_number(width + MARGIN)} {_number(top - MARGIN)}"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="{box}" role="img">',
            f"<title>{escape(', '.join(diagram.title for diagram in diagrams))}</title>",
            f"<style>\n{STYLE}\n</style>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="#4a5a70"/></marker></defs>',
            '<rect class="page" width="100%" height="100%"/>',
            *parts,
            "</svg>",
        )
    )


def _drawn(diagram: Diagram, top: float) -> tuple[list[str], float, float]:
    """The elements of one diagram that begins at `top`, and how far it reaches to the right and down."""
    title = Line(diagram.title, "title")
    parts = [_text(title, MARGIN, top + FONT_SIZE)]
    top += LINE + MARGIN
    arrows = _arrows(diagram.moves)
    loops = {arrow.source: arrow for arrow in arrows if arrow.source == arrow.destination}
    ways = [arrow for arrow in arrows if arrow.source != arrow.destination]
    start = 1 if diagram.initial is not None else 0
    number = {state: place for place, state in enumerate(_from_initial(diagram), start)}
    links = [Link(number[arrow.source], number[arrow.destination], _box_of(arrow.lines)) for arrow in ways]
    boxes = [_state_box(state, loops.get(state), links, number[state]) for state in number]
    if diagram.initial is not None:
        creators = tuple(Line(name) for name in diagram.creators)
        links.insert(0, Link(0, 1, _box_of(creators)))
        ways.insert(0, Arrow("", diagram.initial, creators, False))
        boxes.insert(0, Box(2 * START, 2 * START))
    layout = laid_out(boxes, links)
    origin = (MARGIN, top)
    for arrow, route in zip(ways, layout.routes, strict=True):
        parts.append(_path(_moved(route, origin), arrow.is_idle))
    for link, arrow, middle in zip(links, ways, layout.labels, strict=True):
        parts.extend(_label(arrow.lines, link.label, _moved([middle], origin)[0]))
    if diagram.initial is not None:
        x, y = _moved(layout.boxes[:1], origin)[0]
        parts.append(f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(START)}"/>')
    for state, place in number.items():
        middle = _moved([layout.boxes[place]], origin)[0]
        parts.extend(_state(state, boxes[place], middle, state in diagram.terminal))
        if state in loops:
            parts.extend(_loop(loops[state], boxes[place], middle))
    return _with_note(diagram, parts, layout, top)


def _with_note(diagram: Diagram, parts: list[str], layout: Layout, top: float) -> tuple[list[str], float, float]:
    right, bottom = MARGIN + layout.width, top + layout.height
    if diagram.lease is not None:
        lines = tuple(Line(text, "name" if not place else "command") for place, text in enumerate(diagram.lease.lines))
        box = _box_of(lines)
        left = right + 2 * MARGIN
        width, height = box.width + 8, box.height + 8
        parts.append(_rect("note", (left + width / 2, top + height / 2), width, height, 0))
        for place, line in enumerate(lines):
            parts.append(_text(line, left + 8, top + 4 + LINE * place + FONT_SIZE))
        right, bottom = left + width, max(bottom, top + height)
    return parts, max(right, MARGIN + CHARACTER * len(diagram.title)), bottom


# --- what there is to draw ---------------------------------------------------------------------------------------


def _from_initial(diagram: Diagram) -> Iterator[str]:
    """The states, the initial one first."""
    yield from (state for state in diagram.states if state == diagram.initial)
    yield from (state for state in diagram.states if state != diagram.initial)


def _arrows(moves: Sequence[Move]) -> list[Arrow]:
    grouped: dict[tuple[str, str], list[Move]] = {}
    for move in moves:
        grouped.setdefault((move.source, move.destination), []).append(move)
    return [
        Arrow(
            source,
            destination,
            tuple(line for move in group for line in _lines(move)),
            not any(move.commands for move in group),
        )
        for (source, destination), group in grouped.items()
    ]


def _lines(move: Move) -> Iterator[Line]:
    yield Line(move.transition, "name")
    yield from (Line(command) for command in move.commands or ("no command",))


def _box_of(lines: Sequence[Line]) -> Box:
    """The size of some lines; without any there is no box."""
    if not lines:
        return Box(0.0, 0.0)
    return Box(CHARACTER * max(len(line.text) for line in lines) + 8, LINE * len(lines) + 2)


def _state_box(state: str, loop: Arrow | None, links: Sequence[Link], number: int) -> Box:
    ends = max(sum(link.source == number for link in links), sum(link.destination == number for link in links))
    width = max(CHARACTER * len(state) + 28, 16.0 * ends + 16)
    if loop is None:
        return Box(width, STATE_HEIGHT)
    label = _box_of(loop.lines)
    return Box(width, STATE_HEIGHT, LOOP + 4 + label.width, label.height)


# --- elements ----------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _moved(points: Sequence[Point], origin: Point) -> list[Point]:
    return [(x + origin[0], y + origin[1]) for x, y in points]


def _point(point: Point) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _text(line: Line, x: float, y: float, anchor: str = "start") -> str:
    place = f'x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}"'
    return f'<text class="{line.kind}" {place}>{escape(line.text)}</text>'


def _rect(kind: str, middle: Point, width: float, height: float, radius: float) -> str:
    place = f'x="{_number(middle[0] - width / 2)}" y="{_number(middle[1] - height / 2)}"'
    return f'<rect class="{kind}" {place} width="{_number(width)}" height="{_number(height)}" rx="{_number(radius)}"/>'


def _path(points: Sequence[Point], is_idle: bool) -> str:
    drawn = [f"M {_point(points[0])}"]
    for before, after in pairwise(points):
        if before == after:
            continue
        if before[0] == after[0]:
            drawn.append(f"L {_point(after)}")
        else:
            half = (before[1] + after[1]) / 2
            drawn.append(f"C {_point((before[0], half))} {_point((after[0], half))} {_point(after)}")
    return f'<path class="move{" idle" if is_idle else ""}" d="{" ".join(drawn)}"/>'


def _label(lines: Sequence[Line], box: Box, middle: Point) -> Iterator[str]:
    if lines:
        yield _rect("label", middle, box.width, box.height, 0)
    top = middle[1] - box.height / 2
    for place, line in enumerate(lines):
        yield _text(line, middle[0], top + LINE * place + FONT_SIZE, "middle")


def _state(state: str, box: Box, middle: Point, is_terminal: bool) -> Iterator[str]:
    yield _rect("state", middle, box.width, box.height, 8)
    if is_terminal:
        yield _rect("inner", middle, box.width - 8, box.height - 8, 5)
    yield _text(Line(state, "name"), middle[0], middle[1] + FONT_SIZE / 3, "middle")


def _loop(loop: Arrow, box: Box, middle: Point) -> Iterator[str]:
    right, y = middle[0] + box.width / 2, middle[1]
    out = right + LOOP * 1.3
    curve = f"M {_point((right, y - 8))} C {_point((out, y - 18))} {_point((out, y + 18))} {_point((right, y + 8))}"
    yield f'<path class="move{" idle" if loop.is_idle else ""}" d="{curve}"/>'
    top = y - (LINE * len(loop.lines) + 2) / 2
    for place, line in enumerate(loop.lines):
        yield _text(line, right + LOOP + 4, top + LINE * place + FONT_SIZE)
