"""Generators of the sources' synthetic problems, and what is known of their probabilities."""

from pboost.datasets.drawn import (
    NINE_CIRCLES_CENTRES,
    NINE_CIRCLES_RADIUS,
    led,
    led_probability,
    mease_wyner,
    mease_wyner_probability,
    nine_circles,
    ringnorm,
    ringnorm_probability,
    twonorm,
    twonorm_probability,
    waveform,
    waveform_probability,
    xd6,
    xd6_probability,
)
from pboost.datasets.finite import balance_scale, monks, parity, tic_tac_toe

__all__ = [
    "NINE_CIRCLES_CENTRES",
    "NINE_CIRCLES_RADIUS",
    "balance_scale",
    "led",
    "led_probability",
    "mease_wyner",
    "mease_wyner_probability",
    "monks",
    "nine_circles",
    "parity",
    "ringnorm",
    "ringnorm_probability",
    "tic_tac_toe",
    "twonorm",
    "twonorm_probability",
    "waveform",
    "waveform_probability",
    "xd6",
    "xd6_probability",
]
