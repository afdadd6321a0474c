"""The workflows of a plan as state diagrams: `diagrams` says what stands in one, and each format how it is written.

`mermaid` and `dot` are texts for other programs; `svg` is a picture whose layout (`layout`, `layers`) is our own, so
that it needs none. Absent: which format is asked for on a command line, and files.
"""

from collections.abc import Callable

from riffdb.codegen.graph.diagrams import Diagram, diagrams_of
from riffdb.codegen.graph.dot import dot
from riffdb.codegen.graph.mermaid import mermaid
from riffdb.codegen.graph.svg import svg

FORMATS: dict[str, Callable[[tuple[Diagram, ...]], str]] = {"mermaid": mermaid, "dot": dot, "svg": svg}

__all__ = ["FORMATS", "Diagram", "diagrams_of"]
