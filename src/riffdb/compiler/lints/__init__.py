"""The lints: what compiles and runs, and is most likely not meant. One module a family.

`names`: inputs, parameters and bindings that nothing uses. A lint looks at a contract without errors and takes nothing
from it; each finding goes to `Collector.lint` under the lint's name, at the place to mend. A finding is right or it is
not made: where a use cannot be excluded, silence. Absent: levels, which the collector holds.
"""

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.lints.names import find_unused_names

FAMILIES = (find_unused_names,)


def find_lints(draft: Draft, collector: Collector) -> None:
    """Run every family over a contract that has no errors."""
    for family in FAMILIES:
        family(draft, collector)
