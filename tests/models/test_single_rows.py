"""Single rows as dictionaries, lists, tuples and arrays: the same bits as the public functions."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

import pboost as pb

RNG = np.random.default_rng(0)
N = 300
X = pd.DataFrame(
    {
        "number": RNG.normal(size=N),
        "color": RNG.choice(["red", "green", "blue", "größe"], N),
        "count": RNG.integers(0, 9, N),
        "rank": pd.Categorical(
            RNG.choice(["low", "mid", "high"], N), ["low", "mid", "high"], ordered=True
        ),
        "level": RNG.choice([1.5, 2.0, -3.0], N),
        "flag": RNG.random(N) < 0.5,
        "known": RNG.random(N) < 0.5,
    }
)
X.loc[::5, "number"] = np.nan
X.loc[::7, "color"] = None
CATEGORIES = ["color", "level", "flag"]
Y = np.where((X["color"] == "red") ^ (X["number"] > 0.3), "yes", "no")
THREE = np.where(X["level"] > 0, Y, "other")
NAMES = list(X)
GOLDEN = Path(__file__).parents[1] / "golden" / "models"
#: Rows of every kind: as in training, unknown categories, missing values, other types of numbers.
ROWS = [
    *X.iloc[[0, 1, 2, 7]].to_dict("records"),
    {**X.iloc[3].to_dict(), "color": "violet", "level": 7, "rank": "none"},
    dict.fromkeys(NAMES),
    {**X.iloc[4].to_dict(), "number": np.float32(0.1), "count": np.int64(3), "level": 2},
    {**X.iloc[4].to_dict(), "number": Decimal("0.25"), "count": True, "flag": np.bool_(True)},
    {**X.iloc[5].to_dict(), "color": np.str_("red"), "number": pd.NA, "level": float("nan")},
]


def boosted(y=Y, rows=slice(None), **options):
    return pb.fit_gradient_boosting(
        X[rows], y[rows], categorical_features=CATEGORIES, n_estimators=5, **options
    )


MODELS = {
    "gradient boosting": boosted,
    "softmax": lambda: boosted(THREE),
    "poisson": lambda: boosted(X["count"], loss="poisson"),
    "tree": lambda: pb.fit_boosted_tree(X, Y, categorical_features=CATEGORIES, max_nodes=7),
    "chain": lambda: pb.fit_adaboost(X, Y, categorical_features=CATEGORIES, n_estimators=9),
    "forest": lambda: pb.fit_random_forest(
        X, THREE, categorical_features=CATEGORIES, n_estimators=5, rng=0
    ),
    "cart": lambda: pb.fit_cart(X, Y, categorical_features=CATEGORIES),
    "bagging": lambda: pb.fit_bagging(pb.fit_cart, X, Y, n_estimators=3, rng=0),
    "sbpmt": lambda: pb.fit_sbpmt(X, Y, n_estimators=2, n_boosting_rounds=2, rng=0),
    "one_vs_rest": lambda: pb.fit_one_vs_rest(pb.fit_adaboost, X, THREE, n_estimators=4),
    "calibrated": lambda: pb.calibrate(boosted(rows=slice(200)), X[200:], Y[200:]),
    "early_exit": lambda: pb.early_exit(boosted(rows=slice(200)), X[200:], mean_comparisons=6),
}


def public(function, model, row):
    """Return the result of a public function, or the type of its error."""
    try:
        return np.asarray(function(model, row)[0])
    except (TypeError, ValueError) as error:
        return type(error)


def single(predict, row):
    try:
        return np.asarray(predict(row))
    except (TypeError, ValueError) as error:
        return type(error)


def same(actual, expected):
    if isinstance(expected, type):
        return actual is expected
    return actual.dtype == expected.dtype and actual.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_table(name):
    model = MODELS[name]()
    frames, n_results = [pd.DataFrame([row]) for row in ROWS], 0
    for method in ("predict", "predict_proba", "decision_function"):
        if method == "predict_proba" and model.classes is None:
            continue
        predict, function = pb.row_predictor(model, method), getattr(pb, method)
        for row, frame in zip(ROWS, frames, strict=True):
            expected = public(function, model, frame)
            n_results += not isinstance(expected, type)
            backwards = dict(reversed(row.items()))
            values = [row[name] for name in NAMES]
            array = np.array([*values, None], dtype=object)[:-1]
            for given in (row, backwards, MappingProxyType(row), values, tuple(values), array):
                assert same(single(predict, given), expected), (method, given)
    assert n_results >= len(ROWS)


@pytest.mark.full_for("*_*")
@pytest.mark.parametrize(
    "path",
    sorted(set(GOLDEN.glob("*.npz")) - set(GOLDEN.glob("*.outputs.npz"))),
    ids=lambda path: path.stem,
)
def test_every_kind_of_model(path):
    model = pb.load(path)
    rows = np.random.default_rng(1).normal(size=(3, model.n_features))
    n_results = 0
    for method in ("predict", "predict_proba", "decision_function"):
        if method == "predict_proba" and model.classes is None:
            continue
        predict, function = pb.row_predictor(model, method), getattr(pb, method)
        for row in rows:
            expected = public(function, model, row[None])
            n_results += not isinstance(expected, type)
            for given in (row, row.tolist(), tuple(row.tolist()), row.astype(object)):
                assert same(single(predict, given), expected)
            if model.feature_names:
                by_name = dict(zip(model.feature_names, row.tolist(), strict=True))
                assert same(single(predict, by_name), expected)
    assert n_results


@pytest.mark.parametrize("depth", [3, 20])
def test_one_row_is_one_of_many(depth):
    """The kernel walks several trees at a time for one row, and several rows for many rows."""
    table = X.assign(noise=np.linspace(0, 1, N) % 0.01)
    for model in (
        pb.fit_random_forest(
            table, THREE, categorical_features=CATEGORIES, n_estimators=11, max_depth=depth, rng=0
        ),
        pb.fit_gradient_boosting(table, THREE, n_estimators=3, max_depth=depth),
        pb.fit_gradient_boosting(table[["noise", "count"]], Y, n_estimators=9, max_depth=depth),
    ):
        rows = table[list(model.feature_names)]
        many = pb.predict_proba(model, rows)
        predict = pb.row_predictor(model)
        for i, row in enumerate(rows[:40].to_dict("records")):
            assert predict(row).tobytes() == many[i].tobytes()


def test_float32_and_other_arrays():
    model = pb.fit_gradient_boosting(X[["number", "count"]], Y, n_estimators=5)
    predict = pb.row_predictor(model)
    for row in (np.float32([0.1, 3]), np.array([1, 2]), np.ma.array([0.5, 1], mask=[True, False])):
        assert same(predict(row), np.asarray(pb.predict_proba(model, row[None])[0]))
    large = [2**53 + 1, 1]
    with pytest.raises(ValueError, match=r"9007199254740993"):
        predict(large)
    assert predict([2**54, 1]).tolist() == pb.predict_proba(model, [[2**54, 1]])[0].tolist()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.0], r"^row: expected 2 values in one dimension, got shape \(1,\)"),
        (np.zeros((1, 2)), r"^row: expected 2 values in one dimension, got shape \(1, 2\)"),
        ({"number": 1.0}, r'^row: expected all features, got no count; .*missing_keys="missing"'),
        (
            {"number": 1.0, "count": 2, "id": 3},
            r'^row: expected the features of training, got the keys id; .*extra_keys="ignore"',
        ),
        ({"number": 1.0, "count": 2, 7: 0, "7": 0}, "^row: expected keys with distinct names"),
        ("ab", r"^row: expected a dict, list, tuple or one-dimensional array, got 'ab'"),
        ([1.0, np.inf], "^X: expected finite numbers, got inf in column 'count'"),
        ([1.0, "2"], r"^X: .*column 'count'"),
        ([1.0, date(2020, 1, 1)], r"^X: .*column 'count'"),
        ([[1.0], 2.0], "^X: "),
    ],
)
def test_bad_rows(row, message):
    model = pb.fit_gradient_boosting(X[["number", "count"]], Y, n_estimators=2)
    with pytest.raises((TypeError, ValueError), match=message):
        pb.row_predictor(model)(row)


def test_keys():
    model = boosted()
    row = X.iloc[1].to_dict()
    strict = pb.row_predictor(model)
    lenient = pb.row_predictor(model, missing_keys="missing", extra_keys="ignore")
    assert same(lenient({**row, "id": 5}), strict(row))
    assert same(lenient(OrderedDict(row)), strict(row))
    asked = defaultdict(lambda: 1.0, {k: row[k] for k in NAMES[1:]})
    assert same(lenient(asked), strict({**row, "number": None}))
    assert list(asked) == NAMES[1:]
    with pytest.raises(ValueError, match="got no number"):
        strict(asked)
    numbered = pb.fit_gradient_boosting(X[["number", "count"]].set_axis([0, 1], axis=1), Y)
    assert same(
        pb.row_predictor(numbered)({1: 3.0, 0: 0.5}), pb.predict_proba(numbered, [[0.5, 3.0]])[0]
    )
    unnamed = pb.fit_gradient_boosting(X[["number"]].to_numpy(), Y, n_estimators=2)
    with pytest.raises(ValueError, match="the model has no feature names; fit it to a data frame"):
        pb.row_predictor(unnamed)({"number": 1.0})
    assert pb.row_predictor(unnamed)([0.5]).shape == (2,)


def test_pickles_copies_and_threads():
    predict = pb.row_predictor(boosted(), extra_keys="ignore")
    expected = [predict(row) for row in ROWS]
    for other in (pickle.loads(pickle.dumps(predict)), copy.deepcopy(predict)):
        assert all(same(other(row), p) for row, p in zip(ROWS, expected, strict=True))
        assert other({**ROWS[0], "id": 5}).tobytes() == expected[0].tobytes()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            results = list(pool.map(predict, ROWS))
            assert all(same(a, p) for a, p in zip(results, expected, strict=True))


def test_rare_categories_share_a_number():
    names = np.array([f"c{i}" for i in range(300)])
    codes = np.concatenate([np.arange(300), np.arange(40).repeat(20)])
    frame = pd.DataFrame({"c": names[codes], "x": np.arange(len(codes)) % 7})
    model = pb.fit_gradient_boosting(
        frame, codes % 3 == 0, n_estimators=5, categorical_features=["c"]
    )
    predict = pb.row_predictor(model)
    for value in ("c3", "c299", "unknown", None):
        row = {"c": value, "x": 2}
        assert same(predict(row), np.asarray(pb.predict_proba(model, pd.DataFrame([row]))[0]))


def test_rows_that_are_no_columns():
    """Weak learners of functions read the rows as they are."""
    words = np.array(["a", "bb", "ccc", "dddd"] * 5)

    def train(rows, y, weight, rng):
        return lambda rows, rng: np.where(np.char.str_len(rows) > 2, 1, -1)

    weak_learner = pb.weak.oracle(train)
    model = pb.fit_adaboost(words, np.char.str_len(words) > 2, weak_learner=weak_learner)
    predict = pb.row_predictor(model, "predict")
    assert [bool(predict(word)) for word in ("ccc", "bb")] == [True, False]
    frame = pd.DataFrame({"a": words, "b": 1.0})

    def train_frame(rows, y, weight, rng):
        return lambda rows, rng: np.where(rows["a"].str.len() > 2, 1, -1)

    model = pb.fit_adaboost(
        frame, np.char.str_len(words) > 2, weak_learner=pb.weak.oracle(train_frame)
    )
    predict = pb.row_predictor(model, "predict")
    assert bool(predict({"b": 2.0, "a": "cccc"})) is True


def test_the_model_and_options_are_checked():
    model = boosted(X["count"], loss="squared_error")
    with pytest.raises(TypeError, match=r'^method: expected "predict" for regression'):
        pb.row_predictor(model)
    with pytest.raises(TypeError, match=r"^model: expected a model"):
        pb.row_predictor(3)
    for option in ("method", "missing_keys", "extra_keys"):
        with pytest.raises(ValueError, match=f"^{option}: expected one of"):
            pb.row_predictor(model, **{"method": "predict", option: "other"})
    with pytest.raises(TypeError, match=r"pb\.row_predictor\(model\) predicts single dicts"):
        pb.predict(model, ROWS[0])
