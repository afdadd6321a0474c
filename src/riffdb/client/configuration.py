"""`riffdb.toml` as typed values: every setting at its value or its default, within its bounds.

A key that nobody reads is an error with a suggestion, never ignored; each error names file and line. Where a setting
stands is kept (`Configuration.span`), so that a later check can point at it.
Absent: files, and the environment and flags, which outrank this file and belong to the edge.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from riffdb.core.errors import RiffError
from riffdb.core.limits import BODY_BYTES_MAX, BODY_DRAIN_BYTES_MAX, HEARTBEAT_SECONDS, WATCHES_MAX
from riffdb.core.lints import LEVELS, LINTS, LintLevel
from riffdb.core.spans import Source, Span
from riffdb.core.suggestions import did_you_mean

SettingPath = tuple[str, ...]

CLAIM_SECONDS_MIN = 5
CLAIM_SECONDS_MAX = 900


@dataclass(frozen=True, slots=True)
class SchedulePolicy:
    """How a worker drives one schedule, as plain values for `scheduler.Policy`, which a check need not load."""

    in_flight: int = 1
    attempts: int = 10
    wait_seconds: int = 5
    lease_seconds: int = 60
    base_retry_seconds: int = 1
    max_retry_seconds: int = 300


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What `riffdb serve` takes when no flag and no environment variable says otherwise."""

    db: str | None = None
    listen: str = "127.0.0.1:7433"
    backups: str | None = None


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """The limits that an operator may lower, or raise within reason; each under its name of `core.limits`.

    Only limits that the server minds stand here.
    """

    body_bytes_max: int = BODY_BYTES_MAX
    watches_max: int = WATCHES_MAX
    heartbeat_seconds: int = HEARTBEAT_SECONDS


@dataclass(frozen=True, slots=True)
class Configuration:
    """All that a `riffdb.toml` says; `schedules` holds the policies that stand there, by schedule."""

    source: Source
    name: str
    files: tuple[str, ...]
    generate: Mapping[str, str]
    schedules: Mapping[str, SchedulePolicy]
    server: ServerSettings
    limits: LimitSettings
    lints: Mapping[str, LintLevel]
    given: frozenset[SettingPath]
    """The settings that stand in the file, such as `("schedules", "DueWorkItems", "in_flight")`."""

    def span(self, *path: str) -> Span:
        """Where a setting or section stands, or the nearest thing around it that does."""
        return _span(self.source, path)


Check = Callable[[Any], str | None]
"""What is wrong with a value, as the rest of a sentence that begins with the setting's name; None if nothing is."""


def _whole(low: int, high: int) -> Check:
    def check(value: Any) -> str | None:
        return None if type(value) is int and low <= value <= high else f"must be a whole number from {low} to {high}"

    return check


def _text(pattern: str, wanted: str) -> Check:
    def check(value: Any) -> str | None:
        return None if isinstance(value, str) and re.fullmatch(pattern, value) else f"must be {wanted}"

    return check


def _globs(value: Any) -> str | None:
    if not isinstance(value, list) or not value or not all(isinstance(glob, str) and glob for glob in value):
        return 'must be a list of at least one glob, such as ["*.riff"]'
    for glob in value:
        parts = re.split(r"[/\\]", glob)
        if ".." in parts or parts[0] in ("", "~") or re.match(r"[A-Za-z]:", glob):
            return f"must stay within the folder; `{glob}` leaves it"
        if any("**" in part and part != "**" for part in parts):
            return f"must have `**` only as a whole part between slashes; `{glob}` has it inside one"
    return None


_PATH = _text(r".+", "a path")

_APPLICATION: dict[str, Check] = {
    "name": _text(r"[A-Za-z][A-Za-z0-9_-]{0,59}", 'a name of letters, digits, `-` and `_`, such as "queue"'),
    "files": _globs,
}
_GENERATE: dict[str, Check] = dict.fromkeys(("python", "typescript", "go", "rust", "openapi", "json"), _PATH)
_SCHEDULE: dict[str, Check] = {
    "in_flight": _whole(1, 8),
    "attempts": _whole(1, 10),
    "lease_seconds": _whole(CLAIM_SECONDS_MIN, CLAIM_SECONDS_MAX),
    "base_retry_seconds": _whole(1, 3_600),
    "max_retry_seconds": _whole(1, 3_600),
    "wait_seconds": _whole(0, 30),
}
_SERVER: dict[str, Check] = {
    "db": _text(r"(sqlite:|postgresql://).+", "the address of a database, such as `sqlite:work.db`"),
    "backups": _PATH,
    "listen": _text(r"[^\s:]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}", "a host and a port, such as `127.0.0.1:7433`"),
}
_LIMITS: dict[str, Check] = {
    "body_bytes_max": _whole(1_024, BODY_DRAIN_BYTES_MAX),
    "watches_max": _whole(0, 10 * WATCHES_MAX),
    "heartbeat_seconds": _whole(1, HEARTBEAT_SECONDS),
}
_SECTIONS = ("application", "generate", "schedules", "server", "limits", "lints")


def parse_configuration(source: Source) -> Configuration:
    """The configuration that the text of a `riffdb.toml` says; `RDB-E-USAGE` with file and line if it is wrong."""
    return _Reader(source).read()


class _Reader:
    """One parsed `riffdb.toml` on its way to a `Configuration`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        try:
            self.values = tomllib.loads(source.text)
        except tomllib.TOMLDecodeError as error:
            place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
            position = f":{place[1]}:{place[2]}" if place else ":1"
            reason = re.sub(r" \(at [^)]*\)$", "", str(error))
            reason = reason[:1].lower() + reason[1:]
            raise RiffError("RDB-E-USAGE", f"{source.path}{position}: this is no valid TOML: {reason}") from None

    def read(self) -> Configuration:
        self.known((), self.values, _SECTIONS)
        application = self.section(("application",), _APPLICATION)
        if "name" not in application:
            self.refuse(("application",), 'the application has no name; add `name = "…"` under `[application]`')
        return Configuration(
            source=self.source,
            name=application["name"],
            files=tuple(application.get("files", ("*.riff",))),
            generate=self.section(("generate",), _GENERATE),
            schedules={name: self.policy(name) for name in self.table(("schedules",))},
            server=ServerSettings(**self.section(("server",), _SERVER)),
            limits=LimitSettings(**self.section(("limits",), _LIMITS)),
            lints=self.lints(),
            given=frozenset(_paths(self.values)),
        )

    def policy(self, schedule: str) -> SchedulePolicy:
        policy = SchedulePolicy(**self.section(("schedules", schedule), _SCHEDULE))
        if policy.base_retry_seconds > policy.max_retry_seconds:
            self.refuse(
                ("schedules", schedule, "base_retry_seconds"),
                f"`base_retry_seconds` ({policy.base_retry_seconds}) must not pass"
                f" `max_retry_seconds` ({policy.max_retry_seconds})",
            )
        return policy

    def lints(self) -> dict[str, LintLevel]:
        """The levels that the file gives to lints, by their names."""
        levels = self.table(("lints",))
        for name, level in levels.items():
            path = ("lints", name)
            if name not in LINTS:
                by_code = {lint.code: lint.name for lint in LINTS.values()}
                advice = f"; did you mean `{by_code[name]}`?" if name in by_code else did_you_mean(name, LINTS)
                self.refuse(path, f"there is no lint `{name}`{advice}")
            if level not in LEVELS:
                advice = did_you_mean(level, LEVELS) if isinstance(level, str) else ""
                self.refuse(path, f'`{name}` must be "allow", "warn" or "error"{advice}')
        return levels

    def section(self, path: SettingPath, checks: Mapping[str, Check]) -> dict[str, Any]:
        table = self.table(path)
        self.known(path, table, checks)
        for name, value in table.items():
            self.check((*path, name), value, checks[name])
        return table

    def table(self, path: SettingPath) -> dict[str, Any]:
        value: Any = self.values
        for name in path:
            value = value.get(name, {})
        if not isinstance(value, dict):
            self.refuse(path, f"`{path[-1]}` must be a section, `[{'.'.join(path)}]`")
        return value

    def known(self, path: SettingPath, table: Mapping[str, Any], names: Mapping[str, Check] | tuple[str, ...]) -> None:
        for name in table:
            if name not in names:
                where = f"in `[{'.'.join(path)}]`" if path else "at the top"
                advice = did_you_mean(name, names) or f"; there are {', '.join(f'`{known}`' for known in names)}"
                self.refuse((*path, name), f"unknown key `{name}` {where}{advice}")

    def check(self, path: SettingPath, value: Any, check: Check) -> None:
        problem = check(value)
        if problem is not None:
            self.refuse(path, f"`{path[-1]}` {problem}")

    def refuse(self, path: SettingPath, message: str) -> NoReturn:
        span = _span(self.source, path)
        line, _ = self.source.position(span.start)
        raise RiffError("RDB-E-USAGE", f"{self.source.path}:{line}: {message}", path=".".join(path))


def _paths(table: Mapping[str, Any], path: SettingPath = ()) -> list[SettingPath]:
    found: list[SettingPath] = []
    for name, value in table.items():
        found.extend(_paths(value, (*path, name)) if isinstance(value, dict) else [(*path, name)])
    return found


_LINE = re.compile(r"^[ \t]*(?:\[(?P<section>[^\[\]\n]+)\]|(?P<key>[^\s=#\[][^=#\n]*?)[ \t]*=)", re.MULTILINE)


def _span(source: Source, path: SettingPath) -> Span:
    """The header or key that names `path`, or the longest beginning of it that stands in the text."""
    places: dict[SettingPath, tuple[int, int]] = {(): (0, 0)}
    section: SettingPath = ()
    for match in _LINE.finditer(source.text):
        group = "section" if match["section"] is not None else "key"
        names = tuple(part.strip().strip("\"'") for part in match[group].split("."))
        if group == "section":
            section = names
        whole = names if group == "section" else (*section, *names)
        for length in range(1, len(whole) + 1):
            places.setdefault(whole[:length], match.span(group))
    while path not in places:
        path = path[:-1]
    return Span(source, *places[path])
