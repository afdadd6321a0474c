"""Diagrams as Mermaid text, which many pages and code hosts draw.

Several workflows stand in one diagram, each in a state of its own. States get identifiers with the workflow's number
before them, so that none is a word of Mermaid and none stands for two. Absent: anything about how it will look.
"""

from collections.abc import Iterator

from riffdb.codegen.graph.diagrams import Diagram


def mermaid(diagrams: tuple[Diagram, ...]) -> str:
    """One `stateDiagram-v2` of all the diagrams."""
    lines = ["stateDiagram-v2"]
    if len(diagrams) == 1:
        lines = ["---", f"title: {diagrams[0].title}", "---", *lines]
        lines.extend(_body(diagrams[0], 1, "  "))
    else:
        for number, diagram in enumerate(diagrams, 1):
            lines.append(f'  state "{diagram.title}" as w{number} {{')
            lines.extend(_body(diagram, number, "    "))
            lines.append("  }")
    return "\n".join(lines)


def _body(diagram: Diagram, number: int, lead: str) -> Iterator[str]:
    def name(state: str) -> str:
        return f"w{number}_{state}"

    for state in diagram.states:
        yield f'{lead}state "{state}" as {name(state)}'
    if diagram.initial is not None:
        label = f" : {', '.join(diagram.creators)}" if diagram.creators else ""
        yield f"{lead}[*] --> {name(diagram.initial)}{label}"
    for move in diagram.moves:
        commands = ", ".join(move.commands) or "no command"
        yield f"{lead}{name(move.source)} --> {name(move.destination)} : {move.transition} ({commands})"
    for state in diagram.terminal:
        yield f"{lead}{name(state)} --> [*]"
    if diagram.lease is not None and diagram.states:
        yield f"{lead}note right of {name(diagram.initial or diagram.states[0])}"
        for line in diagram.lease.lines:
            yield f"{lead}  {line}"
        yield f"{lead}end note"
