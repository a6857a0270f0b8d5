"""Importances of a decision graph: what its nodes make of the certificate, from the rows."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr


def columns_of(model, number):
    """Return the columns that the number of a node reads, and their shares."""
    inputs = model.inputs
    if inputs is None:
        return [number], [1.0]
    terms = slice(*inputs.start[number : number + 2])
    if hasattr(inputs, "coefficient"):
        columns = inputs.index[terms]
        return columns, np.full(len(columns), 1 / len(columns))
    columns = np.unique(inputs.feature[terms])
    width = []
    for column in columns:
        stumps = [
            (t, v)
            for j, t, v in zip(
                inputs.feature[terms], inputs.threshold[terms], inputs.vote[terms], strict=True
            )
            if j == column
        ]
        edges = sorted({t for t, _ in stumps})
        points = [edges[0] - 1, *edges, edges[-1] + 1]
        sums = [sum(v[int(x > t)] for t, v in stumps) for x in points]
        width.append(max(sums) - min(sums))
    return columns, np.array(width) / sum(width)


def value_of(model, number, X):
    """Return what a node compares, of the rows X."""
    inputs = model.inputs
    if inputs is None:
        return X[:, number]
    terms = range(*inputs.start[number : number + 2])
    if hasattr(inputs, "coefficient"):
        return sum(inputs.coefficient[t] * X[:, inputs.index[t]] for t in terms)
    return sum(
        np.where(X[:, inputs.feature[t]] > inputs.threshold[t], *inputs.vote[t][::-1])
        for t in terms
    )


def importances(model, X, y):
    """Return the shares of the columns, of rows X of classes y (False and True) of equal weight.

    At each node the mean exponential loss of the rows that arrive, before and after its votes,
    times their share.
    """
    n, sign = len(X), np.where(y, 1.0, -1.0)
    reach = np.zeros((model.n_nodes + 1, n))  # the last is that of the exits
    weight = np.zeros((model.n_nodes + 1, n))
    reach[0], weight[0] = 1 / n, np.exp(-model.bias * sign) / n
    actual = np.zeros(X.shape[1])
    for node in range(model.n_nodes):
        number = model.feature[node]
        far = value_of(model, number, X) - model.threshold[node]
        above = (far > 0).astype(float)
        if model.answer is not None:
            above = model.answer[node, (far > 0).astype(int), y.astype(int)]
        if model.sigma is not None:
            above = ndtr(far / model.sigma[number])
        after = 0.0
        for exit_, chance in enumerate((1 - above, above)):
            target = model.next[node, exit_]
            sent = weight[node] * chance * np.exp(-model.vote[node, exit_] * sign)
            weight[target] += sent
            reach[target] += reach[node] * chance
            after += sent.sum()
        share = reach[node].sum()
        decrease = weight[node].sum() / share - after / share
        columns, parts = columns_of(model, number)
        actual[columns] += max(decrease, 0.0) * share * np.asarray(parts)
    return actual / actual.sum()
