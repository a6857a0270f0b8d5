"""What stands for missing values, and how far the values of a column spread."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from pboost.data.node_inputs import imputation as fill


def test_the_spread_is_that_of_known_values_in_any_layout():
    rng = np.random.default_rng(2)
    weights = rng.random(400) * (rng.random(400) > 0.2)
    for scale, far in ((1.0, 3.0), (1e150, 0.0), (1e-150, 9.0), (1e300, 1.0), (2.0**-8, 2.0**30)):
        X = (far + rng.normal(size=(400, 4))) * scale
        X[::5, 1], X[:, 2], X[:, 3] = np.nan, 7.0 * scale, np.nan
        actual = fill.column_spread(X, weights)
        for j, known in ((0, weights > 0), (1, (weights > 0) & ~np.isnan(X[:, 1]))):
            z, share = X[known, j] / scale, weights[known] / weights[known].sum()
            want = math.sqrt(math.fsum(share * (z - math.fsum(share * z)) ** 2)) * scale
            assert actual[j] == pytest.approx(want, rel=1e-12)
        assert actual[2] <= 1e-15 * scale
        assert actual[3] == 0.0
        assert fill.column_spread(np.asfortranarray(X), weights).tolist() == actual.tolist()


@pytest.mark.full
def test_the_spread_does_not_depend_on_threads_of_blas():
    code = (
        "import numpy as np; from pboost.data.node_inputs.imputation import column_spread; "
        "r = np.random.default_rng(0); "
        "print(column_spread(r.normal(size=(30_000, 3)), r.random(30_000)).tobytes().hex())"
    )
    actual = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OPENBLAS_NUM_THREADS": n},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for n in ("1", "2")
    }
    assert len(actual) == 1
