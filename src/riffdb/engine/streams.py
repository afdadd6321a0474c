"""A stream as generated source: its partition, and for each of its events whether the event passes.

A condition reads parameters and fields of the event alone, so the same event passes or is dropped each time it is
looked at. Names: `p0` parameter, `f0` field of the event. Absent: reading events, consumers, deliveries.
"""

from collections.abc import Mapping

from riffdb.engine.arithmetic import offered_functions
from riffdb.engine.evaluation import CompiledStream
from riffdb.engine.expressions import ATOM, Scope, Term, expression_text, rowless
from riffdb.engine.source import Source, execute, note, numbered, row_of
from riffdb.plan import Plan
from riffdb.plan.expressions import Field, leaves
from riffdb.plan.queries import StreamEventPlan, StreamPlan


def compile_stream(plan: Plan, name: str) -> CompiledStream:
    """The functions of a stream; `KeyError` if there is none."""
    stream = plan.stream(name)
    source = Source()
    params = {part.name: f"p{number}" for number, part in enumerate(stream.params)}
    with source.block("def partition(params):"):
        _unpack(source, list(params.values()), "params")
        scope = rowless("the partition", params, source.temporary)
        source.line(f"return {expression_text(stream.partition, scope)}")
    reads = {part.event: _fields_read(part) for part in stream.events if part.where is not None}
    for number, part in enumerate(stream.events):
        if part.where is not None:
            _condition(source, stream, number, reads[part.event], params)
    namespace = execute(name, source.text, offered_functions(name) | {"tuple": tuple})
    conditions = {
        part.event: namespace[f"passes{number}"] for number, part in enumerate(stream.events) if part.where is not None
    }
    return CompiledStream(name, namespace["partition"], reads, conditions, source.text)


def _fields_read(part: StreamEventPlan) -> tuple[str, ...]:
    assert part.where is not None
    return tuple(dict.fromkeys(leaf.name for leaf in leaves(part.where) if isinstance(leaf, Field)))


def _condition(
    source: Source, stream: StreamPlan, number: int, reads: tuple[str, ...], params: Mapping[str, str]
) -> None:
    part = stream.events[number]
    assert part.where is not None
    names = {name: f"f{place}" for place, name in enumerate(reads)}

    def no_row(binding: str) -> Term:
        raise AssertionError("an event has no row and no revision of its own")

    scope = Scope(
        f"event {part.event}", params, lambda _, name: Term(names[name], ATOM), no_row, no_row, source.temporary
    )
    source.line()
    source.line()
    source.line(note(f"event {part.event}: {numbered(reads)}"))
    with source.block(f"def passes{number}(params, fields):"):
        _unpack(source, list(params.values()), "params")
        _unpack(source, list(names.values()), "fields")
        source.line(f"return {expression_text(part.where, scope)}")


def _unpack(source: Source, names: list[str], values: str) -> None:
    if names:
        source.line(f"{row_of(names)} = {values}")
