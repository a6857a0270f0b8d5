"""Separators: the sign of the sum of the votes of a boosted chain of stumps."""

from __future__ import annotations

import numpy as np

from reference.adaboost import fit_adaboost

#: Sums up to this are 0: votes that cancel but for rounding.
ZERO = 1e-8


def sums(feature, threshold, vote, X):
    """Return the sum of the votes of stumps for each row, added up stump by stump."""
    total = np.zeros(len(X))
    for j, t, (below, above) in zip(feature, threshold, vote, strict=True):
        total += np.where(np.asarray(X)[:, j].astype(float) > t, above, below)
    return total


class SeparatorLearner:
    """For `reference.soft.Setting`: a separator trained becomes a further column of X."""

    def __init__(self, **options):
        self.options = options
        self.d = None
        self.chains = {}  # by column

    def search(self, setting, rows, mass):
        """Return (column, 0) or None if all rows are on one side."""
        self.d = setting.X.shape[1] if self.d is None else self.d
        X, y = setting.X[:, : self.d], setting.y
        chain = fit_adaboost(X[rows], y[rows], sample_weight=mass[rows], **self.options)
        if not len(chain.feature):
            return None
        column = sums(chain.feature, chain.threshold, chain.vote, X)
        column[np.abs(column) <= ZERO] = 0
        above = column > 0
        if mass[rows & above].sum() <= 0 or mass[rows & ~above].sum() <= 0:
            return None
        setting.X = np.column_stack([setting.X, column])
        self.chains[setting.X.shape[1] - 1] = chain
        return setting.X.shape[1] - 1, 0.0
