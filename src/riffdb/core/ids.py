"""Incident ids, which tie an error that a caller sees to the log line that explains it. Request keys and ids of rows
are UUIDs version 7 (RFC 9562), which `uuid_utils` makes where they are needed."""

import os


def incident_id() -> str:
    """A new incident id: twelve hexadecimal digits."""
    return os.urandom(6).hex()
