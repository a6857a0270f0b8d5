"""Model options: parameters of fit functions, weak learners and observation models.

The options are read from the signatures and docstrings of these functions, so a new parameter
automatically becomes a command line option.
"""

from __future__ import annotations

import csv
import inspect
import math
import re
import sys
import warnings
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import chain
from types import UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from numpy.typing import ArrayLike

import pboost as pb
from pboost.cli.streams import UsageError
from pboost.data.read.categories import NAMED
from pboost.data.read.numbers import NAME_OR_ENCODE
from pboost.values import check_integer
from pboost.values.options import parameters_in
from pboost.values.parameter_aliases import ELSEWHERE, value_here

TextReader: TypeAlias = Callable[[str], Any]


def integer(minimum: int) -> TextReader:
    """Return a parser of integers >= `minimum`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = minimum - 1
        if value < minimum:
            raise ArgumentTypeError(f"expected an integer >= {minimum}, got {text!r}")
        return value

    return read


def number(where: str, holds: Callable[[float], bool]) -> TextReader:
    """Return a parser of numbers that satisfy a condition."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not holds(value):
            raise ArgumentTypeError(f"expected a number{where}, got {text!r}")
        return value

    return read


count, finite = integer(1), number("", math.isfinite)
share = number(" in (0, 1]", lambda x: 0 < x <= 1)


def draws(text: str) -> int | str:
    """Parse a number of draws, or "first_increase"."""
    max_draws = pb.observation.sampling.MOST_DRAWS
    if text == "first_increase":
        return text
    try:
        return check_integer("n_draws", int(text), min_value=1, max_value=max_draws)
    except ValueError:
        raise ArgumentTypeError(
            f"expected first_increase or an integer from 1 to {max_draws}, got {text!r}"
        ) from None


def columns(text: str) -> int | str | None:
    """Parse a number of features, "auto", "sqrt", "log2" or "all"."""
    if text in ("auto", "sqrt", "log2"):
        return text
    return None if text == "all" else count(text)


def depth(text: str) -> int | None:
    """Parse a maximum depth, or "none" for no limit. Some models allow 0."""
    return None if text == "none" else integer(0)(text)


def threads(text: str) -> int | None:
    """Parse a number of threads. -1 means all cores, and "none" an automatic choice."""
    if text == "none":
        return None
    return -1 if text == "-1" else count(text)


def drawn_rows(text: str) -> int | float | str | None:
    """Parse a number of rows (an integer), a fraction of the rows, "auto", or "none" for all."""
    if text in ("none", "auto"):
        return None if text == "none" else text
    is_count = re.fullmatch(r"[-+]?\d+", text) is not None
    return count(text) if is_count else share(text)


def rate(text: str) -> float | str:
    """Parse a learning rate, or "auto"."""
    return text if text == "auto" else share(text)


def shape(text: str) -> tuple[int, ...]:
    """Parse comma-separated positive integers."""
    return tuple(count(size) for size in text.split(","))


def one_of(choices: tuple[str, ...]) -> TextReader:
    """Return a parser for one of several choices."""

    def read(text: str) -> str:
        if text in choices:
            return text
        raise ArgumentTypeError(
            f"expected one of {', '.join(choices)}, got {text!r}{_hint_choice(text, choices)}"
        )

    return read


def _hint_choice(text: str, choices: tuple[str, ...]) -> str:
    """Return a hint for an unknown choice: its name here, a similar choice, or Python."""
    if hint := value_here(text, choices):
        return hint.replace("'", "")
    near = get_close_matches(text, choices, 1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; {in_python(ELSEWHERE[text])}" if text in ELSEWHERE else ""


def in_python(hint: str) -> str:
    """Return a hint of the library for the command line, which cannot use Python objects."""
    return f"only available in Python: {hint}" if re.search(r"pb\.|pboost\.", hint) else hint


def names(text: str) -> list[str]:
    """Parse comma-separated column names. As in CSV, names with a comma are quoted."""
    return next(csv.reader([text]), [])


def separator(text: str) -> str:
    """Parse a column separator."""
    sep = {r"\t": "\t", "tab": "\t"}.get(text, text)
    if len(sep) != 1 or not sep.isascii() or sep.isalnum() or sep in "\"'.+-_\r\n\0":
        raise ArgumentTypeError(rf"expected one character, such as ; or \t for a tab, got {text!r}")
    return sep


def encoding(text: str) -> str:
    """Parse the name of a text encoding."""
    try:
        "".encode(text)
    except (LookupError, ValueError):
        raise ArgumentTypeError(
            f"expected an encoding such as latin-1 or utf-16, got {text!r}"
        ) from None
    return text


#: Parsers and placeholders of options whose values need their own checks.
READERS: dict[str, tuple[TextReader, str]] = {
    "max_depth": (depth, "N"),
    "n_terms": (integer(2), "N"),
    "n_draws": (draws, "N"),
    "max_features": (columns, "K"),
    "shape": (shape, "N,N"),
    "smoothing": (number(" in [0, 1]", lambda x: 0 <= x <= 1), "X"),
    "learning_rate": (rate, "X"),
    "subsample": (drawn_rows, "X"),
    "max_samples": (drawn_rows, "X"),
    "n_threads": (threads, "N"),
    "target_certificate": (number(" in (0, 1)", lambda x: 0 < x < 1), "X"),
    "flip_rate": (number(" in [0, 0.5)", lambda x: 0 <= x < 0.5), "X"),
    "validation": (number(" in (0, 0.5]", lambda x: 0 < x <= 0.5), "X"),
    "sigma": (number(" > 0", lambda x: 0 < x < math.inf), "X"),
    "dense_gain": (number(" >= 0", lambda x: 0 <= x < math.inf), "X"),
}


def is_readable(option: str, types: str) -> bool:
    """Return whether an option of these types can be given as text."""
    return option in READERS or not {"int", "float", "str", "bool"}.isdisjoint(types.split(" | "))


def reader(option: str, types: str) -> tuple[TextReader, str]:
    """Return the parser and the placeholder of an option of these types."""
    kinds = types.split(" | ")
    is_number = "int" in kinds or "float" in kinds
    read_number = finite if "float" in kinds else count

    def read(text: str) -> Any:
        if text == "none" and "None" in kinds:
            return None
        if not is_number:
            return text
        try:
            return read_number(text)
        except ArgumentTypeError:
            if "str" in kinds:
                return text
            raise

    return READERS.get(option, (read, "N" if read_number is count and is_number else "X"))


#: Fit function of each value of ``--model``.
MODELS: dict[str, Callable[..., Any]] = {
    "adaboost": pb.fit_adaboost,
    "boosted-tree": pb.fit_boosted_tree,
    "matryoshka": pb.fit_matryoshka,
    "real-adaboost": pb.fit_real_adaboost,
    "topdown-tree": pb.fit_topdown_tree,
    "cart": pb.fit_cart,
    "random-forest": pb.fit_random_forest,
    "samme": pb.fit_samme,
    "gradient-boosting": pb.fit_gradient_boosting,
    "sbpmt": pb.fit_sbpmt,
    "probit-tree": pb.fit_probit_tree,
    "probitboost": pb.fit_probitboost,
    "budget": pb.fit_within_budget,
}
#: Models that support multiclass targets.
SEVERAL_CLASSES = tuple(
    name for name in MODELS if name not in ("matryoshka", "real-adaboost", "probitboost")
)
#: Models that support regression.
OF_NUMBERS = tuple(
    name for name, fit in MODELS.items() if "task" in inspect.signature(fit).parameters
)
#: Models that do not need one-vs-rest, because their base learners or leaves are multiclass.
OF_MEMBERS = ("cart", "random-forest", "samme", "sbpmt", "probit-tree", "budget")
#: ``--model budget`` requires one of the options `BUDGETS`. The options `NOT_TYPED` are not
#: available on the command line.
BUDGETS, NOT_TYPED = (
    ("mean_comparisons", "max_comparisons", "max_bytes"),
    ("mean_feature_cost", "cv"),
)
#: Weak learners with numeric outputs. The second name is the only model that accepts them.
HYPOTHESES, OF_HYPOTHESES = ("feature",), "real-adaboost"
#: Options of most models. Error messages do not list all models that support them.
GENERAL = (
    "weak_learner",
    "criterion",
    "search",
    "observation",
    "smoothing",
    "learning_rate",
    "validation",
    "n_iter_no_change",
    "n_threads",
    "one_vs_rest",
)
#: Parameters that have another name on the command line, and parameters set by ``--seed``.
RENAMED: dict[str, str] = {}
SEEDS = ("rng", "seed")
#: ``--one-vs-rest`` fits one model per class; ``one_vs_rest`` of SBPMT applies within one model.
RENAMED["fit_sbpmt.one_vs_rest"] = "one_vs_rest_by"
#: Options that are not parameters of a fit function. Each entry has the models and the help text.
SWITCHES = {
    "one_vs_rest": (
        tuple(name for name in MODELS if name not in OF_MEMBERS),
        "fit one model per class",
    ),
    "pruned": (("cart",), "prune the tree by cross-validation"),
    "published": (("sbpmt",), "use the defaults of the published code"),
}


class CliOption(NamedTuple):
    """A parameter of a function that is an option of the command line.

    Attributes
    ----------
    parameter : str
        Name of the parameter.
    types : str
        Annotation of the parameter.
    default : object
        Default of the parameter.
    is_needed : bool
        Whether the parameter has no default.
    choices : tuple of str
        Allowed values, if known.
    words : str
        Help text.
    """

    parameter: str
    types: str
    default: object = None
    is_needed: bool = False
    choices: tuple[str, ...] = ()
    words: str = ""


def members(kind: Any) -> list[Any]:
    """Return the types in a union without those in `ArrayLike`, or a list of the single type."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    arrays = set(get_args(ArrayLike))
    return [item for item in kinds if item not in arrays] if arrays <= set(kinds) else list(kinds)


def type_name(kind: Any) -> str:
    """Return the name of a type. The name of a `Literal` is "str"."""
    if kind is type(None):
        return "None"
    return "str" if get_origin(kind) is Literal else getattr(kind, "__name__", str(kind))


def declared(function: Callable[..., Any]) -> dict[str, CliOption]:
    """Return the parameters of a function whose values can be written as text."""
    documented, hints = parameters_in(inspect.getdoc(function)), get_type_hints(function)
    options = {}
    for name, parameter in inspect.signature(function).parameters.items():
        option = _typed(function, name)
        kinds = members(hints[name])
        types = " | ".join(dict.fromkeys(map(type_name, kinds)))
        if name not in SEEDS and is_readable(option, types):
            _, words = documented.get(name, ("", ""))
            choices = [get_args(kind) for kind in kinds if get_origin(kind) is Literal]
            is_choice = option not in READERS and {int, float, bool, str}.isdisjoint(kinds)
            words = " ".join([*words.split(), ""])
            summary = re.split(r'[.;:] |^"', words)[0].replace("`", "").rstrip()
            is_needed = parameter.default is parameter.empty
            default = None if is_needed else parameter.default
            named = tuple(chain(*choices)) if is_choice else ()
            options[option] = CliOption(name, types, default, is_needed, named, summary)
    return options


def _typed(function: Callable[..., Any], name: str) -> str:
    """Return the command line name of a parameter."""
    return RENAMED.get(f"{function.__name__}.{name}", RENAMED.get(name, name))


def typed_kinds(makers: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return the functions whose required parameters can be given on the command line."""

    def needs(make: Callable[..., Any]) -> set[str]:
        parameters = inspect.signature(make).parameters.items()
        return {_typed(make, name) for name, p in parameters if p.default is p.empty}

    return {name: make for name, make in makers.items() if needs(make) <= declared(make).keys()}


#: Functions for the values of ``--model``, ``--weak-learner`` and ``--observation``.
KINDS = {
    "model": MODELS,
    "weak_learner": typed_kinds(pb.weak.KINDS),
    "observation": typed_kinds(pb.observation.KINDS),
}


def _all_declared() -> dict[tuple[str, str], dict[str, CliOption]]:
    """Return the options of each model, weak learner and observation model."""
    declared_options = {
        (of, kind): declared(f) for of, kinds in KINDS.items() for kind, f in kinds.items()
    }
    of_cart = {name: option for name, option in declared(pb.fit_cart).items() if name != "task"}
    declared_options["model", "samme"] = of_cart | declared_options["model", "samme"]
    for name in NOT_TYPED:
        del declared_options["model", "budget"][name]
    declared_options["observation", "sampled"]["flip_rate"] = CliOption("base", "float")
    for kind, fit in MODELS.items():
        options, parameters = declared_options["model", kind], inspect.signature(fit).parameters
        if "weak_learner" in parameters:
            others = () if kind == OF_HYPOTHESES else HYPOTHESES
            kinds = tuple(learner for learner in KINDS["weak_learner"] if learner not in others)
            options["weak_learner"] = CliOption(
                "weak_learner", "str", choices=kinds, words="weak learner of each node"
            )
            # If the booster and its weak learner share an option, it is passed to the booster.
            for learner in KINDS["weak_learner"]:
                for name in options.keys() & declared_options["weak_learner", learner].keys():
                    del declared_options["weak_learner", learner][name]
        if "observation" in parameters:
            kinds = tuple(KINDS["observation"])
            words = "model of measurement errors"
            options["observation"] = CliOption("observation", "str", choices=kinds, words=words)
        for switch, (models, words) in SWITCHES.items():
            if kind in models:
                options[switch] = CliOption(switch, "bool", words=words)
    return declared_options


DECLARED = _all_declared()
#: Models, weak learners and observation models that have each option.
OWNERS: dict[str, list[tuple[str, str]]] = {}
for _owner, _options in DECLARED.items():
    for _name in _options:
        OWNERS.setdefault(_name, []).append(_owner)


def flag(name: str) -> str:
    """Return an option with hyphens, as on the command line."""
    return "--" + name.replace("_", "-")


def check_model_options(options: Namespace) -> None:
    """Raise UsageError for an option that the chosen model does not have."""
    arguments = vars(options)
    chosen = {"model": options.model, "weak_learner": "stump", "observation": "exact"} | arguments
    for name in OWNERS:
        if name in arguments:
            _check_owner(name, arguments[name], chosen)
    for of in ("weak_learner", "observation"):
        for name, option in DECLARED[of, chosen[of]].items():
            if option.is_needed and name not in arguments:
                raise UsageError(f"{flag(of)} {chosen[of]} requires {flag(name)}")
    for name, value in (("task", "regression"), ("loss", "hinge")):
        if "one_vs_rest" in arguments and arguments.get(name) == value:
            raise UsageError(f"--one-vs-rest cannot be used with --{name} {value}")
    if "answer_scale" in arguments and chosen["weak_learner"] in HYPOTHESES:
        raise UsageError(
            f"--answer-scale cannot be used with --weak-learner {chosen['weak_learner']}"
        )
    if "n_iter_no_change" in arguments and "validation" not in arguments:
        raise UsageError("--n-iter-no-change requires --validation")
    if options.model == "matryoshka":
        _check_matryoshka(arguments)
    if options.model == "budget" and arguments.keys().isdisjoint(BUDGETS):
        raise UsageError(
            f"--model budget requires {', '.join(map(flag, BUDGETS[:-1]))} or --max-bytes"
        )


def _check_owner(name: str, value: object, chosen: Mapping[str, Any]) -> None:
    """Raise UsageError if the chosen model does not support an option or its value."""
    owners, model_options, of = OWNERS[name], DECLARED["model", chosen["model"]], "model"
    families = {family for family, _ in owners}
    for other in ("weak_learner", "observation"):
        if families == {other} or (other in families and other in model_options):
            of = other
    kind = chosen[of]
    if (of, kind) not in owners:
        if name in GENERAL:
            raise UsageError(f"{flag(name)} cannot be used with {flag(of)} {kind}")
        takers = [kind for family, kind in owners if family == of]
        if name == "task":
            needed = f"{', '.join(takers[:-1])} or {takers[-1]}"
            is_default = "the default is" if kind == next(iter(MODELS)) else "got"
            raise UsageError(f"--task {value} requires --model {needed}; {is_default} {kind}")
        kinds = " or ".join(takers)
        instead = "" if of == "observation" else f", got {kind}"
        raise UsageError(f"{flag(name)} requires {flag(of)} {kinds}{instead}")
    choices = DECLARED[of, kind][name].choices
    if choices and value not in choices:
        takers = [k for f, k in owners if f == of and value in DECLARED[f, k][name].choices]
        kinds = " or ".join(takers)
        raise UsageError(f"{flag(name)} {value} requires {flag(of)} {kinds}, got {kind}")


def _check_matryoshka(arguments: Mapping[str, object]) -> None:
    """Raise UsageError if the size option does not match the growth of a matryoshka."""
    is_greedy = arguments.get("growth") == "greedy"
    if not is_greedy and "max_nodes" in arguments:
        raise UsageError("--max-nodes requires --growth greedy; for --growth nested use --shape")
    if is_greedy and "shape" in arguments:
        raise UsageError("--shape requires --growth nested; for --growth greedy use --max-nodes")


# Library messages are converted: options get hyphens, and rows are numbered from 1.

#: Parameters with another name on the command line.
TYPED = {"rng": "seed", "sample_weight": "sample_weight"}
#: Command line names of further arguments in library messages.
_ARGUMENTS = {**TYPED, "y": "target"}
#: Hints in library messages and their replacements on the command line.
_SENTENCES = {
    NAMED: "pass it in --categorical-features",
    NAME_OR_ENCODE: "; use --categorical-features for categorical columns",
}
#: Pattern that finds the parts of a library message to convert. Quoted text is not converted.
_PARTS = re.compile(
    r"""\b(?P<option>\w+)=(?:"(?P<value>[^"]*)"|(?P<word>\w+))|(?<!\w)'[^']*'|\brow\ (?P<row>\d+)\b
    |^(?P<argument>\w+):""",
    re.VERBOSE,
)


def flagged(name: str) -> str:
    """Return a parameter as a command line option."""
    return flag(TYPED.get(name, name))


def worded(message: str) -> str:
    """Convert a library message to the terms of the command line."""
    for theirs, ours in _SENTENCES.items():
        message = message.replace(theirs, ours)
    return _PARTS.sub(_part, message.removeprefix("X: "))


def _part(match: re.Match[str]) -> str:
    if match["row"] is not None:
        return f"row {int(match['row']) + 1}"
    name = match["option"] or match["argument"]
    if name is None:
        return match[0]
    name = _ARGUMENTS.get(name, name)
    if name not in (*OWNERS, *_ARGUMENTS.values()):
        return match[0]
    if match["argument"]:
        return f"{flag(name)}:"
    return f"{flag(name)} {match['value'] or match['word']}"


@contextmanager
def told_warnings() -> Iterator[None]:
    """Print each user warning as one line on standard error."""

    def tell(message: Warning | str, category: object, *where: object, **more: object) -> None:
        sys.stderr.write(f"pboost: warning: {' '.join(worded(str(message)).split())}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = tell
        yield
