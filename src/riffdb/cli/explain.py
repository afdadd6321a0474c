"""`riffdb explain`: what a code means and why the rule is there, with a wrong and a right example.

Without a code it lists the codes. `--whole` shows each example with the application around it. Absent: the pages
themselves, which stand beside the table of codes.
"""

import textwrap

import click

from riffdb.cli.output import print_json, print_text
from riffdb.core.codes import CODES
from riffdb.core.explanation import TITLES, Example, Explanation, explanation_of


@click.command("explain", short_help="explain a code")
@click.argument("code", metavar="[CODE]", required=False)
@click.option("--whole", "is_whole", is_flag=True, help="Show the examples with the application around them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(code: str | None, is_whole: bool, as_json: bool) -> int:
    """Explain CODE, such as RDB-C103; without one, list the codes with their titles."""
    if code is None:
        if as_json:
            print_json({"codes": [{"code": known, "title": title} for known, title in TITLES.items()]})
        else:
            width = max(map(len, TITLES))
            print_text("\n".join(f"{known:<{width}}  {title}" for known, title in TITLES.items()))
        return 0
    explanation = explanation_of(code)
    if as_json:
        print_json(_json(explanation))
    else:
        print_text(_text(explanation, is_whole=is_whole))
    return 0


def _json(explanation: Explanation) -> dict[str, object]:
    facts = CODES.get(explanation.code)
    return {
        "code": explanation.code,
        "title": explanation.title,
        "text": "\n\n".join(part for part in explanation.parts if isinstance(part, str)),
        "examples": [
            {"wrong": example.is_wrong, "text": example.text, "files": example.files}
            for example in explanation.examples
        ],
        **({} if facts is None else {"status": facts.status, "exit": facts.exit, "retryable": facts.retryable}),
    }


def _text(explanation: Explanation, *, is_whole: bool) -> str:
    parts = [f"{explanation.code}: {explanation.title}"]
    facts = CODES.get(explanation.code)
    if facts is not None:
        again = "may" if facts.retryable else "will not"
        parts.append(f"HTTP status {facts.status}, exit code {facts.exit}; the same request {again} succeed later.")
    for part in explanation.parts:
        parts.append(part if isinstance(part, str) else _shown(part, is_whole=is_whole))
    if explanation.examples and not is_whole:
        parts.append(f"With the application around them: riffdb explain {explanation.code} --whole")
    return "\n\n".join(parts)


def _shown(example: Example, *, is_whole: bool) -> str:
    place = f", in the command `{example.place}`" if example.place and not is_whole else ""
    text = example.files["team.riff"] if is_whole else example.text
    return f"{'Wrong' if example.is_wrong else 'Right'}{place}:\n\n{textwrap.indent(text.rstrip(), '    ')}"
