"""Schedules: a selection tied to the commands of one workflow, proven to make a worker's turn without further code.

The claim says which row is leased; every other command acts on that row, and only so that a dead worker's late command
is told from the business's own refusal. What an adapter needs of each command is read off its plan.
Absent: single commands (`scheduled_commands`), items (`schedule_items`, `schedule_selection`), and policies, which are
configuration.
"""

from collections.abc import Iterable
from dataclasses import replace

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft, present
from riffdb.compiler.places import command_place, is_whole, step_place
from riffdb.compiler.schedule_items import Items, check_items, query_items, stream_items
from riffdb.compiler.schedule_selection import check_selection
from riffdb.compiler.scheduled_commands import (
    Leased,
    Purpose,
    Scheduled,
    adapter_of,
    check_key,
)
from riffdb.compiler.steps import all_steps, is_on_every_path
from riffdb.core.diagnostics import Related
from riffdb.plan.commands import BindStep, CommandPlan, DecideStep, LeaseStep, RequireStep, Step
from riffdb.plan.queries import ScheduledCommand, SchedulePlan
from riffdb.syntax.tree import Name, ScheduleDecl

CLAIM_SECONDS = (5, 900)
"""The least and the most seconds for which a worker claims."""

OPERATIONS = {"claim": "claim", "renew": "renew", "release": "release"}
CODES = {"claim": "RDB-C800", "renew": "RDB-C801", "release": "RDB-C802"}
NOUNS = {"claim": "a claim", "renew": "a renewal", "release": "a release"}


def lower_schedules(draft: Draft, collector: Collector) -> Draft:
    """Fill in the schedules of the plan."""
    schedules = {name: _Schedule(decl, draft, collector).lower() for name, decl in draft.declared.schedules.items()}
    return replace(draft, schedules=present(schedules))


class _Schedule:
    """One schedule on its way to its plan."""

    def __init__(self, decl: ScheduleDecl, draft: Draft, collector: Collector) -> None:
        self.decl = decl
        self.draft = draft
        self.collector = collector

    def lower(self) -> SchedulePlan | None:
        """The plan of the schedule, or None after at least one diagnostic, here or at what it names."""
        found = len(self.collector.diagnostics)
        has_source = self.has_source()
        commands = self.commands()
        claim = self.claim(commands)
        if claim is None:
            return None
        scheduled, leased = claim
        self.check_lease(scheduled, leased)
        turn = self.turn(commands, scheduled, leased)
        is_from_stream = self.decl.source == "stream"
        adapters = {
            part.purpose: adapter_of(
                part, leased, self.draft, self.collector, is_from_stream and part.purpose == "claim"
            )
            for part in turn
            if part is not None
        }
        run = next((part for part in turn if part is not None and part.purpose == "run"), None)
        items = self.items(leased, run) if has_source else None
        is_broken = any(commands[purpose] is None for purpose in commands)
        if is_broken or items is None or len(self.collector.diagnostics) > found:
            return None
        return self.plan(leased, *items, {purpose: plan for purpose, plan in adapters.items() if plan is not None})

    def plan(self, leased: Leased, items: Items, event: str, adapters: dict[Purpose, ScheduledCommand]) -> SchedulePlan:
        """The plan, when all is proven."""
        decl = self.decl
        assert decl.due is not None
        return SchedulePlan(
            name=decl.name.text,
            source=decl.source,
            source_name=decl.source_name.text,
            items="" if decl.each is None else decl.each.text,
            due=decl.due.text,
            revision=items.revision,
            entity=leased.entity.plan.name,
            workflow=leased.workflow.name,
            claim=adapters["claim"],
            run=adapters["run"],
            release=adapters["release"],
            renew=adapters.get("renew"),
            fail=adapters.get("fail"),
            doc=decl.doc,
            event=event,
        )

    # --- names ---------------------------------------------------------------------------------------------------

    def has_source(self) -> bool:
        """Whether the query or stream exists and compiled."""
        decl, draft = self.decl, self.draft
        declared, compiled = draft.declared.queries.keys(), draft.queries.keys()
        if decl.source == "stream":
            declared, compiled = draft.declared.streams.keys(), draft.streams.keys()
        if decl.source_name.text not in declared:
            message = f"there is no {decl.source} `{decl.source_name.text}`"
            self.collector.unknown("RDB-C104", message, decl.source_name, declared)
        return decl.source_name.text in compiled

    def commands(self) -> dict[Purpose, tuple[Name, CommandPlan] | None]:
        """The commands that the schedule names, by purpose; None for what is unknown or broken."""
        decl, declared = self.decl, self.draft.declared.commands
        named: dict[Purpose, Name | None] = {
            "claim": decl.claim,
            "renew": decl.renew,
            "run": decl.run,
            "release": decl.release,
            "fail": decl.fail,
        }
        found: dict[Purpose, tuple[Name, CommandPlan] | None] = {}
        for purpose, name in named.items():
            if name is None:
                continue
            if name.text not in declared:
                self.collector.unknown("RDB-C104", f"there is no command `{name.text}`", name, declared)
            command = self.draft.commands.get(name.text)
            is_broken = command is None or not is_whole(declared[name.text], command)
            found[purpose] = None if is_broken or command is None else (name, command)
        return found

    def place(self, command: CommandPlan) -> tuple[Related, ...]:
        """Where a command is declared."""
        return (command_place(self.draft.declared.commands[command.name]),)

    # --- the commands of a turn ----------------------------------------------------------------------------------

    def claim(self, commands: dict[Purpose, tuple[Name, CommandPlan] | None]) -> tuple[Scheduled, Leased] | None:
        """The claim and what it leases; None after a diagnostic, or where the command is broken."""
        named = commands.get("claim")
        if named is None:
            return None
        name, command = named
        step = _operation(command.steps, "claim")
        if step is None:
            self.report_operation("claim", name, command)
            return None
        workflow = self.draft.workflows[step.workflow]
        assert workflow.lease is not None
        leased = Leased(self.draft.entities[workflow.entity], workflow, workflow.lease)
        return Scheduled("claim", name, command, _binding(command, step.binding)), leased

    def report_operation(self, purpose: Purpose, name: Name, command: CommandPlan) -> None:
        """Report that a command is not what its place asks for."""
        operations = {step.operation for step in all_steps(command.steps) if isinstance(step, LeaseStep)}
        does = f"has {' and '.join(f'`lease {operation}`' for operation in sorted(operations))}" if operations else ""
        if command.kind == "bulk":
            does = "is a bulk command, and a turn works on one row"
        self.collector.error(
            CODES[purpose],
            f"`{name.text}` is not {NOUNS[purpose]}: it {does or 'has no lease operation'}",
            name.span,
            related=self.place(command),
            help=f"name a command with `lease {OPERATIONS[purpose]}` at its top level",
        )

    def check_lease(self, claim: Scheduled, leased: Leased) -> None:
        """The key fits an attempt identity, and some duration fits both the lease and a worker."""
        check_key(claim.name, leased, self.collector)
        low, high = CLAIM_SECONDS
        lease = leased.lease
        if lease.seconds_min > high or lease.seconds_max < low:
            message = (
                f"a worker claims for {low} to {high} seconds,"
                f" and the lease `{lease.name}` allows {lease.seconds_min} to {lease.seconds_max}"
            )
            declared = self.draft.declared.workflows[leased.workflow.name].lease
            related = () if declared is None else (Related("the lease", declared.name.span),)
            help = "let the bounds of `duration_seconds` overlap with that"
            self.collector.error("RDB-C850", message, claim.name.span, related=related, help=help)

    def turn(
        self, commands: dict[Purpose, tuple[Name, CommandPlan] | None], claim: Scheduled, leased: Leased
    ) -> list[Scheduled | None]:
        """Each command with its leased row; None after a diagnostic."""
        found: list[Scheduled | None] = [claim]
        for purpose, named in commands.items():
            if named is None or purpose == "claim":
                continue
            name, command = named
            if not self.is_of_workflow(purpose, name, command, leased):
                continue
            if purpose == "run":
                found.append(self.run(name, command, leased))
            elif purpose == "fail":
                found.append(self.fail(name, command, leased))
            else:
                found.append(self.single(purpose, name, command, leased))
        return found

    def is_of_workflow(self, purpose: Purpose, name: Name, command: CommandPlan, leased: Leased) -> bool:
        """Whether the command's lease operations, if it has any, are of the claim's workflow."""
        steps = [step for step in all_steps(command.steps) if isinstance(step, LeaseStep)]
        if not steps or any(step.workflow == leased.workflow.name for step in steps):
            return True
        self.collector.error(
            "RDB-C803",
            f"`{name.text}` acts on a lease of `{steps[0].workflow}`, and the claim on one of `{leased.workflow.name}`",
            name.span,
            related=self.place(command),
            help="all commands of a schedule act on the row that is claimed",
        )
        return False

    def single(self, purpose: Purpose, name: Name, command: CommandPlan, leased: Leased) -> Scheduled | None:
        """A renewal or a release."""
        step = _operation(command.steps, OPERATIONS[purpose], leased)
        if step is None:
            self.report_operation(purpose, name, command)
            return None
        return Scheduled(purpose, name, command, _binding(command, step.binding))

    def run(self, name: Name, command: CommandPlan, leased: Leased) -> Scheduled | None:
        """The business command: it looks at the leased row, proves the lease, and only then decides."""
        first = command.steps[0] if command.steps else None
        entity = leased.entity.plan.name
        if not isinstance(first, BindStep) or first.entity != entity or first.kind not in ("mutate", "delete"):
            self.collector.error(
                "RDB-C804",
                f"`{name.text}` does not begin with the leased row",
                name.span,
                related=self.place(command),
                help=f"let its first binding be `mutate {entity}(…) as … else … {{}}`",
            )
            return None
        for position, step in enumerate(command.steps):
            if isinstance(step, LeaseStep) and step.binding == first.name and step.operation in ("fence", "release"):
                self.check_order(name, command, step, command.steps[1:position])
                return Scheduled("run", name, command, first)
        self.collector.error(
            "RDB-C805",
            f"`{name.text}` proves nowhere at its top level that the caller still holds `{first.name}`",
            name.span,
            related=self.place(command),
            help=f"add `lease fence {leased.lease.name} on {first.name} …` below the first binding",
        )
        return None

    def check_order(self, name: Name, command: CommandPlan, lease: LeaseStep, before: Iterable[Step]) -> None:
        """Nothing that can refuse stands before the lease operation, or a zombie could record a refusal."""
        for step in before:
            refusal = _refusal(step)
            if refusal is not None:
                self.collector.error(
                    "RDB-C806",
                    f"in `{name.text}`, {refusal} can refuse before `lease {lease.operation}` has proven the lease",
                    name.span,
                    related=(step_place(self.draft.declared.commands[command.name], step),),
                    help=f"move `lease {lease.operation} …` up, right below the binding `{lease.binding}`",
                )
                return

    def fail(self, name: Name, command: CommandPlan, leased: Leased) -> Scheduled | None:
        """The command after a failure, which gives the lease back whatever else it decides."""

        def releases(step: Step) -> bool:
            return isinstance(step, LeaseStep) and step.operation == "release" and step.workflow == leased.workflow.name

        step = next((step for step in all_steps(command.steps) if releases(step)), None)
        if isinstance(step, LeaseStep) and is_on_every_path(command.steps, releases):
            return Scheduled("fail", name, command, _binding(command, step.binding))
        self.collector.error(
            "RDB-C807",
            f"`{name.text}` does not release the lease on every path to success",
            name.span,
            related=self.place(command),
            help=f"put `lease release {leased.lease.name} on …` at its top level, or into each `apply` of a `decide`",
        )
        return None

    # --- the source ----------------------------------------------------------------------------------------------

    def items(self, leased: Leased, run: Scheduled | None) -> tuple[Items, str] | None:
        """The items of the source, and the event that they are; None after a diagnostic."""
        if self.decl.source == "stream":
            stream = self.draft.streams[self.decl.source_name.text]
            told = stream_items(self.decl, stream, self.draft, leased, self.collector)
            return told if told is not None and check_items(told[0], self.decl, leased, self.collector) else None
        query = self.draft.queries[self.decl.source_name.text]
        found = query_items(self.decl, query, self.draft, leased, self.collector)
        if found is None:
            return None
        items, many = found
        if run is not None:
            written = self.draft.declared.queries[query.name]
            check_selection(self.decl, written, many, run, leased, self.collector)
        return (items, "") if check_items(items, self.decl, leased, self.collector) else None


def _operation(steps: Iterable[Step], operation: str, leased: Leased | None = None) -> LeaseStep | None:
    """The first such lease operation at the top level, on the leased workflow where one is given."""
    for step in steps:
        if not isinstance(step, LeaseStep) or step.operation != operation:
            continue
        if leased is None or step.workflow == leased.workflow.name:
            return step
    return None


def _binding(command: CommandPlan, name: str) -> BindStep:
    return next(step for step in all_steps(command.steps) if isinstance(step, BindStep) and step.name == name)


def _refusal(step: Step) -> str | None:
    """What in a step can refuse, save the row and the lease that are checked first anyway."""
    match step:
        case BindStep(otherwise=otherwise, name=name) if otherwise is not None:
            return f"the `else` of `{name}`"
        case RequireStep(name=name):
            return f"the require `{name}`"
        case DecideStep(binding=binding, arms=arms):
            if any(arm.none is not None or any(map(_refusal, arm.steps)) for arm in arms):
                return f"the decide on `{binding}`"
    return None
