"""Expressions: from the tree to the plan, names looked up, types exact, null accounted for.

`lower` gives an expression of the type that its place asks for; `infer` one of its own type, literals by a hint. Both
give None where something is wrong, after one diagnostic; nothing that rests on a None is reported again.
Absent: which names there are (`scope`), and what operators and functions take (`operations`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from riffdb.compiler.collector import Collector
from riffdb.compiler.literals import is_literal, lower_literal, lower_negative
from riffdb.compiler.operations import (
    ANY_NUMBER,
    FUNCTIONS,
    INTEGERS,
    LEAST_ARGUMENTS,
    Refusal,
    arithmetic,
    comparison,
    function_type,
)
from riffdb.compiler.scope import ItemScope, RowScope, Scope, facts_if, subject
from riffdb.compiler.typing import fits, joined
from riffdb.core.diagnostics import Edit, Fix
from riffdb.core.spans import Span
from riffdb.core.types import BOOL, I64, TIMESTAMP, U64, Type
from riffdb.plan.declarations import EnumPlan
from riffdb.plan.expressions import (
    Among,
    Binary,
    Call,
    Conditional,
    Constant,
    Expression,
    Field,
    Input,
    IsNull,
    Item,
    Kept,
    Param,
    Revision,
    Row,
    TransactionTime,
    Unary,
    leaves,
)
from riffdb.syntax.tree import (
    BinaryExpr,
    CallExpr,
    Expr,
    IfExpr,
    InExpr,
    IsNullExpr,
    LiteralExpr,
    MemberExpr,
    Name,
    NameExpr,
    ParamExpr,
    TimeExpr,
    UnaryExpr,
)

FALLBACKS = {"bool": "false", "i64": "0", "u64": "0", "decimal": "0", "string": '""'}
MISFITS = {
    ("i64", "u64"): "no number changes its type by itself; declare both as `u64` or both as `i64`",
    ("u64", "i64"): "no number changes its type by itself; declare both as `u64` or both as `i64`",
}


def lower(expr: Expr, scope: Scope, expected: Type, collector: Collector) -> Expression | None:
    """The expression, proven to give values of the expected type."""
    found = infer(expr, scope, expected, collector)
    if found is None or fits(found.type, expected):
        return found
    if isinstance(found, Constant) and found.value is None:
        collector.error("RDB-C209", f"null is no `{expected}`", expr.span)
    else:
        _report_misfit(found.type, expected, expr.span, collector)
    return None


def lower_condition(expr: Expr, scope: Scope, collector: Collector) -> Expression | None:
    """The expression as a condition: a `bool` that is never null."""
    return lower(expr, scope, BOOL, collector)


def lower_constant(expr: Expr, enums: Mapping[str, EnumPlan], expected: Type, collector: Collector) -> Constant | None:
    """A literal, `null` or an enum's variant of the expected type, as defaults are."""
    found = lower(expr, Scope(enums=enums), expected, collector)
    return found if isinstance(found, Constant) else None


def lower_default(expr: Expr | None, enums: Mapping[str, EnumPlan], expected: Type, collector: Collector) -> Kept:
    """The value of a default; None where there is none, which null is as good as."""
    constant = None if expr is None else lower_constant(expr, enums, expected, collector)
    return None if constant is None else constant.value


def infer(expr: Expr, scope: Scope, hint: Type | None, collector: Collector) -> Expression | None:
    """The expression in its own type; literals take the hint's where they can. A whole row has the type `record`."""
    match expr:
        case LiteralExpr():
            return lower_literal(expr, hint, collector)
        case NameExpr(name=name):
            return _name(name, scope, collector)
        case MemberExpr():
            return _member(expr, scope, collector)
        case ParamExpr(name=name):
            return _param(name, scope, collector)
        case TimeExpr():
            if scope.time:
                return TransactionTime(TIMESTAMP)
            help_text = scope.refused.get("tx.time")
            collector.error("RDB-C214", "`tx.time` is not known here", expr.span, help=help_text)
            return None
        case UnaryExpr():
            return _unary(expr, scope, hint, collector)
        case BinaryExpr(operator="&&" | "||"):
            return _logical(expr, scope, collector)
        case BinaryExpr(operator="+" | "-" | "*" | "/" | "%"):
            return _arithmetic(expr, scope, hint, collector)
        case BinaryExpr():
            return _comparison(expr, scope, collector)
        case IsNullExpr():
            operand = infer(expr.operand, scope, None, collector)
            return None if operand is None else IsNull(BOOL, operand, expr.negated)
        case InExpr():
            return _among(expr, scope, collector)
        case IfExpr():
            return _conditional(expr, scope, hint, collector)
        case CallExpr():
            return _call(expr, scope, hint, collector)


def operand(expr: Expr, scope: Scope, hint: Type | None, collector: Collector) -> Expression | None:
    """As `infer`, for a place that takes neither null nor a whole row."""
    found = _value(expr, scope, hint, collector)
    if found is None or not found.type.optional:
        return found
    report_null(found.type, expr.span, collector)
    return None


def _value(expr: Expr, scope: Scope, hint: Type | None, collector: Collector) -> Expression | None:
    found = infer(expr, scope, hint, collector)
    if found is not None and found.type.kind == "record":
        report_row(expr.span, collector)
        return None
    return found


def report_null(actual: Type, span: Span, collector: Collector) -> None:
    """Report that a value may be null where that is not taken."""
    fallback = FALLBACKS.get(actual.kind)
    fix = None
    if fallback is not None:
        edits = Edit(replace(span, end=span.start), "coalesce("), Edit(replace(span, start=span.end), f", {fallback})")
        fix = Fix(f"take `{fallback}` for null", edits)
    collector.error(
        "RDB-C209",
        f"this is `{actual}` and may be null here",
        span,
        fix=fix,
        help="write `coalesce(…, value)` with the value to take for null, or test `is not null` first",
    )


def report_row(span: Span, collector: Collector) -> None:
    """Report that a whole row stands where one value is taken."""
    collector.error(
        "RDB-C215", f"`{span.text}` is a whole row", span, help=f"name one field, as in `{span.text}.field`"
    )


def _report_misfit(actual: Type, expected: Type, span: Span, collector: Collector) -> None:
    if actual.kind == "record":
        report_row(span, collector)
    elif actual.optional and fits(actual.required, expected):
        report_null(actual, span, collector)
    else:
        kinds = (actual.kind, expected.kind)
        help_text = MISFITS.get(kinds)
        if kinds[0] == kinds[1] and actual.kind in ("string", "bytes"):
            help_text = f"it fits where the bound is {actual.bound} or more"
        collector.error("RDB-C208", f"this is `{actual}`, but `{expected}` is needed here", span, help=help_text)


# --- names -------------------------------------------------------------------------------------------------------


def _known(found: Input | Param | Item | Field, scope: Scope) -> Expression:
    """The same node without null in its type, where a fact says so."""
    if not found.type.optional or not scope.knows(subject(found)):
        return found
    match found:
        case Input():
            return Input(found.type.required, found.name)
        case Param():
            return Param(found.type.required, found.name)
        case Item():
            return Item(found.type.required, found.name)
        case Field():
            return Field(found.type.required, found.binding, found.name)


def _name(name: Name, scope: Scope, collector: Collector) -> Expression | None:
    text = name.text
    if text in scope.refused:
        collector.error("RDB-C206", scope.refused[text], name.span)
    elif text in scope.broken:
        pass
    elif text in scope.inputs:
        return _known(Input(scope.inputs[text], text), scope)
    elif scope.item is not None and text == scope.item.name:
        return _item(scope.item, name, scope, collector)
    elif text in scope.rows:
        row = scope.rows[text]
        return Row(Type("record", row.maybe and not scope.knows(("row", text, "")), name=row.entity), text, row.entity)
    elif scope.row is not None and _knows(scope.row, text):
        return _column(scope.row, name, scope, collector)
    else:
        _nothing(name, scope, collector)
    return None


def _nothing(name: Name, scope: Scope, collector: Collector) -> None:
    message = f"nothing here is called `{name.text}`"
    variants = [f"{enum.name}.{name.text}" for enum in scope.enums.values() if name.text in enum.variants]
    if len(variants) == 1:
        fix = Fix(f"write `{variants[0]}`", (Edit(name.span, variants[0]),), safe=True)
        collector.error("RDB-C205", f"{message}; did you mean `{variants[0]}`?", name.span, fix=fix)
    else:
        collector.unknown("RDB-C205", message, name, scope.names())


def _knows(row: RowScope, column: str) -> bool:
    return column in row.columns or column in row.broken or column in row.refused


def _member(expr: MemberExpr, scope: Scope, collector: Collector) -> Expression | None:
    owner, member = expr.owner, expr.member
    if owner.text in scope.refused:
        collector.error("RDB-C206", scope.refused[owner.text], owner.span)
        return None
    if owner.text in scope.broken:
        return None
    if owner.text in scope.rows:
        row = scope.rows[owner.text]
        if row.maybe and not scope.knows(("row", row.name, "")):
            message = f"`{owner.text}` may be absent here"
            collector.error("RDB-C209", message, expr.span, help=f"test `{owner.text} is not null` first")
            return None
        return _column(row, member, scope, collector)
    if scope.item is not None and owner.text == scope.item.name:
        return _item_field(scope.item, member, scope, collector)
    if owner.text in scope.enums:
        return _variant(owner.text, member, scope, collector)
    if owner.text in scope.inputs:
        message = f"`{owner.text}` is an input and has no fields"
        collector.error("RDB-C206", message, member.span)
        return None
    collector.unknown("RDB-C205", f"nothing here is called `{owner.text}`", owner, _owners(scope))
    return None


def _owners(scope: Scope) -> list[str]:
    item = () if scope.item is None else (scope.item.name,)
    return [*scope.rows, *item, *scope.enums]


def _item(item: ItemScope, name: Name, scope: Scope, collector: Collector) -> Expression | None:
    """The item of a list of single values."""
    if not item.record:
        return _known(Item(item.fields[""], ""), scope)
    message = f"`{name.text}` is a whole `{item.record}`"
    collector.error("RDB-C215", message, name.span, help=f"name one field, as in `{name.text}.field`")
    return None


def _item_field(item: ItemScope, field: Name, scope: Scope, collector: Collector) -> Expression | None:
    if not item.record:
        message = f"`{item.name}` is one value and has no fields"
        collector.error("RDB-C206", message, field.span, help=f"write `{item.name}` alone")
    elif field.text in item.fields:
        return _known(Item(item.fields[field.text], field.text), scope)
    elif field.text not in item.broken:
        collector.unknown("RDB-C206", f"`{item.record}` has no field `{field.text}`", field, item.fields)
    return None


def _column(row: RowScope, column: Name, scope: Scope, collector: Collector) -> Expression | None:
    if column.text in row.refused:
        collector.error("RDB-C206", row.refused[column.text], column.span)
        return None
    if column.text in row.broken:
        return None
    kind = row.columns.get(column.text)
    if kind is None:
        collector.unknown("RDB-C206", f"{row.title} has no field `{column.text}`", column, row.columns)
        return None
    if column.text == "revision" and row.entity:
        return Revision(kind, row.name)
    return _known(Field(kind, row.name, column.text), scope)


def _variant(enum: str, variant: Name, scope: Scope, collector: Collector) -> Constant | None:
    variants = scope.enums[enum].variants
    if variant.text in variants:
        return Constant(Type("enum", name=enum), variants.index(variant.text))
    collector.unknown("RDB-C207", f"`{enum}` has no variant `{variant.text}`", variant, variants)
    return None


def _param(name: Name, scope: Scope, collector: Collector) -> Expression | None:
    kind = scope.params.get(name.text)
    if kind is not None:
        return _known(Param(kind, name.text), scope)
    if f"${name.text}" not in scope.broken:
        message = f"there is no parameter `${name.text}` here"
        candidates = [f"${param}" for param in scope.params]
        collector.unknown("RDB-C205", message, Name(f"${name.text}", name.span), candidates)
    return None


# --- operators ---------------------------------------------------------------------------------------------------


def _unary(expr: UnaryExpr, scope: Scope, hint: Type | None, collector: Collector) -> Expression | None:
    if expr.operator == "!":
        condition = lower_condition(expr.operand, scope, collector)
        return None if condition is None else Unary(BOOL, "!", condition)
    if isinstance(expr.operand, LiteralExpr) and expr.operand.kind in ("int", "decimal"):
        return lower_negative(expr, expr.operand, hint, collector)
    inner = operand(expr.operand, scope, hint, collector)
    if inner is None or inner.type.kind in ("i64", "decimal"):
        return None if inner is None else Unary(inner.type, "-", inner)
    collector.error("RDB-C213", f"`-` does not take `{inner.type}`", expr.span)
    return None


def _logical(expr: BinaryExpr, scope: Scope, collector: Collector) -> Expression | None:
    left = lower_condition(expr.left, scope, collector)
    right = lower_condition(expr.right, _told(scope, left, expr.operator == "&&"), collector)
    return None if left is None or right is None else Binary(BOOL, expr.operator, left, right)


def _told(scope: Scope, condition: Expression | None, holds: bool) -> Scope:
    """The scope where the condition holds, or does not; one that is broken could have proven anything."""
    return replace(scope, trusting=True) if condition is None else scope.knowing(facts_if(condition, holds))


def _arithmetic(expr: BinaryExpr, scope: Scope, hint: Type | None, collector: Collector) -> Expression | None:
    if expr.operator in "+-" and isinstance(expr.right, CallExpr) and expr.right.function.text == "seconds":
        return _shifted(expr, expr.right, scope, collector)
    own = hint.required if hint is not None and is_literal(expr.left) and is_literal(expr.right) else None
    if expr.operator == "*":  # the literal of `price * 3` counts, and is no price
        whole = own if own is not None and own.kind in INTEGERS else None
        pair = _apart((expr.left, expr.right), scope, whole, collector)
    else:
        pair = _together((expr.left, expr.right), scope, own, collector, optional=False)
    if pair is None:
        return None
    found = arithmetic(expr.operator, pair[0].type, pair[1].type)
    if isinstance(found, Refusal):
        collector.error("RDB-C213", found.message, expr.span, help=found.help)
        return None
    return Binary(found, expr.operator, pair[0], pair[1])


def _shifted(expr: BinaryExpr, call: CallExpr, scope: Scope, collector: Collector) -> Expression | None:
    moment = lower(expr.left, scope, TIMESTAMP, collector)
    if not _counted(call, collector):
        return None
    count = lower(call.arguments[0], scope, U64, collector)
    if moment is None or count is None:
        return None
    return Binary(TIMESTAMP, expr.operator, moment, Call(I64, "seconds", (count,)))


def _comparison(expr: BinaryExpr, scope: Scope, collector: Collector) -> Expression | None:
    pair = _together((expr.left, expr.right), scope, None, collector, optional=expr.operator in ("==", "!="))
    if pair is None:
        return None
    found = comparison(expr.operator, pair[0].type, pair[1].type)
    if isinstance(found, Refusal):
        collector.error("RDB-C213", found.message, expr.span, help=found.help)
        return None
    return Binary(BOOL, expr.operator, pair[0], pair[1])


def _together(
    exprs: tuple[Expr, ...], scope: Scope, hint: Type | None, collector: Collector, optional: bool
) -> list[Expression] | None:
    """The operands of one operation: first those that have a type of their own, whose type the literals then take."""
    take = _value if optional else operand
    found: dict[int, Expression | None] = {}
    for position, expr in enumerate(exprs):
        if not is_literal(expr):
            lowered = take(expr, scope, hint, collector)
            found[position] = lowered
            hint = hint if lowered is None or hint is not None else lowered.type.required
    if None in found.values():
        return None
    for position, expr in enumerate(exprs):
        if position not in found:
            found[position] = take(expr, scope, hint, collector)
    ordered = [found[position] for position in range(len(exprs))]
    whole = [item for item in ordered if item is not None]
    return whole if len(whole) == len(ordered) else None


def _apart(exprs: tuple[Expr, ...], scope: Scope, hint: Type | None, collector: Collector) -> list[Expression] | None:
    """The operands of one operation, each in its own type; literals of numbers take that of a whole number beside."""
    found = [None if is_literal(expr) else operand(expr, scope, hint, collector) for expr in exprs]
    integer = next((one.type for one in found if one is not None and one.type.kind in INTEGERS), None)
    if any(one is None and not is_literal(expr) for one, expr in zip(found, exprs, strict=True)):
        return None
    whole = [one or operand(expr, scope, integer or hint, collector) for one, expr in zip(found, exprs, strict=True)]
    sure = [one for one in whole if one is not None]
    return sure if len(sure) == len(whole) else None


def _among(expr: InExpr, scope: Scope, collector: Collector) -> Expression | None:
    if isinstance(expr.options, ParamExpr):
        return _among_list(expr, expr.options, scope, collector)
    found = _together((expr.operand, *expr.options), scope, None, collector, optional=True)
    if found is None:
        return None
    for option, written in zip(found[1:], expr.options, strict=True):
        refusal = comparison("==", found[0].type, option.type)
        if isinstance(refusal, Refusal):
            collector.error("RDB-C213", refusal.message, written.span, help=refusal.help)
            return None
    return Among(BOOL, found[0], tuple(found[1:]), expr.negated)


def _among_list(expr: InExpr, options: ParamExpr, scope: Scope, collector: Collector) -> Expression | None:
    """`x in $list`: the one option is the list itself."""
    left, right = _value(expr.operand, scope, None, collector), _param(options.name, scope, collector)
    if left is None or right is None:
        return None
    element = right.type.element
    if element is None or isinstance(comparison("==", left.type, element), Refusal):
        message = f"`in` needs a list of `{left.type.required}` here, and `${options.name.text}` is `{right.type}`"
        collector.error("RDB-C213", message, options.span)
        return None
    return Among(BOOL, left, (right,), expr.negated)


def _conditional(expr: IfExpr, scope: Scope, hint: Type | None, collector: Collector) -> Expression | None:
    condition = lower_condition(expr.condition, scope, collector)
    held, failed = _told(scope, condition, True), _told(scope, condition, False)
    branches = _branches(expr, held, failed, hint, collector)
    if condition is None or branches is None:
        return None
    then, otherwise = branches
    shared = _joined_branches(then.type, otherwise.type, expr, collector)
    return None if shared is None else Conditional(shared, condition, then, otherwise)


def _branches(
    expr: IfExpr, held: Scope, failed: Scope, hint: Type | None, collector: Collector
) -> tuple[Expression, Expression] | None:
    if hint is None and is_literal(expr.then) and not is_literal(expr.otherwise):
        otherwise = _value(expr.otherwise, failed, None, collector)
        then = _value(expr.then, held, None if otherwise is None else otherwise.type, collector)
    else:
        then = _value(expr.then, held, hint, collector)
        otherwise = _value(expr.otherwise, failed, hint or (None if then is None else then.type), collector)
    return None if then is None or otherwise is None else (then, otherwise)


def _joined_branches(then: Type, otherwise: Type, expr: IfExpr, collector: Collector) -> Type | None:
    shared = joined(then, otherwise)
    if shared is None:
        message = f"`then` gives `{then}` and `else` gives `{otherwise}`, which have no type in common"
        collector.error("RDB-C208", message, expr.span)
    return shared


# --- functions ---------------------------------------------------------------------------------------------------


def _counted(call: CallExpr, collector: Collector) -> bool:
    name, count = call.function.text, len(call.arguments)
    least = LEAST_ARGUMENTS[name]
    if count == least or (count > least and name in ANY_NUMBER):
        return True
    wanted = f"{least} or more arguments" if name in ANY_NUMBER else "1 argument" if least == 1 else "2 arguments"
    collector.error("RDB-C212", f"`{name}` takes {wanted}, not {count}", call.span)
    return False


def _call(call: CallExpr, scope: Scope, hint: Type | None, collector: Collector) -> Expression | None:
    name = next((name for name in FUNCTIONS if name == call.function.text), None)
    if name is None:
        message = f"there is no function `{call.function.text}`"
        collector.unknown("RDB-C211", message, call.function, FUNCTIONS)
        return None
    if name == "seconds":
        message = "`seconds(…)` stands only on the right of `+` or `-` after a timestamp"
        collector.error("RDB-C216", message, call.span, help="as in `tx.time + seconds(60)`")
        return None
    if not _counted(call, collector):
        return None
    own = hint.required if hint is not None and name in ("coalesce", "min", "max") else None
    if any(not is_literal(argument) for argument in call.arguments):
        own = None
    if name in ("coalesce", "min", "max"):
        arguments = _together(call.arguments, scope, own, collector, optional=name == "coalesce")
    else:
        arguments = _apart(call.arguments, scope, TIMESTAMP if name == "seconds_between" else None, collector)
    if arguments is None:
        return None
    found = function_type(name, tuple(argument.type for argument in arguments))
    if isinstance(found, Refusal):
        collector.error("RDB-C213", found.message, call.span, help=found.help)
        return None
    return Call(found, name, tuple(arguments))


# --- what an expression reads ------------------------------------------------------------------------------------


def rebuilt(expression: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """The same expression with every leaf put through `leaf`."""

    def each(parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
        return tuple(rebuilt(part, leaf) for part in parts)

    match expression:
        case Unary(type=kind, operator=operator, operand=inner):
            return Unary(kind, operator, rebuilt(inner, leaf))
        case IsNull(type=kind, operand=inner, negated=negated):
            return IsNull(kind, rebuilt(inner, leaf), negated)
        case Binary(type=kind, operator=sign, left=left, right=right):
            return Binary(kind, sign, rebuilt(left, leaf), rebuilt(right, leaf))
        case Among(type=kind, operand=inner, options=options, negated=negated):
            return Among(kind, rebuilt(inner, leaf), each(options), negated)
        case Conditional(type=kind, condition=condition, then=then, otherwise=otherwise):
            return Conditional(kind, *each((condition, then, otherwise)))
        case Call(type=kind, function=function, arguments=arguments):
            return Call(kind, function, each(arguments))
    return leaf(expression)


def secrets_of(expression: Expression, scope: Scope) -> list[str]:
    """What the expression reads that may not be shown: secret inputs, items of a secret list, and secret
    fields of the rows in scope."""
    found = []
    for leaf in leaves(expression):
        if isinstance(leaf, Input) and leaf.name in scope.secret_inputs:
            found.append(leaf.name)
        elif isinstance(leaf, Item) and scope.item is not None and scope.item.secret:
            found.append(f"{scope.item.name}.{leaf.name}" if leaf.name else scope.item.name)
        elif isinstance(leaf, Field):
            row = scope.rows.get(leaf.binding) if leaf.binding else scope.row
            if row is not None and leaf.name in row.secrets:
                found.append(leaf.name)
    return found
