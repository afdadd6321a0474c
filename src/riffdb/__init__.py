"""RiffDB, a workflow database: contracts compile to durable, idempotent, fenced commands.

Invariant: importing this package is cheap; it loads nothing beyond the standard library's import machinery, so
that `riffdb --help` and every short command start at once. Deliberately absent: eager imports of any layer.
"""

__version__ = "0.1.0"
