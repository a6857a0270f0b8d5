"""Models of two or more classes that are made of other models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.arrays import FloatArray, IntArray
from pboost.explanation import describe
from pboost.graph import DecisionGraph
from pboost.predictor import Model, Predictor
from pboost.values import check_position

#: The number of columns, and their names, if they have any.
Columns: TypeAlias = tuple[int, tuple[str, ...] | None]


class Composite(Predictor):
    """Base of models that are made of other models, which are stored with them.

    ``model[i]`` is member i.
    """

    __slots__ = ()

    no_graph: ClassVar[str] = "whose members, model.models, are models by themselves"
    #: The members.
    models: tuple[Any, ...]
    #: The options it was fitted with.
    settings: Mapping[str, Any]

    def __getitem__(self, member: int | slice) -> Any:
        if isinstance(member, slice):
            raise TypeError(
                f"model: a {type(self).__name__} cannot be cut, since what it keeps of its fit is "
                "of all its members; model.models is a tuple of them, which can"
            )
        return self.models[check_position("member", member, len(self.models))]

    def equations(self) -> tuple[FloatArray, FloatArray, IntArray | None]:
        """Raise TypeError: those of the members, if any, are of different models."""
        raise TypeError(
            f"model: a {type(self).__name__} is no linear function; see coefficients(model[i]) of "
            "its members"
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all members together."""
        return sum(check_known(member).n_nodes for member in self.models)

    @classmethod
    def from_models(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        models: tuple[Model, ...],
    ) -> Predictor:
        """Return the model of a file and of its members; ValueError where it is none."""
        raise NotImplementedError


class Ensemble(Composite):
    """Base of models of J >= 2 classes; what the functions of a model ask of them.

    The label predicted is always the first of those of the largest probability.
    """

    __slots__ = ()

    #: Label values, sorted, (J,).
    labels: NDArray[Any]

    def __repr__(self) -> str:
        builder = self.settings.get("builder", type(self).__name__)
        return f"<{builder}: {len(self.models)} models, {len(self.labels)} classes>"

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of the columns that the members were trained on, where they have any."""
        return next((member.feature_names for member in self._known()), None)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of columns that the members were trained on; 0 where it is not known."""
        return next((member.n_features for member in self._known()), 0)

    def _known(self) -> Iterator[Model]:
        return (member for member in self.models if not is_foreign(member))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of rows for each class, (n, J)."""
        raise NotImplementedError

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities (n, J) that go with decision values (n, J)."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, (n, J)."""
        return self.probabilities(self.decision_function(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of largest probability of each row."""
        return self.most_probable(self.predict_proba(X))

    def labels_of(self, score: FloatArray) -> NDArray[Any]:
        """Return the label of largest probability of each row, given its decision values."""
        return self.most_probable(self.probabilities(score))

    def most_probable(self, probabilities: FloatArray) -> NDArray[Any]:
        """Return the label of largest probability, the first of several."""
        found: NDArray[Any] = self.labels[np.argmax(probabilities, axis=1)]
        return found

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return what evaluating each row costs, in "nodes"."""
        if unit != "nodes":
            raise NotImplementedError('unit: expected "nodes" for a model of several members')
        return self.count_nodes(X)

    def count_nodes(self, X: Any) -> FloatArray:
        """Return the number of weak classifiers that are evaluated for each row, (n,)."""
        raise NotImplementedError

    def titles(self) -> list[str]:
        """Return what is said of the whole, and then of each member."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return the model as text: what is said of the whole, then each member, indented."""
        whole, *titles = self.titles()
        lines = [whole]
        for title, member in zip(titles, self.models, strict=True):
            text = repr(member) if is_foreign(member) else describe(member)
            lines += [title, *(f"  {line}" for line in text.splitlines())]
        return "\n".join(lines)


def is_foreign(member: Any) -> bool:
    """Return whether a member is no model of this package but an object with ``predict``."""
    return not isinstance(member, DecisionGraph | Predictor)


def check_members(
    models: tuple[Any, ...], labels: NDArray[Any] | None, columns: Columns | None = None
) -> None:
    """Raise ValueError unless the members of a model agree on columns and labels.

    `labels` of the whole, or None of a regression; `columns`: its number of columns and their
    names, where it says them. Of objects that are no models of this package nothing is known.
    """
    for k, member in enumerate(models):
        if is_foreign(member):
            continue
        own = (member.n_features, member.feature_names)
        columns = own if columns is None else columns
        if own[0] != columns[0] or (None not in (own[1], columns[1]) and own[1] != columns[1]):
            raise ValueError(
                f"models: expected models of the same columns, got {_columns(columns)}, and "
                f"{_columns(own)} of models[{k}]"
            )
        if labels is None:
            agree = member.labels is None or member.labels.dtype.kind in "biuf"
        else:
            # A member need not know every class.
            agree = member.labels is not None and bool(
                (member.labels.dtype.kind == "U") == (labels.dtype.kind == "U")
                and np.isin(member.labels, labels).all()
            )
        if not agree:
            found = None if member.labels is None else member.labels.tolist()
            expected = "numbers" if labels is None else f"labels among {labels.tolist()}"
            raise ValueError(
                f"models: expected models that predict {expected}, got labels {found} of "
                f"models[{k}]"
            )


def _columns(columns: Columns) -> str:
    n, names = columns
    return f"{n} columns" + ("" if names is None else f" named {', '.join(map(repr, names))}")


def check_known(member: Any) -> Model:
    """Return a member that is a model of this package; of others the size is not known."""
    if is_foreign(member):
        raise NotImplementedError(
            f"model: what evaluating a {type(member).__name__} costs is not known"
        )
    known: Model = member
    return known
