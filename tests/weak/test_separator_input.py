"""Separators and oblique trees: what is refused, names, model files, pickles, the command line."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from command_line import assert_one_line, frame
from compare import assert_identical
from model_files import assert_same, forge, forge_column, header_of, members_of, tree, zip_up

import pboost as pb
from pboost.data.node_inputs.sums import SEPARATOR_MEMBERS, Projections, Separators
from pboost.models import ModelFileError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=80) > 0, 1, -1)
for array in (X, Y):
    array.setflags(write=False)
WEAK = pb.weak.separator(6)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def sums(
    start=(0, 1, 3, 5),
    feature=(2, 0, 3, 1, 1),
    threshold=(0.0, -1.0, 2.0, 1e-300, 5.0),
    vote=((1, -1),) * 5,
):
    return Separators(start, feature, threshold, vote)


def oblique_tree(**changes):
    return tree(feature=[0, 2, 1], inputs=sums(**changes))


# Options and data


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_stumps": 0}, ValueError),
        ({"n_stumps": -1}, ValueError),
        ({"n_stumps": 2.0}, TypeError),
        ({"n_stumps": None}, TypeError),
        ({"smoothing": -1e-9}, ValueError),
        ({"smoothing": np.nan}, ValueError),
        ({"learning_rate": 0}, ValueError),
        ({"votes": "real"}, ValueError),
        ({"criterion": "mean"}, ValueError),
        ({"search": "all"}, ValueError),
        ({"max_bins": 1}, ValueError),
    ],
)
def test_bad_options_are_named(options, error):
    (name,) = options
    with pytest.raises(error, match=f"^{name}: expected"):
        pb.weak.separator(**options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_stumps": 0}, ValueError),
        ({"max_nodes": 0}, ValueError),
        ({"max_nodes": 1.5}, TypeError),
        ({"max_depth": 0}, ValueError),
        ({"growth": "nested"}, ValueError),
        ({"smoothing": 2}, ValueError),
        ({"observation": "flip"}, TypeError),
        ({"n_iter_no_change": 3}, ValueError),
        ({"n_threads": 0}, ValueError),
    ],
)
def test_bad_options_of_a_tree_are_named(options, error):
    (name,) = options
    with pytest.raises(error, match=f"^{name}: expected"):
        pb.fit_oblique_tree(X, Y, **options)


def test_uncertain_answers_need_a_size():
    flip = pb.observation.flip(0.1)
    with pytest.raises(ValueError, match=r"^max_nodes: expected a number"):
        pb.fit_oblique_tree(X, Y, max_depth=None, observation=flip)
    assert pb.fit_oblique_tree(X, Y, max_depth=2, n_stumps=5, observation=flip).n_nodes == 3


def test_gaussian_answers_are_refused():
    noise = pb.observation.gaussian(0.1)
    with pytest.raises(ValueError, match=r"^observation: 'gaussian' requires features"):
        pb.fit_oblique_tree(X, Y, observation=noise)
    with pytest.raises(ValueError, match=r"^observation: 'gaussian'"):
        pb.fit_adaboost(X, Y, n_estimators=3, weak_learner=WEAK, observation=noise)


def test_binned_columns_are_refused():
    with pytest.raises(ValueError, match=r"^X: expected .* separators or linear, got Binned"):
        pb.fit_oblique_tree(pb.data.bin_columns(X), Y)


def test_exact_search_of_few_rows():
    model = pb.fit_oblique_tree(X[:2], [0, 1])
    assert model.n_nodes == 1
    assert pb.predict(model, X[:2]).tolist() == [0, 1]


@pytest.mark.parametrize("weak", [WEAK, pb.weak.linear()])
def test_models_cannot_be_continued(weak):
    model = pb.fit_boosted_tree(X, Y, max_nodes=2, weak_learner=weak)
    for more in (None, weak, pb.weak.stump(), pb.weak.affine(n_directions=30)):
        with pytest.raises(
            NotImplementedError, match=r"model: graphs of separators or linear .* cannot"
        ):
            pb.continue_fit(model, X, Y, max_nodes=1, weak_learner=more)
    stumps = pb.fit_boosted_tree(X, Y, max_nodes=2)
    with pytest.raises(NotImplementedError, match="weak_learner: expected classifiers"):
        pb.continue_fit(stumps, X, Y, max_nodes=1, weak_learner=weak)


@pytest.mark.parametrize("weak", [WEAK, pb.weak.linear()])
def test_gaussian_answers_are_refused_also_when_sampled(weak):
    gaussian = pb.observation.gaussian(0.1)
    for observation in (gaussian, pb.observation.sampled(base=gaussian)):
        with pytest.raises(ValueError, match=r"^observation: 'gaussian' requires features"):
            pb.fit_boosted_tree(X, Y, max_nodes=2, weak_learner=weak, observation=observation)


def test_rows_that_are_not_finite_are_refused_at_prediction():
    model = pb.fit_oblique_tree(X, Y)
    bad = X.copy()
    bad[7, 1] = np.inf
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


def test_standard_deviations_are_refused():
    model = pb.fit_oblique_tree(X, Y)
    with pytest.raises(ValueError, match="sigma: expected None for a model"):
        pb.decision_function(model, X, route="expected", sigma=0.1)


def test_unknown_units_of_cost():
    with pytest.raises(ValueError, match="unit: expected one of"):
        pb.prediction_cost(pb.fit_oblique_tree(X, Y), X, "separators")


def test_settings_are_those_given():
    weak = pb.weak.separator(
        5,
        smoothing=0.1,
        learning_rate=0.5,
        votes="symmetric",
        criterion="gini",
        search="binned",
        max_bins=8,
    )
    model = pb.fit_adaboost(X, Y, n_estimators=2, weak_learner=weak)
    assert model.settings["weak_learner"] == {
        "kind": "separator",
        "n_stumps": 5,
        "smoothing": 0.1,
        "learning_rate": 0.5,
        "votes": "symmetric",
        "stump": {
            "kind": "stump",
            "criterion": "gini",
            "search": "binned",
            "max_bins": 8,
            "min_weight_fraction": 0.0,
            "min_samples_leaf": 1,
            "missing": "learn",
            "categorical_smoothing": 0.0,
        },
    }


def test_a_callback_sees_nodes():
    seen = []
    model = pb.fit_oblique_tree(X, Y, callback=lambda n, record: seen.append(record))
    assert [record.threshold for record in seen] == [0.0] * model.n_nodes
    np.testing.assert_array_equal([record.votes for record in seen], model.vote)


def test_inputs_are_not_modified():
    rows, labels = X.copy(), Y.copy()
    columns = pb.data.sort_columns(rows, copy=False)
    order, codes = columns.packed_order.copy(), columns.codes.copy()
    pb.fit_oblique_tree(columns, labels)
    np.testing.assert_array_equal(columns.packed_order, order)
    np.testing.assert_array_equal(columns.codes, codes)
    np.testing.assert_array_equal(rows, X)


# Names


def test_separators_are_named_by_their_size():
    names = (
        "separator 0 (1 stump, 1 column)",
        "separator 1 (2 stumps, 2 columns)",
        "separator 2 (2 stumps, 1 column)",
    )
    assert sums().names(("a", "b", "c", "d")) == names
    model = oblique_tree()
    assert "node 1: separator 2 (2 stumps, 1 column) <= " in pb.describe(model)
    test = pb.explain(pb.fit_oblique_tree(X, Y, n_stumps=4), X[0]).tests[0]
    assert test.name.startswith("separator 0 (4 stumps, ")


def test_frames_are_put_in_order():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = pb.fit_oblique_tree(table, Y)
    assert model.feature_names == ("a", "b", "c")
    score = pb.decision_function(model, X)
    np.testing.assert_array_equal(pb.decision_function(model, table[["c", "a", "b"]]), score)


def test_cross_validation():
    result = pb.cross_validate(pb.fit_oblique_tree, X, Y, cv=4, rng=0)
    assert result.error.mean() < 0.5


# Pickles and files


def test_pickle():
    for model in (oblique_tree(), pb.fit_oblique_tree(X, Y)):
        pb.predict(model, np.zeros((20, model.n_features)))  # makes its tables
        assert_same(model, pickle.loads(pickle.dumps(model)))


def test_file_gives_the_model_back(path):
    for model in (
        oblique_tree(),
        pb.fit_oblique_tree(X, Y),
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


def test_model_of_columns_has_no_separators(path):
    pb.save(tree(), path)
    assert not {f"{name}.npy" for name in SEPARATOR_MEMBERS} & set(members_of(path))


BAD = [
    ("start", [0, 1, 3, 6], r"start: expected increasing numbers from 0 to 5"),
    ("start", [1, 2, 3, 5], r"start: expected increasing numbers"),
    ("start", [0, 3, 3, 5], r"start: expected increasing numbers"),
    ("start", [0, 5], r"feature: expected values in \[0, 1\)"),
    ("start", [[0, 1, 3, 5]], r"separators: expected start"),
    ("start", [], r"separators: expected start"),
    ("feature", [2, 0, 4, 1, 1], r"feature: expected values in \[0, 4\)"),
    ("feature", [2, 0, -1, 1, 1], r"feature: expected values in \[0, 4\)"),
    ("feature", [2, 0, 3], r"separators: expected start"),
    ("feature", 2, r"separators: expected start"),
    ("threshold", [1, 1, 1, 1, np.nan], r"threshold: expected finite"),
    ("threshold", [1.0], r"separators: expected start"),
    ("vote", [[0, 1]] * 4 + [[0, np.inf]], r"vote: expected finite"),
    ("vote", [[1e308, 0]] * 5, r"vote: expected numbers with finite sums"),
    ("vote", [0] * 5, r"vote: expected shape \(5, 2\)"),
]


@pytest.mark.parametrize(("name", "array", "message"), BAD)
def test_wrong_separators_are_refused(path, name, array, message):
    with pytest.raises(ValueError, match=message):
        oblique_tree(**{name: array})
    pb.save(oblique_tree(), path)
    members = members_of(path)
    dtype = np.load(io.BytesIO(members[f"separator_{name}.npy"])).dtype
    zip_up(path, forge_column(members, f"separator_{name}", np.asarray(array, dtype=dtype)))
    with pytest.raises(ModelFileError, match=f"not a valid model: .*{message}"):
        pb.load(path)


@pytest.mark.parametrize("name", SEPARATOR_MEMBERS)
def test_damaged_separators_are_noticed(path, name):
    pb.save(oblique_tree(), path)
    members = members_of(path)
    content = members[f"{name}.npy"]
    zip_up(path, {**members, f"{name}.npy": content[:-1] + bytes([content[-1] ^ 1])})
    with pytest.raises(ModelFileError, match=f"column '{name}' was changed"):
        pb.load(path)
    columns = header_of(members)["columns"]
    columns.pop(name)
    rest = {key: value for key, value in members.items() if key != f"{name}.npy"}
    zip_up(path, forge(rest, columns=columns))
    with pytest.raises(ModelFileError, match="expected all or none of the arrays separator_start"):
        pb.load(path)


def test_projections_beside_separators_are_refused(path):
    pb.save(oblique_tree(), path)
    members = members_of(path)
    other = Projections([0, 1, 2, 3], [0, 1, 2], [1.0, 1.0, 1.0]).members()
    for name, array in other.items():
        members = forge_column(members, name, array)
    zip_up(path, members)
    with pytest.raises(
        ModelFileError, match="expected one of projections, separators and sets, got several"
    ):
        pb.load(path)


# The command line


def test_options_of_the_command_line(csv_file, pboost_main):
    output = csv_file.parent / "model.npz"
    flags = (
        "--model boosted-tree --weak-learner separator --n-stumps 5 --criterion gini --max-nodes 4"
    )
    arguments = ("fit", csv_file, "--target", "state", "-o", output, *flags.split())
    code, _, err = pboost_main(*arguments)
    assert (code, err) == (0, "")
    weak = pb.weak.separator(5, criterion="gini")
    table = frame()
    expected = pb.fit_boosted_tree(
        table.drop(columns="state"), table["state"], max_nodes=4, weak_learner=weak
    )
    assert_identical(pb.load(output), expected)
    assert_same(pb.load(output), expected)


def test_stumps_belong_to_separators(csv_file, pboost_main):
    arguments = ("fit", csv_file, "--target", "state", "-o", "x.npz", "--n-stumps", 5)
    code, out, err = pboost_main(*arguments)
    assert (code, out) == (2, "")
    assert_one_line(err, "--n-stumps requires --weak-learner separator, got stump")


def test_linear_weak_classifiers_on_the_command_line(csv_file, pboost_main):
    output = csv_file.parent / "model.npz"
    flags = [
        "--model",
        "boosted-tree",
        "--weak-learner",
        "linear",
        "--dense-gain",
        "2",
        "--max-nodes",
        "3",
    ]
    arguments = ("fit", csv_file, "--target", "state", "-o", output, "--seed", 4, *flags)
    code, _, err = pboost_main(*arguments)
    assert (code, err) == (0, "")
    weak = pb.weak.linear(dense_gain=2, seed=4)
    table = frame()
    expected = pb.fit_boosted_tree(
        table.drop(columns="state"), table["state"], max_nodes=3, weak_learner=weak
    )
    assert_identical(pb.load(output), expected)
    code, out, err = pboost_main(*arguments, "--search", "exact")
    assert (code, out) == (2, "")
    assert_one_line(err, "--search cannot be used with --weak-learner linear")
    code, out, err = pboost_main(*arguments, "--dense-gain", "-1")
    assert (code, out) == (2, "")
    assert_one_line(err, "expected a number >= 0, got '-1'")
    arguments = ("fit", csv_file, "--target", "state", "-o", output, "--dense-gain", 2)
    code, out, err = pboost_main(*arguments)
    assert_one_line(err, "--dense-gain requires --weak-learner linear, got stump")


def test_separators_are_not_gaussian(csv_file, pboost_main):
    flags = ["--weak-learner", "separator", "--observation", "gaussian", "--sigma", "1"]
    code, out, err = pboost_main("evaluate", csv_file, "--target", "state", *flags)
    assert (code, out) == (1, "")
    assert_one_line(err, "observation: 'gaussian' requires features")
