"""Shapley values of the predictions of models that are sums of trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.node_inputs.inputs import ColumnNames
from pboost.data.read.check_xy import as_weights, check_has_rows
from pboost.models.as_trees import as_tree_ensemble
from pboost.models.base import Model, check_model
from pboost.models.calibrated import CalibratedModel
from pboost.models.evaluate.shapley import (
    BackgroundProgram,
    PathProgram,
    compile_background,
    compile_paths,
)
from pboost.values import (
    FloatArray,
    TableLike,
    check_choice,
    check_flag,
    check_integer,
    freeze,
    install_hint,
)

ShapMethod: TypeAlias = Literal["auto", "path_dependent", "interventional"]
METHODS: tuple[ShapMethod, ...] = get_args(ShapMethod)


@dataclass(frozen=True, slots=True, eq=False)
class ShapValues:
    """Shapley values of the predictions for some rows, returned by `shap_values`.

    Attributes
    ----------
    values : ndarray of float64, shape (n, d) or (n, d, J)
        The Shapley value of each feature for each row. With J decision values or class shares per
        row, there is a value for each of them.
    base_values : float, or ndarray of float64, shape (J,)
        The expected prediction. For each row, `base_values` and the sum of `values` over the
        features add up to the prediction.
    interaction_values : ndarray of float64, shape (n, d, d) or (n, d, d, J), or None
        Half of the interaction of each pair of features, and on the diagonal the rest of the
        Shapley value of a feature. Sums over the second or third axis are `values`.
    data : ndarray of float64, shape (n, d)
        The rows as numbers: category codes for categorical features, and NaN for missing values.
    feature_names : sequence of str
        Feature names, ``x[j]`` if features have no names.
    classes : tuple
        The class of each of the J values; empty if there is one value per row and feature.
    explained : {"decision value", "share", "prediction"}
        The kind of prediction.
    """

    values: FloatArray
    base_values: float | FloatArray
    data: FloatArray
    feature_names: Sequence[str]
    classes: tuple[object, ...] = ()
    explained: str = "decision value"
    interaction_values: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.values.shape))
        return f"<Shapley values of {self.explained}s: {shape}>"

    def explanation(self) -> Any:
        """Return the values as an object for the plots of the package shap.

        Returns
        -------
        shap.Explanation
            Its ``base_values`` are repeated for each row.

        Raises
        ------
        ImportError
            If shap is not installed: ``pip install "pboosting[shap]"``.
        """
        try:
            shap = import_module("shap")
        except ImportError as error:
            hint = install_hint("shap", "shap")
            raise ImportError(f"explanation needs shap: {hint}") from error
        n, base = len(self.values), np.asarray(self.base_values)
        return shap.Explanation(
            values=self.values.copy(),
            base_values=np.broadcast_to(base, (n, *base.shape)).copy(),
            data=self.data.copy(),
            feature_names=list(self.feature_names),
            output_names=list(map(str, self.classes)) or None,
        )


def shap_values(
    model: Model,
    X: TableLike,
    *,
    method: ShapMethod = "auto",
    background: TableLike | None = None,
    background_weight: ArrayLike | None = None,
    interactions: bool = False,
    max_nodes: int = 100_000,
    n_threads: int | None = None,
) -> ShapValues:
    """Return the Shapley value of each feature for the predictions of a model.

    The values are exact. For each row, they and the base value add up to the decision value or, for
    trees, forests and other models that average class frequencies, to the class shares.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest, GradientBoostingModel or another model
        A fitted model that is a sum of trees, see `models.as_tree_ensemble`. A binary model that
        was calibrated by Platt's method is also supported.
    X : array_like of shape (n, d), or data frame
        The rows to explain; see `decision_function`.
    method : {"auto", "path_dependent", "interventional"}
        How the prediction is defined if only some features of a row are known. With
        "path_dependent", a split on an unknown feature averages its two branches, weighted by the
        node weights. With "interventional", unknown features have the values of the background
        rows, and predictions are averaged over these rows. "auto" is "interventional" if
        `background` is passed, else "path_dependent".
    background : array_like of shape (m, d), or data frame, optional
        Background rows. With "path_dependent", they are counted at each node to obtain its weight;
        by default, nodes have their training weights. Decision graphs do not store training weights
        and need `background`.
    background_weight : array_like of shape (m,), optional
        Weights of the background rows, for "interventional" only. By default, all are equal.
    interactions : bool
        Whether to compute ``interaction_values`` too, one value for each pair of features. They
        need memory for n * d * d numbers, and more time.
    max_nodes : int
        Maximum number of nodes of the trees of decision graphs, see `models.as_tree_ensemble`.
    n_threads : int or None
        Number of threads; -1 uses all available threads. By default, the number depends on the
        amount of work. The result does not depend on it.

    Returns
    -------
    ShapValues
        ``values`` (n, d) or (n, d, J), ``base_values``, ``data`` and ``interaction_values``.
        ``explanation()`` converts them for the plots of the package shap.

    Raises
    ------
    TypeError
        If the model is not a sum of trees; the message suggests an alternative. Models with early
        exits are not supported, but their full model is.
    ValueError
        If `background` is needed and None, if the trees have more than `max_nodes` nodes, or if an
        argument is invalid.
    NotImplementedError
        If `interactions` are requested with the method "interventional".

    Notes
    -----
    A missing value takes the branch that the model learned for missing values. A categorical
    feature is one feature. For calibrated models, values are in the space of the calibrated half
    log odds.

    `explain` also divides a prediction among the features, but assigns the change at each split to
    its feature. It is faster for one row and depends on the order of the splits, while Shapley
    values do not. `feature_importances` describes the training data instead of the predictions for
    some rows. The mean of the absolute Shapley values of many rows is another measure of
    importance.

    Path-dependent values are integrals of polynomials, which are computed exactly by Gauss-Legendre
    quadrature. For interventional values, tables of the background rows are made, so the time does
    not depend on the number of background rows. Only for trees whose paths compare more than 10
    features, or with more than 128 MB of tables, it is proportional to this number. The converted
    trees and tables are kept with the model until the background changes, but they are not saved.

    References
    ----------
    .. [1] S. M. Lundberg et al., From local explanations to global understanding with explainable
       AI for trees, Nature Machine Intelligence 2 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> model = pb.fit_cart(X, [0.0, 2.0, 5.0, 7.0], task="regression")
    >>> shap = pb.shap_values(model, X[2:])
    >>> shap.base_values, shap.values.round(6).tolist()
    (3.5, [[2.5, -1.0], [2.5, 1.0]])
    >>> pb.predict(model, X[2:]).tolist()
    [5.0, 7.0]
    """
    check_model(model)
    check_choice("method", method, METHODS)
    max_nodes = check_integer("max_nodes", max_nodes, min_value=1)
    with_pairs = check_flag("interactions", interactions)
    if method == "interventional" or (method == "auto" and background is not None):
        if with_pairs:
            raise NotImplementedError(
                "interactions: expected False with the method 'interventional'; pass "
                "method='path_dependent'"
            )
        program = background_program(summed(model), background, background_weight, max_nodes)
        rows = program.trees.rows(X)
        return explained_by(model, program, rows, program.values(rows, n_threads), None)
    if background_weight is not None:
        raise ValueError("background_weight: expected None with the method 'path_dependent'")
    paths = path_program(summed(model), background, max_nodes)
    rows = paths.trees.rows(X)
    pairs = paths.interactions(rows, n_threads) if with_pairs else None
    return explained_by(model, paths, rows, paths.values(rows, n_threads), pairs)


def summed(model: Model) -> Model:
    """Return the model whose trees are explained: the uncalibrated model of a calibrated one."""
    if not isinstance(model, CalibratedModel):
        return model
    if model.slope is None or model.n_votes > 1:
        raise TypeError(
            "model: expected a binary model calibrated by Platt's method or a sum of trees; the "
            f"values of this model do not add up to a sum of trees ({model!r}); pass model.model"
        )
    return model.model


def path_program(model: Model, background: TableLike | None, max_nodes: int) -> PathProgram:
    """Return the compiled trees of a model; those with training weights are kept with the model."""
    memo: dict[str, Any] = getattr(model, "memo", {})
    limit, program = memo.get(path_program.__name__, (0, None))
    if background is None and program is not None and limit <= max_nodes:
        known: PathProgram = program
        return known
    trees = as_tree_ensemble(model, background, max_nodes=max_nodes)
    if trees.weight is None:
        raise ValueError(
            "background: expected rows that define the weights of nodes, such as the training "
            "data, got None; a decision graph does not store these weights"
        )
    program = compile_paths(trees)
    if background is None:
        memo[path_program.__name__] = max_nodes, program
    return program


def background_program(
    model: Model,
    background: TableLike | None,
    background_weight: ArrayLike | None,
    max_nodes: int,
) -> BackgroundProgram:
    """Return the trees of a model with background rows; the last are kept with the model."""
    if background is None:
        raise ValueError(
            "background: expected rows with the method 'interventional', such as a hundred "
            "training rows, got None"
        )
    trees = as_tree_ensemble(model, max_nodes=max_nodes)
    rows = trees.rows(background)
    try:
        check_has_rows(len(rows))
        weight = as_weights(background_weight, len(rows))
    except ValueError as error:
        names = str(error).replace("sample_weight:", "background_weight:", 1)
        raise ValueError(names.replace("X:", "background:", 1)) from None
    memo: dict[str, Any] = getattr(model, "memo", {})
    key = blake2b(rows.tobytes() + (b"" if weight is None else weight.tobytes())).digest()
    last, program = memo.get(background_program.__name__, (b"", None))
    if key != last:
        program = compile_background(trees, rows, weight)
        memo[background_program.__name__] = key, program
    known: BackgroundProgram = program
    return known


def explained_by(
    model: Model,
    program: PathProgram | BackgroundProgram,
    rows: FloatArray,
    values: FloatArray,
    pairs: FloatArray | None,
) -> ShapValues:
    """Return the record of Shapley values (n, d, J) and interactions (n, d, d, J)."""
    base, explained = program.base, "decision value"
    if isinstance(model, CalibratedModel):
        values, pairs = (
            in_log_odds(model, values),
            None if pairs is None else in_log_odds(model, pairs),
        )
        base = in_log_odds(model, base) + model.intercept / 2
    elif model.classes is None:
        explained = "prediction"
    elif program.trees.link == "shares":
        explained = "share"
    is_single = len(base) == 1

    def kept(values: FloatArray) -> FloatArray:
        return freeze(values[..., 0] if is_single else values, np.float64)

    return ShapValues(
        kept(values),
        float(base[0]) if is_single else freeze(base, np.float64),
        freeze(rows, np.float64),
        ColumnNames(model.feature_names, model.n_features, model.table),
        () if is_single or model.classes is None else tuple(model.classes.tolist()),
        explained,
        None if pairs is None else kept(pairs),
    )


def in_log_odds(model: CalibratedModel, values: FloatArray) -> FloatArray:
    """Scale values (..., J) of a binary model to its calibrated half log odds (..., 1)."""
    if values.shape[-1] == 2:  # class shares
        values = values[..., 1:] - values[..., :1]
    scaled: FloatArray = values * (model.slope / 2)
    return scaled
