"""Columns of categories as zeros and ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pboost as pb

ROWS = [["red", 1.5, 3], ["blue", -2.0, 1], ["red", 0.0, 3], ["green", 1.0, 2]]
REFUSED = (TypeError, ValueError)


def by_hand(columns, chosen):
    """Encode columns one value at a time."""
    values, names = [], []
    for j, column in enumerate(columns):
        if j not in chosen:
            values.append([float(v) for v in column])
            names.append(f"x[{j}]")
        else:
            for held in sorted(set(column)):
                values.append([float(v == held) for v in column])
                names.append(f"x[{j}]={held}")
    return np.array(values).T, tuple(names)


@pytest.mark.parametrize("columns", [None, [0], [0, 2], [2, 0], range(3), np.array([0, 2])])
def test_as_by_hand(columns):
    rows = [[a, int(2 * b), c] for a, b, c in ROWS]
    values, names = pb.data.one_hot(rows, columns)
    expected, expected_names = by_hand(
        list(zip(*rows, strict=True)), {0} if columns is None else set(columns)
    )
    np.testing.assert_array_equal(values, expected)
    assert names == expected_names
    assert values.dtype == np.float64


@pytest.mark.parametrize("dtype", ["U", object, "T"])
def test_arrays_of_strings(dtype):
    if dtype == "T":
        dtype = np.dtypes.StringDType()
    X = np.array([["b", "1"], ["a", "2"], ["", "10"]]).astype(dtype)
    before = X.copy()
    values, names = pb.data.one_hot(X)
    # Digits are text here: sorted as such.
    assert names == ("x[0]=", "x[0]=a", "x[0]=b", "x[1]=1", "x[1]=10", "x[1]=2")
    np.testing.assert_array_equal(values.sum(axis=1), 2)
    np.testing.assert_array_equal(values[:, 2], [1, 0, 0])
    assert (before == X).all()


def test_numbers_are_left_unless_named():
    X = np.array([[1.5, 2.0], [1.0, -7.0], [1.5, 0.0]])
    values, names = pb.data.one_hot(X)
    np.testing.assert_array_equal(values, X)
    assert names == ("x[0]", "x[1]")
    values, names = pb.data.one_hot(X, columns=[0])
    assert names == ("x[0]=1", "x[0]=1.5", "x[1]")
    np.testing.assert_array_equal(values, [[0, 1, 2], [1, 0, -7], [0, 1, 0]])
    assert pb.data.one_hot(np.array([[True], [False]]), [0])[1] == ("x[0]=False", "x[0]=True")


def test_other_rows():
    encoding = pb.data.fit_one_hot(ROWS)
    assert encoding.columns == (0,)
    assert encoding.values[0].tolist() == ["blue", "green", "red"]
    assert not encoding.values[0].flags.writeable
    assert encoding.n_features == 3
    np.testing.assert_array_equal(encoding.transform(ROWS), pb.data.one_hot(ROWS)[0])
    np.testing.assert_array_equal(encoding.transform([["green", 9, 8]]), [[0, 1, 0, 9, 8]])
    assert encoding.transform(np.empty((0, 3), dtype=object)).shape == (0, 5)
    again = pickle.loads(pickle.dumps(encoding))
    np.testing.assert_array_equal(again.transform(ROWS), encoding.transform(ROWS))


def test_unknown_values():
    encoding = pb.data.fit_one_hot(ROWS, columns=[0, 2])
    # Before the first value, between two, behind the last.
    for colour in ("amber", "mauve", "white"):
        rows = [["red", 0, 1], [colour, 5, 9]]
        with pytest.raises(ValueError, match=rf"^X: .* column 0, got '{colour}' in row 1$"):
            encoding.transform(rows)
        np.testing.assert_array_equal(
            encoding.transform(rows, unknown="zeros"),
            [[0, 0, 1, 0, 1, 0, 0], [0, 0, 0, 5, 0, 0, 0]],
        )
    with pytest.raises(ValueError, match=r"^unknown: expected one of"):
        encoding.transform(ROWS, unknown="ignore")


def test_rows_of_another_kind():
    encoding = pb.data.fit_one_hot(ROWS, columns=[0, 2])
    with pytest.raises(TypeError, match=r"expected strings in column 0, .*, got numbers"):
        encoding.transform([[1, 0, 1]])
    with pytest.raises(TypeError, match=r"expected numbers in column 2, .*, got strings"):
        encoding.transform([["red", 0, "1"]], unknown="zeros")
    with pytest.raises(TypeError, match="column 1 is not numeric"):
        encoding.transform([["red", "high", 1]])
    with pytest.raises(ValueError, match="expected 3 columns, got 2"):
        encoding.transform([["red", 0]])


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_values_are_named(missing):
    rows = [["red", 1.0], [missing, 2.0]]
    with pytest.raises(ValueError, match=r"^X: expected a value in column 0, row 1, got"):
        pb.data.fit_one_hot(rows)
    with pytest.raises(ValueError, match=r"^X: expected a value in column 0, row 1, got"):
        pb.data.fit_one_hot(rows[:1]).transform(rows, unknown="zeros")
    numbers = np.array([[1.0], [np.nan]])
    with pytest.raises(ValueError, match=r"^X: expected a value in column 0, row 1, got nan"):
        pb.data.one_hot(numbers, [0])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("x", "sequence"),
        (0, "sequence"),
        ([3], "from 0 to 2"),
        ([-1], "from 0 to 2"),
        ([0, 0], "column 0 twice"),
        (["colour"], "X has no column names"),
        ([0.0], "integer"),
        ([True], "integer"),
    ],
)
def test_bad_columns(columns, message):
    with pytest.raises(REFUSED, match=rf"^columns: expected .*{message}"):
        pb.data.one_hot(ROWS, columns)


@pytest.mark.parametrize(
    "X",
    [
        ["red", "blue"],
        np.empty((0, 2), dtype=object),
        np.empty((2, 0), dtype=object),
        [["a", 1], [2, 1]],
        [[b"a"], [b"b"]],
        [[1j], [2j]],
        np.array([["2020-01-01"]], dtype="datetime64[D]"),
    ],
)
def test_bad_rows(X):
    with pytest.raises(REFUSED, match=r"^X: expected"):
        pb.data.one_hot(X)


# Data frames


def test_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "wind": [3.0, 8.5, 1.0],
            "sky": ["clear", "rain", "clear"],
            "day": [2, 1, 2],
            "size": pd.Categorical(["s", "m", "s"], categories=["s", "m", "l"]),
        }
    )
    values, names = pb.data.one_hot(frame)
    assert names == ("wind", "sky=clear", "sky=rain", "day", "size=m", "size=s")
    np.testing.assert_array_equal(values[1], [8.5, 0, 1, 1, 1, 0])
    encoding = pb.data.fit_one_hot(frame, columns=["sky", 2, "size"])
    assert encoding.names == ("wind", "sky=clear", "sky=rain", "day=1", "day=2", "size=m", "size=s")
    assert encoding.feature_names == ("wind", "sky", "day", "size")
    shuffled = frame[["size", "wind", "day", "sky"]].set_index(pd.Index([7, 8, 9]))
    np.testing.assert_array_equal(encoding.transform(shuffled), encoding.transform(frame))
    array = frame.to_numpy()
    np.testing.assert_array_equal(encoding.transform(array), encoding.transform(frame))
    with pytest.raises(ValueError, match="missing: sky"):
        encoding.transform(frame.drop(columns="sky"))
    with pytest.raises(ValueError, match=r"got 'tint'; X has wind, sky"):
        pb.data.one_hot(frame, ["tint"])
    with pytest.raises(ValueError, match=r"column 'sky', row 1"):
        pb.data.one_hot(frame.assign(sky=["clear", None, "rain"]))
    with pytest.raises(ValueError, match=r"column 'day', row 0"):
        pb.data.one_hot(frame.assign(day=pd.array([None, 1, 2], dtype="Int64")), ["day"])


def test_frames_of_narwhals():
    pytest.importorskip("narwhals")
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"wind": [3.0, 8.5], "sky": ["rain", "clear"]})
    values, names = pb.data.one_hot(frame)
    assert names == ("wind", "sky=clear", "sky=rain")
    np.testing.assert_array_equal(values, [[3, 0, 1], [8.5, 1, 0]])


def test_names_reach_the_model():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"sky": ["clear", "rain"] * 10, "wind": np.arange(20.0)})
    values, names = pb.data.one_hot(frame)
    model = pb.fit_boosted_tree(
        pd.DataFrame(values, columns=names), frame["sky"] == "rain", max_nodes=1
    )
    assert model.feature_names == names
    assert model.feature.tolist() == [0]


def test_labels_may_be_strings_of_any_type():
    X = np.arange(6.0).reshape(-1, 1)
    y = np.array(["a", "a", "a", "bb", "bb", "bb"])
    plain = pb.fit_adaboost(X, y, n_estimators=1)
    for labels in (y.astype(object), y.astype(np.dtypes.StringDType())):
        model = pb.fit_adaboost(X, labels, n_estimators=1)
        assert model.classes.tolist() == ["a", "bb"]
        assert model.vote.tobytes() == plain.vote.tobytes()
        assert pb.predict(model, X).tolist() == y.tolist()
        assert pb.certificate(model, X, labels) == pb.certificate(plain, X, y)
