"""Parameters of queries and streams: their types, their defaults, their names.

A parameter whose declaration is broken stays known by name, so that its uses are silent.
Absent: what a parameter is used for, which whoever declares it checks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.expressions import lower_constant
from riffdb.compiler.linking import NameScope
from riffdb.compiler.typing import lower_type
from riffdb.core.types import Type
from riffdb.plan.commands import InputPlan
from riffdb.syntax.tree import ParamDecl


@dataclass(frozen=True, slots=True)
class Params:
    """The parameters of one declaration; `broken` holds, with the `$`, those that have an error already."""

    plans: tuple[InputPlan, ...]
    types: Mapping[str, Type]
    broken: frozenset[str]


def lower_params(declared: Sequence[ParamDecl], draft: Draft, collector: Collector) -> Params:
    """The parameters in source order."""
    names = NameScope("a parameter", collector)
    plans = {param.name.text: _lower_param(param, draft, collector) for param in declared if names.add(param.name)}
    whole = {name: plan for name, plan in plans.items() if plan is not None}
    return Params(
        plans=tuple(whole.values()),
        types={name: plan.type for name, plan in whole.items()},
        broken=frozenset(f"${name}" for name in plans.keys() - whole.keys()),
    )


def _lower_param(param: ParamDecl, draft: Draft, collector: Collector) -> InputPlan | None:
    kind = lower_type(param.type, draft.declared, "param", collector)
    if kind is None:
        return None
    if param.default is None:
        return InputPlan(param.name.text, kind)
    default = lower_constant(param.default, draft.enums, kind, collector)
    return None if default is None else InputPlan(param.name.text, kind, has_default=True, default=default.value)
