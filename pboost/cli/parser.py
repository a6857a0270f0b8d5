"""What can be typed, and which options belong to which model."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from pboost._version import __version__
from pboost.cli import values
from pboost.cli.errors import UsageError
from pboost.losses import LOSSES
from pboost.models.subagged_checks import VOTES
from pboost.probit.sbpmt import ONE_VS_ALL

#: Options that not all kinds of model have, as `dest` names; first the size.
OWN_OPTIONS = {
    "adaboost": ("rounds", "votes"),
    "tree": ("nodes", "growth", "max_depth", "target_certificate"),
    "matryoshka": ("shape", "collect", "join", "growth", "nodes"),
    "adaboost-real": ("rounds", "confidence"),
    "topdown": ("nodes", "growth", "max_depth", "target_certificate", "impurity"),
    "cart": ("max_leaves", "max_depth", "min_leaf", "task", "pruned"),
    "forest": ("members", "max_depth", "min_leaf", "max_leaves", "features_per_split", "task"),
    "samme": ("rounds", "max_depth", "min_leaf", "max_leaves"),
    "stagewise": ("steps", "loss", "max_depth", "min_leaf", "subsample", "task"),
    "sbpmt": ("members", "rounds", "steps", "fraction", "depth", "min_leaf", "vote", "one_vs_all",
              "published"),
    "probit-tree": ("depth", "min_leaf", "steps"),
    "probit": ("steps",),
}  # fmt: skip
#: Models that are trees, or made of them, which are not grown by boosting.
TREE_MODELS = ("cart", "forest", "samme", "stagewise")
#: Those of ProbitBoost.
PROBIT_MODELS = ("sbpmt", "probit-tree", "probit")
#: Models that take labels of more than two values.
SEVERAL_CLASSES = ("cart", "forest", "samme", "sbpmt", "probit-tree")
#: Models of members that are fitted on their own.
MEMBER_MODELS = ("forest", "sbpmt")
_NOT_OF_PROBIT = ("observation", "weak", "smoothing", "learning_rate", "validation", "patience")
#: Options of all models but these.
NOT_OF: dict[str, tuple[str, ...]] = {
    "adaboost-real": ("observation", "validation", "patience"),
    "topdown": ("observation", "weak", "criterion", "search", "validation", "patience"),
    "cart": ("observation", "weak", "smoothing", "learning_rate", "validation", "patience",
             "one_vs_rest"),
    "forest": ("observation", "weak", "smoothing", "learning_rate", "validation", "patience",
               "one_vs_rest"),
    "samme": ("observation", "weak", "smoothing", "validation", "patience", "one_vs_rest"),
    "stagewise": ("observation", "weak", "smoothing", "criterion"),
    "sbpmt": (*_NOT_OF_PROBIT, "criterion", "search", "one_vs_rest"),
    "probit-tree": (*_NOT_OF_PROBIT, "one_vs_rest"),
    "probit": (*_NOT_OF_PROBIT, "criterion", "search", "threads"),
}  # fmt: skip
#: Options that only some weak classifiers have, as `dest` names; the default first.
WEAK_OPTIONS: dict[str, tuple[str, ...]] = {
    "stump": (), "affine": ("directions", "terms"), "feature": (), "separator": ("stumps",),
    "linear": ("dense_gain",),
}  # fmt: skip
#: Sizes used where none is given.
DEFAULT_SIZE: dict[str, Any] = {
    "adaboost": 100, "tree": 31, "matryoshka": (8, 8), "adaboost-real": 100, "topdown": 31,
    "forest": 100, "samme": 100, "stagewise": 100, "sbpmt": 21,
}  # fmt: skip
#: Depth of the trees of SAMME where none is given: those without error would end it.
SAMME_DEPTH = 3
#: Values of ``--observation`` and, by kind of model, ``--growth``, the defaults first.
OBSERVATIONS = ("exact", "flip", "half", "uniform", "adatree2", "gaussian", "sampled")
#: The option that an observation needs, as `dest` name.
OBSERVATION_OPTIONS = {"flip": "flip_rate", "gaussian": "sigma"}
#: Those that it may have.
OPTIONAL_OPTIONS = {"sampled": ("flip_rate", "draws")}
_TREE_GROWTHS = ("largest-bound", "largest-error", "look-ahead", "breadth-first")
GROWTHS = {
    "tree": _TREE_GROWTHS,
    "topdown": _TREE_GROWTHS,
    "matryoshka": ("nested", "greedy"),
}
CRITERIA = ("kearns-mansour", "gini", "entropy", "error")
#: Seed used where none is given, so that a command gives the same result twice.
DEFAULT_SEED = 0


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors take one line and whose options cannot be abbreviated."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options["allow_abbrev"] = False
        super().__init__(*args, **options)

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = OneLineParser(prog="pboost", description="Boosted classifiers from CSV files.")
    parser.add_argument("--version", action="version", version=f"pboost {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="compare models of several sizes on real data")
    demo.add_argument("--plot", metavar="FILE", help="also draw test error against cost")
    _add_folds(demo)
    _add_seed(demo)

    fit = commands.add_parser("fit", help="fit a model to a CSV file and save it")
    _add_training(fit)
    fit.add_argument("-o", dest="output", metavar="MODEL.npz", required=True)

    evaluate = commands.add_parser("evaluate", help="cross-validate a model on a CSV file")
    _add_training(evaluate)
    _add_folds(evaluate)

    predict = commands.add_parser(
        "predict",
        help="apply a model to a CSV file",
        description="Writes a CSV file with one line per row: the predicted label, and the "
        "probability that the row has the second of the model's two labels in sorted order; with "
        "more labels the probability of each; of a regression the number; with the hinge loss, "
        "which tells no probability, the decision value.",
    )
    predict.add_argument("model", metavar="MODEL.npz")
    predict.add_argument("data", metavar="DATA.csv", help="other columns may be there, too")
    predict.add_argument("-o", dest="output", metavar="OUT.csv", help="default: standard output")

    show = commands.add_parser("show", help="print a model as text")
    show.add_argument("model", metavar="MODEL.npz")
    show.add_argument("--coefficients", action="store_true", help="the average slopes of a model "
                      "of ProbitBoost instead")  # fmt: skip
    return parser


def check_model_options(options: argparse.Namespace) -> None:
    """Raise UsageError for an option that the chosen model or observation does not have."""
    for name in sorted({name for names in OWN_OPTIONS.values() for name in names}):
        if hasattr(options, name) and name not in OWN_OPTIONS[options.model]:
            owners = " or ".join(model for model in OWN_OPTIONS if name in OWN_OPTIONS[model])
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} belongs to --model {owners}, not {options.model}")
    for name in NOT_OF.get(options.model, ()):
        if hasattr(options, name):
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} does not go with --model {options.model}")
    if hasattr(options, "one_vs_rest"):
        for name, value in (("task", "regression"), ("loss", "hinge")):
            if getattr(options, name, "") == value:
                raise UsageError(f"--one-vs-rest does not go with --{name} {value}")
    _check_growth(options)
    _check_weak(options)
    _check_observation(options)
    if hasattr(options, "patience") and not hasattr(options, "validation"):
        raise UsageError("--patience needs --validation")


def _check_weak(options: argparse.Namespace) -> None:
    """Raise UsageError for a weak learner of another model, or an option of another learner."""
    weak = getattr(options, "weak", "stump")
    if weak == "feature" and options.model != "adaboost-real":
        raise UsageError(f"--weak feature belongs to --model adaboost-real, not {options.model}")
    for name in ("criterion", "search", "confidence"):
        if weak == "feature" and hasattr(options, name):
            raise UsageError(f"--{name} does not go with --weak feature")
    for kind, names in WEAK_OPTIONS.items():
        for name in names:
            if kind != weak and hasattr(options, name):
                flag = "--" + name.replace("_", "-")
                raise UsageError(f"{flag} belongs to --weak {kind}, not {weak}")
    if weak == "linear" and hasattr(options, "search"):
        raise UsageError("--search does not go with --weak linear")


def _check_observation(options: argparse.Namespace) -> None:
    """Raise UsageError for an option of another observation, or one that is missing."""
    chosen = getattr(options, "observation", "exact")
    needed = OBSERVATION_OPTIONS.get(chosen)
    if needed is not None and not hasattr(options, needed):
        raise UsageError(f"--observation {chosen} needs --{needed.replace('_', '-')}")
    owners: dict[str, list[str]] = {}
    for kind, name in OBSERVATION_OPTIONS.items():
        owners.setdefault(name, []).append(kind)
    for kind, names in OPTIONAL_OPTIONS.items():
        for name in names:
            owners.setdefault(name, []).append(kind)
    for name, kinds in owners.items():
        if hasattr(options, name) and chosen not in kinds:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} belongs to --observation {' or '.join(kinds)}")


def _check_growth(options: argparse.Namespace) -> None:
    """Raise UsageError for a growth of another model, or the size of another growth."""
    growth = getattr(options, "growth", None)
    owners = [model for model, growths in GROWTHS.items() if growth in growths]
    if owners and options.model not in owners:
        owner = " or ".join(owners)
        raise UsageError(f"--growth {growth} belongs to --model {owner}, not {options.model}")
    if options.model != "matryoshka":
        return
    if growth != "greedy" and hasattr(options, "nodes"):
        raise UsageError("--nodes belongs to --growth greedy; --growth nested has a --shape")
    if growth == "greedy" and hasattr(options, "shape"):
        raise UsageError("--shape belongs to --growth nested; --growth greedy has --nodes")
    if growth == "greedy" and not hasattr(options, "nodes"):
        raise UsageError("--growth greedy needs --nodes")


def _add_folds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folds", type=values.folds, default=10, metavar="N", help="default: 10")


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed",
        type=values.seed,
        default=DEFAULT_SEED,
        metavar="N",
        help=f"default: {DEFAULT_SEED}",
    )


def option(group: Any, flag: str, **details: Any) -> None:
    """Add an option that is absent from the namespace where it is not given."""
    group.add_argument(flag, default=argparse.SUPPRESS, **details)


def _add_training(parser: argparse.ArgumentParser) -> None:
    """Add data and model options; those left out are absent from the namespace."""
    parser.add_argument("train", metavar="TRAIN.csv", help="with a header line; may be gzipped")
    parser.add_argument("--target", required=True, metavar="COLUMN", help="column of the labels")
    parser.add_argument("--weight", metavar="COLUMN", help="column of the sample weights")
    parser.add_argument("--model", choices=tuple(OWN_OPTIONS), default="adaboost")

    every = parser.add_argument_group("all models")
    option(every, "--weak", choices=tuple(WEAK_OPTIONS), help="what a node compares; not with "
           "topdown, feature only with adaboost-real")  # fmt: skip
    option(every, "--directions", type=values.count, metavar="N", help="of --weak affine")
    option(every, "--terms", type=values.terms, metavar="N", help="columns in a sum, likewise")
    option(every, "--stumps", type=values.count, metavar="N", help="of --weak separator")
    option(every, "--dense-gain", type=values.gain, metavar="X", help="of --weak linear, 0 or more")
    option(every, "--criterion", choices=CRITERIA, help="not of topdown, stagewise, sbpmt, probit")
    option(every, "--search", choices=("auto", "exact", "binned"))
    option(every, "--observation", choices=OBSERVATIONS, help="how sure answers are; not with "
           "adaboost-real and topdown")  # fmt: skip
    option(every, "--flip-rate", type=values.flip_rate, metavar="X", help="0 to below 0.5")
    option(every, "--sigma", type=values.sigma, metavar="X", help="error of every column, above 0")
    option(
        every,
        "--draws",
        type=values.draws,
        metavar="N",
        help="a number, or first-increase (default)",
    )
    option(every, "--smoothing", type=values.share, metavar="X", help="0 to 1")
    option(every, "--learning-rate", type=values.rate, metavar="X", help="above 0, at most 1")
    option(every, "--validation", type=values.held_out, metavar="X", help="share of rows held out")
    option(
        every, "--patience", type=values.count, metavar="N", help="with --validation; default: 50"
    )
    option(every, "--threads", type=values.count, metavar="N")
    every.add_argument("--one-vs-rest", action="store_const", const=True, help="one model per "
                       "label; for two-class models", default=argparse.SUPPRESS)  # fmt: skip
    _add_seed(parser)
    _add_boosting(parser)
    _add_trees(parser)
    _add_probit(parser)


def _add_boosting(parser: argparse.ArgumentParser) -> None:
    """Add the options of single boosters."""
    adaboost = parser.add_argument_group("--model adaboost, adaboost-real and samme")
    size = DEFAULT_SIZE["adaboost"]
    option(adaboost, "--rounds", type=values.count, metavar="N", help=f"default: {size}")
    option(adaboost, "--votes", choices=("domain", "symmetric"), help="adaboost only")
    option(
        adaboost, "--confidence", choices=("share", "log-odds", "sign"), help="adaboost-real only"
    )
    tree = parser.add_argument_group("--model tree and topdown")
    size = DEFAULT_SIZE["tree"]
    option(tree, "--nodes", type=values.count, metavar="N", help=f"default: {size}; see also below")
    growths = tuple(dict.fromkeys(growth for names in GROWTHS.values() for growth in names))
    option(
        tree,
        "--growth",
        choices=growths,
        metavar="ORDER",
        help=f"one of {', '.join(GROWTHS['tree'])}; see also below",
    )
    option(tree, "--max-depth", type=values.count, metavar="N", help="also of the models below but "
           f"matryoshka; {SAMME_DEPTH} with samme and stagewise if left out")  # fmt: skip
    option(tree, "--target-certificate", type=values.target, metavar="X", help="between 0 and 1")
    option(tree, "--impurity", choices=CRITERIA, help="topdown only")
    matryoshka = parser.add_argument_group(
        "--model matryoshka",
        "Has --growth, too: nested (default), with --shape, or greedy, which needs --nodes.",
    )
    size = ",".join(map(str, DEFAULT_SIZE["matryoshka"]))
    help_ = f"innermost first; default: {size}"
    option(matryoshka, "--shape", type=values.shape, metavar="N,N", help=help_)
    option(matryoshka, "--collect", choices=("additive", "sign"))
    option(matryoshka, "--join", choices=("sign", "all"))


def _add_trees(parser: argparse.ArgumentParser) -> None:
    """Add the options of trees and of models made of them."""
    carts = parser.add_argument_group("--model cart, forest, samme and stagewise")
    option(carts, "--task", choices=("classification", "regression"), help="not of samme")
    option(carts, "--min-leaf", type=values.count, metavar="N", help="rows in a leaf; default: 1; "
           "see also below")  # fmt: skip
    option(carts, "--max-leaves", type=values.count, metavar="N", help="not of stagewise")
    carts.add_argument("--pruned", action="store_const", const=True, default=argparse.SUPPRESS,
                       help="cart only: pruned by cross-validation")  # fmt: skip
    size = DEFAULT_SIZE["forest"]
    option(carts, "--members", type=values.count, metavar="N", help="forest only; default: "
           f"{size}; see also below")  # fmt: skip
    option(carts, "--features-per-split", type=values.columns, metavar="K", help="forest only: "
           "sqrt (default), log2, all, or a number")  # fmt: skip
    size = DEFAULT_SIZE["stagewise"]
    option(carts, "--steps", type=values.count, metavar="N", help="stagewise only; default: "
           f"{size}; see also below")  # fmt: skip
    option(carts, "--loss", choices=tuple(LOSSES), help="stagewise only; default: logistic, or "
           "squared of a regression")  # fmt: skip
    option(
        carts, "--subsample", type=values.rate, metavar="X", help="stagewise only: share of rows"
    )


def _add_probit(parser: argparse.ArgumentParser) -> None:
    """Add the options of models of ProbitBoost."""
    probit = parser.add_argument_group(
        "--model sbpmt, probit-tree and probit",
        "Have --steps (default: 100), the first two --min-leaf (default: 20), and sbpmt --members "
        f"(default: {DEFAULT_SIZE['sbpmt']}) and --rounds (default: 5), too.",
    )
    option(probit, "--depth", type=values.depth, metavar="N", help="not of probit; default: 6")
    option(probit, "--fraction", type=values.rate, metavar="X", help="sbpmt only: share of rows of "
           "a member; default: 0.7")  # fmt: skip
    option(probit, "--vote", choices=VOTES, help="sbpmt only")
    option(probit, "--one-vs-all", choices=ONE_VS_ALL, help="sbpmt only: where each of more than "
           "two classes is told from the others")  # fmt: skip
    probit.add_argument("--published", action="store_const", const=True, default=argparse.SUPPRESS,
                        help="sbpmt only: with the options of the published code where none "
                        "are given")  # fmt: skip
