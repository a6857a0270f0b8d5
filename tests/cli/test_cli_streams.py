"""The command line on other CSV files: separators, encodings, standard input and output."""

from __future__ import annotations

import gzip
import io
import os
import sys

import numpy as np
import pytest
from command_line import assert_one_line, frame, run, start

import pboost as pb
from pboost.__main__ import main

pandas = pytest.importorskip("pandas")

#: What is typed for each form, and how pandas writes it.
FORMS = [
    (["--sep", ";"], {"sep": ";"}),
    (["--sep", r"\t"], {"sep": "\t"}),
    (["--sep", "tab", "--encoding", "utf-16"], {"sep": "\t", "encoding": "utf-16"}),
    (["--sep=|", "--encoding", "latin-1"], {"sep": "|", "encoding": "latin-1"}),
    (["--encoding", "utf-8-sig"], {"encoding": "utf-8-sig"}),
]


@pytest.mark.parametrize(("typed", "written"), FORMS, ids=str)
@pytest.mark.parametrize("end", [".csv", ".csv.gz"])
def test_forms_in_and_out(tmp_path, csv_file, model_file, pboost_main, typed, written, end):
    table = frame().replace({"state": {"sick": "größer", "healthy": "a;b|c"}})
    table.to_csv(tmp_path / f"other{end}", index=False, **written)
    table.to_csv(csv_file, index=False)
    model, output = tmp_path / "m.npz", tmp_path / f"out{end}"
    fit = ["--target", "state", "--n-estimators", 4]
    assert pboost_main("fit", csv_file, *fit, "-o", model_file)[0] == 0
    assert pboost_main("fit", tmp_path / f"other{end}", *fit, "-o", model, *typed)[0] == 0
    assert model.read_bytes() == model_file.read_bytes()
    evaluate = [*fit, "--cv", 3]
    _, actual, _ = pboost_main("evaluate", tmp_path / f"other{end}", *evaluate, *typed)
    _, expected, _ = pboost_main("evaluate", csv_file, *evaluate)
    assert actual.splitlines()[:5] == expected.splitlines()[:5]
    _, expected, _ = pboost_main("predict", model, csv_file)
    done = pboost_main("predict", model, tmp_path / f"other{end}", *typed, "-o", output)
    assert done == (0, "", "")
    pandas.testing.assert_frame_equal(
        pandas.read_csv(output, **written), pandas.read_csv(io.StringIO(expected))
    )
    assert "probability_größer" in expected


def test_standard_output_has_the_encoding(csv_file, capfdbinary):
    table, model = frame(), csv_file.parent / "m.npz"
    pb.save(pb.fit_adaboost(table.drop(columns="state"), table["state"], n_estimators=3), model)
    arguments = ["predict", str(model), str(csv_file)]
    assert main(arguments) == 0
    expected = capfdbinary.readouterr().out.decode()
    table.to_csv(csv_file, index=False, encoding="utf-16")
    assert main([*arguments, "--encoding", "utf-16"]) == 0
    assert capfdbinary.readouterr().out.decode("utf-16") == expected


@pytest.fixture
def standard_input(monkeypatch):
    """Put bytes into standard input."""

    def put(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_a_table(csv_file, model_file, pboost_main, standard_input, pack):
    content, fit = pack(csv_file.read_bytes()), ["--target", "state", "--n-estimators", 5]
    standard_input(content)
    assert pboost_main("fit", "-", *fit, "-o", csv_file.parent / "m")[0] == 0
    assert (csv_file.parent / "m").read_bytes() == model_file.read_bytes()
    standard_input(content)
    actual = pboost_main("evaluate", "-", *fit, "--cv", 3)[1].splitlines()
    expected = pboost_main("evaluate", csv_file, *fit, "--cv", 3)[1].splitlines()
    assert actual[:7] == expected[:7]
    standard_input(content)
    actual = pboost_main("predict", model_file, "-", "-o", "-")
    assert actual == pboost_main("predict", model_file, csv_file)


@pytest.mark.full
def test_models_through_pipes(csv_file, model_file, pboost_main):
    """What `fit -o -` writes is the file that it would write, and others read it."""
    arguments = ["fit", csv_file, "--target", "state", "--n-estimators", 5, "-o", "-"]
    with start(*arguments) as fit:
        code, out, err = run("predict", "-", csv_file, stdin=fit.stdout.buffer)
    assert (code, out, err) == pboost_main("predict", model_file, csv_file)
    assert fit.returncode == 0


def test_a_model_from_standard_input(csv_file, model_file, pboost_main, standard_input):
    for command, more in (("predict", [csv_file]), ("show", [])):
        standard_input(model_file.read_bytes())
        assert pboost_main(command, "-", *more) == pboost_main(command, model_file, *more)


def test_a_file_may_be_named_so(csv_file, model_file, pboost_main, monkeypatch):
    monkeypatch.chdir(csv_file.parent)
    (csv_file.parent / "-").write_bytes(csv_file.read_bytes())
    _, expected, _ = pboost_main("predict", model_file, csv_file)
    assert pboost_main("predict", model_file, "./-") == (0, expected, "")
    assert pboost_main("predict", model_file, "./-", "-o", "-") == (0, expected, "")


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        ("predict - -", 2, ["at most one input from standard input, got two"]),
        ("predict m.npz t.csv --sep ab", 2, ["--sep", "expected one character", "'ab'"]),
        ("predict m.npz t.csv --sep 5", 2, ["--sep", "'5'"]),
        ("predict m.npz t.csv --sep .", 2, ["--sep", "'.'"]),
        ("predict m.npz t.csv --sep ü", 2, ["--sep", "'ü'"]),
        ("fit t.csv --target y -o m --encoding utf-99", 2, ["--encoding", "'utf-99'", "latin-1"]),
        ("evaluate t.csv --target y --encoding base64", 2, ["--encoding", "'base64'"]),
        ("evaluate t.csv --target y", 1, ["t.csv", "codec", "check --encoding"]),
        ("evaluate s.csv --target y", 1, ["column 'y' does not exist; columns: x;y; check --sep"]),
        ("predict m.npz t.csv --encoding latin-1 -o out.csv --sep ;", 1, ["'x'", "does not exist"]),
    ],
)
def test_failures(tmp_path, monkeypatch, pboost_main, arguments, code, parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes("x,y\n1,ö\n2,a\n".encode("latin-1"))
    (tmp_path / "s.csv").write_text("x;y\n1;0\n2;1\n")
    pb.save(pb.fit_adaboost([[0.0], [1.0]], [0, 1], n_estimators=1), tmp_path / "m.npz")
    if "m.npz t.csv --encoding" in arguments:
        X = pandas.DataFrame({"x": [0.0, 1.0]})
        pb.save(pb.fit_adaboost(X, [0, 1], n_estimators=1), tmp_path / "m.npz")
    before = sorted(os.listdir(tmp_path))
    actual, out, err = pboost_main(*arguments.split())
    assert (actual, out) == (code, "")
    assert_one_line(err, *parts)
    assert sorted(os.listdir(tmp_path)) == before


def test_labels_that_the_encoding_does_not_know(tmp_path, pboost_main):
    X = pandas.DataFrame({"x": [0.0, 1.0]})
    pb.save(pb.fit_adaboost(X, ["ja", "日本"], n_estimators=1), tmp_path / "m.npz")
    X.to_csv(tmp_path / "t.csv")
    for output in ("-", tmp_path / "out.csv"):
        code, out, err = pboost_main(
            "predict", tmp_path / "m.npz", tmp_path / "t.csv", "--encoding", "latin-1", "-o", output
        )
        assert (code, out) == (1, "")
        assert_one_line(err, "--encoding latin-1", "can't encode")
    assert not (tmp_path / "out.csv").exists()


def test_standard_input_that_is_something_else(csv_file, model_file, pboost_main, standard_input):
    for arguments, content in (
        (("show", "-"), b"no model"),
        (("predict", "-", csv_file), b""),
        (("predict", model_file, "-"), b"\x1f\x8bnot really"),
        (("evaluate", "-", "--target", "state"), b""),
    ):
        standard_input(content)
        code, out, err = pboost_main(*arguments)
        assert (code, out) == (1, "")
        assert_one_line(err, "standard input: ")
        assert "/" not in err


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="terminals")
def test_a_model_is_nothing_for_a_terminal(csv_file):
    import pty  # not on every platform

    ours, theirs = pty.openpty()
    code, _, err = run("fit", csv_file, "--target", "state", "-o", "-", stdout=theirs)
    os.close(theirs)
    os.close(ours)
    assert code == 2
    assert_one_line(err, "-o -", "redirect")


@pytest.mark.parametrize("labels", [(0, 1), (0.5, 1.5), (False, True), ("007", "a b")], ids=str)
def test_probabilities_are_named_after_their_label(tmp_path, pboost_main, labels):
    X = np.arange(6.0).reshape(-1, 1)
    model = pb.fit_adaboost(X, np.array(labels)[(X[:, 0] > 2).astype(int)], n_estimators=2)
    pb.save(model, tmp_path / "m.npz")
    pandas.DataFrame(X).to_csv(tmp_path / "t.csv", index=False)
    _, out, _ = pboost_main("predict", tmp_path / "m.npz", tmp_path / "t.csv")
    assert out.splitlines()[0] == f"label,probability_{labels[1]}"
