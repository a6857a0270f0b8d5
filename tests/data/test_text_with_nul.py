"""Text that ends with NUL, which NumPy drops, is refused: it would become another text."""

import json

import numpy as np
import pytest

import pboost as pb

pd = pytest.importorskip("pandas")

TEXT = ["a", "a\0"] * 10
EVEN = np.arange(20) % 2 == 0
NUMBERS = np.arange(20.0)
ROWS = NUMBERS.reshape(-1, 1)
REFUSED = r"without a trailing NUL character, which NumPy would drop, got 'a\\x00'; strip it"


def of_polars(values, dtype=None):
    return pytest.importorskip("polars").Series("c", values, dtype=dtype)


def of_arrow(values):
    return pytest.importorskip("pyarrow").array(values)


SERIES = {
    "list": list,
    "tuple": tuple,
    "str_": lambda values: [np.str_(value) for value in values],
    "objects": lambda values: np.array(values, dtype=object),
    "StringDType": lambda values: np.array(values, dtype=np.dtypes.StringDType()),
    "pandas": pd.Series,
    "pandas, string": lambda values: pd.Series(values, dtype="string"),
    "pandas, category": lambda values: pd.Series(pd.Categorical(values)),
    "polars": of_polars,
    "arrow": of_arrow,
}
FRAMES = {
    "objects": lambda: pd.DataFrame({"c": TEXT, "z": NUMBERS}, dtype=object),
    "string": lambda: pd.DataFrame({"c": pd.Series(TEXT, dtype="string"), "z": NUMBERS}),
    "category": lambda: pd.DataFrame({"c": pd.Categorical(TEXT), "z": NUMBERS}),
    "ordered": lambda: pd.DataFrame({"c": pd.Categorical(TEXT, ordered=True), "z": NUMBERS}),
    "polars": lambda: of_polars(TEXT).to_frame(),
    "polars, category": lambda: of_polars(
        TEXT, pytest.importorskip("polars").Categorical
    ).to_frame(),
    "arrow": lambda: pytest.importorskip("pyarrow").table({"c": of_arrow(TEXT)}),
    "dictionary": lambda: pytest.importorskip("pyarrow").table(
        {"c": of_arrow(TEXT).dictionary_encode()}
    ),
}
MATRICES = {
    "objects": lambda: np.array([TEXT, NUMBERS.tolist()], dtype=object).T,
    "list": lambda: [[text, 1.0] for text in TEXT],
    "text": lambda: [[text] for text in TEXT],
    "StringDType": lambda: np.array([[text] for text in TEXT], dtype=np.dtypes.StringDType()),
}


@pytest.mark.parametrize("kind", SERIES)
def test_labels(kind):
    y = SERIES[kind](TEXT)
    with pytest.raises(ValueError, match=f"y: expected class labels {REFUSED}"):
        pb.fit_cart(ROWS, y)
    kept = SERIES[kind](["a\0b", "a"] * 10)
    assert pb.fit_cart(ROWS, kept).classes.tolist() == ["a", "a\0b"]


@pytest.mark.parametrize("kind", FRAMES)
def test_categories_of_frames(kind):
    X = FRAMES[kind]()
    for read in (lambda: pb.fit_cart(X, EVEN), lambda: pb.data.bin_columns(X)):
        with pytest.raises(ValueError, match=f"X: expected text in column 'c' {REFUSED}"):
            read()
    with pytest.raises(ValueError, match=f"X: expected values of column 'c' {REFUSED}"):
        pb.data.one_hot(X, ["c"])


@pytest.mark.parametrize("kind", MATRICES)
def test_categories_of_matrices(kind):
    with pytest.raises(ValueError, match=f"X: expected text in column 0 {REFUSED}"):
        pb.fit_cart(MATRICES[kind](), EVEN, categorical_features=[0])


def test_rows_and_labels_for_a_model():
    X, y = pd.DataFrame({"c": ["a", "b"] * 10, "z": NUMBERS}), ["a", "b"] * 10
    model = pb.fit_cart(X, y)
    with pytest.raises(ValueError, match=f"X: expected text in column 'c' {REFUSED}"):
        pb.predict(model, X.assign(c=TEXT))
    with pytest.raises(ValueError, match=f"X: expected text in column 0 {REFUSED}"):
        pb.acquisition.predict_with_acquisition(model, {"c": "a\0", "z": 1.0})
    with pytest.raises(ValueError, match=f"y_cal: expected class labels {REFUSED}"):
        pb.error_bound(model, X, TEXT)
    share = np.column_stack([EVEN, ~EVEN]).astype(float)
    for labels in (TEXT[:2], tuple(TEXT[:2]), np.array(TEXT[:2], dtype=object)):
        with pytest.raises(ValueError, match=f"classes: expected class labels {REFUSED}"):
            pb.fit_cart(X, y_proba=share, classes=labels)


def test_a_member_of_another_package_may_answer_in_objects():
    class Foreign:
        answer = "a"

        def predict(self, X):
            return np.array([self.answer] * len(X), dtype=object)

    y = ["a", "b"] * 10
    fit = lambda X, y, sample_weight: Foreign()  # noqa: E731
    assert pb.fit_samme(ROWS, y, base_learner=fit, n_estimators=1).classes.tolist() == ["a", "b"]
    for answer in ("a\0", "ax"):
        Foreign.answer = answer
        with pytest.raises(ValueError, match="base_learner: expected predictions"):
            pb.fit_samme(ROWS, y, base_learner=fit, n_estimators=1)


def test_names_of_columns_stay_different(tmp_path):
    X = pd.DataFrame({"a": NUMBERS, "a\0": NUMBERS[::-1] % 3})
    model = pb.fit_cart(X, EVEN, feature_costs={"a": 1.0, "a\0": 2.0})
    pb.save(model, tmp_path / "model.npz")
    loaded = pb.load(tmp_path / "model.npz"), pb.export.from_json(pb.export.to_json(model))
    assert {item.feature_names for item in loaded} == {("a", "a\0")}
    assert pb.data.bin_columns(X).names == ("a", "a\0")


def test_json_that_does_not_fit_its_dtype_is_refused():
    parsed = json.loads(pb.export.to_json(pb.fit_cart(ROWS, ["a", "b"] * 10)))
    for values in (["a", "b\0"], ["a", "bc"]):
        parsed["classes"]["values"] = values
        with pytest.raises(ValueError, match="values: expected values that fit into 'U1'"):
            pb.export.from_json(json.dumps(parsed))


def test_files_and_command_line(tmp_path, pboost_main):
    pytest.importorskip("pyarrow")
    tables = {
        "y": (pd.DataFrame({"z": NUMBERS, "y": TEXT}), "y: expected class labels"),
        "c": (pd.DataFrame({"c": TEXT, "y": EVEN}), "expected text in column 'c'"),
    }
    for name, (table, expected) in tables.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        with pytest.raises(ValueError, match=f"{expected} {REFUSED}"):
            pb.data.bin_files(tmp_path / f"{name}.parquet", tmp_path / f"{name}_bins", target="y")
        for form in ("parquet", "csv"):
            model = tmp_path / "model.npz"
            code, _, error = pboost_main(
                "fit", tmp_path / f"{name}.{form}", "--target", "y", "-o", model
            )
            assert code == 1
            assert (
                f"{expected.replace('y:', '--target:')} without a trailing NUL character" in error
            )
            assert not model.exists()


@pytest.mark.parametrize("kind", ["list", "tuple", "objects", "pandas", "polars"])
def test_estimators(kind):
    pytest.importorskip("sklearn")
    from pboost.sklearn import CartClassifier

    with pytest.raises(ValueError, match=f"y: expected class labels {REFUSED}"):
        CartClassifier().fit(ROWS, SERIES[kind](TEXT))
    actual = CartClassifier().fit(ROWS, SERIES[kind](["a", "b"] * 10))
    assert actual.classes_.tolist() == ["a", "b"]
