"""The compiler: from source text to a plan, in ordered passes over a draft.

`linking` names to declarations, `collisions` of names; then one pass a family, each on the families before it: `enums`,
`records`, `entities` (`indexes`), `rules`, `events`, `workflows`, `commands` (`bindings`, `effects`, `leases`, `loops`,
`outcomes`, `breaches`), `queries` (`query_bindings`, `query_answers`; paths: `conditions`, `query_paths`,
`access_paths`, `advice`), `streams`, `roles`, `schedules` (`scheduled_commands`, `schedule_items`,
`schedule_selection`), `lints`. Shared: `collector` with `repeats`, `draft`, `typing`, `scope`, `expressions`,
`literals`, `declaration_places`. A source with a mistake in its syntax goes no further than the parser, and one with
more parts than a declaration may have no further than `sizes`, so that no error is only the shadow of another. Absent:
reading files, rendering diagnostics, anything at run time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from riffdb.compiler.collector import Collector
from riffdb.compiler.collisions import check_collisions
from riffdb.compiler.commands import lower_commands
from riffdb.compiler.declaration_places import place_of
from riffdb.compiler.draft import Declared, Draft
from riffdb.compiler.entities import lower_entities
from riffdb.compiler.enums import lower_enums
from riffdb.compiler.events import lower_events
from riffdb.compiler.linking import link
from riffdb.compiler.lints import find_lints
from riffdb.compiler.queries import lower_queries
from riffdb.compiler.records import lower_records
from riffdb.compiler.repeats import without_repeats
from riffdb.compiler.roles import lower_roles
from riffdb.compiler.rules import lower_rules
from riffdb.compiler.schedules import lower_schedules
from riffdb.compiler.sizes import oversized
from riffdb.compiler.streams import lower_streams
from riffdb.compiler.workflows import lower_workflows
from riffdb.core.diagnostics import Diagnostic, has_errors
from riffdb.core.limits import DIAGNOSTICS_MAX
from riffdb.core.lints import LintLevel
from riffdb.core.spans import Source, Span
from riffdb.plan import Plan
from riffdb.syntax import parse

Pass = Callable[[Draft, Collector], Draft]

PASSES: tuple[Pass, ...] = (
    link,
    check_collisions,
    lower_enums,
    lower_records,
    lower_entities,
    lower_rules,
    lower_events,
    lower_workflows,
    lower_commands,
    lower_queries,
    lower_streams,
    lower_roles,
    lower_schedules,
)


@dataclass(frozen=True, slots=True)
class Compilation:
    """What a compilation gave: the plan, absent exactly if an error is among the diagnostics, which are in the order
    of files and places."""

    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...]
    declared: Declared

    def place(self, family: str, declaration: str, member: str = "") -> Span | None:
        """Where a part of the plan stands in the sources, or what is around it."""
        return place_of(self.declared, family, declaration, member)


def compile(application: str, sources: Sequence[Source], lints: Mapping[str, LintLevel] | None = None) -> Compilation:
    """Compile the sources of one application; at most 100 diagnostics, errors before warnings where some must go.

    `lints` gives lints by name another level than their own."""
    collector = Collector(lints)
    trees = []
    for source in sources:
        tree, found = parse(source)
        trees.append(tree)
        collector.diagnostics.extend(found)
    if not has_errors(collector.diagnostics):
        collector.diagnostics.extend(oversized(trees))
    draft = Draft(application, tuple(trees))
    if not has_errors(collector.diagnostics):
        for step in PASSES:
            draft = step(draft, collector)
            if draft.declared.contract is None:
                break
    diagnostics = without_repeats(collector.diagnostics, trees)
    if not has_errors(diagnostics):
        find_lints(draft, collector)
        diagnostics = [*diagnostics, *collector.lints]
    plan = None if has_errors(diagnostics) else _assembled(draft)
    return Compilation(plan, _ordered(diagnostics), draft.declared)


def _ordered(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    placed = sorted(diagnostics, key=lambda found: (found.span.source.path, found.span.start, found.code))
    kept = sorted(placed, key=lambda found: found.severity)[:DIAGNOSTICS_MAX]
    return tuple(found for found in placed if found in kept) if len(placed) > len(kept) else tuple(placed)


def _assembled(draft: Draft) -> Plan:
    contract = draft.declared.contract
    assert contract is not None
    return Plan(
        application=draft.application,
        contract=contract.name.text,
        version=contract.version,
        enums=tuple(draft.enums.values()),
        records=tuple(record.plan for record in draft.records.values()),
        entities=tuple(entity.plan for entity in draft.entities.values()),
        events=tuple(event.plan for event in draft.events.values()),
        workflows=tuple(draft.workflows.values()),
        commands=tuple(draft.commands.values()),
        queries=tuple(draft.queries.values()),
        streams=tuple(draft.streams.values()),
        roles=tuple(draft.roles.values()),
        schedules=tuple(draft.schedules.values()),
    )
