"""Shapley values: interleaved calls of pboost, LightGBM, XGBoost and shap, in processor time.

    python -m asv_bench.peers.shapley --quick
    python -m asv_bench.peers.shapley --rst docs/benchmarks/shapley_table.rst

Run it from the root of a checkout with a built pboost. LightGBM and shap evaluate the
trees of pboost. XGBoost evaluates trees of the same depth that it has grown.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import pairwise
from pathlib import Path

import lightgbm
import numpy as np
import shap
import xgboost

import pboost as pb
from asv_bench.peers.__main__ import as_rst, machine
from asv_bench.peers.report import Table, number

N_FEATURES, N_TREES, N_BACKGROUND = 20, 100, 100
#: Rows for which the slowest methods are measured; they take more than 10 s otherwise.
MOST_PEER_ROWS = 1_000


def problem(n_rows, seed):
    """Return features and classes whose log odds have interactions and steps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES))
    score = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]) + rng.normal(size=n_rows) / 2
    return X, (score > 0).astype(int)


def lightgbm_trees(model):
    """Return the trees of a gradient boosting model as a LightGBM booster."""
    trees = pb.models.as_tree_ensemble(model)
    names = " ".join(f"x{j}" for j in range(trees.n_features))
    lines = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0"]
    lines += [f"max_feature_idx={trees.n_features - 1}", "objective=regression"]
    lines += [f"feature_names={names}", "feature_infos=" + " ".join(["none"] * trees.n_features)]
    for number_, (first, stop) in enumerate(pairwise(trees.root.tolist())):
        lines += ["", f"Tree={number_}", *_lightgbm_tree(trees, slice(first, stop))]
    return lightgbm.Booster(model_str="\n".join([*lines, "", "end of trees", ""]))


def _lightgbm_tree(trees, nodes):
    feature, children = trees.feature[nodes], trees.children[nodes]
    is_leaf = feature < 0
    place = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1)
    count = np.maximum(np.round(trees.weight[nodes] * 1e4), 1).astype(int)
    inner = {
        "split_feature": feature[~is_leaf],
        "split_gain": np.ones((~is_leaf).sum(), int),
        "threshold": trees.threshold[nodes][~is_leaf],
        "decision_type": np.full((~is_leaf).sum(), 2),
        "left_child": place[children[~is_leaf, 0]],
        "right_child": place[children[~is_leaf, 1]],
        "internal_value": np.zeros((~is_leaf).sum(), int),
        "internal_weight": count[~is_leaf],
        "internal_count": count[~is_leaf],
    }
    leaves = {
        "leaf_value": trees.value[nodes][is_leaf, 0],
        "leaf_weight": count[is_leaf],
        "leaf_count": count[is_leaf],
    }
    columns = [f"{k}={' '.join(map(repr, v.tolist()))}" for k, v in (inner | leaves).items()]
    return [f"num_leaves={is_leaf.sum()}", "num_cat=0", *columns, "is_linear=0", "shrinkage=1"]


def medians(calls, repetitions):
    """Return the median processor time of each call; the calls alternate."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repetitions):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(of) for name, of in times.items()}


class Peers:
    """A model of pboost, and the calls of the libraries for some rows."""

    def __init__(self, depth, n_rows):
        self.X, y = problem(n_rows, 0)
        options = {"n_estimators": N_TREES, "max_depth": depth}
        self.model = pb.fit_gradient_boosting(self.X, y, loss="log_loss", **options)
        trees = pb.models.as_tree_ensemble(self.model)
        self.n_leaves = (trees.feature < 0).sum() / N_TREES
        self.lightgbm = lightgbm_trees(self.model)
        self.xgboost = xgboost.XGBClassifier(n_jobs=1, learning_rate=0.1, **options)
        self.xgboost.fit(self.X, y)
        self.booster = self.xgboost.get_booster()
        frame = self.booster.trees_to_dataframe()
        self.xgboost_leaves = (frame.Feature == "Leaf").sum() / N_TREES
        self.background = problem(N_BACKGROUND, 2)[0]
        self.plain = shap.TreeExplainer(pb.export.to_shap(self.model))
        self.by_rows = shap.TreeExplainer(pb.export.to_shap(self.model), data=self.background)

    def check(self):
        """Compare the values of LightGBM and shap with those of pboost."""
        rows = problem(5, 3)[0]
        values = pb.shap_values(self.model, rows).values
        other = self.plain.shap_values(rows, check_additivity=False).reshape(values.shape)
        np.testing.assert_allclose(other, values, rtol=0, atol=1e-10)
        of_lightgbm = self.lightgbm.predict(rows, pred_contrib=True)[:, :-1]
        np.testing.assert_allclose(of_lightgbm, values, rtol=0, atol=1e-2)

    def path_dependent(self, X):
        matrix = xgboost.DMatrix(X, nthread=1)
        return {
            "pboost": lambda: pb.shap_values(self.model, X, n_threads=1),
            "LightGBM": lambda: self.lightgbm.predict(X, pred_contrib=True, num_threads=1),
            "XGBoost": lambda: self.booster.predict(matrix, pred_contribs=True),
            "shap": lambda: self.plain.shap_values(X, check_additivity=False),
        }

    def interactions(self, X):
        return {
            "pboost": lambda: pb.shap_values(self.model, X, interactions=True, n_threads=1),
            "shap": lambda: self.plain.shap_interaction_values(X),
        }

    def interventional(self, X):
        options = {"background": self.background, "n_threads": 1}
        return {
            "pboost": lambda: pb.shap_values(self.model, X, **options),
            "shap": lambda: self.by_rows.shap_values(X, check_additivity=False),
        }

    def first_call(self, X):
        """Return the time of the first calls of a model, which compile its trees."""

        def forget(**options):
            self.model.memo.clear()
            pb.shap_values(self.model, X[:1], n_threads=1, **options)

        return {"plain": forget, "by rows": lambda: forget(background=self.background)}


PATHS = ("depth", "leaves", "rows", "pboost", "LightGBM", "XGBoost", "shap", "ratio", "first call")
OTHERS = ("values", "depth", "rows", "pboost", "shap", "ratio", "first call")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few rows: to see that it works")
    parser.add_argument("--rst", type=Path)
    options = parser.parse_args()
    paths, others = [], []
    for depth in (3, 6, 8):
        peers = Peers(depth, 2_000 if options.quick else 20_000)
        peers.check()
        first = medians(peers.first_call(peers.X), options.repetitions)
        for n in (1, 100) if options.quick else (1, 1_000, 10_000):
            X = problem(n, 1)[0]
            calls = peers.path_dependent(X)
            if n > MOST_PEER_ROWS:
                del calls["shap"], calls["XGBoost"]
            found = medians(calls, options.repetitions if n <= MOST_PEER_ROWS else 1)
            cells = [number(1e3 * found[k]) if k in found else "–" for k in PATHS[3:7]]
            best = min(value for name, value in found.items() if name != "pboost")
            row = [depth, f"{peers.n_leaves:.0f}", f"{n:,}", *cells]
            paths.append(
                [*map(str, row), number(best / found["pboost"]), number(1e3 * first["plain"])]
            )
            print(*paths[-1], sep="  ", flush=True)
        for name, n in (("interactions", 100), ("interventional", 1000)):
            X = problem(10 if options.quick else n, 1)[0]
            found = medians(getattr(peers, name)(X), 1)
            ratio = found["shap"] / found["pboost"]
            row = [
                name,
                depth,
                f"{len(X):,}",
                number(1e3 * found["pboost"]),
                number(1e3 * found["shap"]),
            ]
            start = first["plain" if name == "interactions" else "by rows"]
            others.append([*map(str, row), number(ratio), number(1e3 * start)])
            print(*others[-1], sep="  ", flush=True)
    tables = [
        Table(f"Shapley values of {N_TREES} trees, {N_FEATURES} features: ms", list(PATHS), paths),
        Table(f"Interactions, and {N_BACKGROUND} background rows: ms", list(OTHERS), others),
    ]
    remarks = [f"Medians of {options.repetitions} runs, processor time. {machine([])}"]
    if options.rst:
        options.rst.write_text(as_rst(tables, remarks), encoding="utf-8")


if __name__ == "__main__":
    main()
