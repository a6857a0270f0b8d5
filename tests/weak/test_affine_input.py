"""Affine weak classifiers: what is refused, names, model files, pickles and the command line."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from command_line import assert_one_line, frame
from compare import assert_identical
from model_files import assert_same, forge, forge_column, header_of, members_of, tree, zip_up

import pboost as pb
from pboost.data.node_inputs.sums import PROJECTION_MEMBERS, Projections
from pboost.models import ModelFileError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.where(X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=80) > 0, 1, -1)
for array in (X, Y):
    array.setflags(write=False)
WEAK = pb.weak.affine(n_directions=30)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def sums(start=(0, 1, 3, 5), index=(2, 0, 3, 1, 2), coefficient=(1.0, -0.5, 2.0, 1e-300, -1e300)):
    return Projections(start, index, coefficient)


def affine_tree(**changes):
    return tree(feature=[0, 2, 1], inputs=sums(**changes))


# Options and data


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_directions": 0}, ValueError),
        ({"n_directions": 2.0}, TypeError),
        ({"n_directions": True}, TypeError),
        ({"n_terms": 1}, ValueError),
        ({"n_terms": None}, TypeError),
        ({"seed": -1}, ValueError),
        ({"seed": None}, TypeError),
        ({"criterion": "mean"}, ValueError),
        ({"search": "all"}, ValueError),
        ({"max_bins": 1}, ValueError),
        ({"min_weight_fraction": 0.6}, ValueError),
        ({"min_samples_leaf": 0}, ValueError),
    ],
)
def test_bad_options_are_named(options, error):
    (name,) = options
    with pytest.raises(error, match=f"^{name}: expected"):
        pb.weak.affine(**options)


def test_binned_columns_are_refused():
    binned = pb.data.bin_columns(X)
    for fit, size in ((pb.fit_adaboost, "n_estimators"), (pb.fit_boosted_tree, "max_nodes")):
        with pytest.raises(ValueError, match=r"^X: expected .*, got BinnedColumns"):
            fit(binned, Y, weak_learner=WEAK, **{size: 3})


def test_sums_that_are_not_finite_are_refused():
    huge = np.where(X[:, :2] > 0, 1.7e308, -1.7e308)
    for search in ("exact", "binned"):
        with pytest.raises(ValueError, match=r"^X: expected numbers with finite sums"):
            pb.fit_boosted_tree(huge, Y, max_nodes=3, weak_learner=pb.weak.affine(search=search))
    model = pb.fit_boosted_tree(huge / 2, Y, max_nodes=3, weak_learner=pb.weak.affine())
    assert model.n_nodes == 3


def test_rows_that_are_not_finite_are_refused_at_prediction():
    model = pb.fit_boosted_tree(X, Y, max_nodes=1, weak_learner=WEAK)
    for column in range(3):
        bad = X.copy()
        bad[7, column] = np.inf
        calls = (
            pb.decision_function,
            pb.prediction_cost,
            pb.inspection.reach,
            pb.staged_decision_function,
        )
        for call in calls:
            for rows in (bad, bad[5:8]):
                with pytest.raises(ValueError, match="X: expected finite numbers, got inf"):
                    call(model, rows)


def test_auto_search_counts_directions():
    assert WEAK.resolve_search(3_000_000) == "exact"
    assert WEAK.resolve_search(4_000_000) == "binned"
    assert pb.weak.affine(search="exact").resolve_search(10**9) == "exact"


def test_settings_are_those_given():
    weak = pb.weak.affine("gini", "binned", n_directions=9, n_terms=3, seed=5, max_bins=8)
    model = pb.fit_adaboost(X, Y, n_estimators=2, weak_learner=weak)
    assert model.settings["weak_learner"] == {
        "kind": "affine",
        "criterion": "gini",
        "search": "binned",
        "max_bins": 8,
        "min_weight_fraction": 0.0,
        "min_samples_leaf": 1,
        "n_directions": 9,
        "n_terms": 3,
        "seed": 5,
    }


def test_a_callback_sees_nodes():
    seen = []
    model = pb.fit_adaboost(
        X, Y, n_estimators=4, weak_learner=WEAK, callback=lambda n, r: seen.append(r)
    )
    np.testing.assert_array_equal([record.threshold for record in seen], model.threshold)


def test_model_without_nodes():
    model = pb.fit_adaboost(np.ones((4, 3)), [0, 0, 0, 1], n_estimators=3, weak_learner=WEAK)
    assert model.n_nodes == 0
    assert pb.predict(model, np.ones((2, 3))).tolist() == [0, 0]
    assert pb.prediction_cost(model, np.ones((20, 3)), "features").tolist() == [0] * 20


# Names


def test_sums_are_written_out():
    columns = ("a", "b", "c", "d")
    assert sums().names(columns) == ("c", "-0.5*a + 2*d", "1e-300*b - 1e+300*c")
    assert Projections([0, 2], [1, 0], [-1, 1]).names(columns) == ("-b + a",)
    model = pb.fit_boosted_tree(
        X[:, :2], Y, max_nodes=1, weak_learner=pb.weak.affine(n_directions=4)
    )
    text = pb.describe(model).splitlines()[-1]
    assert text.startswith("node 0: -0.7071*x[0] + 0.7071*x[1] <= ")
    explanation = pb.explain(model, [3.0, 1.0])
    assert explanation.tests[0].name == "-0.7071*x[0] + 0.7071*x[1]"
    np.testing.assert_allclose(explanation.tests[0].value, -np.sqrt(2))


def test_frames_are_put_in_order():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = pb.fit_boosted_tree(table, Y, max_nodes=6, weak_learner=WEAK)
    assert model.feature_names == ("a", "b", "c")
    assert "*b" in pb.describe(model)
    score = pb.decision_function(model, X)
    np.testing.assert_array_equal(pb.decision_function(model, table[["c", "a", "b"]]), score)
    np.testing.assert_array_equal(
        pb.inspection.reach(model, table[["c", "a", "b"]]), pb.inspection.reach(model, X)
    )


# Pickles and files


def test_pickle():
    model = affine_tree()
    assert_same(model, pickle.loads(pickle.dumps(model)))


def test_file_gives_the_model_back(path):
    for model in (
        affine_tree(),
        pb.fit_boosted_tree(X, Y, max_nodes=9, weak_learner=WEAK),
        pb.fit_matryoshka(
            X, Y, shape=(2, 2), weak_learner=WEAK, observation=pb.observation.adatree2()
        ),
    ):
        pb.save(model, path)
        loaded = pb.load(path)
        assert_same(model, loaded)
        rows = RNG.normal(size=(30, model.n_features))
        np.testing.assert_array_equal(
            pb.decision_function(loaded, rows), pb.decision_function(model, rows)
        )


def test_model_of_columns_has_no_projections(path):
    pb.save(tree(), path)
    assert not {f"{name}.npy" for name in PROJECTION_MEMBERS} & set(members_of(path))


BAD = [
    ("start", [0, 1, 3, 6], r"start: expected increasing numbers from 0 to 5"),
    ("start", [1, 2, 3, 5], r"start: expected increasing numbers"),
    ("start", [0, 3, 3, 5], r"start: expected increasing numbers"),
    ("start", [0, 9, 3, 5], r"start: expected increasing numbers"),
    ("start", [0, 5], r"feature: expected values in \[0, 1\)"),
    ("start", [[0, 1, 3, 5]], r"projections: expected start"),
    ("start", [], r"projections: expected start"),
    ("index", [2, 0, 4, 1, 2], r"index: expected values in \[0, 4\)"),
    ("index", [2, 0, -1, 1, 2], r"index: expected values in \[0, 4\)"),
    ("index", [2, 0, 3], r"projections: expected start"),
    ("coefficient", [1, 1, 1, 1, np.nan], r"coefficient: expected finite"),
    ("coefficient", [1, 1, 1, 1, np.inf], r"coefficient: expected finite"),
    ("coefficient", [1.0], r"projections: expected start"),
]


@pytest.mark.parametrize(("name", "array", "message"), BAD)
def test_wrong_projections_are_refused(path, name, array, message):
    with pytest.raises(ValueError, match=message):
        affine_tree(**{name: array})
    pb.save(affine_tree(), path)
    members = members_of(path)
    dtype = np.load(io.BytesIO(members[f"projection_{name}.npy"])).dtype
    zip_up(path, forge_column(members, f"projection_{name}", np.asarray(array, dtype=dtype)))
    with pytest.raises(ModelFileError, match=f"not a valid model: .*{message}"):
        pb.load(path)


@pytest.mark.parametrize("name", PROJECTION_MEMBERS)
def test_damaged_projections_are_noticed(path, name):
    pb.save(affine_tree(), path)
    members = members_of(path)
    content = members[f"{name}.npy"]
    zip_up(path, {**members, f"{name}.npy": content[:-1] + bytes([content[-1] ^ 1])})
    with pytest.raises(ModelFileError, match=f"column '{name}' was changed"):
        pb.load(path)
    zip_up(path, forge_column(members, name, np.zeros(4, np.float32)))
    with pytest.raises(ModelFileError, match=f"column '{name}': unexpected dtype"):
        pb.load(path)
    zip_up(path, {key: value for key, value in members.items() if key != f"{name}.npy"})
    with pytest.raises(ModelFileError, match=f"'{name}.npy' is missing"):
        pb.load(path)
    columns = header_of(members)["columns"]
    columns.pop(name)
    rest = {key: value for key, value in members.items() if key != f"{name}.npy"}
    zip_up(path, forge(rest, columns=columns))
    with pytest.raises(ModelFileError, match="expected all or none of the arrays projection_start"):
        pb.load(path)


# The command line


def test_options_of_the_command_line(csv_file, pboost_main):
    output = csv_file.parent / "model.npz"
    flags = (
        "--weak-learner affine --n-directions 20 --n-terms 3 --criterion gini --seed 4 "
        "--n-estimators 5"
    )
    arguments = ("fit", csv_file, "--target", "state", "-o", output, *flags.split())
    code, _, err = pboost_main(*arguments)
    assert (code, err) == (0, "")
    weak = pb.weak.affine("gini", n_directions=20, n_terms=3, seed=4)
    expected = pb.fit_adaboost(
        frame().drop(columns="state"), frame()["state"], n_estimators=5, weak_learner=weak
    )
    assert_identical(pb.load(output), expected)
    assert_same(pb.load(output), expected)


def test_directions_belong_to_affine(csv_file, pboost_main):
    for flag in ("--n-directions", "--n-terms"):
        arguments = ("fit", csv_file, "--target", "state", "-o", "x.npz", flag, 5)
        code, out, err = pboost_main(*arguments)
        assert (code, out) == (2, "")
        assert_one_line(err, f"{flag} requires --weak-learner affine, got stump")
