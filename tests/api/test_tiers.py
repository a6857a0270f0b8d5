"""Which cases the quick tier leaves out, and which mutants are drawn to see what it finds."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import conftest
import mutants
import pytest


class Case:
    """A collected case, as far as conftest looks at it."""

    def __init__(self, test, case, *markers, **params):
        self.nodeid, self.markers = f"{test}[{case}]", list(markers)
        self.callspec = SimpleNamespace(id=case, params=params)

    def iter_markers(self, name):
        return [marker.mark for marker in self.markers if marker.mark.name == name]

    def add_marker(self, name):
        self.markers.append(getattr(pytest.mark, name))


def left_out(cases, turn=0):
    config = SimpleNamespace(option=SimpleNamespace(turn=turn))
    conftest.pytest_collection_modifyitems(config, cases)
    return [case.callspec.id for case in cases if case.iter_markers("full")]


def test_each_seed_has_its_turn():
    def cases(seeds):
        pairs = itertools.product(seeds, "ab")
        return [Case("test", f"{seed}-{other}", seed=seed, other=other) for seed, other in pairs]

    assert left_out(cases([7, 8, 9, 10, 11]), turn=1) == [
        f"{seed}-{other}" for seed in (7, 9, 10, 11) for other in "ab"
    ]
    for seeds in ([5], [5, 6], range(3), range(9)):
        kept = [
            {case.callspec.id for case in every} - set(left_out(every, turn))
            for turn in range(4)
            for every in [cases(seeds)]
        ]
        assert all(kept)
        assert set().union(*kept) == {case.callspec.id for case in cases(seeds)}


def test_some_cases_of_a_test_are_left_out():
    slow = pytest.mark.full_for("b", "*-256")
    cases = [Case("test", case, slow) for case in ("a", "b", "b-5", "a-256")]
    assert left_out(cases) == ["b", "a-256"]


def test_the_turn_is_that_of_the_sources():
    assert conftest.turn_of_the_sources() == conftest.turn_of_the_sources() < conftest.TURNS


@pytest.mark.parametrize(
    ("suffix", "text", "found"),
    [
        (".py", 'if not a < b:  # a < b\n    """+"""', [("not", ""), ("<", "<=")]),
        (".py", "def f(a: int = 3) -> int: a += 1.5", [("3", "2"), ("3", "4"), ("+=", "-=")]),
        (".py", "x = a and b or '<' + f\"{1}\"", [("and", "or"), ("or", "and"), ("+", "-")]),
        (".py", "a != b; a << b; a ** b; 1e-12 >= 0x11", [(">=", ">")]),
        (".pyx", "cdef int[::1] a = <int>b - <const double*>c", [("-", "+")]),
        (
            ".h",
            "#include <a>\n/* + */ if (!a && b->c > d) ++e; // -",
            [("!", ""), ("&&", "||"), (">", ">=")],
        ),
    ],
)
def test_tokens_that_can_be_others(suffix, text, found):
    assert [(old, new) for _, old, new in mutants.tokens(text, suffix)] == found


def test_a_mutant_has_one_other_token():
    text = "a = 1\nif a < 2:\n    a = 3\n"
    mutant = mutants.Mutant("data/a.py", text.index("<"), "<", "<=")
    assert mutant.applied(text) == text.replace("<", "<=")
    assert mutant.says(text) == "data/a.py:2\n    -if a < 2:\n    +if a <= 2:"


def test_the_same_seed_draws_the_same_mutants(tmp_path):
    for name, text in {
        "data/a.py": "x = 1 if 2 < 3 else 4\n",
        "_core/b.pyx": "x = 1 + 2\n",
    }.items():
        path = tmp_path / "pboost" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)

    def some(kind, seed):
        return list(itertools.islice(mutants.drawn(kind, seed, tmp_path), 5))

    assert some("p", 0) == some("p", 0) != some("p", 1)
    assert len(set(some("k", 0))) == 5
    assert {mutant.path for mutant in some("k", 0)} == {"pboost/_core/b.pyx"}
