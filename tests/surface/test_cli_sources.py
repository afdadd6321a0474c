"""Commands that write sources: what they refuse to write, and whose work they leave alone."""

from pathlib import Path

import pytest

from riffdb.cli.files import replace_file
from riffdb.core.errors import RiffError
from riffdb.core.limits import SOURCE_BYTES_MAX
from tests.surface.command_line import run_here

SETTINGS = '[application]\nname = "small"\n'


def folder_with(path: Path, text: str) -> Path:
    path.joinpath("riffdb.toml").write_text(SETTINGS, "utf-8")
    path.joinpath("small.riff").write_text(text, "utf-8", newline="")
    return path


def test_a_layout_that_no_file_may_have_is_not_written(tmp_path: Path) -> None:
    contract = "contract Small version 1{enum Size{A}}"
    text = f"// {'x' * (SOURCE_BYTES_MAX - len(contract) - 4)}\n{contract}"
    folder = folder_with(tmp_path, text)
    assert run_here("check", folder).code == 0
    for options in ([], ["--check"]):
        done = run_here("fmt", folder, *options)
        assert done.code == 3
        assert "RDB-C002" in done.stderr
    assert folder.joinpath("small.riff").read_text("utf-8") == text


def test_a_file_that_was_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "small.riff"
    path.write_bytes(b"by hand\r\n")
    with pytest.raises(RiffError, match="was changed meanwhile") as caught:
        replace_file(path, "laid out\n", read="as it was\r\n")
    assert caught.value.code == "RDB-E-USAGE"
    assert path.read_bytes() == b"by hand\r\n"
    assert list(tmp_path.iterdir()) == [path]
    replace_file(path, "laid out\n", read="by hand\r\n")
    assert path.read_bytes() == b"laid out\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_fix_keeps_line_ends_and_byte_order_mark(tmp_path: Path, end: str, mark: str) -> None:
    lines = [
        "contract Small version 1 {",
        "  enum Size { A }",
        "  entity Box { key (id: uuid) feild size: Size }",
        "}",
        "",
    ]
    folder = folder_with(tmp_path, mark + end.join(lines))
    assert run_here("check", folder, "--fix").code == 0
    assert folder.joinpath("small.riff").read_bytes().decode() == mark + end.join(lines).replace("feild", "field")
