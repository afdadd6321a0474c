"""Where lines of the canonical layout begin: a walk over the tree that names offsets of its text.

Every declaration, member and statement begins a line of its own, at the depth of the block that it stands in; so does
the brace that closes such a block. What may follow on the same line may be broken softly before a clause, an item of a
payload, or a logical operator. Absent: spaces, comments and the width of a line (`formatting`).
"""

from bisect import bisect_left
from dataclasses import dataclass, field

import msgspec

from riffdb.core.spans import Span
from riffdb.syntax import tree as t

Lexeme = tuple[str, str, int]
"""Kind, text and offset of a token or a comment."""


@dataclass(slots=True)
class Lines:
    """Offsets of tokens by what stands before them."""

    starts: dict[int, int] = field(default_factory=dict)
    """Tokens that begin a line, with its depth."""
    closing: dict[int, int] = field(default_factory=dict)
    """Braces that close a block of lines, with its depth."""
    apart: set[int] = field(default_factory=set)
    """Declarations that are set apart by an empty line."""
    soft: set[int] = field(default_factory=set)
    """Tokens before which a line that is too long may be broken."""
    payloads: dict[int, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    """For the opening brace of a payload its items and its closing brace."""
    wide: set[int] = field(default_factory=set)
    """Clauses that two spaces divide from the one before."""
    tight: set[int] = field(default_factory=set)
    """Tokens that stand right behind the one before: what opens the arguments of a call, of a type, of a key."""
    unary: set[int] = field(default_factory=set)
    """Signs that stand right before their operand."""
    types: list[tuple[int, int]] = field(default_factory=list)
    """Where the arguments of a type stand, from `<` to behind `>`."""


def lines_of(tree: t.Tree, tokens: list[Lexeme]) -> Lines:
    """The lines of a tree whose tokens these are, comments left out."""
    walk = _Walk(tokens)
    for declaration in tree.declarations:
        walk.declaration(declaration, 0)
    walk.inside(tree)
    return walk.lines


class _Walk:
    def __init__(self, tokens: list[Lexeme]) -> None:
        self.lines = Lines()
        self._offsets = [start for _, _, start in tokens]
        self._texts = [text for _, text, _ in tokens]

    # --- tokens around an offset ---

    def _index(self, offset: int) -> int:
        return bisect_left(self._offsets, offset)

    def _before(self, name: t.Name, count: int = 1) -> int:
        """The offset of the token before a name."""
        return self._offsets[self._index(name.span.start) - count]

    def _after(self, offset: int) -> int:
        """The offset of the token behind the one at an offset."""
        return self._offsets[self._index(offset) + 1]

    def _brace(self, span: Span) -> int:
        """The offset of the first `{` of a span."""
        index = self._index(span.start)
        while self._texts[index] != "{":
            index += 1
        return self._offsets[index]

    def _line(self, offset: int, depth: int) -> None:
        self.lines.starts[offset] = depth

    def _block(self, span: Span, depth: int) -> None:
        """The closing brace of a block of lines."""
        self.lines.closing[span.end - 1] = depth

    # --- declarations ---

    def declaration(self, node: t.TopDecl, depth: int) -> None:
        """The lines of a top-level declaration."""
        self._line(node.span.start, depth)
        self.lines.apart.add(node.span.start)
        self._block(node.span, depth)
        match node:
            case t.ContractDecl():
                for member in node.members:
                    self._member(member, depth + 1)
            case t.QueryDecl():
                for binding in node.bindings:
                    self._line(binding.span.start, depth + 1)
                if node.answer is not None:
                    self._line(node.answer.span.start, depth + 1)
            case t.StreamDecl():
                self._line(self._before(node.partition), depth + 1)
                for event in node.events:
                    self._line(event.span.start, depth + 1)
            case t.RoleDecl():
                self._role(node, depth + 1)
            case t.ScheduleDecl():
                self._schedule(node, depth + 1)

    def _member(self, node: t.ContractMember, depth: int) -> None:
        self._line(node.span.start, depth)
        match node:
            case t.EntityDecl():
                self._block(node.span, depth)
                for member in node.members:
                    self._line(member.span.start, depth + 1)
            case t.WorkflowDecl():
                self._workflow(node, depth)
            case t.CommandDecl():
                self._command(node, depth)
            case t.ReimportDecl():
                self._head(node, depth)
                self._line(self._before(node.entity), depth + 1)
            case _:
                return
        self.lines.apart.add(node.span.start)

    def _workflow(self, node: t.WorkflowDecl, depth: int) -> None:
        self._block(node.span, depth)
        for name in filter(None, (node.entity, node.state, node.initial)):
            self._line(self._before(name), depth + 1)
        for transition in node.transitions:
            self._line(transition.span.start, depth + 1)
        lease = node.lease
        if lease is not None:
            self._line(lease.span.start, depth + 1)
            self._line(self._after(self._brace(lease.span)), depth + 2)
            self._block(lease.span, depth + 1)
            clauses = filter(None, (lease.owner, lease.expires_at, lease.fencing_token, lease.attempts))
            self.lines.wide.update(self._before(name) for name in clauses)
            seconds = self._index(lease.duration_min.span.start) - 2
            self.lines.wide.add(self._offsets[seconds])

    def _role(self, node: t.RoleDecl, depth: int) -> None:
        index, end = self._index(self._brace(node.span)) + 1, self._index(node.span.end - 1)
        while index < end:
            self._line(self._offsets[index], depth)
            index += 2
            while self._texts[index] == ",":
                index += 2

    def _schedule(self, node: t.ScheduleDecl, depth: int) -> None:
        first = self._after(self._brace(node.span))
        self._line(first, depth)
        for name in filter(None, (node.due, node.claim)):
            self._line(self._before(name), depth)
        for name in filter(None, (node.renew, node.run, node.release, node.fail)):
            self.lines.wide.add(self._before(name))

    # --- commands ---

    def _head(self, node: t.CommandDecl | t.ReimportDecl, depth: int) -> None:
        self._block(node.span, depth)
        services = node.services if isinstance(node, t.CommandDecl) else ()
        for part in (*node.inputs, *services, *filter(None, (node.answer,))):
            self._line(part.span.start, depth + 1)
        if node.idempotency_key is not None:
            self._line(self._before(node.idempotency_key), depth + 1)

    def _command(self, node: t.CommandDecl, depth: int) -> None:
        self._head(node, depth)
        self._statements(node.body, depth + 1)
        if node.loop is not None:
            self._line(node.loop.span.start, depth + 1)
            self._block(node.loop.span, depth + 1)
            self._statements(node.loop.body, depth + 2)

    def _statements(self, body: tuple[t.Stmt, ...], depth: int) -> None:
        for statement in body:
            self._line(statement.span.start, depth)
            if isinstance(statement, t.DecideStmt):
                self._block(statement.span, depth)
                for arm in statement.arms:
                    self._arm(arm, depth + 1)

    def _arm(self, arm: t.Arm, depth: int) -> None:
        self._line(arm.span.start, depth)
        self._statements(arm.body, depth + 1)
        if arm.answer is not None:
            self._line(arm.answer.span.start, depth + 1)
        if arm.none is None and (arm.body or arm.answer is not None):
            self._block(arm.span, depth)

    # --- within lines ---

    def inside(self, node: object) -> None:
        """What stands within lines: soft places, arguments, signs, types."""
        if isinstance(node, tuple):
            for part in node:
                self.inside(part)
            return
        if not isinstance(node, msgspec.Struct):
            return
        lines = self.lines
        match node:
            case t.OutcomeClause(span=span) | t.Breach(span=span) | t.OperandClause(span=span):
                lines.soft.add(span.start)
            case t.Payload(items=items, span=span):
                lines.payloads[span.start] = (tuple(item.span.start for item in items), span.end - 1)
            case t.BinaryExpr(operator="&&" | "||", left=left):
                lines.soft.add(self._operator(left.span.end))
            case t.UnaryExpr(span=span):
                lines.unary.add(span.start)
            case t.CallExpr(function=name):
                lines.tight.add(self._after(name.span.start))
            case t.BindStmt():
                lines.tight.add(self._after((node.unique or node.entity).span.start))
            case t.QueryDecl(name=name) | t.StreamDecl(name=name):
                lines.tight.add(self._after(name.span.start))
            case t.TypeExpr(name=name, arguments=arguments, span=span) if arguments:
                lines.types.append((self._after(name.span.start), span.end))
        for part in node.__struct_fields__:
            self.inside(getattr(node, part))

    def _operator(self, end: int) -> int:
        """The offset of the operator behind a left side; parentheses round that side are not in its span."""
        index = self._index(end)
        while self._texts[index] == ")":
            index += 1
        return self._offsets[index]
