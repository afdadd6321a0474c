"""Arguments, inputs and variables that nobody should give: each is refused in words, with a code of the table.

Whatever is drawn, no line of Python is shown, stdout is one JSON document when one was asked for, and nothing is left
half done. `serve` and a worker without `--once` are drawn with a target alone that they refuse, since they would stay.
"""

import json
import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.surface.command_line import run_here
from tests.surface.processes import QUEUE, Done

CODES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
PYTHON = re.compile(r'Traceback|  File "|RDB-E-INTERNAL|Error\(')

TEXTS = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                "-",
                "--",
                "---",
                "@",
                "@gone",
                "@.",
                "@work.db",
                "{",
                "}",
                "[]",
                "null",
                "{}",
                '{"a": 1}',
                "\udcff",
                "é💥",
            ),
            *(
                '{"organization_id": "00000000-0000-0000-0000-00000000000a"}',
                '{"request_key": 1e999}',
                '{"\\ud800": 1}',
            ),
            *("sqlite:work.db", "sqlite:", "sqlite:.", "sqlite:gone.db", "sqlite:queue/work.riff", "sqlite:\udcff"),
            *("sqlite:gone/work.db", "sqlite::memory:", "memory:", "memory", "postgresql://x", "file:x"),
            *("http://", "http://[", "http://a b", "https://\udcff", "http://x:0", "http://x:99999", "http://a@b"),
            *("queue", "queue/", "work.db", "CreateWork", "DueWork", "DueWorkItems", "WorkItem", "WorkProducer", "run"),
            *("organization_id=00000000-0000-0000-0000-00000000000a", "a=b", "=", "a=", "=b", "\x1b[2J", "\n"),
            *("handlers:complete", "handlers:", ":x", "json:loads", "..x:y", "os.path:join", "30d", "0s", "1", "-1"),
            *("00000000-0000-0000-0000-00000000000a", "9" * 400, "x" * 5_000, "127.0.0.1:0", "127.0.0.1:99999"),
        ]
    ),
    st.text(st.characters(exclude_characters="\0"), max_size=12),  # which no argument can hold
)
OPTIONS = st.sampled_from(
    [
        *(
            "--json",
            "--db",
            "--server",
            "--role",
            "--input",
            "--once",
            "--param",
            "--owner",
            "--handler",
            "--application",
        ),
        *(
            "--operator",
            "--partition",
            "--expires",
            "--name",
            "--template",
            "--help",
            "--version",
            "--jason",
            "-x",
            "--",
        ),
    ]
)
VERBS = st.sampled_from(
    [
        *(["new"], ["check"], ["deploy"], ["command", "run"], ["command"], ["query", "run"], ["history"]),
        *(["capability", "create"], ["capability", "revoke"], ["worker", "--once"], ["chek"], []),
    ]
)
VARIABLES = st.fixed_dictionaries(
    {},
    optional={
        "RIFFDB_DB": st.sampled_from(["", "sqlite:work.db", "sqlite:gone.db", "x", "memory:"]),
        "RIFFDB_SERVER": st.sampled_from(["", "http://", "http://a b", "x"]),
        "RIFFDB_TOKEN": st.sampled_from(["", "rdb_x", "a b", "é"]),
        "RIFFDB_FAILPOINT": st.sampled_from(["", "x", "commit.after:", "commit.after:kill:0", "commit.after:delay=x"]),
    },
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current folder: the queue as `queue`, deployed on `work.db`."""
    folder = tmp_path_factory.mktemp("hostile")
    with chdir(folder):
        assert run_here("new", "queue").code == 0
        settings_file = folder / "queue" / "riffdb.toml"
        settings_file.write_text(
            re.sub("wait_seconds *= *[0-9]+", "wait_seconds = 0", settings_file.read_text("utf-8")), "utf-8"
        )
        assert run_here("deploy", "queue", "--db", "sqlite:work.db").code == 0
        yield folder


def check(done: Done, arguments: list[str]) -> None:
    """What must be true of any command line."""
    assert done.code in CODES, done
    assert not PYTHON.search(done.stderr), done.stderr
    if done.code != 0:
        assert done.stderr or done.stdout, done
    if "--json" in arguments and done.stdout and not done.stdout.startswith(("Usage: ", "riffdb ")):
        assert [type(json.loads(line)) for line in done.stdout.rstrip("\n").split("\n")] == [dict], done.stdout


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    verb=VERBS, rest=st.lists(st.one_of(TEXTS, OPTIONS), max_size=6), variables=VARIABLES, stdin=st.binary(max_size=40)
)
def test_any_arguments(folder: Path, verb: list[str], rest: list[str], variables: dict[str, str], stdin: bytes) -> None:
    arguments = [*verb, *rest]
    check(run_here(*arguments, stdin=stdin, **variables), arguments)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rest=st.lists(st.one_of(TEXTS, OPTIONS), max_size=4), variables=VARIABLES)
def test_any_arguments_of_a_server(folder: Path, rest: list[str], variables: dict[str, Any]) -> None:
    arguments = ["serve", *rest, "--db", "sqlite:gone.db"]
    check(run_here(*arguments, **variables), arguments)


JSON = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
        st.sampled_from(["00000000-0000-0000-0000-00000000000a", "2026-01-01T00:00:00Z", "\x00", "\ud800", 1 << 64]),
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=3), st.dictionaries(st.text(max_size=4), children, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.one_of(
    st.sampled_from(["request_key", "organization_id", "work_id", "due_at", "self", "name", "/", "limit"]),
    st.text(max_size=6),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.dictionaries(NAMES, JSON, max_size=5),
    kind=st.sampled_from(["command", "query"]),
    is_ascii=st.booleans(),
)
def test_any_input(folder: Path, values: dict[str, object], kind: str, is_ascii: bool) -> None:
    text = json.dumps(values, ensure_ascii=is_ascii)
    name = "CreateWork" if kind == "command" else "DueWork"
    arguments = [kind, "run", name, "--db", "sqlite:work.db", "--json", "--input"]
    for source, stdin in ((text, b""), ("-", text.encode(errors="surrogatepass"))):
        done = run_here(*arguments, source, stdin=stdin)
        check(done, arguments)
        if done.code == 1:
            path = done.json["path"]
            assert any(path.startswith(name) for name in (*values, "organization_id", "work_id", "due_at"))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=60))
def test_any_bytes(folder: Path, raw: bytes) -> None:
    Path("any").write_bytes(raw)
    for arguments in (["--input", "-"], ["--input", "@any"]):
        line = ["query", "run", "DueWork", "--db", "sqlite:work.db", "--json", *arguments]
        check(run_here(*line, stdin=raw), line)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 70 + "1" + "}" * 70,
        '{"request_key": "' + "x" * 2_000_000 + '"}',
        '{"request_key": [' + "1," * 1_000_000 + "1]}",
        "9" * 1_000_000,
    ],
    ids=["open brackets", "70 deep", "a text of 2 MB", "a list of 2 MB", "a number of 1 MB"],
)
def test_sizes(folder: Path, text: str) -> None:
    Path("size.json").write_text(text, "utf-8")
    for target in (["--db", "sqlite:work.db"], ["--db", "memory:"]):
        line = ["command", "run", "CreateWork", *target, "--input", "@size.json", "--json"]
        done = run_here(*line)
        check(done, line)
        assert done.code in (1, 2, 5)
        assert len(done.stderr) < 1_000


@pytest.mark.parametrize(
    ("path", "code"),
    [("queue", 2), ("queue/work.riff", 2), ("empty", 2), ("noise", 2), ("/proc/x", 2), ("/dev/null", 2), ("gone/x", 2)],
)
def test_files_that_hold_no_database(folder: Path, path: str, code: int) -> None:
    Path("empty").write_bytes(b"")
    Path("noise").write_bytes(bytes(range(256)) * 40)
    done = run_here("query", "run", "DueWork", "--db", f"sqlite:{path}", "--json")
    check(done, ["--json"])
    assert done.code == code
    assert Path("noise").read_bytes() == bytes(range(256)) * 40


def test_a_folder_that_takes_no_file(folder: Path) -> None:
    done = run_here("deploy", QUEUE, "--db", "sqlite:/proc/work.db", "--json")
    check(done, ["--json"])
    assert done.code == 9
    made = run_here("new", "/proc/shop", "--json")
    check(made, ["--json"])
    assert made.code == 2
