"""Small model files of every kind, and what every function of a model answered at first.

``python tests/golden/golden_models.py --write`` writes the files that are not there yet: those that
are there stay. Where the format of files changes they are converted, never fitted again:
``--unpack FOLDER`` with the old package writes the models it loads as pickles, ``--pack FOLDER``
with the new one saves these, and checks that they have the same digests.
"""

from __future__ import annotations

import argparse
import io
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pboost as pb

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import fits  # noqa: E402
from digests import digest  # noqa: E402

MODELS = HERE / "models"
RECORD = HERE / "models.json"
#: Classes that have other names than in pickles: {name in these: name in the package}.
RENAMED_CLASSES: dict[str, str] = {}
#: The fixed table: rows that no model was trained on, and labels of three kinds.
ROWS = slice(0, 60)
X = fits.X[::-1][ROWS] * 0.875 + 0.0625
TARGETS = {
    "two": fits.TWO[::-1],
    "words": fits.WORDS[::-1],
    "three": fits.THREE[::-1],
    "numbers": fits.NUMBERS[::-1],
}
TARGETS = {name: y[ROWS] for name, y in TARGETS.items()}
WEIGHT = fits.WEIGHT[::-1][ROWS]


def kinds() -> dict[str, tuple[str, Callable[[], Any]]]:
    """Return, for each file, the kind of its labels and what makes its model."""
    every = fits.all_fits()

    def of(name: str, target: str = "two") -> tuple[str, Callable[[], Any]]:
        return target, partial(every[name].model, 1)

    named = {name: fits.X[:, j] for j, name in enumerate(("a", "b", "größe", "d", "e", "f"))}
    return (
        {
            "chain": of("adaboost: kearns_mansour, exact"),
            "chain_words_float32": of("adaboost: float32, words", "words"),
            "chain_validation": of("adaboost: validation"),
            "chain_affine": of("adaboost: affine, exact"),
            "chain_linear": of("adaboost: linear"),
            "chain_separators": of("adaboost: separators"),
            "chain_sampled": of("adaboost: sampled to the first rise"),
            "tree": of("boosted_tree: gini, binned"),
            "tree_flip": of("boosted_tree: flip"),
            "tree_adatree2": of("boosted_tree: adatree2"),
            "tree_gaussian": of("boosted_tree: gaussian by column"),
            "tree_gaussian_cells": (
                "two",
                lambda: pb.fit_boosted_tree(
                    fits.X,
                    fits.TWO,
                    max_nodes=5,
                    observation=pb.observation.gaussian(np.abs(fits.X) + 0.1),
                ),
            ),
            "tree_votes": ("two", _several_votes),
            "tree_affine": of("boosted_tree: affine of three columns, binned"),
            "tree_separators": of("boosted_tree: separators"),
            "tree_names": ("two", partial(_named_tree, named)),
            "no_nodes": (
                "two",
                lambda: pb.fit_adaboost(np.zeros((8, 6)), np.arange(8) > 2, n_estimators=3),
            ),
            "matryoshka": of("matryoshka: additive"),
            "matryoshka_sign": of("matryoshka: three deep, by sign"),
            "matryoshka_all": of("matryoshka: all join"),
            "matryoshka_greedy": of("matryoshka: greedy"),
            "oblique_tree": of("oblique_tree: breadth first"),
            "linear": of("adaboost_real: columns"),
            "topdown_tree": of("topdown_tree: function, look-ahead"),
            "cart": of("cart: gini"),
            "cart_three": of("cart: three classes, entropy", "three"),
            "cart_regression": of("cart: regression", "numbers"),
            "cart_pruned": of("pruned_cart: three", "three"),
            "forest": of("forest: exact"),
            "forest_three": of("forest: three classes, binned", "three"),
            "forest_regression": of("forest: regression", "numbers"),
            "stagewise": of("stagewise: log_loss"),
            "stagewise_regression": of("stagewise: squared_error", "numbers"),
            "stagewise_softmax": of("stagewise: softmax", "three"),
            "stagewise_validation": (
                "two",
                lambda: pb.fit_gradient_boosting(
                    fits.X,
                    fits.TWO,
                    loss="probit",
                    n_estimators=6,
                    validation=(fits.X[:99], fits.TWO[:99]),
                ),
            ),
            "probit": of("probitboost: steps"),
            "probit_tree": of("probit_tree: two"),
            "probit_tree_three": of("probit_tree: three", "three"),
            "sbpmt": of("sbpmt: shared trees", "three"),
            "sbpmt_tree": of("sbpmt: trees of each class", "three"),
            "sbpmt_two": of("sbpmt: two classes, mean"),
            "one_vs_rest": of("one_vs_rest: chains", "three"),
            "weighted_vote": of("samme: trees", "three"),
            "weighted_vote_of_one_vs_rest": of("samme: one-vs-rest", "three"),
            "bagging": of("bagging: trees", "three"),
            "bagging_chains": of("bagging: chains, subsamples"),
            "bagging_regression": of("bagging: regression", "numbers"),
            "bagging_average": (
                "three",
                lambda: pb.fit_bagging(
                    pb.fit_cart,
                    fits.X,
                    fits.THREE,
                    n_estimators=3,
                    voting="soft",
                    rng=5,
                    max_depth=3,
                ),
            ),
        }
        | _calibrated()
        | {"stagewise_held_back": ("numbers", _held_back)}
    )


def _calibrated() -> dict[str, tuple[str, Callable[[], Any]]]:
    three = partial(pb.fit_cart, fits.X, fits.THREE, max_depth=3)
    return {
        "calibrated": (
            "two",
            lambda: pb.calibrate(
                pb.fit_adaboost(fits.X, fits.TWO, n_estimators=5), X, TARGETS["two"]
            ),
        ),
        "calibrated_isotonic": (
            "three",
            lambda: pb.calibrate(three(), X, TARGETS["three"], method="isotonic"),
        ),
    }


def _held_back() -> Any:
    """Check the model of a version in which the squared loss had the Hessian 2."""
    held = {"l2_regularization": 1.5, "min_child_weight": 4.0, "min_split_gain": 0.5}
    return pb.fit_gradient_boosting(
        fits.X, fits.NUMBERS, loss="squared_error", n_estimators=5, max_depth=4, **held
    )


def _named_tree(named: dict[str, np.ndarray]) -> Any:
    pandas = __import__("pandas")
    return pb.fit_boosted_tree(pandas.DataFrame(named), fits.TWO, max_nodes=5)


def _several_votes() -> Any:
    first_model = pb.fit_boosted_tree(fits.X, fits.TWO, max_nodes=5)
    votes = np.stack(
        [first_model.vote, -0.5 * first_model.vote, first_model.vote[:, ::-1]], axis=-1
    )
    return replace(first_model, vote=votes, bias=np.array([0.5, 0.0, -2.0]), classes=np.arange(3))


def outputs(model: Any, target: str) -> Iterator[tuple[str, Any]]:
    """Yield the name and the answer of every function of a model that it has an answer for."""
    y = TARGETS[target]
    sigma = {"sigma": fits.SIGMA} if getattr(model, "sigma", None) is not None else {}
    for name, ask in _questions(model, y, sigma).items():
        try:
            answer = ask()
        except (TypeError, NotImplementedError, ValueError):
            continue
        for part, value in _parts(answer):
            yield f"{name}{part}", value


def _parts(answer: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(answer, dict):
        yield from ((f".{key}", np.asarray(value)) for key, value in answer.items())
    elif isinstance(answer, list):
        yield from ((f"[{k}]", np.asarray(value)) for k, value in enumerate(answer))
    else:
        yield "", np.asarray(answer)


def _questions(model: Any, y: np.ndarray, sigma: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    weighted = {"sample_weight": WEIGHT}
    thetas = [-0.75, -0.25, 0.0, 0.25, 0.75]
    return {
        "predict": lambda: pb.predict(model, X),
        "predict one row": lambda: pb.predict(model, X[:1]),
        "predict_proba": lambda: pb.predict_proba(model, X),
        "decision_function": lambda: pb.decision_function(model, X),
        "decision_function of three rows": lambda: pb.decision_function(model, X[:3]),
        "expected": lambda: pb.decision_function(model, X, "expected", **sigma),
        "sampled": lambda: pb.decision_function(model, X, "sample", rng=7, draws=3, **sigma),
        "staged_decision_function": lambda: list(pb.staged_decision_function(model, X)),
        "staged_predict": lambda: list(pb.staged_predict(model, X)),
        "staged_predict_proba": lambda: list(pb.staged_predict_proba(model, X)),
        "cost": lambda: pb.prediction_cost(model, X),
        "cost in features": lambda: pb.prediction_cost(model, X, "features"),
        "cost in stumps": lambda: pb.prediction_cost(model, X, "stumps"),
        "certificate": lambda: pb.certificate(model),
        "certificate of rows": lambda: pb.certificate(model, X, y, **weighted, **sigma),
        "reach": lambda: pb.inspection.reach(model, X, **sigma),
        "reach by class": lambda: pb.inspection.reach(model, X, y, **sigma),
        "margins": lambda: pb.inspection.margins(model, X, y),
        "normalized_margins": lambda: pb.inspection.normalized_margins(model, X, y),
        "margin_error": lambda: pb.inspection.margin_error(model, X, y, thetas, **weighted),
        "margin_bound": lambda: pb.inspection.margin_bound(model, X, y, thetas, **weighted),
        "margin_curve": lambda: pb.inspection.margin_curve(model, X, y, thetas),
        "describe": lambda: pb.describe(model),
        "explain": lambda: _explained(pb.explain(model, X[0])),
        "apply": lambda: pb.inspection.apply(model, X),
        "decision_path": lambda: pb.inspection.decision_path(model, X),
        "feature_importances": lambda: pb.feature_importances(model, "impurity"),
        "permutation_importance": lambda: pb.inspection.permutation_importance(
            model, X, y, n_repeats=2, rng=3
        ),
        "coefficients": lambda: _fields(
            pb.inspection.coefficients(model), "intercept slopes share mean size"
        ),
        "coefficients of rows": lambda: _fields(
            pb.inspection.coefficients(model, X), "share mean size"
        ),
        "cost_complexity_pruning_path": lambda: _fields(
            pb.models.cost_complexity_pruning_path(model), "ccp_alpha n_leaves risk"
        ),
        "prune": lambda: pb.predict(
            pb.prune(model, pb.models.cost_complexity_pruning_path(model).ccp_alpha[-2]), X
        ),
        "truncate": lambda: pb.decision_function(pb.models.truncate(model, 3), X),
        "continue_fit": lambda: pb.decision_function(_continued(model), X),
        "oob": lambda: _out_of_bag(getattr(model, "oob", None)),
        "fields": lambda: _fields(model, "classes n_features bias n_nodes certificate_note"),
    }


def _explained(found: Any) -> dict[str, Any]:
    tests = found.tests
    path = {k: [getattr(t, k) for t in tests] for k in ("node", "value", "threshold", "total")}
    label = {} if found.label is None else {"label": found.label}
    return {**path, "score": found.score, **label, "text": str(found)}


def _out_of_bag(found: Any) -> dict[str, Any]:
    """Return the fields of a record by the names that they had at first."""
    if found is None:
        return {}
    known = {"members": "n_estimators"}
    return {k: getattr(found, known.get(k, k)) for k in ("error", "members", "prediction")}


def _fields(found: Any, names: str) -> dict[str, Any]:
    values = {name: getattr(found, name, None) for name in names.split()}
    return {name: value for name, value in values.items() if value is not None}


def _continued(model: Any) -> Any:
    is_words = model.classes is not None and model.classes.dtype.kind == "U"
    target = fits.WORDS if is_words else fits.TWO
    more = {"n_estimators": 3} if getattr(model, "is_chain", False) else {"max_nodes": 3}
    options = {"rng": 5, "n_threads": 1, **more}
    return pb.continue_fit(model, fits.X, target, **options)


def files() -> list[Path]:
    """Return the model files."""
    return sorted(path for path in MODELS.glob("*.npz") if not path.stem.endswith(".outputs"))


def kind_of(path: Path) -> str:
    """Return what the header of a file calls its model."""
    with np.load(path, allow_pickle=False) as stored:
        return str(json.loads(stored["header"].tobytes())["kind"])


def expected(path: Path) -> dict[str, np.ndarray]:
    """Return what was answered when a model file was made."""
    with np.load(path.with_suffix(".outputs.npz"), allow_pickle=False) as stored:
        return dict(stored)


def record() -> dict[str, Any]:
    """Return the digests of the models, and the fingerprint of the machine that gave answers."""
    parsed: dict[str, Any] = json.loads(RECORD.read_text())
    return parsed


def _write() -> None:
    known = record()
    for name, (target, make) in kinds().items():
        path = MODELS / f"{name}.{target}.npz"
        if path.exists():
            continue
        pb.save(make(), path)
        model = pb.load(path)
        np.savez_compressed(path.with_suffix(".outputs.npz"), **dict(outputs(model, target)))
        known["digests"][path.stem] = digest(model)
        print(path.name)
    RECORD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


class _ByName(pickle.Unpickler):
    """Finds the classes of the package by their names, wherever they are defined now."""

    def find_class(self, module: str, name: str) -> Any:
        if not module.startswith("pboost"):
            return super().find_class(module, name)
        name = RENAMED_CLASSES.get(name, name)
        loaded = (m for key, m in sorted(sys.modules.items()) if key.startswith("pboost"))
        return next(getattr(m, name) for m in loaded if hasattr(m, name))


def _unpack(folder: Path) -> None:
    for path in files():
        (folder / f"{path.stem}.pickle").write_bytes(pickle.dumps(pb.load(path)))


def _pack(folder: Path) -> None:
    expected = record()["digests"]
    for path in files():
        model = _ByName(io.BytesIO((folder / f"{path.stem}.pickle").read_bytes())).load()
        pb.save(model, path)
        assert digest(pb.load(path)) == expected[path.stem], path.name


def main() -> int:
    """Write the files that are not there, or convert those that are."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true", help="write the files that are not there")
    choice.add_argument("--unpack", type=Path, metavar="FOLDER", help="write pickles of all models")
    choice.add_argument("--pack", type=Path, metavar="FOLDER", help="save the models of pickles")
    options = parser.parse_args()
    if options.unpack:
        _unpack(options.unpack)
    elif options.pack:
        _pack(options.pack)
    else:
        _write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
