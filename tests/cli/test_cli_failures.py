"""The command line where it fails: one line on standard error, and an exit code."""

from __future__ import annotations

import gzip
import os

import pytest
from command_line import assert_one_line, frame

pytest.importorskip("pandas")


# Wrong usage: exit code 2


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("", ["COMMAND"]),
        ("train", ["invalid choice", "train"]),
        ("fit", ["TRAIN.csv", "--target", "-o"]),
        ("fit t.csv --target y", ["-o"]),
        ("fit t.csv -o m", ["--target"]),
        ("fit t.csv --target y -o m --model oak", ["--model", "oak"]),
        (
            "fit t.csv --target y -o m --max-nodes 3",
            ["--max-nodes requires --model boosted-tree or matr"],
        ),
        ("fit t.csv --target y -o m --growth breadth_first", ["--growth requires"]),
        ("fit t.csv --target y -o m --max-depth 3", ["--max-depth requires"]),
        (
            "fit t.csv --target y -o m --model boosted-tree --n-estimators 3",
            ["--n-estimators requires"],
        ),
        ("evaluate t.csv --target y --model boosted-tree --votes domain", ["--votes requires"]),
        ("fit t.csv --target y -o m --target-certificate 0.5", ["--target-certificate requires"]),
        ("fit t.csv --target y -o m --shape 2,2", ["--shape requires --model matryoshka"]),
        (
            "fit t.csv --target y -o m --model boosted-tree --join all",
            ["--join requires", "got boosted-tree"],
        ),
        ("evaluate t.csv --target y --model boosted-tree --collect sign", ["--collect requires"]),
        ("fit t.csv --target y -o m --model matryoshka --n-estimators 3", ["got matryoshka"]),
        (
            "fit t.csv --target y -o m --model matryoshka --max-nodes 3",
            ["requires --growth greedy"],
        ),
        (
            "fit t.csv --target y -o m --model matryoshka --growth look_ahead",
            ["--growth look_ahead requires --model boosted-tree or topdown-tree, got matryoshka"],
        ),
        (
            "fit t.csv --target y -o m --model topdown-tree --growth greedy",
            ["matryoshka, got topdown-tree"],
        ),
        (
            "fit t.csv --target y -o m --model boosted-tree --growth greedy",
            ["model matryoshka, got boosted-tree"],
        ),
        (
            "fit t.csv --target y -o m --model matryoshka --growth greedy --max-nodes 3 --shape "
            "2,2",
            ["--shape requires --growth nested"],
        ),
        (
            "fit t.csv --target y -o m --impurity gini",
            ["--impurity requires --model topdown-tree"],
        ),
        (
            "fit t.csv --target y -o m --weak-learner feature",
            ["--weak-learner feature requires --model real-adaboost, got adaboost"],
        ),
        (
            "fit t.csv --target y -o m --model topdown-tree --weak-learner affine",
            ["--weak-learner cannot be used with --model topdown-tree"],
        ),
        (
            "evaluate t.csv --target y --model topdown-tree --validation 0.2",
            ["--validation cannot be used with --model topdown-tree"],
        ),
        (
            "fit t.csv --target y -o m --model topdown-tree --criterion gini",
            ["--criterion cannot be used with --model topdown-tree"],
        ),
        (
            "fit t.csv --target y -o m --model real-adaboost --observation half",
            ["--observation cannot be used with --model real-adaboost"],
        ),
        (
            "fit t.csv --target y -o m --model real-adaboost --weak-learner feature --search "
            "binned",
            ["--search cannot be used with --weak-learner feature"],
        ),
        ("fit t.csv --target y -o m --flip-rate 0.1", ["--flip-rate requires --observation"]),
        ("fit t.csv --target y -o m --n-draws 3", ["--n-draws requires --observation sampled"]),
        ("fit t.csv --target y -o m --observation sampled --n-draws 0", ["--n-draws", "'0'"]),
        ("evaluate t.csv --target y --observation sampled --n-draws stopwatch", ["first_increase"]),
        ("fit t.csv --target y -o m --observation half --flip-rate 0", ["--flip-rate requires"]),
        ("evaluate t.csv --target y --observation flip", ["flip requires --flip-rate"]),
        ("fit t.csv --target y -o m --observation flip --flip-rate 0.5", ["--flip-rate", "'0.5'"]),
        ("fit t.csv --target y -o m --observation flip --flip-rate nan", ["--flip-rate", "'nan'"]),
        (
            "fit t.csv --target y -o m --n-iter-no-change 5",
            ["--n-iter-no-change requires --validation"],
        ),
        ("fit t.csv --target y -o m --validation 0.6", ["--validation", "'0.6'", "(0, 0.5]"]),
        ("fit t.csv --target y -o m --sigma 0.1", ["--sigma requires --observation gaussian"]),
        ("evaluate t.csv --target y --observation gaussian", ["gaussian requires --sigma"]),
        ("fit t.csv --target y -o m --observation gaussian --sigma 0", ["--sigma", "'0'"]),
        ("fit t.csv --target y -o m --observation gaussian --sigma inf", ["--sigma", "'inf'"]),
        ("fit t.csv --target y -o m --observation blind", ["--observation", "adatree2"]),
        (
            "fit t.csv --target y -o m --model boosted-tree --growth random",
            ["--growth", "look_ahead"],
        ),
        (
            "fit t.csv --target y -o m --model boosted-tree --target-certificate 1",
            ["'1'", "in (0, 1)"],
        ),
        (
            "fit t.csv --target y -o m --model boosted-tree --target-certificate 0",
            ["'0'", "in (0, 1)"],
        ),
        ("fit t.csv --target y -o m --model matryoshka --shape 4,0", ["--shape", "'0'"]),
        ("fit t.csv --target y -o m --model matryoshka --shape 4,", ["--shape", "''"]),
        ("fit t.csv --target y -o m --model matryoshka --join exits", ["--join", "sign"]),
        ("fit t.csv --target y -o m --n-estimators 0", ["--n-estimators", ">= 1", "'0'"]),
        ("fit t.csv --target y -o m --n-estimators x", ["--n-estimators", "'x'"]),
        ("fit t.csv --target y -o m --round 3", ["--round"]),
        ("fit t.csv --target y -o m --smoothing -1", ["--smoothing"]),
        ("fit t.csv --target y -o m --smoothing nan", ["--smoothing"]),
        ("fit t.csv --target y -o m --learning-rate 0", ["--learning-rate"]),
        ("fit t.csv --target y -o m --criterion chaos", ["--criterion", "kearns_mansour"]),
        ("fit t.csv --target y -o m --n-threads 0", ["--n-threads"]),
        ("fit t.csv --target y -o m --cv 3", ["--cv"]),
        ("evaluate t.csv --target y --cv 1", ["--cv", ">= 2"]),
        ("evaluate t.csv --target y --seed -1", ["--seed"]),
        ("evaluate t.csv --target y --sample-weight y", ["same column"]),
        ("fit t.csv --target y -o t.csv", ["expected a new file", "t.csv"]),
        ("predict t.csv t.csv -o t.csv", ["expected a new file"]),
        ("predict m.npz", ["DATA.csv"]),
        ("demo --plot picture.doc", ["--plot", "png"]),
        ("demo --plot picture", ["--plot"]),
    ],
)
def test_wrong_usage(tmp_path, monkeypatch, pboost_main, arguments, parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("x,y\n1,0\n2,1\n")
    code, out, err = pboost_main(*arguments.split())
    assert (code, out) == (2, "")
    assert_one_line(err, *parts)
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("arguments", ["--help", "fit --help", "predict --help", "--version"])
def test_help_and_version(pboost_main, arguments):
    code, out, err = pboost_main(*arguments.split())
    assert (code, err) == (0, "")
    assert out


# Failures: exit code 1


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["t.csv"]),
        ("x,y\n", ["t.csv", "at least one row"]),
        ("x,y\n1,0\nred,1\n", ["'x'", "not numeric", "row 2", "'red'"]),
        ("x,y\n1,0\n?,1\n2,1\n", ["'x'", "row 2", "'?'"]),
        ("x,y\n1,0\n2\n", ["'y'", "missing", "row 2"]),
        ("x,y\n1,0\n2,1,3\n", ["t.csv"]),
        ("x,y\n1,0,5\n2,1,6\n", ["t.csv"]),
        ("x,y\n1,\n2,1\n", ["'y'", "missing", "row 1"]),
        ("x,y\n1,0\ninf,1\n", ["'x'", "infinity", "row 2"]),
        ("x,y\n1,0\n2,0\n", ["y", "two"]),
        ("x,z\n1,0\n2,1\n", ["column 'y' does not exist", "x, z"]),
        ("y\n0\n1\n", ["no columns besides 'y'"]),
        (b"\xff\xfe\x00\x01,y\n1,0\n", ["t.csv"]),
        (b"\x1f\x8bnot really", ["t.csv"]),
        (gzip.compress(b"x,y\n1,0\n2,1\n" * 99, mtime=0)[:-20], ["t.csv"]),
        ("x,x,y\n1,3,0\n2,3,1\n", ["expected distinct column names, got 'x' twice"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_bad_table(tmp_path, monkeypatch, pboost_main, command, text, parts):
    monkeypatch.chdir(tmp_path)
    content = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "t.csv").write_bytes(content)
    output = ["-o", "m.npz"] if command == "fit" else []
    code, out, err = pboost_main(command, "t.csv", "--target", "y", *output)
    assert (code, out) == (1, "")
    assert_one_line(err, *parts)
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(
    ("weights", "parts"),
    [
        ("1,-1", ["--sample-weight: ", "-1"]),
        ("0,0", ["--sample-weight: ", "0"]),
        ("1,", ["'w'", "missing"]),
        ("1,x", ["'w'", "not numeric", "'x'"]),
    ],
)
def test_bad_weights(tmp_path, pboost_main, weights, parts):
    first, second = weights.split(",")
    (tmp_path / "t.csv").write_text(f"x,y,w\n1,0,{first}\n2,1,{second}\n")
    code, _, err = pboost_main(
        "fit", tmp_path / "t.csv", "--target", "y", "--sample-weight", "w", "-o", tmp_path / "m"
    )
    assert code == 1
    assert_one_line(err, *parts)


def test_files_that_are_not_there_or_not_models(csv_file, model_file, pboost_main):
    folder = csv_file.parent
    for arguments, parts in [
        (("show", folder / "none.npz"), ["none.npz", "No such file"]),
        (("show", folder), [str(folder), "directory"]),
        (("show", csv_file), ["train.csv", "zip"]),
        (("predict", folder / "none.npz", csv_file), ["none.npz"]),
        (("predict", model_file, folder / "none.csv"), ["none.csv"]),
        (("predict", model_file, model_file), ["model.npz", "CSV"]),
        (("evaluate", folder / "none.csv", "--target", "y"), ["none.csv"]),
        (("predict", model_file, csv_file, "-o", folder / "no" / "o.csv"), ["o.csv", "directory"]),
        (("predict", model_file, csv_file, "-o", folder), [str(folder), "directory"]),
        (("demo", "--plot", folder / "no" / "plot.png"), ["plot.png", "directory"]),
    ]:
        code, out, err = pboost_main(*arguments)
        assert (code, out) == (1, ""), arguments
        assert_one_line(err, *parts)


def test_unusable_output_is_noticed_before_the_work(csv_file, pboost_main, monkeypatch):
    import pboost.cli.commands as commands

    monkeypatch.setattr(commands, "read_table", lambda *given: pytest.fail("read the data"))
    output = csv_file.parent / "missing" / "model.npz"
    code, _, err = pboost_main("fit", csv_file, "--target", "state", "-o", output)
    assert code == 1
    assert_one_line(err, "missing")


def test_predict_names_the_column_that_is_missing(csv_file, model_file, pboost_main):
    frame().drop(columns="größe").to_csv(csv_file, index=False)
    code, out, err = pboost_main("predict", model_file, csv_file)
    assert (code, out) == (1, "")
    assert_one_line(err, "'größe'")


def test_failed_predict_leaves_the_old_output(csv_file, model_file, pboost_main, monkeypatch):
    output = csv_file.parent / "out.csv"
    output.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        code, _, err = pboost_main("predict", model_file, csv_file, "-o", output)
    assert code == 1
    assert_one_line(err, "out.csv", "No space left on device")
    assert output.read_text() == "old"
    assert sorted(os.listdir(csv_file.parent)) == ["model.npz", "out.csv", "train.csv"]


def test_message_of_several_lines_takes_one(pboost_main, model_file, monkeypatch):
    import pboost.cli.commands as commands

    def fail(_):
        raise ValueError("first\n  second")

    monkeypatch.setattr(commands.pb, "load", fail)
    code, _, err = pboost_main("show", model_file)
    assert (code, err) == (1, "pboost: error: first second\n")


# What a newcomer's file looks like


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        (
            "x,home town,y\n1,Bonn,0\n2,Ulm,1\n",
            [],
            "pass it in --categorical-features",
        ),
        (
            "x;y\n1,5;0\n2;1\n",
            ["--sep", ";"],
            "column 'x' is not numeric: got '1,5' in row 1; for a decimal comma pass --decimal ,",
        ),
        (
            "x;y\n1,5;0\nUlm;1\n",
            ["--sep", ";", "--decimal", ","],
            "got 'Ulm' in row 2; if this is a missing value, pass --missing-values Ulm; or pass "
            "--categorical-features x or --drop x",
        ),
        (
            "x;y\n1,5;0\n2.5;1\n",
            ["--sep", ";", "--decimal", ","],
            "got '2.5' in row 2; for a decimal point pass --decimal .",
        ),
        ("x,y\n1,0\n2,1\n", ["--sample-weight", "z"], "column 'z' does not exist; columns: x, y"),
        ("x,state\n1,0\n2,1\n", ["--target", "stauts"], "columns: x, state; did you mean 'state'"),
        ("x,y\n1,0\n2,1\n", ["--drop", "z"], "column 'z' does not exist"),
        ("x,z,y\n1,1,0\n2,2,1\n", ["--drop", "x,z"], "no columns besides 'y' and 'x' and 'z'"),
        ("x,y\n1,0\n2,\n", [], "'y': missing value in row 2; impute it or drop"),
        ("x,y\n1,0\n2,1\n", ["--categorical-features", "z"], "column 'z' does not exist"),
        (
            "x;z;y\n1,5;2,5;0\n2,5;3,5;1\n",
            [],
            "t.csv: rows have more fields than the header 'x;z;y'; check --sep",
        ),
        ("x;y\n1;0\n2,5;1\n", [], "line 3 has more fields than the header 'x;y'; check --sep"),
        ("PK\x03\x04and so on", [], "got a spreadsheet"),
    ],
)
def test_what_can_be_done_is_said(tmp_path, pboost_main, text, arguments, said):
    (tmp_path / "t.csv").write_text(text)
    target = [] if "--target" in arguments else ["--target", "y"]
    code, out, err = pboost_main("evaluate", tmp_path / "t.csv", *target, *arguments)
    assert (code, out) == (1, "")
    assert_one_line(err, said)


def test_dropped_columns_and_decimal_commas(tmp_path, pboost_main):
    rows = [(f"{i},5", "Bonn", i % 3, i % 2) for i in range(12)]
    text = "a;town;b, c;y\n" + "".join(";".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "t.csv").write_text(text)
    how = ["--sep", ";", "--decimal", ","]
    given = [tmp_path / "t.csv", *how, "--target", "y", "--drop", 'town,"b, c"']
    code, _, err = pboost_main("fit", *given, "--n-estimators", "3", "-o", tmp_path / "m.npz")
    assert (code, err) == (0, "")
    code, out, err = pboost_main("predict", tmp_path / "m.npz", tmp_path / "t.csv", *how)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "label;probability_1"
    assert all(";0," in line for line in out.splitlines()[1:])
    (tmp_path / "plain.csv").write_text(text.replace(",", ".").replace(";", ","))
    code, out, _ = pboost_main("predict", tmp_path / "m.npz", tmp_path / "plain.csv")
    assert code == 0
    code, _, err = pboost_main("predict", tmp_path / "m.npz", tmp_path / "t.csv", "--sep", "tab")
    assert code == 1
    assert_one_line(
        err, "column 'a' is required by the model", "columns: a;town;b, c;y; check --sep"
    )
    code, _, err = pboost_main("evaluate", *given, "--drop", "y")
    assert code == 2
    assert_one_line(err, "--target and --drop name the same column")
