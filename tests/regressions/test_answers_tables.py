"""CSV files: names that occur twice, labels that were merged, integers blamed on the wrong row."""

import numpy as np
import pytest
from command_line import assert_one_line

import pboost as pb
from pboost.__main__ import main

pytest.importorskip("pandas")

N = 30
X = np.random.default_rng(0).normal(size=N)


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    """Write a table and run a command on it; returns exit code, output and error output."""
    monkeypatch.chdir(tmp_path)

    def run(table, *arguments, target="y"):
        text = table if isinstance(table, str) else written(table)
        (tmp_path / "t.csv").write_text(text)
        named = [] if target is None else ["--target", target]
        words = [str(a) for a in (arguments[0], *arguments[1:], *named)]
        code = main(words)
        return code, *capfd.readouterr()

    return run


def written(columns):
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    return "\n".join(lines) + "\n"


def labels(first, second):
    return [first if value > 0 else second for value in X]


FIT = ("fit", "t.csv", "--model", "cart", "-o", "m.npz")


def fitted_labels():
    return pb.load("m.npz").classes.tolist()


def test_columns_of_one_name(command):
    for header in ("a,a,y", "a,b,a,y", '"a",b,a,y'):
        row = ",".join(["1"] * (header.count(",") + 1))
        code, _, err = command(f"{header}\n{row}\n{row}\n", *FIT)
        assert code == 1
        assert_one_line(err, "t.csv: expected distinct column names, got 'a' twice")
    code, _, err = command("a,y,y\n1,0,1\n2,1,0\n", *FIT)
    assert code == 1
    assert_one_line(err, "expected distinct column names, got 'y' twice")
    # These are different.
    code, _, err = command(written({"a": X, "a.1": X, "A": X, "y": labels(0, 1)}), *FIT)
    assert (code, err) == (0, "")


def test_columns_of_one_name_at_prediction(command):
    assert command({"a": X, "y": labels(0, 1)}, *FIT)[0] == 0
    code, _, err = command("a,a\n1,2\n", "predict", "m.npz", "t.csv", target=None)
    assert code == 1
    assert_one_line(err, "expected distinct column names, got 'a' twice")


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("01", "1", ["01", "1"]),
        ("007", "7", ["007", "7"]),
        ("-01", "-1", ["-01", "-1"]),
        ("01", "02", ["01", "02"]),
        (1, 2, [1, 2]),
        (-1, 1, [-1, 1]),
        ("+1", 0, [0, 1]),
        (0, 10, [0, 10]),
        ("1.0", "2.50", [1.0, 2.5]),
        ("1e3", ".5", [0.5, 1000.0]),
        ("True", "False", [False, True]),
        ("TRUE", "false", [False, True]),
        ("ash", 1, ["1", "ash"]),
        (" 1", 2, [1, 2]),
        ("1_0", "2", ["1_0", "2"]),
        (2**53, 2**53 + 1, [2**53, 2**53 + 1]),
        (-(2**63), 2**63 - 1, [-(2**63), 2**63 - 1]),
        (10**30, 10**30 + 1, [str(10**30), str(10**30 + 1)]),
        (2**53 + 1, "0.5", ["0.5", str(2**53 + 1)]),
    ],
)
def test_labels(command, first, second, found):
    table = {"x": X, "y": labels(first, second)}
    code, _, err = command(table, *FIT, "--task", "classification")
    assert (code, err) == (0, "")
    assert fitted_labels() == found
    code, out, _ = command({"x": X}, "predict", "m.npz", "t.csv", target=None)
    assert code == 0
    assert {line.split(",")[0] for line in out.splitlines()[1:]} == set(map(str, found))


def test_numbers_of_a_regression_may_begin_with_zeros(command):
    code, _, err = command({"x": X, "y": labels("01.5", "1")}, *FIT, "--task", "regression")
    assert (code, err) == (0, "")
    assert set(pb.predict(pb.load("m.npz"), X[:, None])) == {1.0, 1.5}


@pytest.mark.parametrize("value", [10**29 + 7, 2**53 + 1, 2**64 - 1, -(2**53) - 1])
def test_integers_that_are_no_floats(command, value):
    column = list(range(N))
    column[4] = value
    for name in ("x", "w"):
        table = {"x": range(N), "w": [1] * N, name: column, "y": labels(0, 1)}
        code, _, err = command(table, *FIT, "--sample-weight", "w")
        assert code == 1
        assert_one_line(err, f"column {name!r}: got {value} in row 5, an integer that a float")
    table = {"x": range(N), "y": column}
    code, _, err = command(table, *FIT, "--task", "regression")
    assert code == 1
    assert_one_line(err, f"column 'y': got {value} in row 5, an integer")


def test_large_integers_that_are_floats(command):
    column = [*range(N - 2), 2**60, -(2**55)]
    assert command({"x": column, "y": labels(0, 1)}, *FIT)[::2] == (0, "")


def test_integers_beyond_64_bits_that_are_floats(command):
    column = [*range(N - 2), 2**100, 3 * 2**90]
    table = {"x": column, "w": column, "y": labels(0, 1)}
    code, _, err = command(table, *FIT, "--sample-weight", "w")
    assert (code, err) == (0, "")
    assert pb.load("m.npz").table is None
    code, _, err = command({"x": column}, "predict", "m.npz", "t.csv", target=None)
    assert (code, err) == (0, "")


def test_other_columns_that_are_not_numeric(command):
    column = ["1", "2", "red", str(10**29), *range(N - 4)]
    code, _, err = command({"x": column, "y": labels(0, 1)}, *FIT)
    assert code == 1
    assert_one_line(err, "column 'x'", "in row 4")
    code, _, err = command({"x": ["1", "2", "red", *range(N - 3)], "y": labels(0, 1)}, *FIT)
    assert code == 1
    assert_one_line(err, "column 'x' is not numeric: got 'red' in row 3")


@pytest.mark.parametrize(
    "model", ["cart", "random-forest", "gradient-boosting", "adaboost", "samme", "sbpmt"]
)
@pytest.mark.parametrize("how", ["fit", "evaluate"])
def test_a_continuous_target(command, model, how):
    end = ["-o", "m.npz"] if how == "fit" else []
    if model in ("cart", "random-forest", "gradient-boosting"):  # without it these predict numbers
        end += ["--task", "classification"]
    code, _, err = command({"x": X, "y": X}, how, "t.csv", "--model", model, *end)
    assert code == 1
    assert_one_line(
        err,
        f"column 'y': expected class labels, got {N} distinct non-integer numbers",
        "--task regression",
    )


def test_a_rare_class_is_a_warning_of_one_line(command):
    y = ["rare" if row < 3 else label for row, label in enumerate(labels("ash", "oak"))]
    code, out, err = command({"x": X, "y": y}, "evaluate", "t.csv", "--model", "cart")
    assert code == 0
    assert "10-fold cross-validation" in out
    told = [line for line in err.splitlines() if line.startswith("pboost: warning")]
    assert len(told) == 1
    assert "class 'rare' has 3 rows, fewer than the 10 folds" in told[0]
