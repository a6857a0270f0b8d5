"""Data frames were converted once for each member of an ensemble, in fits and in predictions.

A frame is read once, whatever the number of members, and what is found is that of the array.
"""

from functools import partial

import numpy as np
import pytest

import pboost as pb

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
NAMES = ["a", "b", "c"]
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + X[:, 1] > 0
Y3 = np.digitize(X[:, 0], [-0.5, 0.5])
SHUFFLED = [2, 0, 1]


class Frame:
    """A data frame that counts how often a column is taken out, alone or with all others."""

    def __init__(self, frame, whole=None):
        self.frame, self.taken = frame, 0
        self.whole = self if whole is None else whole

    @property
    def columns(self):
        return self.frame.columns

    @property
    def dtypes(self):
        return self.frame.dtypes

    @property
    def iloc(self):
        return self

    def __len__(self):
        return len(self.frame)

    def to_numpy(self):
        self.whole.taken += self.frame.shape[1]
        return self.frame.to_numpy()

    def __getitem__(self, key):
        if isinstance(key, tuple):
            self.whole.taken += 1
            return self.frame.iloc[key]
        return Frame(self.frame.iloc[key], self.whole)  # what is taken out of rows counts, too


#: Types of columns: floats of one type are read as a matrix, others column by column.
TYPES = {"matrix": {}, "columns": {"b": "Float64"}}
ways = pytest.mark.parametrize("types", TYPES.values(), ids=TYPES)


def frame(order=None, types=TYPES["columns"]):
    table = pd.DataFrame(X, columns=NAMES).astype(types)
    return Frame(table if order is None else table.iloc[:, order])


def own(X, y, sample_weight=None):
    """A builder of the user's own."""
    return pb.fit_cart(X, y, sample_weight=sample_weight, max_depth=2)


STUMPS = partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=2)
ENSEMBLES = {
    "bagging": lambda X: pb.fit_bagging(
        pb.fit_boosted_tree, X, Y, n_estimators=8, max_nodes=3, rng=0
    ),
    "bagging, probit": lambda X: pb.fit_bagging(
        pb.fit_probitboost, X, Y, n_estimators=8, max_iter=2, rng=0
    ),
    "bagging, affine": lambda X: pb.fit_bagging(
        partial(pb.fit_adaboost, n_estimators=2),
        X,
        Y,
        n_estimators=8,
        weak_learner=pb.weak.affine(seed=0),
        rng=0,
    ),
    "bagging, own": lambda X: pb.fit_bagging(own, X, Y, n_estimators=8, rng=0),
    "bagging, threads": lambda X: pb.fit_bagging(own, X, Y, n_estimators=8, rng=0, n_threads=2),
    "rest": lambda X: pb.fit_one_vs_rest(pb.fit_adaboost, X, Y3, n_estimators=3),
    "rest, cart": lambda X: pb.fit_one_vs_rest(pb.fit_cart, X, Y3, search="binned"),
    "rest, probit": lambda X: pb.fit_one_vs_rest(pb.fit_probitboost, X, Y3, max_iter=2),
    "samme": lambda X: pb.fit_samme(X, Y3, base_learner=STUMPS, n_estimators=4),
    "samme, own": lambda X: pb.fit_samme(X, Y3, base_learner=own, n_estimators=4),
    "samme of bagging": lambda X: pb.fit_samme(
        X,
        Y3,
        base_learner=partial(pb.fit_bagging, pb.fit_cart, n_estimators=3, rng=0),
        n_estimators=3,
    ),
    "forest": lambda X: pb.fit_random_forest(X, Y, n_estimators=4, rng=0),
    "sbpmt": lambda X: pb.fit_sbpmt(X, Y, n_estimators=3, n_boosting_rounds=2, max_iter=2, rng=0),
}
OF_USERS = {"bagging, own", "bagging, threads", "samme, own"}
FUNCTIONS = {
    "predict": pb.predict,
    "predict_proba": pb.predict_proba,
    "decision_function": pb.decision_function,
    "prediction_cost": pb.prediction_cost,
}
kinds = pytest.mark.parametrize("kind", ENSEMBLES)


@kinds
@ways
def test_fits(kind, types):
    table = frame(types=types)
    model = ENSEMBLES[kind](table)
    if kind not in OF_USERS:  # functions of the user are given the frame itself
        assert table.taken == len(NAMES)
    assert model.feature_names == tuple(NAMES)
    expected = ENSEMBLES[kind](X)
    np.testing.assert_array_equal(pb.predict_proba(model, X), pb.predict_proba(expected, X))
    if hasattr(expected, "oob"):
        np.testing.assert_array_equal(model.oob.prediction, expected.oob.prediction)


@kinds
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("order", [None, SHUFFLED], ids=["as in training", "shuffled"])
@ways
def test_functions_of_a_model(kind, function, order, types):
    model = ENSEMBLES[kind](pd.DataFrame(X, columns=NAMES))
    table = frame(order, types)
    actual = FUNCTIONS[function](model, table)
    assert table.taken == len(NAMES)
    np.testing.assert_array_equal(actual, FUNCTIONS[function](model, X))


@pytest.mark.parametrize("kind", ["bagging", "rest", "samme", "samme, own", "forest"])
def test_categories_and_holes(kind):
    table = pd.DataFrame(X, columns=NAMES)
    table["b"] = pd.cut(table["b"], [-9, -1, 0, 1, 9], labels=list("stuv")).astype(object)
    table["c"] = pd.Categorical(np.where(X[:, 2] > 0, "up", "down"))
    table.loc[4, ["a", "b"]] = None
    given = Frame(table)
    model, expected = ENSEMBLES[kind](given), ENSEMBLES[kind](table)
    if kind not in OF_USERS:
        assert given.taken == len(NAMES)
    probability = pb.predict_proba(expected, table)
    np.testing.assert_array_equal(pb.predict_proba(model, table), probability)
    given = Frame(table.iloc[:, SHUFFLED])
    np.testing.assert_array_equal(pb.predict_proba(expected, given), probability)
    assert given.taken == len(NAMES)


@pytest.mark.parametrize("kind", ["samme", "samme, own"])
@ways
def test_stages(kind, types):
    model = ENSEMBLES[kind](pd.DataFrame(X, columns=NAMES))
    table = frame(types=types)
    stages = pb.staged_predict(model, table)
    list(stages)
    assert table.taken == len(NAMES)


@ways
def test_certificate_folds_and_importance(types):
    model = pb.fit_boosted_tree(X, Y, max_nodes=3)
    table = frame(types=types)
    assert pb.certificate(model, table, Y) == pb.certificate(model, X, Y)
    assert table.taken == len(NAMES)
    table = frame(types=types)
    pb.cross_validate(partial(pb.fit_boosted_tree, max_nodes=3), table, Y, cv=4, rng=0)
    assert table.taken == 2 * 4 * len(NAMES)  # training rows and test rows of each fold
    bagging = ENSEMBLES["bagging"](X)
    table = frame(types=types)
    pb.inspection.permutation_importance(bagging, table, Y, n_repeats=2, rng=0)
    assert table.taken == len(NAMES)


@ways
def test_validation_rows(types):
    for fit in (
        partial(pb.fit_one_vs_rest, pb.fit_boosted_tree, max_nodes=3),
        partial(pb.fit_bagging, pb.fit_boosted_tree, max_nodes=3, n_estimators=4, rng=0),
    ):
        table = frame(types=types)
        fit(pd.DataFrame(X, columns=NAMES), Y, validation=(table, Y))
        assert table.taken == len(NAMES)


def test_rows_are_read_anew_afterwards():
    table = pd.DataFrame(X, columns=NAMES)
    model = ENSEMBLES["bagging"](table)
    before = pb.predict_proba(model, table)
    table["a"] *= -1
    flipped = X * [-1, 1, 1]
    np.testing.assert_array_equal(pb.predict_proba(model, table), pb.predict_proba(model, flipped))
    assert (pb.predict_proba(model, table) != before).any()


def test_errors_are_those_of_the_rows():
    def fails(X, y, sample_weight):
        raise RuntimeError("no")

    table = pd.DataFrame(X, columns=NAMES)
    for fit in (pb.fit_bagging, pb.fit_one_vs_rest):
        with pytest.raises((RuntimeError, TypeError)):
            fit(fails, table, Y)
    bad = table.assign(b=np.inf)
    with pytest.raises(ValueError, match="finite"):
        pb.predict(ENSEMBLES["bagging"](table), bad)


def test_members_of_others_get_the_frame():
    tree = pytest.importorskip("sklearn.tree")
    table = pd.DataFrame(X, columns=NAMES)
    model = pb.fit_samme(
        table, Y3, base_learner=tree.DecisionTreeClassifier(max_depth=1), n_estimators=3
    )
    assert model.models[0].feature_names_in_.tolist() == NAMES
    assert len(pb.predict(model, table)) == len(table)


def test_steps_read_once():
    bagging = ENSEMBLES["bagging"](X)
    exits = pb.early_exit(pb.fit_adaboost(X, Y, n_estimators=4), X + 0.5, mean_comparisons=2)
    for model in (pb.fit_random_forest(X, Y, n_estimators=3, rng=0), exits, bagging):
        table = frame()
        assert len(list(model.reads(table))) < 9
        assert table.taken == len(NAMES)


def test_users_functions_are_given_what_the_caller_has():
    seen = set()

    def spy(X, y, sample_weight=None):
        seen.add(type(X))
        return own(X, y, sample_weight)

    table = pd.DataFrame(X, columns=NAMES)
    pb.fit_bagging(partial(pb.fit_bagging, spy, n_estimators=2), table, Y, n_estimators=2, rng=0)
    pb.fit_samme(table, Y3, base_learner=spy, n_estimators=2)
    assert seen == {pd.DataFrame}


@pytest.mark.parametrize("order", [None, SHUFFLED], ids=["as in training", "shuffled"])
def test_certificate_of_rows_with_errors_reads_once(order):
    sigma = np.array([0.1, 0.2, 0.7])
    observation = pb.observation.gaussian(sigma)
    model = pb.fit_adaboost(
        pd.DataFrame(X, columns=NAMES), Y, n_estimators=4, observation=observation
    )
    expected = pb.certificate(model, X, Y, sigma=sigma)
    table = frame(order)
    own_order = sigma if order is None else sigma[order]
    assert pb.certificate(model, table, Y, sigma=own_order) == expected
    assert table.taken == len(NAMES)
