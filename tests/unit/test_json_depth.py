"""The bound on nesting at its edge, and over texts that no decoder would take, where no surface can tell them apart."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riffdb.core.json_depth import check_depth, outside_strings


def nested(depth: int, opening: str, closing: str) -> bytes:
    """A document of that depth, its brackets taken in turn."""
    openings = "".join(opening[level % len(opening)] for level in range(depth))
    closings = "".join(closing[level % len(closing)] for level in reversed(range(depth)))
    return f"{openings}1{closings}".encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{", "}"), ("[{", "]}")])
@pytest.mark.parametrize("prefix", [b"", b"[]," * 100])
def test_the_bound_is_exact(opening: str, closing: str, prefix: bytes) -> None:
    check_depth(prefix + nested(64, opening, closing))
    with pytest.raises(ValueError, match="64"):
        check_depth(prefix + nested(65, opening, closing))
    check_depth(prefix + nested(65, opening, closing), 65)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (rb'{"a[":"]"}', b"{:}"),
        (rb'["\"[", "\\", [1]]', b"[, , [1]]"),
        (rb'["[[[', b"["),
        (b'["[[[\\', b"["),
        (b'"a\nb"[', b"["),
        (b"", b""),
    ],
)
def test_strings_are_left_out(text: bytes, rest: bytes) -> None:
    assert outside_strings(text) == rest


@given(st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b"x"]), max_size=300).map(b"".join))
def test_what_passes_nests_no_deeper(text: bytes) -> None:
    depth = deepest = 0
    for byte in outside_strings(text):
        depth += (byte in b"[{") - (byte in b"]}")
        deepest = max(deepest, depth)
    try:
        check_depth(text, 3)
    except ValueError:
        return
    assert deepest <= 3


@pytest.mark.parametrize("part", [b"[", b'"\\', b'\\"', b"[]", b'"', b"[[]]", b'"[\\"'])
def test_a_megabyte_of_anything_is_soon_decided(part: bytes) -> None:
    """A time that grows with the square of the length would not end within the patience of the test run."""
    with suppress(ValueError):
        check_depth(part * ((1 << 20) // len(part)))
