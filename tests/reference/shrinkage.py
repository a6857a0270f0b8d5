"""Leaf values shrunk along the path by the James-Stein rule, from the rows of each node."""

from __future__ import annotations


def shrunk_values(in_node, children, gradient, hessian, weight, l2, strength):
    """Return the shrunk Newton step of each node of a tree in preorder.

    `in_node` (n, n_nodes) has the nodes on the path of each row; `weight` is 1 for one row.
    """
    G, H, Q, N = (in_node.T @ (weight * k) for k in (gradient, hessian, gradient**2, 1.0))
    step = -G / (H + l2)
    within = Q - G**2 / N
    value = step.copy()
    for parent, (below, above) in enumerate(children):
        if below < 0:
            continue
        variance = sum((within[k] + within[parent] / N[parent]) / H[k] ** 2 for k in (below, above))
        difference = (G[below] / H[below] - G[above] / H[above]) ** 2
        kept = max(0.0, 1.0 - strength * variance / difference)
        for child in (below, above):
            value[child] = value[parent] + kept * (step[child] - step[parent])
    return value
