"""How answers are shown: the JSON as it came with `--json`, else the outcome and its payload for people."""

import json

import click


def show_answer(outcome: str, raw: bytes, *, as_json: bool) -> None:
    """Print an answer."""
    if as_json:
        click.echo(raw.decode())
        return
    body = json.loads(raw)
    click.echo(f"{outcome}{' (replayed)' if body.get('replayed') else ''}")
    click.echo(json.dumps(body["payload"], indent=2, ensure_ascii=False))
    for item in body.get("workflow_revisions", ()):
        click.echo(f"revision of {item['binding']}: {item['revision']}")
