"""The compiled contract as frozen values: the waist between the compiler and everything behind it.

`plan.Plan` is the whole; `expressions`, `declarations`, `commands` and `queries` hold its parts; `identity` gives the
canonical form and the hashes. A plan is proven: whoever reads it checks nothing again. It knows no source text, no
store and no transport.
"""

from riffdb.plan.plan import Plan

__all__ = ["Plan"]
