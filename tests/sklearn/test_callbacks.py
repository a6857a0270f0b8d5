"""Callbacks of scikit-learn on fits: live, with scores at stages, and where there are no stages."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb

pytest.importorskip("sklearn.callback", reason="callbacks are new in scikit-learn 1.9")
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.model_selection import GridSearchCV

import pboost.sklearn
from pboost.sklearn import (
    AdaBoostClassifier,
    CartClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    MatryoshkaClassifier,
    RandomForestClassifier,
    SoftTreeClassifier,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
SIGNAL = X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=120)
TWO = SIGNAL > 0.5
THREE = np.digitize(SIGNAL, [0.3, 1.2])


class Told:
    """A callback that keeps what it was told, and stops after so many stages."""

    def __init__(self, last=None):
        self.last, self.events, self.stages = last, [], 0

    def setup(self, estimator, context):
        self.events.append(("setup", context.max_subtasks))

    def teardown(self, estimator, context):
        self.events.append(("teardown",))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name, context.task_id))
        self.stages += context.parent is not None
        return context.parent is not None and self.stages == self.last


class Fitted(Told):
    """One that asks for what was fitted by then, and for the data."""

    def __init__(self, last=None):
        super().__init__(last)
        self.models = []

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.models.append((X, y, metadata, fitted_estimator))
        return super().on_fit_task_end(estimator, context)


GROWING = {
    "chain": (AdaBoostClassifier(n_estimators=5), TWO, 5, "step"),
    "chain, three": (AdaBoostClassifier(n_estimators=5), THREE, 5, "step"),
    "soft tree": (SoftTreeClassifier(max_nodes=5), TWO, 5, "node"),
    "forest": (RandomForestClassifier(n_estimators=4, random_state=0), THREE, 4, "step"),
    "sum": (GradientBoostingClassifier(n_estimators=4), TWO, 4, "step"),
    "sum, three": (GradientBoostingClassifier(n_estimators=4), THREE, 4, "step"),
    "sum, numbers": (GradientBoostingRegressor(n_estimators=4), SIGNAL, 4, "step"),
}


@pytest.mark.parametrize("kind", GROWING)
@pytest.mark.parametrize("callback", [Told, Fitted])
def test_stages(kind, callback):
    estimator, y, n, name = GROWING[kind]
    told = callback()
    estimator = clone(estimator).set_callbacks(told)
    plain = clone(GROWING[kind][0]).fit(X, y)
    estimator.fit(X, y)
    stages = [event for k in range(n) for event in (("begin", name, k), ("end", name, k))]
    full = ("begin", "fit", 0), ("end", "fit", 0)
    assert told.events == [("setup", n), full[0], *stages, full[1], ("teardown",)]
    assert pb.describe(estimator.model_) == pb.describe(plain.model_)


@pytest.mark.parametrize("kind", GROWING)
@pytest.mark.parametrize("callback", [Told, Fitted])
def test_a_callback_stops_the_growth(kind, callback):
    estimator, y, _, _ = GROWING[kind]
    told = callback(last=2)
    stopped = clone(estimator).set_callbacks(told).fit(X, y)
    assert told.stages == 2
    assert told.events[-2:] == [("end", "fit", 0), ("teardown",)]
    full = clone(estimator).fit(X, y)
    first = full.model_[:2] if kind == "forest" else pb.models.truncate(full.model_, 2)
    np.testing.assert_array_equal(stopped.predict(X), pb.predict(first, X))


@pytest.mark.parametrize("kind", GROWING)
def test_what_is_fitted_by_then(kind):
    estimator, y, n, _ = GROWING[kind]
    told, weight = Fitted(), RNG.exponential(size=120)
    estimator = clone(estimator).set_callbacks(told).fit(X, y, weight)
    assert len(told.models) == n + 1
    for k, (rows, labels, metadata, fitted) in enumerate(told.models, start=1):
        np.testing.assert_array_equal(rows, X)
        np.testing.assert_array_equal(labels, y)
        np.testing.assert_array_equal(metadata["sample_weight"], weight)
        model = estimator.model_
        if k < n:
            model = model[:k] if kind == "forest" else pb.models.truncate(model, k)
        np.testing.assert_array_equal(fitted.predict(X), pb.predict(model, X))


def test_scores_of_the_stages():
    monitor = ScoringMonitor(scoring=["accuracy", "neg_log_loss"])
    chain = AdaBoostClassifier(n_estimators=6).set_callbacks(monitor).fit(X, THREE)
    log = monitor.get_logs().data
    actual = [row["accuracy"] for row in log if row["task_name"] == "step"]
    assert actual == [np.mean(labels == THREE) for labels in chain.staged_predict(X)]


def test_progress_bars(capsys):
    pytest.importorskip("rich", reason="rich is not installed")
    bar = ProgressBar(max_propagation_depth=None)
    search = GridSearchCV(GradientBoostingClassifier(n_estimators=3), {"max_depth": [1, 2]}, cv=2)
    search.set_callbacks(bar).fit(X, TWO)
    assert "GradientBoostingClassifier" in capsys.readouterr().out


def test_a_search_passes_callbacks_on():
    class Everywhere(Told):
        max_propagation_depth = None

    told = Everywhere()
    grid = {"n_estimators": [2, 3]}
    search = GridSearchCV(AdaBoostClassifier(), grid, cv=2).set_callbacks(told)
    search.fit(X, TWO)
    assert [event[:2] for event in told.events].count(("end", "step")) == 2 * (2 + 3) + (
        search.best_params_["n_estimators"]
    )
    assert told.events[0][0] == "setup"
    assert [event[0] for event in told.events].count("teardown") == 1


WHOLE = {
    "pruned": (CartClassifier(pruned=True, cv=2, random_state=0), TWO),
    "budget": (pboost.sklearn.BudgetClassifier(mean_comparisons=4, cv=2, random_state=0), TWO),
    "probit": (pboost.sklearn.ProbitTreeClassifier(), TWO),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_models_without_stages(kind):
    estimator, y = WHOLE[kind]
    told = Told()
    clone(estimator).set_callbacks(told).fit(X, y)
    assert [event[0] for event in told.events] == ["setup", "begin", "end", "teardown"]


@pytest.mark.parametrize("callback", [Told, Fitted])
def test_each_class_from_the_rest(callback):
    told = callback()
    estimator = MatryoshkaClassifier(shape=(2, 2)).set_callbacks(told).fit(X, THREE)
    assert isinstance(estimator.model_, pb.models.OneVsRest)
    assert told.stages == (12 if callback is Told else 0)


def test_callbacks_are_told_when_a_fit_fails():
    told = Told()
    with pytest.raises(ValueError, match="got one class"):
        AdaBoostClassifier().set_callbacks(told).fit(X, np.zeros(120))
    assert told.events[-1] == ("teardown",)
    chain = AdaBoostClassifier().set_callbacks(Told())
    assert clone(chain.set_callbacks()).fit(X, TWO).model_.n_nodes == 200
    with pytest.raises(TypeError, match="callbacks must be instances"):
        chain.set_callbacks(print)
