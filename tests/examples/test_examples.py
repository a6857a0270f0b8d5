"""The comparison of models at equal budgets: its numbers are those of the models it names."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pboost as pb

pytestmark = pytest.mark.full

SCRIPT = Path(__file__).parents[2] / "examples" / "accuracy_per_comparison.py"


@pytest.fixture(scope="module")
def example():
    if not SCRIPT.exists():
        pytest.skip("no examples/ beside tests/")
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[SCRIPT.stem] = module  # where its dataclasses look for their annotations
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPT.parent))
    yield module
    del sys.modules[SCRIPT.stem]


def write(folder, name, X, y, names=None):
    path = folder / f"{name}.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow([*(names or (f"x{j}" for j in range(len(X[0])))), "target"])
        lines.writerows([*row, label] for row, label in zip(X, y, strict=True))
    return path


def ring(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(3)
    y = (X**2).sum(axis=1) + rng.normal(size=n) > 3
    return X, np.where(y, "out", "in")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three sets that are used, of which the quick run takes two, and all kinds that are not."""
    folder = tmp_path_factory.mktemp("data")
    for name, n in {"small": 90, "middle": 120, "large": 150}.items():
        write(folder, name, *ring(n, n))
    X, y = ring(60, 0)
    write(folder, "three_labels", X, [*y[:-9], *["other"] * 9])
    write(folder, "one_label", X, ["in"] * 60)
    write(folder, "rare_label", X, ["in"] * 58 + ["out"] * 2)
    write(folder, "categories", X, y, ["x0", "x1__cat", "x2"])
    write(folder, "words", [[*row[:2], "red"] for row in X], y)
    write(folder, "missing", [["", *row[1:]] for row in X], y)
    write(folder, "not_finite", [["inf", *row[1:]] for row in X], y)
    return folder


def parsed(text):
    """Return {title: {model: [cells]}}."""
    actual = {}
    for part in text.split(".. table:: ")[1:]:
        title, *lines = part.strip().splitlines()
        rows = [re.split(r"\s{2,}", line.strip()) for line in lines if line.strip()]
        assert len({tuple(row) for row in rows if row[0].startswith("==")}) == 1
        actual[title] = {row[0]: row[1:] for row in rows if not row[0].startswith("==")}
    return actual


@pytest.fixture(scope="module")
def quick(example, folder):
    """The sets, the outcomes and the tables of a quick run."""
    sets = example.data_sets(folder, quick=True)
    compared = example.models(example.QUICK_MOST_NODES)
    results = [example.compare(data, compared) for data in sets]
    return sets, results, parsed(example.tables(sets, results))


def test_sets_of_the_kind_used_are_found(example, folder, quick):
    assert [data.name for data in quick[0]] == ["small", "middle"]
    assert all(data.test_fold.max() + 1 == example.QUICK_FOLDS for data in quick[0])
    every = example.data_sets(folder, quick=False)
    assert [data.name for data in every] == ["small", "middle", "large"]
    X, y = ring(90, 90)
    assert np.array_equal(every[0].X, X)
    assert np.array_equal(every[0].y, y == "out")


def test_sets_are_cut_to_so_many_rows(example, folder, monkeypatch):
    monkeypatch.setattr(example, "MOST_ROWS", 50)
    cut = example.read(folder / "large.csv.gz", 3)
    full = [tuple(row) for row in ring(150, 150)[0]]
    at = [full.index(tuple(row)) for row in cut.X]
    assert len(at) == 50
    assert at == sorted(set(at))
    assert np.array_equal(cut.X, example.read(folder / "large.csv.gz", 3).X)


def test_costs_are_within_budget_in_training_and_near_it_in_test(example, quick):
    budgets = np.array(example.BUDGETS)[:, None]
    for of in quick[1]:
        for values in of.values():
            error, cost, training_cost = np.moveaxis(values, 2, 0)
            assert (training_cost <= budgets).all()
            assert (training_cost >= 1).all()
            assert (np.diff(training_cost, axis=0) >= 0).all()
            assert (np.abs(cost / training_cost - 1) < 0.3).all()
            assert ((error >= 0) & (error <= 1)).all()


def test_a_chain_uses_its_budget_and_a_tree_cannot(example, quick):
    for of in quick[1]:
        assert np.array_equal(of["AdaBoost"][..., 1], np.repeat([example.BUDGETS], 3, axis=0).T)
        assert (of["tree"][-1, :, 2] < 20).all()
        assert np.array_equal(of["tree"][-1], of["tree"][-2])
        # One link more, of four nodes at most, would exceed the budget.
        assert (of["chain of 4"][..., 2] > np.array(example.BUDGETS)[:, None] - 4).all()


def test_outcomes_are_those_of_models_fitted_apart(example, quick):
    """Errors and costs by cross-validation, with sizes that need no choice."""
    sets, results, _ = quick
    data, of = sets[0], results[0]
    for k, rounds in enumerate(example.BUDGETS):
        apart = pb.cross_validate(
            partial(pb.fit_adaboost, n_estimators=rounds),
            data.X,
            data.y,
            cv=3,
            rng=example.SEED,
        )
        assert np.allclose(of["AdaBoost"][k, :, 0], apart.error)
    apart = pb.cross_validate(
        lambda X, y: pb.fit_boosted_tree(X, y, max_nodes=example.QUICK_MOST_NODES),
        data.X,
        data.y,
        cv=3,
        rng=example.SEED,
    )
    assert np.allclose(of["tree"][-1, :, 0], apart.error)
    assert np.allclose(of["tree"][-1, :, 1], apart.cost)


@pytest.mark.parametrize("name", ["soft tree", "4,4,… by sign"])
def test_the_largest_size_within_budget_is_chosen(example, quick, name):
    data, of = quick[0][0], quick[1][0]
    train = data.test_fold != 0
    X, y = data.X[train], data.y[train]
    options = {"observation": pb.observation.adatree2()}
    if name == "soft tree":
        fit, options["max_nodes"] = pb.fit_boosted_tree, example.QUICK_MOST_NODES
    else:
        fit, options["shape"], options["collect"] = pb.fit_matryoshka, (4, 4, 4, 4, 4), "sign"

    def of_size(size):
        model = fit(X, y, **options, callback=lambda step, _: step >= size)
        return model, pb.prediction_cost(model, X).mean()

    budget = example.BUDGETS[0]
    size = next(k for k in range(1, 400) if of_size(k + 1)[1] > budget)
    model, cost = of_size(size)
    wrong = pb.predict(model, data.X[~train]) != data.y[~train]
    assert np.allclose(of[name][0, 0, [0, 2]], [wrong.mean(), cost])


def test_cost_of_first_nodes(example):
    X, y = ring(2100, 1)  # more rows than a block has
    model = pb.fit_matryoshka(X, y, shape=(3, 4), observation=pb.observation.adatree2())
    costs = example.cost_of_first_nodes(model, X)
    assert costs[0] == 1
    assert np.isclose(costs[-1], pb.prediction_cost(model, X).mean())
    assert not np.allclose(costs, model.record.cost[1:])
    exact = pb.fit_boosted_tree(X, y, max_nodes=20)
    assert np.allclose(example.cost_of_first_nodes(exact, X), exact.record.cost[1:])


def test_path_lengths(example):
    text = "0:[f0<1] yes=1,no=2,missing=2\n\t1:leaf=0.5\n\t2:[f1<0] yes=3,no=4,missing=4\n"
    text += "\t\t3:leaf=-1e-05\n\t\t4:leaf=2\n"
    assert example.path_lengths(text)[[1, 3, 4]].tolist() == [1, 2, 2]
    assert example.path_lengths("0:leaf=0.1\n").tolist() == [0]


def test_xgboost_with_stumps_has_as_many_rounds_as_comparisons(example, quick):
    xgboost = pytest.importorskip("xgboost")
    for data, results in zip(*quick[:2], strict=True):
        of = results["xgboost, depth 1"]
        assert np.array_equal(of[..., 1], np.repeat([example.BUDGETS], 3, axis=0).T)
        for k, rounds in enumerate(example.BUDGETS):
            model = xgboost.XGBClassifier(max_depth=1, n_estimators=rounds, n_jobs=1)
            for fold in range(3):
                test = data.test_fold == fold
                model.fit(data.X[~test], data.y[~test])
                wrong = model.predict(data.X[test]) != data.y[test]
                assert np.isclose(of[k, fold, 0], wrong.mean())


def test_comparisons_of_xgboost_with_trees(example, quick):
    xgboost = pytest.importorskip("xgboost")
    data, of = quick[0][0], quick[1][0]["xgboost, depth 3"]
    train = data.test_fold != 0
    model = xgboost.XGBClassifier(max_depth=3, n_estimators=200, n_jobs=1, random_state=0)
    model.fit(data.X[train], data.y[train])
    # Splits above a leaf: of all, those whose rows include it.
    frame = model.get_booster().trees_to_dataframe()
    parent = {}
    for node in frame[frame.Feature != "Leaf"].itertuples():
        parent[node.Yes] = parent[node.No] = node.ID
    leaves = model.apply(data.X[train]).astype(int)
    spent = np.zeros(len(leaves))
    for tree in range(leaves.shape[1]):
        before = spent.copy()
        for row, leaf in enumerate(leaves[:, tree]):
            node = f"{tree}-{leaf}"
            while node in parent:
                spent[row], node = spent[row] + 1, parent[node]
        if spent.mean() > example.BUDGETS[0]:
            break
    assert np.isclose(of[0, 0, 2], before.mean())
    wrong = model.predict(data.X[~train], iteration_range=(0, tree)) != data.y[~train]
    assert np.isclose(of[0, 0, 0], wrong.mean())


def test_tables_have_the_outcomes(example, quick):
    sets, results, actual = quick
    everything, ranks, versus, *of_sets = actual.values()
    assert list(actual)[3:] == [data.title for data in sets]
    assert sets[0].title.startswith("small: 90 rows, 3 columns, ")
    for cells, of in zip(of_sets, results, strict=True):
        assert list(cells) == ["model", *of]
        for name, values in of.items():
            means = values.mean(axis=1)
            assert cells[name] == [f"{100 * e:.1f} ({c:.1f})" for e, c, _ in means]
    for name, cells in everything.items():
        if name != "model":
            shown = [float(cell.split()[0]) for cell in cells]
            both = [100 * of[name][..., 0].mean(axis=1) for of in results]
            assert np.allclose(shown, np.mean(both, axis=0), atol=0.051)
    names = list(results[0])
    for k in range(len(example.BUDGETS)):
        shown = [float(ranks[name][k].split()[0]) for name in names]
        # Ranks of m models add up to m (m + 1) / 2, ties or not.
        assert np.isclose(np.mean(shown), (len(names) + 1) / 2, atol=0.051)
        assert sum(int(ranks[name][k].split("(")[1][:-1]) for name in names) >= len(sets)
    assert set(versus) == {"model", *names} - {"AdaBoost"}
    for cells in list(versus.values())[1:]:
        for cell in cells:
            better, worse, clearly_better, clearly_worse = map(int, re.findall(r"\d+", cell))
            assert better + worse <= len(sets)
            assert clearly_better <= better
            assert clearly_worse <= worse


def test_summaries_of_made_up_outcomes(example):
    """Four folds of two sets: a model that is better by as much in every fold, and one equal."""
    base = np.full((4, 4, 3), 0.3)
    better = base - [0.1, 0, 0]
    worse = base + np.array([0.3, -0.2, 0.1, -0.1])[None, :, None]
    of = {"AdaBoost": base, "better": better, "worse": worse, "equal": base}
    assert example.against_baseline([of, of]) == {
        "better": ["2 : 0 (2 : 0)"] * 4,
        "worse": ["0 : 2 (0 : 0)"] * 4,
        "equal": ["0 : 0 (0 : 0)"] * 4,
    }
    assert example.ranks_and_wins([of, of]) == {
        "AdaBoost": ["2.5 (0)"] * 4,
        "better": ["1.0 (2)"] * 4,
        "worse": ["4.0 (0)"] * 4,
        "equal": ["2.5 (0)"] * 4,
    }


def test_command(example, folder, tmp_path, monkeypatch, capsys):
    few = {name: example.models(8)[name] for name in ("AdaBoost", "tree")}
    monkeypatch.setattr(example, "models", lambda most_nodes: few)
    monkeypatch.setenv("PBOOST_DATA", str(folder))
    path = tmp_path / "table.rst"
    example.main(["--quick", "--rst", str(path)])
    printed = capsys.readouterr()
    assert list(parsed(printed.out)["All 2 sets: mean error (mean cost)"]) == ["model", *few]
    written = path.read_text(encoding="utf-8")
    assert written.split(".. tables start here\n\n")[1] == printed.out.removesuffix("\n")
    assert [line.split(":")[0] for line in printed.err.splitlines()] == ["small", "middle"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no data: give --data FOLDER or set PBOOST_DATA"),
        (["--data", "nowhere"], "no data: nowhere is not a folder"),
        (["--data", "."], r"no data: \. has no .csv.gz file of two classes"),
        (["--data", ".", "--rst", "nowhere/table.rst"], "--rst: nowhere is not a folder"),
    ],
)
def test_what_is_missing_is_said(example, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PBOOST_DATA", raising=False)
    with pytest.raises(SystemExit) as stopped:
        example.main(arguments)
    assert stopped.value.code == 2
    printed = capsys.readouterr()
    assert re.search(message, printed.err)
    assert not printed.out
