"""Ctrl-C ends what takes long within a second, and leaves everything as it was.

Threads used to go on to the end of their share of the rows or columns, for many seconds where this
was sorting; expectations and walks were one call for all rows. ``tests/interrupt.py`` has many more
cases, and larger ones.
"""

from __future__ import annotations

import os

import pytest
from interrupt import interrupt, is_soon
from interrupt_cases import SHORT


@pytest.mark.full
@pytest.mark.clock
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("case", SHORT)
def test_interrupted(case):
    for wall, processor, as_before in interrupt(case, times=2, delay=0.25):
        assert is_soon(wall, processor)
        assert as_before
