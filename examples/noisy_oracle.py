"""Boosting readers who err at a rate that nobody knows.

Each weak classifier is a reader of medical images, say, who was told to look at one of several
marks. Readers err, the more often the weaker the mark, and give another answer when asked again.
Two models are trained on them: one takes a single answer of each reader for certain, the other
asks again until that no longer pays. Run as ``python noisy_oracle.py``: prints the error of both on
new cases, where each reader is asked once, and what their certificates claim.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pboost as pb

N_TRAIN, N_TEST, N_MARKS = 150, 2000, 6
#: Share of wrong answers where the mark is at the reader's threshold, and where it is plain.
UNSURE, SURE = 0.5, 0.15

Answer = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]


class Readers:
    """A weak learner: finds a reader, and counts how many answers are asked for."""

    def __init__(self) -> None:
        self.n_answers = 0

    def train(
        self, X: NDArray[Any], y: NDArray[Any], weight: NDArray[Any], rng: np.random.Generator
    ) -> Answer:
        """Return the reader of the mark whose mean differs most between the classes."""
        plus, minus = weight * (y > 0), weight * (y < 0)
        means = plus @ X / plus.sum(), minus @ X / minus.sum()
        mark = int(np.abs(means[0] - means[1]).argmax())
        middle, sign = (means[0] + means[1])[mark] / 2, np.sign(means[0] - means[1])[mark]

        def answer(X: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
            self.n_answers += len(X)
            distance = np.abs(X[:, mark] - middle)
            wrong = rng.random(len(X)) < SURE + (UNSURE - SURE) * np.exp(-distance)
            return np.where((sign * (X[:, mark] - middle) > 0) ^ wrong, 1, -1)

        return answer


def cases(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return marks (n, N_MARKS) and labels; every mark says a little."""
    y = rng.choice([-1, 1], n)
    return rng.normal(size=(n, N_MARKS)) + 0.7 * y[:, None], y


def compare(n_estimators: int, repeats: int) -> dict[str, NDArray[np.float64]]:
    """Return means over data sets of (test error, certificate, mean exp(-Hy), answers per row)."""
    observations = {"one answer, taken as certain": pb.observation.exact()}
    observations["asked until it no longer pays"] = pb.observation.sampled("first_increase")
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in observations}
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        X, y = cases(N_TRAIN, rng)
        X_test, y_test = cases(N_TEST, rng)
        for name, observation in observations.items():
            readers = Readers()
            model = pb.fit_adaboost(
                X,
                y,
                n_estimators=n_estimators,
                weak_learner=pb.weak.oracle(readers.train),
                observation=observation,
                rng=seed,
            )
            asked = readers.n_answers / (N_TRAIN * n_estimators)
            again = pb.decision_function(model, X, route="sample", rng=seed)
            new = pb.decision_function(model, X_test, route="sample", rng=seed)
            error = np.mean((new > 0) != (y_test > 0))
            loss = np.mean(np.exp(-again * y))
            rows[name].append((error, pb.certificate(model), loss, asked))
    return {name: np.mean(item, axis=0) for name, item in rows.items()}


def main(arguments: list[str] | None = None) -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args(arguments)
    print(f"{options.rounds} readers, means of {options.repeats} sets of {N_TRAIN} cases")
    print(f"{'':32}{'error on':>12}{'certificate':>13}{'the same, asked':>17}{'answers per':>13}")
    print(f"{'':32}{'new cases':>12}{'claimed':>13}{'again':>17}{'reader, case':>13}")
    for name, (error, claimed, loss, asked) in compare(options.rounds, options.repeats).items():
        print(f"{name:32}{error:12.1%}{claimed:13.3f}{loss:17.3f}{asked:13.1f}")


if __name__ == "__main__":
    main()
