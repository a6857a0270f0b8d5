"""Parameters of estimators: the options of builders, what they mean, and what is said of them."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, wraps
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

import pboost as pb
from pboost.values import shown
from pboost.values.options import option_names, parameters_in, refuse_unknown
from pboost.values.peers import alias_hint

Fit = TypeVar("Fit", bound=Callable[..., Any])
#: Arguments of builders that are no parameters: they are data, or said by the estimator.
LEFT_OUT = ("X", "y", "y_proba", "classes", "sample_weight", "task", "callback", "progress")
#: Those that have another name in scikit-learn.
RENAMED = {"rng": "random_state", "n_threads": "n_jobs"}


class NamedChoice(NamedTuple):
    """What an option of builders can be by name.

    Attributes
    ----------
    makers : mapping
        The functions that make it, by the names.
    options : tuple of str
        The options of these that are parameters of estimators; None there is a function's default.
    """

    makers: Mapping[str, Callable[..., Any]]
    options: tuple[str, ...]


CHOICES = {
    "weak_learner": NamedChoice(
        {name: pb.weak.KINDS[name] for name in ("stump", "affine", "linear", "separator")},
        (
            "criterion",
            "min_samples_leaf",
            "min_weight_fraction",
            "search",
            "max_bins",
            "missing",
            "categorical_smoothing",
            "n_directions",
            "n_terms",
            "max_pairs",
            "n_stumps",
        ),
    ),
    "observation": NamedChoice(pb.observation.KINDS, ("flip_rate", "sigma")),
}
#: What they are beside names, and the types of parameters that builders do not have.
MADE: dict[str, Any] = {"weak_learner": pb.weak.Weak, "observation": pb.observation.Observation}
TYPES: dict[str, Any] = {
    "route": get_type_hints(pb.predict_proba)["route"],
    "pruned": bool,
    "class_weight": Mapping[Any, float] | Literal["balanced"] | None,
}
#: Least rows of a side where classes have weights: these change nothing where all rows are alike.
LEAST_OF_CLASSES = 20
#: What is said of parameters that builders do not have, or that are something else to them.
OWN = parameters_in("""
Parameters
----------
weak_learner : {"stump", "affine", "linear", "separator"} or Weak
    The weak learner, what a node compares: a name, or an object of `pboost.weak`, with options of
    its own.
observation : {"exact", "flip", "half", "uniform", "adatree2", "gaussian", "sampled"} or Observation
    How sure answers are: a name, or an object of `pboost.observation`.
route : {"hard", "expected"}
    How rows are predicted: by the exits on whose side they lie, or by the expectation under the
    answers assumed in training, see `pboost.decision_function`.
sigma : float or array-like of shape (n_features,)
    Standard deviations of the errors of X, for observation 'gaussian'; those that `fit` is given
    take their place.
pruned : bool
    Whether the tree is pruned at the price of a leaf that cross-validation finds best.
class_weight : dict or "balanced"
    Factors by class of the weights of rows; "balanced" gives all classes the same weight.
random_state : int, RandomState or Generator
    Source of randomness; None: other numbers in each fit.
n_jobs : int
    Threads of a fit, -1 for all; None: as many as it is worth, one in a worker of joblib. The model
    does not depend on it.
mean_comparisons : float
    The budget: mean number of comparisons per row, at least 1; None: 50, where neither `max_comparisons` nor
    `mean_feature_cost` is given.
mean_feature_cost : float
    In place of `mean_comparisons`: the mean feature cost of a row, see `feature_costs`.
""")
#: What is said of the attributes of classifiers, and of all.
CLASSES = """
classes_ : ndarray of shape (n_classes,)
    The labels, sorted.
"""
COLUMNS = """
n_features_in_ : int
    Number of columns in training.
feature_names_in_ : ndarray of shape (n_features,)
    Their names, where X was a data frame with strings as names.
feature_importances_ : ndarray of shape (n_features,)
    Share of each column in what was learnt, see `pboost.feature_importances`.
prediction_cost_ : float
    Mean number of comparisons of the training rows; of forests, of those in the bags.
"""


@cache
def options_of(builder: Callable[..., Any]) -> dict[str, Any]:
    """Return the options of a builder that are parameters of an estimator, with their defaults."""
    parameters = inspect.signature(builder).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in LEFT_OUT}


def parameters_of(builder: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters that an estimator has of its builder, with their defaults."""
    options, parameters = options_of(builder), {}
    for name, default in options.items():
        parameters[RENAMED.get(name, name)] = getattr(default, "kind", default)
        for choice_option in CHOICES[name].options if name in CHOICES else ():
            parameters.setdefault(choice_option, options.get(choice_option))
    return parameters


def types_of(builder: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the parameters that an estimator may have, by their names."""
    types = get_type_hints(pb.fit_pruned_cart) | get_type_hints(builder)
    types = {RENAMED.get(name, name): kind for name, kind in types.items()}
    for option, choice in CHOICES.items():
        names = Literal[tuple(choice.makers)]  # type: ignore[valid-type]
        made_by = {
            name: kind
            for make in choice.makers.values()
            for name, kind in get_type_hints(make).items()
        }
        types = {name: made_by[name] | None for name in choice.options} | types
        types[option] = names | MADE[option]
    return types | TYPES


def storing(
    name: str, defaults: Mapping[str, object], types: Mapping[str, Any]
) -> Callable[..., None]:
    """Return an ``__init__`` of these parameters, which stores them as they are."""

    def store(self: object, **values: Mapping[str, object]) -> None:
        refuse_unknown(values, defaults, name)
        vars(self).update({**defaults, **values})

    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(n, kinds[1], default=value) for n, value in defaults.items()]
    signature = inspect.Signature([inspect.Parameter("self", kinds[0]), *parameters])
    store.__signature__ = signature  # type: ignore[attr-defined]
    store.__annotations__ = {n: types[n] for n in defaults if n in types} | {"return": None}
    store.__name__, store.__qualname__ = "__init__", f"{name}.__init__"
    return store


def refusing(fit: Fit) -> Fit:
    """Let `fit` of an estimator answer for arguments that it does not have; a decorator.

    Nothing is looked at unless a call fails.
    """

    @wraps(fit)
    def answering(self: object, *args: Any, **arguments: Mapping[str, object]) -> Any:
        try:
            return fit(self, *args, **arguments)
        except TypeError as error:
            at = error.__traceback__
            if at is not None and at.tb_next is not None:
                raise  # from within
        _refuse_arguments(type(self), option_names(fit), arguments)
        return fit(self, *args, **arguments)  # something else is wrong, as Python says

    return answering  # type: ignore[return-value]


def _refuse_arguments(cls: type, known: Collection[str], arguments: Iterable[str]) -> None:
    """Raise TypeError for an argument of `fit` that is a parameter of the estimator."""
    parameters = option_names(cls.__init__)  # type: ignore[misc]
    for name in arguments:
        if name in known:
            continue
        hint = f"`{name}`" if name in parameters else alias_hint(name, {cls.__name__: parameters})
        if hint:
            raise TypeError(
                f"{name}: {cls.__name__}.fit has no such argument: {hint.removeprefix('here ')}; "
                f"parameters are passed to {cls.__name__}(...)"
            )


@cache
def owners(option: str) -> tuple[str, ...]:
    """Return the names of the weak learners or the observation models that have an option."""
    (choice,) = (item for item in CHOICES.values() if option in item.options)
    return tuple(name for name, make in choice.makers.items() if option in option_names(make))


@cache
def needs(make: Callable[..., Any]) -> tuple[str, ...]:
    """Return the arguments of a function that have no default."""
    parameters = inspect.signature(make).parameters.values()
    return tuple(p.name for p in parameters if p.default is p.empty)


def meant(builder: Callable[..., Any], values: Mapping[str, object]) -> dict[str, Any]:
    """Return the options of a builder that parameters of these values mean."""
    options = {name: values[RENAMED.get(name, name)] for name in options_of(builder)}
    for option, choice in CHOICES.items():
        if option in options:
            choice_options = {name: values[name] for name in choice.options if name not in options}
            options[option] = made(option, options[option], choice_options)
    if options.get("validation") is None and "n_iter_no_change" in options:
        options["n_iter_no_change"] = None  # as in scikit-learn, without early stopping
    return options


def made(option: str, value: object, settings: Mapping[str, object]) -> Any:
    """Return what an option of a builder means: what its name makes of the options that are given.

    What is no string is returned as it is, for the builder to check.
    """
    choice = CHOICES[option]
    settings = {name: setting for name, setting in settings.items() if setting is not None}
    for name, setting in settings.items():
        if value not in owners(name):
            raise ValueError(
                f"{name}: expected None with {option}={shown(value)}, got {shown(setting)}; it "
                f"goes with {', '.join(map(repr, owners(name)))}"
                + ("" if isinstance(value, str) else "; an object has options of its own")
            )
    if not isinstance(value, str):
        return value
    if value not in choice.makers:
        raise ValueError(
            f"{option}: expected one of {', '.join(map(repr, choice.makers))} or an object of "
            f"pboost.{option.removesuffix('_learner')}, got {shown(value)}"
        )
    for name in needs(choice.makers[value]):
        if name not in settings:
            raise ValueError(f"{name}: expected a value with {option}={value!r}, got None")
    return choice.makers[value](**settings)


def filled(
    doc: str, builder: Callable[..., Any], defaults: Mapping[str, object], more: str = ""
) -> str:
    """Return a docstring with its parameters, in the order of their defaults, and attributes."""
    text = inspect.cleandoc(doc).replace("{parameters}", _described(builder, defaults))
    attributes = (CLASSES if "class_weight" in defaults else "").rstrip() + COLUMNS.rstrip() + more
    return text.replace("{attributes}", attributes.strip())


def _described(builder: Callable[..., Any], defaults: Mapping[str, object]) -> str:
    """Return what is said of parameters, by a builder and by the functions to which it refers."""
    makers = [make for choice in CHOICES.values() for make in choice.makers.values()]
    referred = [getattr(pb, name) for name in re.findall(r"see `(fit_\w+)`", builder.__doc__ or "")]
    known: dict[str, tuple[str, str]] = {}
    for function in (builder, *referred, pb.fit_pruned_cart, *makers):
        entries = parameters_in(function.__doc__)
        taken = options_of(builder) if function in referred else entries
        known = {
            name: entry for name, entry in entries.items() if entry[1] and name in taken
        } | known
    known |= OWN
    lines = ""
    for name, default in defaults.items():
        kind, words = known[name]
        more = _default_named(name, default, options_of(builder))
        words += textwrap.fill(more, 96) + "\n" if more else ""
        kind = f"{kind.removesuffix(', optional')}, default={default!r}"
        lines += f"{name} : {kind}\n{textwrap.indent(words, '    ')}"
    for builders, ours in RENAMED.items():
        lines = lines.replace(f"`{builders}`", f"`{ours}`")
    return lines.strip()


def _default_named(name: str, default: object, options: Mapping[str, object]) -> str:
    """Return what None stands for, and with which kinds an option of one of them goes."""
    by_classes = ""
    if name == "min_samples_leaf" and default is None:
        by_classes = f"; with `class_weight` {LEAST_OF_CLASSES}, as pure leaves do not feel weights"
    if name in options:
        return f"None: {options[name]}{by_classes}." if by_classes else ""
    for option, choice in CHOICES.items():
        if name in choice.options and name not in OWN:
            kinds = owners(name)
            is_needed = name in needs(choice.makers[kinds[0]])
            phrase = ", which needs it" if is_needed else f"; None: its own default{by_classes}"
            return f"For {option} {', '.join(map(repr, kinds))}{phrase}."
    return ""
