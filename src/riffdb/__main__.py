"""`python -m riffdb` is `riffdb`."""

from riffdb.cli import main

main()
