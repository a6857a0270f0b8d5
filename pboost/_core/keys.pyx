"""The keys of open exits, for Python; the kernels use the same inline functions."""
from pboost._core cimport _heap


def rounded(double key):
    """The key to 41 significant bits, the nearest, of two the one farther from 0."""
    return _heap.rounded(key)


def decrease(double before, double lowered):
    """The key of a split that makes `before` less by `lowered`, rounded as a share of it."""
    return _heap.decrease(before, lowered)
