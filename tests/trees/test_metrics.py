"""Metrics of validation sets: values, early stopping, files, continued fits and estimators."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb
from pboost.losses.metrics import METRICS

sk = pytest.importorskip("sklearn.metrics")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)).round(1)
LABEL = np.where(X[:, 0] * X[:, 1] + 0.5 * RNG.normal(size=300) > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * RNG.normal(size=300), [-0.5, 0.5])]
NUMBER = np.exp(X[:, 0] + 0.3 * RNG.normal(size=300))
WEIGHT = RNG.uniform(0.5, 2.0, 120)
TRAIN, TEST = slice(180), slice(180, 300)
OF_CLASSES = {
    "log_loss": lambda y, p, w: sk.log_loss(y, p, sample_weight=w),
    "error": lambda y, p, w: np.average(np.unique(y)[p.argmax(axis=1)] != y, weights=w),
    "roc_auc": lambda y, p, w: sk.roc_auc_score(y, p[:, 1], sample_weight=w),
    "average_precision": lambda y, p, w: sk.average_precision_score(
        y, p[:, 1], pos_label="yes", sample_weight=w
    ),
    "brier": lambda y, p, w: sk.brier_score_loss(y, p[:, 1], pos_label="yes", sample_weight=w),
}
OF_NUMBERS = {
    "rmse": lambda y, p, w: sk.root_mean_squared_error(y, p, sample_weight=w),
    "mae": lambda y, p, w: sk.mean_absolute_error(y, p, sample_weight=w),
    "mape": lambda y, p, w: sk.mean_absolute_percentage_error(y, p, sample_weight=w),
    "r2": lambda y, p, w: sk.r2_score(y, p, sample_weight=w),
    "pinball": lambda y, p, w: sk.mean_pinball_loss(y, p, sample_weight=w),
    "poisson_deviance": lambda y, p, w: sk.mean_poisson_deviance(y, p, sample_weight=w),
    "gamma_deviance": lambda y, p, w: sk.mean_gamma_deviance(y, p, sample_weight=w),
    "tweedie_deviance": lambda y, p, w: sk.mean_tweedie_deviance(y, p, power=1.5, sample_weight=w),
}


def test_every_metric_is_compared():
    assert METRICS.keys() == OF_CLASSES.keys() | OF_NUMBERS.keys()


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(
    ("y", "metrics", "loss"), [(LABEL, OF_CLASSES, "log_loss"), (NUMBER, OF_NUMBERS, "poisson")]
)
def test_values_are_those_of_scikit_learn(y, metrics, loss, weight):
    rows = (X[TEST], y[TEST]) if weight is None else (X[TEST], y[TEST], weight)
    model = pb.fit_gradient_boosting(
        X[TRAIN], y[TRAIN], loss=loss, n_estimators=5, validation=rows, metric=[*metrics], tol=1e9
    )
    assert model.metrics.keys() == {"validation"}
    assert np.array_equal(model.metrics["validation"]["loss"], model.validation_loss)
    model = pb.fit_gradient_boosting(X[TRAIN], y[TRAIN], loss=loss, n_estimators=5)
    scored = pb.fit_gradient_boosting(
        X[TRAIN], y[TRAIN], loss=loss, n_estimators=5, validation=rows, metric=[*metrics]
    )
    stages = pb.staged_predict if loss == "poisson" else pb.staged_predict_proba
    for k, predicted in enumerate(stages(model, X[TEST]), 1):
        for name, expected in metrics.items():
            value = scored.metrics["validation"][name][k]
            assert value == pytest.approx(expected(y[TEST], predicted, weight), rel=1e-12), name


def test_several_classes():
    rows = X[TEST], THREE[TEST]
    model = pb.fit_gradient_boosting(
        X[TRAIN], THREE[TRAIN], validation=rows, metric=["roc_auc", "average_precision"]
    )
    share, n = pb.predict_proba(model, X[TEST]), len(model)
    values = model.metrics["validation"]
    area = sk.roc_auc_score(THREE[TEST], share, multi_class="ovr")
    assert values["roc_auc"][n] == pytest.approx(area, rel=1e-12)
    assert values["roc_auc"].argmax() == n
    one_hot = THREE[TEST][:, None] == model.classes
    precision = sk.average_precision_score(one_hot, share)
    assert values["average_precision"][n] == pytest.approx(precision, rel=1e-12)


def test_the_first_metric_of_the_first_set_decides():
    """A function gets labels, probabilities and weights; other sets change no tree."""
    got = []

    def skill(y, prediction, sample_weight):
        got.append((y, prediction, sample_weight))
        return sk.roc_auc_score(y == "yes", prediction[:, 1])

    one, other = (X[180:240], LABEL[180:240]), (X[240:], LABEL[240:], np.arange(1.0, 61.0))
    options = {"n_iter_no_change": 5, "n_estimators": 60}
    model = pb.fit_gradient_boosting(
        X[TRAIN],
        LABEL[TRAIN],
        validation={"one": one, "other": other},
        metric=[skill, "error"],
        greater_is_better=True,
        **options,
    )
    values = model.metrics
    assert list(values) == ["one", "other"]
    assert list(values["other"]) == ["loss", "skill", "error"]
    assert values["one"]["skill"].argmax() == len(model)
    assert len(values["one"]["skill"]) == len(model) + 6
    assert got[0][0].tolist() == one[1].tolist()
    assert got[0][2] is None
    assert np.allclose(got[1][2] / got[1][2][0], other[2])
    alone = pb.fit_gradient_boosting(
        X[TRAIN], LABEL[TRAIN], validation=one, metric="roc_auc", **options
    )
    assert np.array_equal(alone.trees.value, model.trees.value)
    areas = alone.metrics["validation"]["roc_auc"]
    assert areas == pytest.approx(values["one"]["skill"], rel=1e-12)
    by_loss = pb.fit_gradient_boosting(X[TRAIN], LABEL[TRAIN], validation=one, **options)
    assert by_loss.validation_loss.argmin() == len(by_loss) != len(model)


def test_improvements_within_tol_do_not_count():
    rows = X[TEST], LABEL[TEST]
    model = pb.fit_gradient_boosting(
        X[TRAIN], LABEL[TRAIN], validation=rows, tol=0.03, n_iter_no_change=4
    )
    best, kept = np.inf, 0
    for k, loss in enumerate(model.validation_loss):
        if loss < best - 0.03:
            best, kept = loss, k
    assert len(model) == kept
    assert len(model.validation_loss) == kept + 5


def test_files_and_continued_fits(tmp_path):
    options = {"validation": 0.3, "metric": ["roc_auc", "brier"], "n_iter_no_change": 9}
    first = pb.fit_gradient_boosting(X, LABEL, n_estimators=4, **options)
    whole = pb.fit_gradient_boosting(X, LABEL, n_estimators=9, **options)
    pb.save(first, tmp_path / "model.pboost")
    loaded = pb.load(tmp_path / "model.pboost")
    longer = pb.continue_fit(loaded, X, LABEL, n_estimators=5)
    for name, values in whole.metrics["validation"].items():
        assert np.array_equal(longer.metrics["validation"][name], values)
    assert np.array_equal(loaded.metric_values, first.metric_values)
    with pytest.raises(ValueError, match=r"metric_values: expected shape \(3, 5\), got \(2, 5\)"):
        pb.models.GradientBoostingModel(
            **{
                name: getattr(first, name)
                for name in ("trees", "bias", "loss", "classes", "settings", "stop_reason")
            },
            training_loss=first.training_loss,
            validation_loss=first.validation_loss,
            metric_values=first.metric_values[:2],
        )
    of_function = pb.fit_gradient_boosting(
        X, LABEL, n_estimators=2, **{**options, "metric": lambda y, p, sample_weight: 1.0}
    )
    with pytest.raises(ValueError, match="which a model does not store"):
        pb.continue_fit(of_function, X, LABEL, n_estimators=1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metric": "auc"}, ValueError, "did you mean 'roc_auc'?"),
        ({"metric": "rmse"}, ValueError, "for classification, got 'rmse'"),
        ({"metric": []}, TypeError, "metric: expected a name"),
        ({"metric": ["error", "error"]}, ValueError, "metric: expected different names"),
        ({"metric": "error", "validation": None}, ValueError, "metric: expected None without"),
        ({"tol": 1.0, "validation": None}, ValueError, "tol: expected 0.0 without validation"),
        ({"greater_is_better": True}, ValueError, "greater_is_better: expected False without"),
        ({"metric": lambda *a, **b: np.nan}, ValueError, "metric: expected a finite number from"),
        ({"metric": lambda *a, **b: "x"}, ValueError, "metric: expected a finite number from"),
        ({"validation": {}}, ValueError, "validation: expected a mapping from names"),
        ({"validation": {1: (X, LABEL)}}, ValueError, "validation: expected a mapping from names"),
        ({"validation": {"a": 0.2}}, TypeError, r"validation['a']: expected (X, y)"),
        (
            {"validation": {"a": (X, LABEL), "b": (X, LABEL[:3])}},
            ValueError,
            "validation['b']: ",
        ),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error) as caught:
        pb.fit_gradient_boosting(X, LABEL, **{"validation": 0.3, **options})
    assert message in str(caught.value)


def test_partitions_have_no_metrics():
    rows = pb.partitions([X[:150], X[150:]], [LABEL[:150], LABEL[150:]])
    with pytest.raises(NotImplementedError, match="metric: expected the loss of one"):
        pb.fit_gradient_boosting(rows, validation=0.3, metric="error")


def test_estimators_take_validation_sets():
    estimators = pytest.importorskip("pboost.sklearn")
    sets = [(X[180:240], LABEL[180:240]), (X[240:], LABEL[240:])]
    model = estimators.GradientBoostingClassifier(metric="roc_auc", n_estimators=9)
    many = model.fit(X[TRAIN], LABEL[TRAIN], eval_set=sets).model_
    assert list(many.metrics) == ["validation_1", "validation_0"]
    single = model.fit(X[TRAIN], LABEL[TRAIN], X_val=sets[1][0], y_val=sets[1][1])
    assert np.array_equal(single.validation_score_, many.metrics["validation_1"]["roc_auc"])
    assert np.array_equal(single.model_.trees.value, many.trees.value)
    number = estimators.GradientBoostingRegressor(n_estimators=9)
    weights = np.arange(1.0, 121.0)
    number.fit(
        X[TRAIN], NUMBER[TRAIN], X_val=X[TEST], y_val=NUMBER[TEST], sample_weight_val=weights
    )
    pair = number.model_
    number.fit(X[TRAIN], NUMBER[TRAIN], eval_set=[(X[TEST], NUMBER[TEST], weights)])
    assert np.array_equal(pair.validation_loss, number.model_.validation_loss)
    assert np.array_equal(number.validation_score_, -pair.validation_loss)
    with pytest.raises(ValueError, match="X_val, y_val: expected both or neither"):
        number.fit(X, NUMBER, X_val=X)
    with pytest.raises(ValueError, match="eval_set: expected None with X_val"):
        number.fit(X, NUMBER, X_val=X, y_val=NUMBER, eval_set=[(X, NUMBER)])
