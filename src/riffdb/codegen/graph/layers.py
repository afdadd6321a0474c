"""Nodes in layers: which layer each stands in, and in which order those of a layer stand, with few crossings.

A link leads down by at least one layer; one that would close a cycle is turned round for the layout alone. Each link
becomes a chain with a node in every layer between its ends, so that it only ever crosses the gap between two layers,
and its label is one of these nodes: nothing can lie upon it. Between two layers of states is one for labels alone.
Absent: sizes and coordinates (`layout`).
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Ends = tuple[int, int]
SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Chain:
    """The nodes of a link from the upper end to the lower one, the one with its label, and whether it is turned."""

    nodes: tuple[int, ...]
    label: int
    is_turned: bool


@dataclass(frozen=True, slots=True)
class Layered:
    """The layers from top to bottom, each its nodes in order, and the chain of each link; the first nodes are the given
    ones by number, all further ones are parts of chains."""

    layers: tuple[tuple[int, ...], ...]
    chains: tuple[Chain, ...]

    def neighbours(self) -> dict[int, list[int]]:
        """The nodes that each node is joined to, above it and below."""
        found: dict[int, list[int]] = {node: [] for layer in self.layers for node in layer}
        for chain in self.chains:
            for upper, lower in pairwise(chain.nodes):
                found[upper].append(lower)
                found[lower].append(upper)
        return found


def layered(count: int, links: Sequence[Ends]) -> Layered:
    """Put `count` nodes into layers, from the first on; no link joins a node with itself."""
    turned = _turned(count, links)
    down = [(end, start) if link in turned else (start, end) for link, (start, end) in enumerate(links)]
    depth = _depths(count, down)
    layers: list[list[int]] = [[] for _ in range(2 * max(depth, default=0) + 1)]
    for node in range(count):
        layers[2 * depth[node]].append(node)
    chains = []
    following = count
    for link, (upper, lower) in enumerate(down):
        between = range(2 * depth[upper] + 1, 2 * depth[lower])
        nodes = range(following, following + len(between))
        following += len(between)
        for node, layer in zip(nodes, between, strict=True):
            layers[layer].append(node)
        chains.append(Chain((upper, *nodes, lower), nodes[-1 if link in turned else 0], link in turned))
    return _ordered(Layered(tuple(map(tuple, layers)), tuple(chains)))


def _turned(count: int, links: Sequence[Ends]) -> set[int]:
    """The links that lead back to where a walk from the first nodes on has come from."""
    out: list[list[int]] = [[] for _ in range(count)]
    for link, (start, _) in enumerate(links):
        out[start].append(link)
    turned: set[int] = set()
    seen: set[int] = set()
    for root in range(count):
        way: list[tuple[int, list[int]]] = [] if root in seen else [(root, list(reversed(out[root])))]
        seen.add(root)
        while way:
            if not way[-1][1]:
                way.pop()
                continue
            link = way[-1][1].pop()
            end = links[link][1]
            if any(node == end for node, _ in way):
                turned.add(link)
            elif end not in seen:
                seen.add(end)
                way.append((end, list(reversed(out[end]))))
    return turned


def _depths(count: int, down: Sequence[Ends]) -> list[int]:
    """The length of the longest way down to each node."""
    depth = [0] * count
    for _ in range(count):
        for start, end in down:
            depth[end] = max(depth[end], depth[start] + 1)
    return depth


def _ordered(start: Layered) -> Layered:
    """The order with the fewest crossings that sweeps down and up come upon."""
    joined = start.neighbours()
    best, fewest = start, _crossings(start)
    layers = [list(layer) for layer in start.layers]
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        numbers = range(1, len(layers)) if downwards else range(len(layers) - 2, -1, -1)
        for number in numbers:
            fixed = {node: place for place, node in enumerate(layers[number - 1 if downwards else number + 1])}
            layers[number] = _by_middle(layers[number], joined, fixed)
        found = Layered(tuple(map(tuple, layers)), start.chains)
        crossings = _crossings(found)
        if crossings < fewest:
            best, fewest = found, crossings
    return best


def _by_middle(layer: list[int], joined: dict[int, list[int]], fixed: dict[int, int]) -> list[int]:
    """The layer with each node at the middle of its neighbours in the fixed one."""
    middles = {}
    for place, node in enumerate(layer):
        places = [fixed[other] for other in joined[node] if other in fixed]
        middles[node] = sum(places) / len(places) if places else float(place)
    return sorted(layer, key=lambda node: middles[node])


def _crossings(found: Layered) -> int:
    place = {node: number for layer in found.layers for number, node in enumerate(layer)}
    level = {node: number for number, layer in enumerate(found.layers) for node in layer}
    gaps: dict[int, list[Ends]] = {}
    for chain in found.chains:
        for upper, lower in pairwise(chain.nodes):
            gaps.setdefault(level[upper], []).append((place[upper], place[lower]))
    return sum(map(_crossed, gaps.values()))


def _crossed(pairs: list[Ends]) -> int:
    """How many of the pairs lie the other way round below than above."""
    found = 0
    lower: list[int] = []
    for _, place in sorted(pairs):
        found += len(lower) - bisect_right(lower, place)
        insort(lower, place)
    return found
