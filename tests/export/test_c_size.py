"""Bytes of models on small devices: tables as in the file, code as a compiler makes it."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import partial

import exported
import numpy as np
import pytest

import pboost as pb
from pboost.export.c_file import c_size

#: Calibration rows may be those of the training here.
pytestmark = pytest.mark.filterwarnings("ignore:X_cal. .* rows equal rows:UserWarning")
ROOM = {"int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "int64_t": 8}
ARM = ["arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb", "-ffreestanding", "-Os", "-w", "-c"]
PLAIN = exported.PLAIN
#: Columns without and with categories: eight levels, or more.
FULL = np.round(np.random.default_rng(0).normal(size=(600, 4)), 1)
FEW, MANY = (
    np.column_stack([FULL[:, :3], np.random.default_rng(1).integers(0, size, 600)])
    for size in (8, 70)
)
FITS = {
    "chain": partial(pb.fit_adaboost, n_estimators=20),
    "joins": partial(pb.fit_matryoshka, shape=(3, 6), join="all"),
    "sum": partial(pb.fit_gradient_boosting, n_estimators=8, max_depth=2),
    "forest": partial(pb.fit_random_forest, n_estimators=6, rng=0, max_depth=4),
}


def _early(kind, J, rows):
    """Return a model of J labels that half of the rows leave early."""
    score = rows[:, 0] + rows[:, 1] * rows[:, 2] + rows[:, 3] % 3
    options = {} if rows is FULL else {"categorical_features": [3]}
    if kind == "sum":
        options["loss"] = "log_loss" if J == 2 else "softmax"
    model = FITS[kind](rows, np.argsort(np.argsort(score)) * J // len(rows), **options)
    full_cost = pb.prediction_cost(model, rows).mean()
    return pb.early_exit(model, rows, mean_comparisons=0.6 * full_cost, length=None)


EARLY = {
    f"early {kind} {J} {size}": partial(_early, kind, J, rows)
    for kind in FITS
    for J in (2, 3, 5)
    for size, rows in (("full", FULL), ("few", FEW), ("many", MANY))
}
#: As of `exported`, and longer.
MODELS = {
    **{
        name: make
        for name, make in exported.WITH_HOLES.items()
        if name not in {"pruned", *exported.OF_MODELS}  # "pruned" is one node
    },
    "long chain": lambda: pb.fit_adaboost(PLAIN, exported.TWO, n_estimators=60),
    "chain of trees": lambda: pb.fit_matryoshka(
        PLAIN, exported.TWO, shape=(7, 12), join="all", learning_rate=0.3
    ),
    "long sum": lambda: pb.fit_gradient_boosting(
        PLAIN, exported.TWO, loss="log_loss", n_estimators=40, max_depth=None, max_leaf_nodes=4
    ),
    "calibrated": lambda: pb.calibrate(exported.made("chain"), exported.X, exported.TWO),
    "calibrated forest": lambda: pb.calibrate(
        exported.made("forest"), exported.X, exported.TWO, method="isotonic"
    ),
    **EARLY,
    "early, twenty labels": partial(_early, "chain", 20, FULL),
    "ten labels": lambda: pb.fit_gradient_boosting(
        PLAIN,
        np.arange(len(PLAIN)) % 10,
        loss="softmax",
        multi_strategy="multi_output_tree",
        n_estimators=8,
        max_depth=2,
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return path, estimate and model of what int16 can hold."""
    folder, actual = tmp_path_factory.mktemp("c"), {}
    for number, (name, make) in enumerate(MODELS.items()):
        model, path = make(), folder / f"m{number}.c"
        rows = exported.X if model.n_features > PLAIN.shape[1] else PLAIN
        if isinstance(model, pb.models.EarlyExitModel):
            rows = MANY if model.table is not None else FULL
        made = pb.export.to_c(model, path, "int16", X=rows)
        assert made.n_bytes == c_size(model)
        actual[name] = path, made.n_bytes
    return actual


@pytest.mark.full
def test_tables_are_those_of_the_file(files):
    for name, (path, size) in files.items():
        text = path.read_text(encoding="ascii").partition("\n#ifdef")[0]
        tables = re.findall(r"^static const (\w+) \w+\[(\d+)\] =", text, flags=re.M)
        room = sum(ROOM[kind] * int(count) for kind, count in tables)
        if "_classes[" in text:
            labels = text.rpartition("_classes[")[2]
            room += 4 * int(labels.partition("]")[0])
            room += sum(len(label) + 1 for label in re.findall(r'"([^"]*)"', labels))
        minimum, maximum = (220, 650) if "early" in name else (100, 260)
        assert minimum <= size - room <= maximum, (name, size, room)


@pytest.mark.build
def test_sizes_are_those_of_a_compiler(files, tmp_path):
    if not shutil.which(ARM[0]):
        pytest.skip(f"no {ARM[0]}")
    for name, (path, size) in files.items():
        subprocess.run([*ARM, str(path), "-o", str(tmp_path / "m.o")], check=True)
        out = subprocess.run(
            ["arm-none-eabi-size", str(tmp_path / "m.o")],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        text, data, *_ = map(int, out.splitlines()[1].split()[:2])
        assert size == pytest.approx(text + data, rel=0.05, abs=17), name


def test_other_numbers_have_no_estimate(tmp_path):
    model = pb.fit_adaboost(PLAIN, exported.TWO, n_estimators=3)
    assert pb.export.to_c(model, tmp_path / "m.c").n_bytes is None
    with pytest.raises(NotImplementedError, match="compare sums"):
        c_size(pb.fit_adaboost(PLAIN, exported.TWO, n_estimators=3, weak_learner=pb.weak.affine()))
