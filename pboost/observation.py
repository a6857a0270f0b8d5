"""Observation models: how sure the answer of a weak classifier is.

An observation model gives ``q(a, n)``, the probability that row ``n`` takes exit ``a`` of a weak
classifier. With `exact` answers, q is 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exact:
    """Answers that are always what the weak classifier says."""

    name: str = "exact"


def exact() -> Exact:
    """Answers without error: every row takes the exit that the weak classifier names.

    Returns
    -------
    Exact
        To be passed as ``observation=`` to a builder.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.exact()
    Exact(name='exact')
    """
    return Exact()
