"""Rows give the same model in whatever order of memory they come, and as a data frame."""

import numpy as np
import ordered
import pytest

import pboost as pb

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 4)).round(2)
SCORE = X[:, 0] + X[:, 1] * X[:, 2]
TARGETS = {"two": SCORE > 0, "three": np.digitize(SCORE, [-0.4, 0.5]), "numbers": SCORE}
HOLES = X.copy()
HOLES[::7, 1] = HOLES[3::9, 2] = np.nan
#: Rows as they are, and the same in other places.
PLACES = {
    "columns": np.asfortranarray,
    "a part": lambda rows: np.hstack([rows, rows])[:, :4],
    "frame": pd.DataFrame,
}
FITS = {
    **ordered.FITS,
    "real columns, zero": (
        lambda X, y, **more: pb.fit_real_adaboost(
            X, y, n_estimators=4, weak_learner=pb.weak.feature("zero"), **more
        ),
        "two",
    ),
}


def said(fit, rows, y, **more):
    model = ordered.attempt(lambda: fit(rows, y, **more))
    return model if isinstance(model, type) else ordered.scored(model, np.asarray(rows))


@pytest.mark.parametrize("name", [name for name in FITS if name != "within"])
def test_memory_order_changes_nothing(name):
    fit, target = FITS[name]
    weight = np.random.default_rng(0).random(len(X))
    for rows, more in ((X, {"sample_weight": weight}), (X, {}), (HOLES, {})):
        expected = said(fit, rows, TARGETS[target], **more)
        for place, moved in PLACES.items():
            actual = said(fit, moved(rows), TARGETS[target], **more)
            assert (place, ordered.same(actual, expected)) == (place, True)
