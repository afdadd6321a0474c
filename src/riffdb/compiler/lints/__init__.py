"""The lints: what compiles and runs, and is most likely not meant. One module a family, after `uses` was gathered.

`names`: inputs, parameters and bindings that nothing uses; `declarations`: types, events, entities and indexes;
`workflows`: their transitions, states and lease; `outcomes` with `truth`: what is never answered.
A lint looks at a contract without errors and takes nothing from it; each finding goes to `Collector.lint` under the
lint's name, at the place to mend. A finding is right or it is not made: where a use cannot be excluded, silence.
Absent: levels, which the collector holds.
"""

from riffdb.compiler.collector import Collector
from riffdb.compiler.draft import Draft
from riffdb.compiler.lints.declarations import find_unused_declarations
from riffdb.compiler.lints.names import find_unused_names
from riffdb.compiler.lints.outcomes import find_impossible_outcomes
from riffdb.compiler.lints.uses import uses_of
from riffdb.compiler.lints.workflows import find_lints_of_workflows


def find_lints(draft: Draft, collector: Collector) -> None:
    """Run every family over a contract that has no errors."""
    uses = uses_of(draft)
    find_unused_names(draft, uses, collector)
    if not draft.commands and not draft.queries:
        return  # a contract that is being begun: what will use its data is not said yet
    find_unused_declarations(draft, uses, collector)
    find_lints_of_workflows(draft, uses, collector)
    find_impossible_outcomes(draft, collector)
