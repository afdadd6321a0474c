"""What is done with one item: `riffdb worker DueWorkItems --handler handlers:complete`.

The worker claims an item, calls the handler while it renews the lease, then runs `CompleteWork`. A handler returns the
inputs of that command which are no part of the item or its lease; `CompleteWork` has none. An exception sends the item
to `FailWork`, to be tried again later. A handler may run more than once for one item: effects outside belong behind
the commit, in whoever follows `WorkActivity`.
"""

from riffdb.scheduler import Work


def complete(item: Work) -> None:
    """Do the work of one item; `item.fields` is what `DueWork` selected, `item.claimed` the row as it was claimed."""
