"""Bagging of any builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.columns.columns import SortedColumns
from pboost.data.read.check_xy import (
    as_weights,
)
from pboost.data.row_source import rows_here
from pboost.data.splits import Bags, check_bag, make_bags
from pboost.data.targets import REGRESSION, Classes, needs_of, task_of_fit, truth_of_rows
from pboost.data.training import column_search, rows_to_predict
from pboost.ensembles.absent_classes import fit_present, named_options
from pboost.ensembles.shared_rows import holds_out, read_once, shared_columns
from pboost.growth.step import Callback
from pboost.models.ensembles import Bagging, said_by
from pboost.models.stored import VOTES, Voting
from pboost.trees.members import Tally, tallied_members
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
    """Fit the same builder to many bags of rows; what the models say is averaged.

    A bag is drawn as a number of copies of each row, by which its weight is multiplied.

    Parameters
    ----------
    fit : callable
        A builder such as `fit_boosted_tree`, or any function of the same form:
        ``fit(X, y, sample_weight=…, **options)`` returns a model of this package or an object with
        a method ``predict(X)``. Rows out of the bag have weight 0. If it takes `rng`, `n_threads`
        or `task` it is given a random stream of the member, 1, and `task`. It is called on several
        threads.
    X : array_like of shape (n, d), data frame, or SortedColumns
        What `fit` takes; it must not change it. Where it is a builder of this package that
        compares columns, they are sorted or binned once for all members, and in any case the
        numbers of a data frame are read once.
    y : array_like of shape (n,), optional
        Labels, of two or more different values; of a regression, finite numbers.
    n_estimators : int
        Number of models.
    task : {"classification", "regression"}, optional
        What `y` is. By default options of `fit` decide, such as a loss of numbers, and a builder
        without a regression. Otherwise text, booleans and at most 20 different whole numbers are
        classes, and numbers that are not all whole are a regression. With more different whole
        numbers it must be given.
    max_samples : float, int or None
        Rows drawn for each bag: a share in (0, 1] of the rows of positive weight, rounded to the
        nearest number, at least one; or how many; None: as many as there are.
    bootstrap : bool
        Whether a row can be drawn for a bag more than once. Fewer rows, each at most once, are
        *subagging*.
    voting : {"soft", "hard"}
        What members say of a row, of which `predict_proba` is the mean: their probabilities, or 1
        for the label they predict. The label predicted is that of the largest mean. With "soft"
        models without probabilities, of the hinge loss or objects with ``predict``, say the label,
        too. Of a regression the numbers are averaged.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        In place of `y`: the probability of each label in each row, which then stands for each of
        them with its weight times its probability; one dimension: that of the second of two labels.
    classes : array_like of shape (J,), optional
        With `y_proba`: the labels of its columns; default 0, 1, ..., or the names of its columns.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows in their bags and in the out-of-bag error. All rows of positive
        weight are equally likely to be drawn.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    n_threads : int or None
        Threads, each of which fits whole members, -1 for all; None: as many as the work is worth.
        The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each member, in order, with their number so far
        and a `pboost.growth.step.MemberStep`; returning True stops. The model then has the
        members so far, whatever the number of threads, which may have fitted a few more.
    progress : bool or callable
        True shows a bar of tqdm (extra ``progress``) on standard error; or what makes a bar, as
        ``tqdm.tqdm`` does.
    **options
        Options of `fit`. One that `fit_bagging` has itself, such as `n_estimators`, is given as
        ``functools.partial(fit, n_estimators=50)`` in place of `fit`.

    Returns
    -------
    Bagging
        ``bagging.models`` are the members, ``bagging.oob`` the out-of-bag predictions and error.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described, or from `fit`, with a note that says for which
        member.

    Notes
    -----
    A class may have no row in a bag. Trees are fitted to such a bag as it is. A builder that needs
    a row of every class (of two classes, or `fit_one_vs_rest`, `fit_samme`), and finds none of
    some, is given the others: these classes are never the answer of that member. If only one is
    left, the member is a model without nodes that says this class of every row. Two rows are needed
    where `fit` holds out a share of the rows for validation. Bags and random streams are the same
    for any builder.

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
    >>> len(bagging), bool(bagging.oob.error < 0.2)
    (20, True)
    """
    check_callback("callback", callback)
    check_progress("progress", progress)
    n_estimators = check_integer("n_estimators", n_estimators, min_value=1)
    row_options = {"y_proba": y_proba, "classes": classes, "sample_weight": sample_weight}
    X, y, sample_weight = rows_here("fit_bagging", X, y, row_options)
    check_fit(fit_bagging, "fit", fit, options, needs_of(y))
    task = task_of_fit(fit, options, y, task)
    if check_choice("voting", voting, VOTES) == "hard" and task == REGRESSION:
        raise ValueError('voting: expected "soft" of a regression, whose numbers have no majority')
    max_samples, generator = check_bag("max_samples", max_samples), as_generator(rng)
    X, options = read_once(fit, X, options)
    function, held = unwrapped(fit)
    all_options = {**held, **options}
    search = None if isinstance(X, SortedColumns) else column_search(function, all_options)
    fit_options = {**all_options, "n_threads": n_threads}
    # Members that hold rows out make bins of the others themselves.
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
            error.add_note(f"fit_bagging: raised by member {member}")
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
    """Return sums of what members say of rows of these classes, or of these numbers."""
    weights = bags.weights if truth.entries is None else truth.weights
    assert weights is not None
    return Tally(
        truth.label, weights, 0 if truth.classes is None else len(truth.classes), truth.entries
    )
