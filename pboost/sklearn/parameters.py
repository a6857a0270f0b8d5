"""Names, types, defaults and descriptions of the estimators' parameters."""

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
from pboost.values.parameter_aliases import alias_hint

Fit = TypeVar("Fit", bound=Callable[..., Any])
#: Arguments of fit functions that are not parameters of estimators.
LEFT_OUT = ("X", "y", "y_proba", "classes", "sample_weight", "task", "callback", "progress")
#: Options that have a different name in scikit-learn.
RENAMED = {"rng": "random_state", "n_threads": "n_jobs"}


class NamedChoice(NamedTuple):
    """Choices of an option that can be selected by name.

    Attributes
    ----------
    makers : mapping
        For each name, the function that creates the object.
    options : tuple of str
        Arguments of these functions that are parameters of estimators. With None, the default of
        the function is used.
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
#: Type of the objects that can be passed in place of a name.
MADE: dict[str, Any] = {"weak_learner": pb.weak.Weak, "observation": pb.observation.Observation}
#: Types of parameters that fit functions do not have.
TYPES: dict[str, Any] = {
    "route": get_type_hints(pb.predict_proba)["route"],
    "pruned": bool,
    "class_weight": Mapping[Any, float] | Literal["balanced"] | None,
}
#: Default of `min_samples_leaf` with class weights. It is large, because class weights have no
#: effect in pure leaves.
LEAST_OF_CLASSES = 20
#: Descriptions of parameters that fit functions do not have, or describe differently.
OWN = parameters_in("""
Parameters
----------
weak_learner : {"stump", "affine", "linear", "separator"} or Weak
    The weak learner of each node: a name, or an object of `pboost.weak`. An object has its own
    options.
observation : {"exact", "flip", "half", "uniform", "adatree2", "gaussian", "sampled"} or Observation
    The observation model, which defines how reliable the result of a split is: a name, or an object
    of `pboost.observation`.
route : {"hard", "expected"}
    Path of a row in prediction. "hard" follows the result of each split; "expected" takes the
    expectation over the observation model, see `pboost.decision_function`.
n_iter_no_change : int
    Number of iterations without improvement on the validation set after which training stops. It
    has no effect without `validation`: to stop early, also set ``validation=0.2``. With None, the
    number is 50.
sigma : float or array-like of shape (n_features,)
    Standard deviations of the measurement errors of X, for ``observation="gaussian"``. The argument
    `sigma` of `fit` takes precedence.
pruned : bool
    Whether to prune the tree with a complexity parameter selected by cross-validation.
class_weight : dict or "balanced"
    Factor of the sample weights for each class. "balanced" gives all classes the same total weight.
random_state : int, RandomState or Generator
    Seed or source of randomness. With None, each fit is different.
n_jobs : int
    Number of threads of the fit, -1 for all processors. With None, the number depends on the size
    of the data, and is 1 in a joblib worker. The model does not depend on it.
mean_comparisons : float
    The budget: mean number of comparisons per row, at least 1. With None, the budget is 50 unless
    `max_comparisons` or `mean_feature_cost` is set.
mean_feature_cost : float
    Budget in place of `mean_comparisons`: mean feature cost per row, see `feature_costs`.
""")
#: Descriptions of the attributes of classifiers.
CLASSES = """
classes_ : ndarray of shape (n_classes,)
    The class labels, sorted.
"""
#: Descriptions of the attributes of all estimators.
COLUMNS = """
n_features_in_ : int
    Number of features in training.
feature_names_in_ : ndarray of shape (n_features,)
    Feature names in training. Only available if X was a data frame with strings as column names.
feature_importances_ : ndarray of shape (n_features,)
    Importance of each feature, normalized to sum to 1, see `pboost.feature_importances`.
prediction_cost_ : float
    Mean number of comparisons per training row; for a forest, per row of the bootstrap samples.
"""


@cache
def options_of(builder: Callable[..., Any]) -> dict[str, Any]:
    """Return the defaults of the options of a fit function that are estimator parameters."""
    parameters = inspect.signature(builder).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in LEFT_OUT}


def parameters_of(builder: Callable[..., Any]) -> dict[str, Any]:
    """Return the names and defaults of the parameters of an estimator."""
    options, parameters = options_of(builder), {}
    for name, default in options.items():
        parameters[RENAMED.get(name, name)] = getattr(default, "kind", default)
        for choice_option in CHOICES[name].options if name in CHOICES else ():
            parameters.setdefault(choice_option, options.get(choice_option))
    return parameters


def types_of(builder: Callable[..., Any]) -> dict[str, Any]:
    """Return the names and types of the parameters of an estimator."""
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
    """Return an ``__init__`` method that stores these parameters unchanged."""

    def store(self: object, **values: Mapping[str, object]) -> None:
        refuse_unknown(values, defaults, name, renamed=RENAMED)
        vars(self).update({**defaults, **values})

    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(n, kinds[1], default=value) for n, value in defaults.items()]
    signature = inspect.Signature([inspect.Parameter("self", kinds[0]), *parameters])
    store.__signature__ = signature  # type: ignore[attr-defined]
    store.__annotations__ = {n: types[n] for n in defaults if n in types} | {"return": None}
    store.__name__, store.__qualname__ = "__init__", f"{name}.__init__"
    return store


def refusing(fit: Fit) -> Fit:
    """Decorate `fit` of an estimator to explain unknown arguments in the error message.

    The arguments are only examined if a call raises a TypeError.
    """

    @wraps(fit)
    def answering(self: object, *args: Any, **arguments: Mapping[str, object]) -> Any:
        try:
            return fit(self, *args, **arguments)
        except TypeError as error:
            at = error.__traceback__
            if at is not None and at.tb_next is not None:
                raise  # the error was raised inside `fit`
        _refuse_arguments(type(self), option_names(fit), arguments)
        return fit(self, *args, **arguments)  # this call raises the original error again

    return answering  # type: ignore[return-value]


def _refuse_arguments(cls: type, known: Collection[str], arguments: Iterable[str]) -> None:
    """Raise a TypeError if an argument of `fit` is a parameter of the estimator."""
    parameters = option_names(cls.__init__)  # type: ignore[misc]
    for name in arguments:
        if name in known:
            continue
        takers = {cls.__name__: parameters}
        hint = f"`{name}`" if name in parameters else alias_hint(name, takers, RENAMED)
        if hint:
            raise TypeError(
                f"{name}: {cls.__name__}.fit has no such argument: {hint.removeprefix('here ')}; "
                f"pass parameters to {cls.__name__}(...)"
            )


@cache
def owners(option: str) -> tuple[str, ...]:
    """Return the names of the weak learners or observation models with this option."""
    (choice,) = (item for item in CHOICES.values() if option in item.options)
    return tuple(name for name, make in choice.makers.items() if option in option_names(make))


@cache
def needs(make: Callable[..., Any]) -> tuple[str, ...]:
    """Return the arguments of a function without a default."""
    parameters = inspect.signature(make).parameters.values()
    return tuple(p.name for p in parameters if p.default is p.empty)


def meant(builder: Callable[..., Any], values: Mapping[str, object]) -> dict[str, Any]:
    """Return the options of a fit function for these values of the parameters."""
    options = {name: values[RENAMED.get(name, name)] for name in options_of(builder)}
    for option, choice in CHOICES.items():
        if option in options:
            choice_options = {name: values[name] for name in choice.options if name not in options}
            options[option] = made(option, options[option], choice_options)
    if options.get("validation") is None and "n_iter_no_change" in options:
        # Ignored without early stopping. The checks of scikit-learn set it for every estimator.
        options["n_iter_no_change"] = None
    return options


def made(option: str, value: object, settings: Mapping[str, object]) -> Any:
    """Create the object with the name `value`. Objects are returned unchanged."""
    choice = CHOICES[option]
    settings = {name: setting for name, setting in settings.items() if setting is not None}
    for name, setting in settings.items():
        if value not in owners(name):
            raise ValueError(
                f"{name}: expected None with {option}={shown(value)}, got {shown(setting)}; use it "
                f"with {', '.join(map(repr, owners(name)))}"
                + ("" if isinstance(value, str) else "; set the options of an object directly")
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
    """Return a docstring with its parameters and attributes filled in."""
    text = inspect.cleandoc(doc).replace("{parameters}", _described(builder, defaults))
    attributes = (CLASSES if "class_weight" in defaults else "").rstrip() + COLUMNS.rstrip() + more
    return text.replace("{attributes}", attributes.strip())


def _described(builder: Callable[..., Any], defaults: Mapping[str, object]) -> str:
    """Build the parameter section of an estimator from docstrings of fit functions."""
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
    """Return a sentence that explains the default None and the choices that have this option."""
    by_classes = ""
    if name == "min_samples_leaf" and default is None:
        by_classes = (
            f", or {LEAST_OF_CLASSES} with `class_weight`, which has no effect in pure leaves"
        )
    if name in options:
        return f"With None, the value is {options[name]}{by_classes}." if by_classes else ""
    for option, choice in CHOICES.items():
        if name in choice.options and name not in OWN:
            kinds, maker = owners(name), option.replace("_", " ")
            names = ", ".join(map(repr, kinds))
            if name in needs(choice.makers[kinds[0]]):
                return f"Required with {option} {names}, and not used otherwise."
            default_used = f"With None, the default of the {maker} is used{by_classes}."
            return f"Only used with {option} {names}. {default_used}"
    return ""
