"""Enums: variants in declared order, which is their ordinal, each name once.

An enum with a variant twice keeps the first of the two, so that expressions over it are still checked.
"""

from dataclasses import replace

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.linking import NameScope
from riffdb.plan.declarations import EnumPlan
from riffdb.syntax.tree import EnumDecl


def lower_enums(draft: Draft, collector: Collector) -> Draft:
    """Lower every enum."""
    return replace(draft, enums={name: _enum(decl, collector) for name, decl in draft.declared.enums.items()})


def _enum(decl: EnumDecl, collector: Collector) -> EnumPlan:
    scope = NameScope("a variant", collector)
    return EnumPlan(decl.name.text, tuple(name.text for name in decl.variants if scope.add(name)), decl.doc)
