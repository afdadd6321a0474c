"""Folders as users have them, right and wrong; a case folder cannot lack its `riffdb.toml` or hold what is no text."""

from dataclasses import asdict
from pathlib import Path

import pytest

from riffdb.client.application import compile_application, load_application
from riffdb.client.configuration import SchedulePolicy
from riffdb.core.errors import RiffError
from riffdb.scheduler import Policy

QUEUE = Path(__file__).parents[2] / "examples" / "queue"


def refusal(folder: Path) -> str:
    """The message with which the folder is refused, its paths relative to the folder's parent."""
    with pytest.raises(RiffError) as caught:
        load_application(folder)
    assert caught.value.code == "RDB-E-USAGE"
    return caught.value.message.replace(f"{folder.parent}/", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An application of one small file."""
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "riffdb.toml").write_text('[application]\nname = "app"\n', encoding="utf-8")
    (folder / "work.riff").write_text("contract Work version 1 { }\n", encoding="utf-8")
    return folder


def configure(folder: Path, text: str) -> None:
    """Put more lines below those of the fixture's `riffdb.toml`."""
    path = folder / "riffdb.toml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def test_everything_has_a_default(folder: Path) -> None:
    application = load_application(folder)
    assert application.name == "app"
    assert [source.path for source in application.sources] == [str(folder / "work.riff")]
    assert application.sources[0].text == "contract Work version 1 { }\n"
    assert application.schedules == {}
    assert application.server.listen == "127.0.0.1:7433"
    assert application.server.db is None
    assert application.limits.body_bytes_max == 1 << 20


def test_paths_are_named_as_the_user_named_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert load_application(Path("app")).sources[0].path == "app/work.riff"
    monkeypatch.chdir(folder)
    assert load_application(Path()).sources[0].path == "work.riff"


def test_sources_are_those_of_the_globs_in_order_and_once(folder: Path) -> None:
    (folder / "more").mkdir()
    for name in ("more/b.riff", "more/a.riff", "a.txt"):
        (folder / name).write_text("", encoding="utf-8")
    configure(folder, 'files = ["*.riff", "more/*.riff", "more/a.riff"]\n')
    names = [Path(source.path).relative_to(folder).as_posix() for source in load_application(folder).sources]
    assert names == ["more/a.riff", "more/b.riff", "work.riff"]


def test_all_sections_are_read(folder: Path) -> None:
    configure(
        folder,
        '[generate]\npython = "generated/python"\n'
        "[schedules.Due]\nin_flight = 8\nlease_seconds = 30\n"
        '[server]\ndb = "sqlite:work.db"\nlisten = "0.0.0.0:80"\n'
        "[limits]\nbody_bytes_max = 2048\n",
    )
    application = load_application(folder)
    assert application.configuration.generate == {"python": "generated/python"}
    assert application.schedules == {"Due": SchedulePolicy(in_flight=8, lease_seconds=30)}
    assert application.server.db == "sqlite:work.db"
    assert application.server.listen == "0.0.0.0:80"
    assert application.limits.body_bytes_max == 2048


def test_a_folder_that_is_none(tmp_path: Path, folder: Path) -> None:
    assert refusal(tmp_path / "gone") == (
        "`gone` is not there; name the folder of an application, or make one with `riffdb new NAME`"
    )
    assert refusal(folder / "work.riff").startswith("`work.riff` is a file, not a folder;")
    assert refusal(tmp_path).endswith("or make an application with `riffdb new NAME`")


def test_a_folder_without_sources(folder: Path) -> None:
    (folder / "work.riff").unlink()
    assert refusal(folder) == ("`app` has no file for `*.riff`; put a contract there, or start from `riffdb new NAME`")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[server\n", "app/riffdb.toml:3:8: this is no valid TOML: expected ']' at the end of a table declaration"),
        ("[sever]\n", "app/riffdb.toml:3: unknown key `sever` at the top; did you mean `server`?"),
        ("nam = 1\n", "app/riffdb.toml:3: unknown key `nam` in `[application]`; did you mean `name`?"),
        (
            "[schedules.Due]\nin_flite = 1\n",
            "app/riffdb.toml:4: unknown key `in_flite` in `[schedules.Due]`; did you mean `in_flight`?",
        ),
        ("[schedules]\nDue = 1\n", "app/riffdb.toml:4: `Due` must be a section, `[schedules.Due]`"),
        ("[schedules.Due]\nin_flight = 9\n", "app/riffdb.toml:4: `in_flight` must be a whole number from 1 to 8"),
        ("[schedules.Due]\nin_flight = true\n", "app/riffdb.toml:4: `in_flight` must be a whole number from 1 to 8"),
        (
            "[schedules.Due]\nwait_seconds = 31\n",
            "app/riffdb.toml:4: `wait_seconds` must be a whole number from 0 to 30",
        ),
        (
            "[schedules.Due]\nbase_retry_seconds = 9\nmax_retry_seconds = 8\n",
            "app/riffdb.toml:4: `base_retry_seconds` (9) must not pass `max_retry_seconds` (8)",
        ),
        (
            '[server]\nlisten = "here"\n',
            "app/riffdb.toml:4: `listen` must be a host and a port, such as `127.0.0.1:7433`",
        ),
        (
            '[server]\ndb = "work.db"\n',
            "app/riffdb.toml:4: `db` must be the address of a database, such as `sqlite:work.db`",
        ),
        ('files = "x.riff"\n', 'app/riffdb.toml:3: `files` must be a list of at least one glob, such as ["*.riff"]'),
        ('files = ["../*.riff"]\n', "app/riffdb.toml:3: `files` must stay within the folder; `../*.riff` leaves it"),
        ('files = ["/x/*.riff"]\n', "app/riffdb.toml:3: `files` must stay within the folder; `/x/*.riff` leaves it"),
        (
            'files = ["a**"]\n',
            "app/riffdb.toml:3: `files` must have `**` only as a whole part between slashes; `a**` has",
        ),
        ('files = ["gone.riff"]\n', "app/riffdb.toml:3: `app/gone.riff` is named in `files`, and is not there"),
        (
            '[lints]\nunsed-input = "warn"\n',
            "app/riffdb.toml:4: there is no lint `unsed-input`; did you mean `unused-input`?",
        ),
        (
            '[lints]\nRDB-C901 = "warn"\n',
            "app/riffdb.toml:4: there is no lint `RDB-C901`; did you mean `unused-input`?",
        ),
        (
            '[lints]\nunused-input = "eror"\n',
            'app/riffdb.toml:4: `unused-input` must be "allow", "warn" or "error"; did you mean `error`?',
        ),
        ("[lints]\nunused-input = 1\n", 'app/riffdb.toml:4: `unused-input` must be "allow", "warn" or "error"'),
        ("lints = 1\n", "app/riffdb.toml:3: unknown key `lints` in `[application]`"),
    ],
)
def test_a_configuration_that_is_wrong(folder: Path, text: str, message: str) -> None:
    configure(folder, text)
    assert refusal(folder).startswith(message)


def test_a_name_is_needed_and_is_one(folder: Path) -> None:
    (folder / "riffdb.toml").write_text("", encoding="utf-8")
    assert refusal(folder).endswith('the application has no name; add `name = "…"` under `[application]`')
    (folder / "riffdb.toml").write_text('[application]\nname = "a b"\n', encoding="utf-8")
    assert refusal(folder).startswith("app/riffdb.toml:2: `name` must be a name of letters,")


def test_bytes_that_are_no_source(folder: Path) -> None:
    (folder / "work.riff").write_bytes(b"// one\n// \xff\n")
    assert refusal(folder) == "app/work.riff:2: the file is not UTF-8; save it as UTF-8"
    (folder / "work.riff").write_bytes(b" " * ((1 << 20) + 1))
    assert refusal(folder) == "`app/work.riff` is over 1048576 bytes, the most that one file may have; split it"


def test_a_link_out_of_the_folder_is_not_followed(folder: Path) -> None:
    (folder.parent / "secret.riff").write_text("", encoding="utf-8")
    (folder / "link.riff").symlink_to(folder.parent / "secret.riff")
    assert refusal(folder) == "app/riffdb.toml:1: `app/link.riff` leads out of the folder; copy the file into it"


@pytest.mark.parametrize(("level", "severity"), [("allow", None), ("warn", "warning"), ("error", "error")])
def test_a_lint_has_the_level_of_the_configuration(folder: Path, level: str, severity: str | None) -> None:
    copy_of_queue(folder, f'[lints]\nunused-input = "{level}"\n')
    source = folder / "work.riff"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("input work_id: uuid", "input work_id: uuid input unused: u64", 1), encoding="utf-8")
    _, compilation = compile_application(folder)
    assert [(found.lint, found.severity) for found in compilation.diagnostics] == (
        [("unused-input", severity)] if severity else []
    )
    assert (compilation.plan is None) == (level == "error")


def test_the_policy_is_the_one_of_the_scheduler() -> None:
    assert Policy(**asdict(SchedulePolicy())) == Policy()


def copy_of_queue(folder: Path, configuration: str) -> Path:
    """The queue with other settings."""
    (folder / "work.riff").write_text((QUEUE / "work.riff").read_text(encoding="utf-8"), encoding="utf-8")
    configure(folder, configuration)
    return folder


def test_every_schedule_has_a_policy_within_its_lease(folder: Path) -> None:
    text = (QUEUE / "work.riff").read_text(encoding="utf-8")
    (folder / "work.riff").write_text(text.replace("(5, 900)", "(90, 3600)"), encoding="utf-8")
    application, compilation = compile_application(folder)
    assert compilation.diagnostics == ()
    assert application.schedules == {"DueWorkItems": SchedulePolicy(lease_seconds=90)}


def test_the_queue_is_sound_as_it_ships() -> None:
    application, compilation = compile_application(QUEUE)
    assert compilation.diagnostics == ()
    assert compilation.plan is not None
    assert application.schedules["DueWorkItems"].in_flight == 4


@pytest.mark.parametrize(
    ("settings", "code", "line"),
    [
        ("[schedules.DueWork]\nin_flight = 1\n", "RDB-C880", 3),
        ("[schedules.DueWorkItems]\nlease_seconds = 90\n", "RDB-C881", 4),
    ],
)
def test_a_policy_that_the_contract_does_not_allow(folder: Path, settings: str, code: str, line: int) -> None:
    copy_of_queue(folder, settings)
    source = folder / "work.riff"
    source.write_text(source.read_text(encoding="utf-8").replace("(5, 900)", "(5, 60)"), encoding="utf-8")
    _, compilation = compile_application(folder)
    (found,) = compilation.diagnostics
    assert (found.code, found.span.source.position(found.span.start)[0]) == (code, line)
    assert found.span.source.path == str(folder / "riffdb.toml")
    assert compilation.plan is None
