"""Names of options and values in scikit-learn, LightGBM, XGBoost and CatBoost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias


class Peers(NamedTuple):
    """Comma-separated names of an option in other libraries. A note describes differences.

    `guesses` are names that no library has, but that users try.
    """

    sklearn: str = ""
    lightgbm: str = ""
    xgboost: str = ""
    note: str = ""
    catboost: str = ""
    guesses: str = ""

    def names(self) -> set[str]:
        """Return the names in all libraries, and the guesses."""
        names = (*self[:3], self.catboost, self.guesses)
        return {name for several in names for name in several.split(", ")}


_ROUNDS = "num_iterations, num_boost_round, n_estimators"
_OF_CATBOOST = "iterations, num_trees"
_BOOSTED = Peers(
    "n_estimators, max_iter",
    _ROUNDS,
    "num_boost_round, n_estimators, num_parallel_tree",
    catboost=_OF_CATBOOST,
    guesses="n_trees, trees, ntree, n_rounds, rounds",
)
_LEAVES = Peers("max_leaf_nodes", "num_leaves, max_leaves", "max_leaves")
_NODES = _LEAVES._replace(note="one less than the number of leaves")
_ESTIMATOR = "estimator, base_estimator"
_FOLDS = Peers("cv, n_splits", "nfold", "nfold")
NONE = Peers()
#: Names of each option of pboost in other libraries. The error message suggests the
#: first matching option that the function accepts.
PEERS = {
    # size of the model
    "n_estimators": _BOOSTED,
    "n_boosting_rounds": NONE,
    "max_iter": _BOOSTED,
    "multi_strategy": Peers("", "", "multi_strategy"),
    "max_nodes": _NODES,
    "n_stumps": NONE,
    "shape": NONE,
    "target_certificate": NONE,
    # trees
    "max_depth": Peers("max_depth", "max_depth", "max_depth", catboost="depth, max_depth"),
    "max_leaf_nodes": _LEAVES,
    "min_weight_fraction": Peers(
        "min_weight_fraction_leaf",
        "min_sum_hessian_in_leaf, min_child_weight",
        "min_child_weight",
        "a fraction of the node's weight",
    ),
    "min_child_weight": Peers(
        "", "min_sum_hessian_in_leaf, min_child_weight", "min_child_weight", "a sum of Hessians"
    ),
    "min_split_gain": Peers("", "min_gain_to_split, min_split_gain", "gamma"),
    "min_samples_leaf": Peers(
        "min_samples_leaf",
        "min_data_in_leaf, min_child_samples, min_data",
        "min_child_weight",
        "a number of rows",
    ),
    "min_samples_split": Peers("min_samples_split"),
    "missing": Peers("", "use_missing", catboost="nan_mode"),
    "categorical_smoothing": Peers("", "cat_smooth"),
    "categorical_features": Peers(
        "categorical_features",
        "categorical_feature, cat_feature",
        "enable_categorical",
        "in addition to the text columns of a data frame",
        "cat_features",
    ),
    "growth": Peers("", "", "grow_policy"),
    "tree_comparisons": NONE,
    "criterion": Peers("criterion"),
    "impurity": Peers("criterion"),
    "search": Peers("", "", "tree_method"),
    "max_bins": Peers("max_bins", "max_bin", "max_bin", catboost="border_count"),
    "min_samples_in_bin": Peers("", "min_data_in_bin", "", "of a sparse matrix"),
    "histogram_precision": NONE,
    "max_features_per_tree": Peers(
        "",
        "feature_fraction, colsample_bytree",
        "colsample_bytree",
        "sampled for each tree",
    ),
    "max_features": Peers(
        "max_features",
        "feature_fraction_bynode, feature_fraction, colsample_bytree",
        "colsample_bynode, colsample_bytree",
        "sampled for each split",
        "rsm, colsample_bylevel",
    ),
    "monotonic_cst": Peers(
        "monotonic_cst",
        "monotone_constraints, mc",
        "monotone_constraints",
        "a mapping from features to 1 or -1, or a sequence of 1, 0 and -1",
    ),
    "interaction_cst": Peers(
        "interaction_cst",
        "interaction_constraints",
        "interaction_constraints",
        "groups of features",
    ),
    "feature_costs": Peers(
        "", "cegb_penalty_feature_lazy", "", "a cost per feature, charged once per row"
    ),
    "cost_groups": Peers(note="groups of features acquired together"),
    "comparison_cost": Peers("", "cegb_penalty_split"),
    "cost_tradeoff": Peers("", "cegb_tradeoff"),
    "complexity": NONE,
    # objective and optimization
    "fit": Peers(_ESTIMATOR, note="a fit function"),
    "base_learner": Peers(_ESTIMATOR, note="a fit function"),
    "weak_learner": Peers(_ESTIMATOR, note="one of pb.weak, such as from_estimator"),
    "observation": NONE,
    "task": NONE,
    "loss": Peers(
        "loss", "objective", "objective", "", "loss_function", "fobj, obj, objective_function"
    ),
    "learning_rate": Peers(
        "learning_rate", "learning_rate, eta, shrinkage_rate", "learning_rate, eta"
    ),
    "leaf_update": Peers(catboost="leaf_estimation_method"),
    "quality": NONE,
    "leaf_shrinkage": NONE,
    "random_strength": Peers(catboost="random_strength"),
    "l2_regularization": Peers(
        "l2_regularization", "lambda_l2, reg_lambda", "reg_lambda", catboost="l2_leaf_reg"
    ),
    "max_delta_step": Peers("", "max_delta_step", "max_delta_step"),
    "init": Peers("init", "boost_from_average", "base_score", '"constant" or "zero"'),
    "smoothing": NONE,
    "metric": Peers(
        "scoring", "metric, eval_metric, feval", "eval_metric, custom_metric", "", "eval_metric"
    ),
    "greater_is_better": Peers("", "", "maximize"),
    "tol": Peers("tol", "early_stopping_min_delta"),
    "safeguard": NONE,
    "votes": NONE,
    "voting": Peers("voting"),
    "one_vs_rest": NONE,
    "answer_scale": NONE,
    "collect": NONE,
    "join": NONE,
    # training rows
    "y_proba": NONE,
    "classes": NONE,
    "sample_weight": Peers(
        "sample_weight, class_weight",
        "weight, class_weight, is_unbalance, scale_pos_weight",
        "weight, scale_pos_weight",
        "one weight per row, such as `pb.data.balanced_weights(y)`",
        "class_weights, auto_class_weights",
    ),
    "max_samples": Peers(
        "max_samples, subsample",
        "bagging_fraction, subsample",
        "subsample",
        "a fraction or a number of rows",
    ),
    "subsample": Peers(
        "max_samples, subsample",
        "bagging_fraction, subsample",
        "subsample",
        "a fraction or a number of rows",
    ),
    "bootstrap": Peers("bootstrap"),
    "stratify": NONE,
    "validation": Peers(
        "validation_fraction, X_val",
        "valid_sets, eval_set",
        "evals, eval_set",
        "a pair (X, y) or a fraction of the rows",
    ),
    "n_iter_no_change": Peers(
        "n_iter_no_change, early_stopping",
        "early_stopping_round, early_stopping_rounds",
        "early_stopping_rounds",
        "requires `validation`",
        "od_wait",
    ),
    "cv": _FOLDS,
    "mean_comparisons": NONE,
    "max_comparisons": NONE,
    "max_bytes": NONE,
    "mean_feature_cost": NONE,
    "rule": NONE,
    # execution
    "rng": Peers("random_state", "seed, random_state", "seed, random_state", "", "random_seed"),
    "n_threads": Peers("n_jobs", "num_threads, n_jobs", "nthread, n_jobs", "", "thread_count"),
    "callback": Peers("monitor", "callbacks", "callbacks", "a function called after each step"),
    "progress": Peers(
        "verbose",
        "verbose, verbosity",
        "verbose, verbosity, verbose_eval",
        "shows a progress bar",
        "logging_level, silent",
    ),
    # warm start
    "model": Peers("", "init_model", "xgb_model"),
    "state": NONE,
    # weak learners
    "n_directions": NONE,
    "n_terms": NONE,
    "dense_gain": NONE,
    "max_pairs": NONE,
    "center": NONE,
    "include_constant": NONE,
    "train": NONE,
    "max_abs": NONE,
    "seed": Peers("random_state", "seed, random_state", "seed, random_state", "", "random_seed"),
    # options of observation models and of `pboost.weak.from_estimator`
    "flip_rate": NONE,
    "strength": NONE,
    "sigma": NONE,
    "n_draws": NONE,
    "estimator": Peers("estimator"),
    "max_draws": NONE,
    "clock": NONE,
    "base": NONE,
}

#: Options that belong to the weak learner, if a fit function has one.
OF_STUMPS = (
    "min_weight_fraction",
    "min_samples_leaf",
    "criterion",
    "search",
    "max_bins",
    "missing",
    "categorical_smoothing",
)
_GO_ON = "use pb.continue_fit(model, X, y)"
_RANKING = "ranking is not implemented"
#: Hints for options of other libraries that are not options in pboost.
ELSEWHERE = {
    "ccp_alpha": "use pb.prune(tree, ccp_alpha), or pb.fit_pruned_cart(X, y) to choose ccp_alpha",
    **dict.fromkeys(("warm_start", "init_model", "xgb_model"), _GO_ON),
    "oob_score": "use the attribute model.oob.error of an ensemble with subsampling",
    **dict.fromkeys(
        ("booster", "boosting", "boosting_type"), "use the fit function for this kind of model"
    ),
    **dict.fromkeys(("group", "qid", "group_id", "eval_group"), _RANKING),
    **dict.fromkeys(("quantile", "quantile_alpha"), "use loss=pb.losses.Quantile(0.9)"),
    "alpha": "use loss=pb.losses.Quantile(0.9) for a quantile; there are no L1 penalties",
    "scoring": "cross_validate returns the attributes error, auc, log_loss and others; for other "
    "scores pass an estimator of pboost.sklearn to sklearn.model_selection.cross_validate",
    "tweedie_variance_power": "use loss=pb.losses.Tweedie(1.5)",
    **dict.fromkeys(
        ("comparisons", "budget"), "use `mean_comparisons`, or `max_comparisons` to limit each row"
    ),
    # options of prediction
    **dict.fromkeys(
        ("pred_contrib", "pred_contribs", "pred_interactions"),
        "use pb.explain(model, row), or SHAP values with pb.export.to_shap(model)",
    ),
    **dict.fromkeys(("raw_score", "output_margin"), "use pb.decision_function(model, X)"),
    "pred_leaf": "use pb.inspection.apply(model, X)",
    **dict.fromkeys(
        ("num_iteration", "start_iteration", "iteration_range", "ntree_limit", "ntree_end"),
        "use pb.predict(pb.models.truncate(model, 10), X) for the first 10 trees",
    ),
    "path": "the function returns the exported model; write it to a file yourself, as in "
    "file.write(pb.export.to_onnx(model).SerializeToString())",
}
#: Options that only gradient boosting has; a test compares them with the signatures.
OF_GRADIENT_BOOSTING = frozenset(
    {
        "cost_tradeoff",
        "greater_is_better",
        "histogram_precision",
        "init",
        "interaction_cst",
        "l2_regularization",
        "leaf_shrinkage",
        "leaf_update",
        "loss",
        "max_delta_step",
        "max_features_per_tree",
        "metric",
        "min_child_weight",
        "min_samples_in_bin",
        "min_split_gain",
        "monotonic_cst",
        "multi_strategy",
        "quality",
        "random_strength",
        "subsample",
        "tree_comparisons",
    }
)
_SAVE = "pb.save(model, path)"
_IMPORTANCES = "pb.feature_importances(model)"
_TO_SKLEARN = "an estimator of pboost.sklearn, which has methods like those of scikit-learn"
#: What to use in place of methods and attributes that models of other libraries have.
METHODS = {
    **dict.fromkeys(("save", "save_model", "dump", "dump_model", "to_file"), _SAVE),
    **dict.fromkeys(("load", "load_model"), "pb.load(path)"),
    **dict.fromkeys(("fit", "score", "get_params", "set_params"), _TO_SKLEARN),
    **dict.fromkeys(
        ("feature_importances_", "feature_importances", "feature_importance", "get_score"),
        _IMPORTANCES,
    ),
    **dict.fromkeys(("classes_", "n_classes_"), "model.classes"),
    **dict.fromkeys(("feature_names_in_", "feature_name"), "model.feature_names"),
    "n_features_in_": "model.n_features",
    **dict.fromkeys(("n_estimators", "n_trees", "num_trees", "n_iter_"), "len(model)"),
    **dict.fromkeys(("best_iteration", "best_iteration_", "best_ntree_limit"), "len(model)"),
    "predict_log_proba": "numpy.log(pb.predict_proba(model, X))",
    "staged_predict": "pb.staged_predict(model, X)",
    "staged_predict_proba": "pb.staged_predict_proba(model, X)",
    "explain": "pb.explain(model, row)",
    "apply": "pb.inspection.apply(model, X)",
    "decision_path": "pb.inspection.decision_path(model, X)",
    "plot": "pb.plot.tree(model)",
    "to_c": "pb.export.to_c(model, path)",
    "to_json": "pb.export.to_json(model)",
    "to_onnx": "pb.export.to_onnx(model)",
    "to_sql": "pb.export.to_sql(model, table)",
    "summary": "pb.describe(model)",
    "calibrate": "pb.calibrate(model, X, y)",
    "continue_fit": "pb.continue_fit(model, X, y)",
}
#: Pairs of a value and its purpose.
Names: TypeAlias = Iterable[tuple[str, str]]
#: Values of options in pboost and their purposes, by lowercase name in other libraries. Losses are
#: listed elsewhere, except the squared error, which is also a criterion.
VALUES: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(
        [
            "mse",
            "rmse",
            "l2",
            "ls",
            "l2_root",
            "mean_squared_error",
            "regression",
            "regression_l2",
            "reg:squarederror",
            "reg:linear",
            "friedman_mse",
        ],
        (("squared_error", ""),),
    ),
    **dict.fromkeys(
        ["log_loss", "logloss", "log", "deviance", "crossentropy", "cross_entropy"],
        (("entropy", ""),),
    ),
    "depthwise": (("independent", ""), ("depth_first", "")),
    "lossguide": (("best_first", ""),),
    "symmetrictree": (("symmetric", ""),),
    "hist": (("binned", ""),),
    # kinds of models
    **dict.fromkeys(
        ["gbm", "gbdt", "gbrt", "lightgbm", "xgboost", "catboost", "gradient-boosting"],
        (("gradient-boosting", ""), ("gradient_boosting", "")),
    ),
    **dict.fromkeys(
        ["rf", "forest", "random-forest"], (("random-forest", ""), ("random_forest", ""))
    ),
    **dict.fromkeys(["tree", "decision-tree", "dt"], (("cart", ""),)),
}


def value_here(value: object, choices: Collection[str], more: Names = ()) -> str:
    """Return a hint for a value of another library, or "" if none of the choices matches.

    The hint begins with "; " and is appended to a message. `more` contains additional values and
    their purposes.
    """
    known = (*VALUES.get(value.lower(), ()), *more) if isinstance(value, str) else ()
    meant = [(ours, use) for ours, use in known if ours in choices]
    if isinstance(value, str) and not meant and value.lower() in choices:
        meant = [(value.lower(), "")]
    meanings = [f"{ours!r}" + f" for {use}" * bool(use and len(meant) > 1) for ours, use in meant]
    return f"; did you mean {' or '.join(meanings)}?" if meanings else ""


def alias_hint(
    name: str, takers: Mapping[str, Collection[str]], renamed: Mapping[str, str] | None = None
) -> str:
    """Return a hint for an option of another library, or "" if it is unknown.

    Parameters
    ----------
    name : str
        Name of the option.
    takers : mapping
        Option names of each function to which the option may belong.
    renamed : mapping, optional
        Options of fit functions that have another name in `takers`, as in estimators.
    """
    renamed = renamed or {}
    meant = [
        ours
        for ours, peers in PEERS.items()
        if (name in renamed if ours == name else name in peers.names())
    ]
    stump = next((option for option in (name, *meant) if option in OF_STUMPS), "")
    functions_by_hint: dict[str, list[str]] = {}
    for function, options in takers.items():
        if ours := next((o for o in meant if renamed.get(o, o) in options), ""):
            note = PEERS[ours].note
            functions_by_hint.setdefault(
                f"`{renamed.get(ours, ours)}`" + f", {note}" * bool(note), []
            ).append(function)
        elif stump and "weak_learner" in options:
            hint = f"`{stump}` of `weak_learner`, as in weak_learner=pb.weak.stump({stump}=...)"
            functions_by_hint.setdefault(hint, []).append(function)
    if not functions_by_hint:
        return ELSEWHERE.get(name, "")
    if len(functions_by_hint) == 1:
        return f"use {next(iter(functions_by_hint))}"
    return "use " + ", or ".join(
        f"{hint} (in {' and '.join(f)})" for hint, f in functions_by_hint.items()
    )


def owner_hint(name: str) -> str:
    """Return a hint for an option that only gradient boosting has, or "" for other options.

    The hint begins with "; " and is appended to a message. `name` can be the name of the option in
    another library.
    """
    for ours in sorted(OF_GRADIENT_BOOSTING):
        if name == ours or name in PEERS[ours].names():
            return "; only gradient boosting has it" + f", as `{ours}`" * (name != ours)
    return ""


def method_hint(name: str) -> str:
    """Return a hint for a method of other libraries that models do not have, or "".

    The hint begins with "; " and is appended to a message.
    """
    return f"; use {METHODS[name]}" if name in METHODS else ""
