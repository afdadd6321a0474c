"""What the tree of a right text holds. Cases show what a contract compiles to; these look at the tree itself, at the
choices of the parser that no later layer could tell apart from its own.
"""

import pytest

from riffdb.core.spans import Source
from riffdb.syntax import parse
from riffdb.syntax.tree import (
    BinaryExpr,
    CommandDecl,
    ComputedMember,
    ContractDecl,
    DecideStmt,
    EntityDecl,
    EventDecl,
    Expr,
    FieldMember,
    IfExpr,
    InExpr,
    InputDecl,
    IntArgument,
    InvariantMember,
    IsNullExpr,
    LeaseStmt,
    LiteralExpr,
    MemberExpr,
    NameExpr,
    ParamExpr,
    QueryDecl,
    RoleDecl,
    ScheduleDecl,
    StreamDecl,
    TransitionStmt,
    Tree,
    TypeExpr,
    UnaryExpr,
    WorkflowDecl,
)
from tests.unit.syntax_samples import EXAMPLE, GRAMMAR, LISTINGS, OPERATIONS, names, nodes, parsed, token_texts


def contract_of(text: str) -> ContractDecl:
    """The contract of a file."""
    (contract, *_) = parsed(text).declarations
    assert isinstance(contract, ContractDecl)
    return contract


def entity_of(members: str) -> EntityDecl:
    """An entity with the members."""
    (entity,) = contract_of(f"contract C version 1 {{ entity E {{ {members} }} }}").members
    assert isinstance(entity, EntityDecl)
    return entity


def command_of(body: str) -> CommandDecl:
    """A command with the body before its `return`."""
    (command,) = contract_of(f"contract C version 1 {{ command X {{ {body} return Done {{}} }} }}").members
    assert isinstance(command, CommandDecl)
    return command


def expression(text: str) -> Expr:
    """The tree of an expression."""
    (member,) = entity_of(f"invariant i: {text}").members
    assert isinstance(member, InvariantMember)
    return member.condition


def shown(value: Expr) -> str:
    """An expression with every grouping in parentheses."""
    if isinstance(value, BinaryExpr):
        return f"({shown(value.left)} {value.operator} {shown(value.right)})"
    if isinstance(value, UnaryExpr):
        return f"({value.operator}{shown(value.operand)})"
    if isinstance(value, IsNullExpr):
        return f"({shown(value.operand)} is {'not ' if value.negated else ''}null)"
    if isinstance(value, InExpr):
        options = value.options
        listed = f"${options.name.text}" if isinstance(options, ParamExpr) else ", ".join(map(shown, options))
        return f"({shown(value.operand)} {'not ' if value.negated else ''}in {listed})"
    if isinstance(value, IfExpr):
        return f"(if {shown(value.condition)} then {shown(value.then)} else {shown(value.otherwise)})"
    return value.span.text


def type_of(text: str) -> TypeExpr:
    """The tree of a type."""
    (member,) = entity_of(f"field f: {text}").members
    assert isinstance(member, FieldMember)
    return member.type


@pytest.mark.parametrize("text", [LISTINGS, EXAMPLE, GRAMMAR], ids=["listings", "example", "grammar"])
def test_the_samples_parse(text: str) -> None:
    parsed(text)


def test_the_printed_lease_operations_parse_in_a_command() -> None:
    operations = [node for node in command_of(OPERATIONS).body if isinstance(node, LeaseStmt)]
    assert [node.operation.text for node in operations] == ["renew", "release", "expire", "fence"]
    assert [len(node.operands) for node in operations] == [4, 3, 1, 3]
    assert [len(node.outcomes) for node in operations] == [4, 2, 2, 3]


def test_the_example_has_its_declarations_in_order() -> None:
    tree = parsed(EXAMPLE)
    assert [type(declaration).__name__ for declaration in tree.declarations] == [
        "ContractDecl",
        "QueryDecl",
        "StreamDecl",
        "RoleDecl",
        "ScheduleDecl",
    ]
    members = [(type(member).__name__, member.name.text) for member in contract_of(EXAMPLE).members]
    assert members == [
        ("EnumDecl", "WorkState"),
        ("EntityDecl", "WorkItem"),
        ("EventDecl", "WorkCompleted"),
        ("WorkflowDecl", "WorkLifecycle"),
        ("CommandDecl", "CompleteWork"),
        ("CommandDecl", "FailWork"),
    ]


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a || b && c", "(a || (b && c))"),
        ("a && b || c", "((a && b) || c)"),
        ("a || b || c", "((a || b) || c)"),
        ("a - b - c", "((a - b) - c)"),
        ("a - b * c", "(a - (b * c))"),
        ("a * b % c / d", "(((a * b) % c) / d)"),
        ("(a - b) * c", "((a - b) * c)"),
        ("a - (b - c)", "(a - (b - c))"),
        ("a + b < c * d && e", "(((a + b) < (c * d)) && e)"),
        ("!a && b", "((!a) && b)"),
        ("-a * b", "((-a) * b)"),
        ("a --b", "(a - (-b))"),
        ("!!a", "(!(!a))"),
        ("a + 1 is null || b is not null", "(((a + 1) is null) || (b is not null))"),
        ("a in (1, b + 2) && c not in $p", "((a in 1, (b + 2)) && (c not in $p))"),
        ("!(if a then b || c else d) && e", "((!(if a then (b || c) else d)) && e)"),
        ("(if a then b else (if c then d else e)) == f", "((if a then b else (if c then d else e)) == f)"),
        ("max(a, b + 1) >= tx.time", "(max(a, b + 1) >= tx.time)"),
    ],
)
def test_operators_bind_as_the_grammar_says(text: str, grouped: str) -> None:
    assert shown(expression(text)) == grouped


def test_a_span_in_parentheses_covers_them() -> None:
    assert expression("(a + b) * c").span.text == "(a + b) * c"
    assert expression("((a))").span.text == "((a))"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("7", "int", 7),
        ("123456789012345678901234567890", "int", 123456789012345678901234567890),
        ("1.50", "decimal", "1.50"),
        ("true", "bool", True),
        ("false", "bool", False),
        ("null", "null", None),
        ('""', "string", ""),
        (r'"a\"b\\c\n\t\u{1F600}d"', "string", 'a"b\\c\n\t\U0001f600d'),
        ('"// no comment"', "string", "// no comment"),
    ],
)
def test_literals_have_their_values(text: str, kind: str, value: object) -> None:
    literal = expression(text)
    assert isinstance(literal, LiteralExpr)
    assert (literal.kind, literal.value, literal.span.text) == (kind, value, text)


def test_a_default_may_touch_the_end_of_its_type() -> None:
    members = entity_of('field a: optional<string<8>>= null field b: optional<u64>= 1 field c: string<8>="x"').members
    defaults = [member.default for member in members if isinstance(member, FieldMember)]
    assert [value.span.text for value in defaults if value is not None] == ["null", "1", '"x"']
    assert [member.type.span.text for member in members if isinstance(member, FieldMember)] == [
        "optional<string<8>>",
        "optional<u64>",
        "string<8>",
    ]


def test_the_comparison_is_still_one_token() -> None:
    assert shown(expression("a>=b")) == "(a >= b)"


def test_types_nest_and_take_ranges() -> None:
    assert type_of("uuid").arguments == ()
    outer = type_of("list<optional<Line>, 1..256>")
    inner, bound = outer.arguments
    assert isinstance(inner, TypeExpr) and inner.name.text == "optional"
    assert isinstance(bound, IntArgument)
    assert (bound.low, bound.high, bound.is_range, bound.span.text) == (1, 256, True, "1..256")
    precision, scale = type_of("decimal<12, 2>").arguments
    assert isinstance(precision, IntArgument) and isinstance(scale, IntArgument)
    assert (precision.low, precision.high, precision.is_range) == (12, 12, False)
    assert (scale.low, scale.high) == (2, 2)


def test_constants_are_literals_negative_numbers_null_and_variants() -> None:
    members = entity_of("field a: i64 = -5 was x field b: T = E.V was y, field c: optional<u64> = null").members
    first, second, third = (member for member in members if isinstance(member, FieldMember))
    assert isinstance(first.default, UnaryExpr) and first.default.span.text == "-5"
    assert isinstance(second.default, MemberExpr) and second.default.member.text == "V"
    assert isinstance(third.default, LiteralExpr) and third.default.value is None
    assert first.was is not None and second.was is not None
    assert (first.was.text, second.was.text) == ("x", "y")


def test_secret_is_a_word_only_before_a_name() -> None:
    first, second, third = entity_of("field secret: u64 field secret a: u64 field secret secret: u64").members
    assert isinstance(first, FieldMember) and isinstance(second, FieldMember) and isinstance(third, FieldMember)
    assert [(field.name.text, field.secret) for field in (first, second, third)] == [
        ("secret", False),
        ("a", True),
        ("secret", True),
    ]
    inputs = command_of("input secret: u64 input secret key: u64 input key: u64 input key of E").inputs
    assert [(node.name.text, node.secret) for node in inputs if isinstance(node, InputDecl)] == [
        ("secret", False),
        ("key", True),
        ("key", False),
    ]


def test_doc_comments_attach_to_what_follows() -> None:
    contract = contract_of(
        "/// the contract\ncontract C version 1 {\n"
        "  ///  Two lines,   \r\n  // and no doc\n  ///the second.\n  entity E {\n"
        "    key (\n      /// its id\n      id: uuid\n    )\n"
        "    /// a field\n    field f: u64\n    field g: u64\n    /// a sum\n    computed h: u64 = f\n  }\n"
        "  event V {\n    partition_by (id)\n    /// whose\n    id: uuid\n  }\n"
        "  //// no doc either\n  workflow W {\n    entity E state f\n"
        "    /// begin\n    transition T from (A) to B\n  }\n"
        "  /// do it\n  command X {\n    /// an input\n    input i: u64\n    return Done {}\n  }\n}\n"
    )
    entity, event, workflow, command = contract.members
    assert isinstance(entity, EntityDecl) and isinstance(event, EventDecl)
    assert isinstance(workflow, WorkflowDecl) and isinstance(command, CommandDecl)
    assert contract.doc == "the contract"
    assert entity.doc == " Two lines,\nthe second."
    members = {type(member): getattr(member, "doc", None) for member in entity.members}
    assert members[ComputedMember] == "a sum"
    assert [member.doc for member in entity.members if isinstance(member, FieldMember)] == ["a field", ""]
    assert event.fields[0].doc == "whose"
    assert (workflow.doc, workflow.transitions[0].doc) == ("", "begin")
    assert command.doc == "do it"
    assert isinstance(command.inputs[0], InputDecl) and command.inputs[0].doc == "an input"


def test_clauses_come_in_any_order() -> None:
    def clauses(body: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        (statement,) = command_of(body).body
        assert isinstance(statement, LeaseStmt | TransitionStmt)
        operands = [(clause.word.text, clause.value.span.text) for clause in statement.operands]
        return sorted(operands), sorted((clause.word.text, clause.outcome.name.text) for clause in statement.outcomes)

    usual = "lease fence l on b owner o fencing_token t revision r stale S {} invalid I {} expired E {}"
    mixed = "lease fence l on b stale S {}, revision r invalid I {} expired E {} fencing_token t owner o"
    assert clauses(usual) == clauses(mixed)
    assert clauses("transition T on b revision r stale S {} illegal I {}") == clauses(
        "transition T on b illegal I {} stale S {}, revision r"
    )


def test_a_clause_word_may_be_the_operand_before_it() -> None:
    (statement,) = command_of("lease claim l on b owner owner revision stale stale X {} duration_seconds none").body
    assert isinstance(statement, LeaseStmt)
    assert [clause.value.span.text for clause in statement.operands] == ["owner", "stale", "none"]
    (decide,) = command_of("decide b { when apply apply {} when none none none {} when none apply {} }").body
    assert isinstance(decide, DecideStmt)
    assert [arm.condition.span.text for arm in decide.arms if arm.condition is not None] == ["apply", "none", "none"]
    assert [arm.none is not None for arm in decide.arms] == [False, True, False]


def test_a_payload_name_stands_for_itself() -> None:
    command = command_of("emit V { a, b: c, }")
    assert command.answer is not None and command.answer.outcome.payload.items == ()
    (emit,) = command.body
    items = [node for node in nodes(emit) if type(node).__name__ == "PayloadItem"]
    assert [(item.name.text, item.value) for item in items if hasattr(item, "name") and hasattr(item, "value")] == [
        ("a", NameExpr(items[0].name, items[0].name.span)),  # type: ignore[attr-defined]  # nodes are objects here
        ("b", items[1].value),  # type: ignore[attr-defined]  # nodes are objects here
    ]


def test_queries_streams_roles_and_schedules_are_kept_whole() -> None:
    declarations = parsed(GRAMMAR).declarations
    query = next(node for node in declarations if isinstance(node, QueryDecl))
    assert [(binding.kind, binding.name.text) for binding in query.bindings] == [
        ("one", "w"),
        ("maybe", "w2"),
        ("many", "due"),
        ("count", "n"),
        ("sum", "s"),
        ("min", "min"),
    ]
    many = query.bindings[2]
    assert [(column.name.text, column.descending) for column in many.order] == [
        ("order", True),
        ("by", False),
        ("take", False),
    ]
    assert isinstance(many.take, ParamExpr) and many.take.name.text == "limit"
    assert (many.cursor_kind, many.cursor is not None) == ("after", True)
    assert query.answer is not None
    selections = [item.selection for item in query.answer.outcome.payload.items]
    assert [None if found is None else len(found.fields) for found in selections] == [3, None, None]
    stream = next(node for node in declarations if isinstance(node, StreamDecl))
    assert [(event.event.text, event.where is not None) for event in stream.events] == [("E", True), ("event", False)]
    role = next(node for node in declarations if isinstance(node, RoleDecl))
    assert [name.text for name in role.commands] == ["A", "B", "C"]
    first, second = (node for node in declarations if isinstance(node, ScheduleDecl))
    assert first.event is not None and first.event.text == "E" and first.each is None
    assert second.each is not None and second.each.text == "items" and second.renew is None


@pytest.mark.parametrize("text", [LISTINGS, EXAMPLE, GRAMMAR], ids=["listings", "example", "grammar"])
def test_every_span_lies_in_its_parent_and_every_name_in_its_span(text: str) -> None:
    def check(node: object) -> None:
        for child in list(nodes(node))[1:]:
            assert node.span.start <= child.span.start < child.span.end <= node.span.end  # type: ignore[attr-defined]  # every node has a span
            check(child)

    tree = parsed(text)
    for declaration in tree.declarations:
        check(declaration)
    assert all(name.span.text.removeprefix("$") == name.text for name in names(tree))


@pytest.mark.parametrize("text", [LISTINGS, EXAMPLE, GRAMMAR], ids=["listings", "example", "grammar"])
def test_white_space_carries_no_meaning(text: str) -> None:
    def bare(tree: Tree) -> list[tuple[str, str]]:
        return [(type(node).__name__, getattr(node, "text", "")) for node in nodes(tree)]

    texts = token_texts(text)
    assert bare(parsed(" ".join(texts))) == bare(parsed(text))
    assert bare(parsed("\r\n\t".join(texts))) == bare(parsed(text))


def test_an_empty_file_is_a_tree() -> None:
    for text in ("", "\n\n", "// only a comment", "/// a doc of nothing", "\ufeff"):
        tree, diagnostics = parse(Source("empty.riff", text))
        assert (tree.declarations, diagnostics) == ((), ())
