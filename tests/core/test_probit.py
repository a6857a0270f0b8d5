"""The probit loss and its derivatives: all digits, for margins from -1e6 to 1e6."""

from __future__ import annotations

import numpy as np
import pytest
from reference import probit as reference

from pboost._core import probit

TINY = np.finfo(float).tiny
NEGATIVE = [-np.logspace(6, -3, 40), np.linspace(-60, 0, 121), [-16.0, -15.999, -50.0]]
MARGINS = np.concatenate([*NEGATIVE, np.linspace(0, 40, 81), [1e6]])


def computed(m):
    actual = []
    for function in (probit.losses, probit.ratios, probit.excesses):
        out = np.empty_like(m)
        function(m, out)
        actual.append(out)
    return np.array(actual)


@pytest.fixture(scope="module")
def exact():
    return np.array([reference.probit(float(m)) for m in MARGINS]).T


@pytest.mark.full_for("loss")
@pytest.mark.parametrize(
    ("row", "rtol"), [(0, 2e-13), (1, 1e-14), (2, 1e-14)], ids=["loss", "ratio", "excess"]
)
def test_values(exact, row, rtol):
    # Numbers below the least normal one have fewer digits.
    np.testing.assert_allclose(computed(MARGINS)[row], exact[row], rtol=rtol, atol=TINY)


def test_known_values():
    """The numbers of the function at 0, and the leading terms far below it."""
    loss, ratio, excess = computed(np.array([0.0, -1e6]))
    assert loss[0] == pytest.approx(np.log(2), rel=1e-15)
    assert ratio[0] == excess[0] == pytest.approx(np.sqrt(2 / np.pi), rel=1e-15)
    assert excess[1] == pytest.approx(1e-6 * (1 - 2e-12), rel=1e-15)
    assert loss[1] == pytest.approx(0.5e12 + np.log(1e6) + np.log(2 * np.pi) / 2, rel=1e-15)


def test_second_derivative_is_between_0_and_1():
    _, ratio, excess = computed(np.linspace(-1e3, 37, 100_001))
    assert ((ratio * excess > 0) & (ratio * excess < 1 + 1e-14)).all()


def test_ends():
    np.testing.assert_array_equal(
        computed(np.array([-np.inf, np.inf, np.nan])),
        [[np.inf, 0, np.nan], [np.inf, 0, np.nan], [0, np.inf, np.nan]],
    )
