"""The trial of free and symmetric trees, from its definition: on rows by what is in them."""

from __future__ import annotations

import numpy as np

from reference import pooled, rounds
from reference.rounds import Columns

WORD = 2**64 - 1


def mixed(number):
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & WORD
    number = (number ^ number >> 27) * 0x94D049BB133111EB & WORD
    return number ^ number >> 31


def content(codes):
    """Return the number of a row with these codes."""
    return mixed(sum((mixed(j + 1) | 1) * int(code) for j, code in enumerate(codes)) & WORD)


def is_symmetric_better(columns, y, loss, copies, bias, *, n_rows, trees, errors, **options):
    """Return whether symmetric trees have the lower loss; rows of 0 copies take no part."""
    hashed = [content(of) for of in columns.codes.T]
    total = int(copies.sum())
    rows = [
        i for i in range(len(y))
        if copies[i] > 0 and hashed[i] < int(min(n_rows / total, 0.5) * 2.0**64)
    ]  # fmt: skip
    if len(rows) > 2 * n_rows or len({hashed[i] % 5 == 0 for i in rows}) < 2:
        return False
    of = np.repeat(rows, copies[rows])
    is_out = np.array([hashed[i] % 5 == 0 for i in of])
    few = Columns(columns.codes[:, of], columns.n_bins, columns.special)
    y, weight, listed = y[of], np.ones(len(of)), [np.flatnonzero(~is_out)] * trees
    losses = []
    for fit in (rounds.fit, lambda *a, **k: pooled.fit(*a, pooling=(1, 1.0), **k)):
        lost = 0.0
        for k in range(trees // 2 + 1, trees + 1):
            f = fit(few, y, loss, weight, bias=bias, rate=0.3, steps=k, listed=listed, **options).f
            lost = lost + loss.value(y, f)[is_out]
        losses.append(lost)
    difference = losses[1] - losses[0]
    spread = difference.std() / np.sqrt(len(difference))
    return bool(difference.mean() < -errors * spread)
