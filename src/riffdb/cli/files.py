"""Writing a file of the user: it is put in its place whole or not at all, under the name and the mode that it has.

What cannot be written is `RDB-E-USAGE` with the path; the old file then stands as it was.
"""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from riffdb.core.errors import RiffError


def replace_file(path: Path, text: str, *, read: str | None = None) -> None:
    """Write a text, with the line ends that it has, in the place of a file or as a new one.

    With what was `read` of the file, it is left alone if that is not in it any more: someone else is writing it.
    """
    place = path.resolve()
    building = place.with_name(f".{place.name}.{uuid4().hex}")
    try:
        with building.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            building.chmod(place.stat().st_mode)
        if read is not None and place.read_bytes() != read.encode():
            building.unlink()
            raise RiffError("RDB-E-USAGE", f"{path} was changed meanwhile and stays as it is; run the command again")
        building.replace(place)
    except OSError as error:
        with suppress(OSError):
            building.unlink()
        raise RiffError("RDB-E-USAGE", f"{path} cannot be written: {error.strerror}") from None
