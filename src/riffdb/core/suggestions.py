""" "Did you mean": the nearest of the names that would have been right.

Only names of contracts, commands and options are ever suggested, never values of users.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from riffdb.core.limits import IDENTIFIER_BYTES_MAX


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` was probably meant to be, if one is near enough."""
    if len(name) > 2 * IDENTIFIER_BYTES_MAX:
        return None
    by_folded = {candidate.lower(): candidate for candidate in candidates}
    matches = get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """The end of a message: `; did you mean …?` with the nearest candidate, or nothing."""
    found = nearest(name, candidates)
    return "" if found is None else f"; did you mean `{found}`?"
