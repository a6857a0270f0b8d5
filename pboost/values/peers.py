"""Names of options and values in scikit-learn, lightgbm, xgboost and catboost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias


class Peers(NamedTuple):
    """What other libraries call an option, name after name, and what is other here."""

    sklearn: str = ""
    lightgbm: str = ""
    xgboost: str = ""
    note: str = ""
    catboost: str = ""

    def names(self) -> set[str]:
        """Return all names."""
        return {name for names in (*self[:3], self.catboost) for name in names.split(", ")}


_ROUNDS = "num_iterations, num_boost_round, n_estimators"
_OF_CATBOOST = "iterations, num_trees"
_BOOSTED = Peers(
    "n_estimators, max_iter",
    _ROUNDS,
    "num_boost_round, n_estimators, num_parallel_tree",
    catboost=_OF_CATBOOST,
)
_LEAVES = Peers("max_leaf_nodes", "num_leaves, max_leaves", "max_leaves")
_NODES = _LEAVES._replace(note="one less than leaves")
_ESTIMATOR = "estimator, base_estimator"
_FOLDS = Peers("cv, n_splits", "nfold", "nfold")
NONE = Peers()
#: By their names here. Where a builder has several for one name of a peer, the first is meant.
PEERS = {
    # how large
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
        "a share of the weight at the node",
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
        "besides the columns of a frame that hold text",
        "cat_features",
    ),
    "growth": Peers("", "", "grow_policy"),
    "tree_comparisons": NONE,
    "criterion": Peers("criterion"),
    "impurity": Peers("criterion"),
    "search": Peers("", "", "tree_method"),
    "max_bins": Peers("max_bins", "max_bin", "max_bin", catboost="border_count"),
    "histogram_precision": NONE,
    "max_features_per_tree": Peers(
        "",
        "feature_fraction, colsample_bytree",
        "colsample_bytree",
        "drawn anew for each tree",
    ),
    "max_features": Peers(
        "max_features",
        "feature_fraction_bynode, feature_fraction, colsample_bytree",
        "colsample_bynode, colsample_bytree",
        "drawn anew for each split",
        "rsm, colsample_bylevel",
    ),
    "monotonic_cst": Peers(
        "monotonic_cst",
        "monotone_constraints, mc",
        "monotone_constraints",
        "columns and 1 or -1, or 1, 0 or -1 for each",
    ),
    "interaction_cst": Peers(
        "interaction_cst",
        "interaction_constraints",
        "interaction_constraints",
        "groups of columns",
    ),
    "feature_costs": Peers("", "cegb_penalty_feature_lazy", "", "of columns, paid once for a row"),
    "cost_groups": Peers(note="of columns that are paid once for all"),
    "comparison_cost": Peers("", "cegb_penalty_split"),
    "cost_tradeoff": Peers("", "cegb_tradeoff"),
    "complexity": NONE,
    # what is fitted, and by which steps
    "fit": Peers(_ESTIMATOR, note="a builder"),
    "base_learner": Peers(_ESTIMATOR, note="a builder"),
    "weak_learner": Peers(_ESTIMATOR, note="one of pb.weak, such as from_estimator"),
    "observation": NONE,
    "task": NONE,
    "loss": Peers("loss", "objective", "objective", catboost="loss_function"),
    "learning_rate": Peers(
        "learning_rate", "learning_rate, eta, shrinkage_rate", "learning_rate, eta"
    ),
    "leaf_update": Peers(catboost="leaf_estimation_method"),
    "l2_regularization": Peers(
        "l2_regularization", "lambda_l2, reg_lambda", "reg_lambda", catboost="l2_leaf_reg"
    ),
    "max_delta_step": Peers("", "max_delta_step", "max_delta_step"),
    "init": Peers("init", "boost_from_average", "base_score", '"constant" or "zero"'),
    "smoothing": NONE,
    "tol": Peers("tol"),
    "safeguard": NONE,
    "votes": NONE,
    "voting": Peers("voting"),
    "one_vs_rest": NONE,
    "answer_scale": NONE,
    "collect": NONE,
    "join": NONE,
    # rows
    "y_proba": NONE,
    "classes": NONE,
    "sample_weight": Peers(
        "sample_weight, class_weight",
        "weight, class_weight, is_unbalance, scale_pos_weight",
        "weight, scale_pos_weight",
        "a number for each row",
        "class_weights, auto_class_weights",
    ),
    "max_samples": Peers(
        "max_samples, subsample",
        "bagging_fraction, subsample",
        "subsample",
        "a share of the rows or a number of them",
    ),
    "subsample": Peers(
        "max_samples, subsample",
        "bagging_fraction, subsample",
        "subsample",
        "a share of the rows or a number of them",
    ),
    "bootstrap": Peers("bootstrap"),
    "stratify": NONE,
    "validation": Peers(
        "validation_fraction, X_val",
        "valid_sets, eval_set",
        "evals, eval_set",
        "rows (X, y) or a share of those given",
    ),
    "n_iter_no_change": Peers(
        "n_iter_no_change, early_stopping",
        "early_stopping_round, early_stopping_rounds",
        "early_stopping_rounds",
        "with `validation`",
        "od_wait",
    ),
    "cv": _FOLDS,
    "mean_comparisons": NONE,
    "max_comparisons": NONE,
    "max_bytes": NONE,
    "mean_feature_cost": NONE,
    "rule": NONE,
    # how it runs
    "rng": Peers("random_state", "seed, random_state", "seed, random_state", "", "random_seed"),
    "n_threads": Peers("n_jobs", "num_threads, n_jobs", "nthread, n_jobs", "", "thread_count"),
    "callback": Peers(
        "monitor", "callbacks", "callbacks", "a function that is called after each step"
    ),
    "progress": Peers(
        "verbose",
        "verbose, verbosity",
        "verbose, verbosity, verbose_eval",
        "a bar, or none",
        "logging_level, silent",
    ),
    # a model to go on with
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
    # how sure answers are, and estimators as weak classifiers
    "flip_rate": NONE,
    "strength": NONE,
    "sigma": NONE,
    "n_draws": NONE,
    "estimator": Peers("estimator"),
    "max_draws": NONE,
    "clock": NONE,
    "base": NONE,
}

#: Options that are those of the weak learner where a builder has one.
OF_STUMPS = (
    "min_weight_fraction",
    "min_samples_leaf",
    "criterion",
    "search",
    "max_bins",
    "missing",
    "categorical_smoothing",
)
_GO_ON = "here pb.continue_fit(model, X, y)"
_RANKING = "groups of rows are for ranking, which is not implemented"
#: What is no option here.
ELSEWHERE = {
    "ccp_alpha": "here pb.prune(tree, ccp_alpha); cross-validation finds ccp_alpha",
    **dict.fromkeys(("warm_start", "init_model", "xgb_model"), _GO_ON),
    "oob_score": "it is model.oob.error, wherever rows are drawn for members",
    **dict.fromkeys(("booster", "boosting", "boosting_type"), "here each kind has its builder"),
    **dict.fromkeys(("group", "qid", "group_id", "eval_group"), _RANKING),
}
#: Values and what each is for.
Names: TypeAlias = Iterable[tuple[str, str]]
#: Values of options here, with what each is for, by the names of others in small letters. Losses
#: have their own, beside the squared loss, which is a criterion, too.
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
}


def value_here(value: object, choices: Collection[str], more: Names = ()) -> str:
    """Return what is said of a value by another library's name, "" if none of the choices is meant.

    It begins with "; " and ends a message. `more` are values here that it may mean, and what each
    is for.
    """
    known = (*VALUES.get(value.lower(), ()), *more) if isinstance(value, str) else ()
    meant = [(ours, use) for ours, use in known if ours in choices]
    if isinstance(value, str) and not meant and value.lower() in choices:
        meant = [(value.lower(), "")]
    meanings = [f"{ours!r}" + f" for {use}" * bool(use and len(meant) > 1) for ours, use in meant]
    return f"; here it is {' or '.join(meanings)}" if meanings else ""


def alias_hint(name: str, takers: Mapping[str, Collection[str]]) -> str:
    """Return what is said here for an option that none of the takers has; "" where that is unknown.

    Parameters
    ----------
    name : str
        The option as it was given.
    takers : mapping
        For each function that it may be meant for, the options of that.
    """
    meant = [ours for ours, peers in PEERS.items() if ours != name and name in peers.names()]
    stump = next((option for option in (name, *meant) if option in OF_STUMPS), "")
    functions_by_hint: dict[str, list[str]] = {}
    for function, options in takers.items():
        if ours := next((option for option in meant if option in options), ""):
            note = PEERS[ours].note
            functions_by_hint.setdefault(f"`{ours}`" + f", {note}" * bool(note), []).append(
                function
            )
        elif stump and "weak_learner" in options:
            hint = f"`{stump}` of `weak_learner`, as in weak_learner=pb.weak.stump({stump}=...)"
            functions_by_hint.setdefault(hint, []).append(function)
    if not functions_by_hint:
        return ELSEWHERE.get(name, "")
    if len(functions_by_hint) == 1:
        return f"here {next(iter(functions_by_hint))}"
    return "here " + ", or ".join(
        f"{hint} (of {' and '.join(f)})" for hint, f in functions_by_hint.items()
    )
