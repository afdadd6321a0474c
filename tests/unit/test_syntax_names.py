"""Every keyword is a name in every place of a name, save the ten reserved words.

The places are found, not listed: each name in the tree of a sample is replaced by each keyword in turn. Tokens stand
one a line, the layout in which a name is most easily taken for the beginning of a statement.
"""

import pytest

from riffdb.core.spans import Source
from riffdb.syntax import parse
from riffdb.syntax.tokens import tokenize
from riffdb.syntax.tree import (
    EntityDecl,
    LeaseStmt,
    Name,
    OperandClause,
    OutcomeClause,
    ServiceDecl,
    Tree,
    WorkflowDecl,
)
from riffdb.syntax.words import RESERVED, WORDS
from tests.unit.syntax_samples import GRAMMAR, mistakes, names, nodes, parsed

DECLARATIONS = (
    "enum A { B, C D }",
    "record A { a: B, c: D<8> e: F<G, 1..2> }",
    "event A { partition_by (a) a: B c: D, e: F }",
    "entity A { key (a: B, c: D<8>) partition_by (a) }",
    "entity A { field a: B field secret c: D<8> = E.F was g, }",
    "entity A { field h: optional<I> = null field j: K was l }",
    "entity A { computed a: B = c computed d: E = f.g field h: I }",
    "entity A { computed h: I = j(k, l) + m invariant n: o == p.q invariant r: s }",
    "entity A { index a (b, c desc, d asc) unique e (f, g) }",
    "entity A { reference h (i, j) -> K (l, m) key (n: O) }",
    "workflow A { entity B state c initial D transition E from (F, G) to H }",
    "workflow A { transition E from (F) to H lease i { owner j expires_at k fencing_token l attempts m "
    "duration_seconds (1, 2) } state c entity B }",
    "workflow A { lease i { duration_seconds (1, 2) attempts m fencing_token l expires_at k owner j } "
    "state c entity B }",
)
STATEMENTS = (
    "input a: B input secret c: D<8> = E.F input key of G",
    "input a: B service h: uuid_v7 idempotency_key i",
    "read A(b, c.d) as e else F {} set i.j = k",
    "mutate G.h(i) as j else K { l: m } emit G {}",
    "delete N(o) as p else Q {} maybe R.s(t) as u",
    "create A(b) as c else D { e, f: g } conflict h I {} conflict J.k L {} violates m N {}",
    "init_or_mutate A(b) as c initialize { d: e, f } conflict g H {}",
    "require a: b else C {} require d: e && f.g else H {}",
    "set i.j = k set l.m = n.o set a.b = c(d, e) + f",
    "set k.l = (if m then n else o.p) emit G { h, i: j }",
    "transition A on b revision c stale D {} illegal E {}",
    "transition F on g illegal H {}, revision i.j stale K {}",
    "lease claim a on b owner c duration_seconds d revision e stale F {} unavailable G {} invalid H {}",
    "lease renew a on b stale F {} revision e invalid H {} fencing_token g expired J {} owner c.d",
    "decide a { when b apply { set c.d = e return F {} } when g none H {} otherwise apply {} }",
    "decide a { when b in (c, d) apply {} when e is null none F { g: h } otherwise none I {} }",
    "decide a { when i == j.k none L {} otherwise apply { set b.c = d } }",
)
BULK = "for a in b { read C(d.e) as f else G {} set h.i = j set k.l = m } return N { o }"
REIMPORT = "input a: B idempotency_key c reconstitute D from e else F {} return G {}"
BESIDE = (
    "query A($b: C, $d: E<8> = F.G) reveals (H.i, J.k) { one l from M where n else O {} "
    "return P { q: r { s t, u }, v } }",
    "query A() { maybe b from C where d == e.f many g from H where i order by j, k desc, l asc take 1 return M {} }",
    "query A() { many g from H order by j take $k after $l where i return M {} }",
    "query A() { count b from C where d by e take 1 sum f of g from H where i take 1 max j of k from L take 1 where m "
    "return N {} }",
    "stream A($b: C) { partition d == $b event E { f g, h } where i event J { k } where l.m event N { o } }",
    "role A { query B, C command D stream E, F command G }",
    "schedule A { from query B each c due d revision e claim F renew G run H release I fail J }",
    "schedule A { fail J release I run H claim F due d from stream B event C }",
    "schedule A { from stream B due d claim F run H release I }",
)


def _in_contract(declaration: str) -> str:
    return f"contract N version 1 {{ {declaration} }}"


SAMPLES = (
    *(_in_contract(declaration) for declaration in DECLARATIONS),
    *(_in_contract(f"command X {{ {statement} return Y {{}} }}") for statement in STATEMENTS),
    _in_contract(f"bulk command X {{ {BULK} }}"),
    _in_contract(f"reimport command X {{ {REIMPORT} }}"),
    *BESIDE,
)


def places_of(tree: Tree) -> list[int]:
    """The offsets of the names in a tree that are no keywords of the grammar."""
    keywords: set[int] = set()
    for node in nodes(tree):
        if isinstance(node, OperandClause | OutcomeClause):
            keywords.add(node.word.span.start)
        elif isinstance(node, LeaseStmt):
            keywords.add(node.operation.span.start)
        elif isinstance(node, ServiceDecl):
            keywords.add(node.kind.span.start)
    return sorted({name.span.start for name in names(tree)} - keywords)


class Template:
    """A sample whose names can be replaced."""

    def __init__(self, sample: str) -> None:
        tokens = tokenize(Source("sample.riff", sample))
        tree = parsed(sample)
        starts = set(places_of(tree))
        self.texts = tokens.texts
        self.places = [index for index, start in enumerate(tokens.starts) if start in starts]
        self.shape = [type(node) for node in nodes(tree)]

    def replaced(self, place: int, word: str, gap: str = "\n") -> str:
        """The text with another name at one place."""
        return gap.join((*self.texts[:place], self.word_at(place, word), *self.texts[place + 1 :]))

    def word_at(self, place: int, word: str) -> str:
        """The word as it stands at a place."""
        return f"${word}" if self.texts[place].startswith("$") else word


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_keyword_is_a_name_in_every_place(sample: str) -> None:
    template = Template(sample)
    for place in template.places:
        for word in sorted(WORDS):
            text = template.replaced(place, word)
            found, diagnostics = parse(Source("sample.riff", text))
            assert not diagnostics, (diagnostics[0].message, text)
            assert [type(node) for node in nodes(found)] == template.shape, text


@pytest.mark.parametrize("gap", [" ", "\n"], ids=["line", "lines"])
def test_every_keyword_is_every_name_at_once(gap: str) -> None:
    template = Template(GRAMMAR)
    for word in sorted(WORDS):
        texts = list(template.texts)
        for place in template.places:
            texts[place] = template.word_at(place, word)
        found, diagnostics = parse(Source("sample.riff", gap.join(texts)))
        assert not diagnostics, (diagnostics[0].message, word)
        assert [type(node) for node in nodes(found)] == template.shape, word


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_reserved_word_is_no_name_anywhere(sample: str) -> None:
    template = Template(sample)
    for place in template.places:
        if template.texts[place].startswith("$"):
            continue
        for word in sorted(RESERVED):
            text = template.replaced(place, word, " ")
            found = mistakes(text)
            if word in ("true", "false", "null") and not found:
                assert len(names(parse(Source("sample.riff", text))[0])) < template.shape.count(Name)
                continue
            assert len(found) == 1, (word, text)


def test_a_reserved_word_is_named_with_its_place() -> None:
    (found,) = mistakes(_in_contract("entity then { key (id: uuid) }"))
    assert (found.code, found.span.text) == ("RDB-C007", "then")
    (found,) = mistakes(_in_contract("entity E { key (not: uuid) field is: u64 }"))[:1]
    assert (found.code, found.span.text) == ("RDB-C007", "not")


def test_words_of_sql_and_of_languages_are_names() -> None:
    (contract,) = parsed(_in_contract("entity select { key (from: uuid, class: uuid) field order: u64 }")).declarations
    (entity,) = (node for node in nodes(contract) if isinstance(node, EntityDecl))
    assert entity.name.text == "select"
    assert not any(isinstance(node, WorkflowDecl) for node in nodes(contract))
