"""The planted bugs still have their places, so that `make planted` can plant them.

Apart from the twin's tests, since those run with a bug in its place, where the text that it replaced is gone.
"""

import pytest

from tests.model.planted import BUGS, Planted, planted


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_still_has_its_place(bug: Planted) -> None:
    assert bug.instead in planted(bug)
