"""Parser for the commands and options of the command line."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import pboost as pb
from pboost.cli.options import (
    DECLARED,
    GENERAL,
    MODELS,
    OWNERS,
    READERS,
    SWITCHES,
    TYPED,
    encoding,
    flag,
    flagged,
    in_python,
    integer,
    names,
    one_of,
    reader,
    separator,
)
from pboost.cli.streams import STREAM, UsageError
from pboost.values.parameter_aliases import ELSEWHERE, PEERS, alias_hint

FROM_STDIN = "-: from standard input"
#: Default seed. It is fixed, so that commands are reproducible.
DEFAULT_SEED = 0
#: Names that users try for ``--target``.
LABELS = ("--label", "--y", "--class", "--response", "--outcome", "--label-column")
#: Help for options whose docstrings are too long or depend on their context.
WORDS = {
    "collect": "Whether the votes inside an inner tree are added (additive) or only their sign "
    "counts (sign)",
    "answer_scale": "Output of a stump: difference of the class proportions (share), half the log "
    "odds, or -1 and +1 (sign)",
    "estimator": "Estimate of the probability from k of R outputs: (1 + k) / (R + 2) (map) or "
    "k / R (ml)",
    "impurity": "Impurity that splits minimize",
    "join": "Whether the open exits of an outermost tree are merged by the sign of their votes "
    "(sign) or all lead to the next tree (all)",
    "categorical_smoothing": "Strength of the penalty on differences between categories that may "
    "be due to chance",
    "missing": "Whether training rows can have missing values (learn) or not (error)",
    "n_iter_no_change": "Stop when the error on the rows of --validation has not decreased for "
    "this number of nodes or trees (default: 50)",
    "search": "Candidate thresholds: all (exact), bin edges (binned), or depending on the size of "
    "the data (auto)",
    "shape": "Number of nodes in an innermost tree, number of these trees in a tree of the next "
    "level, and so on",
    "task": "Whether to predict a class or a number. The default is classification for text, "
    "truth values and at most 20 distinct integers, and regression for non-integer numbers. "
    "Required for more distinct integers",
    "votes": "Whether each branch of a stump votes with its own log odds (domain) or both with "
    "the same magnitude (symmetric)",
}


class OneLineParser(argparse.ArgumentParser):
    """Argument parser that prints one-line errors and rejects abbreviated options."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options["allow_abbrev"] = False
        super().__init__(*args, **options)

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with code 2."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line. For unknown options, raise UsageError with a suggestion."""
    words = [_hyphened(text) for text in (sys.argv[1:] if arguments is None else arguments)]
    _refuse_label(words)
    options, unknown = build_parser().parse_known_args(words)
    if not unknown:
        return options
    first = next((text.partition("=")[0] for text in unknown if text.startswith("--")), "")
    if first and "target" in options:
        name = first[2:].replace("-", "_")
        flags = [*map(flag, OWNERS), *(flag(taken) for taken in vars(options))]
        near = get_close_matches(first, flags, 1)
        if hint := _alias_hint(name, options.model) or "".join(f"did you mean {n}?" for n in near):
            raise UsageError(f"{first}: {hint} (see pboost {options.command} --help)")
    raise UsageError(
        f"unrecognized arguments: {' '.join(unknown)} (see pboost {options.command} --help)"
    )


def _hyphened(text: str) -> str:
    """Replace underscores in the name of an option by hyphens."""
    name, equals, value = text.partition("=")
    return name.replace("_", "-") + equals + value if text.startswith("--") else text


def _alias_hint(name: str, model: str) -> str:
    """Return a hint that replaces an option of another library by an option of pboost."""
    kinds_by_hint: dict[str, list[str]] = {}
    for kind in (model, *MODELS):
        weak = (
            DECLARED["weak_learner", "stump"] if "weak_learner" in DECLARED["model", kind] else {}
        )
        options = {o.parameter for o in (weak | DECLARED["model", kind]).values()}
        known = {*options, *TYPED.values()} - {"weak_learner"}
        hint = alias_hint(name, {kind: known}, TYPED)
        is_general = hint and hint == ELSEWHERE.get(name)
        hint = re.sub(r"`(\w+)`", lambda match: flagged(match[1]), hint)
        if is_general:
            return in_python(hint)
        hint = hint.partition(", ")[0] if "pb." in hint else hint  # a note for Python
        if hint and kind == model:
            return f"{hint} with --model {model}"
        if hint:
            kinds_by_hint.setdefault(hint, []).append(kind)
    if kinds_by_hint:
        return "; ".join(
            f"{hint} with --model {' or '.join(kinds)}" for hint, kinds in kinds_by_hint.items()
        )
    return _hint_python(name, model)


def _hint_python(name: str, model: str) -> str:
    """Return a hint for an option whose values cannot be given on the command line, or ""."""
    for fit in (MODELS[model], *MODELS.values()):
        for option in inspect.signature(fit).parameters.keys() & PEERS.keys():
            if name == option or name in PEERS[option].names():
                return f"only available in Python, as `{option}` of pb.{fit.__name__}"
    return ""


def _refuse_label(words: Sequence[str]) -> None:
    """Raise UsageError for another name of the required option ``--target``."""
    for word in words:
        flag_ = word.partition("=")[0]
        if flag_ in LABELS and words[0] in ("fit", "evaluate"):
            raise UsageError(f"{flag_}: use --target (see pboost {words[0]} --help)")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = OneLineParser(
        prog="pboost", description="Fit, evaluate and apply boosted models on CSV files."
    )
    parser.add_argument("--version", action="version", version=f"pboost {pb.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="compare models of several sizes on real data")
    demo.add_argument("--plot", metavar="FILE", help="also plot test error against cost")
    _add_folds(demo)
    _add_seed(demo)

    fit = commands.add_parser("fit", help="fit a model to a CSV file and save it")
    _add_training(fit)
    fit.add_argument(
        "-o", dest="output", metavar="MODEL.npz", required=True, help="-: standard output"
    )

    evaluate = commands.add_parser("evaluate", help="cross-validate a model on a CSV file")
    _add_training(evaluate)
    _add_folds(evaluate)

    predict = commands.add_parser(
        "predict",
        help="apply a model to a CSV file",
        description="Write a CSV file with one line per row of the input: the predicted class and "
        "the probability of the second class (binary) or of each class (multiclass), in columns "
        "named probability_CLASS. A regression model writes the predicted number. With the hinge "
        "loss, which has no probabilities, the decision value is written.",
    )
    predict.add_argument("model", metavar="MODEL.npz", help=FROM_STDIN)
    predict.add_argument(
        "data", metavar="DATA.csv", help=f"extra columns are ignored; {FROM_STDIN}"
    )
    predict.add_argument(
        "-o", dest="output", metavar="OUT.csv", default=STREAM, help="default: standard output"
    )
    _add_format(predict)

    show = commands.add_parser("show", help="print a model as text")
    show.add_argument("model", metavar="MODEL.npz", help=FROM_STDIN)
    show.add_argument(
        "--coefficients",
        action="store_true",
        help="print the average coefficients of a ProbitBoost model instead",
    )
    return parser


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sep", type=separator, default=",", metavar="C", help="column separator; default: comma"
    )
    parser.add_argument(
        "--decimal", choices=(".", ","), default=".", help="decimal separator; default: point"
    )
    parser.add_argument("--encoding", type=encoding, metavar="NAME", help="default: utf-8")
    parser.add_argument(
        "--missing-values",
        type=names,
        action="extend",
        metavar="TEXT[,TEXT]",
        help="texts for missing values, in addition to empty cells; default: NA, NaN, null, ...",
    )


def _add_folds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cv", type=integer(2), default=10, metavar="N", help="number of folds; default: 10"
    )


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed",
        type=integer(0),
        default=DEFAULT_SEED,
        metavar="N",
        help=f"random seed; default: {DEFAULT_SEED}",
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    """Add data and model options. They have no defaults in the namespace."""
    parser.add_argument(
        "train",
        metavar="TRAIN.csv",
        help=f"CSV with a header line, optionally gzipped, or Parquet; {FROM_STDIN}",
    )
    _add_format(parser)
    parser.add_argument("--target", required=True, metavar="COLUMN", help="column to predict")
    parser.add_argument("--sample-weight", metavar="COLUMN", help="column with sample weights")
    parser.add_argument(
        "--drop",
        type=names,
        action="extend",
        default=[],
        metavar="COLUMN[,COLUMN]",
        help="columns to ignore",
    )
    parser.add_argument(
        "--categorical-features",
        type=names,
        action="extend",
        default=[],
        metavar="COLUMN[,COLUMN]",
        help="categorical features, in addition to text columns",
    )
    parser.add_argument(
        "--model", type=one_of(tuple(MODELS)), choices=tuple(MODELS), default="adaboost"
    )
    _add_seed(parser)
    groups: dict[str, argparse._ArgumentGroup] = {}
    for name in sorted(OWNERS, key=lambda name: name not in GENERAL):
        of, kind = OWNERS[name][0]
        title = "most models" if name in GENERAL else f"{flag(of)} {kind}"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        _add_option(groups[title], name)


def _add_option(group: argparse._ArgumentGroup, name: str) -> None:
    """Add an option of models, weak learners or observation models."""
    options = {owner: DECLARED[owner][name] for owner in OWNERS[name]}
    first = next(iter(options.values()))
    details: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
    choices = dict.fromkeys(choice for option in options.values() for choice in option.choices)
    if name in SWITCHES:
        details = {"action": "store_const", "const": True}
    elif first.types != "bool":
        read, metavar = reader(name, first.types)
        is_named = choices and name not in READERS
        details = {"type": read, "metavar": metavar}
        if is_named:
            details = {"type": one_of(tuple(choices)), "choices": tuple(choices)}
    kinds: dict[object, list[str]] = {}
    for (_, kind), option in options.items():
        kinds.setdefault(option.default, []).append(kind)
    phrases = [
        ", ".join(names) + ("" if default is None else f" (default: {default})")
        for default, names in kinds.items()
    ]
    said_there = (option.words for option in options.values() if option.words)
    words = WORDS.get(name) or next(said_there, "")
    help_ = f"{words}; of {', '.join(phrases)}".removeprefix("; ")
    group.add_argument(
        flag(name), default=argparse.SUPPRESS, help=help_.replace("%", "%%"), **details
    )
