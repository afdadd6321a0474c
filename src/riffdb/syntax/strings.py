"""The value of a string literal: its escapes `\\"`, `\\\\`, `\\n`, `\\t` and `\\u{…}` resolved.

A wrong escape is reported at its place and stands for nothing. No message holds any part of the string but the escape.
Absent: NUL and length, which are rules of the type.
"""

import re

from riffdb.core.spans import Span
from riffdb.syntax.cursor import Cursor

_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|(.))")
_PLAIN = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}


def string_value(cursor: Cursor, index: int) -> str:
    """The text that the string literal at a token stands for."""
    text = cursor.texts[index][1:-1]
    if "\\" not in text:
        return text
    start = cursor.starts[index] + 1

    def resolve(match: re.Match[str]) -> str:
        number, plain = match.groups()
        if plain in _PLAIN:
            return _PLAIN[plain]
        if number is not None and (int(number, 16) < 0xD800 or 0xDFFF < int(number, 16) <= 0x10FFFF):
            return chr(int(number, 16))
        span = Span(cursor.source, start + match.start(), start + match.end())
        if number is not None:
            message, remedy = "the escape names no character of Unicode", "write the hexadecimal number of a character"
        else:
            message = "unknown escape in a string"
            remedy = 'a string has the escapes `\\"`, `\\\\`, `\\n`, `\\t` and `\\u{…}` with 1 to 6 hexadecimal digits'
        cursor.report("RDB-C005", message, span, remedy=remedy)
        return ""

    return _ESCAPE.sub(resolve, text)
