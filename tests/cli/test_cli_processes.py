"""The command line as a process: exit codes, signals, pipes, terminals, missing extras."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import numpy as np
import pytest
from command_line import assert_one_line, frame, run, start

import pboost as pb

pandas = pytest.importorskip("pandas")


@pytest.mark.full
def test_module_runs_and_exit_codes_reach_the_shell(csv_file):
    model = csv_file.parent / "model.npz"
    done = run("fit", csv_file, "--target", "state", "--n-estimators", 3, "-o", model)
    assert done[0] == 0, done
    assert done[2] == ""
    code, out, err = run("show", csv_file.parent / "none.npz")
    assert (code, out) == (1, "")
    assert_one_line(err, "none.npz")
    code, out, err = run("show")
    assert (code, out) == (2, "")
    assert_one_line(err, "MODEL.npz")


@pytest.mark.full
@pytest.mark.parametrize(
    ("blocked", "arguments", "extra"),
    [
        ("pandas", ["evaluate", "{table}", "--target", "state"], "cli"),
        ("pandas", ["predict", "{model}", "{table}"], "cli"),
        ("sklearn", ["demo"], "demo"),
        ("matplotlib", ["demo", "--plot", "plot.png"], "demo"),
    ],
)
def test_missing_extra_is_named(csv_file, model_file, blocked, arguments, extra):
    code = (
        f"import sys; sys.modules[{blocked!r}] = None; from pboost.__main__ import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = [argument.format(table=csv_file, model=model_file) for argument in arguments]
    status, out, err = run(*arguments, code=code)
    assert (status, out) == (1, "")
    assert_one_line(err, f'pip install "pboosting[{extra}]"')


@pytest.mark.full
def test_show_needs_no_extra(model_file):
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'tqdm', 'sklearn'])); "
        "from pboost.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    status, out, err = run("show", model_file, code=code)
    assert (status, err) == (0, "")
    assert out


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interrupt_leaves_nothing(csv_file):
    big = csv_file.parent / "big.csv"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    columns = {f"x{j}": X[:, j] for j in range(20)}
    pandas.DataFrame({**columns, "y": rng.integers(0, 2, 20_000)}).to_csv(big, index=False)
    output = csv_file.parent / "model.npz"
    code = (
        "import sys, pboost.cli.commands as c; from pboost.__main__ import main\n"
        "read = c.read_table\n"
        "def tell(*given):\n    t = read(*given)\n    print('read', flush=True)\n    return t\n"
        "c.read_table = tell\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = ("fit", big, "--target", "y", "--n-estimators", 1_000_000, "-o", output)
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
    assert sorted(os.listdir(csv_file.parent)) == ["big.csv", "train.csv"]


@pytest.mark.full
def test_output_that_cannot_show_a_character(csv_file):
    model_file = csv_file.parent / "m"
    numbers = frame()[["größe"]]
    pb.save(pb.fit_adaboost(numbers, frame()["state"], n_estimators=3), model_file)
    code, out, err = run("show", model_file, encoding="ascii")
    assert (code, err) == (0, "")
    assert "gr??e <= " in out


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_reader_that_goes_away(csv_file, model_file):
    read, write = os.pipe()
    os.close(read)
    code, _, err = run("predict", model_file, csv_file, stdout=write)
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


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="terminals")
@pytest.mark.parametrize("terminal", [True, False])
def test_progress_bar_is_for_terminals(csv_file, terminal):
    pytest.importorskip("tqdm")
    code = (
        "import functools, sys, time, pboost.cli.options as c; from pboost.__main__ import main\n"
        "fit = c.MODELS['adaboost']\n"
        "@functools.wraps(fit)\n"
        "def slow(*a, callback=None, **k):\n"
        "    def step(*b):\n        time.sleep(0.2)\n        return callback and callback(*b)\n"
        "    return fit(*a, callback=step, **k)\n"
        "c.MODELS['adaboost'] = slow\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    import pty  # not on every platform
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    arguments = (
        "fit",
        csv_file,
        "--target",
        "state",
        "--n-estimators",
        6,
        "-o",
        csv_file.parent / "m",
    )
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
        assert b"rounds" in shown
    else:
        assert err == ""
    assert pb.load(csv_file.parent / "m").n_nodes == 6
