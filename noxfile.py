"""Sessions of development: ``nox -l`` lists them. Each runs a script of .ci, as CI does."""

from __future__ import annotations

import nox

nox.options.sessions = ["lint", "tests"]
BUILD = nox.project.load_toml("pyproject.toml")["build-system"]["requires"]


def script(session: nox.Session, name: str, *given: str, **env: str) -> None:
    """Run a script of .ci with the interpreter of the session, and what stands behind ``--``."""
    session.run(
        "bash",
        f".ci/{name}",
        *given,
        *session.posargs,
        env={"PYTHON": session.virtualenv.bin + "/python", **env},
        external=True,
    )


@nox.session
def tests(session: nox.Session) -> None:
    """Run the quick tests on a wheel of the source distribution; arguments go to pytest."""
    script(session, "test")


@nox.session
def full(session: nox.Session) -> None:
    """Run everything: all tests, sanitizers, the whole documentation, benchmarks."""
    script(session, "full")


@nox.session
def sklearn(session: nox.Session) -> None:
    """Run all tests of the estimators with the oldest scikit-learn that they work with."""
    script(session, "test", "-m", "", "-k", "sklearn", PINS="scikit-learn==1.6.*")


@nox.session
def oldest(session: nox.Session) -> None:
    """Run all tests with the oldest versions of everything, which tests/oldest.txt has."""
    script(session, "test", "-m", "", PINS="-c tests/oldest.txt")


@nox.session
def lint(session: nox.Session) -> None:
    """Run the linters, the types, the rules of tests/lint.py and the hints of Cython."""
    session.install(*BUILD, "-e", ".[lint,sklearn,dask]")
    script(session, "lint")


@nox.session
def docs(session: nox.Session) -> None:
    """Make the documentation in docs/_build/html, or in a folder that is given; --fast."""
    session.install("-e", ".[docs]")
    script(session, "docs")


@nox.session
def figures(session: nox.Session) -> None:
    """Measure all that README states, for an hour; PBOOST_DATA names the folder of data sets."""
    session.install("-e", ".[bench,demo]")
    session.run("python", "docs/dev/readme_figures.py", "--all", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run every benchmark once; arguments go to ``asv run``."""
    session.install("-e", ".[bench]")
    script(session, "bench")


@nox.session
def sanitize(session: nox.Session) -> None:
    """Run the kernels under sanitizers; --quick, --thread, and arguments for pytest."""
    script(session, "sanitize")
