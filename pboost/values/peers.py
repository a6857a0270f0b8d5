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
    "n_estimators, max_iter", _ROUNDS, "num_boost_round, n_estimators", catboost=_OF_CATBOOST
)
_LEAVES = Peers("max_leaf_nodes", "num_leaves, max_leaves", "max_leaves")
_NODES = _LEAVES._replace(note="one less than leaves")
_ESTIMATOR = "estimator, base_estimator"
_FOLDS = Peers("cv, n_splits", "nfold", "nfold")
NONE = Peers()
#: By their names here. Where a builder has several for one name of a peer, the first is meant.
PEERS = {
    # how large
    "members": Peers(
        "n_estimators", _ROUNDS, "n_estimators, num_parallel_tree", catboost=_OF_CATBOOST
    ),
    "rounds": _BOOSTED,
    "steps": _BOOSTED,
    "trees": Peers("", "", "multi_strategy"),
    "nodes": _NODES,
    "separators": _NODES,
    "stumps": NONE,
    "shape": NONE,
    "target_certificate": NONE,
    # trees
    "max_depth": Peers("max_depth", "max_depth", "max_depth", catboost="depth, max_depth"),
    "max_leaves": _LEAVES,
    "min_weight": Peers(
        "min_weight_fraction_leaf",
        "min_sum_hessian_in_leaf, min_child_weight",
        "min_child_weight",
        "a share of the weight at the node, or a sum of Hessians",
    ),
    "min_gain": Peers("", "min_gain_to_split, min_split_gain", "gamma"),
    "min_leaf": Peers(
        "min_samples_leaf",
        "min_data_in_leaf, min_child_samples, min_data",
        "min_child_weight",
        "a number of rows",
    ),
    "min_split": Peers("min_samples_split"),
    "missing": Peers("", "use_missing", catboost="nan_mode"),
    "level_smoothing": Peers("", "cat_smooth"),
    "categorical": Peers(
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
    "sums": NONE,
    "features_per_tree": Peers(
        "",
        "feature_fraction, colsample_bytree",
        "colsample_bytree",
        "drawn anew for each tree",
    ),
    "features_per_split": Peers(
        "max_features",
        "feature_fraction_bynode, feature_fraction, colsample_bytree",
        "colsample_bynode, colsample_bytree",
        "drawn anew for each split",
        "rsm, colsample_bylevel",
    ),
    "monotone": Peers(
        "monotonic_cst", "monotone_constraints, mc", "monotone_constraints", "columns and 1 or -1"
    ),
    "interactions": Peers(
        "interaction_cst",
        "interaction_constraints",
        "interaction_constraints",
        "groups of columns",
    ),
    "prices": Peers("", "cegb_penalty_feature_lazy", "", "of columns, paid once for a row"),
    "groups": Peers(note="of columns that are paid once for all"),
    "comparison_price": Peers("", "cegb_penalty_split"),
    "price_tradeoff": Peers("", "cegb_tradeoff"),
    "complexity": NONE,
    # what is fitted, and by which steps
    "fit": Peers(_ESTIMATOR, note="a builder"),
    "base": Peers(_ESTIMATOR, note="a builder"),
    "weak": Peers(_ESTIMATOR, note="one of pb.weak, such as from_estimator"),
    "observation": NONE,
    "task": NONE,
    "loss": Peers("loss", "objective", "objective", catboost="loss_function"),
    "learning_rate": Peers(
        "learning_rate", "learning_rate, eta, shrinkage_rate", "learning_rate, eta"
    ),
    "step": Peers("learning_rate"),
    "leaf_step": Peers(catboost="leaf_estimation_method"),
    "l2": Peers("l2_regularization", "lambda_l2, reg_lambda", "reg_lambda", catboost="l2_leaf_reg"),
    "max_step": Peers("", "max_delta_step", "max_delta_step"),
    "start": Peers("init", "boost_from_average", "base_score", '"constant" or "zero"'),
    "smoothing": NONE,
    "tol": Peers("tol"),
    "safeguard": NONE,
    "votes": NONE,
    "vote": Peers("voting"),
    "one_vs_all": NONE,
    "confidence": NONE,
    "collect": NONE,
    "join": NONE,
    # rows
    "y_proba": NONE,
    "labels": NONE,
    "sample_weight": Peers(
        "sample_weight, class_weight",
        "weight, class_weight, is_unbalance, scale_pos_weight",
        "weight, scale_pos_weight",
        "a number for each row",
        "class_weights, auto_class_weights",
    ),
    "bag": Peers(
        "max_samples, subsample",
        "bagging_fraction, subsample",
        "subsample",
        "a share of the rows or a number of them",
    ),
    "replace": Peers("bootstrap"),
    "stratify": NONE,
    "validation": Peers(
        "validation_fraction, X_val",
        "valid_sets, eval_set",
        "evals, eval_set",
        "rows (X, y) or a share of those given",
    ),
    "patience": Peers(
        "n_iter_no_change, early_stopping",
        "early_stopping_round, early_stopping_rounds",
        "early_stopping_rounds",
        "with `validation`",
        "od_wait",
    ),
    "folds": _FOLDS,
    "comparisons": NONE,
    "worst": NONE,
    "bytes": NONE,
    "price": NONE,
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
    "directions": NONE,
    "terms": NONE,
    "dense_gain": NONE,
    "pairs": NONE,
    "center": NONE,
    "constant": NONE,
    "train": NONE,
    "h_max": NONE,
    "seed": Peers("random_state", "seed, random_state", "seed, random_state", "", "random_seed"),
    # how sure answers are, and estimators as weak classifiers
    "rate": NONE,
    "strength": NONE,
    "sigma": NONE,
    "stop": NONE,
    "estimator": Peers("estimator"),
    "max_draws": NONE,
    "clock": NONE,
    "of": NONE,
}

#: Options that are those of the weak learner where a builder has one.
OF_STUMPS = (
    "min_weight",
    "min_leaf",
    "criterion",
    "search",
    "max_bins",
    "missing",
    "level_smoothing",
)
_GO_ON = "here pb.continue_fit(model, X, y)"
_RANKING = "groups of rows are for ranking, which is not implemented"
#: What is no option here.
ELSEWHERE = {
    "ccp_alpha": "here pb.prune(tree, lam); cross-validation finds lam",
    **dict.fromkeys(("warm_start", "init_model", "xgb_model"), _GO_ON),
    "min_samples_split": "it is `min_split`, of builders of single trees and forests",
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
            "squared_error",
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
        (("squared", ""),),
    ),
    **dict.fromkeys(
        ["log_loss", "logloss", "log", "deviance", "crossentropy", "cross_entropy"],
        (("entropy", ""),),
    ),
    "depthwise": (("free", ""), ("depth-first", "")),
    "lossguide": (("best-first", ""),),
    "symmetrictree": (("symmetric", ""),),
    "hist": (("binned", ""),),
    "soft": (("average", ""),),
    "hard": (("majority", ""),),
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
            functions_by_hint.setdefault(f"`{ours}`" + f", {note}" * bool(note), []).append(function)
        elif stump and "weak" in options:
            hint = f"`{stump}` of `weak`, as in weak=pb.weak.stump({stump}=...)"
            functions_by_hint.setdefault(hint, []).append(function)
    if not functions_by_hint:
        return ELSEWHERE.get(name, "")
    if len(functions_by_hint) == 1:
        return f"here {next(iter(functions_by_hint))}"
    return "here " + ", or ".join(f"{hint} (of {' and '.join(f)})" for hint, f in functions_by_hint.items())
