"""Files with holes and words, as they are."""

from __future__ import annotations

import io

import numpy as np
import pytest

import pboost as pb

pd = pytest.importorskip("pandas")
N = 90


def table():
    rng = np.random.default_rng(0)
    actual = pd.DataFrame(
        {
            "age": rng.normal(50, 10, N).round(1),
            "sky": rng.choice(["clear", "rain", "snow"], N),
            "zone": rng.choice(["01", "02", "13"], N),
            "wet": rng.random(N) < 0.5,
        }
    )
    actual["y"] = np.where((actual.age > 50) ^ (actual.sky == "rain"), "yes", "no")
    actual.loc[::7, "age"] = np.nan
    actual.loc[::9, "sky"] = None
    return actual


TABLE = table()


def as_fitted(categorical_features=True):
    X = TABLE.drop(columns="y")
    if categorical_features:
        X["zone"] = X["zone"].astype("category")
    else:
        X["zone"] = X["zone"].astype(float)
    return pb.fit_boosted_tree(X, TABLE["y"].to_numpy(), max_nodes=9)


def predicted(out):
    return pd.read_csv(io.StringIO(out))


@pytest.mark.parametrize("missing", ["", "NA", "?"])
@pytest.mark.parametrize("categorical_features", [True, False])
def test_holes_and_words(tmp_path, pboost_main, missing, categorical_features):
    data, model = tmp_path / "t.csv", tmp_path / "m.npz"
    TABLE.to_csv(data, index=False, na_rep=missing)
    how = ["--missing-values", "?,-"] if missing == "?" else []
    named = ["--categorical-features", "zone"] if categorical_features else []
    given = ["--target", "y", "--model", "boosted-tree", "--max-nodes", "9", *how, *named]
    code, _, err = pboost_main("fit", data, *given, "-o", model)
    assert (code, err) == (0, "")
    expected = as_fitted(categorical_features)
    loaded = pb.load(model)
    np.testing.assert_array_equal(loaded.vote, expected.vote)
    assert loaded.table == expected.table
    code, out, err = pboost_main("predict", model, data, *how)
    assert (code, err) == (0, "")
    share = pb.predict_proba(
        expected,
        TABLE.drop(columns="y").astype({"zone": object})
        if categorical_features
        else TABLE.astype({"zone": float}).drop(columns="y"),
    )
    np.testing.assert_allclose(predicted(out)["probability_yes"], share[:, 1], rtol=1e-12)
    code, out, _ = pboost_main("show", model)
    kinds = "3 categories: 01, 02, 13" if categorical_features else "numbers"
    assert code == 0
    assert out.endswith(
        "columns:\n  age: numbers; some missing\n  sky: 3 categories: clear, rain, snow; some "
        f"missing\n  zone: {kinds}\n  wet: numbers\n"
    )


def test_words_that_look_like_numbers_in_new_rows(tmp_path, pboost_main):
    data, model = tmp_path / "t.csv", tmp_path / "m.npz"
    rows = [(f"{i % 3}{'x' * (i % 2)}", i % 2) for i in range(24)]
    data.write_text("code,y\n" + "".join(f"{code},{y}\n" for code, y in rows))
    assert pboost_main("fit", data, "--target", "y", "-o", model)[0] == 1  # half of it is numbers
    given = ["--target", "y", "--categorical-features", "code", "--n-estimators", "9"]
    assert pboost_main("fit", data, *given, "-o", model)[0] == 0
    data.write_text("code\n1\n2\n07\n")
    code, out, err = pboost_main("predict", model, data)
    assert (code, err) == (0, "")
    frame = pd.DataFrame({"code": ["1", "2", "07"]})
    assert predicted(out)["label"].tolist() == pb.predict(pb.load(model), frame).tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,y\n1,2,0\n2,oops,1\n3,4,1\n", "column 'b' is not numeric: got 'oops' in row 2"),
        ("a,b,y\n1,2,0\n2,inf,1\n", "column 'b': expected finite numbers, got infinity in row 2"),
    ],
)
def test_cells_that_cannot_be_read(tmp_path, pboost_main, text, said):
    (tmp_path / "t.csv").write_text(text)
    code, _, err = pboost_main("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.npz")
    assert code == 1
    assert said in err


def test_parquet(tmp_path, pboost_main):
    pytest.importorskip("pyarrow")
    data, model = tmp_path / "t.parquet", tmp_path / "m.npz"
    TABLE.to_parquet(data)
    given = ["--target", "y", "--model", "boosted-tree", "--max-nodes", "9"]
    assert pboost_main("fit", data, *given, "-o", model)[0] == 0
    expected = as_fitted()
    assert pb.load(model).table == expected.table
    code, out, _ = pboost_main("predict", model, data)
    assert code == 0
    answer = pb.predict(expected, TABLE.drop(columns="y")).tolist()
    assert predicted(out)["label"].tolist() == answer
    data.write_bytes(data.read_bytes()[:100])
    code, _, err = pboost_main("fit", data, *given, "-o", model)
    assert code == 1
    assert "not a readable Parquet file" in err


@pytest.mark.parametrize(
    "options", [["--categorical-features", "y"], ["--categorical-features", "sky", "--drop", "sky"]]
)
def test_a_column_is_one_thing(tmp_path, pboost_main, options):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    given = [tmp_path / "t.csv", "--target", "y", *options, "-o", tmp_path / "m.npz"]
    code, _, err = pboost_main("fit", *given)
    assert code == 2
    assert "--categorical-features" in err


def test_weights_are_no_feature(tmp_path, pboost_main):
    TABLE.assign(w=1.5).to_csv(tmp_path / "t.csv", index=False)
    given = [tmp_path / "t.csv", "--target", "y", "--sample-weight", "w", "--n-estimators", "2"]
    assert pboost_main("fit", *given, "-o", tmp_path / "m.npz")[0] == 0
    assert "w" not in pb.load(tmp_path / "m.npz").feature_names
