"""Standard streams as they may be: closed, full, a pipe that nobody reads, another locale. Never a traceback, and the
exit code tells how it went."""

import json
import os
import signal
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from tests.surface.command_line import run_here
from tests.surface.processes import QUEUE, RIFFDB, Done

PARAMS = json.dumps({"organization_id": str(uuid4())})
QUERY = ("query", "run", "DueWork", "--db", "sqlite:work.db", "--input", PARAMS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of the queue in it, `work.db`."""
    folder = tmp_path_factory.mktemp("streams")
    assert run_here("deploy", QUEUE, "--db", f"sqlite:{folder}/work.db").code == 0
    return folder


def redirected(folder: Path, redirections: str, *arguments: str, **environment: str) -> Done:
    """Run `riffdb` from a shell with these redirections."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {redirections}', RIFFDB, *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode(errors="backslashreplace"))


def check_no_traceback(done: Done) -> None:
    """Nothing of Python's is shown."""
    assert "Traceback" not in done.stderr
    assert "RDB-E-INTERNAL" not in done.stderr


@pytest.mark.parametrize("redirections", ["<&-", "2>&-", "<&- 2>&-", "2>/dev/full"])
def test_data_needs_stdout_alone(folder: Path, redirections: str) -> None:
    done = redirected(folder, redirections, *QUERY, "--json")
    assert (done.code, done.json["outcome"], done.stderr) == (0, "Due", "")


@pytest.mark.parametrize("redirections", [">&-", "<&- >&-", ">/dev/full"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_data_that_cannot_be_written_is_a_failure(folder: Path, redirections: str, options: tuple[str, ...]) -> None:
    done = redirected(folder, redirections, *QUERY, *options)
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: stdout cannot be written: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
def test_an_error_keeps_its_code(folder: Path, redirections: str) -> None:
    done = redirected(folder, redirections, "query", "run", "Due", "--db", "sqlite:work.db", "--json")
    assert done.code == 5
    check_no_traceback(done)


@pytest.mark.parametrize("redirections", ["<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_what_has_no_data_needs_no_stream(folder: Path, redirections: str) -> None:
    assert redirected(folder, redirections, "check", str(QUEUE)).code == 0


def test_no_file_of_the_database_comes_to_lie_under_a_closed_stream(folder: Path) -> None:
    work = json.dumps({"organization_id": str(uuid4()), "work_id": str(uuid4()), "due_at": "2026-01-01T00:00:00Z"})
    arguments = ["command", "run", "CreateWork", "--db", "sqlite:work.db", "--input", work]
    with subprocess.Popen(
        ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', RIFFDB, *arguments],
        cwd=folder,
        env=os.environ | {"RIFFDB_FAILPOINT": "commit.before:pause"},
    ) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        try:
            assert os.WIFSTOPPED(status)
            assert {os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (0, 1, 2)} == {os.devnull}
        finally:
            os.kill(process.pid, signal.SIGCONT)
    assert process.returncode == 1  # the answer could not be shown
    assert run_here("query", "run", "DueWork", "--db", f"sqlite:{folder}/work.db", "--input", PARAMS).code == 0


def test_stdin_that_is_closed_or_empty(folder: Path) -> None:
    run = ("query", "run", "DueWork", "--db", "sqlite:work.db", "--input", "-")
    closed = redirected(folder, "<&-", *run)
    assert (closed.code, closed.stderr.startswith("error[RDB-E-USAGE]: --input: stdin is closed")) == (2, True)
    empty = redirected(folder, "</dev/null", *run)
    assert (empty.code, empty.stderr.startswith("error[RDB-E-USAGE]: --input: there is nothing in it")) == (2, True)


def test_a_source_without_end_is_refused(folder: Path) -> None:
    for source, redirections in (("-", "</dev/zero"), ("@/dev/zero", "")):
        run = ("query", "run", "DueWork", "--db", "sqlite:work.db", "--input", source)
        done = redirected(folder, redirections, *run)
        assert (done.code, done.stderr.startswith("error[RDB-E-TOO-LARGE]: ")) == (1, True)


@pytest.mark.parametrize("arguments", [QUERY, (*QUERY, "--json"), ("--help",), ("check", "gone", "--json")])
def test_a_pipe_that_nobody_reads(folder: Path, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run([RIFFDB, *arguments], cwd=folder, stdout=pipe, stderr=subprocess.PIPE, text=True)
    shown = Done(done.returncode, "", done.stderr)
    check_no_traceback(shown)
    if "gone" in arguments:
        assert (shown.code, shown.stderr.count("\n")) == (2, 1)
    else:
        assert (shown.code, shown.stderr) == (1, "")


def test_a_full_disk_under_the_help(folder: Path) -> None:
    done = redirected(folder, ">/dev/full", "--help")
    assert done.code != 0
    check_no_traceback(done)
    assert done.stderr.count("\n") == 1


LOCALES = [
    {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1:strict"},
]


@pytest.mark.parametrize("locale", LOCALES, ids=lambda locale: " ".join(f"{name}={locale[name]}" for name in locale))
def test_json_is_utf8_in_every_locale(folder: Path, locale: dict[str, str]) -> None:
    application = folder / "café"
    application.mkdir(exist_ok=True)
    (application / "riffdb.toml").write_text('[application]\nname = "cafe"\nnom = "☕"\n', "utf-8")
    done = redirected(folder, "", "check", "café", "--json", **locale)
    assert done.code == 2
    check_no_traceback(done)
    assert done.json["detail"].startswith("caf")
    assert "unknown key `nom`" in done.json["detail"]


@pytest.mark.parametrize("locale", LOCALES, ids=lambda locale: " ".join(f"{name}={locale[name]}" for name in locale))
def test_values_come_as_utf8_in_every_locale(folder: Path, locale: dict[str, str]) -> None:
    work = {"organization_id": str(uuid4()), "work_id": str(uuid4()), "due_at": "2026-01-01T00:00:00Z"}
    run = ("command", "run", "CreateWork", "--db", "sqlite:work.db", "--input")
    assert redirected(folder, "", *run, json.dumps(work | {"request_key": "☕"}), **locale).code == 0
    raw = json.dumps(work | {"request_key": "☕"}, ensure_ascii=False)
    done = redirected(folder, "", *run, raw, "--json", **locale)
    assert done.json["replayed"] is True


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}])
def test_nothing_is_coloured(folder: Path, variables: dict[str, str]) -> None:
    for arguments in (("check", "\x1b[31mred"), ("--help",)):
        done = redirected(folder, "", *arguments, **variables)
        assert "\x1b" not in done.stdout + done.stderr
