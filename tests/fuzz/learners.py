"""Random weak learners and observation models, and how often options are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pboost as pb
from fuzz.draw import Generator, Problem

CRITERIA = ("kearns_mansour", "gini", "entropy", "error")
Options = dict[str, Any]


def some(rng: Generator, options: Options, chance: float = 0.3) -> Options:
    """Return a random part of the options."""
    return {name: value for name, value in options.items() if rng.random() < chance}


def pick(rng: Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


# Weak learners that are functions


@dataclass
class Cut:
    """Answers -1 and 1 by a cut of the first column, wrong with some probability."""

    low: float
    sign: float
    rate: float = 0.0

    def __call__(self, X: Any, rng: Generator) -> np.ndarray:
        actual = np.where(X[:, 0] > self.low, self.sign, -self.sign)
        return actual * np.where(rng.random(len(X)) < self.rate, -1, 1) if self.rate else actual


@dataclass
class Squashed:
    """A real-valued hypothesis: the first column, squashed."""

    middle: float
    width: float

    def __call__(self, X: Any) -> np.ndarray:
        return np.tanh((X[:, 0] - self.middle) / self.width)


def train_cut(X: Any, y: Any, weight: Any, rng: Generator) -> Cut:
    """Cut the first column at its median; a function for ``weak.oracle``."""
    low = float(np.median(X[:, 0]))
    agreement = float(((X[:, 0] > low) * y * weight).sum())
    return Cut(low, 1.0 if agreement >= 0 else -1.0)


def train_noisy(X: Any, y: Any, weight: Any, rng: Generator) -> Cut:
    cut = train_cut(X, y, weight, rng)
    return Cut(cut.low, cut.sign, 0.2)


def train_real(X: Any, y: Any, weight: Any, rng: Generator) -> Squashed:
    ends = float(X[:, 0].min()), float(X[:, 0].max())
    return Squashed(ends[0] / 2 + ends[1] / 2, ends[1] / 2 - ends[0] / 2 + 1.0)


class Means:
    """An estimator: the nearer of two means of the first column."""

    def fit(self, X: Any, y: Any, sample_weight: Any) -> Means:
        self.low, self.high = (
            np.average(X[y == k, 0], weights=sample_weight[y == k]) if (y == k).any() else 0.0
            for k in (-1, 1)
        )
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        above = (X[:, 0] > (self.low + self.high) / 2) == (self.high > self.low)
        p = np.where(above, 0.8, 0.2)
        return np.column_stack([1 - p, p])


# Weak learners and observation models


def columns(rng: Generator) -> Options:
    return some(
        rng,
        {
            "criterion": pick(rng, *CRITERIA),
            "search": pick(rng, "exact", "binned"),
            "max_bins": int(rng.integers(2, 257)),
            "min_weight_fraction": float(rng.choice([0.0, 0.05, 0.5])),
            "min_samples_leaf": int(rng.integers(1, 5)),
        },
    )


def stump(rng: Generator) -> Any:
    return pb.weak.stump(**columns(rng))


def affine(rng: Generator) -> Any:
    more = {"n_directions": int(rng.integers(1, 20)), "n_terms": int(rng.integers(2, 4))}
    return pb.weak.affine(**columns(rng), **more, seed=int(rng.integers(9)))


def linear(rng: Generator) -> Any:
    chosen = {
        "criterion": pick(rng, *CRITERIA),
        "dense_gain": pick(rng, None, 0.0, 1.0),
        "max_pairs": int(rng.integers(1, 9)),
        "min_samples_leaf": int(rng.integers(1, 3)),
    }
    return pb.weak.linear(**some(rng, chosen, 0.5))


def separator(rng: Generator) -> Any:
    return pb.weak.separator(int(rng.integers(1, 6)), **some(rng, {"votes": "symmetric"}))


def table(rng: Generator) -> Any:
    rate = float(rng.choice([0.0, 0.1, 0.49]))
    kinds = ("exact", "exact", "uniform", "adatree2", "half", "flip")
    kind = pick(rng, *kinds)
    return pb.observation.flip(rate) if kind == "flip" else getattr(pb.observation, kind)()


def sampled(rng: Generator) -> Any:
    stop = pick(rng, 1, 3, "first_increase")
    estimator = pick(rng, "map", "ml")
    of = pick(rng, None, pb.observation.flip(0.2), pb.observation.adatree2())
    return pb.observation.sampled(stop, estimator, base=of, **most_draws(stop))


def most_draws(stop: Any) -> Options:
    return {"max_draws": 8} if isinstance(stop, str) else {}


def voting(rng: Generator) -> Options:
    chosen = {
        "smoothing": float(rng.choice([0.0, 0.01, 1.0])),
        "learning_rate": float(rng.choice([0.1, 0.5, 1.0])),
    }
    return some(rng, chosen)


def stopping(rng: Generator) -> Options:
    if rng.random() < 0.85:
        return {}
    return {"validation": 0.3, **some(rng, {"n_iter_no_change": int(rng.integers(1, 4))})}


#: How nodes answer: the name in the table, and what draws the learner and the observation.
LEARNERS: dict[str, Callable[[Generator, Problem], Options]] = {
    "stumps": lambda rng, p: {"weak_learner": stump(rng), "observation": table(rng)},
    "affine": lambda rng, p: {"weak_learner": affine(rng), "observation": table(rng)},
    "linear": lambda rng, p: {"weak_learner": linear(rng), "observation": table(rng)},
    "separators": lambda rng, p: {"weak_learner": separator(rng), "observation": table(rng)},
    "gaussian": lambda rng, p: {
        "weak_learner": pb.weak.stump(**{k: v for k, v in columns(rng).items() if k != "search"}),
        "observation": pb.observation.gaussian(sigma(rng, p)),
    },
    "sampled": lambda rng, p: {
        "weak_learner": stump(rng),
        "observation": sampled(rng),
        "rng": int(rng.integers(99)),
    },
    "oracles": lambda rng, p: {
        "weak_learner": pick(rng, pb.weak.oracle(train_cut), pb.weak.from_estimator(Means())),
        "observation": table(rng),
        "rng": int(rng.integers(99)),
    },
    "sampled oracles": lambda rng, p: {
        "weak_learner": pick(rng, pb.weak.oracle(train_noisy), pb.weak.from_estimator(Means())),
        "observation": pick(
            rng,
            pb.observation.sampled(2),
            pb.observation.sampled("first_increase", max_draws=8),
        ),
        "rng": int(rng.integers(99)),
    },
}


def sigma(rng: Generator, problem: Problem) -> Any:
    n, d = problem.X.shape
    shape = pick(rng, (), (d,), (n, d))
    actual = rng.uniform(0.05, 2.0, shape)
    return float(actual) if shape == () else actual
