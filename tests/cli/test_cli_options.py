"""The command line: options are the parameters of builders, weak learners and observations."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
import pytest
from command_line import SEARCH_PATH, assert_one_line, frame, run

import pboost as pb
from pboost.cli import options, parser

pandas = pytest.importorskip("pandas")


def toy(
    sharpness: float,
    max_depth: int = 3,
    *,
    way: Literal["up", "down"] = "up",
    tie: bool = False,
    f: Callable[[int], int] | None = None,
    rng: int | None = None,
):
    """A learner that is not there.

    Parameters
    ----------
    sharpness : float
        How sharp it is; at least 0.
    max_depth, way : {"up", "down"}
        See elsewhere.
    tie : bool
        Whether `ties` count.

    Returns
    -------
    None
    """


def of_functions(train: Callable, way: str = "up"):
    """A learner that cannot be typed."""


def test_a_new_parameter_is_an_option():
    actual = options.declared(toy)
    assert list(actual) == ["sharpness", "max_depth", "way", "tie"]
    assert actual["sharpness"].is_needed
    assert (actual["max_depth"].default, actual["max_depth"].choices) == (3, ())
    assert actual["way"].choices == ("up", "down")
    assert actual["tie"].words == "Whether ties count"
    assert actual["sharpness"].words == "How sharp it is"


def test_a_new_learner_is_there_if_it_can_be_typed():
    assert options.typed_kinds({"toy": toy, "of_functions": of_functions}) == {"toy": toy}
    assert {"stump", "linear", "feature"} <= set(options.KINDS["weak_learner"])
    assert not {"oracle", "from_estimator", "hypothesis"} & set(options.KINDS["weak_learner"])
    assert set(options.KINDS["observation"]) == {
        name for name in pb.observation.__all__ if inspect.isfunction(getattr(pb.observation, name))
    }


def test_help_lists_all_options(pboost_main):
    code, out, _ = pboost_main("fit", "--help")
    assert code == 0
    flags = {options.flag(name) for name in options.OWNERS}
    assert {"--min-samples-split", "--no-bootstrap", "--max-draws", "--n-terms", "--tol"} <= {
        *flags,
        "--no-bootstrap",
    }
    assert [flag for flag in flags if f"{flag} " not in out and f"{flag}\n" not in out] == []


OTHERS = {
    "--model boosted-tree --max-nodes 5 --n-threads -1 --max-depth 3": partial(
        pb.fit_boosted_tree, max_nodes=5, max_depth=3
    ),
    "--model random-forest --n-estimators 3 --max-samples 0.5 --n-threads none": partial(
        pb.fit_random_forest, n_estimators=3, max_samples=0.5, rng=0
    ),
    "--model sbpmt --n-estimators 2 --max-iter 2 --max-samples 30 --max-depth none": partial(
        pb.fit_sbpmt, n_estimators=2, max_iter=2, max_samples=30, max_depth=None, rng=0
    ),
    "--model random-forest --n-estimators 3 --no-bootstrap --max-samples 20 --max-bins 16": partial(
        pb.fit_random_forest, n_estimators=3, bootstrap=False, max_samples=20, max_bins=16, rng=0
    ),
    "--model cart --growth best_first --min-samples-split 9 --max-features 2 --seed 3": partial(
        pb.fit_cart, growth="best_first", min_samples_split=9, max_features=2, rng=3
    ),
    "--model samme --n-estimators 3 --max-features sqrt --seed 5": partial(
        pb.fit_samme,
        n_estimators=3,
        base_learner=partial(pb.fit_cart, max_depth=3, max_features="sqrt", rng=5),
    ),
    "--model gradient-boosting --n-estimators 4 --max-delta-step none --init zero --max-depth "
    "none": partial(
        pb.fit_gradient_boosting,
        n_estimators=4,
        loss="log_loss",
        max_delta_step=None,
        init="zero",
        max_depth=None,
    ),
    "--model gradient-boosting --n-estimators 4 --max-delta-step 0.5": partial(
        pb.fit_gradient_boosting, n_estimators=4, loss="log_loss", max_delta_step=0.5
    ),
    "--model probitboost --max-iter 6 --tol 0.5 --no-safeguard": partial(
        pb.fit_probitboost, max_iter=6, tol=0.5, safeguard=False
    ),
    "--model real-adaboost --n-estimators 4 --weak-learner feature --center zero "
    "--no-include-constant": partial(
        pb.fit_real_adaboost,
        n_estimators=4,
        weak_learner=pb.weak.feature("zero", include_constant=False),
    ),
    "--model boosted-tree --max-nodes 5 --weak-learner linear --max-pairs 2 --min-samples-leaf "
    "3": partial(
        pb.fit_boosted_tree,
        max_nodes=5,
        weak_learner=pb.weak.linear(max_pairs=2, min_samples_leaf=3),
    ),
    "--model budget --mean-comparisons 4 --seed 2": partial(
        pb.fit_within_budget, mean_comparisons=4, rng=2
    ),
    "--model budget --max-bytes 400": partial(pb.fit_within_budget, max_bytes=400, rng=0),
    "--n-estimators 3 --observation sampled --estimator ml --max-draws 9": partial(
        pb.fit_adaboost,
        n_estimators=3,
        rng=0,
        observation=pb.observation.sampled(estimator="ml", max_draws=9),
    ),
}


@pytest.mark.full_for("--model budget --max-bytes 400")
@pytest.mark.parametrize("given", OTHERS)
def test_options_reach_the_functions(csv_file, pboost_main, given):
    model = csv_file.with_name("m")
    code, _, err = pboost_main("fit", csv_file, "--target", "state", *given.split(), "-o", model)
    assert (code, err) == (0, "")
    X, y = frame().drop(columns="state"), frame()["state"]
    loaded = pb.load(model)
    pb.save(OTHERS[given](X, y), model)
    expected = pb.load(model)
    assert loaded.settings == expected.settings
    np.testing.assert_array_equal(
        pb.decision_function(loaded, X), pb.decision_function(expected, X)
    )


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("--model cart --bootstrap", "--bootstrap requires --model random-forest, got cart"),
        (
            "--weak-learner separator --min-samples-leaf 3",
            "--min-samples-leaf requires --weak-learner stump or affine",
        ),
        (
            "--model budget",
            "--model budget requires --mean-comparisons, --max-comparisons or --max-bytes",
        ),
        ("--mean-comparisons 3", "--mean-comparisons requires --model budget, got adaboost"),
        (
            "--model budget --mean-comparisons 3 --one-vs-rest",
            "--one-vs-rest cannot be used with --model",
        ),
        ("--model cart --max-pairs 3", "--max-pairs requires --weak-learner linear, got stump"),
        ("--observation flip --flip-rate 0.1 --max-draws 3", "requires --observation sampled"),
        (
            "--model boosted-tree --growth best_first",
            "requires --model cart or samme, got boosted-tree",
        ),
        ("--model sbpmt --learning-rate x", "--learning-rate: expected a number"),
        (
            "--model boosted-tree --n-threads -2",
            "--n-threads: expected an integer >= 1, got '-2'",
        ),
        (
            "--model random-forest --max-samples 0",
            "--max-samples: expected an integer >= 1, got '0'",
        ),
        (
            "--model random-forest --max-samples 1.5",
            "--max-samples: expected a number in (0, 1], got '1.5'",
        ),
    ],
)
def test_wrong_usage(csv_file, pboost_main, given, part):
    code, out, err = pboost_main("evaluate", csv_file, "--target", "state", *given.split())
    assert (code, out) == (2, "")
    assert_one_line(err, part)


@pytest.mark.full
def test_without_docstrings_builders_refuse_what_is_no_choice(csv_file):
    arguments = [
        str(csv_file),
        "--target",
        "state",
        "--n-estimators",
        "3",
        "-o",
        str(csv_file) + ".npz",
    ]
    call = [sys.executable, "-B", "-OO", "-m", "pboost", "fit", *arguments]
    env = {"PYTHONPATH": SEARCH_PATH, "PATH": ""}
    done = [
        subprocess.run([*call, "--votes", votes], capture_output=True, text=True, env=env)
        for votes in ("symmetric", "loud")
    ]
    assert [process.returncode for process in done] == [0, 1]
    assert_one_line(done[1].stderr, "votes")
    assert run("fit", *arguments, "--votes", "loud")[0] == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "--num-iterations 9 --model random-forest",
            "--num-iterations: use --n-estimators with --model random-forest",
        ),
        ("--num_iterations=9", "--num-iterations: use --n-estimators with --model adaboost"),
        ("--colsample_bynode 3", "use --max-features, sampled for each split with --model"),
        ("--min-data-in-leaf 3", "use --min-samples-leaf, a number of rows with --model adaboost"),
        ("--random-state 3", "--random-state: use --seed"),
        ("--n-jobs 3", "--n-jobs: use --n-threads"),
        ("--ccp-alpha 3", "--ccp-alpha: only available in Python: use pb.prune"),
        ("--encodin utf-8", "--encodin: did you mean --encoding?"),
        ("--zzz", "unrecognized arguments: --zzz"),
        ("--n-trees 3", "--n-trees: use --n-estimators"),
        ("--rng 3", "--rng: use --seed"),
        ("--label y", "--label: use --target"),
        (
            "--quantile 0.9",
            "--quantile: only available in Python: use loss=pb.losses.Quantile(0.9)",
        ),
        ("--loss quantile", "got 'quantile'; only available in Python: use loss=pb.losses.Quan"),
        ("--mc 1,0", "--mc: only available in Python, as `monotonic_cst` of pb.fit_gradient_boo"),
        ("--budget 3", "--budget: use --mean-comparisons, or --max-comparisons to limit each row"),
        ("--model gbm", "got 'gbm'; did you mean gradient-boosting?"),
        ("--max_depth 3", "--max-depth requires --model"),
        ("--model forest", "got 'forest'; did you mean random-forest?"),
        ("--criterion gin", "got 'gin'; did you mean gini?"),
        (
            "--task regression",
            "--task regression requires --model cart, random-forest, gradient-boosting or budget; "
            "the default is adaboost",
        ),
        (
            "--task regression --model boosted-tree",
            "--model cart, random-forest, gradient-boosting or budget; got boosted-tree",
        ),
    ],
)
def test_words_of_others_are_answered(csv_file, pboost_main, given, said):
    code, out, err = pboost_main("evaluate", csv_file, "--target", "state", *given.split())
    assert (code, out) == (2, "")
    assert_one_line(err, said)


def test_underscores_are_hyphens_in_options_but_not_in_values(csv_file, pboost_main):
    call = ("evaluate", csv_file, "--target=sta_te", "--model", "cart", "--max_depth", "2")
    code, _, err = pboost_main(*call)
    assert code == 1
    assert_one_line(err, "column 'sta_te' does not exist")


def test_help_is_told_without_what_stands_around_it():
    assert parser.WORDS.keys() <= options.OWNERS.keys()
    for name, owners in options.OWNERS.items():
        actual = [options.DECLARED[owner][name].words for owner in owners]
        words = parser.WORDS.get(name) or next(filter(None, actual), "")
        assert words, name
        assert not words.startswith(("As in", "For ", "With ", "See ", "Of ")), name
