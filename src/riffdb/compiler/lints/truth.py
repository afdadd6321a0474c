"""What is known of a condition whatever the rows hold: that it always holds, never does, or neither.

Only what is certain: constants, whole numbers without sign against 0, a value beside itself, and the variants of an
enum that the arms above have taken. Null is nobody's guess: what may be null is not judged.
Absent: ranges, arithmetic, what other conditions imply.
"""

from collections.abc import Mapping

from riffdb.plan.declarations import EnumPlan
from riffdb.plan.expressions import Among, Binary, Constant, Expression, Unary


def truth(condition: Expression) -> bool | None:
    """Whether the condition always holds (True) or never does (False); None where neither is certain."""
    match condition:
        case Constant(value=bool() as value):
            return value
        case Unary(operator="!", operand=operand):
            inner = truth(operand)
            return None if inner is None else not inner
        case Binary(operator="&&" | "||" as operator, left=left, right=right):
            ends = operator == "||"
            sides = truth(left), truth(right)
            if ends in sides:
                return ends
            return not ends if None not in sides else None
        case Binary(operator="==" | "!=" | "<" | "<=" | ">" | ">="):
            return _comparison(condition)
    return None


def _comparison(comparison: Binary) -> bool | None:
    left, right, operator = comparison.left, comparison.right, comparison.operator
    if left == right:
        return operator in ("==", "<=", ">=")
    if isinstance(left, Constant) and isinstance(right, Constant):
        if operator in ("==", "!=") and left.type == right.type:
            return (left.value == right.value) == (operator == "==")
        return None
    if _is_zero(right):  # u64 < 0 and u64 >= 0
        return {"<": False, ">=": True}.get(operator)
    return {">": False, "<=": True}.get(operator) if _is_zero(left) else None


def _is_zero(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.type.kind == "u64" and expression.value == 0


class Covered:
    """What the conditions of a decide's arms have taken so far, in their order."""

    def __init__(self, enums: Mapping[str, EnumPlan]) -> None:
        self.is_everything = False
        self._enums = enums
        self._conditions: list[Expression] = []
        self._variants: list[tuple[Expression, set[int]]] = []

    def add(self, condition: Expression) -> None:
        """An arm takes whatever meets this condition."""
        self._conditions.append(condition)
        self.is_everything = self.is_everything or truth(condition) is True
        found = _variants_of(condition)
        if found is None:
            return
        subject, taken = found
        variants = next((known for other, known in self._variants if other == subject), None)
        if variants is None:
            self._variants.append((subject, variants := set()))
        variants |= taken
        enum = self._enums[subject.type.name]
        self.is_everything = self.is_everything or len(variants) == len(enum.variants)

    def holds(self, condition: Expression) -> bool:
        """Whether the arms so far take all that would meet this condition."""
        found = _variants_of(condition)
        if found is not None and any(other == found[0] and found[1] <= known for other, known in self._variants):
            return True
        return condition in self._conditions


def _variants_of(condition: Expression) -> tuple[Expression, set[int]] | None:
    """The value of an enum, never null, and the variants of which the condition asks that it is one."""
    match condition:
        case Binary(operator="==", left=subject, right=Constant(value=int() as ordinal)):
            taken = {ordinal}
        case Binary(operator="==", left=Constant(value=int() as ordinal), right=subject):
            taken = {ordinal}
        case Among(operand=subject, options=options, negated=False):
            taken = {option.value for option in options if isinstance(option, Constant) and type(option.value) is int}
            if len(taken) < len(options):
                return None
        case Binary(operator="||", left=left, right=right):
            sides = _variants_of(left), _variants_of(right)
            if sides[0] is None or sides[1] is None or sides[0][0] != sides[1][0]:
                return None
            subject, taken = sides[0][0], sides[0][1] | sides[1][1]
        case _:
            return None
    return (subject, taken) if subject.type.kind == "enum" and not subject.type.optional else None
