"""A bound on how deep JSON nests, checked on its bytes before any decoder recurses into it."""

import re

from riffdb.core.limits import JSON_DEPTH_MAX

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def check_depth(raw: bytes) -> None:
    """`ValueError` if brackets nest deeper than `JSON_DEPTH_MAX`; strings do not count."""
    if raw.count(b"[") + raw.count(b"{") <= JSON_DEPTH_MAX:
        return
    depth = 0
    for match in _TOKEN.finditer(raw):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            if depth > JSON_DEPTH_MAX:
                raise ValueError(f"nested deeper than {JSON_DEPTH_MAX}")
        elif token in (b"]", b"}"):
            depth -= 1
