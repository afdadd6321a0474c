"""Expressions of a plan in words: what is read again means the same."""

import pytest

from riffdb.compiler import compile
from riffdb.core.spans import Source
from riffdb.plan import Plan
from riffdb.plan.wording import wording

CONDITIONS = [
    "a == $a",
    "(a == $a || b == $b) && (a == $a && b == $b || b is null)",
    "b is not null && b < -5",
    "kind in (Kind.Old, Kind.New)",
    "kind not in $kinds",
    "!flag || flag && !(flag || a > 3)",
    "price > 12.50",
    "price <= $price - 1.00",
    "a == $a - ($a - 1) - 2",
    'name == "with \\"quotes\\" and é"',
    "since <= tx.time - seconds(60)",
    "since < max($since, tx.time)",
    "id == $id",
    "revision > 3",
    "$b is null",
    "b == null",
    "a > (if $a > 1 then $a else 0)",
]

CONTRACT = """
contract Words version 1 {
  enum Kind { Old, New }
  entity Thing {
    key (id: uuid, a: i64)
    field b: optional<i64>
    field kind: Kind
    field flag: bool
    field price: decimal<8,2>
    field name: string<40>
    field since: timestamp
  }
}
query All($id: uuid, $a: i64, $b: optional<i64>, $kinds: list<Kind, 1..2>, $price: decimal<8,2>, $since: timestamp) {
  maybe thing from Thing where id == $id && a == $a && (CONDITION)
  return All { thing: thing }
}
"""


def plan_with(condition: str) -> Plan:
    compilation = compile("words", [Source("words.riff", CONTRACT.replace("CONDITION", condition))])
    assert compilation.plan is not None, [found.message for found in compilation.diagnostics]
    return compilation.plan


def text_of(plan: Plan) -> str:
    return wording(plan.queries[0].bindings[0].where, plan.enum_variants())


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_words_of_an_expression_mean_the_same(condition: str) -> None:
    plan = plan_with(condition)
    text = text_of(plan)
    again = compile("words", [Source("words.riff", CONTRACT.replace("id == $id && a == $a && (CONDITION)", text))])
    assert again.plan is not None, text
    assert again.plan.queries[0].bindings[0].where == plan.queries[0].bindings[0].where
