"""Models of two or more classes that are made of other models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import check_columns, check_labels, check_settings
from pboost.data.held import held
from pboost.models._archive import FILES
from pboost.models.base import Model, Predictor, check_two_labels, lead_of_second
from pboost.models.graph import DecisionGraph
from pboost.models.new_rows import table_for
from pboost.models.out_of_bag import OOB_MEMBERS, OutOfBag, check_out_of_bag
from pboost.models.predict import evaluation_cost, predict
from pboost.models.text import describe
from pboost.values import FloatArray, IntArray, check_position, freeze

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


@dataclass(frozen=True, slots=True, eq=False)
class Bagging(Composite):
    """Models fitted to different bags of rows, which vote; made by `fit_bagging`.

    Attributes
    ----------
    models : tuple
        The members.
    labels : ndarray, shape (J,), or None
        The label values, sorted; None of a regression.
    n_features : int
        Number of columns the members were trained on.
    feature_names : tuple of str or None
        Their names, where the training data had names.
    settings : mapping
        The options of the fit.
    oob : OutOfBag
        The training record: what members say of rows that they have not seen.
    """

    models: tuple[Any, ...]
    labels: NDArray[Any] | None
    n_features: int
    feature_names: tuple[str, ...] | None
    settings: Mapping[str, Any]
    oob: OutOfBag

    file_kind: ClassVar[str] = "bagging"
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {**FILES, **OOB_MEMBERS}
    file_optional: ClassVar[Mapping[str, np.dtype[Any] | None]] = {"labels": None}

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple(self.models))
        if self.labels is not None:
            object.__setattr__(self, "labels", freeze(self.labels))
            check_labels(self.labels)
        object.__setattr__(self, "settings", dict(self.settings))
        if not self.models:
            raise ValueError("models: expected one or more, got none")
        check_columns(self.n_features, self.feature_names)
        check_settings(self.settings, "builder")
        check_members(self.models, self.labels, (self.n_features, self.feature_names))
        check_out_of_bag(self.oob, self.labels)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def __repr__(self) -> str:
        return f"<fit_bagging: {len(self.models)} members, {self.n_features} features>"

    def __len__(self) -> int:
        return len(self.models)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of most votes, the first among equals, or the mean of the numbers."""
        mean = self._mean(X)
        if self.labels is None:
            return mean
        found: NDArray[Any] = self.labels[np.argmax(mean, axis=1)]
        return found

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the share of the members that vote for each label."""
        if self.labels is None:
            raise TypeError("model: bagged regressions have no probabilities")
        return self._mean(X)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the predicted number, or by how much the second label has more of the votes."""
        if self.labels is None:
            return self._mean(X)
        check_two_labels("an ensemble", self.labels)
        return lead_of_second(self._mean(X))

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return what evaluating each row costs, the sum over the members."""
        X = table_for(self, X)
        with held(X):
            costs = [evaluation_cost(check_known(member), X, unit) for member in self.models]
        total: FloatArray = np.sum(costs, axis=0)
        return total

    def describe(self) -> str:
        """Return a summary of the ensemble."""
        of = "numbers" if self.labels is None else f"labels {self.labels.tolist()!r}"
        fit = self.settings.get("fit", "models")
        lines = [
            f"fit_bagging of {fit}: {len(self)} member{'s' * (len(self) != 1)}, "
            f"{self.n_features} feature{'s' * (self.n_features != 1)}, {of}"
        ]
        if np.isfinite(self.oob.error):
            lines.append(f"out-of-bag error {self.oob.error:.6g}")
        return "\n".join(lines)

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays, but for the models."""
        header = {name: getattr(self, name) for name in ("settings", "n_features", "feature_names")}
        header["stop_reason"] = "all models are there"
        fields_, arrays = self.oob.parts()
        if self.labels is not None:
            arrays["labels"] = self.labels
        return header | fields_, arrays

    @classmethod
    def from_models(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        models: tuple[Model, ...],
    ) -> Bagging:
        """Return the model of a file and of its members; ValueError where it is none."""
        names, oob = header.get("feature_names"), OutOfBag.from_parts(header, arrays)
        assert oob is not None  # every file of this kind has its arrays
        return cls(
            models, arrays.get("labels"), header["n_features"],
            None if names is None else tuple(names), header["settings"], oob,
        )  # fmt: skip

    def _mean(self, X: Any) -> FloatArray:
        X, n = table_for(self, X), len(self.models)
        with held(X):
            total = said_by(self.models[0], X, self.labels)
            for model in self.models[1:]:
                said = said_by(model, X, self.labels)
                with np.errstate(over="ignore", invalid="ignore"):
                    total += said
            if np.isfinite(total).all():
                return total / n
            # The mean is a number even where the sum is none.
            shares = (said_by(model, X, self.labels) / n for model in self.models)
            return reduce(np.add, shares)


def said_by(model: Any, X: Any, labels: NDArray[Any] | None) -> FloatArray:
    """Return the vote (n, J) of a member for each row, or its number."""
    is_own = isinstance(model, DecisionGraph | Predictor)
    said = np.asarray(predict(model, X) if is_own else model.predict(X))
    if labels is None:
        return said.astype(np.float64)
    code = np.minimum(np.searchsorted(labels, said), len(labels) - 1)
    if not (labels[code] == said).all():
        raise ValueError(f"fit: its models must predict the labels {labels.tolist()!r}")
    return (code[:, None] == np.arange(len(labels))).astype(np.float64)
