"""Tables of any library are read to the same bits; what cannot be read is named."""

import datetime
import decimal
import os
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pboost as pb
from pboost.data.read.check_xy import as_features
from pboost.models.evaluate.match_input import match_names

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("narwhals")
try:
    import pyarrow as pa
except ImportError:
    pa = None

needs_pyarrow = pytest.mark.skipif(pa is None, reason="needs pyarrow")
#: Tables that are drawn; ``PBOOST_FUZZ=100000`` draws as many.
EXAMPLES = int(os.environ.get("PBOOST_FUZZ", "150"))
WORDS = ["red", "blue", "", "Zürich", "nan", "1", " red"]
CATEGORIES = ("text", "category", "enum", "declared")


def random_table(rng, n):
    """Return columns as lists with None, and what kind each is."""
    kinds = {
        "float": lambda: rng.normal(size=n).tolist(),
        "int": lambda: rng.integers(-5, 2**40, n).tolist(),
        "small": lambda: rng.integers(0, 4, n).tolist(),
        "bool": lambda: (rng.random(n) < 0.5).tolist(),
        "text": lambda: rng.choice(WORDS[: rng.integers(2, 8)], n).tolist(),
        "category": lambda: rng.choice(WORDS[:4], n).tolist(),
        "decimal": lambda: [decimal.Decimal(int(v)) / 8 for v in rng.integers(-99, 99, n)],
    }
    actual = {}
    for kind, make in kinds.items():
        values = make()
        for name, share in ((kind, 0.0), (f"{kind} with holes", 0.3)):
            actual[name] = [None if rng.random() < share else v for v in values]
    return actual


def kind_of(name):
    return name.split()[0]


def as_pandas(table, rng):
    made = {}
    for name, values in table.items():
        kind = kind_of(name)
        has_holes = None in values
        if kind == "category":
            order = rng.permutation(WORDS[:4]).tolist()
            made[name] = pd.Categorical(values, categories=order)
        elif kind == "float":
            made[name] = np.array(values, dtype=float)
        elif kind in ("int", "small"):
            made[name] = pd.array(values, dtype="Int64" if has_holes else "int64")
        elif kind == "bool":
            made[name] = pd.array(values, dtype="boolean") if has_holes else np.array(values)
        else:
            made[name] = pd.Series(values, dtype=object if kind == "decimal" else None)
    return pd.DataFrame(made)


def as_pandas_objects(table, rng):
    return pd.DataFrame(
        {
            name: pd.Categorical(values)
            if kind_of(name) == "category"
            else pd.Series(values, dtype=object)
            for name, values in table.items()
        }
    )


def as_polars(table, rng):
    parts = []
    for name, values in table.items():
        series = pl.Series(name, values, strict=False)
        if kind_of(name) == "category":
            kind = pl.Categorical if rng.random() < 0.5 else pl.Enum(WORDS[:4])
            series = series.cast(kind)
        elif kind_of(name) == "int":
            series = series.cast(pl.Int64)
        parts.append(series)
    frame = pl.DataFrame(parts)
    if rng.random() < 0.5:  # in chunks
        k = int(rng.integers(0, frame.height + 1))
        frame = pl.concat([frame[:k], frame[k:]], rechunk=False)
    return frame


def as_arrow(table, rng):
    parts = {}
    for name, values in table.items():
        kind = kind_of(name)
        array = pa.array(values, type=pa.decimal128(12, 4) if kind == "decimal" else None)
        if kind == "category":
            array = array.dictionary_encode()
        k = int(rng.integers(0, len(values) + 1))
        other = array.slice(k)
        if kind == "category":  # a dictionary of its own
            other = pa.array(values[k:], type=pa.string()).dictionary_encode()
        parts[name] = pa.chunked_array([array.slice(0, k), other]) if k else array
    return pa.table(parts)


def as_batch(table, rng):
    full = as_arrow(table, rng).combine_chunks().unify_dictionaries()
    return full.to_batches()[0]


def as_pandas_of_arrow(table, rng):
    return as_arrow(table, rng).to_pandas(types_mapper=pd.ArrowDtype)


def as_sliced(table, rng):
    n = len(next(iter(table.values())))
    more = {name: [*values, *values[:1] * 3] for name, values in table.items()}
    return as_polars(more, rng)[:n]


LIBRARIES = [
    as_pandas,
    as_pandas_objects,
    as_polars,
    as_sliced,
    *(pytest.param(make, marks=needs_pyarrow) for make in (as_arrow, as_batch, as_pandas_of_arrow)),
]


def expected_matrix(table):
    """Return the floats of a table, written from the definition, and the levels."""
    columns, levels = [], []
    for name, values in table.items():
        known = [v for v in values if v is not None]
        if kind_of(name) in CATEGORIES:
            own = sorted(set(known))
            columns.append([np.nan if v is None else float(own.index(v)) for v in values])
            levels.append(own)
        else:
            columns.append([np.nan if v is None else float(v) for v in values])
            levels.append(None)
    return np.array(columns).T, levels


@pytest.mark.parametrize("make", LIBRARIES)
def test_the_same_bits_from_every_library(make):
    for case in range(10):
        rng = np.random.default_rng([3, case])
        table = random_table(rng, 60)
        values, levels = expected_matrix(table)
        features = as_features(make(table, rng))
        np.testing.assert_array_equal(features.values, values)
        assert features.names == tuple(table)
        assert [None if v is None else v.tolist() for v in features.table.categories] == levels
        # New rows, with other codes and other levels, by name and value.
        names = list(table)
        new = {name: random_table(rng, 9)[name] for name in rng.permutation(names).tolist()}
        rows = match_names(tuple(names), len(names), make(new, rng), features.table).values
        for j, name in enumerate(names):
            own = levels[j]
            wanted = [
                np.nan
                if v is None or (own is not None and v not in own)
                else float(v if own is None else own.index(v))
                for v in new[name]
            ]
            np.testing.assert_array_equal(rows[:, j], wanted)


@pytest.mark.parametrize("make", LIBRARIES)
def test_the_same_models_from_every_library(make):
    rng = np.random.default_rng(7)
    table = random_table(rng, 80)
    y = [
        (a or 0) > 3 or b == "red"
        for a, b in zip(table["small"], table["text with holes"], strict=True)
    ]
    expected = pb.fit_adaboost(as_pandas(table, rng), y, n_estimators=20)
    model = pb.fit_adaboost(make(table, rng), y, n_estimators=20)
    for name in ("feature", "threshold", "vote", "missing"):
        assert getattr(model, name).tobytes() == getattr(expected, name).tobytes()
    assert model.table == expected.table
    other = {name: table[name] for name in reversed(table)}
    score = pb.decision_function(model, make(other, rng))
    assert score.tobytes() == pb.decision_function(expected, as_pandas(table, rng)).tobytes()


def frames_of(values):
    yield pd.DataFrame({"x": [1.0] * len(values), "odd": values})
    yield pl.DataFrame({"x": [1.0] * len(values), "odd": values}, strict=False)
    if pa is not None:
        yield pa.table({"x": [1.0] * len(values), "odd": values})


@pytest.mark.parametrize(
    "values",
    [
        [datetime.datetime(2020, 1, 1)] * 3,
        [datetime.date(2020, 1, 1)] * 3,
        [datetime.timedelta(1)] * 3,
        [[1, 2], [3], []],
        [{"a": 1}] * 3,
        [b"x", b"y", b"x"],
    ],
    ids=["datetime", "date", "duration", "list", "struct", "bytes"],
)
def test_columns_of_other_things_are_named(values):
    for frame in frames_of(values):
        with pytest.raises(TypeError, match="'odd' is not numeric"):
            as_features(frame)


def test_what_is_wrong_is_named():
    with pytest.raises(TypeError, match="'odd' is not numeric"):
        as_features(pd.DataFrame({"odd": np.array([1j, 2j])}))
    with pytest.raises(TypeError, match="'odd': expected text in every row, got other"):
        as_features(pd.DataFrame({"odd": [1, "a", "a", 1]}))
    with pytest.raises(TypeError, match="'odd'"):
        as_features(pd.DataFrame({"odd": pd.cut([1.0, 2.0, 3.0], 2)}))
    with pytest.raises(TypeError, match="'odd'"):
        as_features(pd.DataFrame({"odd": pd.period_range("2020", periods=3, freq="D")}))
    for frame in (pl.DataFrame({"x": [1.0]}).lazy(),):
        with pytest.raises(TypeError, match=r"collect\(\)"):
            as_features(frame)
    for frame in (pd.DataFrame(index=[0, 1]), pl.DataFrame()):
        with pytest.raises(ValueError, match="at least one column"):
            as_features(frame)
    with pytest.raises(ValueError, match=r"numbers that float64 can represent"):
        as_features(pl.DataFrame({"x": [None, 2**53 + 1]}))
    with pytest.raises(ValueError, match=r"9007199254740993 in row 70001"):
        as_features(pd.DataFrame({"x": [0] * 70_001 + [2**53 + 1]}))
    with pytest.raises(ValueError, match=r"infinity in column 'x', row 2"):
        as_features(pd.DataFrame({"x": [0.0, 1.0, np.inf]}), categorical_features=["x"])


def test_sparse_and_series_are_told_apart():
    sparse = pd.DataFrame({"x": pd.arrays.SparseArray([0.0, 0.0, 2.0])})
    assert as_features(sparse).values.tolist() == [[0.0], [0.0], [2.0]]
    with pytest.raises(TypeError):
        as_features(pl.Series([1.0, 2.0]))


def test_a_frame_of_floats_is_not_copied():
    X = np.random.default_rng(0).normal(size=(50, 4))
    for dtype in (np.float64, np.float32):
        frame = pd.DataFrame(X.astype(dtype), copy=False)
        values = as_features(frame).values
        assert values.dtype == dtype
        assert np.shares_memory(values, frame.to_numpy())


def peak_of(read):
    tracemalloc.start()
    try:
        actual = read()
        return tracemalloc.get_traced_memory()[1], actual
    finally:
        tracemalloc.stop()


@pytest.mark.full
@pytest.mark.parametrize(
    "make", [as_pandas, as_polars, pytest.param(as_arrow, marks=needs_pyarrow)]
)
def test_reading_takes_little_more_memory_than_the_matrix(make):
    n, rng = 100_000, np.random.default_rng(0)
    made = random_table(rng, 500)
    table = {
        name: (values * (n // 500)) for name, values in made.items() if kind_of(name) != "decimal"
    }
    frame = make(table, rng)
    as_features(make({name: values[:100] for name, values in table.items()}, rng))
    peak, features = peak_of(lambda: as_features(frame))
    assert peak <= 1.2 * features.values.nbytes


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.decimals(),
    st.complex_numbers(),
    st.lists(st.integers(), max_size=2),
)
COLUMNS = st.one_of(
    st.lists(CELLS, min_size=6, max_size=6),
    *(
        st.lists(st.one_of(st.none(), cell), min_size=6, max_size=6)
        for cell in (
            st.booleans(),
            st.integers(-3, 3),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(),
            st.sampled_from(WORDS),
            st.dates(),
            st.decimals(allow_nan=False, allow_infinity=False),
            st.datetimes(),
            st.timedeltas(),
        )
    ),
)
DTYPES = ["category", "string", "Int64", "Float64", "boolean", "float32", "object", None]


@st.composite
def frames(draw):
    """Draw a frame of a library, with columns of any kind; None if the library refuses it."""
    columns = draw(st.dictionaries(st.text(max_size=4), COLUMNS, min_size=1, max_size=3))
    library = draw(st.sampled_from(["pandas", "polars", "pyarrow", "objects", "masked"]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if library == "pandas":
                dtype = draw(st.sampled_from(DTYPES))
                return pd.DataFrame(
                    {name: pd.Series(values, dtype=dtype) for name, values in columns.items()}
                )
            if library == "polars":
                frame = pl.DataFrame(columns, strict=draw(st.booleans()))
                k = draw(st.integers(0, 6))
                return pl.concat([frame[:k], frame[k:]], rechunk=False)
            if library == "pyarrow" and pa is not None:
                return pa.table({k: pa.array(v) for k, v in columns.items()})
            matrix = np.empty((6, len(columns)), dtype=object)
            for j, values in enumerate(columns.values()):
                matrix[:, j] = values
            if library == "objects":
                return matrix
            mask = draw(st.lists(st.booleans(), min_size=matrix.size, max_size=matrix.size))
            return np.ma.MaskedArray(matrix, mask=np.reshape(mask, matrix.shape))
    except BaseException as error:  # polars panics by one of its own
        if isinstance(error, KeyboardInterrupt) or "hypothesis" in type(error).__module__:
            raise
        return None


def cells_of(frame):
    if isinstance(frame, np.ndarray):
        return [list(column) for column in frame.T]
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, j].tolist() for j in range(frame.shape[1])]
    return (
        [
            frame[name].to_pylist() if hasattr(frame[name], "to_pylist") else frame[name].to_list()
            for name in frame.columns
        ]
        if not hasattr(frame, "column_names")
        else [frame.column(j).to_pylist() for j in range(frame.num_columns)]
    )


def is_hole(value):
    return (
        value is None
        or value is np.ma.masked
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float | np.floating) and np.isnan(value))
        or (isinstance(value, decimal.Decimal) and value.is_nan())
    )


@pytest.mark.full
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(frames(), st.data())
def test_any_frame_is_read_right_or_refused_in_words(frame, data):
    if frame is None:
        return
    d = frame.shape[1] if hasattr(frame, "shape") else len(frame.column_names)
    named = data.draw(st.one_of(st.none(), st.lists(st.integers(0, d - 1), unique=True)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            features = as_features(frame, categorical_features=named)
        except (ValueError, TypeError) as error:
            text = str(error)
        else:
            text = ""
    if text:
        assert text.startswith(("X: column", "X: expected", "X: two columns"))
        assert "column" in text
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = match_names(features.names, d, frame, features.table)
    values, table = features.values, features.table
    np.testing.assert_array_equal(again.values, values)
    for j, cells in enumerate(cells_of(frame)):
        levels = None if table is None else table.values_of(j)
        for value, number in zip(cells, values[:, j].tolist(), strict=True):
            if is_hole(value):
                assert np.isnan(number)
            elif levels is None:
                assert number == float(value)
            else:
                assert levels[int(number)] == (value if levels.dtype.kind == "U" else float(value))


class Stream:
    """Something of another library that passes its columns."""

    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        frame = self._frame
        if not hasattr(frame, "__arrow_c_stream__"):  # of polars before 1.3
            frame = frame.to_arrow()
        return frame.__arrow_c_stream__(requested_schema)


def test_streams_of_columns_are_read():
    frame = pl.DataFrame({"a": [1.5, None, 2.0, 1.5], "kind": ["x", "y", "y", "x"]})
    features = as_features(Stream(frame))
    assert features.names == ("a", "kind")
    np.testing.assert_array_equal(features.values, [[1.5, 0], [np.nan, 1], [2, 1], [1.5, 0]])
    model = pb.fit_adaboost(Stream(frame), [0, 1, 1, 0], n_estimators=1)
    assert pb.predict(model, Stream(frame)).tolist() == [0, 1, 1, 0]
