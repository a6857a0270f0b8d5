"""The command line: what the commands do."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import assert_one_line, frame

import pboost as pb
from pboost.cli.table import exact_numbers, read_table

pandas = pytest.importorskip("pandas")

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("PBOOST_DATA", ROOT / ".." / "shared" / "data"))


@pytest.mark.parametrize(
    ("options", "fit"),
    [
        (
            "--model real-adaboost --n-estimators 6 --answer-scale log_odds --criterion gini",
            lambda X, y: pb.fit_real_adaboost(
                X, y, n_estimators=6, answer_scale="log_odds", weak_learner=pb.weak.stump("gini")
            ),
        ),
        (
            "--model real-adaboost --weak-learner feature --n-estimators 9 --smoothing 0.01 "
            "--n-threads 1",
            lambda X, y: pb.fit_real_adaboost(
                X, y, n_estimators=9, weak_learner=pb.weak.feature(), smoothing=0.01
            ),
        ),
        (
            "--model topdown-tree --max-nodes 5 --impurity gini --growth breadth_first "
            "--max-depth 3",
            lambda X, y: pb.fit_topdown_tree(
                X, y, max_nodes=5, impurity="gini", growth="breadth_first", max_depth=3
            ),
        ),
    ],
)
def test_models_of_generic_boosting(csv_file, pboost_main, options, fit):
    output, predictions = csv_file.parent / "model.npz", csv_file.parent / "out.csv"
    data = (csv_file, "--target", "state", *options.split())
    assert pboost_main("fit", *data, "-o", output)[::2] == (0, "")
    X, y = frame().drop(columns="state"), frame()["state"]
    expected, model = fit(X, y), pb.load(output)
    assert type(model) is type(expected)
    np.testing.assert_array_equal(pb.decision_function(model, X), pb.decision_function(expected, X))
    code, out, _ = pboost_main("show", output)
    assert (code, out) == (0, pb.describe(expected) + "\n")
    assert pboost_main("predict", output, csv_file, "-o", predictions)[0] == 0
    labels = pandas.read_csv(predictions)["label"].tolist()
    assert labels == pb.predict(expected, X).tolist()
    assert pboost_main("evaluate", *data, "--cv", 3)[::2] == (0, "")


def test_fit_gives_the_model_of_the_library(csv_file, pboost_main):
    output = csv_file.parent / "model.npz"
    code, out, err = pboost_main(
        "fit", csv_file, "--target", "state", "--n-estimators", 7, "-o", output
    )
    assert (code, err) == (0, "")
    X = frame().drop(columns="state")
    expected = pb.fit_adaboost(X, frame()["state"], n_estimators=7)
    loaded = pb.load(output)
    assert loaded.feature_names == ("age", "größe", "ward", "copies")
    assert loaded.classes.tolist() == ["healthy", "sick"]
    np.testing.assert_array_equal(loaded.threshold, expected.threshold)
    np.testing.assert_array_equal(loaded.vote, expected.vote)
    assert out.count("\n") == 1
    assert f"{expected.n_nodes} nodes" in out
    assert f"{pb.certificate(expected):.4g}" in out


@pytest.mark.parametrize(
    ("options", "fit"),
    [
        (
            "--model adaboost --n-estimators 6 --criterion gini --search binned --votes symmetric "
            "--smoothing 0.01 --learning-rate 0.5 --n-threads 2 --seed 3",
            lambda X, y: pb.fit_adaboost(
                X,
                y,
                n_estimators=6,
                weak_learner=pb.weak.stump("gini", "binned"),
                votes="symmetric",
                smoothing=0.01,
                learning_rate=0.5,
            ),
        ),
        (
            "--model boosted-tree --max-nodes 9 --criterion entropy --search exact --growth "
            "breadth_first "
            "--max-depth 3 --smoothing 0 --n-threads 1",
            lambda X, y: pb.fit_boosted_tree(
                X,
                y,
                max_nodes=9,
                weak_learner=pb.weak.stump("entropy", "exact"),
                growth="breadth_first",
                max_depth=3,
                smoothing=0,
            ),
        ),
        (
            "--model matryoshka --shape 3,2,2 --collect sign --join all --criterion gini "
            "--observation adatree2 --smoothing 0.01 --learning-rate 0.5",
            lambda X, y: pb.fit_matryoshka(
                X,
                y,
                shape=(3, 2, 2),
                collect="sign",
                join="all",
                weak_learner=pb.weak.stump("gini"),
                observation=pb.observation.adatree2(),
                smoothing=0.01,
                learning_rate=0.5,
            ),
        ),
        (
            "--model matryoshka --growth greedy --max-nodes 12 --collect sign --join sign "
            "--observation adatree2",
            lambda X, y: pb.fit_matryoshka(
                X,
                y,
                growth="greedy",
                max_nodes=12,
                collect="sign",
                observation=pb.observation.adatree2(),
            ),
        ),
        (
            "--n-estimators 30 --validation 0.25 --n-iter-no-change 4 --seed 3",
            lambda X, y: pb.fit_adaboost(
                X, y, n_estimators=30, validation=0.25, n_iter_no_change=4, rng=3
            ),
        ),
    ],
    ids=["adaboost", "tree", "matryoshka", "greedy", "validation"],
)
def test_every_option_reaches_the_builder(csv_file, pboost_main, options, fit):
    output = csv_file.parent / "model.npz"
    code, _, err = pboost_main("fit", csv_file, "--target", "state", *options.split(), "-o", output)
    assert (code, err) == (0, "")
    X = frame().drop(columns="state")
    expected, model = fit(X, frame()["state"]), pb.load(output)
    assert model.settings == expected.settings
    for name in ("feature", "threshold", "next", "vote"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))


@pytest.mark.parametrize("model", ["adaboost", "boosted-tree", "matryoshka"])
@pytest.mark.parametrize("kind", ["exact", "flip", "half", "uniform", "adatree2", "gaussian"])
def test_observations_reach_every_builder(csv_file, pboost_main, model, kind):
    size, builder, options = {
        "adaboost": ("--n-estimators 4", pb.fit_adaboost, {"n_estimators": 4}),
        "boosted-tree": ("--max-nodes 4", pb.fit_boosted_tree, {"max_nodes": 4}),
        "matryoshka": ("--shape 2,2", pb.fit_matryoshka, {"shape": (2, 2)}),
    }[model]
    rate = {"flip": "--flip-rate 0.2", "gaussian": "--sigma 0.2"}.get(kind, "")
    output = csv_file.parent / "model.npz"
    arguments = f"--target state --model {model} {size} --observation {kind} {rate}".split()
    code, out, err = pboost_main("fit", csv_file, *arguments, "-o", output)
    assert (code, err) == (0, "")
    assert ("error of predict" in out) == (kind != "exact")
    observation = getattr(pb.observation, kind)(*[0.2] * bool(rate))
    X, y = frame().drop(columns="state"), frame()["state"]
    expected, actual = builder(X, y, observation=observation, **options), pb.load(output)
    assert actual.settings == expected.settings
    np.testing.assert_array_equal(actual.vote, expected.vote)
    code, out, _ = pboost_main("evaluate", csv_file, *arguments, "--cv", 2)
    assert code == 0
    assert ("error of predict" in out) == (kind != "exact")


@pytest.mark.parametrize("draws", ["", "--n-draws first_increase", "--n-draws 4"])
@pytest.mark.parametrize("rate", ["", "--flip-rate 0.2"])
def test_sampled_observations(csv_file, pboost_main, draws, rate):
    output = csv_file.parent / "model.npz"
    arguments = f"--target state --n-estimators 3 --observation sampled {draws} {rate}".split()
    code, out, err = pboost_main("fit", csv_file, *arguments, "-o", output)
    assert (code, err) == (0, "")
    assert "is an estimate" in out
    of = pb.observation.flip(0.2) if rate else pb.observation.exact()
    made = pb.observation.sampled(4 if draws.endswith("4") else "first_increase", base=of)
    X, y = frame().drop(columns="state"), frame()["state"]
    expected, model = (
        pb.fit_adaboost(X, y, n_estimators=3, observation=made, rng=0),
        pb.load(output),
    )
    assert model.settings == expected.settings
    np.testing.assert_array_equal(model.vote, expected.vote)


@pytest.mark.parametrize(
    "growth", ["largest_bound", "largest_error", "look_ahead", "breadth_first"]
)
def test_growths_and_target_reach_the_tree(csv_file, pboost_main, growth):
    output = csv_file.parent / "model.npz"
    arguments = f"--target state --model boosted-tree --growth {growth} --target-certificate 0.6"
    code, out, _ = pboost_main("fit", csv_file, *arguments.split(), "-o", output)
    assert code == 0
    assert "the target certificate is reached" in out
    X, y = frame().drop(columns="state"), frame()["state"]
    expected = pb.fit_boosted_tree(X, y, max_nodes=31, growth=growth, target_certificate=0.6)
    loaded = pb.load(output)
    assert loaded.settings == expected.settings
    np.testing.assert_array_equal(loaded.next, expected.next)


def test_matryoshka_has_a_default_shape(csv_file, pboost_main):
    output = csv_file.parent / "model.npz"
    arguments = ("--target", "state", "--model", "matryoshka")
    assert pboost_main("fit", csv_file, *arguments, "-o", output)[0] == 0
    assert pb.load(output).settings["shape"] == [8, 8]


def test_weight_column_is_weight_and_no_feature(csv_file, pboost_main):
    output = csv_file.parent / "model.npz"
    code, _, _ = pboost_main(
        "fit",
        csv_file,
        "--target",
        "state",
        "--sample-weight",
        "copies",
        "--n-estimators",
        5,
        "-o",
        output,
    )
    assert code == 0
    X = frame().drop(columns=["state", "copies"])
    expected = pb.fit_adaboost(X, frame()["state"], n_estimators=5, sample_weight=frame()["copies"])
    loaded = pb.load(output)
    assert loaded.feature_names == tuple(X.columns)
    np.testing.assert_array_equal(loaded.vote, expected.vote)


def test_predict_writes_label_and_probability(csv_file, model_file, pboost_main):
    output = csv_file.parent / "out.csv"
    code, out, err = pboost_main("predict", model_file, csv_file, "-o", output)
    assert (code, out, err) == (0, "", "")
    actual = read_table(str(output))
    assert list(actual.columns) == ["label", "probability_sick"]
    loaded, X = pb.load(model_file), frame().drop(columns="state")
    assert actual["label"].tolist() == pb.predict(loaded, X).tolist()
    assert actual["probability_sick"].tolist() == pb.predict_proba(loaded, X)[:, 1].tolist()
    assert (actual["label"] == frame()["state"]).mean() > 0.6


def test_predict_finds_columns_by_name(csv_file, model_file, pboost_main):
    _, expected, _ = pboost_main("predict", model_file, csv_file)
    mixed = frame()[["größe", "copies", "ward", "age"]].assign(note="free text")
    mixed.to_csv(csv_file.parent / "mixed.csv", index=False)
    code, out, err = pboost_main("predict", model_file, csv_file.parent / "mixed.csv")
    assert (code, err) == (0, "")
    assert out == expected
    assert out.startswith("label,probability_sick\n")
    assert out.count("\n") == 61


def test_predict_with_trees(csv_file, pboost_main):
    table = frame()
    X, path = table[["age", "ward"]], csv_file.parent / "tree"
    numbers = pb.fit_cart(X, table["größe"], task="regression", max_depth=2)
    many = pb.fit_cart(X, np.arange(60) % 3, max_depth=2)
    expected = {
        "value": pb.predict(numbers, X),
        **{f"probability_{k}": pb.predict_proba(many, X)[:, k] for k in range(3)},
    }
    for tree, names in ((numbers, ["value"]), (many, ["label", *list(expected)[1:]])):
        pb.save(tree, path)
        assert pboost_main("predict", path, csv_file, "-o", csv_file.parent / "out.csv")[0] == 0
        actual = read_table(str(csv_file.parent / "out.csv"))
        assert list(actual.columns) == names
        for name in actual.columns.intersection(list(expected)):
            np.testing.assert_allclose(actual[name], expected[name], rtol=1e-12)
        _, out, _ = pboost_main("show", path)
        assert out.rstrip("\n") == pb.describe(tree)


def test_predict_with_a_model_that_knows_no_names(csv_file, pboost_main):
    numbers = frame()[["age", "größe"]]
    pb.save(
        pb.fit_adaboost(numbers.to_numpy(), frame()["state"], n_estimators=3), csv_file.parent / "m"
    )
    numbers.to_csv(csv_file.parent / "numbers.csv", index=False)
    code, out, _ = pboost_main("predict", csv_file.parent / "m", csv_file.parent / "numbers.csv")
    assert code == 0
    assert out.count("\n") == 61
    numbers[["age"]].to_csv(csv_file.parent / "numbers.csv", index=False)
    code, _, err = pboost_main("predict", csv_file.parent / "m", csv_file.parent / "numbers.csv")
    assert code == 1
    assert_one_line(err, "2", "1")


@pytest.mark.parametrize("labels", [(0, 1), (0.5, 1.5), (False, True), ("007", "a b")], ids=str)
def test_labels_of_all_kinds_come_back(tmp_path, pboost_main, labels):
    truth = [labels[int(v > 2)] for v in range(6)]
    pandas.DataFrame({"x": range(6), "y": truth}).to_csv(tmp_path / "a.csv", index=False)
    table, model, output = (tmp_path / name for name in ("a.csv", "m.npz", "out.csv"))
    assert pboost_main("fit", table, "--target", "y", "-o", model)[0] == 0
    assert pboost_main("predict", model, table, "-o", output)[0] == 0
    assert pandas.read_csv(output)["label"].tolist() == truth


def test_gzipped_files_in_and_out(csv_file, model_file, pboost_main):
    zipped = csv_file.with_suffix(".csv.gz")
    zipped.write_bytes(gzip.compress(csv_file.read_bytes()))
    _, expected, _ = pboost_main("predict", model_file, csv_file)
    output = csv_file.parent / "out.csv.gz"
    assert pboost_main("predict", model_file, zipped, "-o", output)[0] == 0
    assert gzip.decompress(output.read_bytes()).decode() == expected
    first = output.read_bytes()
    assert pboost_main("predict", model_file, zipped, "-o", output)[0] == 0
    assert output.read_bytes() == first


def test_evaluate_prints_the_cross_validation_of_the_library(csv_file, pboost_main):
    arguments = ["evaluate", csv_file, "--target", "state"]
    arguments += ["--n-estimators", 4, "--cv", 5, "--seed", 2]
    code, out, err = pboost_main(*arguments)
    assert (code, err) == (0, "")
    X = frame().drop(columns="state")
    expected = pb.cross_validate(
        lambda *data: pb.fit_adaboost(*data, n_estimators=4), X, frame()["state"], cv=5, rng=2
    )

    def without_times(text):
        return [line for line in text.splitlines() if " time " not in line]

    assert without_times(out) == without_times(str(expected))
    assert without_times(pboost_main(*arguments)[1]) == without_times(out)


def test_show_prints_the_description(model_file, pboost_main):
    code, out, err = pboost_main("show", model_file)
    assert (code, err) == (0, "")
    assert out.rstrip("\n") == pb.describe(pb.load(model_file)).rstrip("\n")
    assert "age" in out or "größe" in out


@pytest.mark.full
def test_demo_prints_one_table_and_draws(tmp_path, pboost_main):
    pytest.importorskip("sklearn.datasets")
    pytest.importorskip("matplotlib")
    plot = tmp_path / "plot.png"
    code, out, err = pboost_main("demo", "--cv", 2, "--seed", 1, "--plot", plot)
    assert (code, err) == (0, "")
    assert "569 rows, 30 features, 2-fold" in out
    header, _, *rows, empty, footnote = out.splitlines()[2:]
    assert (empty, footnote[:2]) == ("", "* ")
    for title in ("model", "test error ± sd", "comparisons per row", "certificate", "fit time"):
        assert title in header
    assert len({len(row) for row in [header, *rows]}) == 1
    assert sum(row.startswith("AdaBoost") for row in rows) >= 3
    assert sum(row.startswith("boosted tree") for row in rows) >= 3
    assert sum(row.startswith("soft tree") for row in rows) == 2
    assert sum(row.startswith("matryoshka") for row in rows) == 1
    assert all(("*" in row) == row.startswith(("soft tree", "matryoshka")) for row in rows)
    errors = [float(re.search(r"([\d.]+) ± ", row)[1]) for row in rows]
    assert max(errors) < 15
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert os.listdir(tmp_path) == ["plot.png"]


@pytest.mark.parametrize("name", ["banknote", "pima"])
@pytest.mark.parametrize(
    ("options", "most"),
    [
        ("--n-estimators 100", 0.30),
        ("--model boosted-tree", 0.33),
        ("--model matryoshka --shape 4,4 --observation adatree2", 0.30),
    ],
)
def test_real_data(tmp_path, pboost_main, name, options, most):
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"needs {name}.csv.gz; PBOOST_DATA names the directory with data sets")
    code, out, _ = pboost_main("evaluate", path, "--target", "target", *options.split())
    assert code == 0
    assert float(re.search(r"test error +([\d.]+)%", out)[1]) / 100 < most
    model, output = tmp_path / "model.npz", tmp_path / "out.csv"
    assert pboost_main("fit", path, "--target", "target", *options.split(), "-o", model)[0] == 0
    assert pboost_main("predict", model, path, "-o", output)[0] == 0
    truth = pandas.read_csv(path)["target"]
    assert (pandas.read_csv(output)["label"] != truth).mean() < most


def test_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "a.csv").write_text("größe,y\n1,0\n", encoding="utf-8-sig")
    assert list(read_table(str(tmp_path / "a.csv")).columns) == ["größe", "y"]


def test_numbers_are_read_as_python_reads_them(tmp_path):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=5000), 10.0 ** rng.uniform(-300, 300, 5000)])
    (tmp_path / "a.csv").write_text("\n".join(["x", *map(repr, values.tolist())]))
    np.testing.assert_array_equal(read_table(str(tmp_path / "a.csv"))["x"], values)
    assert exact_numbers("2.2.3") == exact_numbers("3.0.0") == {"float_precision": "round_trip"}
    assert exact_numbers("3.1.0rc0") == exact_numbers("10.0.0") == {}
