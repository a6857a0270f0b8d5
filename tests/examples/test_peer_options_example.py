"""Options that others have, too: what the table says is what they do."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from example_modules import EXAMPLES

import pboost as pb
from pboost.values.parameter_aliases import PEERS

pytestmark = pytest.mark.full

lightgbm = pytest.importorskip("lightgbm", reason="the options of LightGBM are compared")
xgboost = pytest.importorskip("xgboost", reason="the options of XGBoost are compared")
pytest.importorskip("sklearn", reason="the options of scikit-learn are compared")
if not EXAMPLES.exists():
    pytest.skip("no examples/ beside tests/", allow_module_level=True)
sys.path.insert(0, str(EXAMPLES))
import peer_cases  # noqa: E402
import peer_options  # noqa: E402
import peer_trees  # noqa: E402

sys.path.remove(str(EXAMPLES))
TABLE = EXAMPLES.parent / "docs" / "benchmarks" / "peer_options_table.rst"
CASES = [*peer_cases.loss_cases(), *peer_cases.CASES]


def check(row):
    """Compare the two numbers of a row, and look it up in the table."""
    assert row.agrees == (not row.difference), row
    if row.without is not None and not row.difference:  # the option is of use
        same = np.shape(row.here) == np.shape(row.without) and np.allclose(row.here, row.without)
        assert not same, row
    if not TABLE.exists():
        pytest.skip("no docs/ beside tests/")
    lines = "\n".join(peer_options.cells_of(row))
    assert lines in TABLE.read_text(encoding="utf-8"), lines


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.data}: {case.title}")
def test_sums_of_trees(case):
    rows = list(peer_options.rows_of(case))
    assert [row.peer for row in rows] == [*case.peers]
    for row in rows:
        check(row)


@pytest.mark.parametrize("part", peer_trees.PARTS, ids=lambda part: part.__name__)
def test_trees_forests_and_votes(part):
    for item in part():
        check(peer_options.Row(*item))


def test_every_option_that_others_have_is_compared():
    shared = {name for name, peers in PEERS.items() if peers.names() - {""}}
    text = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    compared = {
        name
        for name in shared
        if any(f"* - ``{name}{end}" in text for end in ("=", ",", "``"))
        or any(f"weak.stump, {name}{end}" in text for end in ("=", ","))
    }
    if TABLE.exists():
        assert shared - compared == peer_cases.NOT_COMPARED.keys()


def test_the_table_has_no_other_rows():
    if not TABLE.exists():
        pytest.skip("no docs/ beside tests/")
    actual = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if "* -" in line]
    of_trees = sum("Classifier" in line or "Regressor" in line for line in actual)
    assert of_trees == 0  # options come first
    peers = [kind for case in CASES for kind in case.peers]
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    for kind in set(peers):
        assert lines.count(f"     - {kind}") == peers.count(kind)


def binary(n=1500):
    """Return whole numbers, so that bins are theirs, and two classes."""
    r = np.random.default_rng(4)
    X = r.integers(0, 40, (n, 4)).astype(float)
    score = X[:, 0] / 9 - X[:, 1] * X[:, 2] / 300 + np.sin(X[:, 3] / 5)
    return X, (score + r.normal(size=n) > 1.5).astype(float)


def page_options(name):
    """Return the options that the page for users of other libraries has."""
    pages = EXAMPLES.parent / "docs" / "getting_started"
    page = (pages / f"{name.replace('like', 'from')}.rst").read_text(encoding="utf-8")
    start = page.index("{", page.index(f">>> {name} = {{"))
    text = page[start : page.index("}", start) + 1].replace("...", "")
    return eval(text, {})


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_options_of_the_page_give_the_models_of_others(kind):
    """All is at its default there but for the number of threads and of rounds."""
    X, y = binary()
    model = pb.fit_gradient_boosting(X, y, n_estimators=5, **page_options(f"like_{kind}"))
    if kind == "xgboost":
        rows = xgboost.DMatrix(X, y)
        peer = xgboost.train({"objective": "binary:logistic", "nthread": 1}, rows, 5)
        expected = peer.predict(rows, output_margin=True)
    else:
        own = {"objective": "binary", "num_threads": 1, "verbosity": -1}
        expected = lightgbm.train(own, lightgbm.Dataset(X, y), 5).predict(X, raw_score=True)
    np.testing.assert_allclose(pb.decision_function(model, X), expected, rtol=1e-3, atol=1e-4)


# LightGBM drops features below nodes where they gain less, so that its gain has to be small.
@pytest.mark.parametrize(("kind", "times", "gain"), [("xgboost", 2, 1.0), ("lightgbm", 1.5, 0.2)])
def test_options_of_softmax_are_converted_as_the_page_says(kind, times, gain):
    X, y = binary()
    y = (y + (X[:, 0] > 25)).astype(int)
    rate, l2, weight = 0.3, 3.0, 12.0
    model = pb.fit_gradient_boosting(
        X,
        y,
        loss="softmax",
        n_estimators=3,
        learning_rate=rate / times,
        l2_regularization=l2 / times,
        max_depth=3,
        min_child_weight=weight / times,
        min_split_gain=gain * times,
        max_delta_step=None,
        growth="independent",
        init="zero",
        leaf_update="newton",
    )
    own = {"num_class": 3, "learning_rate": rate, "max_depth": 3}
    if kind == "xgboost":
        rows = xgboost.DMatrix(X, y)
        own |= {"reg_lambda": l2, "min_child_weight": weight, "gamma": gain, "base_score": 0.0}
        peer = xgboost.train({"objective": "multi:softprob", "nthread": 1, **own}, rows, 3)
        expected = peer.predict(rows, output_margin=True)
    else:
        own |= {"lambda_l2": l2, "min_sum_hessian_in_leaf": weight, "min_gain_to_split": gain}
        own |= {"min_data_in_leaf": 1, "boost_from_average": False, "verbosity": -1}
        rows = lightgbm.Dataset(X, y)
        peer = lightgbm.train({"objective": "multiclass", "num_threads": 1, **own}, rows, 3)
        expected = peer.predict(X, raw_score=True)
    np.testing.assert_allclose(pb.decision_function(model, X), expected, rtol=1e-3, atol=1e-4)
