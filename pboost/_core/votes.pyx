"""The vote of an exit, for Python; the kernels use the same inline function."""
from pboost._core cimport _math


def half_log_odds(double positive, double negative, double smoothing):
    """Half log odds of two masses, each raised by `smoothing`, clipped to +-0.5 ln(2**52)."""
    return _math.half_log_odds(positive, negative, smoothing)
