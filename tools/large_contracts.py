"""Contracts of any length for measurements: the declarations of `examples/queue`, over and over under numbered names.

What comes out is a valid application of at least as many lines as asked for, every declaration as real as the first.
"""

import re
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "queue" / "work.riff"
_DECLARED = re.compile(r"\b(?:enum|entity|event|workflow|command|query|stream|role|schedule) ([A-Z]\w*)")


def large_contract(lines: int) -> str:
    """The source text of one application."""
    text = EXAMPLE.read_text(encoding="utf-8")
    opening = re.search(r"^contract \w+ version 1 \{$", text, re.MULTILINE)
    assert opening is not None, f"{EXAMPLE} does not begin its contract as it did"
    end = text.index("\n}\n", opening.end())
    inside, outside = text[opening.end() : end], text[end + 3 :]
    names = re.compile(rf"\b(?:{'|'.join(sorted(set(_DECLARED.findall(text))))})\b")
    copies = -(-lines // (inside + outside).count("\n"))

    def numbered(part: str) -> str:
        return "".join(names.sub(rf"\g<0>{number}", part) for number in range(copies))

    return f"contract Large version 1 {{{numbered(inside)}\n}}\n{numbered(outside)}"
