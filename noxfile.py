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
    """Test a wheel that is made of the source distribution; arguments go to pytest."""
    script(session, "test")


@nox.session
def sklearn(session: nox.Session) -> None:
    """Test the estimators with the oldest scikit-learn that they work with."""
    script(session, "test", "-k", "sklearn", PINS="scikit-learn==1.6.*")


@nox.session
def oldest(session: nox.Session) -> None:
    """Test with the oldest versions of everything, which tests/oldest.txt has."""
    script(session, "test", PINS="-c tests/oldest.txt")


@nox.session
def lint(session: nox.Session) -> None:
    """Run the linters, the types and the performance hints of Cython."""
    session.install(*BUILD, "-e", ".[lint]")
    script(session, "lint")


@nox.session
def docs(session: nox.Session) -> None:
    """Make the documentation in docs/_build/html, or in a folder that is given."""
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
