"""Tables: categories and holes are read once, and matched by value ever after."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import pboost as pb
from pboost.data.read.check_xy import as_features, find_holes, training_features
from pboost.data.read.table import MOST_LEVELS, Table, Takes
from pboost.data.resampling import HoldOut, trained_features
from pboost.models.evaluate.match_input import match_columns, match_names

pd = pytest.importorskip("pandas")

EVERYTHING = Takes(holes=True, levels=True)
FRAME = pd.DataFrame(
    {
        "age": [31, 40, None, 27],
        "colour": ["red", "blue", "red", None],
        "size": pd.Categorical(["s", "xl", "s", None], ["xs", "s", "m", "xl"], ordered=True),
        "code": pd.Categorical([7, 3, 3, 7], [7, 5, 3]),
        "known": [True, False, True, True],
    }
)
VALUES = np.array(
    [
        [31, 1, 1, 1, 1],
        [40, 0, 3, 0, 0],
        [np.nan, 1, 1, 0, 1],
        [27, np.nan, np.nan, 1, 1],
    ]
)


def test_numbers_and_levels_of_a_frame():
    features = as_features(FRAME)
    np.testing.assert_array_equal(features.values, VALUES)
    table = training_features(features, None, EVERYTHING).table
    assert [None if v is None else v.tolist() for v in table.categories] == [
        None,
        ["blue", "red"],
        None,
        [3.0, 7.0],
        None,
    ]
    assert table.order[2].tolist() == ["xs", "s", "m", "xl"]
    assert table.has_missing.tolist() == [True, True, True, False, False]
    assert table.other is None
    assert table.categorical == [1, 2, 3]
    assert table.level_names(3) == ("3", "7")


def test_clean_numbers_have_no_table():
    X = np.random.default_rng(0).normal(size=(20, 2))
    features = as_features(X)
    assert training_features(features, None, EVERYTHING) is features
    assert find_holes(features) is None
    X[3, 1] = np.nan
    assert find_holes(as_features(X)).tolist() == [False, True]
    X[4, 0] = -np.inf
    with pytest.raises(ValueError, match=r"-inf in column 0, row 4"):
        find_holes(as_features(X))


def test_new_rows_are_matched_by_name_and_value():
    table = training_features(as_features(FRAME), None, EVERYTHING).table
    names, d = tuple(FRAME.columns), FRAME.shape[1]
    other = pd.DataFrame(
        {
            "code": [3.0, 5.0, np.nan],
            "size": ["m", "xl", "huge"],
            "known": pd.array([True, None, False], dtype="boolean"),
            "colour": pd.Categorical(["red", "green", "blue"], ["red", "green", "blue"]),
            "age": np.array([1, 2, 3], dtype=np.int8),
        }
    )
    actual = match_names(names, d, other, table)
    expected = [[1, 1, 2, 0, 1], [2, np.nan, 3, np.nan, np.nan], [3, 0, np.nan, np.nan, 0]]
    np.testing.assert_array_equal(actual.values, expected)
    assert actual.names == names
    read = match_names(names, d, as_features(other, ["size"]), table)  # with levels of its own
    np.testing.assert_array_equal(read.values, expected)
    row = match_names(names, d, other.iloc[0], table)
    np.testing.assert_array_equal(row.values, expected[:1])


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        (
            "age",
            ["old", "young"] * 2,
            "'age': expected numbers as in training, got categories, text",
        ),
        ("colour", [1, 2, 3, 4], "'colour': expected text as in training, got numbers"),
        ("code", ["3", "7", "3", "7"], "'code': expected numbers as in training, got text"),
        (
            "known",
            pd.Categorical([True, False] * 2),
            "'known': expected numbers as in training, got categories, bo",
        ),
    ],
)
def test_a_column_that_has_changed_its_kind_is_named(column, values, said):
    table = training_features(as_features(FRAME), None, EVERYTHING).table
    with pytest.raises(ValueError, match=said):
        match_names(tuple(FRAME.columns), 5, FRAME.assign(**{column: values}), table)


def test_the_lightest_levels_share_a_number():
    words = np.repeat([f"w{k:03}" for k in range(300)], 2)
    frame = pd.DataFrame({"word": words})
    weights = np.where(np.arange(600) < 100, 1.0, 2.0)  # the first 50 words are the lightest
    actual = training_features(as_features(frame), weights, EVERYTHING)
    table = actual.table
    assert table.n_levels[0] == MOST_LEVELS
    assert len(table.other[0]) == 46
    assert table.level_names(0)[-1] == "other"
    assert table.other[0].tolist() == [f"w{k:03}" for k in range(4, 50)]
    assert actual.values[words == "w020"].tolist() == [[254.0]] * 2
    new = match_names(
        ("word",), 1, pd.DataFrame({"word": ["w049", "w000", "w299", "x", None]}), table
    )
    np.testing.assert_array_equal(new.values[:, 0], [254, 0, 253, 254, np.nan])


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_unknown_categories_are_those_that_share_a_number(task):
    rng = np.random.default_rng(0)
    number = np.append(rng.permutation(280), rng.integers(0, 220, 520))
    frame = pd.DataFrame({"id": number.astype(str), "x": rng.normal(size=800)})
    frame.loc[rng.random(800) < 0.02, "id"] = None  # these rows are in the other class
    y = frame["id"].isna() + 0
    options = {"task": task, "categorical_features": ["id"], "n_estimators": 20}
    model = pb.fit_gradient_boosting(frame, y, **options)
    rare, new, missing = (frame[:50].assign(id=id_) for id_ in (model.table.other[0][0], "?", None))
    np.testing.assert_array_equal(
        pb.decision_function(model, new), pb.decision_function(model, rare)
    )
    assert pb.decision_function(model, missing).min() > pb.decision_function(model, new).max() + 0.5
    known = pb.fit_gradient_boosting(frame[number < 200], y[number < 200], **options)
    np.testing.assert_array_equal(
        pb.decision_function(known, new), pb.decision_function(known, missing)
    )


def test_unknown_categories_of_several_models():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": np.arange(900) % 300, "x": rng.normal(size=900)})
    y = np.where(frame["id"] % 3 == 0, 1.0, 0.0) + 0.1 * frame["x"]
    fit = partial(pb.fit_cart, task="regression", max_depth=3)
    model = pb.fit_bagging(fit, frame, y, n_estimators=3, rng=0, categorical_features=["id"])
    tables = [member.table for member in model.models]
    assert all(table.other is not None for table in tables)
    assert len({table.key for table in tables}) == 3
    rows = pd.DataFrame({"id": [1000, *range(50)], "x": 0.0})  # the first is in no model
    expected = np.mean([pb.predict(member, rows) for member in model.models], axis=0)
    np.testing.assert_allclose(pb.predict(model, rows), expected, rtol=1e-13)
    with pytest.raises(ValueError, match="several categories share a number"):
        pb.predict(model[1], match_columns(model[0], rows))


def test_unknown_categories_of_validation_rows():
    """They are those of a validation set that is given."""
    rng = np.random.default_rng(0)
    number = rng.integers(0, 700, 900)
    features = as_features(pd.DataFrame({"id": number}), ["id"])
    weights = np.where(np.arange(900) < 700, 1.0, 0.0)
    hold = HoldOut(0.2, rng)
    actual = trained_features(features, weights, EVERYTHING, hold)
    first = as_features(pd.DataFrame({"id": number[:700]}), ["id"])
    expected = training_features(first, None, EVERYTHING)
    last = match_names(None, 1, number[700:, None], expected.table)
    assert actual.table == expected.table
    assert (last.values == 254).sum() > 100
    np.testing.assert_array_equal(actual.values, np.append(expected.values, last.values, axis=0))


def test_names_of_rows_are_refused():
    frame = pd.DataFrame({"id": [*map(str, range(9)), "8", "8"], "x": range(11)})
    with pytest.raises(
        ValueError, match=r"'id': expected categories, got text with a unique value in 8 of 11"
    ):
        as_features(frame)
    assert as_features(frame, categorical_features=["id"]).table.n_levels[0] == 9
    assert as_features(frame.astype({"id": "category"})).table.n_levels[0] == 9
    table = Table((np.array(["8"]), None), [False, False])
    np.testing.assert_array_equal(  # new rows are never names
        match_names(("id", "x"), 2, frame, table).values[:, 0], [np.nan] * 8 + [0.0] * 3
    )


def test_categories_of_arrays_are_named():
    X = np.array([["red", 1.5], ["blue", 2.0], [None, 2.5]], dtype=object)
    with pytest.raises(TypeError, match="column 0 is not numeric"):
        as_features(X)
    features = as_features(X, categorical_features=[0])
    np.testing.assert_array_equal(features.values, [[1, 1.5], [0, 2], [np.nan, 2.5]])
    numbers = as_features(np.array([[7.5, 1], [2.5, 0]]), categorical_features=[0])
    assert numbers.table.categories[0].tolist() == [2.5, 7.5]
    assert numbers.values.tolist() == [[1, 1], [0, 0]]
    assert as_features([["red", 1], ["blue", True]], categorical_features=[0]).values.tolist() == [
        [1, 1],
        [0, 1],
    ]
    for wrong in ("red", 0, [2], [-1], ["colour"], [0, 0], [1.5]):
        with pytest.raises((TypeError, ValueError), match="categorical_features"):
            as_features(X, categorical_features=wrong)


def test_what_a_mask_hides_is_missing():
    X = np.ma.masked_array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_features(X).values, [[1, np.nan], [3, 4]])
    named = as_features(X, categorical_features=[1])
    np.testing.assert_array_equal(named.values, [[1, np.nan], [3, 0]])


def small_tables():
    none = [False, True, False]
    yield Table((None,) * 3, none)
    yield Table((np.array(["a", "bcd"]), None, np.array([False, True])), none)
    yield Table(
        (None, np.array([1.5, 2.0]), np.array(["x"])),
        none,
        other=(None, np.array([1.0]), None),
        order=(np.array(["lo", "hi"]), None, None),
    )
    yield Table((None, np.empty(0), None), none)


@pytest.mark.parametrize("table", list(small_tables()))
def test_members_of_a_file_and_back(table, tmp_path):
    assert Table.from_members(table.members()) == table
    assert pickle.loads(pickle.dumps(table)) == table
    assert {
        name: (None if dtype is None else array.dtype)
        for (name, array), dtype in zip(table.members().items(), Table.stored.values(), strict=True)
    } == dict(Table.stored)
    model = replace(pb.fit_cart(np.eye(3), [0, 1, 0]), table=table)
    pb.save(model, tmp_path / "model")
    again = pb.load(tmp_path / "model")
    assert again.table == table == pickle.loads(pickle.dumps(again)).table
    with pytest.raises(ValueError, match="table: expected 3 features"):
        replace(model, table=Table.of_numbers(2))


def test_damaged_members_are_refused():
    table = list(small_tables())[2]
    members = table.members()
    kind = members["category_kind"]
    damaged = {
        "category_kind": [
            kind + 16,
            kind[:-1],
            kind * 0,
        ],
        "category_column": [members["category_column"][::-1], members["category_column"] + 1],
        "category_start": [members["category_start"][::-1], members["category_start"] + 1],
        "category_number": [
            members["category_number"][1:],
            members["category_number"][::-1] * np.nan,
        ],
        "category_text": [members["category_text"][1:], np.zeros(1)],
    }
    for name, arrays in damaged.items():
        for array in arrays:
            with pytest.raises(ValueError, match=r"category|table|kind"):
                Table.from_members({**members, name: array}).validate(3)
    with pytest.raises(ValueError, match="or none"):
        Table.from_members({"category_kind": members["category_kind"]})


def test_a_model_reads_rows_by_its_table():
    features = as_features(FRAME[["colour", "size"]].iloc[:3])
    model = pb.fit_cart(features.values, [0, 1, 0])
    model = replace(
        model,
        feature_names=("colour", "size"),
        table=training_features(features, None, EVERYTHING).table,
    )
    new = pd.DataFrame({"size": ["xl", "s"], "colour": pd.Categorical(["blue", "red"])})
    np.testing.assert_array_equal(match_columns(model, new).values, [[0, 3], [1, 1]])
    assert pb.predict(model, new).tolist() == [1, 0]


def test_columns_are_named_as_categories_in_builders():
    rng = np.random.default_rng(1)
    X = rng.integers(4, size=(200, 2)).astype(float)
    y = np.isin(X[:, 0], [0, 2])
    text = pd.DataFrame({"kind": np.array(list("abcd"))[X[:, 0].astype(int)], "x": X[:, 1]})
    for fit in (pb.fit_adaboost, pb.fit_boosted_tree, pb.fit_matryoshka):
        model = fit(X, y, categorical_features=[0])
        assert model.table.categories[0].tolist() == [0, 1, 2, 3]
        assert (pb.predict(model, X) == y).all()
        assert (pb.predict(model, X.astype(int).astype(object)) == y).all()
        of_text = fit(text, y)
        for name in ("threshold", "vote", "missing"):
            np.testing.assert_array_equal(getattr(model, name), getattr(of_text, name))
        assert (pb.predict(of_text, text.iloc[::-1, ::-1]) == y[::-1]).all()
    with pytest.raises(ValueError, match="categorical_features: expected None with SortedColumns"):
        pb.fit_adaboost(pb.data.sort_columns(X), y, categorical_features=[0])
    for make in (pb.data.sort_columns, pb.data.bin_columns):
        model = pb.fit_adaboost(make(X), y, categorical_features=[])
        assert pb.describe(model) == pb.describe(pb.fit_adaboost(make(X), y))
    with pytest.raises(TypeError, match="categorical_features: expected a sequence of names"):
        pb.fit_adaboost(X, y, categorical_features="kind")
    bagging = pb.fit_bagging(
        partial(pb.fit_adaboost, n_estimators=2), text, y, n_estimators=3, rng=0
    )
    assert (pb.predict(bagging, text) == y).all()
    named = pb.fit_bagging(
        partial(pb.fit_adaboost, n_estimators=2),
        X,
        y,
        n_estimators=3,
        rng=0,
        categorical_features=[0],
    )
    assert (pb.predict(named, X) == y).all()
    assert bagging.oob.error == named.oob.error == 0
    rest = pb.fit_one_vs_rest(pb.fit_adaboost, text, text["kind"], n_estimators=2)
    assert (pb.predict(rest, text) == text["kind"]).all()
    validated = pb.cross_validate(partial(pb.fit_adaboost, n_estimators=2), text, y, cv=3, rng=0)
    assert validated.error.max() == 0


def test_more_levels_than_numbers_in_builders():
    words = np.array([f"w{k % 400:03}" for k in range(1600)])
    frame = pd.DataFrame({"word": words, "x": np.arange(1600.0)})
    y = np.arange(1600) % 400 < 100
    model = pb.fit_adaboost(frame, y, n_estimators=3)
    assert (pb.predict(model, frame) == y).mean() > 0.95
    pb.explain(model, frame.iloc[[0]])
    assert pb.inspection.permutation_importance(model, frame, y, rng=0, n_repeats=1)[0, 0] > 0.2
