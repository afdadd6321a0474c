"""The text of a contract to its tree: tokens, a cursor over them, one parser a rule, recovery after each mistake.

`parse` is the door; `riffdb.syntax.tree` is what it makes. The modules, in the order of their imports: `words`,
`tokens`, `position`, `cursor`, `strings`, `expressions`, `data`, `commands`, `queries`, `parser`. It raises on no text.
The way back is `formatting.format_source`, which takes `lines` from the tree and keeps tokens and comments.
Absent: what names mean and every rule beyond the grammar, which the compiler has.
"""

from riffdb.syntax.parser import parse

__all__ = ["parse"]
