"""The cases of peer_options.py: small problems, and options with their names in each library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pboost.losses import Huber, Quantile

HERE = "pboost"
#: Placeholder: compare the largest value of the option that still gives a split.
MOST = object()
#: The compared quantities, with their names in the table.
COMPARED = {
    "values": "decision values",
    "most": "largest value with a split",
    "columns": "features in use",
    "root": "rows at the root",
    "rounds": "rounds kept",
    "leaves": "different values",
}
#: Options whose values are arrays, which the table does not show.
UNSAID = (
    "weight",
    "sample_weight",
    "validation",
    "X_val",
    "continue_fit",
    "init_model",
    "xgb_model",
    "warm_start",
)
HIST, GB = "HistGradientBoosting", "GradientBoosting"

#: The losses, with their names in each library. `QUANTILE` and `DELTA` are their parameters.
LOSSES: dict[str, dict[str, Any]] = {
    "squared_error": {
        HERE: "squared_error",
        "lightgbm": "l2",
        "xgboost": "reg:squarederror",
        HIST: "squared_error",
        GB: "squared_error",
    },
    "log_loss": {
        HERE: "log_loss",
        "lightgbm": "binary",
        "xgboost": "binary:logistic",
        HIST: "log_loss",
        GB: "log_loss",
    },
    "softmax": {
        HERE: "softmax",
        "lightgbm": "multiclass",
        "xgboost": "multi:softprob",
        HIST: "log_loss",
    },
    "poisson": {
        HERE: "poisson",
        "lightgbm": "poisson",
        "xgboost": "count:poisson",
        HIST: "poisson",
    },
    "absolute_error": {
        HERE: "absolute_error",
        "lightgbm": "l1",
        "xgboost": "reg:absoluteerror",
        HIST: "absolute_error",
    },
    "quantile": {
        HERE: Quantile(0.8),
        "lightgbm": "quantile",
        "xgboost": "reg:quantileerror",
        HIST: "quantile",
    },
    "huber": {HERE: Huber(2.0), "lightgbm": "huber", "xgboost": "reg:pseudohubererror"},
    "exponential": {HERE: "exponential", GB: "exponential"},
}
CURVED = ("squared_error", "log_loss", "softmax", "poisson", "exponential")
OF_CLASSES = ("log_loss", "softmax", "exponential")


class Data(NamedTuple):
    """Training rows with their loss, and validation rows (X, y) for early stopping."""

    X: np.ndarray
    y: np.ndarray
    loss: str = "squared_error"
    held: Any = None


class Case(NamedTuple):
    """An option in pboost and in other libraries, on one of the problems.

    The table shows the first of the options. Options in `shared` are also set in the fit without
    the option. `differences` explains why a library does not agree.
    """

    data: str
    here: dict[str, Any]
    peers: dict[str, dict[str, Any]]
    compared: str = "values"
    shared: tuple[str, ...] = ()
    differences: Mapping[str, str] = MappingProxyType({})
    name: str = ""

    @property
    def title(self) -> str:
        """The option, as shown in the table."""
        return self.name or named(self.here)


def named(options: dict[str, Any]) -> str:
    """Format the first of some options."""
    name, value = next(iter(options.items()), ("", MOST))
    if value is MOST or isinstance(value, np.ndarray) or name in UNSAID:
        return name
    return f"{name}={value!r}".replace("'", '"')


def _data() -> dict[str, Data]:
    """Return the problems by name."""
    halves, counts = np.repeat([0.0, 1.0], [7, 8])[:, None], [6, 1, 2, 6]
    signs = np.repeat([-1.0, 1.0, -1.0, 1.0], counts)
    of_loss = {
        "squared_error": signs,
        "log_loss": signs > 0,
        "exponential": signs > 0,
        "huber": 3 * signs,
        "poisson": np.repeat([0.0, 1.0, 2.0, 5.0], counts),
        "softmax": np.repeat([0, 1, 2, 0, 1, 2], [5, 1, 1, 1, 4, 3]),
        # Quantiles of each side do not depend on the interpolation between two rows.
        **dict.fromkeys(
            ("absolute_error", "quantile"), np.repeat([-3.0, -1.0, 1.0, 2.0], [2, 5, 3, 5])
        ),
    }
    result = {loss: Data(halves, y.astype(float), loss) for loss, y in of_loss.items()}
    x = np.arange(40.0)
    ladder = np.round(10 * np.sin(x / 6) + x / 4, 2)
    r = np.random.default_rng(0)
    grid = np.array([[i, j] for i in range(8) for j in range(8)], dtype=float)
    holes = np.where(np.arange(15) % 5 == 0, np.nan, halves[:, 0])[:, None]
    four = r.normal(size=(200, 4)).round(2)
    other = ladder + r.normal(size=40).round(2) * 4
    return {
        **result,
        "ladder": Data(x[:, None], ladder),
        "level": Data(x[:, None], 5.0 + x / 40),
        "edge": Data(x[:, None], (x >= 36) * 9.0 + x / 20),
        "down": Data(grid, np.round(-3 * grid[:, 0] + grid[:, 1] - grid[:, 1] ** 2 / 9, 3)),
        "product": Data(grid, (grid[:, 0] - 3.5) * (grid[:, 1] - 2.5) + grid[:, 0] / 9),
        "holes": Data(holes, np.where(np.isnan(holes[:, 0]), 4.0, signs)),
        "letters": Data(
            np.repeat([0.0, 1.0, 2.0, 3.0], 10)[:, None],
            np.repeat([1.0, 5.0, 1.5, 6.0], 10) + np.tile([-0.1, 0.1], 20),
        ),
        "few of a letter": Data(
            np.repeat([0.0, 1.0, 2.0, 3.0], [30, 20, 4, 6])[:, None],
            np.repeat([2.0, 1.0, 6.0, 5.0], [30, 20, 4, 6]),
        ),
        "four columns": Data(four, four @ [1.0, -1.2, 0.8, 0.9] + np.abs(four).sum(axis=1)),
        "noise": Data(x[:, None], other, held=(x[:, None], ladder)),
    }


DATA = _data()
#: Weight 3 for rows of the second class.
THREE = np.where(DATA["log_loss"].y > 0, 3.0, 1.0)
#: Weights that balance the classes.
BALANCED = np.where(DATA["log_loss"].y > 0, 15 / 14, 15 / 16)
OF_SIGNS = np.where(np.arange(15) % 3 == 0, 4.0, 0.5)
DEEP = {"max_depth": 8}
CASES = (
    Case(
        "squared_error",
        {"n_estimators": 3, "learning_rate": 0.5},
        {
            "lightgbm": {"num_boost_round": 3, "learning_rate": 0.5},
            "xgboost": {"num_boost_round": 3, "learning_rate": 0.5},
            HIST: {"max_iter": 3, "learning_rate": 0.5},
            GB: {"n_estimators": 3, "learning_rate": 0.5},
        },
        shared=("learning_rate",),
    ),
    Case(
        "squared_error",
        {"learning_rate": 0.3},
        {
            "lightgbm": {"learning_rate": 0.3},
            "xgboost": {"learning_rate": 0.3},
            HIST: {"learning_rate": 0.3},
            GB: {"learning_rate": 0.3},
        },
    ),
    Case(
        "ladder",
        {"max_depth": 2},
        {
            "lightgbm": {"max_depth": 2},
            "xgboost": {"max_depth": 2},
            HIST: {"max_depth": 2},
            GB: {"max_depth": 2},
        },
    ),
    Case(
        "ladder",
        {"max_leaf_nodes": 4, "max_depth": None},
        {
            "lightgbm": {"num_leaves": 4, "max_depth": -1},
            "xgboost": {"max_leaves": 4, "grow_policy": "lossguide", "max_depth": 0},
            HIST: {"max_leaf_nodes": 4, "max_depth": None},
            GB: {"max_leaf_nodes": 4, "max_depth": None},
        },
        shared=("max_depth",),
    ),
    Case(
        "ladder",
        {"growth": "independent", "max_depth": 3},
        {
            "xgboost": {"grow_policy": "depthwise", "max_depth": 3},
        },
        name='growth="independent"',
    ),
    Case(
        "edge",
        {"min_samples_leaf": 10},
        {
            "lightgbm": {"min_data_in_leaf": 10},
            "xgboost": {"min_child_weight": 10},
            HIST: {"min_samples_leaf": 10},
            GB: {"min_samples_leaf": 10},
        },
    ),
    Case(
        "squared_error",
        {"l2_regularization": 3.0},
        {
            "lightgbm": {"lambda_l2": 3.0},
            "xgboost": {"reg_lambda": 3.0},
            HIST: {"l2_regularization": 3.0},
        },
    ),
    Case(
        "level",
        {"l2_regularization": 100.0},
        {
            "lightgbm": {"lambda_l2": 100.0},
            "xgboost": {"reg_lambda": 100.0},
        },
        differences=dict.fromkeys(
            ("lightgbm", "xgboost"),
            "pboost makes splits with a negative gain if `min_split_gain` is 0",
        ),
    ),
    Case(
        "level",
        {"min_split_gain": 1e-6, "l2_regularization": 100.0},
        {
            "lightgbm": {"lambda_l2": 100.0},
            "xgboost": {"reg_lambda": 100.0},
        },
        shared=("l2_regularization",),
        differences={
            "lightgbm": "in LightGBM, the first tree has no split and contains the best constant",
        },
        name="min_split_gain=1e-6, l2_regularization=100.0",
    ),
    Case(
        "squared_error",
        {"max_delta_step": 0.4},
        {
            "lightgbm": {"max_delta_step": 0.4},
            "xgboost": {"max_delta_step": 0.4},
        },
    ),
    Case(
        "squared_error",
        {"min_split_gain": MOST, "max_delta_step": 0.4},
        {
            "lightgbm": {"min_gain_to_split": MOST, "max_delta_step": 0.4},
            "xgboost": {"gamma": MOST, "max_delta_step": 0.4},
        },
        "most",
        differences=dict.fromkeys(
            ("lightgbm", "xgboost"),
            "the library computes gains from the bounded leaf values",
        ),
        name="min_split_gain, max_delta_step=0.4",
    ),
    Case(
        "squared_error",
        {"init": "constant", "learning_rate": 0.5},
        {
            "lightgbm": {"boost_from_average": True, "learning_rate": 0.5},
            "xgboost": {"base_score": None, "learning_rate": 0.5},
            GB: {"init": None, "learning_rate": 0.5},
        },
        shared=("learning_rate",),
    ),
    Case(
        "four columns",
        {"subsample": 0.3},
        {
            "lightgbm": {"bagging_fraction": 0.3, "bagging_freq": 1},
            "xgboost": {"subsample": 0.3},
            GB: {"subsample": 0.3},
        },
        "root",
        differences=dict.fromkeys(
            ("lightgbm", "xgboost"),
            "the library draws each row independently with this probability",
        ),
    ),
    Case(
        "four columns",
        {"max_features_per_tree": 0.5, **DEEP},
        {
            "lightgbm": {"feature_fraction": 0.5, "num_leaves": 200, **DEEP},
            "xgboost": {"colsample_bytree": 0.5, **DEEP},
        },
        "columns",
        ("max_depth",),
    ),
    Case(
        "four columns",
        {"max_features": 0.25, "max_features_per_tree": 0.75, **DEEP},
        {
            "lightgbm": {
                "feature_fraction_bynode": 0.25,
                "feature_fraction": 0.75,
                "num_leaves": 200,
                **DEEP,
            },
            "xgboost": {"colsample_bynode": 0.25, "colsample_bytree": 0.75, **DEEP},
        },
        "columns",
        ("max_depth",),
    ),
    Case(
        "down",
        {"monotonic_cst": {0: 1}},
        {
            "lightgbm": {"monotone_constraints": [1, 0]},
            "xgboost": {"monotone_constraints": "(1,0)"},
            HIST: {"monotonic_cst": [1, 0]},
        },
    ),
    Case(
        "product",
        {"interaction_cst": [[0], [1]], "max_depth": 2},
        {
            "lightgbm": {"interaction_constraints": [[0], [1]], "max_depth": 2},
            "xgboost": {"interaction_constraints": "[[0],[1]]", "max_depth": 2},
            HIST: {"interaction_cst": [{0}, {1}], "max_depth": 2},
        },
        shared=("max_depth",),
    ),
    Case(
        "ladder",
        {"max_bins": 4, **DEEP},
        {
            "lightgbm": {"max_bin": 4, "num_leaves": 200, **DEEP},
            "xgboost": {"max_bin": 4, **DEEP},
            HIST: {"max_bins": 4, **DEEP},
        },
        "leaves",
        ("max_depth",),
    ),
    Case(
        "ladder",
        {"search": "exact", "max_bins": 4, "max_depth": 2},
        {
            "xgboost": {"tree_method": "exact", "max_depth": 2},
        },
        shared=("max_bins", "max_depth"),
    ),
    Case(
        "holes",
        {"missing": "learn"},
        {
            "lightgbm": {"use_missing": True},
            "xgboost": {},
            HIST: {},
        },
        shared=("missing",),
    ),
    Case(
        "letters",
        {"categorical_features": [0]},
        {
            "lightgbm": {"categorical_feature": [0]},
            "xgboost": {"enable_categorical": True},
            HIST: {"categorical_features": [0]},
        },
    ),
    Case(
        "few of a letter",
        {"categorical_smoothing": 10.0, "categorical_features": [0]},
        {
            "lightgbm": {"cat_smooth": 10.0, "categorical_feature": [0]},
        },
        shared=("categorical_features",),
        differences={
            "lightgbm": "pboost reduces the gains of many categories; LightGBM adds the value to "
            "the Hessians by which the categories are sorted",
        },
    ),
    Case(
        "log_loss",
        {"sample_weight": OF_SIGNS},
        {
            "lightgbm": {"weight": OF_SIGNS},
            "xgboost": {"weight": OF_SIGNS},
            HIST: {"sample_weight": OF_SIGNS},
            GB: {"sample_weight": OF_SIGNS},
        },
    ),
    Case(
        "log_loss",
        {"sample_weight": THREE},
        {
            "lightgbm": {"scale_pos_weight": 3.0},
            "xgboost": {"scale_pos_weight": 3.0},
        },
        name="sample_weight, 3 for the second class",
    ),
    Case(
        "log_loss",
        {"sample_weight": BALANCED},
        {
            "lightgbm": {"is_unbalance": True},
            HIST: {"class_weight": "balanced"},
        },
        name="balanced_weights",
    ),
    Case(
        "noise",
        {"n_iter_no_change": 3, "validation": (), "n_estimators": 60, "learning_rate": 0.4},
        {
            "lightgbm": {"early_stopping_round": 3, "num_boost_round": 60, "learning_rate": 0.4},
            "xgboost": {"early_stopping_rounds": 3, "num_boost_round": 60, "learning_rate": 0.4},
            HIST: {
                "n_iter_no_change": 3,
                "X_val": (),
                "max_iter": 60,
                "learning_rate": 0.4,
                "early_stopping": True,
                "tol": 0.0,
            },
        },
        "rounds",
        ("n_estimators", "learning_rate"),
        {
            HIST: "scikit-learn keeps the rounds after the best round",
        },
    ),
    Case(
        "squared_error",
        {"cost_tradeoff": MOST, "feature_costs": [0.75], "comparison_cost": 0.25},
        {
            "lightgbm": {
                "cegb_tradeoff": MOST,
                "cegb_penalty_feature_lazy": [0.75],
                "cegb_penalty_split": 0.25,
            },
        },
        "most",
    ),
    Case(
        "log_loss",
        {"cost_tradeoff": MOST, "feature_costs": [0.75], "comparison_cost": 0.25},
        {
            "lightgbm": {
                "cegb_tradeoff": MOST,
                "cegb_penalty_feature_lazy": [0.75],
                "cegb_penalty_split": 0.25,
            },
        },
        "most",
        differences={
            "lightgbm": "pboost compares the cost with the decrease of the loss, half of the gain"
        },
        name="cost_tradeoff, log loss",
    ),
    Case(
        "softmax",
        {"multi_strategy": "multi_output_tree"},
        {
            "xgboost": {"multi_strategy": "multi_output_tree", "num_class": 3},
        },
        differences={"xgboost": "Hessians are 2 p (1 - p) in XGBoost"},
    ),
    Case(
        "squared_error",
        {"continue_fit": 2, "learning_rate": 0.5},
        {
            "lightgbm": {"init_model": 2, "learning_rate": 0.5},
            "xgboost": {"xgb_model": 2, "learning_rate": 0.5},
            HIST: {"warm_start": 2, "learning_rate": 0.5, "max_iter": 1},
            GB: {"warm_start": 2, "learning_rate": 0.5, "n_estimators": 1},
        },
        shared=("learning_rate",),
    ),
)

#: The parameters of the losses, with their names in the libraries.
NUMBERS = {
    "softmax": {"lightgbm": {"num_class": 3}, "xgboost": {"num_class": 3}},
    "quantile": {
        "lightgbm": {"alpha": 0.8},
        "xgboost": {"quantile_alpha": 0.8},
        HIST: {"quantile": 0.8},
    },
    "huber": {"lightgbm": {"alpha": 2.0}, "xgboost": {"huber_slope": 2.0}},
}
_MORE = "the library's Hessian is exp(f + 0.7), with `max_delta_step` 0.7"
#: Reasons for differences, by loss and library; "" applies to all libraries.
OTHER_LOSSES: dict[str, dict[str, str]] = {
    "softmax": {
        "lightgbm": "Hessians are 1.5 p (1 - p) in LightGBM, J / (J - 1) with J classes",
        "xgboost": "Hessians are 2 p (1 - p) in XGBoost",
    },
    "poisson": {"lightgbm": _MORE, "xgboost": _MORE + ", which also bounds leaf values"},
    "huber": {"xgboost": "the loss is delta**2 (sqrt(1 + (f - y)**2 / delta**2) - 1) in XGBoost"},
}
_RENEWED = "in pboost, `l2_regularization` also changes the quantile of a leaf"
_NEWTON = "leaf values are a Newton step in the library, and the best step in pboost"
#: Reasons for different leaf values, by loss and option.
OTHER_LEAVES: dict[tuple[str, str], dict[str, str]] = {
    ("huber", ""): {"lightgbm": _NEWTON},
    ("huber", "l2_regularization"): {"lightgbm": _NEWTON},
    **{
        (loss, "l2_regularization"): dict.fromkeys(("lightgbm", "xgboost", HIST), _RENEWED)
        for loss in ("absolute_error", "quantile")
    },
}
NAMES = {
    "l2_regularization": {
        "lightgbm": "lambda_l2",
        "xgboost": "reg_lambda",
        HIST: "l2_regularization",
    },
    "min_split_gain": {"lightgbm": "min_gain_to_split", "xgboost": "gamma"},
    "min_child_weight": {"lightgbm": "min_sum_hessian_in_leaf", "xgboost": "min_child_weight"},
}


def loss_cases() -> Iterator[Case]:
    """Yield each loss, and the scale of its regularization parameters."""
    for loss, names in LOSSES.items():
        yield _plain(loss, names)
        for option, theirs in NAMES.items():
            value: Any = 3.0 if option == "l2_regularization" else MOST
            peers = {
                kind: {name: value, **NUMBERS.get(loss, {}).get(kind, {})}
                for kind, name in theirs.items()
                if kind in names
            }
            if not peers:
                continue
            more = OTHER_LEAVES.get((loss, option), {})
            yield Case(
                loss,
                {option: value},
                peers,
                "most" if value is MOST else "values",
                differences={**more, **OTHER_LOSSES.get(loss, {})},
                name=f"{option}, {names[HERE]}" if value is MOST else f"{option}=3, {names[HERE]}",
            )


def _plain(loss: str, names: dict[str, Any]) -> Case:
    """Return the case of a loss without other options."""
    peers = {
        kind: {
            "objective" if kind in ("lightgbm", "xgboost") else "loss": name,
            **NUMBERS.get(loss, {}).get(kind, {}),
        }
        for kind, name in names.items()
        if kind != HERE
    }
    differences = {**OTHER_LEAVES.get((loss, ""), {}), **OTHER_LOSSES.get(loss, {})}
    return Case(loss, {}, peers, differences=differences, name=f"loss, {names[HERE]}")


#: Options that are not compared, with the reason.
NOT_COMPARED = {
    "max_nodes": "a size of decision graphs",
    "max_iter": "of probit models",
    "impurity": "as `criterion`",
    **dict.fromkeys(
        ("fit", "base_learner", "weak_learner", "estimator"), "a builder or a weak learner"
    ),
    **dict.fromkeys(("feature_costs", "comparison_cost"), "with `cost_tradeoff`"),
    "validation": "with `n_iter_no_change`",
    "leaf_update": "an option of catboost, whose leaves are other sums",
    "tol": "of models that the others do not have",
    "voting": "the mean of probabilities, or the majority, as their names say",
    "cv": "a number of parts",
    "model": "with `continue_fit`",
    **dict.fromkeys(
        ("rng", "seed", "n_threads", "callback", "progress"), "how a fit runs, not what it fits"
    ),
}
