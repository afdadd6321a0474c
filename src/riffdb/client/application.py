"""An application as it lies in a folder: its `riffdb.toml`, the `.riff` files named there, and what they compile to.

Whatever the folder lacks or says wrongly is one `RDB-E-USAGE` with the place and the remedy; mistakes inside the
contract, and settings that the contract does not allow, are diagnostics. No file outside the folder is read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from riffdb.client.configuration import (
    CLAIM_SECONDS_MAX,
    CLAIM_SECONDS_MIN,
    Configuration,
    SchedulePolicy,
    ServerSettings,
    parse_configuration,
)
from riffdb.client.configuration import LimitSettings as LimitSettings
from riffdb.compiler import Compilation, compile
from riffdb.core.diagnostics import Diagnostic, render, to_json
from riffdb.core.errors import RiffError
from riffdb.core.limits import SOURCE_BYTES_MAX
from riffdb.core.spans import Source
from riffdb.core.suggestions import did_you_mean
from riffdb.plan import Plan
from riffdb.plan.queries import SchedulePlan

CONFIGURATION_FILE = "riffdb.toml"
_FILES = ("application", "files")


@dataclass(frozen=True, slots=True)
class Application:
    """A loaded folder. `schedules` holds the policies of `riffdb.toml`; `compile_application` completes them."""

    name: str
    folder: Path
    sources: tuple[Source, ...]
    configuration: Configuration
    schedules: Mapping[str, SchedulePolicy]

    @property
    def server(self) -> ServerSettings:
        """The settings of `riffdb serve`."""
        return self.configuration.server

    @property
    def limits(self) -> LimitSettings:
        """The limits of the server."""
        return self.configuration.limits


def read_configuration(folder: Path) -> Configuration:
    """What the `riffdb.toml` of a folder says, without its sources; `RDB-E-USAGE` if it cannot be read."""
    if not folder.is_dir():
        kind = "a file, not a folder" if folder.exists() else "not there"
        raise _usage(f"`{folder}` is {kind}; name the folder of an application, or make one with `riffdb new NAME`")
    path = folder / CONFIGURATION_FILE
    if not path.is_file():
        raise _usage(
            f"`{folder}` has no {CONFIGURATION_FILE}, so it is no application; name another folder,"
            " or make an application with `riffdb new NAME`"
        )
    return parse_configuration(read_source(path))


def load_application(folder: Path) -> Application:
    """The application in a folder, its sources in the order of their paths; `RDB-E-USAGE` if it cannot be read."""
    configuration = read_configuration(folder)
    return Application(
        name=configuration.name,
        folder=folder,
        sources=tuple(read_source(file) for file in _source_files(folder, configuration)),
        configuration=configuration,
        schedules=dict(configuration.schedules),
    )


def compile_application(folder: Path) -> tuple[Application, Compilation]:
    """The application in a folder and what it compiles to; every schedule of the plan then has its policy.

    `RDB-E-USAGE` if the folder cannot be read; whatever is wrong with the contract is in the diagnostics.
    """
    return compile_loaded(load_application(folder))


def compile_loaded(application: Application) -> tuple[Application, Compilation]:
    """An application that is loaded, its schedules with their policies, and what it compiles to."""
    compilation = compile(application.name, application.sources, application.configuration.lints)
    if compilation.plan is None:
        return application, compilation
    problems = tuple(_policy_problems(application.configuration, compilation.plan))
    if problems:  # warnings wait until nothing is wrong
        return application, replace(compilation, plan=None, diagnostics=problems)
    schedules = _policies(application.configuration, compilation.plan)
    return replace(application, schedules=schedules), compilation


def deployed_policy(configuration: Configuration | None, plan: Plan, name: str) -> SchedulePolicy:
    """The policy of one schedule of the contract that is deployed, which need not be what the folder compiles to.

    `RDB-E-USAGE` with its place for a setting that this contract does not allow.
    """
    if configuration is None:
        return _fitted(SchedulePolicy(), plan, plan.schedule(name))
    problem = _duration_problem(configuration, plan, plan.schedule(name))
    if problem is not None:
        raise _setting(configuration, problem, "schedules", name, "lease_seconds")
    return _fitted(configuration.schedules.get(name, SchedulePolicy()), plan, plan.schedule(name))


def _usage(message: str) -> RiffError:
    return RiffError("RDB-E-USAGE", message)


def read_source(path: Path) -> Source:
    """The text of one file; `RDB-E-USAGE` if it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(SOURCE_BYTES_MAX + 1)
    except OSError as error:
        raise _usage(f"`{path}` cannot be read: {error.strerror}") from None
    if len(content) > SOURCE_BYTES_MAX:
        raise _usage(f"`{path}` is over {SOURCE_BYTES_MAX} bytes, the most that one file may have; split it")
    try:
        return Source(str(path), content.decode())
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _usage(f"{path}:{line}: the file is not UTF-8; save it as UTF-8") from None


def _source_files(folder: Path, configuration: Configuration) -> list[Path]:
    found: set[Path] = set()
    for pattern in configuration.files:
        files = {path for path in folder.glob(pattern) if path.is_file()}
        if not files and not any(character in pattern for character in "*?["):
            raise _setting(configuration, f"`{folder / pattern}` is named in `files`, and is not there", *_FILES)
        found |= files
    root = folder.resolve()
    for path in found:
        if not path.resolve().is_relative_to(root):
            raise _setting(configuration, f"`{path}` leads out of the folder; copy the file into it", *_FILES)
    if not found:
        globs = ", ".join(f"`{pattern}`" for pattern in configuration.files)
        raise _usage(f"`{folder}` has no file for {globs}; put a contract there, or start from `riffdb new NAME`")
    return sorted(found)


def _setting(configuration: Configuration, message: str, *path: str) -> RiffError:
    span = configuration.span(*path)
    return _usage(f"{span.source.path}:{span.source.position(span.start)[0]}: {message}")


def _policy_problems(configuration: Configuration, plan: Plan) -> Iterator[Diagnostic]:
    """Policies of schedules that the contract has not, and durations that a schedule's lease does not allow."""
    names = [schedule.name for schedule in plan.schedules]
    for name in configuration.schedules:
        if name not in names:
            message = f"there is no schedule `{name}`{did_you_mean(name, names)}"
            yield Diagnostic("RDB-C880", message, configuration.span("schedules", name))
    for schedule in plan.schedules:
        problem = _duration_problem(configuration, plan, schedule)
        if problem is not None:
            yield Diagnostic("RDB-C881", problem, configuration.span("schedules", schedule.name, "lease_seconds"))


def _duration_problem(configuration: Configuration, plan: Plan, schedule: SchedulePlan) -> str | None:
    low, high = _claim_bounds(plan, schedule)
    policy = configuration.schedules.get(schedule.name, SchedulePolicy())
    path = ("schedules", schedule.name, "lease_seconds")
    if path in configuration.given and not low <= policy.lease_seconds <= high:
        return f"`lease_seconds` of `{schedule.name}` must lie between {low} and {high}, the bounds of its lease"
    return None


def _policies(configuration: Configuration, plan: Plan) -> dict[str, SchedulePolicy]:
    given = configuration.schedules
    return {
        schedule.name: _fitted(given.get(schedule.name, SchedulePolicy()), plan, schedule)
        for schedule in plan.schedules
    }


def _fitted(policy: SchedulePolicy, plan: Plan, schedule: SchedulePlan) -> SchedulePolicy:
    """The policy with its lease moved into the bounds; one that is given lies there already."""
    low, high = _claim_bounds(plan, schedule)
    return replace(policy, lease_seconds=min(max(policy.lease_seconds, low), high))


def _claim_bounds(plan: Plan, schedule: SchedulePlan) -> tuple[int, int]:
    lease = plan.workflow(schedule.workflow).lease
    assert lease is not None
    return max(lease.seconds_min, CLAIM_SECONDS_MIN), min(lease.seconds_max, CLAIM_SECONDS_MAX)


def compiled_plan(folder: str | Path) -> Plan:
    """The plan of an application's folder; `RDB-E-CONTRACT` with the rendered diagnostics if it has errors."""
    return sound_plan(compile_application(Path(folder))[1])


def sound_plan(compilation: Compilation) -> Plan:
    """The plan of a compilation; `RDB-E-CONTRACT` with the rendered diagnostics if there is none."""
    if compilation.plan is None:
        text = "\n".join(render(diagnostic) for diagnostic in compilation.diagnostics)
        facts = {"diagnostics": [to_json(diagnostic) for diagnostic in compilation.diagnostics]}
        raise RiffError("RDB-E-CONTRACT", f"the contract has errors:\n\n{text}", detail=facts)
    return compilation.plan
