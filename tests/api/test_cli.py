"""The command line: results on standard output, one line on standard error where it fails."""

from __future__ import annotations

import gzip
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pboost as pb
from pboost.__main__ import main
from pboost.cli.table import exact_numbers, read_table

pandas = pytest.importorskip("pandas")

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("PBOOST_DATA", ROOT / ".." / "shared" / "data"))
SEARCH_PATH = os.pathsep.join(path for path in sys.path if path)


def start(*arguments, code=None, **options):
    """A process of its own: `python -m pboost`, or `code` in its place."""
    how = ["-m", "pboost"] if code is None else ["-c", code]
    return subprocess.Popen(
        [sys.executable, "-W", "error", *how, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": SEARCH_PATH, "PYTHONIOENCODING": "utf-8"},
        encoding="utf-8",
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def run(*arguments, code=None, **options):
    process = start(*arguments, code=code, **options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.fixture
def call(capfd):
    """Run a command in this process; returns exit code, output and error output."""

    def run_here(*arguments):
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return run_here


def frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.4
    return pandas.DataFrame(
        {
            "age": rng.integers(20, 90, n) + 10 * sick,
            "größe": rng.normal(size=n) + sick,
            "ward": rng.random(n) < 0.5,
            "state": np.where(sick, "sick", "healthy"),
            "copies": rng.integers(1, 4, n),
        }
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "train.csv"
    frame().to_csv(path, index=False)
    return path


@pytest.fixture
def model(table, call):
    path = table.parent / "model.npz"
    assert call("fit", table, "--target", "state", "--rounds", 5, "-o", path)[0] == 0
    return path


def assert_one_line(err, *parts):
    assert err.count("\n") == 1, err
    assert err.endswith("\n")
    assert err.startswith("pboost"), err
    assert "Traceback" not in err
    for part in parts:
        assert part in err


# What the commands do


def test_fit_gives_the_model_of_the_library(table, call):
    output = table.parent / "model.npz"
    code, out, err = call("fit", table, "--target", "state", "--rounds", 7, "-o", output)
    assert (code, err) == (0, "")
    X = frame().drop(columns="state")
    expected = pb.fit_adaboost(X, frame()["state"], rounds=7)
    found = pb.load(output)
    assert found.feature_names == ("age", "größe", "ward", "copies")
    assert found.labels.tolist() == ["healthy", "sick"]
    np.testing.assert_array_equal(found.threshold, expected.threshold)
    np.testing.assert_array_equal(found.vote, expected.vote)
    assert out.count("\n") == 1
    assert f"{expected.n_nodes} nodes" in out
    assert f"{pb.certificate(expected):.4g}" in out


@pytest.mark.parametrize(
    ("options", "fit"),
    [
        (
            "--model adaboost --rounds 6 --criterion gini --search binned --votes symmetric "
            "--smoothing 0.01 --learning-rate 0.5 --threads 2 --seed 3",
            lambda X, y: pb.fit_adaboost(
                X, y, rounds=6, weak=pb.weak.stump("gini", "binned"), votes="symmetric",
                smoothing=0.01, learning_rate=0.5,
            ),
        ),
        (
            "--model tree --nodes 9 --criterion entropy --search exact --growth breadth-first "
            "--max-depth 3 --smoothing 0 --threads 1",
            lambda X, y: pb.fit_boosted_tree(
                X, y, nodes=9, weak=pb.weak.stump("entropy", "exact"), growth="breadth-first",
                max_depth=3, smoothing=0,
            ),
        ),
    ],
    ids=["adaboost", "tree"],
)
def test_every_option_reaches_the_builder(table, call, options, fit):
    output = table.parent / "model.npz"
    code, _, err = call("fit", table, "--target", "state", *options.split(), "-o", output)
    assert (code, err) == (0, "")
    X = frame().drop(columns="state")
    expected, found = fit(X, frame()["state"]), pb.load(output)
    assert found.settings == expected.settings
    for name in ("feature", "threshold", "next", "vote"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_weight_column_is_weight_and_no_feature(table, call):
    output = table.parent / "model.npz"
    code, _, _ = call(
        "fit", table, "--target", "state", "--weight", "copies", "--rounds", 5, "-o", output
    )
    assert code == 0
    X = frame().drop(columns=["state", "copies"])
    expected = pb.fit_adaboost(X, frame()["state"], rounds=5, sample_weight=frame()["copies"])
    found = pb.load(output)
    assert found.feature_names == tuple(X.columns)
    np.testing.assert_array_equal(found.vote, expected.vote)


def test_predict_writes_label_and_probability(table, model, call):
    output = table.parent / "out.csv"
    code, out, err = call("predict", model, table, "-o", output)
    assert (code, out, err) == (0, "", "")
    found = read_table(str(output))
    assert list(found.columns) == ["label", "probability"]
    loaded, X = pb.load(model), frame().drop(columns="state")
    assert found["label"].tolist() == pb.predict(loaded, X).tolist()
    assert found["probability"].tolist() == pb.predict_proba(loaded, X)[:, 1].tolist()
    assert (found["label"] == frame()["state"]).mean() > 0.6


def test_predict_finds_columns_by_name(table, model, call):
    _, expected, _ = call("predict", model, table)
    mixed = frame()[["größe", "copies", "ward", "age"]].assign(note="free text")
    mixed.to_csv(table.parent / "mixed.csv", index=False)
    code, out, err = call("predict", model, table.parent / "mixed.csv")
    assert (code, err) == (0, "")
    assert out == expected
    assert out.startswith("label,probability\n")
    assert out.count("\n") == 61


def test_predict_with_a_model_that_knows_no_names(table, call):
    numbers = frame()[["age", "größe"]]
    pb.save(pb.fit_adaboost(numbers.to_numpy(), frame()["state"], rounds=3), table.parent / "m")
    numbers.to_csv(table.parent / "numbers.csv", index=False)
    code, out, _ = call("predict", table.parent / "m", table.parent / "numbers.csv")
    assert code == 0
    assert out.count("\n") == 61
    numbers[["age"]].to_csv(table.parent / "numbers.csv", index=False)
    code, _, err = call("predict", table.parent / "m", table.parent / "numbers.csv")
    assert code == 1
    assert_one_line(err, "2", "1")


@pytest.mark.parametrize("labels", [(0, 1), (0.5, 1.5), (False, True), ("007", "a b")], ids=str)
def test_labels_of_all_kinds_come_back(tmp_path, call, labels):
    truth = [labels[int(v > 2)] for v in range(6)]
    pandas.DataFrame({"x": range(6), "y": truth}).to_csv(tmp_path / "a.csv", index=False)
    assert call("fit", tmp_path / "a.csv", "--target", "y", "-o", tmp_path / "m")[0] == 0
    assert call("predict", tmp_path / "m", tmp_path / "a.csv", "-o", tmp_path / "out.csv")[0] == 0
    assert pandas.read_csv(tmp_path / "out.csv")["label"].tolist() == truth


def test_gzipped_files_in_and_out(table, model, call):
    zipped = table.with_suffix(".csv.gz")
    zipped.write_bytes(gzip.compress(table.read_bytes()))
    _, expected, _ = call("predict", model, table)
    output = table.parent / "out.csv.gz"
    assert call("predict", model, zipped, "-o", output)[0] == 0
    assert gzip.decompress(output.read_bytes()).decode() == expected
    first = output.read_bytes()
    assert call("predict", model, zipped, "-o", output)[0] == 0
    assert output.read_bytes() == first


def test_evaluate_prints_the_cross_validation_of_the_library(table, call):
    arguments = ("evaluate", table, "--target", "state", "--rounds", 4, "--folds", 5, "--seed", 2)
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    X = frame().drop(columns="state")
    expected = pb.cross_validate(
        lambda *data: pb.fit_adaboost(*data, rounds=4), X, frame()["state"], folds=5, rng=2
    )

    def without_times(text):
        return [line for line in text.splitlines() if " time " not in line]

    assert without_times(out) == without_times(str(expected))
    assert without_times(call(*arguments)[1]) == without_times(out)


def test_show_prints_the_description(model, call):
    code, out, err = call("show", model)
    assert (code, err) == (0, "")
    assert out.rstrip("\n") == pb.describe(pb.load(model)).rstrip("\n")
    assert "age" in out or "größe" in out


def test_demo_prints_one_table_and_draws(tmp_path, call):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    plot = tmp_path / "plot.png"
    code, out, err = call("demo", "--folds", 2, "--seed", 1, "--plot", plot)
    assert (code, err) == (0, "")
    assert "569 rows, 30 features, 2-fold" in out
    header, _, *rows = out.splitlines()[2:]
    for title in ("model", "test error ± sd", "comparisons per row", "certificate", "fit time"):
        assert title in header
    assert len({len(row) for row in [header, *rows]}) == 1
    assert sum(row.startswith("AdaBoost") for row in rows) >= 3
    assert sum(row.startswith("boosted tree") for row in rows) >= 3
    errors = [float(re.search(r"([\d.]+) ± ", row)[1]) for row in rows]
    assert max(errors) < 15
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert os.listdir(tmp_path) == ["plot.png"]


@pytest.mark.parametrize("name", ["banknote", "pima"])
@pytest.mark.parametrize(("options", "most"), [("--rounds 100", 0.30), ("--model tree", 0.33)])
def test_real_data(tmp_path, call, name, options, most):
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"needs {name}.csv.gz; PBOOST_DATA names the directory with data sets")
    code, out, _ = call("evaluate", path, "--target", "target", *options.split())
    assert code == 0
    assert float(re.search(r"test error +([\d.]+)%", out)[1]) / 100 < most
    model, output = tmp_path / "model.npz", tmp_path / "out.csv"
    assert call("fit", path, "--target", "target", *options.split(), "-o", model)[0] == 0
    assert call("predict", model, path, "-o", output)[0] == 0
    truth = pandas.read_csv(path)["target"]
    assert (pandas.read_csv(output)["label"] != truth).mean() < most


def test_numbers_are_read_as_python_reads_them(tmp_path):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=5000), 10.0 ** rng.uniform(-300, 300, 5000)])
    (tmp_path / "a.csv").write_text("\n".join(["x", *map(repr, values.tolist())]))
    np.testing.assert_array_equal(read_table(str(tmp_path / "a.csv"))["x"], values)
    assert exact_numbers("2.2.3") == exact_numbers("3.0.0") == {"float_precision": "round_trip"}
    assert exact_numbers("3.1.0rc0") == exact_numbers("10.0.0") == {}


# Wrong usage: exit code 2


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("", ["COMMAND"]),
        ("train", ["invalid choice", "train"]),
        ("fit", ["TRAIN.csv", "--target", "-o"]),
        ("fit t.csv --target y", ["-o"]),
        ("fit t.csv -o m", ["--target"]),
        ("fit t.csv --target y -o m --model forest", ["--model", "forest"]),
        ("fit t.csv --target y -o m --nodes 3", ["--nodes belongs to --model tree"]),
        ("fit t.csv --target y -o m --growth breadth-first", ["--growth belongs to"]),
        ("fit t.csv --target y -o m --max-depth 3", ["--max-depth belongs to"]),
        ("fit t.csv --target y -o m --model tree --rounds 3", ["--rounds belongs to"]),
        ("evaluate t.csv --target y --model tree --votes domain", ["--votes belongs to"]),
        ("fit t.csv --target y -o m --rounds 0", ["--rounds", "at least 1", "'0'"]),
        ("fit t.csv --target y -o m --rounds x", ["--rounds", "'x'"]),
        ("fit t.csv --target y -o m --round 3", ["--round"]),
        ("fit t.csv --target y -o m --smoothing -1", ["--smoothing"]),
        ("fit t.csv --target y -o m --smoothing nan", ["--smoothing"]),
        ("fit t.csv --target y -o m --learning-rate 0", ["--learning-rate"]),
        ("fit t.csv --target y -o m --criterion chaos", ["--criterion", "kearns-mansour"]),
        ("fit t.csv --target y -o m --threads 0", ["--threads"]),
        ("fit t.csv --target y -o m --folds 3", ["--folds"]),
        ("evaluate t.csv --target y --folds 1", ["--folds", "at least 2"]),
        ("evaluate t.csv --target y --seed -1", ["--seed"]),
        ("evaluate t.csv --target y --weight y", ["same column"]),
        ("fit t.csv --target y -o t.csv", ["overwrite", "t.csv"]),
        ("predict t.csv t.csv -o t.csv", ["overwrite"]),
        ("predict m.npz", ["DATA.csv"]),
        ("demo --plot picture.doc", ["--plot", "png"]),
        ("demo --plot picture", ["--plot"]),
    ],
)
def test_wrong_usage(tmp_path, monkeypatch, call, arguments, parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("x,y\n1,0\n2,1\n")
    code, out, err = call(*arguments.split())
    assert (code, out) == (2, "")
    assert_one_line(err, *parts)
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("arguments", ["--help", "fit --help", "predict --help", "--version"])
def test_help_and_version(call, arguments):
    code, out, err = call(*arguments.split())
    assert (code, err) == (0, "")
    assert out


# Failures: exit code 1


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["t.csv"]),
        ("x,y\n", ["t.csv", "no rows"]),
        ("x,y\n1,0\nred,1\n", ["'x'", "not numeric", "row 2", "'red'"]),
        ("x,y\n1,0\n,1\n", ["'x'", "missing", "row 2"]),
        ("x,y\n1,0\n2\n", ["'y'", "missing", "row 2"]),
        ("x,y\n1,0\n2,1,3\n", ["t.csv"]),
        ("x,y\n1,0,5\n2,1,6\n", ["t.csv"]),
        ("x,y\n1,\n2,1\n", ["'y'", "missing", "row 1"]),
        ("x,y\n1,0\ninf,1\n", ["'x'", "infinite", "row 2"]),
        ("x,y\n1,0\n2,0\n", ["y", "two"]),
        ("x,y\n1,0\n2,1\n3,2\n", ["y", "two"]),
        ("x,z\n1,0\n2,1\n", ["no column 'y'", "x, z"]),
        ("y\n0\n1\n", ["no column besides 'y'"]),
        (b"\xff\xfe\x00\x01,y\n1,0\n", ["t.csv"]),
        (b"\x1f\x8bnot really", ["t.csv"]),
        (gzip.compress(b"x,y\n1,0\n2,1\n" * 99)[:-20], ["t.csv"]),
        ("x,x,y\n1,a,0\n2,3,1\n", ["'x.1'", "'a'"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_bad_table(tmp_path, monkeypatch, call, command, text, parts):
    monkeypatch.chdir(tmp_path)
    content = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "t.csv").write_bytes(content)
    output = ["-o", "m.npz"] if command == "fit" else []
    code, out, err = call(command, "t.csv", "--target", "y", *output)
    assert (code, out) == (1, "")
    assert_one_line(err, *parts)
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(
    ("weights", "parts"),
    [
        ("1,-1", ["sample_weight", "-1"]),
        ("0,0", ["sample_weight", "0"]),
        ("1,", ["'w'", "missing"]),
        ("1,x", ["'w'", "not numeric", "'x'"]),
    ],
)
def test_bad_weights(tmp_path, call, weights, parts):
    first, second = weights.split(",")
    (tmp_path / "t.csv").write_text(f"x,y,w\n1,0,{first}\n2,1,{second}\n")
    code, _, err = call(
        "fit", tmp_path / "t.csv", "--target", "y", "--weight", "w", "-o", tmp_path / "m"
    )
    assert code == 1
    assert_one_line(err, *parts)


def test_files_that_are_not_there_or_not_models(table, model, call):
    folder = table.parent
    for arguments, parts in [
        (("show", folder / "none.npz"), ["none.npz", "No such file"]),
        (("show", folder), [str(folder), "directory"]),
        (("show", table), ["train.csv", "zip"]),
        (("predict", folder / "none.npz", table), ["none.npz"]),
        (("predict", model, folder / "none.csv"), ["none.csv"]),
        (("predict", model, model), ["model.npz", "CSV"]),
        (("evaluate", folder / "none.csv", "--target", "y"), ["none.csv"]),
        (("predict", model, table, "-o", folder / "no" / "out.csv"), ["out.csv", "directory"]),
        (("predict", model, table, "-o", folder), [str(folder), "directory"]),
        (("demo", "--plot", folder / "no" / "plot.png"), ["plot.png", "directory"]),
    ]:
        code, out, err = call(*arguments)
        assert (code, out) == (1, ""), arguments
        assert_one_line(err, *parts)


def test_unusable_output_is_noticed_before_the_work(table, call, monkeypatch):
    import pboost.cli.commands as commands

    monkeypatch.setattr(commands, "read_table", lambda path: pytest.fail("read the data"))
    output = table.parent / "missing" / "model.npz"
    code, _, err = call("fit", table, "--target", "state", "-o", output)
    assert code == 1
    assert_one_line(err, "missing")


def test_predict_names_the_column_that_is_missing(table, model, call):
    frame().drop(columns="größe").to_csv(table, index=False)
    code, out, err = call("predict", model, table)
    assert (code, out) == (1, "")
    assert_one_line(err, "'größe'")


def test_failed_predict_leaves_the_old_output(table, model, call, monkeypatch):
    output = table.parent / "out.csv"
    output.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        code, _, err = call("predict", model, table, "-o", output)
    assert code == 1
    assert_one_line(err, "out.csv", "No space left on device")
    assert output.read_text() == "old"
    assert sorted(os.listdir(table.parent)) == ["model.npz", "out.csv", "train.csv"]


def test_message_of_several_lines_takes_one(call, model, monkeypatch):
    import pboost.cli.commands as commands

    def fail(_):
        raise ValueError("first\n  second")

    monkeypatch.setattr(commands, "load", fail)
    code, _, err = call("show", model)
    assert (code, err) == (1, "pboost: error: first second\n")


def test_output_that_cannot_show_a_character(table, model, monkeypatch):
    plain = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", plain)
    assert main(["show", str(model)]) == 0
    assert b"gr??e" in plain.buffer.getvalue() or b"age" in plain.buffer.getvalue()


# Processes of their own


def test_module_runs_and_exit_codes_reach_the_shell(table):
    model = table.parent / "model.npz"
    done = run("fit", table, "--target", "state", "--rounds", 3, "-o", model)
    assert done[0] == 0, done
    assert done[2] == ""
    code, out, err = run("show", table.parent / "none.npz")
    assert (code, out) == (1, "")
    assert_one_line(err, "none.npz")
    code, out, err = run("show")
    assert (code, out) == (2, "")
    assert_one_line(err, "MODEL.npz")


@pytest.mark.parametrize(
    ("blocked", "arguments", "extra"),
    [
        ("pandas", ["evaluate", "{table}", "--target", "state"], "cli"),
        ("pandas", ["predict", "{model}", "{table}"], "cli"),
        ("sklearn", ["demo"], "demo"),
        ("matplotlib", ["demo", "--plot", "plot.png"], "demo"),
    ],
)
def test_missing_extra_is_named(table, model, blocked, arguments, extra):
    code = (
        f"import sys; sys.modules[{blocked!r}] = None; from pboost.__main__ import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = [argument.format(table=table, model=model) for argument in arguments]
    status, out, err = run(*arguments, code=code)
    assert (status, out) == (1, "")
    assert_one_line(err, f'pip install "pboost[{extra}]"')


def test_show_needs_no_extra(model):
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'tqdm', 'sklearn'])); "
        "from pboost.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    status, out, err = run("show", model, code=code)
    assert (status, err) == (0, "")
    assert out


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interrupt_leaves_nothing(table):
    big = table.parent / "big.csv"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    columns = {f"x{j}": X[:, j] for j in range(20)}
    pandas.DataFrame({**columns, "y": rng.integers(0, 2, 20_000)}).to_csv(big, index=False)
    output = table.parent / "model.npz"
    code = (
        "import sys, pboost.cli.commands as c; from pboost.__main__ import main\n"
        "read = c.read_table\n"
        "def tell(path):\n    t = read(path)\n    print('read', flush=True)\n    return t\n"
        "c.read_table = tell\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = ("fit", big, "--target", "y", "--rounds", 1_000_000, "-o", output)
    with start(*arguments, code=code) as process:
        try:
            assert process.stdout.readline() == "read\n"
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert time.monotonic() - begin < 5
    assert out == ""
    assert_one_line(err, "interrupted")
    assert sorted(os.listdir(table.parent)) == ["big.csv", "train.csv"]


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_reader_that_goes_away(table, model):
    read, write = os.pipe()
    os.close(read)
    code, _, err = run("predict", model, table, stdout=write)
    os.close(write)
    assert (code, err) == (1, "")


def read_all(terminal):
    """What a process writes to a terminal before it closes it."""
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 1000)
        except OSError:  # the other end was closed
            return shown
        if not piece:
            return shown
        shown += piece


@pytest.mark.skipif(os.name != "posix", reason="terminals")
@pytest.mark.parametrize("terminal", [True, False])
def test_progress_bar_is_for_terminals(table, terminal):
    pytest.importorskip("tqdm")
    code = (
        "import sys, time, pboost.cli.commands as c; from pboost.__main__ import main\n"
        "fit = c.fit_adaboost\n"
        "def slow(*a, callback=None, **k):\n"
        "    def step(*b):\n        time.sleep(0.2)\n        return callback and callback(*b)\n"
        "    return fit(*a, callback=step, **k)\n"
        "c.BUILDERS['adaboost'] = slow\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    import pty  # not on every platform
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    arguments = ("fit", table, "--target", "state", "--rounds", 6, "-o", table.parent / "m")
    stderr = theirs if terminal else subprocess.PIPE
    with start(*arguments, code=code, stderr=stderr) as process:
        os.close(theirs)
        shown = read_all(ours) if terminal else b""
        out, err = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0, err or shown
    assert "nodes, certificate" in out
    if terminal:
        assert b"/6" in shown
        assert b"nodes" in shown
    else:
        assert err == ""
    assert pb.load(table.parent / "m").n_nodes == 6
