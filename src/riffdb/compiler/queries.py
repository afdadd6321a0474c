"""Queries: parameters, bindings in one partition on one snapshot, the answer.

What each part says is lowered elsewhere: `query_bindings` with `query_paths`, `access_paths` and `conditions` for what
is read and how, `query_answers` for what is told of it. Here they become one plan, or none.
"""

from dataclasses import replace

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft, present
from riffdb.compiler.linking import NameScope
from riffdb.compiler.params import lower_params
from riffdb.compiler.query_answers import Answers, lower_reveals
from riffdb.compiler.query_bindings import Binding, Reading
from riffdb.core.diagnostics import Related
from riffdb.plan.queries import BindingPlan, QueryPlan, RevealPlan
from riffdb.syntax.tree import FromStmt, QueryDecl


def lower_queries(draft: Draft, collector: Collector) -> Draft:
    """Fill in the queries of the plan."""
    queries = {name: _lower(decl, draft, collector) for name, decl in draft.declared.queries.items()}
    return replace(draft, queries=present(queries))


def _lower(decl: QueryDecl, draft: Draft, collector: Collector) -> QueryPlan | None:
    """The plan of a query, or None after at least one diagnostic."""
    params = lower_params(decl.params, draft, collector)
    reveals = lower_reveals(decl.reveals, draft, collector)
    reading = Reading(draft, collector, params, _is_scheduled(decl, draft))
    answers = Answers(draft, collector, params, _revealed(reveals, draft))
    bindings = _bindings(decl, reading, answers)
    if not decl.bindings:
        help = "add `many rows from Entity where … order by … take …`"
        collector.error("RDB-C600", f"`{decl.name.text}` reads nothing", decl.name.span, help=help)
    if decl.answer is None:
        return None
    _check_answer(decl, answers, collector)
    outcome = answers.lower(decl.answer.outcome, decl.bindings)
    if reveals is not None and outcome is not None:
        _check_reveals(decl, reveals, answers, collector)
    is_whole = None not in bindings and len(params.plans) == len(decl.params)
    if outcome is None or reveals is None or reading.partition is None or not is_whole:
        return None
    return QueryPlan(
        name=decl.name.text,
        params=params.plans,
        partition=reading.partition[0],
        bindings=tuple(binding for binding in bindings if binding is not None),
        outcome=outcome.name,
        payload=outcome.payload,
        reveals=reveals,
        doc=decl.doc,
    )


def _revealed(reveals: tuple[RevealPlan, ...] | None, draft: Draft) -> set[tuple[str, str]]:
    """The secrets that may be shown: where the header is broken any may have been meant."""
    if reveals is None:
        return {(name, secret) for name, entity in draft.entities.items() for secret in entity.secrets}
    return {(part.entity, part.field) for part in reveals}


def _is_scheduled(decl: QueryDecl, draft: Draft) -> bool:
    return any(
        schedule.source == "query" and schedule.source_name.text == decl.name.text
        for schedule in draft.declared.schedules.values()
    )


def _bindings(decl: QueryDecl, reading: Reading, answers: Answers) -> list[BindingPlan | None]:
    """Each binding's plan in source order; the `else` of a `one` may tell of the bindings above it."""
    names = NameScope("a binding", reading.collector)
    found: list[BindingPlan | None] = []
    for position, statement in enumerate(decl.bindings):
        if not names.add(statement.name) or not _is_free(statement, reading):
            found.append(None)
            continue
        missing = None
        if statement.otherwise is not None:
            missing = answers.lower(statement.otherwise, decl.bindings[:position])
        plan = Binding(reading, statement).lower(missing)
        is_whole = statement.kind != "one" or missing is not None
        found.append(plan if is_whole else None)
    return found


def _is_free(statement: FromStmt, reading: Reading) -> bool:
    """Whether the binding leaves the names of enums to them."""
    name = statement.name
    if name.text not in reading.draft.declared.enums:
        return True
    message = f"`{name.text}` is an enum, and a binding needs a name of its own"
    reading.collector.error("RDB-C516", message, name.span)
    return False


def _check_answer(decl: QueryDecl, answers: Answers, collector: Collector) -> None:
    """The outcome of the answer is none that says a row is missing."""
    assert decl.answer is not None
    name = decl.answer.outcome.name
    first = answers.outcomes.get(name.text)
    if first is not None:
        collector.error(
            "RDB-C512",
            f"`{name.text}` is a failure of this query, so it cannot be a success too",
            name.span,
            related=(Related("first used here", first[0].span),),
            help="give one of the two another name",
        )
        answers.outcomes[name.text] = (first[0], None)


def _check_reveals(decl: QueryDecl, reveals: tuple[RevealPlan, ...], answers: Answers, collector: Collector) -> None:
    """Every secret that the header names is shown."""
    for part, plan in zip(decl.reveals, reveals, strict=True):
        if (plan.entity, plan.field) not in answers.shown:
            message = f"`{decl.name.text}` reveals `{part.span.text}` and does not show it"
            collector.error("RDB-C641", message, part.span, help="select it by its name, or take it out of the header")
