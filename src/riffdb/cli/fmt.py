"""`riffdb fmt`: lay the sources of an application out as is usual here, or say which are not.

A file is put in its place whole or not at all; one with a mistake in its syntax stays as it is and is told of, and with
it nothing else is written. With `--check` nothing is written, and exit 1 says that something would be.
"""

from pathlib import Path

import click

from riffdb.cli.files import replace_file
from riffdb.cli.output import note, print_json
from riffdb.client.application import load_application, read_source
from riffdb.core.diagnostics import Diagnostic, has_errors, render, to_json
from riffdb.core.limits import SOURCE_BYTES_MAX
from riffdb.core.spans import Source, Span
from riffdb.syntax.formatting import Formatted, format_source


@click.command("fmt", short_help="lay the sources of a contract out")
@click.argument("place", metavar="[DIR|FILE]", default=".", type=click.Path(path_type=Path))
@click.option("--check", "is_check", is_flag=True, help="Write nothing; exit 1 if a file is laid out otherwise.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(place: Path, is_check: bool, as_json: bool) -> int:
    """Lay out the files of the application in DIR, or one FILE."""
    sources = (read_source(place),) if place.is_file() else load_application(place).sources
    formatted = [(source, _laid_out(source)) for source in sources]
    diagnostics: list[Diagnostic] = [known for _, result in formatted for known in result.diagnostics]
    is_wrong = has_errors(diagnostics)
    changed = {} if is_wrong else {s.path: r.text for s, r in formatted if r.text is not None and r.text != s.text}
    if not is_check:
        found = {source.path: source.text for source in sources}
        for path, text in changed.items():
            replace_file(Path(path), text, read=found[path])
    if as_json:
        is_done = not is_wrong and not (is_check and changed)
        print_json({"ok": is_done, "changed": list(changed), "diagnostics": [to_json(known) for known in diagnostics]})
    for known in diagnostics if not as_json else ():
        note(render(known))
    if is_wrong:
        note("nothing was written: a file with errors has no layout")
        return 3
    for path in changed:
        note(f"{path}: {'is laid out otherwise' if is_check else 'laid out'}")
    return 1 if is_check and changed else 0


def _laid_out(source: Source) -> Formatted:
    """The layout of a source; an error where it would be larger than a file may be, so that nobody could read it."""
    formatted = format_source(source)
    size = 0 if formatted.text is None else len(formatted.text.encode())
    if size <= SOURCE_BYTES_MAX:
        return formatted
    message = f"laid out it would have {size} bytes, and a file has at most {SOURCE_BYTES_MAX}"
    help_text = "split the application into several files"
    return Formatted(None, (Diagnostic("RDB-C002", message, Span(source, 0, 0), help=help_text),))
