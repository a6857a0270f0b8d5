"""The command line: trees, forests, stagewise models, labels of several values, numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from command_line import assert_one_line, frame
from shallow import PLAIN as WITHOUT_CHOICES

import pboost as pb

pandas = pytest.importorskip("pandas")


@pytest.fixture
def zones(tmp_path):
    """A table with three labels and numbers that go with them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    size = X[:, 0] + X[:, 1]
    zone = np.array(["far", "mid", "near"])[np.digitize(size, [-0.5, 0.5])]
    table = pandas.DataFrame(X, columns=list("abc")).assign(zone=zone, size=size.round(3))
    path = tmp_path / "zones.csv"
    table.to_csv(path, index=False)
    return path


def features(path):
    return pandas.read_csv(path).drop(columns=["zone", "size"])


def drop(path, column):
    """Write the table without a column beside it."""
    out = path.with_name("data.csv")
    pandas.read_csv(path).drop(columns=column).to_csv(out, index=False)
    return out


SEVERAL = {
    "--model cart --max-depth 3 --criterion entropy --min-samples-leaf 2": partial(
        pb.fit_cart, max_depth=3, criterion="entropy", min_samples_leaf=2
    ),
    "--model cart --max-leaf-nodes 4 --search binned": partial(
        pb.fit_cart, max_leaf_nodes=4, search="binned"
    ),
    "--model cart --pruned --seed 4": partial(pb.fit_pruned_cart, rng=4),
    "--model random-forest --n-estimators 7 --max-features 2 --seed 3 --n-threads 1": partial(
        pb.fit_random_forest, n_estimators=7, max_features=2, rng=3
    ),
    "--model random-forest --n-estimators 3 --max-features all --max-leaf-nodes 5": partial(
        pb.fit_random_forest, n_estimators=3, max_features=None, max_leaf_nodes=5, rng=0
    ),
    "--model samme --n-estimators 5 --learning-rate 0.5": partial(
        pb.fit_samme,
        base_learner=partial(pb.fit_cart, max_depth=3),
        n_estimators=5,
        learning_rate=0.5,
    ),
    "--model samme": pb.fit_samme,
    "--model samme --n-estimators 5 --max-depth 1 --n-threads 2": partial(
        pb.fit_samme, base_learner=partial(pb.fit_cart, max_depth=1), n_estimators=5
    ),
    "--model sbpmt --n-estimators 3 --n-boosting-rounds 2 --max-iter 4 --max-depth 1 "
    "--min-samples-leaf 8 --max-samples 0.8 --seed 2 "
    "--voting soft --n-threads 1": partial(
        pb.fit_sbpmt,
        n_estimators=3,
        n_boosting_rounds=2,
        max_iter=4,
        max_depth=1,
        min_samples_leaf=8,
        max_samples=0.8,
        rng=2,
        voting="soft",
    ),
    "--model sbpmt --n-estimators 2 --published --min-samples-leaf 9": partial(
        pb.fit_sbpmt,
        n_estimators=2,
        rng=0,
        **{**pb.models.published_sbpmt_options(), "min_samples_leaf": 9},
    ),
    "--model sbpmt --max-iter 3 --one-vs-rest-by tree": partial(
        pb.fit_sbpmt, max_iter=3, one_vs_rest="tree", rng=0
    ),
    "--model probit-tree --max-depth 0 --max-iter 7": partial(
        pb.fit_probit_tree, max_depth=0, max_iter=7
    ),
    "--model probit-tree --min-samples-leaf 9 --criterion entropy --search binned --n-threads "
    "1": partial(pb.fit_probit_tree, min_samples_leaf=9, criterion="entropy", search="binned"),
    "--one-vs-rest --model probitboost --max-iter 9": partial(
        pb.fit_one_vs_rest, pb.fit_probitboost, max_iter=9
    ),
    "--n-estimators 4 --criterion kearns_mansour": partial(pb.fit_adaboost, n_estimators=4),
    "--model boosted-tree --max-nodes 5": partial(pb.fit_boosted_tree, max_nodes=5),
    "--model matryoshka --join all --shape 3,4": partial(
        pb.fit_matryoshka, join="all", shape=(3, 4)
    ),
    "--one-vs-rest --n-estimators 4 --criterion gini": partial(
        pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=4, weak_learner=pb.weak.stump("gini")
    ),
    "--one-vs-rest --model gradient-boosting --n-estimators 5 --loss exponential": partial(
        pb.fit_one_vs_rest, pb.fit_gradient_boosting, n_estimators=5, loss="exponential"
    ),
    "--one-vs-rest --model gradient-boosting --n-estimators 5 --loss squared_error": partial(
        pb.fit_one_vs_rest,
        pb.fit_gradient_boosting,
        n_estimators=5,
        loss="squared_error",
        task="classification",
    ),
}


@pytest.mark.full_for("--model samme", "--model sbpmt --max-iter 3 --one-vs-rest-by tree")
@pytest.mark.parametrize("options", SEVERAL)
def test_several_labels(zones, pboost_main, options):
    data, model, output = drop(zones, "size"), zones.with_name("m"), zones.with_name("out.csv")
    arguments = (data, "--target", "zone", *options.split())
    code, out, err = pboost_main("fit", *arguments, "-o", model)
    assert (code, err, out.count("\n")) == (0, "", 1)
    X, y = features(zones), pandas.read_csv(zones)["zone"]
    expected, actual = SEVERAL[options](X, y), pb.load(model)
    assert type(actual) is type(expected)
    assert actual.settings == expected.settings
    assert ("out-of-bag error" in out) == ("forest" in options or "sbpmt" in options)
    assert actual.feature_names == ("a", "b", "c")
    assert pboost_main("predict", model, zones, "-o", output)[0] == 0
    table = pandas.read_csv(output)
    assert list(table) == ["label", "probability_far", "probability_mid", "probability_near"]
    assert table["label"].tolist() == pb.predict(expected, X).tolist()
    np.testing.assert_allclose(table.iloc[:, 1:], pb.predict_proba(expected, X), rtol=1e-12)
    code, out, _ = pboost_main("show", model)
    assert (code, out.rstrip("\n")) == (0, pb.describe(expected).rstrip("\n"))
    code, out, err = pboost_main("evaluate", *arguments, "--cv", 3)
    assert (code, err) == (0, "")
    assert "test error" in out


TWO = {
    "--n-estimators 6 --loss probit --max-depth 2 --subsample 0.7 --learning-rate 0.3": {
        "n_estimators": 6,
        "loss": "probit",
        "max_depth": 2,
        "subsample": 0.7,
        "learning_rate": 0.3,
    },
    "--n-estimators 6": {"n_estimators": 6, "loss": "log_loss"},
    "--n-estimators 40 --validation 0.3 --n-iter-no-change 2 --min-samples-leaf 5": {
        "n_estimators": 40,
        "loss": "log_loss",
        "validation": 0.3,
        "n_iter_no_change": 2,
        "min_samples_leaf": 5,
    },
    "--n-estimators 6 --loss hinge": {"n_estimators": 6, "loss": "hinge"},
}


@pytest.mark.parametrize("options", TWO)
def test_stagewise_of_two_labels(csv_file, pboost_main, options):
    model, output = csv_file.with_name("m"), csv_file.with_name("out.csv")
    arguments = (csv_file, "--target", "state", "--model", "gradient-boosting", *options.split())
    code, out, err = pboost_main("fit", *arguments, "-o", model)
    assert (code, err) == (0, "")
    assert "fit_gradient_boosting: " in out
    X, y = frame().drop(columns="state"), frame()["state"]
    expected, actual = pb.fit_gradient_boosting(X, y, rng=0, **TWO[options]), pb.load(model)
    assert actual.settings == expected.settings
    assert pboost_main("predict", model, csv_file, "-o", output)[0] == 0
    table = pandas.read_csv(output)
    assert table["label"].tolist() == pb.predict(expected, X).tolist()
    if "hinge" in options:
        np.testing.assert_allclose(table["decision value"], pb.decision_function(expected, X))
    else:
        np.testing.assert_allclose(table["probability_sick"], pb.predict_proba(expected, X)[:, 1])
    assert pboost_main("evaluate", *arguments, "--cv", 2)[::2] == (0, "")


#: `WITHOUT_CHOICES` on the command line.
PLAIN = "--random-strength 0 --subsample none"
NUMBERS = {
    "--model cart --task regression --max-depth 3": partial(
        pb.fit_cart, task="regression", max_depth=3
    ),
    "--model cart --task regression --pruned": partial(
        pb.fit_pruned_cart, task="regression", rng=0
    ),
    "--model random-forest --task regression --n-estimators 5": partial(
        pb.fit_random_forest, task="regression", n_estimators=5, rng=0
    ),
    f"--model gradient-boosting --task regression --n-estimators 9 {PLAIN}": partial(
        pb.fit_gradient_boosting, loss="squared_error", n_estimators=9, **WITHOUT_CHOICES
    ),
    f"--model gradient-boosting --loss squared_error --n-estimators 9 {PLAIN}": partial(
        pb.fit_gradient_boosting, loss="squared_error", n_estimators=9, **WITHOUT_CHOICES
    ),
}


@pytest.mark.parametrize("options", NUMBERS)
def test_numbers(zones, pboost_main, options):
    data, model = drop(zones, "zone"), zones.with_name("m")
    arguments = (data, "--target", "size", *options.split())
    assert pboost_main("fit", *arguments, "-o", model)[::2] == (0, "")
    X, y = features(zones), pandas.read_csv(zones)["size"]
    expected = NUMBERS[options](X, y)
    code, out, _ = pboost_main("predict", model, data)
    values = [float(line) for line in out.splitlines()[1:]]
    assert (code, out.splitlines()[0]) == (0, "value")
    np.testing.assert_allclose(values, pb.predict(expected, X), rtol=1e-12)
    code, out, err = pboost_main("evaluate", *arguments, "--cv", 3)
    assert (code, err) == (0, "")
    result = pb.cross_validate(NUMBERS[options], X, y, task="regression", cv=3, rng=0)
    assert f"mean squared error   {result.error.mean():.4g} ± " in out
    assert result.error.mean() < y.var()


@pytest.mark.parametrize("model", ["real-adaboost", "matryoshka", "probitboost"])
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_boosters_of_two_labels_name_the_others(zones, pboost_main, model, command):
    output = ["-o", zones.with_name("m")] if command == "fit" else []
    data = drop(zones, "size")
    code, out, err = pboost_main(command, data, "--target", "zone", "--model", model, *output)
    assert (code, out) == (1, "")
    names = (
        "--one-vs-rest",
        "--model adaboost, boosted-tree, topdown-tree, cart, random-forest, samme, "
        "gradient-boosting, sbpmt, probit-tree or "
        "budget",
    )
    assert_one_line(err, "expected two classes, got 3", f"--model {model} expected two", *names)
    assert not zones.with_name("m").exists()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("--model cart --one-vs-rest", "--one-vs-rest cannot be used with --model cart"),
        ("--model samme --validation 0.2", "--validation cannot be used with --model samme"),
        (
            "--model random-forest --weak-learner affine",
            "--weak-learner cannot be used with --model random-forest",
        ),
        (
            "--model random-forest --learning-rate 0.5",
            "--learning-rate cannot be used with --model random-forest",
        ),
        ("--model gradient-boosting --criterion gini", "--criterion cannot be used with"),
        ("--model gradient-boosting --one-vs-rest --task regression", "with --task regression"),
        ("--model gradient-boosting --one-vs-rest --loss hinge", "with --loss hinge"),
        (
            "--model boosted-tree --task regression",
            "--task regression requires --model cart, random-forest, gradient",
        ),
        ("--model samme --task regression", "budget; got samme"),
        ("--model random-forest --pruned", "--pruned requires --model cart, got random-forest"),
        ("--model cart --n-estimators 3", "--n-estimators requires --model adaboost or"),
        ("--model random-forest --max-features 0", "--max-features"),
        ("--model gradient-boosting --loss cubic", "--loss"),
        ("--model sbpmt --one-vs-rest", "--one-vs-rest cannot be used with --model sbpmt"),
        ("--model sbpmt --max-leaf-nodes 3", "--max-leaf-nodes requires"),
        ("--model sbpmt --criterion gini", "--criterion cannot be used with --model sbpmt"),
        ("--model sbpmt --max-samples 0", "--max-samples"),
        ("--model sbpmt --voting mean", "--voting"),
        ("--model sbpmt --max-depth -1", "--max-depth"),
        (
            "--model random-forest --published",
            "--published requires --model sbpmt, got random-forest",
        ),
        ("--model probit-tree --n-boosting-rounds 3", "--n-boosting-rounds requires"),
        ("--model probit-tree --learning-rate 0.5", "--learning-rate cannot be used with"),
        ("--model probitboost --min-samples-leaf 3", "--min-samples-leaf requires"),
        (
            "--model probitboost --n-threads 2",
            "--n-threads cannot be used with --model probitboost",
        ),
        ("--model gradient-boosting --subsample 0", "--subsample"),
    ],
)
def test_wrong_usage(zones, pboost_main, options, part):
    arguments = ("evaluate", zones, "--target", "zone", *options.split())
    code, out, err = pboost_main(*arguments)
    assert (code, out) == (2, "")
    assert_one_line(err, part)


@pytest.mark.parametrize(
    ("options", "fit"),
    [
        ("--model probitboost --max-iter 5", partial(pb.fit_probitboost, max_iter=5)),
        ("--model probit-tree --max-iter 5", partial(pb.fit_probit_tree, max_iter=5)),
        ("--model sbpmt --n-estimators 2", partial(pb.fit_sbpmt, n_estimators=2, rng=0)),
    ],
)
def test_probit_models_of_two_labels(csv_file, pboost_main, options, fit):
    model = csv_file.with_name("m")
    arguments = (csv_file, "--target", "state", *options.split())
    code, out, err = pboost_main("fit", *arguments, "-o", model)
    assert (code, err, out.count("\n")) == (0, "", 1)
    X, y = frame().drop(columns="state"), frame()["state"]
    expected = fit(X, y)
    assert pb.load(model).settings == expected.settings
    lines = pboost_main("predict", model, csv_file)[1].splitlines()
    assert lines[0] == "label,probability_sick"
    assert [line.split(",")[0] for line in lines[1:]] == pb.predict(expected, X).tolist()
    assert pboost_main("show", model)[1].rstrip("\n") == pb.describe(expected).rstrip("\n")
    code, out, err = pboost_main("show", model, "--coefficients")
    assert (code, out, err) == (0, f"{pb.inspection.coefficients(expected)}\n", "")
    code, out, err = pboost_main("evaluate", *arguments, "--cv", 3)
    assert (code, err) == (0, "")
    assert "test error" in out


def test_coefficients_of_a_model_without_any(csv_file, pboost_main):
    model = csv_file.with_name("m")
    for kind, name in (("cart", "Tree"), ("boosted-tree", "DecisionGraph")):
        pboost_main("fit", csv_file, "--target", "state", "--model", kind, "-o", model)
        code, out, err = pboost_main("show", model, "--coefficients")
        assert (code, out) == (1, "")
        assert_one_line(err, f"a {name} has no linear functions")


def test_numbers_are_wanted(zones, pboost_main):
    arguments = ("evaluate", drop(zones, "size"), "--target", "zone", "--task", "regression")
    code, _, err = pboost_main(*arguments, "--model", "cart")
    assert code == 1
    assert_one_line(err, "is not numeric: got")
