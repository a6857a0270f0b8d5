"""C files of models of every kind give the same scores and labels as the package.

    PBOOST_C_ROWS=100000 python -m pytest tests/export/test_c_files.py -k "bits and not undefined"

evaluates so many rows of each.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from c_programs import COMPILERS, STRICT, Programs, self_test, works
from exported import EVERY, LEVELS, THREE, TWO, X, made, rows_for
from reference import c_numbers as twin

import pboost as pb
from pboost.data.node_inputs.inputs import Subsets
from pboost.data.read.convert import Features
from pboost.export.c_file import to_c
from pboost.export.c_intermediate import is_exact, part_of
from pboost.export.c_types import Grid, fixed_part, leave_walk, single_part, sums_of

#: Where rows leave does not matter here, only that the file says so.
pytestmark = pytest.mark.filterwarnings("ignore:X_cal. .* rows equal rows:UserWarning")

GOLDEN = Path(__file__).parents[1] / "golden" / "models"
#: Kinds of golden models that others here are not.
OLD = (
    "bagging.three",
    "bagging_average.three",
    "sbpmt_two.two",
    "bagging_chains.two",
    "bagging_regression.numbers",
    "chain_affine.two",
    "chain_linear.two",
    "chain_separators.two",
    "linear.two",
    "no_nodes.two",
    "oblique_tree.two",
    "one_vs_rest.three",
    "probit.two",
    "probit_tree.two",
    "probit_tree_three.three",
    "sbpmt.three",
    "sbpmt_tree.three",
    "tree_affine.two",
    "tree_separators.two",
    "weighted_vote.three",
    "weighted_vote_of_one_vs_rest.three",
    "chain_words_float32.words",
    "forest_three.three",
)


def _rest_of_calibrated():
    def fit(X, y):
        return pb.calibrate(pb.fit_adaboost(X, y, n_estimators=5, **LEVELS), X, y)

    return pb.fit_one_vs_rest(fit, X, THREE)


#: Models that add up columns, which are missing or categories.
SUMS = {
    "affine": lambda: pb.fit_adaboost(
        X,
        TWO,
        n_estimators=6,
        weak_learner=pb.weak.affine(n_directions=6, n_terms=2, seed=1),
        **LEVELS,
    ),
    "separators": lambda: pb.fit_boosted_tree(
        X, TWO, max_nodes=4, weak_learner=pb.weak.separator(4), **LEVELS
    ),
    "real": lambda: pb.fit_real_adaboost(
        X, TWO, n_estimators=9, weak_learner=pb.weak.feature(), **LEVELS
    ),
    "probit": lambda: pb.fit_probitboost(X, TWO, max_iter=9, **LEVELS),
    "probit tree": lambda: pb.fit_probit_tree(X, TWO, max_depth=2, max_iter=3, **LEVELS),
    "probit tree, three": lambda: pb.fit_probit_tree(X, THREE, max_depth=2, max_iter=3, **LEVELS),
    "rest of calibrated": _rest_of_calibrated,
    "mean of chains": lambda: _averaged(partial(pb.fit_adaboost, n_estimators=5), TWO),
    "mean of sums": lambda: _averaged(
        partial(pb.fit_gradient_boosting, loss="log_loss", n_estimators=2, max_depth=2), TWO
    ),
    "mean of probit sums": lambda: _averaged(
        partial(pb.fit_gradient_boosting, loss="probit", n_estimators=2, max_depth=2), TWO
    ),
    "mean of probits": lambda: _averaged(partial(pb.fit_probitboost, max_iter=5), TWO),
    "mean of probit trees": lambda: _averaged(
        partial(pb.fit_probit_tree, max_depth=1, max_iter=2), THREE
    ),
}


def _isotonic(y):
    return lambda of: pb.calibrate(of, X, y, method="isotonic")


def _at_the_ends(of):
    """Return a calibration with chances of 0, the least numbers, 1/2, and nearly 1."""
    share = np.array([0, 5e-324, 1e-310, 1e-300, 0.25, 0.5, 0.5, 1 - 2.0**-53, 1.0])
    value = pb.decision_function(of, X)
    knot = np.linspace(value.min(), value.max(), len(share))
    start = np.array([0, len(share)])
    return replace(_isotonic(TWO)(of), knot=knot, share=share, start=start)


def _early(comparisons, **options):
    return lambda of: pb.early_exit(of, X, mean_comparisons=comparisons, length=None, **options)


#: Models that rows leave early, or that are calibrated, by the models that these are made of.
AROUND = {
    "early chain": ("chain", _early(6)),
    "early joins": ("matryoshka", _early(7)),
    "early votes": ("chain of votes", _early(5)),
    "early forest": ("forest", _early(6)),
    "early forest, three": ("forest, three", _early(5)),
    "early sum": ("log_loss", _early(5, max_comparisons=9)),
    "early softmax": ("softmax", _early(18)),
    "calibrated": ("chain", lambda of: pb.calibrate(of, X, TWO)),
    "calibrated forest": ("forest", lambda of: pb.calibrate(of, X, TWO)),
    "calibrated early": ("log_loss", lambda of: pb.calibrate(_early(5)(of), X, TWO)),
    "isotonic": ("chain", _isotonic(TWO)),
    "isotonic, ends": ("log_loss", _at_the_ends),
    "isotonic forest": ("forest", _isotonic(TWO)),
    "isotonic early": ("log_loss", lambda of: _isotonic(TWO)(_early(5)(of))),
    "calibrated votes": ("votes", lambda of: pb.calibrate(of, X, THREE)),
    "isotonic votes": ("chain of votes", _isotonic(THREE)),
    "isotonic shares": ("forest, three", _isotonic(THREE)),
    "calibrated samme": ("samme", lambda of: pb.calibrate(of, X, THREE)),
}
#: Graphs whose votes are rounded to float32.
SINGLE = ("symmetric", "soft tree", "gaussian")
N = int(os.environ.get("PBOOST_C_ROWS", "150"))
#: Rounding errors of the scores in float64 that those of int16 are compared with.
ROUNDING = 1e-14
DTYPES = ("float64", "float32", "int16")


def _averaged(fit, y):
    return pb.fit_bagging(fit, X, y, n_estimators=3, rng=0, voting="soft", **LEVELS)


def _some_rows(model, rng):
    """Return rows of numbers and level numbers for a model that adds up columns."""
    rows = np.round(rng.normal(size=(N, model.n_features)) * 4, 1)
    levels = [0] * model.n_features if model.table is None else model.table.n_levels.tolist()
    for j, size in enumerate(levels):
        if size:
            rows[:, j] = rng.integers(0, size, N)
    if model.takes_missing:
        rows[rng.random(rows.shape) < 0.2] = np.nan
    return rows


def _given(model, rows):
    """Return rows as the package takes them, whose level numbers are these."""
    return rows if model.table is None else Features(rows, model.feature_names, model.table)


def _has_int16(model):
    """Return whether int16 holds a model: one of nodes that compare columns."""
    if isinstance(model, pb.models.DecisionGraph):
        return model.inputs is None or isinstance(model.inputs, Subsets)
    if isinstance(model, pb.models.EarlyExitModel):
        return _has_int16(model.model)
    if isinstance(model, pb.models.CalibratedModel):
        is_early = isinstance(model.model, pb.models.EarlyExitModel)
        return len(model.classes) == 2 and not is_early and _has_int16(model.model)
    return isinstance(
        model, pb.models.Tree | pb.models.RandomForest | pb.models.GradientBoostingModel
    )


def _expected(model, rows):
    """Return decision values (n, k), or shares, and predictions."""
    X = _given(model, rows)
    kind = isinstance(model, pb.models.Tree | pb.models.RandomForest | pb.models.Bagging)
    if kind and model.classes is not None and len(model.classes) > 2:
        score = pb.predict_proba(model, X)
    else:
        score = pb.decision_function(model, X)
    predicted = pb.predict(model, X)
    if model.classes is not None:
        predicted = np.searchsorted(model.classes, predicted).astype(float)
    return score.reshape(len(rows), -1), predicted


def _above_half(model, rows):
    """Return by how much the values of an isotonic calibration are above that of a half, (n, 1)."""
    value = pb.decision_function(model.model, rows)
    if value.ndim > 1:
        value = value[:, 1] - value[:, 0]
    low, high = model.knot[[0, -1]]  # 100 bisections end at neighbours
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if model.calibrated(np.array([middle])) > 0 else (middle, high)
    return (value - low)[:, None]


class _Every:
    """All models, their files and rows, in one program."""

    def __init__(self, folder):
        self.programs, self.cases = Programs(folder), []
        self.outputs, self.folder = {}, folder
        for kind in EVERY:
            model = made(kind)
            self._add(model, kind, rows_for(model, N))
        for kind, fit in SUMS.items():
            self._add(fit(), kind, None)
        for kind, (of, make) in AROUND.items():
            self._add(make(made(of)), kind, rows_for(made(of), N))
        for kind in OLD:
            self._add(pb.load(GOLDEN / f"{kind}.npz"), kind, None)
        for kind in SINGLE:
            self._add_single(made(kind), kind)
        for kind, (of, make) in AROUND.items():
            if kind.startswith("early"):
                self._add_single(make(made(of)), kind)

    def _add(self, model, kind, rows):
        if rows is None:
            rows = _some_rows(model, np.random.default_rng(3))
        for dtype in DTYPES:
            path = self.folder / f"{len(self.cases)}.c"
            options = {"prefix": f"m{len(self.cases)}", "X": _given(model, rows)}
            if dtype == "int16" and not _has_int16(model):
                with pytest.raises(NotImplementedError, match='dtype: "int16" supports only'):
                    to_c(model, path, dtype, **options)
                continue
            file = to_c(model, path, dtype, **options)
            typed_rows = rows.astype(np.float32).astype(float) if dtype == "float32" else rows
            if dtype == "int16":
                typed_rows = file.to_grid(rows)
            score, predicted = _expected(
                model, file.from_grid(typed_rows) if dtype == "int16" else typed_rows
            )
            if dtype == "int16" and getattr(model, "knot", None) is not None:
                score = _above_half(model, _given(model, file.from_grid(typed_rows)))
            predicts = not (dtype == "int16" and model.classes is None)
            place = self.programs.add(file, path.read_text(), score.shape[1], typed_rows, predicts)
            self.cases.append((kind, dtype, file, model, score, predicted, place))

    def _add_single(self, model, kind):
        """Add a file with votes of float32, whose scores are those of the twin."""
        full = model.model if isinstance(model, pb.models.EarlyExitModel) else model
        path, rows = self.folder / f"single {kind}.c", rows_for(full, 60).astype(np.float32)
        prefix = f"s{len(self.cases)}"
        file = to_c(model, path, "float32", prefix=prefix, vote_dtype="float32")
        if full is model:
            score = np.array([[twin.single_score(model, row)] for row in rows])
        else:  # see tests of `leave_walk` for the twin of this
            score = sums_of(single_part(part_of(model), "float32"), rows)
        place = self.programs.add(file, path.read_text(), score.shape[1], rows)
        predicted = score[:, 0] > 0 if score.shape[1] == 1 else score.argmax(axis=1)
        self.cases.append((f"single {kind}", "float32", file, model, score, predicted, place))

    def run(self, compiler):
        """Return what the files said, by a compiler."""
        if compiler not in self.outputs:
            if not works(compiler, self.folder):
                pytest.skip(f"{compiler} does not build programs that run here")
            self.outputs[compiler] = self.programs.run(compiler)
        return self.outputs[compiler]


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    return _Every(tmp_path_factory.mktemp("c"))


@pytest.mark.full_for("gcc")
@pytest.mark.build
@pytest.mark.parametrize("compiler", COMPILERS)
def test_scores_have_the_same_bits_and_labels_are_the_same(every, compiler):
    actual = every.run(compiler)
    for case in every.cases:
        kind, dtype, file, model, score, expected, place = case
        c_score, predicted = actual[place]
        where = f"{kind}, {dtype}"
        if dtype == "int16":
            error = np.abs(c_score * file.scale - score)
            if isinstance(model, pb.models.EarlyExitModel):
                _check_early(every, case, c_score, predicted)
                continue
            assert error.max() <= file.bound + ROUNDING, where
            if model.classes is None:
                continue
            lead = np.abs(score[:, 0])
            if score.shape[1] > 1:
                lead = np.diff(np.sort(score), axis=1)[:, -1]
            clear = lead > file.bound
            assert clear.mean() > 0.4 or not model.n_nodes, where  # shares of leaves can be equal
            assert np.array_equal(predicted[clear], expected[clear]), where
        elif not is_exact(part_of(model)):
            np.testing.assert_allclose(c_score, score, rtol=1e-14, atol=1e-14, err_msg=where)
            lead = np.abs(score[:, 0])
            if score.shape[1] > 1:
                lead = np.diff(np.sort(score), axis=1)[:, -1]
            assert np.array_equal(predicted[lead > 1e-12], expected[lead > 1e-12]), where
        else:
            assert np.array_equal(c_score, score), where
            if model.classes is None:
                np.testing.assert_allclose(predicted, expected, rtol=1e-15, err_msg=where)
            else:
                assert np.array_equal(predicted, expected), where


def _check_early(every, case, c_score, predicted):
    """Check a file of int16 that rows leave early: the bits of the twin, and labels."""
    kind, _, file, model, score, expected, place = case
    grid_rows = every.programs.rows[place]
    grid = Grid(file.offset, file.step)
    fixed = fixed_part(part_of(model), grid)
    assert np.array_equal(c_score, sums_of(fixed.part, grid_rows)), kind
    clear = leave_walk(part_of(model), grid.values(grid_rows)).near > file.bound
    assert clear.mean() > 0.3, kind  # shares of leaves can be equal, and equal to thresholds
    assert file.uncertain == np.count_nonzero(~clear)
    error = np.abs(c_score * file.scale - score)[clear]
    assert error.max() <= max(1, model.slope.max()) * (file.bound + 4 * file.scale), kind
    assert np.array_equal(predicted[clear], expected[clear]), kind


@pytest.mark.build
def test_all_kinds_are_there(every):
    kinds = {(type(model).__name__, dtype) for _, dtype, _, model, *_ in every.cases}
    names = {
        "DecisionGraph",
        "Tree",
        "RandomForest",
        "GradientBoostingModel",
        "LinearModel",
        "ProbitModel",
        "ProbitTree",
        "OneVsRest",
        "WeightedVote",
        "Bagging",
        "SubaggedProbitTrees",
        "CalibratedModel",
    }
    assert kinds >= {(name, dtype) for name in names for dtype in DTYPES[:2]}
    assert kinds >= {(name, "int16") for name in ("DecisionGraph", "Tree", "RandomForest")}


@pytest.mark.build
def test_paths_are_those_of_the_package(tmp_path):
    if not works("gcc", tmp_path):
        pytest.skip("gcc does not build programs that run here")
    kinds, text = ("chain", "matryoshka", "forest, three", "nothing to learn"), []
    for k, kind in enumerate(kinds):
        pb.export.to_c(made(kind), tmp_path / "m.c", prefix=f"m{k}", explain=True)
        text.append((tmp_path / "m.c").read_text())
    (tmp_path / "all.c").write_text("\n".join(text))
    command = ["gcc", *STRICT, "-shared", "-fPIC", str(tmp_path / "all.c"), "-o"]
    subprocess.run([*command, str(tmp_path / "all.so")], check=True)
    library, at = ctypes.CDLL(str(tmp_path / "all.so")), (ctypes.c_int * 100)()
    for k, kind in enumerate(kinds):
        model = made(kind)
        for row in rows_for(model, 20):
            x = row.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
            n = library[f"m{k}_path"](x, at, 100)
            actual = list(at[:n])
            assert n == pb.prediction_cost(model, _given(model, row[None]))[0]
            if not isinstance(model, pb.models.DecisionGraph):
                continue
            node, score = 0 if model.n_nodes else -1, model.bias
            for exit_ in actual:
                assert exit_ // 2 == node
                score += model.vote[node, exit_ % 2]
                node = int(model.next[node, exit_ % 2])
            assert node == -1
            assert score == pb.decision_function(model, _given(model, row[None]))[0]
            assert library[f"m{k}_path"](x, at, 2) == n  # no more are written


@pytest.mark.full
@pytest.mark.build
def test_a_file_tests_itself_and_fails_where_a_number_is_changed(tmp_path):
    if not works("gcc", tmp_path):
        pytest.skip("gcc does not build programs that run here")
    path = tmp_path / "chain.c"
    for dtype in DTYPES:
        to_c(made("chain"), path, dtype, prefix="chain", X=_given(made("chain"), X))
        code, message = self_test(str(path), "chain", str(tmp_path))
        assert (code, message) == (0, "0 scores of 20 rows differ\n")
    early = AROUND["early chain"][1](made("chain"))
    for dtype, votes in (("int16", "float64"), ("float32", "float32")):
        early_path = tmp_path / f"early-{dtype}.c"
        to_c(early, early_path, dtype, prefix="early", vote_dtype=votes, X=_given(early, X))
        actual = self_test(str(early_path), "early", str(tmp_path))
        assert actual == (0, "0 scores of 20 rows differ\n")
    text = path.read_text()
    start = text.index("chain_vote[")
    first = text.index("{", start) + 1
    path.write_text(f"{text[:first]} 7 +{text[first:]}")
    code, message = self_test(str(path), "chain", str(tmp_path))
    assert code == 1
    assert not message.startswith("0 ")
