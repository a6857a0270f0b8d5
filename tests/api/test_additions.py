"""What must be touched to add something: the diffs of docs/dev/additions, applied to a copy of the
package, which is then used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pboost

PACKAGE = Path(pboost.__file__).parent
ROOT = Path(__file__).parents[2]
SOURCE, DIFFS = ROOT / "pboost", ROOT / "docs" / "dev" / "additions"

pytestmark = pytest.mark.skipif(
    not (SOURCE / "_core" / "split.pyx").exists(), reason="no source tree beside tests/"
)
#: Rows of two noisy classes, and how one asks whether they were learned.
DATA = """
import numpy as np, os, pickle, sys, tempfile
import pboost as pb
from pboost.cli.options import KINDS
rng = np.random.default_rng(0)
X = rng.standard_normal((300, 4)).cumsum(axis=1)
y = np.where(X[:, 2] - X[:, 1] + 0.3 * rng.standard_normal(300) > 0, "up", "down")

def kept(model):
    path = os.path.join(sys.argv[1], "model.npz")
    pb.save(model, path)
    for same in (pb.load(path), pickle.loads(pickle.dumps(model))):
        assert type(same) is type(model)
        assert (pb.predict_proba(same, X) == pb.predict_proba(model, X)).all()
"""


def apply_diff(diff, folder):
    """Change the files of a folder as a diff says, wherever in them its hunks are; return which."""
    names = []
    for part in re.split(r"^--- .*\n", diff, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^@@.*\n", part, flags=re.MULTILINE)
        names.append(re.match(r"\+\+\+ b/(\S+)", head).group(1))
        path = folder / names[-1]
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for hunk in hunks:
            lines = [line or " " for line in hunk.splitlines()]
            old = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
            new = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
            assert text.count(old) == 1 or not text, f"{names[-1]}: once and only once\n{old}"
            text = text.replace(old, new, 1)
        path.write_text(text, encoding="utf-8")
    return names


def changed_copy(folder, name):
    """Copy the package, change the copy by a diff; return which files of it were touched."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(SOURCE, folder / "pboost", ignore=ignored)
    for path in (PACKAGE / "_core").iterdir():
        if path.suffix in (".so", ".pyd"):
            shutil.copy2(path, folder / "pboost" / "_core")
    ignored = shutil.ignore_patterns("_build", "generated")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=ignored)
    names = apply_diff((DIFFS / f"{name}.diff").read_text(encoding="utf-8"), folder)
    return [name for name in names if name.startswith("pboost/")]


def build(folder, names):
    """Build those kernels of the copy anew that read one of the files."""
    depends = pytest.importorskip("Cython.Build.Dependencies").create_dependency_tree(quiet=True)
    touched, core = {str(folder / name) for name in names}, folder / "pboost" / "_core"
    for _ in range(len(list(core.glob("*.h")))):  # who includes a header, and who includes that
        headers = tuple(f'"{Path(name).name}"' for name in touched if name.endswith(".h"))
        for path in (path for kind in ("h", "pxd", "pyx") for path in core.glob(f"*.{kind}")):
            if any(header in path.read_text(encoding="utf-8") for header in headers):
                touched.add(str(path))
    for path in core.glob("*.pyx"):
        if not touched & set(depends.all_dependencies(str(path))):
            path.unlink()
    plain = (ROOT / "setup.py").read_text(encoding="utf-8").replace('"-O3"', '"-O0"')
    (folder / "setup.py").write_text(plain, encoding="utf-8")  # half the time, the same answers
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "-j", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode and "compiler" in done.stderr:
        pytest.skip("no C compiler")
    assert done.returncode == 0, done.stderr


def use(folder, code):
    """Run code with the copy of the package in a folder."""
    check = "import pboost, sys; assert pboost.__file__.startswith(sys.argv[1]), pboost.__file__\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", check + DATA + code, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_an_observation_model_is_two_files(tmp_path):
    assert len(changed_copy(tmp_path, "observation")) <= 2
    code = """
for fit in (pb.fit_adaboost, pb.fit_boosted_tree):
    size = {"n_estimators": 5} if fit is pb.fit_adaboost else {"max_nodes": 5}
    model = fit(X, y, observation=pb.observation.one_sided(0.2), **size)
    kept(model)
    assert (model.answer[:, 1] == 0.8).all()
    assert np.isclose(pb.certificate(model), pb.certificate(model, X, y))
    certain = fit(X, y, **size), fit(X, y, observation=pb.observation.one_sided(0.0), **size)
    assert np.allclose(*(pb.decision_function(model, X) for model in certain))
assert "one_sided" in KINDS["observation"]
"""
    use(tmp_path, code)


@pytest.mark.full
def test_a_weak_learner_is_two_files(tmp_path):
    assert len(changed_copy(tmp_path, "weak_learner")) <= 2
    code = """
weak = pb.weak.differences("gini")
stump = pb.fit_boosted_tree(np.diff(X), y, max_nodes=7, weak_learner=pb.weak.stump("gini"))
model = pb.fit_boosted_tree(X, y, max_nodes=7, weak_learner=weak)
kept(model)
assert np.allclose(pb.decision_function(model, X), pb.decision_function(stump, np.diff(X)))
chain = pb.fit_adaboost(X, y, n_estimators=5, weak_learner=weak)
more = pb.continue_fit(chain, X, y, n_estimators=3)
assert (pb.decision_function(more, X)
        == pb.decision_function(pb.fit_adaboost(X, y, n_estimators=8, weak_learner=weak), X)).all()
gaussian = pb.observation.gaussian(0.1)
soft = pb.fit_boosted_tree(X, y, max_nodes=3, weak_learner=weak, observation=gaussian)
kept(soft)
assert "differences" in KINDS["weak_learner"]
"""
    use(tmp_path, code)


@pytest.mark.full
def test_an_option_is_one_file(tmp_path):
    assert len(changed_copy(tmp_path, "option")) == 1
    code = """
import inspect
from pboost.sklearn import CartClassifier
for fit in (pb.fit_cart, pb.fit_random_forest):
    assert inspect.signature(fit).parameters["min_share"].default == 0.0
    assert "Minimum share of the training rows in a leaf" in fit.__doc__
    for share in (0.7, -0.1):
        try:
            fit(X, y, min_share=share)
        except ValueError as error:
            assert "min_share" in str(error)
        else:
            raise AssertionError(share)
tree = pb.fit_cart(X, y, min_share=0.1)
kept(tree)
assert tree.settings["min_share"] == 0.1
assert tree.n_rows[tree.feature < 0].min() >= 30
assert pb.fit_cart(X, y).n_rows.min() < 30
same = CartClassifier(min_share=0.1).fit(X, y)
assert (same.predict(X) == pb.predict(tree, X)).all()
kept(pb.fit_random_forest(X, y, n_estimators=3, min_share=0.2, rng=0))
"""
    use(tmp_path, code)


@pytest.mark.full
@pytest.mark.build
def test_a_criterion_is_two_files(tmp_path):
    """One in the kernels, which are built anew, and one in Python."""
    pytest.importorskip("setuptools")
    names = changed_copy(tmp_path, "criterion")
    assert len(names) <= 2
    build(tmp_path, names)
    code = """
weak = pb.weak.stump("tsallis")
model = pb.fit_boosted_tree(X, y, max_nodes=15, weak_learner=weak)
kept(model)

def impurity(share):
    return (1 - share**1.5 - (1 - share) ** 1.5) / (1 - 2 * 0.5**1.5)

same = pb.fit_topdown_tree(X, y, max_nodes=15, impurity=impurity)
named = pb.fit_topdown_tree(X, y, max_nodes=15, impurity="tsallis")
assert (named.feature == same.feature).all() and (named.threshold == same.threshold).all()
chain = pb.fit_adaboost(X, y, n_estimators=5, weak_learner=pb.weak.stump("tsallis", "binned"))
kept(chain)
three = np.digitize(X[:, 0] + X[:, 3], (-1.0, 1.0))
tree = pb.fit_cart(X, three, criterion="tsallis", max_depth=3)
kept(tree)

def scored(column, threshold):
    total = 0.0
    for side in (column <= threshold, column > threshold):
        share = np.bincount(three[side], minlength=3) / max(side.sum(), 1)
        total += side.mean() * (1 - (share**1.5).sum())
    return total

best = min(scored(X[:, j], t) for j in range(4) for t in X[:, j])
assert np.isclose(scored(X[:, tree.feature[0]], tree.threshold[0]), best, rtol=1e-12)
assert np.isclose(tree.impurity[0], 1 - (np.bincount(three) / 300) ** 1.5 @ np.ones(3))
"""
    use(tmp_path, code)


@pytest.mark.full
@pytest.mark.build
def test_a_loss_is_two_files(tmp_path):
    """Its own, and the kernel's, which is built anew."""
    pytest.importorskip("setuptools")
    names = changed_copy(tmp_path, "loss")
    assert len(names) <= 2
    build(tmp_path, names)
    code = """
import functools, typing
from pboost._core import boost
from pboost.losses import LossName
assert "pseudo_huber" in str(LossName) and "pseudo_huber" in boost.LOSSES
target = X[:, 0] * X[:, 1] + rng.standard_t(2, 300)

class Own(pb.losses.Loss):
    name, is_regression, is_newton = "own", True, True
    value, gradient = pb.losses.PseudoHuber.value, pb.losses.PseudoHuber.gradient
    curvature, limit = pb.losses.PseudoHuber.curvature, pb.losses.PseudoHuber.limit

options = {"n_estimators": 20, "leaf_shrinkage": 0.0, "max_depth": 3, "growth": "independent"}
model = pb.fit_gradient_boosting(X, target, loss="pseudo_huber", **options)
same = pb.fit_gradient_boosting(X, target, loss=Own(), **options)
assert (model.trees.feature == same.trees.feature).mean() > 0.9
assert np.allclose(model.training_loss, same.training_loss, rtol=1e-6)
assert (np.diff(model.training_loss) < 0).all()
path = os.path.join(sys.argv[1], "model.npz")
pb.save(model, path)
assert (pb.predict(pb.load(path), X) == pb.predict(model, X)).all()
assert pb.models.as_tree_ensemble(model).link == "identity"
pb.export.to_c(model, os.path.join(sys.argv[1], "model.c"))
fit = functools.partial(pb.fit_gradient_boosting, loss="pseudo_huber", n_estimators=5)
assert pb.cross_validate(fit, X, target, cv=3, rng=0).task == "regression"
try:
    pb.losses.check_loss("pseudohuber")
except ValueError as error:
    assert str(error).endswith("did you mean 'pseudo_huber'?")
"""
    use(tmp_path, code)


@pytest.mark.full
def test_a_kind_of_model_is_four_files(tmp_path):
    assert len(changed_copy(tmp_path, "model")) <= 4
    code = """
X = np.diff(X)
model = pb.fit_normal(X, y)
kept(model)
assert (pb.predict(model, X) == y).mean() > 0.8
assert "fit_normal" in pb.describe(model)
assert (pb.prediction_cost(model, X) == 3).all()
assert pb.cross_validate(pb.fit_normal, X, y, cv=3, rng=0).error.mean() < 0.4
bag = pb.fit_bagging(pb.fit_normal, X, y, n_estimators=3, rng=0)
kept(bag)
for ask in (pb.certificate, lambda it: pb.explain(it, X[0]), lambda it: pb.models.truncate(it, 1)):
    try:
        ask(model)
    except (TypeError, NotImplementedError) as error:
        assert "NormalModel" in str(error)
    else:
        raise AssertionError(ask)
try:
    pb.models.NormalModel(0.0, [1.0], ["a", "b"], 2, None, {})
except ValueError as error:
    assert str(error) == "slopes: expected shape (2,), got (1,)"
"""
    use(tmp_path, code)
