"""Columns of every kind: the command line takes what the library takes, and says the same."""

import datetime
from decimal import Decimal

import numpy as np
import pytest
from command_line import assert_one_line

import pboost as pb
from pboost.cli.table import read_table

pd = pytest.importorskip("pandas")

N = 48
K = np.random.default_rng(3).integers(0, 3, N)
BLANK = np.arange(N) % 7 == 2


def column(values, blank=False):
    """Return a column of one of three values, some of which are missing, of whatever type."""
    actual = [values[k] for k in K]
    return [None if blank and gone else value for value, gone in zip(actual, BLANK, strict=True)]


def nullable(dtype):
    return lambda item: pd.array(item, dtype=dtype)


DATES = [datetime.datetime(2020, 1, day) for day in (1, 2, 3)]
DAYS = [date.date() for date in DATES]
DECIMALS = [Decimal("0.5"), Decimal("1.25"), Decimal(3)]
#: Values of a column, how a column is made of them, and whether training refuses it.
KINDS = {
    "truth": ([True, False, True], list, ()),
    "integers": ([1, 2, 30], list, ()),
    "floats": ([0.5, 1.25, -3.0], list, ()),
    "text": (["a", "b", "c"], list, ()),
    "decimals": (DECIMALS, list, ()),
    "category": (["a", "b", "c"], pd.Categorical, ()),
    "category of numbers": ([1, 2, 30], pd.Categorical, ()),
    "Int64": ([1, 2, 30], nullable("Int64"), ()),
    "boolean": ([True, False, True], nullable("boolean"), ()),
    "Float64": ([0.5, 1.25, -3.0], nullable("Float64"), ()),
    "nothing": ([None, None, None], list, ()),
    "dates": (DATES, pd.to_datetime, ("parquet",)),
    "days": (DAYS, list, ("parquet",)),
    "spans": ([d - DATES[0] for d in DATES], pd.to_timedelta, ("parquet",)),
    "infinite": ([0.5, float("inf"), 1.0], list, ("csv", "parquet")),
    "inexact": ([1, 2, 2**53 + 1], nullable("Int64"), ("parquet",)),
}


def frame(kind, blank):
    values, make, _ = KINDS[kind]
    other = np.linspace(-1, 1, N)
    y = np.where((K > 0) ^ (other > 0.5), "yes", "no")
    return pd.DataFrame({"k": make(column(values, blank)), "other": other, "y": y})


def written(table, path):
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    return path


def accepted(function, *arguments, **options):
    """Return what a function returns, or None where it refuses its arguments."""
    try:
        return function(*arguments, **options)
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("blank", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_training(kind, blank, form, tmp_path, pboost_main):
    train = written(frame(kind, blank), tmp_path / f"train.{form}")
    table = read_table(str(train))
    theirs = accepted(pb.fit_cart, table.drop(columns="y"), table["y"], max_depth=3)
    # pandas rounds integers of CSV files if some are missing.
    assert (theirs is None) == (form in KINDS[kind][2]) or (kind, form) == ("inexact", "csv")
    given = train, "--target", "y", "--model", "cart", "--max-depth", 3
    code, _, err = pboost_main("fit", *given, "-o", tmp_path / "m.npz")
    assert (code == 0) == (theirs is not None), err
    again, _, said = pboost_main("evaluate", *given, "--cv", 2)
    assert again == code
    if theirs is None:
        assert_one_line(err, "'k'")
        assert said == err
        return
    ours = pb.load(tmp_path / "m.npz")
    assert pb.describe(ours) == pb.describe(theirs)
    code, out, err = pboost_main("predict", tmp_path / "m.npz", train)
    assert (code, err) == (0, "")
    labels = [line.split(",")[0] for line in out.splitlines()[1:]]
    assert labels == pb.predict(theirs, table.drop(columns="y")).tolist()


@pytest.mark.full_for("category of numbers-csv")
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("trained", ["truth", "floats", "text", "decimals", "category of numbers"])
def test_new_rows(trained, form, tmp_path, pboost_main):
    pytest.importorskip("pyarrow")
    train = written(frame(trained, False), tmp_path / "train.parquet")
    table = read_table(str(train))
    model = pb.fit_cart(table.drop(columns="y"), table["y"], max_depth=3)
    pb.save(model, tmp_path / "m.npz")
    for kind in KINDS:
        rows = written(frame(kind, True).drop(columns="y"), tmp_path / f"rows.{form}")
        texts = ["k"] if trained == "text" else []
        theirs = accepted(pb.predict, model, read_table(str(rows), texts=texts))
        code, out, err = pboost_main("predict", tmp_path / "m.npz", rows)
        assert (code == 0) == (theirs is not None), (kind, err)
        if theirs is None:
            assert_one_line(err, "'k'")
        else:
            assert [line.split(",")[0] for line in out.splitlines()[1:]] == theirs.tolist(), kind
