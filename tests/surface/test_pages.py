"""What the pages show is run: every contract that a page prints compiles, without a warning."""

import re
from pathlib import Path

import pytest

from riffdb.compiler import compile
from riffdb.core.diagnostics import render
from riffdb.core.spans import Source

ROOT = Path(__file__).parent.parent.parent


def _contracts() -> list[tuple[str, str]]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    fence = re.compile(r"^```riff\n(.*?)^```", re.MULTILINE | re.DOTALL)
    found = ((page, fence.findall(page.read_text(encoding="utf-8"))) for page in pages)
    return [(f"{page.relative_to(ROOT)}#{i}", text) for page, texts in found for i, text in enumerate(texts)]


@pytest.mark.parametrize(("place", "text"), _contracts(), ids=lambda value: value if "#" in value[:80] else "")
def test_a_printed_contract_compiles(place: str, text: str) -> None:
    compilation = compile("page", (Source(place, text),))
    assert not compilation.diagnostics, "\n".join(render(diagnostic) for diagnostic in compilation.diagnostics)
    assert compilation.plan is not None


def test_the_readme_prints_a_contract() -> None:
    assert [place for place, _ in _contracts() if place.startswith("README.md")]
