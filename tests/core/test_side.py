"""On which side of a threshold a value lies: the same in every walk and every partition."""

import re
from pathlib import Path

import numpy as np
import pytest

import pboost as pb
from pboost._core import uncertain, voting, walk
from pboost.models.evaluate.graph_walk import goes_right
from pboost.models.graph_arrays import CERTAIN

TINY, MAX = np.nextafter(0.0, 1.0), np.finfo(np.float64).max
FINITE = np.array(
    [0.0, -0.0, TINY, -TINY, np.finfo(np.float64).tiny, 1.0, np.nextafter(1.0, 2.0), MAX, -MAX]
)
#: Values that sums of columns can have, and thresholds: each value with each threshold.
VALUE, CUT = (grid.ravel() for grid in np.meshgrid([*FINITE, np.inf, -np.inf, np.nan], FINITE))
PACKAGE = Path(pb.__file__).parent
#: A comparison with what is called so on one of its sides.
NAME = r"(?:[\w.&*\[\]]*[\W_])?(?:threshold|cut|cut_bin|edge|codes?)\b(?!\.shape)"
COMPARISON = re.compile(rf"{NAME}(?:\[[^\]]*\])* [<>]=? | [<>]=? {NAME}")
#: Files of Shapley values and sparse rows, which compare many values at once. Their tests compare
#: them with the walks of models, also for values that equal a threshold.
IN_VECTORS = {"_boost_outer.pxd", "interventional.pyx", "shapley.py", "shapley_ops.h", "sparse.pyx"}


def chain_values(values, cuts, n_rows, level=2):
    """Return whether each value, as a projection of a row, took exit 1 of a chain of one node."""
    # A sum of 4 columns: infinite values are those that a sum of finite ones overflows to.
    rows = np.zeros((len(values), 4))
    rows[:, 0] = np.where(np.isfinite(values), values, 0.0)
    rows[:, 1:3] = np.select(
        [np.isnan(values)[:, None], np.isposinf(values)[:, None], np.isneginf(values)[:, None]],
        [[MAX, -MAX], [MAX, 0.0], [-MAX, 0.0]],
        0.0,
    )
    one_sum, columns = np.array([0, 3], np.int32), np.arange(3, dtype=np.int32)
    feature, next_ = np.zeros(1, np.int32), np.full((1, 2), -1, np.int32)
    vote, score, actual = np.array([[0.0, 1.0]]), np.empty(n_rows), []
    tile = np.empty(walk.TILE_ROWS * 5)
    walk.use_simd_level(level)
    try:
        for row, cut in zip(rows, cuts, strict=True):
            X = np.repeat(row[None], n_rows, axis=0)
            bad = walk.walk(
                X,
                feature,
                np.array([cut]),
                next_,
                vote,
                True,
                0.0,
                4,
                0,
                n_rows,
                score,
                tile,
                None,
                (one_sum, columns, np.array([1.0, 2.0, 2.0]), None),
            )
            assert not bad
            assert len(set(score)) == 1
            actual.append(score[0] == 1.0)
    finally:
        walk.use_simd_level(2)
    return np.array(actual)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_chains_on_tiles_compare_as_single_rows_do(level):
    expected = np.array([a > b for a, b in zip(VALUE.tolist(), CUT.tolist(), strict=True)])
    assert not expected[np.isnan(VALUE)].any()
    np.testing.assert_array_equal(chain_values(VALUE, CUT, 1), expected)
    np.testing.assert_array_equal(chain_values(VALUE, CUT, walk.TILE_ROWS + 3, level), expected)
    np.testing.assert_array_equal(goes_right(VALUE, CUT), expected)


def graph(cuts, joined=False):
    """Return a graph of a node for each column; a tree whose second exits lead on, or a chain."""
    n = len(cuts)
    after = np.append(np.arange(1, n), -1)
    record = pb.models.TrainingRecord(np.ones(n + 1), np.ones(n + 1), "made up")
    return pb.models.DecisionGraph(
        feature=np.arange(n),
        threshold=cuts,
        next=np.column_stack([after if joined else np.full(n, -1), after]),
        vote=np.column_stack([np.zeros(n), 2.0 ** -np.arange(n)]),
        classes=np.array([-1, 1]),
        n_features=n,
        feature_names=None,
        bias=0.0,
        settings={},
        record=record,
    )


@pytest.mark.parametrize("cut", FINITE)
def test_all_walks_of_finite_values_agree(cut):
    right = np.greater(FINITE, cut)
    n, cuts = len(FINITE), np.full(len(FINITE), cut)
    rows = np.repeat(FINITE[None], 70, axis=0)
    votes = 2.0 ** -np.arange(n)
    chain = graph(cuts, joined=True)
    np.testing.assert_array_equal(pb.decision_function(chain, rows), votes[right].sum())
    np.testing.assert_array_equal(pb.decision_function(chain, rows[:3]), votes[right].sum())
    *_, last = pb.staged_decision_function(chain, rows)
    np.testing.assert_array_equal(last, votes[right].sum())
    assert [test.answer for test in pb.explain(chain, FINITE).tests] == right.tolist()
    total = np.zeros((70, 1))
    uncertain.sample(
        rows,
        chain.feature,
        chain.threshold,
        chain.next,
        chain.vote[..., None],
        np.repeat(CERTAIN[None], n, axis=0),
        np.empty((0, n)),
        0,
        0,
        1,
        0,
        70,
        total,
    )
    np.testing.assert_array_equal(total, votes[right].sum())


@pytest.mark.parametrize("cut", FINITE)
def test_trees_compare_as_graphs_do(cut):
    rows, right = np.repeat(FINITE[:, None], 3, axis=1), np.greater(FINITE, cut)
    model = pb.models.single_tree.Tree(
        feature=[1, -1, -1],
        threshold=[cut, 0, 0],
        children=[[1, 2], [-1, -1], [-1, -1]],
        value=[0.5, 0.0, 1.0],
        impurity=np.zeros(3),
        weight=np.ones(3),
        n_rows=np.ones(3, int),
        classes=None,
        n_features=3,
        feature_names=None,
        settings={},
        stop_reason="made up",
    )
    np.testing.assert_array_equal(pb.predict(model, rows), right)
    first = graph([cut])
    np.testing.assert_array_equal(pb.decision_function(first, rows[:, :1]), right)
    # A separator of one stump.
    steps = np.array([0, 1], np.int32), np.zeros(1, np.int32), np.array([0, 1], np.int32)
    tables = *steps, np.array([cut]), np.array([0.0, 1.0]), None
    score = np.empty(len(FINITE))
    walk.walk(
        rows,
        np.zeros(1, np.int32),
        np.array([0.5]),
        np.full((1, 2), -1, np.int32),
        np.array([[0.0, 1.0]]),
        False,
        0.0,
        3,
        0,
        len(rows),
        score,
        np.empty(walk.TILE_ROWS * 3),
        None,
        None,
        tables,
    )
    np.testing.assert_array_equal(score, right)


@pytest.mark.parametrize("cut", [0, 1, 127, 128, 254, 255])
def test_rows_known_by_their_bins(cut):
    codes, weight = np.arange(256, dtype=np.uint8), np.empty(256)
    factor = np.array([[2.0, 2.0], [3.0, 3.0]])
    voting.reweight(
        codes, cut, False, 0, factor, 1.0, np.ones(256), weight, np.empty(256, np.int64), 0, 256
    )
    np.testing.assert_array_equal(weight, np.where(np.arange(256) > cut, 3.0, 2.0))


def without_comments(path):
    """Return the lines of a source file, those of comments and docstrings empty."""
    text = path.read_text(encoding="utf-8")
    for comment in (r'"""(?:.|\n)*?"""', r"/\*(?:.|\n)*?\*/"):
        text = re.sub(comment, lambda item: "\n" * item[0].count("\n"), text)
    mark = "//" if path.suffix == ".h" else "#"
    return [line.split(mark)[0] for line in text.splitlines()]


def test_values_meet_thresholds_in_one_place():
    files = [p for p in (PACKAGE / "_core").iterdir() if p.suffix in (".pyx", ".pxd", ".h")]
    if not files:
        pytest.skip("the kernels' sources are part of the checkout only")
    files += (PACKAGE / "models").rglob("*.py")
    actual = [
        (path.name, line.strip())
        for path in sorted(files, key=lambda p: p.name)
        for line in without_comments(path)
        if COMPARISON.search(line)
    ]
    actual = [item for item in actual if item[0] not in IN_VECTORS]
    assert [name for name, _ in actual] == ["graph_walk.py", "side.h", "side.h"], actual
