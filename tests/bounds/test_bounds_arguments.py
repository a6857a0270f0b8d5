"""Bounds: arrays and numbers, errors, and the figures that an example makes of them."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pboost import bounds

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "examples" / "bounds_figures.py"

TWO = [  # functions of T and rho
    bounds.adaboost_bound,
    bounds.tree_bound,
    bounds.tree_bound_asymptotic,
    bounds.matryoshka2_bound,
    bounds.rate_simple,
    bounds.rate_matryoshka,
]


@pytest.mark.parametrize("function", TWO, ids=lambda f: f.__name__)
def test_arguments_are_broadcast(function):
    T, rho = np.array([1, 2, 8, 64]), np.array([[0.25], [0.5], [1.0]])
    kept = T.copy(), rho.copy()
    T.flags.writeable = rho.flags.writeable = False
    actual = function(T, rho)
    assert actual.shape == (3, 4)
    assert actual.dtype == np.float64
    for i, j in np.ndindex(3, 4):
        first = function(int(T[j]), float(rho[i, 0]))
        assert type(first) is float
        # Loops over arrays may round the functions of the C library differently.
        assert first == pytest.approx(actual[i, j], rel=1e-14)
    assert (kept[0] == T).all()
    assert (kept[1] == rho).all()
    assert function(T.tolist(), 0.5).shape == (4,)
    assert function(np.zeros(0), 0.5).shape == (0,)
    assert type(function(np.int32(2), np.float32(0.5))) is float


def test_other_functions_are_vectorised():
    rho = np.array([[0.25], [0.5]])
    assert bounds.edge_to_rho(rho).shape == (2, 1)
    assert bounds.sign_collapse_bound(rho).shape == (2, 1)
    assert bounds.chain_bound([1, 2, 3], 2, rho).shape == (2, 3)
    assert bounds.chain_bound(2, [1, 2, 3], rho).shape == (2, 3)
    assert bounds.nested_bound((2, [2, 3, 4]), rho).shape == (2, 3)
    assert bounds.nested_bound(np.array([2, 3]), 0.5) == bounds.nested_bound((2, 3), 0.5)
    assert type(bounds.nested_bound((), 0.5)) is float


def test_large_integers_are_numbers():
    assert bounds.matryoshka2_bound(2**100, 0.5) == bounds.matryoshka2_bound(2.0**100, 0.5)
    assert bounds.tree_bound(2, Fraction(1, 2)) == 0.375


@pytest.mark.parametrize("function", TWO, ids=lambda f: f.__name__)
def test_numbers_out_of_range(function):
    second = "C" if function is bounds.rate_matryoshka else "rho"
    for wrong in (-0.1, np.nan, np.inf, [4, -1]):
        with pytest.raises(ValueError, match=r"^T: expected .*, got (-|nan|inf)"):
            function(wrong, 0.5)
    for wrong in (-1e-9, 1.25, np.nan, [0.5, 1.25]):
        with pytest.raises(ValueError, match=rf"^{second}: expected numbers in \[0, 1\], got"):
            function(4, wrong)
    with pytest.raises(ValueError, match=rf"^T, {second}: expected shapes .*\(3,\), \(2,\)"):
        function([1, 2, 4], [0.5, 0.25])
    for wrong in ("4", None, True, 1j, [1, "x"], [1, None], [2**80, True]):
        with pytest.raises(TypeError, match=r"^T: expected numbers, got"):
            function(wrong, 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.edge_to_rho(0.6), r"edge: expected numbers in \[0, 0.5\], got 0.6"),
        (lambda: bounds.tree_bound_asymptotic(0, 0.5), "T: expected finite numbers > 0, got 0.0"),
        (lambda: bounds.rate_simple(0, 0.5), "T: expected finite numbers > 0, got 0.0"),
        (lambda: bounds.rate_matryoshka(0, 0.5), "T: expected finite numbers > 0, got 0.0"),
        (lambda: bounds.tree_bound(-2, 0.5), "T: expected finite numbers >= 0, got -2.0"),
        (lambda: bounds.matryoshka2_bound([4, 6], 0.5), "T: expected powers of 2.*, got 6.0"),
        (lambda: bounds.matryoshka2_bound(0.5, 0.5), "T: expected powers of 2.*, got 0.5"),
        (lambda: bounds.matryoshka2_bound(0, 0.5), "T: expected powers of 2.*, got 0.0"),
        (lambda: bounds.nested_bound((2, 0), 0.5), r"sizes\[1\]: expected .* >= 1, got 0.0"),
        (lambda: bounds.nested_bound((2,), 2), r"rho: expected numbers in \[0, 1\], got 2.0"),
        (lambda: bounds.nested_bound(([1, 2], [1, 2, 3]), 0.5), r"sizes\[1\], rho: expected sh"),
        (lambda: bounds.sign_collapse_bound(1.5), r"F: expected numbers in \[0, 1\], got 1.5"),
        (lambda: bounds.chain_bound(-1, 2, 0.5), "T1: expected finite numbers >= 0, got -1.0"),
        (lambda: bounds.chain_bound(1, -2, 0.5), "TL: expected finite numbers >= 0, got -2.0"),
        (lambda: bounds.chain_bound(1, 2, -0.5), r"rho: expected numbers in \[0, 1\], got -0.5"),
        (lambda: bounds.best_nesting(0, 0.5), "T: expected an integer from 1"),
        (lambda: bounds.best_nesting(4, 1.5), "rho: expected a number in"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_types_of_best_nesting():
    with pytest.raises(TypeError, match=r"^T: expected an integer, got 4.5"):
        bounds.best_nesting(4.5, 0.5)
    with pytest.raises(TypeError, match=r"^rho: expected a number"):
        bounds.best_nesting(4, "0.5")


# Figures


@pytest.fixture
def figures():
    if not FIGURES.exists():
        pytest.skip("no examples/ beside tests/")
    spec = importlib.util.spec_from_file_location("bounds_figures", FIGURES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.full
def test_figures_are_drawn(figures, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    figures.main(["--out", str(tmp_path / "new")])
    assert {p.name for p in (tmp_path / "new").iterdir()} == set(figures.FILES)
    for path in (tmp_path / "new").iterdir():
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert path.stat().st_size > 5_000
    assert capsys.readouterr().out.startswith(figures.tables())


def test_page_has_the_printed_tables(figures):
    page = ROOT / "docs" / "theory" / "bounds.rst"
    if not page.exists():
        pytest.skip("no docs/ beside tests/")
    text = page.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    for line in figures.tables().splitlines():
        assert line.strip() in lines
