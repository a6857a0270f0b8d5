"""What is said of names and calls that users of other libraries try."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

import pboost as pb
from pboost.values.parameter_aliases import ELSEWHERE, METHODS

X = np.random.default_rng(0).normal(size=(40, 3))
Y = X[:, 0] > 0
MODEL = pb.fit_gradient_boosting(X, Y, n_estimators=2)


class LogCosh(pb.losses.Loss):
    is_regression = True

    def value(self, y, f):
        return np.logaddexp(f - y, y - f)

    def gradient(self, y, f):
        return np.tanh(f - y)


class OfClasses(LogCosh):
    is_regression = False


class Misnamed(LogCosh):
    def hessian(self, y, f):
        return 1 / np.cosh(f - y) ** 2


class Curved(Misnamed):
    def curvature(self, y, f):
        return self.hessian(y, f)


def objective(y, f):
    return f - y, np.ones(len(f))


fit = partial(pb.fit_gradient_boosting, X, X[:, 1], n_estimators=1)
CALLS = {
    "swapped": (partial(pb.fit_gradient_boosting, Y, X), r"pass the features first, as in fit\(X"),
    "forest": (partial(pb.fit_random_forest, X, Y, quality=5), "only gradient boosting has it$"),
    "alias": (
        partial(pb.fit_cart, X, Y, monotone_constraints=[1, 0, 0]),
        "only gradient boosting has it, as `monotonic_cst`$",
    ),
    "stopping": (partial(fit, n_iter_no_change=5), "; also pass validation=0.2 or "),
    "level": (partial(fit, loss="quantile"), r"; for a quantile pass pb\.losses\.Quantile\(0\.9\)"),
    "pinball": (partial(fit, loss="pinball"), r"; for a quantile pass pb\.losses\.Quantile"),
    "Quantile": (partial(pb.losses.Quantile, q=0.9), "q: Quantile has no such option; it has quan"),
    "hessian": (partial(fit, loss=Misnamed()), r"a method curvature\(y, f\), got hessian; rename"),
    "numbers": (partial(fit, loss=OfClasses()), "expected is_regression = True in the class OfCl"),
    "objective": (partial(fit, loss=objective), r"pass pb\.losses\.from_gradients"),
    "class": (partial(fit, loss=LogCosh), r"; call it: LogCosh\("),
    "fobj": (partial(fit, fobj=objective), "^fobj: use `loss`$"),
    "balanced": (partial(fit, sample_weight="balanced"), r"pass pb\.data\.balanced_weights\(y\)$"),
    "scoring": (
        partial(pb.cross_validate, pb.fit_cart, X, Y, scoring="f1"),
        "^scoring: cross_validate returns",
    ),
    "fitted": (partial(pb.cross_validate, MODEL, X), "pass the fit function itself, not the model"),
    "rows": (partial(pb.search_space, "gradient_boosting"), "^n_rows: search_space requires this"),
    "budget": (partial(pb.fit_within_budget, X, Y, 10), "such as mean_comparisons=10$"),
    "contrib": (
        partial(pb.predict, MODEL, X, pred_contrib=True),
        r"^pred_contrib: use pb\.explain",
    ),
    "raw": (partial(pb.predict_proba, MODEL, X, raw_score=True), r"use pb\.decision_function\("),
    "typo": (partial(pb.predict, MODEL, X, treshold=0.3), "; did you mean threshold"),
    "path": (partial(pb.predict, "model.npz", X), r"; load it first, with pb\.load\(path\)$"),
    "parquet": (partial(pb.predict, MODEL, "t.parquet"), r"predict the batches of pyarrow\."),
    "onnx": (partial(pb.export.to_onnx, MODEL, "m.onnx"), r"SerializeToString\(\)\)$"),
    "c": (partial(pb.export.to_c, MODEL), "^path: to_c requires this argument: str or path-like"),
    "folder": (
        partial(pb.data.bin_files, "t.parquet"),
        "^folder: bin_files requires this argument",
    ),
    "stored": (
        partial(pb.fit_cart, pb.data.StoredColumns(pb.data.bin_columns(X), Y, None)),
        "columns, y, weight = X$",
    ),
    "module": (partial(getattr, pb, "to_c"), r"; use pboost\.export\.to_c$"),
    "estimator": (partial(getattr, pb, "RandomForestClassifier"), r"are in pboost\.sklearn$"),
    "method": (partial(getattr, MODEL, "save"), r"no attribute 'save'; use pb\.save\(model, path"),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_guesses(name):
    call, message = CALLS[name]
    with pytest.raises((TypeError, ValueError, AttributeError), match=message):
        call()


def test_a_loss_with_both_names_is_no_mistake():
    assert len(fit(loss=Curved())) == 1


def test_batches_with_names_need_a_target(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(TypeError, match=r"pass target= with the name of the target column$"):
        pb.data.bin_files([frame], tmp_path / "bins")


def test_hints_name_what_exists():
    text = " ".join([*METHODS.values(), *ELSEWHERE.values()])
    names = set(re.findall(r"\bpb\.([\w.]*\w)", text)) - {"losses.Quantile(0.9"}
    assert len(names) > 15
    for name in names:
        value = pb
        for part in name.split("."):
            value = getattr(value, part)
    attributes = set(re.findall(r"\bmodel\.(\w+)$", "\n".join(METHODS.values()), re.M))
    assert attributes == {"classes", "feature_names", "n_features"}
    assert all(hasattr(MODEL, name) for name in attributes)
