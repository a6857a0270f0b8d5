"""A progress bar for people, and nothing for files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(total: int, unit: str) -> Iterator[Callable[..., None] | None]:
    """Yield a callback that moves a bar by one step; None where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:  # the bar is no reason to refuse the work
        yield None
        return
    with tqdm(total=total, unit=f" {unit}", leave=False, delay=0.5, file=sys.stderr) as bar:

        def step(*_: object) -> None:  # not what update() returns: True would stop the fit
            bar.update()

        yield step
