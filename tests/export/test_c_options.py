"""C files: numbers of int16, what files say, and what is refused."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from exported import LEVELS, PLAIN, THREE, TWO, X, decoded, made, rows_for
from reference import c_numbers as twin

import pboost as pb
from pboost.data.read.convert import Features
from pboost.export.c_intermediate import part_of
from pboost.export.c_print import literal, plain, string
from pboost.export.c_types import (
    Grid,
    fixed_part,
    folded,
    grid_of,
    leave_walk,
    single_part,
    sums_of,
)

#: Where rows leave does not matter here, only that the file says so.
pytestmark = pytest.mark.filterwarnings("ignore:X_cal. .* rows equal rows:UserWarning")

POINTS = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 1.0], [3.0, 5.0]])
LABELS = ["no", "no", "yes", "yes"]


@pytest.fixture
def chain():
    return pb.fit_adaboost(POINTS, LABELS, n_estimators=3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.c"


def _fixed(model, rows):
    every = np.arange(model.n_features)
    grid = grid_of(model.n_features, every, np.zeros(len(every), dtype=bool), rows, None, None)
    return grid, fixed_part(part_of(model), grid)


# int16


@pytest.mark.parametrize("kind", ["symmetric", "soft tree", "gaussian", "chain of numbers"])
def test_fixed_point_is_that_of_the_twin(kind):
    if kind == "chain of numbers":
        model = pb.fit_matryoshka(X[:, :2], TWO, shape=(3, 2))
    else:
        model = made(kind)
    rows = rows_for(model, 40)
    grid, fixed = _fixed(model, rows)
    assert fixed.shift == twin.largest_shift(model)
    q = grid.numbers(rows)
    actual = sums_of(fixed.part, q)[:, 0].tolist()
    expected = [
        twin.graph_score(model, row, grid.offset, grid.step, fixed.shift) for row in q.tolist()
    ]
    assert actual == expected


@pytest.mark.parametrize("kind", ["symmetric", "soft tree", "cart, three", "forest", "softmax"])
def test_sums_fit_and_are_within_the_bound(kind):
    model = made(kind)
    part = part_of(model)
    grid = Grid(np.zeros(model.n_features), np.ones(model.n_features))
    fixed = fixed_part(part, grid)
    rows = np.round(np.nan_to_num(rows_for(model, 200)).clip(-3e4, 3e4))
    exact = sums_of(part, rows)
    actual = sums_of(fixed.part, rows.astype(np.int16)).astype(float)
    assert np.abs(actual * fixed.scale - exact).max() <= fixed.terms * fixed.scale / 2 * 1.0001
    # With one place more the largest sum would not fit.
    size = np.abs(actual).max()
    assert size < 2**31
    assert fixed.bound < 1e-6


def _early(kind):
    """Return a graph of numbers that rows leave early, at each joint a third of those that come."""
    fits = {
        "chain": lambda: pb.fit_adaboost(PLAIN, TWO, n_estimators=9),
        "joins": lambda: pb.fit_matryoshka(PLAIN, TWO, shape=(3, 2, 3), join="all"),
    }
    graph = fits[kind]()
    model = pb.early_exit(graph, PLAIN, mean_comparisons=7, length=None)
    size = np.abs(graph.trajectory(PLAIN)[0])
    threshold = np.append([np.inf, np.inf], np.quantile(size[2:-1], 0.7, axis=1))
    slope = np.linspace(0.4, 2.5, graph.n_stages)
    return replace(model, threshold=threshold, slope=slope)


@pytest.mark.parametrize("kind", ["chain", "joins"])
def test_rows_leave_in_fixed_point_as_those_of_the_twin(kind):
    model = _early(kind)
    rows = rows_for(model.model, 60)
    rows[:, :] = np.where(np.isnan(rows), np.nan, rows.clip(-3e3, 3e3))
    grid, fixed = _fixed(model, rows)
    q, places = grid.numbers(rows), int(np.log2(fixed.part.exits.unit))
    exact = leave_walk(part_of(model), grid.values(q))
    assert np.array_equal(exact.value[:, 0], model.left(grid.values(q)).score)
    actual = sums_of(fixed.part, q)[:, 0].tolist()
    expected = [
        twin.left_score(model, row, grid.offset, grid.step, fixed.shift, fixed.terms, places)
        for row in q.tolist()
    ]
    assert actual == [score for score, _ in expected]
    joint = model.left(grid.values(q)).joint
    assert len(np.unique(joint)) > 1
    clear = exact.near > fixed.bound
    assert clear.mean() > 0.9
    assert np.array_equal(joint[clear], np.array([t for _, t in expected])[clear])
    single = single_part(part_of(model), "float32")
    given = rows.astype(np.float32)
    actual = sums_of(single, given)[:, 0]
    assert actual.dtype == np.float32
    assert actual.tolist() == [float(twin.single_left_score(model, row)) for row in given]


def test_thresholds_that_sums_meet_in_fixed_point():
    """Votes of 1: sums in whole numbers are equal to thresholds, and rows leave."""
    chain = pb.fit_adaboost(PLAIN, TWO, n_estimators=9)
    chain = replace(chain, vote=np.tile([-1.0, 1.0], (9, 1)) / 3, bias=0.0)
    model = pb.early_exit(chain, PLAIN, mean_comparisons=6, length=None)
    third = 1 / 3
    for minimum, sure in ((third, True), (np.nextafter(third, 1.0), False)):
        threshold = np.append(np.inf, np.full(8, minimum))
        early = replace(model, threshold=threshold, slope=np.ones(9))
        grid, fixed = _fixed(early, PLAIN)
        left = leave_walk(fixed.part, grid.numbers(PLAIN))
        assert (left.exit == 0).all()  # after the first node
        exact = leave_walk(part_of(early), PLAIN)
        assert (exact.near > fixed.bound).all() == sure
        assert (early.left(PLAIN).joint == 1).all() == sure


@pytest.mark.parametrize("slope", [1e-12, 0.3, 3.0, 1000.0, 1e12])
@pytest.mark.parametrize("kind", ["forest", "forest, three", "log_loss", "chain"])
def test_scores_of_rows_that_leave_are_within_what_is_rounded(kind, slope):
    full = made(kind)
    X = rows_for(full, 200)
    model = pb.early_exit(full, decoded(full, X), mean_comparisons=4, length=None)
    model = replace(model, slope=np.full(full.n_stages, slope))
    numbers = np.round(X.clip(-3e4, 3e4))
    grid = Grid(np.zeros(full.n_features), np.ones(full.n_features))
    if slope > 1e6 and not kind.startswith("forest"):
        with pytest.raises(
            NotImplementedError, match='"int16" supports only early exits with slopes up to'
        ):
            fixed_part(part_of(model), grid)
        return
    fixed = fixed_part(part_of(model), grid)
    exact = leave_walk(part_of(model), numbers)
    actual = sums_of(fixed.part, grid.numbers(numbers)).astype(np.float64)
    assert np.abs(actual).max() < 2**31
    clear = exact.near > fixed.bound
    assert clear.mean() > 0.3  # shares of leaves are equal to thresholds
    expected = sums_of(part_of(model), numbers)[clear]
    error = np.abs(actual[clear] * fixed.scale - expected).max()
    assert error <= max(1.0, slope) * (fixed.bound + 8 * fixed.scale)
    again = leave_walk(fixed.part, grid.numbers(numbers)).value
    same = [v.argmax(axis=1) if v.shape[1] > 1 else v[:, 0] > 0 for v in (exact.value, again)]
    assert np.array_equal(same[0][clear], same[1][clear])


def test_comparisons_of_points_of_a_grid_are_those_of_their_values():
    rng = np.random.default_rng(0)
    for _ in range(200):
        step = float(rng.choice([1.0, 0.1, 3.0, 2.0**-20, 1e-300, 1e200]))
        offset = float(rng.choice([0.0, 1.0, -7.3, 1e3])) * step * 1000
        grid = Grid(np.array([offset]), np.array([step]))
        q = rng.integers(-32767, 32768, 50)
        values = grid.values(q[:, None])[:, 0]
        for edge in (values[0], np.nextafter(values[1], np.inf), np.nextafter(values[2], -np.inf)):
            below = grid.below(np.zeros(1, dtype=int), np.array([edge]))
            assert np.array_equal(q > below[0], values > edge)
    q = np.arange(-32767, 32768)
    for edge in (-1e300, 1e300, -32768.5, -32767.0, 32766.5, 32767.0):
        below = Grid(np.zeros(1), np.ones(1)).below(np.zeros(1, dtype=int), np.array([edge]))
        assert np.array_equal(q > below[0], q > edge)


def test_grids_have_room_for_the_rows_and_keep_whole_numbers(chain, path):
    rng = np.random.default_rng(1)
    for values in (
        rng.normal(size=(50, 2)),
        1e-9 * rng.normal(size=(50, 2)) + 7,
        np.full((3, 2), 0.3),
        np.full((3, 2), 1e9),
        rng.integers(0, 65535, (50, 2)).astype(float),
        np.array([[-1e300, 0.0], [1e300, 1e-310]]),
        np.array([[0.0, 1.0], [65534.0, np.nan]]),
    ):
        file = pb.export.to_c(chain, path, "int16", X=values)
        q = file.to_grid(values)
        known = ~np.isnan(values)
        read = np.unique(chain.feature)
        near = np.abs(file.from_grid(q) - values)[:, read]
        assert (near <= file.step[read] / 2)[known[:, read]].all()
        assert (q[~known] == -32768).all()
        assert (np.frexp(file.step)[0] == 0.5).all()
    full = np.array([[0.0, 1.0], [65534.0, 1023.0]])
    file = pb.export.to_c(chain, path, "int16", X=full)
    assert np.array_equal(file.from_grid(file.to_grid(full)), full)
    assert file.step.tolist() == [1, 1]
    assert file.offset.tolist() == [32767, 0]


def test_rows_and_ranges_of_a_grid_are_checked(chain, path):
    def refused(error, match, **options):
        with pytest.raises(error, match=match):
            pb.export.to_c(chain, path, "int16", **options)

    refused(ValueError, "X: expected rows with dtype=.*, got None; .* pass X, or ranges")
    refused(ValueError, r"ranges: expected an array of shape \(2, 2\)", ranges=[1])
    refused(ValueError, "ranges: expected finite", ranges=[(0, np.inf), (0, 1)])
    refused(ValueError, "ranges: expected finite", ranges=[(2, 1), (0, 1)])
    refused(
        ValueError,
        "grid_steps: expected one number, or an array of shape",
        ranges=[(0, 1)] * 2,
        grid_steps=[1] * 3,
    )
    refused(ValueError, "grid_steps: expected finite", ranges=[(0, 1)] * 2, grid_steps=0)
    refused(ValueError, "at most 65535 points, got 1", ranges=[(0, 65536)] * 2, grid_steps=1)
    refused(ValueError, "expected a non-missing value in column 0", X=np.full((2, 2), np.nan))
    refused(ValueError, "X: expected 2 columns", X=np.zeros((2, 3)))
    file = pb.export.to_c(chain, path, "int16", ranges=[(0, 65534)] * 2, grid_steps=1)
    assert file.uncertain is None
    assert not path.read_text().count("class may differ")
    with pytest.raises(ValueError, match='expected a file with "int16" rows, got "float64"'):
        pb.export.to_c(chain, path).to_grid(POINTS)


def test_rows_within_the_bound_are_counted(path):
    both = np.array([[0.0], [0.0], [1.0], [1.0]])
    model = pb.fit_random_forest(both, [0, 1, 1, 1], n_estimators=4, rng=0, max_depth=1)
    file = pb.export.to_c(model, path, "int16", X=both)
    lead = np.abs(pb.decision_function(model, both))
    assert file.uncertain == np.count_nonzero(lead <= file.bound)
    assert f"class may differ: {file.uncertain}." in path.read_text()


# Size


def _bytes_of(text, name):
    """Return the bytes of the tables of a file, without the self-test."""
    sizes = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4}
    text = text[: text.index("_SELF_TEST\n#include")]
    actual = re.findall(rf"static const (\w+) {name}_(\w+)\[(\d+)\]", text)
    return {what: sizes[kind] * int(n) for kind, what, n in actual}


def test_tables_of_int16_are_small(path):
    rng = np.random.default_rng(0)
    for d in (5, 300):  # numbers of columns of one byte and of two
        rows = rng.normal(size=(400, d))
        rows[rng.random(rows.shape) < 0.1] = np.nan
        y = np.nan_to_num(rows[:, :5]).sum(axis=1) > 0.3
        model = pb.fit_adaboost(rows, y, n_estimators=60)
        pb.export.to_c(model, path, "int16", X=rows)
        assert sum(_bytes_of(path.read_text(), "model").values()) <= 8 * 60
        graph = pb.fit_matryoshka(rows, y, shape=(4, 4))
        pb.export.to_c(graph, path, "int16", X=rows)
        assert sum(_bytes_of(path.read_text(), "model").values()) <= 16 * graph.n_nodes
        # Joins are shared: a node stands once.
        assert _bytes_of(path.read_text(), "model")["threshold"] == 2 * graph.n_nodes


# Words


def test_odd_names_and_labels_are_safe(path):
    names = ("a */ int x;", "b ??/", "c \\", "d\ne", "/* f", "gr\u00f6\u00dfe", "\U0001f600")
    rows = np.arange(14.0).reshape(2, 7)
    words = ['say "hi"', "??/ \\ \n */ \u00fc"]
    model = pb.fit_cart(rows, words, min_samples_leaf=1)
    frame = pytest.importorskip("pandas").DataFrame(rows, columns=names)
    model = pb.fit_adaboost(frame, words, n_estimators=1)
    pb.export.to_c(model, path)
    text = path.read_bytes().decode("ascii")
    assert "??" not in text
    assert "\\\n" not in text
    head = text[: text.index("#include")]
    assert head.count("*/") == head.count("/*") == 1
    table = re.search(r"classes\[2\] = \{\n(.*)\n\};", text)[1].strip().rstrip(",").split('", "')
    actual = [
        re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), word.strip('"')).encode("latin-1")
        for word in table
    ]
    assert sorted(f.decode() for f in actual) == sorted(words)


def test_numbers_are_written_with_all_bits():
    values = [0.1, -0.0, 5e-324, 1e308, -1.5, 1000.0, 999.0, 2.0**-1030, 3.0, -7.0]
    for value in values:
        actual = float.fromhex(literal(value)) if "x" in literal(value) else float(literal(value))
        assert (actual, np.signbit(actual)) == (value, np.signbit(value))
        single = np.float32(value) if abs(value) < 1e38 else np.float32(1)
        said = literal(single)
        assert said.endswith("f")
        assert np.float32(float.fromhex(said[:-1]) if "x" in said else float(said[:-1])) == single
    assert literal(np.int64(-(2**63))) == "(-9223372036854775807LL - 1)"
    assert (literal(float("inf")), literal(np.float32(-np.inf))) == ("INFINITY", "-INFINITY")
    assert string('a"b\\c?') == '"a\\042b\\134c\\077"'
    assert plain("x*/y??\t") == "x* /y<3f><3f><9>"


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([False, True], "const int32_t model_classes[2] = {\n    0, 1,"),
        ([-3, 2**40], "const int64_t model_classes[2] = {\n    -3, 1099511627776LL,"),
        ([0.5, 1.0], "const double model_classes[2] = {\n    0x1p-1, 1.0,"),
        (["a", "b"], 'const char *const model_classes[2] = {\n    "a", "b",'),
    ],
    ids=["bool", "int64", "float", "text"],
)
def test_labels_are_a_table(path, labels, said):
    pb.export.to_c(
        pb.fit_cart([[0.0], [1.0]], labels, task="classification", min_samples_leaf=1), path
    )
    assert said in path.read_text()


def test_the_head_names_columns_levels_and_the_certificate(path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=60).round(2),
            "town": rng.choice(["Ulm", "Jena", "Kiel"], 60),
            "other": rng.normal(size=60),
        }
    )
    model = pb.fit_adaboost(frame[["age", "town"]], frame["town"] == "Ulm", n_estimators=2)
    pb.export.to_c(model, path, "int16", X=frame[["age", "town"]])
    text = path.read_text()
    assert "x[1]: town, category code: 0 = Jena, 1 = Kiel, 2 = Ulm; other values are" in text
    assert f"training error: {model.record.certificate[-1]:.6g}\n" in text
    assert "A missing value is -32768." in text
    # The rows of the self-test are level numbers.
    assert re.search(r"model_test_rows\[40\]", text)


# Rows that leave early


def test_rows_leave_a_file_at_joints_before_the_end(path):
    chain = pb.fit_adaboost(PLAIN, TWO, n_estimators=9)
    model = pb.early_exit(chain, PLAIN, mean_comparisons=6, length=None)
    assert len(np.unique(model.left(PLAIN).joint)) > 2
    pb.export.to_c(model, path)
    text = path.read_text()
    finite = np.flatnonzero(np.isfinite(model.threshold))
    entries = re.search(r"model_exit\[\d+\] = \{\n(.*?)\n\}", text, re.DOTALL)[1]
    assert [int(v) for v in entries.split(",")[:-1]][:-1] == finite.tolist()
    assert f" * Prediction can stop early at up to {len(finite)} exits." in text


# What is refused


@pytest.mark.parametrize(
    ("prefix", "match"),
    [
        ("", "a C identifier"),
        ("2x", "a C identifier"),
        ("a-b", "a C identifier"),
        ("_x", "a C identifier"),
        ("a\n", "a C identifier"),
        ("\u00e4", "C identifier"),
        ("while", "is not a keyword"),
        ("class", "is not a keyword"),
        ("main", "is not a keyword"),
        ("x" * 32, "at most 31"),
    ],
)
def test_prefixes_are_identifiers(chain, path, prefix, match):
    with pytest.raises(ValueError, match=f"prefix: expected .*{match}"):
        pb.export.to_c(chain, path, prefix=prefix)
    assert not path.exists()


def test_arguments_are_checked(chain, path):
    with pytest.raises(TypeError, match="prefix: expected a str"):
        pb.export.to_c(chain, path, prefix=3)
    with pytest.raises(ValueError, match="dtype: expected one of 'float64', 'float32', 'int16'"):
        pb.export.to_c(chain, path, "float16")
    with pytest.raises(ValueError, match='vote_dtype: expected "float64" unless dtype="float32"'):
        pb.export.to_c(chain, path, vote_dtype="float32")
    with pytest.raises(ValueError, match="ranges, grid_steps: expected None unless"):
        pb.export.to_c(chain, path, "float32", grid_steps=1)
    with pytest.raises(TypeError, match="path: expected"):
        pb.export.to_c(chain, 3)
    with pytest.raises(TypeError, match="model: expected a model"):
        pb.export.to_c("model", path)
    with pytest.raises(TypeError, match="explain"):
        pb.export.to_c(chain, path, explain=1)
    with pytest.raises(FileNotFoundError):
        pb.export.to_c(chain, path / "there" / "is no folder")


def test_what_c_cannot_hold_is_refused_with_a_sentence(chain, path):
    def refused(match, model, *options, **more):
        with pytest.raises(NotImplementedError, match=match):
            pb.export.to_c(model, path, *options, **more)

    def column(X, y, weight, rng):
        return lambda X, rng: np.where(X[:, 0] > 1, 1, -1)

    oracle = pb.fit_adaboost(
        POINTS, LABELS, n_estimators=1, weak_learner=pb.weak.oracle(column), rng=0
    )
    refused("oracles, which are Python functions", oracle)
    early = pb.early_exit(pb.fit_adaboost(PLAIN, TWO, n_estimators=9), PLAIN, mean_comparisons=4)

    def fit(X, y, **options):
        return pb.early_exit(pb.fit_adaboost(X, y, n_estimators=3), X, mean_comparisons=2)

    early_members = pb.fit_bagging(fit, PLAIN, TWO, n_estimators=2, rng=0)
    refused(
        "a base learner is an EarlyExitModel, which can only be exported by itself", early_members
    )
    stumps = partial(pb.fit_adaboost, n_estimators=5)
    members = pb.fit_bagging(stumps, PLAIN, TWO, n_estimators=3, rng=0)
    full = r"export model\.model, a Bagging, instead"
    refused(full, pb.early_exit(members, PLAIN, mean_comparisons=40))
    forest = pb.fit_random_forest(PLAIN, np.arange(len(PLAIN)) % 8, n_estimators=3, rng=0)
    priced = pb.early_exit(
        pb.fit_adaboost(PLAIN, TWO, n_estimators=9),
        PLAIN,
        mean_feature_cost=2.0,
        feature_costs=np.ones(PLAIN.shape[1]),
    )
    refused("early exits with a feature cost", priced)
    refused("at most 7 classes, got 8 classes", pb.early_exit(forest, PLAIN, mean_comparisons=9))
    isotonic = partial(pb.calibrate, method="isotonic")
    grid = {"dtype": "int16", "X": PLAIN}
    refused("sums of trees without early exits", isotonic(early, PLAIN, TWO), **grid)
    three = pb.fit_adaboost(PLAIN, THREE, n_estimators=3)
    refused("two classes, got 3 classes", pb.calibrate(three, PLAIN, THREE), **grid)
    rare = np.arange(len(PLAIN)) % 9 == 0
    never = isotonic(pb.fit_adaboost(PLAIN, TWO, n_estimators=1), PLAIN, rare)
    refused("predicts False for all rows", never, **grid)
    linear = pb.fit_real_adaboost(X[:, :2], TWO, n_estimators=2, weak_learner=pb.weak.feature())
    refused('use "float64" or "float32"', linear, "int16", X=X[:, :2])
    refused("explain: expected a graph", linear, explain=True)
    refused(
        'vote_dtype: "float32" is only supported for graphs',
        linear,
        "float32",
        vote_dtype="float32",
    )
    affine = pb.fit_adaboost(X[:, :2], TWO, n_estimators=2, weak_learner=pb.weak.affine())
    refused("the nodes of this model compare sums", affine, "int16", X=X[:, :2])
    refused("whose nodes compare features", affine, "float32", vote_dtype="float32")
    assert not path.exists()


def test_a_file_is_replaced_as_a_whole(chain, path):
    path.write_text("what was there")
    path.chmod(0o600)
    pb.export.to_c(chain, path)
    assert path.read_text().startswith("/*\n * <fit_adaboost")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    pb.export.to_c(chain, os.fsencode(path))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["model.c"]


def test_rows_of_the_test_are_made_where_none_are_given(path):
    model = pb.fit_adaboost(X, TWO, n_estimators=5, **LEVELS)
    pb.export.to_c(model, path)
    text = path.read_text()
    assert "NAN" in text[text.index("model_test_rows") :]
    assert text == (pb.export.to_c(model, path), path.read_text())[1]
    pb.export.to_c(model, path, X=np.empty((0, 4)))
    assert path.read_text() == text


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", ["chain", "forest", "log_loss"])
def test_calibrations_in_int16_are_their_log_odds(kind, turned, path):
    of = made(kind)
    model = pb.calibrate(of, X, ~TWO if turned else TWO)
    assert (model.slope[0] < 0) == turned
    file = pb.export.to_c(model, path, "int16", X=X)
    grid, q = Grid(file.offset, file.step), file.to_grid(X)
    fixed = fixed_part(folded(model, part_of(model)), grid).part
    rows = Features(file.from_grid(q), model.feature_names, model.table)
    value = pb.decision_function(model, rows)
    actual = sums_of(fixed, q)[:, 0]
    assert np.abs(actual * file.scale - value).max() <= file.bound + 1e-14
    assert file.uncertain == np.count_nonzero(np.abs(value) <= file.bound) == 0
    assert np.array_equal(actual > 0, pb.predict(model, rows))
    assert np.abs(value).max() > 0.1


def test_thresholds_of_float32_lose_nothing():
    model = pb.fit_adaboost(X[:, :2], TWO, n_estimators=4)
    edges = np.array([0.1, 1e300, -1e300, 5e-324])
    model = pb.models.DecisionGraph(
        **{
            name: getattr(model, name)
            for name in (
                "feature",
                "next",
                "vote",
                "classes",
                "n_features",
                "feature_names",
                "bias",
                "settings",
                "record",
                "missing",
                "table",
            )
        },
        threshold=edges,
    )
    single = single_part(part_of(model), "float64").tests.threshold
    assert single.dtype == np.float32
    top = np.finfo(np.float32).max
    near = np.array([0.1, 0.0, 1e-45, -1e-45, 1.0, top, -top], dtype=np.float32)
    near = np.concatenate([near, np.nextafter(near[:5], np.float32(2)), -near[:1]])
    for edge, rounded in zip(edges.tolist(), single, strict=True):
        assert np.array_equal(near > rounded, near.astype(float) > edge)
