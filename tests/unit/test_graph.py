"""Diagrams of many shapes: that nothing in a picture lies on anything else, and that it is the same each time.

The cases show a few workflows whole; how a layout fares with any of them is a property over random ones.
"""

import random
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest

from riffdb.codegen.graph import FORMATS, Diagram
from riffdb.codegen.graph.diagrams import LeaseNote, Move
from riffdb.codegen.graph.layers import _crossed
from riffdb.codegen.graph.layout import Box, Layout, Link, Point, laid_out
from riffdb.codegen.graph.svg import CHARACTER, FONT_SIZE
from riffdb.core.errors import RiffError

Area = tuple[float, float, float, float]
SVG = "{http://www.w3.org/2000/svg}"


def random_diagram(seed: int) -> Diagram:
    """A workflow of up to twelve states, with names short and long, that need not make sense."""
    chance = random.Random(seed)
    count = chance.randint(1, 12)
    states = tuple(f"S{number}{'x' * chance.choice((0, 3, 20))}" for number in range(count))
    commands = tuple(f"Command{number}{'y' * chance.choice((0, 9))}" for number in range(6))
    moves = tuple(
        Move(
            chance.choice(states),
            chance.choice(states),
            f"Move{number}",
            tuple(chance.sample(commands, chance.randint(0, 3))),
        )
        for number in range(chance.randint(0, 2 * count))
    )
    terminal = tuple(state for state in states if all(move.source != state for move in moves))
    initial = chance.choice((None, chance.choice(states)))
    lease = LeaseNote("work", (5, 900), (("claim", commands[:2]), ("release", commands[:1])))
    return Diagram("Flow", "Row", states, initial, commands[:1], terminal, moves, chance.choice((None, lease)))


def overlap(one: Area, other: Area) -> bool:
    """Whether two areas have more in common than an edge."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def text_areas(picture: str) -> list[tuple[str, Area]]:
    """Every text of a picture with the area that it takes."""
    areas = []
    for element in ElementTree.fromstring(picture).iter(f"{SVG}text"):
        text = element.text or ""
        width, left, base = CHARACTER * len(text), float(element.attrib["x"]), float(element.attrib["y"])
        left -= width / 2 if element.attrib["text-anchor"] == "middle" else 0
        areas.append((text, (left, base - FONT_SIZE * 0.8, left + width, base + FONT_SIZE * 0.2)))
    return areas


@pytest.mark.parametrize("seed", range(60))
def test_no_text_lies_on_another_or_outside(seed: int) -> None:
    diagrams = (random_diagram(seed), random_diagram(seed + 1_000))
    picture = FORMATS["svg"](diagrams)
    areas = text_areas(picture)
    assert len(areas) >= 2 + sum(len(diagram.states) for diagram in diagrams)
    for (text, area), (other_text, other) in combinations(areas, 2):
        assert not overlap(area, other), (text, other_text)
    width, height = (float(ElementTree.fromstring(picture).attrib[name]) for name in ("width", "height"))
    assert all(left >= 0 and right <= width and top >= 0 and down <= height for _, (left, top, right, down) in areas)


def points_on(route: tuple[Point, ...]) -> list[Point]:
    """Points along a route as the picture draws it."""
    found = []
    for (x, y), (next_x, next_y) in pairwise(route):
        for step in range(17):
            part = step / 16
            bent = part * part * (3 - 2 * part)
            found.append((x + (next_x - x) * bent, y + (next_y - y) * part))
    return found


def area_of(box: Box, middle: Point) -> Area:
    """The area of a box."""
    return (
        middle[0] - box.width / 2,
        middle[1] - box.height / 2,
        middle[0] + box.width / 2,
        middle[1] + box.height / 2,
    )


def beside(box: Box, middle: Point) -> Area:
    """The area of what hangs at the right of a box."""
    right = middle[0] + box.width / 2
    return right, middle[1] - box.beside_height / 2, right + box.beside, middle[1] + box.beside_height / 2


def random_layout(seed: int) -> tuple[list[Box], list[Link], Layout]:
    """Boxes of any sizes with links between any two of them."""
    chance = random.Random(seed)
    count = chance.randint(1, 12)
    boxes = [
        Box(chance.randint(60, 200), 34, chance.choice((0, 120)), chance.choice((0, 34, 90))) for _ in range(count)
    ]
    pairs = [(start, end) for start in range(count) for end in range(count) if start != end]
    links = [
        Link(start, end, Box(chance.randint(0, 160), chance.choice((0, 18, 70))))
        for start, end in chance.sample(pairs, min(len(pairs), chance.randint(0, 2 * count)))
    ]
    return boxes, links, laid_out(boxes, links)


@pytest.mark.parametrize("seed", range(60))
def test_no_link_runs_through_a_box_or_the_label_of_another(seed: int) -> None:
    boxes, links, layout = random_layout(seed)
    areas = [area(box, middle) for area in (area_of, beside) for box, middle in zip(boxes, layout.boxes, strict=True)]
    labels = [area_of(link.label, middle) for link, middle in zip(links, layout.labels, strict=True)]
    for one, other in combinations([*areas, *labels], 2):
        assert not overlap(one, other)
    for number, (link, route) in enumerate(zip(links, layout.routes, strict=True)):
        others = [*areas, *(label for place, label in enumerate(labels) if place != number)]
        for x, y in points_on(route):
            assert not any(left < x < right and top < y < down for left, top, right, down in others), (seed, number)
        for end, box in ((route[0], link.source), (route[-1], link.destination)):
            assert abs(end[1] - layout.boxes[box][1]) == 17, "it touches the upper or lower edge of its box"


def test_a_diagram_is_the_same_each_time() -> None:
    for render in FORMATS.values():
        assert render((random_diagram(7),)) == render((random_diagram(7),))


def test_foreign_characters_are_escaped() -> None:
    odd = Diagram('A<b>&"', "Row", ("S",), None, (), ("S",), (), None)
    assert 'A<b>&" of Row' in [text for text, _ in text_areas(FORMATS["svg"]((odd,)))]


def test_a_picture_of_too_many_arrows_is_refused_and_the_texts_have_them_all() -> None:
    states = tuple(f"S{number}" for number in range(23))
    moves = tuple(Move(source, end, f"To{end}", ()) for source in states for end in states)
    diagram = Diagram("Flow", "Row", states, "S0", (), (), moves, None)
    with pytest.raises(RiffError, match="`--format dot`"):
        FORMATS["svg"]((diagram,))
    for name in ("dot", "mermaid"):
        assert "ToS22" in FORMATS[name]((diagram,))


def test_crossings_are_counted_as_pairs_would_be() -> None:
    chance = random.Random(5)
    for _ in range(200):
        pairs = [(chance.randint(0, 6), chance.randint(0, 6)) for _ in range(chance.randint(0, 12))]
        crossed = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(pairs, 2))
        assert _crossed(pairs) == crossed
