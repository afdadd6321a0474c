"""A bound on how deep JSON nests, checked on its bytes before any decoder recurses into it.

The time is linear in the length for any bytes, malformed ones too: whoever sends them may mean harm.
"""

import re

from riffdb.core.limits import JSON_DEPTH_MAX

_STRING = re.compile(rb'"[^"\\]*+(?:\\(?:.|\Z)[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


def outside_strings(raw: bytes) -> bytes:
    """The text without its strings; one that does not end reaches to the end of the text."""
    return _STRING.sub(b"", raw)


def check_depth(raw: bytes, depth_max: int = JSON_DEPTH_MAX) -> None:
    """`ValueError` if brackets nest deeper than `depth_max` or do not match; strings do not count.

    A text with few brackets passes unseen, whatever they are: it cannot nest deeper than it has brackets.
    """
    if raw.count(b"[") + raw.count(b"{") <= depth_max:
        return
    brackets = outside_strings(raw).translate(_ONE_KIND, _ALL_BUT_BRACKETS)
    for _ in range(depth_max):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return
    raise ValueError(f"its brackets do not match or nest deeper than {depth_max}")
