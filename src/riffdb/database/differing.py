"""From one answer of a query to the next: the steps that make the new payload of the old one, applied in order.

Works on the JSON values of a payload: of a list, items that come, go or are replaced, told by their content; of
anything else, its new value. Steps name the index at the moment at which they are applied. Absent: what a row is; an
item that moves goes and comes again.
"""

from bisect import bisect_left
from collections import Counter
from typing import Any

import msgspec

Payload = dict[str, Any]
Step = dict[str, Any]


def steps_between(old: Payload, new: Payload) -> list[Step]:
    """The steps; the payloads have the same names."""
    steps: list[Step] = []
    for name, value in new.items():
        before = old[name]
        if before == value:
            continue
        if isinstance(before, list) and isinstance(value, list):
            steps += _list_steps(name, before, value)
        else:
            steps.append({"path": name, "op": "set", "value": value})
    return steps


def _list_steps(name: str, old: list[Any], new: list[Any]) -> list[Step]:
    """Between each two items that stay, those that came replace those that went; the surplus is removed or inserted."""
    steps: list[Step] = []
    left = right = 0
    for left_end, right_end in [*_staying(old, new), (len(old), len(new))]:
        both = min(left_end - left, right_end - right)
        for offset in range(both):
            steps.append({"path": name, "op": "replace", "index": right + offset, "value": new[right + offset]})
        for gone in old[left + both : left_end]:
            steps.append({"path": name, "op": "remove", "index": right + both, "value": gone})
        for index in range(right + both, right_end):
            steps.append({"path": name, "op": "insert", "index": index, "value": new[index]})
        left, right = left_end + 1, right_end + 1
    return steps


def _staying(old: list[Any], new: list[Any]) -> list[tuple[int, int]]:
    """The places in both of the most items that stay in their order: a longest rising run of places."""
    places = {label: place for place, label in enumerate(_labels(old))}
    pairs = [(places[label], place) for place, label in enumerate(_labels(new)) if label in places]
    tails: list[int] = []  # by length, the place in `old` at which the best run of it ends
    ends: list[int] = []  # and which pair that is
    before: list[int] = []
    for number, (place, _) in enumerate(pairs):
        length = bisect_left(tails, place)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [place]
        ends[length : length + 1] = [number]
    run = []
    number = ends[-1] if ends else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]


def _labels(items: list[Any]) -> list[tuple[bytes, int]]:
    """A label of its own for each item: its content, and the how manieth with this content it is."""
    seen: Counter[bytes] = Counter()
    labels = []
    for item in items:
        content = msgspec.json.encode(item)
        labels.append((content, seen[content]))
        seen[content] += 1
    return labels


def apply_steps(payload: Payload, steps: list[Step]) -> Payload:
    """The payload after the steps; the old one stays as it was."""
    result = dict(payload)
    copied: set[str] = set()
    for step in steps:
        name = step["path"]
        if step["op"] == "set":
            result[name] = step["value"]
            continue
        if name not in copied:
            result[name] = list(result[name])
            copied.add(name)
        items, index = result[name], step["index"]
        if step["op"] == "insert":
            items.insert(index, step["value"])
        elif step["op"] == "remove":
            del items[index]
        else:
            items[index] = step["value"]
    return result
