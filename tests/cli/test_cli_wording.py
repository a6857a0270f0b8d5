"""Messages of the command line: rows from 1, options as they are typed, and what the target is."""

import numpy as np
import pytest
from command_line import assert_one_line
from target_cases import ASKS, CLASSES, REGRESSION, TARGETS, N, X, task_of

import pboost as pb
from pboost.cli.options import worded

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("X: column 'row 3', row 3 holds 5", "column 'row 3', row 4 holds 5"),
        ("y: missing label in row 0 (and 2 more)", "--target: missing label in row 1 (and 2 more)"),
        ("sample_weight: got -1 in row 9", "--sample-weight: got -1 in row 10"),
        ("n_threads: expected one", "--n-threads: expected one"),
        ('y: task="regression" or loss="softmax"', "--target: --task regression or --loss softmax"),
        (
            'max_leaf_nodes: expected None with growth="depth_first"',
            "--max-leaf-nodes: expected None with --growth depth_first",
        ),
        ("y_proba: expected other=1", "y_proba: expected other=1"),
        ("a tree's rows are others, row 2's too", "a tree's rows are others, row 3's too"),
    ],
)
def test_words_of_the_library(message, said):
    assert worded(message) == said


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        # What the command line finds, and what the library does: the same row.
        ("x,y,w\n1,0,1\nred,1,1\n3,1,1\n4,0,1\n", [], "got 'red' in row 2"),
        (
            "x,y,w\n1,0,1\n2,1,-1\n",
            ["--sample-weight", "w"],
            "--sample-weight: expected finite numbers >= 0, got -1.0 in row 2",
        ),
        ("x,y,w\n1,0,1\n2,,1\n", [], "'y': missing value in row 2"),
        (
            "x,y,w\n1,0.5,1\n2,1e200,1\n",
            ["--model", "cart"],
            "--target: expected finite numbers up to 1e+150, got 1e+200 in row 2",
        ),
        (
            "x,y,w\n1,0,1\n2,1,1\n",
            ["--model", "cart", "--max-leaf-nodes", "3", "--growth", "depth_first"],
            "--max-leaf-nodes: expected None with --growth depth_first",
        ),
    ],
)
def test_rows_and_options_of_all_messages(tmp_path, pboost_main, text, arguments, said):
    (tmp_path / "t.csv").write_text(text)
    out = tmp_path / "m.npz"
    code, _, err = pboost_main("fit", tmp_path / "t.csv", "--target", "y", "-o", out, *arguments)
    assert code == 1
    assert_one_line(err, said)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", TARGETS)
def test_the_target_says_the_task(name, form, tmp_path, pboost_main):
    y, expected = TARGETS[name]
    table, path, out = pd.DataFrame({"a": X[:, 0], "y": y}), tmp_path / f"t.{form}", tmp_path / "m"
    if form == "csv":
        table.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    given = path, "--target", "y", "--model", "cart", "--max-depth", 2
    code, _, err = pboost_main("fit", *given, "-o", out)
    if expected == ASKS:
        assert code == 1
        assert_one_line(err, "'y': got more than 20 distinct integers", "--task regression")
        for task in (CLASSES, REGRESSION):
            assert pboost_main("fit", *given, "--task", task, "-o", out)[0] == 0
            assert task_of(pb.load(out)) == task
        return
    assert (code, err) == (0, "")
    ours, theirs = pb.load(out), pb.fit_cart(table[["a"]], y, max_depth=2)
    assert task_of(ours) == expected
    np.testing.assert_array_equal(ours.value, theirs.value)
    code, said, err = pboost_main("evaluate", *given, "--cv", 2)
    assert (code, err) == (0, "")
    assert ("mean squared error" in said) == (expected == REGRESSION)


@pytest.mark.parametrize(
    ("options", "task"),
    [
        ("--model gradient-boosting --n-estimators 2", CLASSES),
        ("--model gradient-boosting --n-estimators 2 --loss squared_error", REGRESSION),
        ("--model random-forest --n-estimators 2 --criterion gini", CLASSES),
        ("--model cart --pruned --max-depth 2", CLASSES),
        ("--model gradient-boosting --n-estimators 2 --one-vs-rest", CLASSES),
        ("--model samme --n-estimators 2", CLASSES),
    ],
)
def test_options_decide_first(options, task, tmp_path, pboost_main):
    path, out = tmp_path / "t.csv", tmp_path / "m"
    is_asked = "--loss" in options or "--criterion" in options or "samme" in options
    y = np.arange(N) % (21 if is_asked else 3)
    pd.DataFrame({"a": X[:, 0], "y": y}).to_csv(path, index=False)
    code, _, err = pboost_main("fit", path, "--target", "y", *options.split(), "-o", out)
    assert (code, err) == (0, "")
    assert task_of(pb.load(out)) == task


def test_models_that_only_classify_name_those_of_numbers(tmp_path, pboost_main):
    pd.DataFrame({"a": X[:, 0], "y": X[:, 1]}).to_csv(tmp_path / "t.csv", index=False)
    given = tmp_path / "t.csv", "--target", "y"
    for model in ("adaboost", "samme", "sbpmt"):
        code, _, err = pboost_main("evaluate", *given, "--model", model)
        assert code == 1
        assert_one_line(err, "66 distinct non-integer numbers")
        assert_one_line(
            err, "--task regression and --model cart, random-forest, gradient-boosting or budget"
        )


def test_help_says_the_rule(pboost_main):
    _, out, _ = pboost_main("fit", "--help")
    assert "classification for text, truth values and at most 20 distinct integers" in " ".join(
        out.split()
    )


def test_warnings_of_the_library(tmp_path, pboost_main):
    y = ["rare" if k < 2 else "ash" if value > 0 else "oak" for k, value in enumerate(X[:, 0])]
    pd.DataFrame({"a": X[:, 1], "y": y}).to_csv(tmp_path / "t.csv", index=False)
    given = tmp_path / "t.csv", "--target", "y", "--model", "cart", "--cv", 3
    code, _, err = pboost_main("evaluate", *given)
    assert code == 0
    assert_one_line(err, "pboost: warning: --target: class 'rare' has 2 rows")
