"""Bagging of any fit function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.columns.columns import SortedColumns
from pboost.data.read.check_xy import (
    as_weights,
)
from pboost.data.resampling import Bags, check_bag, make_bags
from pboost.data.row_source import rows_here
from pboost.data.targets import REGRESSION, Classes, needs_of, task_of_fit, truth_of_rows
from pboost.data.training_data import column_search, rows_to_predict
from pboost.ensembles.absent_classes import fit_present, named_options
from pboost.ensembles.shared_rows import holds_out, read_once, shared_columns
from pboost.growth.graph_growth import Callback
from pboost.models.ensembles import Bagging, said_by
from pboost.models.schema import VOTES, Voting
from pboost.trees.parallel_members import Tally, tallied_members
from pboost.values import (
    FloatArray,
    Progress,
    Seed,
    Task,
    as_generator,
    check_callback,
    check_choice,
    check_integer,
    check_progress,
    with_bar,
)
from pboost.values.options import arguments_of, builder, check_fit, unwrapped


@builder
def fit_bagging(
    fit: Callable[..., Any],
    X: object,
    y: ArrayLike | None = None,
    *,
    n_estimators: int = 100,
    task: Task | None = None,
    max_samples: float | int | None = None,
    bootstrap: bool = True,
    voting: Voting = "soft",
    y_proba: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    rng: Seed = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
    **options: Any,
) -> Bagging:
    """Fit a bagging ensemble: one model per bootstrap sample, with averaged predictions.

    The weight of each row is multiplied by the number of its copies in the bootstrap sample.

    Parameters
    ----------
    fit : callable
        A fit function such as `fit_boosted_tree`, or any function with the same interface: ``fit(X,
        y, sample_weight=…, **options)`` returns a pboost model or an object with a method
        ``predict(X)``. Out-of-bag rows have weight 0. The parameters `rng`, `n_threads` and
        `task`, if the function has them, receive a random generator, 1 and the task. It is called
        from several threads.
    X : array_like of shape (n, d), data frame, or SortedColumns
        Features, in any form that `fit` accepts; `fit` must not modify X. If `fit` is a pboost
        function that splits on features, X is sorted or binned once for all base learners.
    y : array_like of shape (n,), optional
        Class labels with at least two distinct values; for regression, finite numbers.
    n_estimators : int
        Number of base learners.
    task : {"classification", "regression"}, optional
        The task. By default, the task is inferred from `fit` if the function or an option such as
        the loss supports only one task. Otherwise, text, booleans and up to 20 distinct integers
        are treated as classes, and numbers with a fractional part as regression targets. With more
        than 20 distinct integers, `task` is required.
    max_samples : float, int or None
        Size of each sample: a fraction in (0, 1] of the rows with positive weight, or a number of
        rows. By default, the number of rows with positive weight.
    bootstrap : bool
        Whether rows are drawn with replacement. Drawing fewer rows without replacement is called
        *subagging*.
    voting : {"soft", "hard"}
        "soft" averages the predicted probabilities, "hard" averages the predicted classes (1 for
        the predicted class, 0 for all other classes). The class with the largest mean is predicted.
        With "soft", base learners without probabilities, such as models with the hinge loss and
        objects with only ``predict``, vote for their predicted class. Regression predictions are
        averaged.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        Class probabilities of each row, in place of `y`. Each row counts once per class, with its
        weight times the class probability. A one-dimensional array contains the probability of the
        second of two classes.
    classes : array_like of shape (J,), optional
        The classes of the columns of `y_proba`. By default 0, 1, ..., or the column names of a data
        frame.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows, in training and in the out-of-bag error. All rows of positive
        weight are equally likely to be drawn.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    n_threads : int or None
        Number of threads; each base learner is fitted by a single thread. -1 uses all cores. By
        default, the number depends on the amount of work. The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each base learner, in order, with the number of
        base learners so far and a `pboost.growth.graph_growth.MemberStep`. If it returns True,
        fitting stops and the model contains the base learners so far.
    progress : bool or callable
        If True, show a tqdm progress bar (extra ``progress``) on standard error. A callable is
        called like ``tqdm.tqdm`` to create the bar.
    **options
        Options of `fit`. To set an option that `fit_bagging` also has, such as `n_estimators`, pass
        ``functools.partial(fit, n_estimators=50)`` as `fit`.

    Returns
    -------
    Bagging
        The ensemble. ``bagging.models`` contains the base learners, ``bagging.oob`` the out-of-bag
        predictions and error.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid, or if `fit` raises an error. A note on the error
        contains the number of the base learner.

    Notes
    -----
    A class may have no rows in a sample. Trees are fitted to such a sample without changes. If
    `fit` requires rows of every class (binary models, `fit_one_vs_rest`, `fit_samme`), the base
    learner is fitted to the classes that are present, and never predicts a missing class. If only
    one class is present, the base learner is a constant. If `fit` uses part of the rows for
    validation, each class needs two rows in the sample. Samples and random streams are the same for
    every `fit`.

    References
    ----------
    .. [1] L. Breiman, "Bagging predictors", Machine Learning 24 (1996).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> bagging = pb.fit_bagging(pb.fit_boosted_tree, X, y, n_estimators=20, max_nodes=10, rng=0)
    >>> print(len(bagging), round(bagging.oob.error, 3))
    20 0.055
    """
    check_callback("callback", callback)
    check_progress("progress", progress)
    n_estimators = check_integer("n_estimators", n_estimators, min_value=1)
    row_options = {"y_proba": y_proba, "classes": classes, "sample_weight": sample_weight}
    X, y, sample_weight = rows_here("fit_bagging", X, y, row_options)
    check_fit(fit_bagging, "fit", fit, options, needs_of(y))
    task = task_of_fit(fit, options, y, task)
    if check_choice("voting", voting, VOTES) == "hard" and task == REGRESSION:
        raise ValueError('voting: expected "soft" for regression, got "hard"')
    max_samples, generator = check_bag("max_samples", max_samples), as_generator(rng)
    X, options = read_once(fit, X, options)
    function, held = unwrapped(fit)
    all_options = {**held, **options}
    search = None if isinstance(X, SortedColumns) else column_search(function, all_options)
    fit_options = {**all_options, "n_threads": n_threads}
    # With a validation set, each base learner computes separate bins.
    data = shared_columns(search, X, fit_options, shares_bins=not holds_out(all_options))
    rows = rows_to_predict(X)
    n = rows.n_rows
    truth = truth_of_rows(y, sample_weight, n, task)
    bags = make_bags(as_weights(sample_weight, n), n, max_samples, bootstrap, generator)
    tally = _tally(truth, bags)

    def train(member: int) -> tuple[Any, NDArray[np.intp], FloatArray]:
        drawn, stream = bags.draw(member)
        offered = {"task": task, "n_threads": 1, "rng": stream}
        train_options = {
            name: offered[name] for name in offered if name in arguments_of(fit)
        } | options
        try:
            model = fit_present(fit, data, y, drawn, train_options, rows, truth)
        except Exception as error:
            error.add_note(f"fit_bagging: raised while fitting base learner {member}")
            raise
        out = np.flatnonzero(drawn == 0)
        if not len(out):
            return model, out, np.empty(0)
        return model, out, said_by(model, rows.take(out), truth.classes, voting)

    cells = n * rows.n_features * n_estimators
    with with_bar(callback, progress, n_estimators, "members") as on_step:
        models = tallied_members(train, n_estimators, n_threads, cells, tally, on_step)
    settings = {
        "builder": "fit_bagging",
        "fit": getattr(function, "__name__", type(function).__name__),
        "n_estimators": n_estimators,
        "bootstrap": bags.replace,
        "max_samples": max_samples,
        "voting": voting,
        **named_options(options, models),
    }
    return Bagging(
        tuple(models),
        truth.classes,
        rows.n_features,
        rows.names,
        settings,
        tally.close(),
        voting,
        table=getattr(models[0], "table", None),
    )


def _tally(truth: Classes, bags: Bags) -> Tally:
    """Return accumulators for the out-of-bag predictions of classes or target values."""
    weights = bags.weights if truth.entries is None else truth.weights
    assert weights is not None
    return Tally(
        truth.label, weights, 0 if truth.classes is None else len(truth.classes), truth.entries
    )
