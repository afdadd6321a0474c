"""Coordinates: boxes and labels in rows that never overlap, and the way of each link between them.

A row is as high as its highest node, and nodes of a row keep their distance; links run upright within a row, in a
place of their own, and turn aside only in the gap between two rows, where nothing stands. Numbers are in units of the
picture, x to the right and y down. Absent: what is drawn (`svg`), and the order within a row (`layers`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from riffdb.codegen.graph.layers import Chain, Layered, layered

GAP = 30.0
"""The room between two rows, in which links turn aside."""
APART = 22.0
"""The room between two nodes of a row."""
ENDS_APART = 26.0
"""The room between the ends of two links at one box, if it is wide enough."""
ROUNDS = 16
STRAIGHT = 6.0
"""How much more a link wants to run straight than a box wants to stand in the middle."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """The size of a node, and the room that it needs at its right for what hangs there."""

    width: float
    height: float
    beside: float = 0.0
    beside_height: float = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two boxes by their numbers, with the size of its label."""

    source: int
    destination: int
    label: Box


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands: middles of boxes and labels, and of each link the points from source to destination;
    from one to the next it runs upright or across a gap."""

    width: float
    height: float
    boxes: tuple[Point, ...]
    labels: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]


def laid_out(boxes: Sequence[Box], links: Sequence[Link]) -> Layout:
    """Lay out boxes with links between them, from the first box down."""
    found = layered(len(boxes), [(link.source, link.destination) for link in links])
    sizes = dict(enumerate(boxes))
    for link, chain in zip(links, found.chains, strict=True):
        sizes |= dict.fromkeys(chain.nodes[1:-1], Box(0.0, 0.0))
        sizes[chain.label] = link.label
    across = _across(found, sizes, len(boxes))
    rows = _rows(found, sizes)
    middle = {node: (across[node], sum(rows[row]) / 2) for row, layer in enumerate(found.layers) for node in layer}
    return Layout(
        width=max((across[node] + _right(sizes[node]) for node in sizes), default=0.0),
        height=rows[-1][1],
        boxes=tuple(middle[node] for node in range(len(boxes))),
        labels=tuple(middle[chain.label] for chain in found.chains),
        routes=_routes(found, sizes, middle, rows),
    )


def _right(box: Box) -> float:
    return box.width / 2 + box.beside


def _rows(found: Layered, sizes: Mapping[int, Box]) -> list[tuple[float, float]]:
    """The top and the bottom of each row."""
    rows: list[tuple[float, float]] = []
    top = 0.0
    for layer in found.layers:
        height = max((max(sizes[node].height, sizes[node].beside_height) for node in layer), default=0.0)
        rows.append((top, top + height))
        top += height + GAP
    return rows


# --- across ------------------------------------------------------------------------------------------------------


def _across(found: Layered, sizes: Mapping[int, Box], count: int) -> dict[int, float]:
    """The middle of each node from the left, near the middles of its neighbours; the leftmost box begins at 0."""
    joined = found.neighbours()
    place: dict[int, float] = {}
    for layer in found.layers:
        place |= _spread(layer, dict.fromkeys(layer, (0.0, 1.0)), sizes)
    for turn in range(ROUNDS):
        for layer in found.layers if turn % 2 == 0 else reversed(found.layers):
            place |= _spread(layer, {node: _wish(node, joined[node], place, count) for node in layer}, sizes)
    left = min(place[node] - sizes[node].width / 2 for node in place)
    return {node: x - left for node, x in place.items()}


def _wish(node: int, joined: Sequence[int], place: Mapping[int, float], count: int) -> tuple[float, float]:
    """Where a node would stand, and how much it wants to."""
    if not joined:
        return place[node], 1.0
    weights = [STRAIGHT if node >= count and other >= count else 1.0 for other in joined]
    weight = sum(weights)
    return sum(place[other] * part for other, part in zip(joined, weights, strict=True)) / weight, weight


def _spread(
    layer: Sequence[int], wishes: Mapping[int, tuple[float, float]], sizes: Mapping[int, Box]
) -> dict[int, float]:
    """The places nearest to the wishes (least squares) at which the nodes, in their order, keep their distance."""
    offsets = [0.0]
    for node, following in pairwise(layer):
        offsets.append(offsets[-1] + _right(sizes[node]) + APART + sizes[following].width / 2)
    blocks: list[tuple[float, float, int]] = []  # place without offset, weight, how many nodes
    for node, offset in zip(layer, offsets, strict=False):
        wish, weight = wishes[node]
        block = (wish - offset, weight, 1)
        while blocks and blocks[-1][0] >= block[0]:
            other = blocks.pop()
            whole = other[1] + block[1]
            block = ((other[0] * other[1] + block[0] * block[1]) / whole, whole, other[2] + block[2])
        blocks.append(block)
    places = [place for place, _, count in blocks for _ in range(count)]
    return {node: place + offset for node, place, offset in zip(layer, places, offsets, strict=False)}


# --- the ways of links -------------------------------------------------------------------------------------------


def _routes(
    found: Layered, sizes: Mapping[int, Box], middle: Mapping[int, Point], rows: Sequence[tuple[float, float]]
) -> tuple[tuple[Point, ...], ...]:
    level = {node: number for number, layer in enumerate(found.layers) for node in layer}
    leaving = _ends(found.chains, sizes, middle, is_upper=True)
    arriving = _ends(found.chains, sizes, middle, is_upper=False)
    routes = []
    for number, chain in enumerate(found.chains):
        upper, lower = chain.nodes[0], chain.nodes[-1]
        points = [
            (leaving[number], middle[upper][1] + sizes[upper].height / 2),
            (leaving[number], rows[level[upper]][1]),
        ]
        for node in chain.nodes[1:-1]:
            points.extend((middle[node][0], y) for y in rows[level[node]])
        points.append((arriving[number], rows[level[lower]][0]))
        points.append((arriving[number], middle[lower][1] - sizes[lower].height / 2))
        routes.append(tuple(reversed(points)) if chain.is_turned else tuple(points))
    return tuple(routes)


def _ends(
    chains: Sequence[Chain], sizes: Mapping[int, Box], middle: Mapping[int, Point], *, is_upper: bool
) -> dict[int, float]:
    """Where each chain touches the box at its upper or lower end: side by side, in the order of where they lead."""
    at_box: dict[int, list[int]] = {}
    for number, chain in enumerate(chains):
        at_box.setdefault(chain.nodes[0 if is_upper else -1], []).append(number)
    places: dict[int, float] = {}
    for box, numbers in at_box.items():
        numbers.sort(key=lambda number: (middle[chains[number].nodes[1 if is_upper else -2]][0], number))
        step = min(ENDS_APART, (sizes[box].width - 16) / max(len(numbers) - 1, 1))
        for place, number in enumerate(numbers):
            places[number] = middle[box][0] + (place - (len(numbers) - 1) / 2) * step
    return places
