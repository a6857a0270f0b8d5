"""Implement the commands fit, evaluate, predict, show and demo."""

from __future__ import annotations

import inspect
import io
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import pboost as pb
from pboost.cli.options import (
    DECLARED,
    KINDS,
    MODELS,
    OF_NUMBERS,
    SEEDS,
    SEVERAL_CLASSES,
    SWITCHES,
    check_model_options,
    declared,
    told_warnings,
)
from pboost.cli.streams import (
    STREAM,
    CommandError,
    UsageError,
    check_inputs,
    check_model_output,
    load_model,
    progress,
    require,
    save_model,
)
from pboost.cli.table import (
    DataFrame,
    Format,
    check_output,
    described,
    pick_columns,
    read_table,
    split_table,
    texts_of,
    write_table,
    write_text,
)
from pboost.data.read.check_xy import MOST_CLASSES, is_continuous
from pboost.data.targets import CLASSIFICATION, REGRESSION, targets_of, task_of_options
from pboost.models.base import Model, TwoClassModel
from pboost.models.files import replace_file
from pboost.values import Array, FloatArray, with_bar

#: Default depth of the base learners of SAMME.
SAMME_DEPTH = 3
#: Sizes of the models in the demonstration.
ROUNDS = (5, 20, 100, 400)
NODES = (1, 3, 7, 15)
SOFT_NODES = (15, 31)
SHAPE = (4, 4, 4)
#: Plot marker of each family of models. `FOOTNOTE` explains the asterisk.
MARKERS = {"AdaBoost": "o", "boosted tree": "s", "soft tree*": "^", "matryoshka*": "D"}
FOOTNOTE = (
    "* observation model of AdaTree 2: the certificate bounds the error of randomized predictions"
)


def run_fit(options: Namespace) -> None:
    """Run ``pboost fit``: train on a file, save the model and print a summary."""
    check_model_options(options)
    check_output(options.output, options.train)
    check_model_output(options.output)
    X, y, weight = _training(options)
    fit = builder(options)
    takes_bar = "progress" in inspect.signature(fit).parameters
    model = fit(X, y, sample_weight=weight, **({"progress": progress()} if takes_bar else {}))
    save_model(model, options.output)
    if options.output != STREAM:
        write_text(f"{options.output}: {_outcome(model)}\n")


def run_evaluate(options: Namespace) -> None:
    """Run ``pboost evaluate``: cross-validate a model."""
    check_model_options(options)
    X, y, weight = _training(options)
    fit = builder(options)
    with told_warnings():
        result = pb.cross_validate(
            fit,
            X,
            y,
            task=options.task,
            cv=options.cv,
            rng=options.seed,
            sample_weight=weight,
            progress=progress(),
        )
    write_text(f"{result.summary()}\n")


def run_predict(options: Namespace) -> None:
    """Run ``pboost predict``: write the predictions for each row."""
    check_inputs(options.model, options.data)
    check_output(options.output, options.model, options.data)
    pandas, form = require("pandas", "cli"), _format(options)
    model = load_model(options.model)
    X = pick_columns(read_table(options.data, form, texts_of(model)), model, form)
    write_table(pandas.DataFrame(_predictions(model, X)), options.output, form)


def run_show(options: Namespace) -> None:
    """Run ``pboost show``: print a model or its coefficients as text."""
    model = load_model(options.model)
    text = str(pb.inspection.coefficients(model)) if options.coefficients else pb.describe(model)
    lines = [text.rstrip("\n"), *described(model.table, model.feature_names)]
    write_text("\n".join(lines) + "\n")


def _training(options: Namespace) -> tuple[DataFrame, Array, FloatArray | None]:
    """Read features, targets and weights. Store the task in the options.

    Raises CommandError if the model does not support the classes, or the task is ambiguous.
    """
    task = _decided_task(options)
    form = _format(options)
    texts = [*options.categorical_features, *([] if task == REGRESSION else [options.target])]
    table = read_table(options.train, form, texts)
    X, y, weight = split_table(
        table,
        options.target,
        options.sample_weight,
        form,
        drop=options.drop,
        categorical_features=options.categorical_features,
        is_regression=task == REGRESSION,
    )
    task = targets_of(y).task if task is None else task
    if task is None:
        raise CommandError(
            f"column {options.target!r}: got more than {MOST_CLASSES} distinct integers, which may "
            "be classes or a continuous target; pass --task classification or --task regression"
        )
    if task == CLASSIFICATION:
        _check_classes(np.unique(y), options)
    options.task = task
    return X, y, weight


def _decided_task(options: Namespace) -> str | None:
    """Return the task implied by the options, or None if it depends on the target."""
    arguments = vars(options)
    if "task" in arguments:
        return str(arguments["task"])
    if "one_vs_rest" in arguments or "task" not in DECLARED["model", options.model]:
        return CLASSIFICATION
    return task_of_options(arguments)


def _check_classes(values: Array, options: Namespace) -> None:
    """Raise CommandError if the model does not support these classes."""
    numbers = "for regression, pass --task regression and --model " + _listed(OF_NUMBERS, "or")
    if is_continuous(values):
        raise CommandError(
            f"column {options.target!r}: expected class labels, got {len(values)} distinct "
            f"non-integer numbers; {numbers}"
        )
    takes_any = options.model in SEVERAL_CLASSES or "one_vs_rest" in options
    takes_any = takes_any or vars(options).get("join") == "all"
    if len(values) > 2 and not takes_any:
        may_be = len(values) > MOST_CLASSES and values.dtype.kind in "iuf"
        raise CommandError(
            f"column {options.target!r}: --model {options.model} expected two classes, got "
            f"{len(values)}; pass --one-vs-rest or --model "
            f"{_listed(SEVERAL_CLASSES, 'or')}" + f"; {numbers}" * may_be
        )


def _listed(words: Sequence[str], last: str) -> str:
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def _format(options: Namespace) -> Format:
    """Return the file format chosen by the options."""
    missing = options.missing_values
    return Format(
        options.sep, options.encoding, options.decimal, None if missing is None else tuple(missing)
    )


def _outcome(model: Model) -> str:
    """Return a one-line summary of a fitted model."""
    if not isinstance(model, TwoClassModel):
        error = getattr(getattr(model, "oob", None), "error", np.nan)
        tested = f"; out-of-bag error {error:.4g}" if np.isfinite(error) else ""
        return pb.describe(model).splitlines()[0] + tested
    return (
        f"{model.n_nodes} nodes, certificate {model.record.certificate[-1]:.4g}"
        f"{f' ({model.certificate_note})' if model.certificate_note else ''}; "
        f"{model.record.stop_reason}"
    )


def _predictions(model: Model, X: object) -> dict[str, Array]:
    """Return the columns of the output of ``pboost predict``."""
    if model.classes is None:
        return {"value": pb.predict(model, X)}
    labels = {"label": pb.predict(model, X)}
    try:
        share = pb.predict_proba(model, X)
    except NotImplementedError:  # the hinge loss has no probabilities
        return {**labels, "decision value": pb.decision_function(model, X)}
    # In a binary classification, only the second class gets a column.
    named = [
        (f"probability_{label}", share[:, k]) for k, label in enumerate(model.classes.tolist())
    ]
    return {**labels, **dict(named[1:] if len(named) == 2 else named)}


def builder(options: Namespace) -> Callable[..., Model]:
    """Return the fit function with the options of the command line."""
    arguments, fit = vars(options), MODELS[options.model]
    settings = _settings("model", options.model, options)
    for of in ("weak_learner", "observation"):
        if of in arguments or (
            of == "weak_learner" and "weak_learner" in DECLARED["model", options.model]
        ):
            kind = arguments.get(of, "stump")
            settings[of] = KINDS[of][kind](**_settings(of, kind, options))
    fit, settings = _adjusted(fit, settings, arguments)
    fit = partial(fit, **settings)
    return partial(pb.fit_one_vs_rest, fit) if "one_vs_rest" in arguments else fit


def _settings(of: str, kind: str, options: Namespace) -> dict[str, Any]:
    """Return the options given for a model, weak learner or observation model."""
    arguments = vars(options)
    settings = {o.parameter: arguments[n] for n, o in DECLARED[of, kind].items() if n in arguments}
    if "base" in settings:
        settings["base"] = pb.observation.flip(settings["base"])
    parameters = inspect.signature(KINDS[of][kind]).parameters
    return settings | {name: options.seed for name in SEEDS if name in parameters}


def _adjusted(
    fit: Callable[..., Any], settings: dict[str, Any], arguments: dict[str, Any]
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Apply --pruned, --published and other options that are not parameters."""
    is_pruned, is_published = (settings.pop(name, False) for name in ("pruned", "published"))
    model = arguments["model"]
    is_split = model in SWITCHES["one_vs_rest"][0] and settings.pop("one_vs_rest", False)
    if is_pruned:
        return pb.fit_pruned_cart, settings
    if is_published:
        settings = pb.models.published_sbpmt_options() | settings
    if model == "gradient-boosting" and is_split:
        settings.setdefault("loss", "log_loss")
    if model == "samme":
        boosting_options: dict[str, Any] = {
            n: settings.pop(n) for n in declared(fit) if n in settings
        }
        base: dict[str, Any] = {"max_depth": SAMME_DEPTH, "rng": arguments["seed"]} | settings
        return fit, {"base_learner": partial(pb.fit_cart, **base), **boosting_options}
    return fit, settings


def run_demo(options: Namespace) -> None:
    """Run ``pboost demo``: cross-validate models of several sizes and print a table."""
    datasets = require("sklearn.datasets", "demo")
    figure = None if options.plot is None else _empty_figure(options.plot)
    X, y = datasets.load_breast_cancer(return_X_y=True, as_frame=False)
    fits = _compared()
    results: list[tuple[str, str, pb.inspection.CrossValidation]] = []
    folds = options.cv
    with with_bar(None, progress(), len(fits) * folds, "fits") as on_step:
        for family, size, fit in fits:

            def step(fold: int, error: float, before: int = len(results) * folds) -> Any:
                return on_step is not None and on_step(before + fold, error)

            done = pb.cross_validate(fit, X, y, cv=folds, rng=options.seed, callback=step)
            results.append((family, size, done))
    write_text(
        f"Breast-cancer data of scikit-learn: {X.shape[0]} rows, {X.shape[1]} features, "
        f"{folds}-fold cross-validation\n\n{_comparison(results)}\n\n{FOOTNOTE}\n"
    )
    if figure is not None:
        _draw(figure, results, options.plot)


def _compared() -> list[tuple[str, str, partial[pb.models.DecisionGraph]]]:
    """Return the models to compare. Each is a tuple of family, size and fit function."""
    fits = [("AdaBoost", f"{n} rounds", partial(pb.fit_adaboost, n_estimators=n)) for n in ROUNDS]
    for n in NODES:
        size = "1 node" if n == 1 else f"{n} nodes"
        fits.append(("boosted tree", size, partial(pb.fit_boosted_tree, max_nodes=n)))
    for n in SOFT_NODES:
        fit = partial(pb.fit_boosted_tree, max_nodes=n, observation=pb.observation.adatree2())
        fits.append(("soft tree*", f"{n} nodes", fit))
    size = " x ".join(map(str, SHAPE)) + " nodes"
    fit = partial(pb.fit_matryoshka, shape=SHAPE, observation=pb.observation.adatree2())
    fits.append(("matryoshka*", size, fit))
    return fits


def _comparison(results: list[tuple[str, str, pb.inspection.CrossValidation]]) -> str:
    """Return a table with one line per model."""
    rows = [("model", "test error ± sd", "comparisons per row", "certificate ", "fit time")]
    rows += [
        (
            f"{family.rstrip('*')}, {size}",
            f"{100 * result.error.mean():.1f} ± {result.error_sd * 100:.1f} %",
            f"{result.cost.mean():.1f}",
            f"{result.certificate.mean():.2g}{'*' if family.endswith('*') else ' '}",
            f"{1e3 * result.fit_seconds.mean():.1f} ms",
        )
        for family, size, result in results
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *values in rows:
        cells = [value.rjust(w) for value, w in zip(values, widths[1:], strict=True)]
        lines.append("   ".join([name.ljust(widths[0]), *cells]))
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _empty_figure(path: str) -> Any:
    """Check that the plot can be written to `path`. Return an empty figure."""
    figure = require("matplotlib.figure", "demo").Figure(figsize=(6, 4), layout="constrained")
    known = figure.canvas.get_supported_filetypes()
    if _suffix(path) not in known:
        raise UsageError(f"--plot: expected a file name with the extension {' or '.join(known)}")
    check_output(path)
    return figure


def _suffix(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _draw(
    figure: Any, results: list[tuple[str, str, pb.inspection.CrossValidation]], path: str
) -> None:
    """Plot test error against cost. Each family of models has one line."""
    axes = figure.subplots()
    for family, marker in MARKERS.items():
        mine = [result for name, _, result in results if name == family]
        axes.errorbar(
            [result.cost.mean() for result in mine],
            [100 * result.error.mean() for result in mine],
            yerr=[100 * result.error_sd for result in mine],
            marker=marker,
            capsize=3,
            label=family.rstrip("*"),
        )
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("comparisons per row")
    axes.set_ylabel("test error (%), mean ± sd over folds")
    axes.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=_suffix(path), dpi=150)
    replace_file(path, buffer.getvalue())
