"""`make twin commands=N`: stories until so many commands agreed, with how they ended and how fast it went.

Files lie in memory where the machine has such a place, and a story is longer than in the suite, so that one core does
more than a thousand commands a second. The first disagreement ends it, with its seed.
"""

import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.model.agreement import told

COMMANDS = 3_000
SHARED_MEMORY = Path("/dev/shm")  # a folder of its own is made in it


def main(arguments: list[str]) -> None:
    """Run; arguments are the number of commands and the first seed."""
    wanted = int(arguments[0]) if arguments else 50_000
    seed = first = int(arguments[1]) if len(arguments) > 1 else 1_000
    ended: Counter[str] = Counter()
    started = time.monotonic()
    with TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
        while sum(ended.values()) < wanted:
            told(seed, Path(folder), ended, COMMANDS)
            seed += 1
            if seed % 20 == 0:
                print(f"{sum(ended.values()):>10,} commands, seeds {first} to {seed - 1}", file=sys.stderr, flush=True)
    seconds = time.monotonic() - started
    for name, count in ended.most_common():
        print(f"{count:>10,}  {name}")
    total = sum(ended.values())
    print(f"{total:>10,}  commands agreed, seeds {first} to {seed - 1}, {total / seconds:,.0f} a second")


if __name__ == "__main__":
    main(sys.argv[1:])
