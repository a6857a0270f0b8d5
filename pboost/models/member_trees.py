"""The trees of models that are made of other models: those of all members, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.models.attribution import among
from pboost.models.base import Model
from pboost.models.ensembles import Bagging, OneVsRest, WeightedVote
from pboost.models.tree_record import LEAF, NO_SET, TreeSum
from pboost.values import FloatArray, IntArray

#: What one value of a member says of its label, by the member's link: of several values which say
#: the same of each of two labels it is the lead of the second.
LINK_OF_LEAD = {"shares": "lead", "softmax": "log odds"}


class NoTreesError(TypeError):
    """A model is no sum of trees."""


class Parts(NamedTuple):
    """What the members add to the values of a whole.

    `value` has (nodes, K) numbers for each member, `bias` (J,) is added, `target` and
    `aggregation` are those of a `TreeSum`, and `link`.
    """

    value: list[FloatArray]
    bias: FloatArray
    aggregation: str
    link: str
    target: IntArray | None = None


def no_trees(model: Model, why: str) -> NoTreesError:
    """Return what to raise for a model that is no sum of trees."""
    return NoTreesError(f"model: expected a sum of trees, got a {type(model).__name__}, {why}")


def parts_of_rest(model: OneVsRest, members: Sequence[TreeSum]) -> Parts:
    """Return what each member adds to the value of its label."""
    value, bias, links = [], [], set()
    for trees in members:
        own, start, link = trees.value, trees.bias, trees.link
        if trees.n_values == 2:
            own, start = _lead(trees, own), start[1:] - start[:1]
            link = LINK_OF_LEAD.get(link, "none")
        value.append(_of_sum(trees, own))
        bias.append(start)
        links.add(link)
    link = links.pop() if len(links) == 1 else "none"
    turn = np.arange(len(members), dtype=np.int32)
    target = np.repeat(turn, [trees.n_trees for trees in members])
    return Parts(value, np.concatenate(bias), "sum", link, target)


def _lead(trees: TreeSum, value: FloatArray) -> FloatArray:
    """Return by how much the second of two values leads, (nodes, 1)."""
    if trees.target is None:
        return value[:, 1:] - value[:, :1]
    of = np.repeat(trees.target, np.diff(trees.root))[:, None]
    return np.where(of == 1, value, -value)


def _of_sum(trees: TreeSum, value: FloatArray) -> FloatArray:
    """Return values of nodes as they are where trees are added up."""
    return value / trees.n_trees if trees.aggregation == "mean" else value


def parts_of_votes(model: WeightedVote, members: Sequence[TreeSum]) -> Parts:
    """Return the votes of members that are one tree: each leaf has an answer."""
    value = []
    for k, (member, trees) in enumerate(zip(model.models, members, strict=True)):
        _check_one(model, k, trees, "a sum of {} trees, whose answer is not one")
        answer = _at_leaves(trees, _answers(member, trees, model.labels))
        value.append(float(model.alpha[k]) * answer)
    return Parts(value, model.bias, "sum", "softmax")


def parts_of_bags(model: Bagging, members: Sequence[TreeSum]) -> Parts:
    """Return what members say at their leaves, where the mean of that is a mean of trees."""
    labels, n = model.labels, len(members)
    value, bias = [], np.zeros(1 if labels is None else len(labels))
    for k, (member, trees) in enumerate(zip(model.models, members, strict=True)):
        if labels is None and trees.labels is None and trees.link == "identity":
            value.append(trees.value)
            bias = bias + trees.bias / n
        elif labels is not None and model.vote == "average" and trees.link == "shares":
            value.append(among(trees.value, labels, member.labels))
        else:
            said = "numbers" if labels is None else model.vote
            _check_one(model, k, trees, SAID[said])
            value.append(_at_leaves(trees, _said(member, trees, labels, model.vote)))
    link = "identity" if labels is None else "shares"
    # Where the mean of all trees is the mean of the members no number is divided before the end.
    sizes = {trees.n_trees for trees in members}
    if len(sizes) == 1 and all(t.n_trees == 1 or t.aggregation == "mean" for t in members):
        return Parts(value, bias, "mean", link)
    pairs = zip(members, value, strict=True)
    return Parts([_of_sum(trees, own) / n for trees, own in pairs], bias, "sum", link)


#: Why the trees of a member are not added up in a mean of what members say.
SAID = {
    "numbers": "a sum of {} trees, and what it predicts is not one",
    "average": "a sum of {} trees, whose probabilities, which are averaged, are not one",
    "majority": "a sum of {} trees, whose answer, which is counted, is not one",
}


def _check_one(model: Model, k: int, trees: TreeSum, said: str) -> None:
    """Raise NoTreesError unless a member is one tree, so that it says one thing at each leaf."""
    if trees.n_trees > 1:
        raise no_trees(
            model,
            f"whose members answer before they are put together: models[{k}] is "
            f"{said.format(trees.n_trees)}. export_c writes such models, and model[i] are members "
            "that are sums of trees",
        )


def _said(member: Any, trees: TreeSum, labels: NDArray[Any] | None, vote: str) -> FloatArray:
    """Return what a member that is one tree says at each node, see `members.said_by`."""
    if labels is None:
        return np.asarray(_predicted(member, trees), dtype=np.float64)[:, None]
    if vote == "average":
        try:
            share = member.probabilities(_values(trees))
        except NotImplementedError:  # of a loss without probabilities
            pass
        else:
            return among(share, labels, member.labels)
    return _answers(member, trees, labels)


def _answers(member: Any, trees: TreeSum, labels: NDArray[Any]) -> FloatArray:
    """Return 1 for the label that a member predicts at each node, among all, (nodes, J)."""
    place = np.searchsorted(labels, _predicted(member, trees))
    return (place[:, None] == np.arange(len(labels))).astype(np.float64)


def _predicted(member: Any, trees: TreeSum) -> NDArray[Any]:
    """Return what a member that is one tree predicts at each node."""
    values = _values(trees)
    if trees.link == "shares" and trees.labels is not None:
        found: NDArray[Any] = trees.labels[np.argmax(values, axis=1)]
        return found
    predicted: NDArray[Any] = member.labels_of(values)
    return predicted


def _values(trees: TreeSum) -> FloatArray:
    """Return the values of rows at the leaves of a tree: (nodes,), or of several (nodes, J)."""
    value = trees.value + trees.bias
    return value[:, 0] if trees.n_values == 1 else value


def _at_leaves(trees: TreeSum, said: FloatArray) -> FloatArray:
    """Return what is said at leaves, and 0 at other nodes."""
    return np.where(trees.feature[:, None] == LEAF, said, 0.0)


def joined(model: Model, members: Sequence[TreeSum], parts: Parts, said: dict[str, Any]) -> TreeSum:
    """Return the trees of all members as those of one model, of which this is `said` besides."""
    table = members[0].table
    if any(trees.table != table for trees in members):
        raise no_trees(
            model, "whose members number categories in different ways; convert them one by one"
        )
    missing, weight = ([getattr(t, name) for t in members] for name in ("missing", "weight"))
    refuses = [part is None for part in missing]
    if any(refuses) and any(trees.n_sets for trees in members):
        raise no_trees(
            model,
            "of whose members some refuse missing values, and others ask for levels; "
            "export_c writes such models",
        )
    sets = np.cumsum([0, *(trees.n_sets for trees in members)])
    level_set = [
        np.where(trees.level_set == NO_SET, NO_SET, trees.level_set + first)
        for trees, first in zip(members, sets.tolist(), strict=False)
    ]
    sizes = np.concatenate([np.diff(trees.root) for trees in members])
    together: dict[str, Any] = {
        name: np.concatenate([getattr(trees, name) for trees in members])
        for name in ("feature", "threshold", "children", "sets")
    }
    return TreeSum(
        root=np.cumsum([0, *sizes], dtype=np.int32),
        **together,
        level_set=np.concatenate(level_set),
        value=np.concatenate(parts.value),
        bias=parts.bias,
        missing=None if any(refuses) else np.concatenate(missing),
        weight=None if any(part is None for part in weight) else np.concatenate(weight),
        aggregation=parts.aggregation,
        link=parts.link,
        target=parts.target,
        **{**said, "table": table},
    )
