"""Canonical JSON: sorted names, no white space, UTF-8 without escapes beyond the needed; and SHA-256 over it.

Two equal values have one text, on every machine; identities (of plans, of inputs) are hashes of that text.
Numbers are integers only: a float has no canonical form here and is refused.
"""

import json
from hashlib import sha256


def canonical_json(value: object) -> str:
    """The one JSON text of a value made of dict, list, tuple, str, int, bool and None; `ValueError` for a float."""
    _refuse_floats(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_hash(value: object) -> bytes:
    """SHA-256 (32 bytes) of the value's canonical JSON."""
    return sha256(canonical_json(value).encode()).digest()


def _refuse_floats(value: object) -> None:
    if isinstance(value, float):
        raise ValueError("a float has no canonical form")
    if isinstance(value, dict):
        for item in value.values():
            _refuse_floats(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_floats(item)
