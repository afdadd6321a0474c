"""Diagrams as DOT text, for Graphviz and whatever else reads it: one cluster a workflow.

Every name is quoted; identifiers of a contract hold nothing that a quoted name could not. A move that no command makes
is dashed. Absent: ranks and places, which the program that draws it decides.
"""

from collections.abc import Iterator

from riffdb.codegen.graph.diagrams import Diagram


def dot(diagrams: tuple[Diagram, ...]) -> str:
    """One `digraph` of all the diagrams."""
    lines = ["digraph workflows {", '  node [shape=box, style=rounded, fontname="monospace"]']
    lines.append('  edge [fontname="monospace", fontsize=11]')
    for diagram in diagrams:
        lines.append(f'  subgraph "cluster_{diagram.workflow}" {{')
        lines.extend(f"    {line}" for line in _body(diagram))
        lines.append("  }")
    return "\n".join([*lines, "}"])


def _body(diagram: Diagram) -> Iterator[str]:
    def name(part: str) -> str:
        return f'"{diagram.workflow}.{part}"'

    yield f'label="{diagram.title}"'
    for state in diagram.states:
        border = ", peripheries=2" if state in diagram.terminal else ""
        yield f'{name(state)} [label="{state}"{border}]'
    if diagram.initial is not None:  # no state is called so, since a dash is no part of a name
        label = "\\n".join(diagram.creators)
        yield f'{name("-")} [shape=point, width=0.15, label=""]'
        yield f'{name("-")} -> {name(diagram.initial)} [label="{label}"]'
    for move in diagram.moves:
        label = "\\n".join((move.transition, *(move.commands or ("no command",))))
        style = "" if move.commands else ", style=dashed"
        yield f'{name(move.source)} -> {name(move.destination)} [label="{label}"{style}]'
    if diagram.lease is not None:
        label = "".join(f"{line}\\l" for line in diagram.lease.lines)
        yield f'{name("-lease")} [shape=note, style="", fontsize=11, label="{label}"]'
