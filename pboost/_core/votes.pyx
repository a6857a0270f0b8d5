"""The vote of an exit, for Python; kernels and this share one function, see `_vote.pxd`."""
from pboost._core cimport _vote


def half_log_odds(double positive, double negative, double smoothing):
    """Half log odds of two masses, each raised by `smoothing`, clipped to +-0.5 ln(2**52)."""
    return _vote.half_log_odds(positive, negative, smoothing)
