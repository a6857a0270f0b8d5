"""Subagged boosted probit trees. The trees of all members are stored in the same arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, chain
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from pboost._core import tree_walk
from pboost.data.node_inputs.inputs import in_sums
from pboost.data.read.table import Table
from pboost.models import schema as stored
from pboost.models.base import CostUnit, Model
from pboost.models.ensembles import REST_OR_CLASS, OneVsRest, WeightedVote, chance
from pboost.models.evaluate.exits import Exits, voting_exits
from pboost.models.evaluate.match_input import match_columns
from pboost.models.evaluate.partial_evaluation import MemberEvaluator, mean_of
from pboost.models.linear import chosen, probabilities
from pboost.models.probit_trees import (
    LEAST,
    Equations,
    ProbitTree,
    check_taken,
    means_of,
    taken_from,
    values_of,
    without,
)
from pboost.models.random_forest import RandomForest
from pboost.models.schema import (
    Arrays,
    Dtypes,
    Header,
    HeaderAndArrays,
    Labels,
    OutOfBag,
    Settings,
    Voting,
    check_offsets,
    check_shares,
    check_sum,
    check_vote,
)
from pboost.models.shares import (
    costs_by_then,
    lead_of_second,
    mean_of_shares,
    means_by_then,
    scaled_shares,
    shared_out,
    shares_of_leads,
)
from pboost.models.single_tree import SIDES, TREE_COLUMNS, ranges
from pboost.models.text import counted, headline, of_bags
from pboost.models.tree_ensemble import LEAF
from pboost.values import Array, FloatArray, IntArray, TableLike, check_position

#: Reasons for which boosting of a member can stop.
ALL_ROUNDS = "all rounds are done"
PERFECT = "a tree without errors determines the prediction"
NO_BETTER = "a tree was no better than guessing"


class EnsembleLabels(Labels):
    """The field `classes`, which is stored if it differs from the classes of the trees."""

    __slots__ = ()

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtype of the optional array."""
        return {"model_classes": (None, True)}

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the array; `SubaggedProbitTrees.parts` removes it if it is not needed."""
        return {}, {"model_classes": value}

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the class labels of the ensemble."""
        return arrays.get("model_classes", arrays["classes"])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SubaggedProbitTrees(Model):
    """Boosted probit trees fitted to subsamples, see `fit_sbpmt`.

    ``model[i]`` is member i of the ensemble, a `WeightedVote` of `ProbitTree` models.
    ``len(model)`` is the number of members, and ``model[:k]`` contains the first k members.

    Attributes
    ----------
    trees : RandomForest
        The splits of all trees, in the order of members and boosting rounds. A round has one
        tree per class with ``one_vs_rest="tree"`` and more than two classes, else one tree.
    coefficient : ndarray of float64, shape (n_leaves, K, 1 + n_added)
        Coefficients in the leaves of all trees, see `ProbitTree`. K is 1 with two classes or with
        one tree per class, else J.
    taken : ndarray of int32, shape (n_leaves, K)
        Number of ProbitBoost steps of each function, see `ProbitTree`.
    risk : ndarray of float64, shape (n_leaves, K)
        Weighted mean loss of each function on the training rows of its leaf.
    spread : ndarray of float64, shape (n_added,)
        Weighted standard deviation of each feature or category indicator on the training rows.
    leaf_mean, mean : ndarray of float64 or None
        Replacements for missing values, see `ProbitTree`.
    alpha : ndarray of float64, shape (n_rounds,)
        Weight of each round in the vote of its member.
    start : ndarray of int32, shape (n_members + 1,)
        Index of the first round of each member, followed by the number of rounds.
    error : ndarray of float64, shape (n_members, rounds)
        Weighted training error of each round; NaN after the last round of a member.
    class_rows : ndarray of int32, shape (n_members, J)
        Number of rows of each class in the subsample of each member.
    voting : {"hard", "soft"}
        Whether `predict_proba` averages predicted classes or class probabilities.
    classes : ndarray, shape (J,)
        The sorted class labels.
    settings : mapping
        The options of the fit.
    oob : OutOfBag
        Predictions of each training row by the members that were not fitted to it.
    n_features, feature_names
        Number of training features, and their names; names may be None.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    trees: RandomForest = stored.part(RandomForest, more=("classes",), some=SIDES)
    coefficient: FloatArray = stored.column(
        np.float64, "n_leaves", "n_functions", lambda model: (1 + model.n_added,), ndim=3
    )
    taken: IntArray = stored.column(np.int32, "n_leaves", "n_functions")
    risk: FloatArray = stored.column(np.float64, "n_leaves", "n_functions", positive=True)
    spread: FloatArray = stored.column(np.float64, "n_added", positive=True)
    alpha: FloatArray = stored.column(np.float64, "n_rounds", finite=False)
    start: IntArray = stored.column(np.int32, ndim=1)
    error: FloatArray = stored.column(np.float64, ndim=2, finite=False)
    class_rows: IntArray = stored.column(
        np.int32, lambda model: (len(model), len(model.classes)), positive=True
    )
    voting: Voting = stored.header(lambda value: True, checked=check_vote, from_file=str)
    classes: Array = stored.kept_as(EnsembleLabels())
    settings: Settings = stored.settings()
    oob: OutOfBag | None = stored.part(OutOfBag, "record")
    leaf_mean: FloatArray | None = stored.column(np.float64, "n_leaves", "n_added", optional=True)
    mean: FloatArray | None = stored.in_header("n_added")
    n_features: int = stored.of_part("trees", "n_features")
    feature_names: tuple[str, ...] | None = stored.of_part("trees", "feature_names")
    table: Table | None = stored.of_part("trees", "table")
    n_nodes: int = stored.of_part("trees", "n_nodes")
    #: Index of each leaf in `coefficient`, by node.
    leaf: IntArray = stored.made(
        lambda model: (np.cumsum(model.trees.feature == LEAF) - 1).astype(np.int32), late=False
    )
    n_leaves: int = stored.made(lambda model: int(model.leaf[-1]) + 1, late=False)

    _public: ClassVar = ("n_rounds", "stop_reasons", "tree", "trees_per_round")
    no_graph = "whose members, model[i], are models"
    instead: ClassVar = {
        "truncate": "use model[:k] for the first k members",
        "plot.graph": "plot.tree draws one tree",
    }
    no_trees = "whose leaves are linear functions; use coefficients or to_c"
    file_kind, file_stop = "subagged-probit-trees", "all members are there"
    file_order = (
        *("root", *TREE_COLUMNS, "classes", "oob_members", "oob_prediction", "model_classes"),
    )

    def check_whole(self) -> None:
        """Check that the trees and the other arrays are compatible."""
        trees, n_rounds = self.trees, self.n_rounds
        if trees.classes is None:
            raise ValueError("classes: expected the classes of a classifier, got None")
        expected = REST_OR_CLASS if self.is_tree_per_class else self.classes
        if not np.array_equal(trees.classes, expected):
            raise ValueError(
                f"classes: expected the same classes as in the trees, got {self.classes.tolist()}"
            )
        if len(trees) != n_rounds * self.trees_per_round:
            raise ValueError(
                f"root: expected one tree for each of {len(self.classes)} classes in every round"
            )
        check_taken(self.taken)
        check_offsets("start", self.start, n_rounds)
        if not (np.isfinite(self.alpha).all() and (self.alpha > 0).all()):
            raise ValueError("alpha: expected finite numbers > 0")
        check_sum("alpha", self.alpha)
        if not (trees.weight[trees.root[:-1]] > 0).all():
            raise ValueError("weight: expected a number > 0 at each root")
        rounds = np.isfinite(self.error).sum(axis=1)
        if self.error.shape[:1] != (len(self),) or (rounds < np.diff(self.start)).any():
            raise ValueError("error: expected one number per round")
        check_shares("error", self.error)
        if self.oob is not None:
            self.oob.check(self.classes)

    def __repr__(self) -> str:
        return f"<fit_sbpmt: {len(self)} members, {len(self.trees)} trees>"

    def __len__(self) -> int:
        return len(self.start) - 1

    @overload
    def __getitem__(self, member: int) -> WeightedVote: ...
    @overload
    def __getitem__(self, member: slice) -> SubaggedProbitTrees: ...
    def __getitem__(self, member: int | slice) -> WeightedVote | SubaggedProbitTrees:
        if isinstance(member, slice):
            return self._some(np.arange(len(self))[member])
        member = check_position("member", member, len(self))
        first, last = self.start[member : member + 2].tolist()
        error = self.error[member]
        return WeightedVote(
            tuple(self._round(r, member) for r in range(first, last)),
            self.alpha[first:last],
            self.classes,
            np.zeros(len(self.classes)),
            self.settings,
            error[np.isfinite(error)],
            self.stop_reasons[member],
        )

    def __iter__(self) -> Iterator[WeightedVote]:
        return (self[i] for i in range(len(self)))

    def _some(self, members: NDArray[np.intp]) -> SubaggedProbitTrees:
        """Return the model with the given members only."""
        if not len(members):
            raise ValueError(f"member: expected at least one of {len(self)} members, got none")
        first, last, each = self.start[members], self.start[members + 1], self.trees_per_round
        rounds, trees = ranges(first, last), ranges(first * each, last * each)
        before = np.append(0, self.leaf + 1)[self.trees.root]  # leaves before each tree
        leaves = ranges(before[trees], before[trees + 1])
        return replace(
            self,
            trees=self.trees.only(trees),
            coefficient=self.coefficient[leaves],
            taken=self.taken[leaves],
            risk=self.risk[leaves],
            leaf_mean=taken_from(self.leaf_mean, leaves),
            alpha=self.alpha[rounds],
            start=np.cumsum([0, *(last - first)]),
            error=self.error[members],
            class_rows=self.class_rows[members],
            oob=None,
        )

    def _round(self, number: int, member: int) -> ProbitTree | OneVsRest:
        """Return the base learner of a round."""
        if not self.is_tree_per_class:
            return self.tree(number)
        j, trees = len(self.classes), []
        for k, rows in enumerate(self.class_rows[member].tolist()):
            tree = self.tree(number * j + k)
            if rows == 0:  # never predict this class
                lost = np.zeros_like(tree.coefficient)
                lost[..., 0] = LEAST
                tree = replace(tree, coefficient=lost)
            trees.append(tree)
        return OneVsRest(tuple(trees), self.classes, self.settings)

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether missing values are accepted."""
        return self.trees.takes_missing and means_of(self) is not None

    @property
    def is_tree_per_class(self) -> bool:
        """Whether there are more than two classes and each round has one tree per class."""
        return len(self.classes) > 2 and self.coefficient.shape[1] == 1

    @property
    def trees_per_round(self) -> int:
        """Number of trees per round."""
        return len(self.classes) if self.is_tree_per_class else 1

    @property
    def n_rounds(self) -> int:
        """Total number of rounds of all members."""
        return len(self.trees) // self.trees_per_round

    @property
    def n_functions(self) -> int:
        """Number of functions in each leaf."""
        return 1 if len(self.classes) == 2 or self.is_tree_per_class else len(self.classes)

    def tree(self, number: int) -> ProbitTree:
        """Return a tree by its index among the trees of all members."""
        partition = self.trees[number]
        first = int(self.leaf[self.trees.root[number]])
        # At an inner node, `leaf` is the index of the previous leaf.
        first += int(partition.n_nodes > 1)
        rows = slice(first, first + partition.n_leaves)
        return ProbitTree(
            partition,
            self.coefficient[rows],
            self.taken[rows],
            self.risk[rows],
            self.spread,
            taken_from(self.leaf_mean, rows),
            self.mean,
        )

    def equations(self) -> tuple[FloatArray, FloatArray, IntArray | None]:
        """Return the coefficients, the weight of each leaf, and the class index of each leaf.

        Weights sum to 1 for each class. Class indices are None unless each class has its own trees.
        """
        weight, is_leaf = self.trees.weight, self.trees.feature == LEAF
        n_trees, each = len(self.trees), self.trees_per_round
        share = weight / weight[self.trees.start] * each / n_trees
        of = self.trees.by_node(np.arange(n_trees, dtype=np.int32) % each)
        return self.coefficient, share[is_leaf], of[is_leaf] if self.is_tree_per_class else None

    @property
    def stop_reasons(self) -> tuple[str, ...]:
        """For each member, the reason why boosting stopped."""
        sentences, sizes = [], np.diff(self.start)
        for error, size in zip(self.error, sizes.tolist(), strict=True):
            errors = error[np.isfinite(error)]
            if errors[-1] == 0:
                sentences.append(PERFECT)
            elif len(errors) > size or errors[-1] >= chance(len(self.classes)):
                sentences.append(NO_BETTER)
            else:
                sentences.append(ALL_ROUNDS)
        return tuple(sentences)

    @property
    def lost(self) -> tuple[tuple[int, Any], ...]:
        """Pairs (member, class) for which the subsample of the member contains no row."""
        names = self.classes.tolist()
        return tuple((int(i), names[j]) for i, j in np.argwhere(self.class_rows == 0))

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the mean vote (n, J) of the members."""
        return self._said(X, lambda answers: answers.sum(axis=1), ()) / len(self)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the second class probability minus the first, or all J > 2 probabilities."""
        return self._score(self.predict_proba(X))

    @property
    def explained(self) -> str:
        """Name of the quantity that is the sum of the contributions."""
        return "decision value" if len(self.classes) == 2 else "probability"

    def contributions(self, X: TableLike) -> FloatArray:
        """Divide the decision value, or J > 2 probabilities, into contributions of the features.

        The vote of a member is divided in proportion to the contributions in its trees.
        """
        total = np.zeros((1 + self.n_features, len(self.classes)))
        for member in self:
            if self.voting == "hard":
                answer = member.classes == member.predict(X)[0]
                total += shared_out(answer, member.contributions(X))
                continue
            share = member.alpha / member.alpha.sum()
            for weight, tree in zip(share.tolist(), member.models, strict=True):
                answer = tree.predict_proba(X)[0]
                total += weight * shared_out(answer, tree.vote_parts(X))
        total /= len(self)
        return lead_of_second(total) if len(self.classes) == 2 else total

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the mean feature importances of the members."""
        each = ((1.0, member.importances(X)) for member in self)
        return mean_of_shares(self.n_features, each)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values of the first 1, 2, ... members."""
        answers = self._said(X, lambda answers: answers, (len(self),))
        total = np.zeros(answers[:, 0].shape)
        for member in range(len(self)):
            total += answers[:, member]
            yield self._score(total / (member + 1))

    @property
    def n_stages(self) -> int:
        """Number of members."""
        return len(self)

    def proven(self) -> Exits:
        """Return the early exits at which the remaining members cannot change the prediction."""
        return voting_exits(len(self), self.n_votes)

    def first(self, n_stages: int) -> SubaggedProbitTrees:
        """Return a model that contains only the first members."""
        return self[:n_stages]

    def scaled(self, score: FloatArray, slope: FloatArray) -> FloatArray:
        """Multiply decision values, or the differences from equal probabilities, by `slope`."""
        return scaled_shares(score, slope)

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the decision values and the costs of the first 0, 1, ... members."""
        features = match_columns(self, X)
        of_trees = [self.tree(t).prediction_cost(features, "nodes") for t in range(len(self.trees))]
        cost = np.add.reduceat(of_trees, self.start[:-1] * self.trees_per_round)
        answers = self._said(X, lambda answers: answers, (len(self),))
        means = means_by_then(np.moveaxis(answers, 1, 0))
        return lead_of_second(means) if len(self.classes) == 2 else means, costs_by_then(cost)

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return class probabilities (n, J) for decision values."""
        return shares_of_leads(score)

    def inquiry(self, settles: bool) -> MemberEvaluator:
        """Return an evaluator for feature acquisition that evaluates the members in turn."""
        members = [member.inquiry(settles) for member in self]
        if self.voting == "soft":
            members = [mean_of(m.model, m.members, self.voting, settles, m.weight) for m in members]
        return mean_of(self, members, self.voting, settles)

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons and coefficients per training row, summed over the trees."""
        return float(sum(self.tree(t).mean_prediction_cost for t in range(len(self.trees))))

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the prediction cost of each row, summed over the trees."""
        features = match_columns(self, X)
        trees = map(self.tree, range(len(self.trees)))
        return reduce(np.add, (tree.prediction_cost(features, unit) for tree in trees))

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask of the features read by the first 1, 2, ... members."""
        features = match_columns(self, X)
        ends = set((self.start[1:] * self.trees_per_round).tolist())
        trees = (self.tree(t).reads(features) for t in range(len(self.trees)))
        by_then = accumulate(chain.from_iterable(trees), np.logical_or)
        return (read for t, read in enumerate(by_then, start=1) if t in ends)

    def describe(self) -> str:
        """Return a summary of the model."""
        members, trees = counted(len(self), "member"), counted(len(self.trees), "tree")
        leaves = f"{len(self.coefficient) / len(self.trees):.1f} leaves on average"
        reason_counts = Counter(self.stop_reasons).items()
        lines = [
            headline(self, f"fit_sbpmt: {members}", trees, leaves),
            *(f"{counted(n, 'member')} stopped: {reason}" for reason, n in reason_counts),
            *(f"member {i} was trained without class {label!r}" for i, label in self.lost),
            *of_bags(self.oob),
        ]
        return "\n".join(lines)

    def _score(self, share: FloatArray) -> FloatArray:
        return lead_of_second(share) if share.shape[1] == 2 else share

    def said_at(self, member: int, values: Array) -> FloatArray:
        """Return the vote (n, J) of one member; infinite values raise an error."""
        start = self.start[member : member + 2]
        first, last = (start * self.trees_per_round).tolist()
        low, high = self.trees.root[[first, last]]
        trees, leaf = self.trees.only(np.arange(first, last)), self.leaf[low:high]
        at = Equations(trees, leaf, self.coefficient, self.taken, means_of(self))
        of_trees = np.empty((len(values), last - first, self.coefficient.shape[1]))
        tile = np.empty(trees.tile_width * tree_walk.TILE_ROWS)
        added = in_sums(values, self.table)
        if at.walk(values, added, 0, len(values), tile, of_trees) < len(values):
            raise ValueError("X: expected finite numbers, got an infinite or a missing value")
        return self._said_of(of_trees, slice(member, member + 1))[:, 0]

    def _said(
        self, X: TableLike, reduced: Callable[[FloatArray], FloatArray], shape: tuple[int, ...]
    ) -> FloatArray:
        """Apply `reduced` to the votes (n, n_members, J); return an array (n, *shape, J)."""
        every = slice(0, len(self))
        at = Equations(self.trees, self.leaf, self.coefficient, self.taken, means_of(self))
        shape = *shape, len(self.classes)
        return values_of(
            self, at, X, shape, lambda leaf_values: reduced(self._said_of(leaf_values, every))
        )

    def _said_of(self, of_trees: FloatArray, members: slice) -> FloatArray:
        """Return the votes (n, n_members, J); `of_trees` has function values (n, n_trees, K).

        With soft voting, votes are mean probabilities. With hard voting, the vote is 1 for the
        class with the most votes, or the first of tied classes, and 0 for other classes.
        """
        start = self.start[members.start : members.stop + 1]
        alpha = self.alpha[start[0] : start[-1]]
        first, n, j, n_rounds = start[:-1] - start[0], len(of_trees), len(self.classes), len(alpha)
        flat = of_trees.reshape(n * n_rounds, -1)
        if self.is_tree_per_class:
            lost = np.repeat(self.class_rows[members] == 0, np.diff(start), axis=0)
            flat = without(flat.reshape(n, n_rounds, j), lost).reshape(-1, j)
        if self.voting == "soft":
            share = probabilities(flat).reshape(n, n_rounds, j) * alpha[:, None]
            total: FloatArray = np.add.reduceat(share, first, axis=1)
            return total / np.add.reduceat(alpha, first)[:, None]
        code = chosen(flat).reshape(n, n_rounds)
        if j == 2:
            signed = np.add.reduceat(np.where(code == 1, alpha, -alpha), first, axis=1)
            winner = (signed > 0).astype(np.intp)
        else:
            votes = [
                np.add.reduceat(np.where(code == label, alpha, 0.0), first, axis=1)
                for label in range(j)
            ]
            winner = np.argmax(np.stack(votes, axis=-1), axis=-1)
        return (winner[..., None] == np.arange(j)).astype(np.float64)

    def parts(self) -> HeaderAndArrays:
        """Return the header fields and the arrays of a file."""
        header, arrays = Model.parts(self)
        if not self.is_tree_per_class:
            del arrays["model_classes"]
        return header, arrays
