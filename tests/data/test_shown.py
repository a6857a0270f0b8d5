"""How prepared columns are shown, and what is said of dicts in place of rows."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb

X = np.random.default_rng(0).normal(size=(500, 30))
MADE = {
    "BinnedColumns": pb.data.bin_columns(X),
    "SortedColumns": pb.data.sort_columns(X),
    "BinnedValues": pb.data.bin_columns(X, keep_values=True),
}


@pytest.mark.parametrize("name", MADE)
def test_columns_are_shown_in_short(name):
    assert repr(MADE[name]) == f"<{name}: 500 rows, 30 features>"


def test_stored_columns_are_shown_in_short(tmp_path):
    batches = [(X[:40, :3], np.arange(40) % 2)]
    folder = pb.data.bin_files(batches, tmp_path / "folder")
    assert "40 rows" in repr(folder)
    assert len(repr(folder)) <= 200


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ({"a": 1.0, "b": 2.0}, "a dict"),
        ({"a": [1.0], "b": [2.0]}, "a dict"),
        ([{"a": 1.0, "b": 2.0}], "a list of dicts"),
    ],
    ids=str,
)
def test_dicts_are_no_rows(rows, kind):
    model = pb.fit_adaboost(X[:, :2], X[:, 0] > 0, n_estimators=2)
    for call in (pb.predict_proba, pb.predict, pb.decision_function):
        with pytest.raises(TypeError) as caught:
            call(model, rows)
        assert str(caught.value) == (
            f"X: expected a matrix or a data frame, got {kind}; pass pandas.DataFrame([row]) for "
            "a row with names, or pandas.DataFrame(columns) for columns with names; "
            "pb.row_predictor(model) predicts single dicts"
        )
    with pytest.raises(TypeError, match=r"^X: expected a matrix or a data frame, got"):
        pb.fit_cart(rows, [0])
