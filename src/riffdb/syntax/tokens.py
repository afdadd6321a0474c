"""Text to tokens: three parallel lists, since an object a token would be the dearest part of a parse.

The kind of a symbol or a reserved word is its own text; the others are `name`, `int`, `decimal`, `string`, `param`,
`bad` and, once and last, `end`. Doc comments are kept by the index of the token that they precede. What is no token
has its diagnostic here and is left out or stands as `bad`, which the parser passes over in silence.
Absent: keywords, which only the parser can tell from names.
"""

import re
from dataclasses import dataclass, field

from riffdb.core.diagnostics import Diagnostic, Edit, Fix
from riffdb.core.limits import DIAGNOSTICS_MAX, IDENTIFIER_BYTES_MAX
from riffdb.core.spans import Source, Span
from riffdb.syntax.words import RESERVED

NUMBER_DIGITS_MAX = 4_000

_TOKEN = re.compile(
    r"""[\ \t\r\n\f\v]*+(?:
      (?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<doc>///(?!/)[^\n]*+)
    | (?P<comment>//[^\n]*+)
    | (?P<block>/\*(?s:.*?)(?:\*/|\Z))
    | (?P<symbol>\|\||&&|==|!=|<=|>=|->|\.\.|[{}()<>:,.=+\-*/%!])
    | (?P<param>\$[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<string>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")
    | (?P<odd>[0-9]++(?:\.[0-9]++)?+[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<number>[0-9]++(?:\.[0-9]++)?+)
    | (?P<end>\Z)
    | (?P<open>"[^\n]*+)
    | (?P<single>'[^'\n]*+'?)
    | (?P<hash>\#[^\n]*+)
    | (?P<semicolon>;++)
    | (?P<bad>[^\x00-\x7f]++|[@^~?`\[\]\\]++|(?s:.))
    )""",
    re.VERBOSE,
)


@dataclass(slots=True)
class Tokens:
    """The tokens of one source with what was wrong in it."""

    source: Source
    texts: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    docs: dict[int, list[str]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def tokenize(source: Source) -> Tokens:
    """The tokens of a source; ends early once a hundred things are wrong in it."""
    tokens = Tokens(source)
    texts, kinds, starts = tokens.texts, tokens.kinds, tokens.starts
    offset = 1 if source.text.startswith("\ufeff") else 0
    for match in _TOKEN.finditer(source.text, offset):
        kind = match.lastgroup or "bad"
        text = match[kind]
        start = match.end() - len(text)
        if kind == "name":
            if len(text) > IDENTIFIER_BYTES_MAX:
                _report(tokens, start, text, *_long_name(text))
            elif text in RESERVED:
                kind = text
        elif kind == "symbol":
            kind = text
        elif kind == "number":
            kind = "decimal" if "." in text else "int"
            if len(text) > NUMBER_DIGITS_MAX:
                _report(tokens, start, text, "RDB-C006", f"a number has at most {NUMBER_DIGITS_MAX} digits", None)
                kind = "bad"
        elif kind == "doc":
            tokens.docs.setdefault(len(texts), []).append(text[3:].removeprefix(" ").rstrip())
            continue
        elif kind == "comment":
            continue
        elif kind not in ("param", "string", "end"):
            kind = _refuse(tokens, kind, text, start)
            if not kind:
                continue
        texts.append(text)
        kinds.append(kind)
        starts.append(start)
        if kind == "end":
            break
        if len(tokens.diagnostics) >= DIAGNOSTICS_MAX:
            break
    if not kinds or kinds[-1] != "end":
        texts.append("")
        kinds.append("end")
        starts.append(starts[-1] + len(texts[-2]) if starts else len(source.text))
    return tokens


def lexemes(source: Source) -> list[tuple[str, str, int]]:
    """Kind, text and offset of every token and comment of a source that has no mistakes, the end among them."""
    offset = 1 if source.text.startswith("\ufeff") else 0
    found = []
    for match in _TOKEN.finditer(source.text, offset):
        kind = match.lastgroup or "bad"
        found.append((kind, match[kind], match.end() - len(match[kind])))
        if kind == "end":
            break
    return found


def _report(tokens: Tokens, start: int, text: str, code: str, message: str, remedy: str | Fix | None) -> None:
    fix = remedy if isinstance(remedy, Fix) else None
    note = remedy if isinstance(remedy, str) else None
    span = Span(tokens.source, start, start + len(text))
    tokens.diagnostics.append(Diagnostic(code, message, span, fix=fix, help=note))


def _long_name(text: str) -> tuple[str, str, str]:
    message = f"a name has at most {IDENTIFIER_BYTES_MAX} bytes, this one has {len(text)}"
    return "RDB-C008", message, "choose a shorter name"


def _refuse(tokens: Tokens, kind: str, text: str, start: int) -> str:
    """Report what is no token; the kind that it is kept as, empty when it is left out."""
    span = Span(tokens.source, start, start + len(text))
    if kind == "odd":
        is_grouped = text.replace("_", "").isdigit()
        remedy = "write it without `_`" if is_grouped else "a name begins with a letter or `_`"
        _report(tokens, start, text, "RDB-C006", "a number holds digits alone", remedy)
        return "bad"
    if kind == "open":
        _report(tokens, start, text, "RDB-C004", "the string is not closed on its line", 'close it with `"`')
        return "bad"
    if kind == "single":
        _report(tokens, start, text, "RDB-C003", "a string stands in double quotes", "write `\"` instead of `'`")
        return "bad"
    if kind == "semicolon":
        fix = Fix("take the `;` out", (Edit(span, ""),), safe=True)
        _report(tokens, start, text, "RDB-C003", "nothing is ended or separated by `;`", fix)
        return ""
    if kind == "hash":
        fix = Fix("begin the comment with `//`", (Edit(Span(tokens.source, start, start + 1), "//"),), safe=True)
        _report(tokens, start, text[0], "RDB-C003", "a comment begins with `//`, not with `#`", fix)
        return ""
    if kind == "block":
        _report(tokens, start, text[:2], "RDB-C003", "there are no block comments", "begin each line with `//`")
        return ""
    _report(tokens, start, text, *_bad_character(text))
    return "bad"


def _bad_character(text: str) -> tuple[str, str, str]:
    character = text[0]
    shown = f"`{character}`" if character.isprintable() and character != "`" else f"U+{ord(character):04X}"
    remedies = {
        "&": "write `&&` for `and`",
        "|": "write `||` for `or`",
        "$": "a parameter is written `$name`",
        "[": "lists stand in `(` and `)`, blocks in `{` and `}`",
        "]": "lists stand in `(` and `)`, blocks in `{` and `}`",
        "“": 'a string stands in straight double quotes `"`',
        "”": 'a string stands in straight double quotes `"`',
    }
    remedy = remedies.get(character, "take it out; a name has letters, digits and `_` of ASCII")
    return "RDB-C003", f"the language does not use {shown}", remedy
