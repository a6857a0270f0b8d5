"""The command line: trees, forests, stagewise models, labels of several values, numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from command_line import assert_one_line, frame

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
    "--model cart --max-depth 3 --criterion entropy --min-leaf 2": partial(
        pb.fit_cart, max_depth=3, criterion="entropy", min_leaf=2
    ),
    "--model cart --max-leaves 4 --search binned": partial(
        pb.fit_cart, max_leaves=4, search="binned"
    ),
    "--model cart --pruned --seed 4": partial(pb.fit_pruned_cart, rng=4),
    "--model forest --members 7 --features-per-split 2 --seed 3 --threads 1": partial(
        pb.fit_forest, members=7, features_per_split=2, rng=3
    ),
    "--model forest --members 3 --features-per-split all --max-leaves 5": partial(
        pb.fit_forest, members=3, features_per_split=None, max_leaves=5, rng=0
    ),
    "--model samme --rounds 5 --learning-rate 0.5": partial(
        pb.fit_samme, base=partial(pb.fit_cart, max_depth=3), rounds=5, learning_rate=0.5
    ),
    "--model samme": pb.fit_samme,
    "--model samme --rounds 5 --max-depth 1 --threads 2": partial(
        pb.fit_samme, base=partial(pb.fit_cart, max_depth=1), rounds=5
    ),
    "--model sbpmt --members 3 --rounds 2 --steps 4 --max-depth 1 --min-leaf 8 --bag 0.8 --seed 2 "
    "--vote average --threads 1": partial(
        pb.fit_sbpmt,
        members=3,
        rounds=2,
        steps=4,
        max_depth=1,
        min_leaf=8,
        bag=0.8,
        rng=2,
        vote="average",
    ),
    "--model sbpmt --members 2 --published --min-leaf 9": partial(
        pb.fit_sbpmt, members=2, rng=0, **{**pb.sbpmt_published(), "min_leaf": 9}
    ),
    "--model sbpmt --steps 3 --one-vs-all tree": partial(
        pb.fit_sbpmt, steps=3, one_vs_all="tree", rng=0
    ),
    "--model probit-tree --max-depth 0 --steps 7": partial(
        pb.fit_probit_tree, max_depth=0, steps=7
    ),
    "--model probit-tree --min-leaf 9 --criterion entropy --search binned --threads 1": partial(
        pb.fit_probit_tree, min_leaf=9, criterion="entropy", search="binned"
    ),
    "--one-vs-rest --model probit --steps 9": partial(
        pb.fit_one_vs_rest, pb.fit_probitboost, steps=9
    ),
    "--rounds 4 --criterion kearns-mansour": partial(pb.fit_adaboost, rounds=4),
    "--model tree --nodes 5": partial(pb.fit_boosted_tree, nodes=5),
    "--model matryoshka --join all --shape 3,4": partial(
        pb.fit_matryoshka, join="all", shape=(3, 4)
    ),
    "--one-vs-rest --rounds 4 --criterion gini": partial(
        pb.fit_one_vs_rest, pb.fit_adaboost, rounds=4, weak=pb.weak.stump("gini")
    ),
    "--one-vs-rest --model stagewise --steps 5 --loss exponential": partial(
        pb.fit_one_vs_rest, pb.fit_stagewise, steps=5, loss="exponential"
    ),
    "--one-vs-rest --model stagewise --steps 5 --loss squared": partial(
        pb.fit_one_vs_rest, pb.fit_stagewise, steps=5, loss="squared", task="classification"
    ),
}


@pytest.mark.full_for("--model samme", "--model sbpmt --steps 3 --one-vs-all tree")
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
    code, out, err = pboost_main("evaluate", *arguments, "--folds", 3)
    assert (code, err) == (0, "")
    assert "test error" in out


TWO = {
    "--steps 6 --loss probit --max-depth 2 --bag 0.7 --learning-rate 0.3": {
        "steps": 6,
        "loss": "probit",
        "max_depth": 2,
        "bag": 0.7,
        "learning_rate": 0.3,
    },
    "--steps 6": {"steps": 6, "loss": "logistic"},
    "--steps 40 --validation 0.3 --patience 2 --min-leaf 5": {
        "steps": 40,
        "loss": "logistic",
        "validation": 0.3,
        "patience": 2,
        "min_leaf": 5,
    },
    "--steps 6 --loss hinge": {"steps": 6, "loss": "hinge"},
}


@pytest.mark.parametrize("options", TWO)
def test_stagewise_of_two_labels(csv_file, pboost_main, options):
    model, output = csv_file.with_name("m"), csv_file.with_name("out.csv")
    arguments = (csv_file, "--target", "state", "--model", "stagewise", *options.split())
    code, out, err = pboost_main("fit", *arguments, "-o", model)
    assert (code, err) == (0, "")
    assert "fit_stagewise: " in out
    X, y = frame().drop(columns="state"), frame()["state"]
    expected, actual = pb.fit_stagewise(X, y, rng=0, **TWO[options]), pb.load(model)
    assert actual.settings == expected.settings
    assert pboost_main("predict", model, csv_file, "-o", output)[0] == 0
    table = pandas.read_csv(output)
    assert table["label"].tolist() == pb.predict(expected, X).tolist()
    if "hinge" in options:
        np.testing.assert_allclose(table["decision value"], pb.decision_function(expected, X))
    else:
        np.testing.assert_allclose(table["probability_sick"], pb.predict_proba(expected, X)[:, 1])
    assert pboost_main("evaluate", *arguments, "--folds", 2)[::2] == (0, "")


NUMBERS = {
    "--model cart --task regression --max-depth 3": partial(
        pb.fit_cart, task="regression", max_depth=3
    ),
    "--model cart --task regression --pruned": partial(
        pb.fit_pruned_cart, task="regression", rng=0
    ),
    "--model forest --task regression --members 5": partial(
        pb.fit_forest, task="regression", members=5, rng=0
    ),
    "--model stagewise --task regression --steps 9": partial(
        pb.fit_stagewise, loss="squared", steps=9
    ),
    "--model stagewise --loss squared --steps 9": partial(
        pb.fit_stagewise, loss="squared", steps=9
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
    code, out, err = pboost_main("evaluate", *arguments, "--folds", 3)
    assert (code, err) == (0, "")
    result = pb.cross_validate(NUMBERS[options], X, y, task="regression", folds=3, rng=0)
    assert f"mean squared error   {result.error.mean():.4g} ± " in out
    assert result.error.mean() < y.var()


@pytest.mark.parametrize("model", ["adaboost-real", "matryoshka", "probit"])
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_boosters_of_two_labels_name_the_others(zones, pboost_main, model, command):
    output = ["-o", zones.with_name("m")] if command == "fit" else []
    data = drop(zones, "size")
    code, out, err = pboost_main(command, data, "--target", "zone", "--model", model, *output)
    assert (code, out) == (1, "")
    names = (
        "--one-vs-rest (fit_one_vs_rest)",
        "--model adaboost, tree, topdown, cart, forest, samme, stagewise, sbpmt, probit-tree and "
        "within",
    )
    assert_one_line(err, "column 'zone' holds 3 values", f"--model {model} takes two", *names)
    assert not zones.with_name("m").exists()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("--model cart --one-vs-rest", "--one-vs-rest does not go with --model cart"),
        ("--model samme --validation 0.2", "--validation does not go with --model samme"),
        ("--model forest --weak affine", "--weak does not go with --model forest"),
        ("--model forest --learning-rate 0.5", "--learning-rate does not go with --model forest"),
        ("--model stagewise --criterion gini", "--criterion does not go with"),
        ("--model stagewise --one-vs-rest --task regression", "with --task regression"),
        ("--model stagewise --one-vs-rest --loss hinge", "with --loss hinge"),
        ("--model tree --task regression", "--task regression needs --model cart, forest, stage"),
        ("--model samme --task regression", "within (not samme)"),
        ("--model forest --pruned", "--pruned belongs to --model cart, not forest"),
        ("--model cart --members 3", "--members belongs to --model forest or sbpmt, not"),
        ("--model forest --features-per-split 0", "--features-per-split"),
        ("--model stagewise --loss cubic", "--loss"),
        ("--model sbpmt --one-vs-rest", "--one-vs-rest does not go with --model sbpmt"),
        ("--model sbpmt --max-leaves 3", "--max-leaves belongs to"),
        ("--model sbpmt --criterion gini", "--criterion does not go with --model sbpmt"),
        ("--model sbpmt --bag 0", "--bag"),
        ("--model sbpmt --vote mean", "--vote"),
        ("--model sbpmt --max-depth -1", "--max-depth"),
        ("--model forest --published", "--published belongs to --model sbpmt, not forest"),
        ("--model probit-tree --rounds 3", "--rounds belongs to"),
        ("--model probit-tree --learning-rate 0.5", "--learning-rate does not go with"),
        ("--model probit --min-leaf 3", "--min-leaf belongs to"),
        ("--model probit --threads 2", "--threads does not go with --model probit"),
        ("--model stagewise --bag 0", "--bag"),
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
        ("--model probit --steps 5", partial(pb.fit_probitboost, steps=5)),
        ("--model probit-tree --steps 5", partial(pb.fit_probit_tree, steps=5)),
        ("--model sbpmt --members 2", partial(pb.fit_sbpmt, members=2, rng=0)),
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
    assert (code, out, err) == (0, f"{pb.coefficients(expected)}\n", "")
    code, out, err = pboost_main("evaluate", *arguments, "--folds", 3)
    assert (code, err) == (0, "")
    assert "test error" in out


def test_coefficients_of_a_model_without_any(csv_file, pboost_main):
    model = csv_file.with_name("m")
    for kind, name in (("cart", "Tree"), ("tree", "DecisionGraph")):
        pboost_main("fit", csv_file, "--target", "state", "--model", kind, "-o", model)
        code, out, err = pboost_main("show", model, "--coefficients")
        assert (code, out) == (1, "")
        assert_one_line(err, f"a {name} has no linear functions")


def test_numbers_are_wanted(zones, pboost_main):
    arguments = ("evaluate", drop(zones, "size"), "--target", "zone", "--task", "regression")
    code, _, err = pboost_main(*arguments, "--model", "cart")
    assert code == 1
    assert_one_line(err, "is not numeric: row 1 holds")
