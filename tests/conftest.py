"""What every test shares: the `--update` option of the cases, and the profile of the property tests.

Property tests have no deadline, since no test here judges by time, and print what reproduces a failure.
"""

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update`, which rewrites the expected files of `tests/cases`."""
    parser.addoption("--update", action="store_true", help="rewrite the expected files of tests/cases")
