"""The fuzzer finds nothing in a short run, and finds faults that are put in on purpose."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fuzz.builders import BUILDERS
from fuzz.child import Task
from fuzz.faults import FAULTS
from fuzz.parent import kept, run
from fuzz.rules import ALWAYS, CERTIFICATE, RULES, TABLE

#: Cases of a short run, and the most that are run for one fault.
SHORT = {"files": 1000, "arrays": 400}
BUDGET = {"files": 3000, "arrays": 1500}
#: Seconds that are a hang, with faults in place.
HANG = 2.0
PAGE = Path(__file__).parents[2] / "docs" / "dev" / "fuzzing.rst"


@pytest.mark.quick
def test_a_few_cases_find_nothing():
    result = run(Task("arrays", 0, 20))
    assert (result.cases, result.found) == (20, [])


@pytest.mark.full
@pytest.mark.parametrize("kind", ["files", "arrays"])
def test_a_short_run_finds_nothing(kind):
    result = run(Task(kind, 0, SHORT[kind]), jobs=2)
    assert [f"{item.case}: {item.where}: {item.what}" for item in result.found] == []
    assert result.cases == SHORT[kind]
    if kind == "files":
        assert result.counts["loaded"] > SHORT[kind] / 4
        assert result.counts["refused"] > SHORT[kind] / 4
    else:
        assert result.counts["refused"] < SHORT[kind] / 10
        assert all(result.counts[name] for name in BUILDERS)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["files", "arrays"])
def test_what_was_found_once_is_gone(kind):
    task = kept(kind)
    result = run(task)
    assert result.cases == len(task.seeds) > 0
    assert result.found == []


def is_found(name):
    """Return whether the fuzzer finds a fault that is put in."""
    fault = FAULTS[name]
    actual = run(Task(fault.kind, 0, BUDGET[fault.kind], fault=name), hang=HANG).found
    if not actual:
        return False
    if not actual[0].where.startswith(("hangs", "crash")):
        return True  # the child has seen that it is not there without the fault
    seed = int(actual[0].case.split(":")[1])
    return run(Task(fault.kind, seed, seed + 1)).found == []


@pytest.mark.full
def test_seeded_faults_are_found():
    with ThreadPoolExecutor(2) as pool:
        actual = dict(zip(FAULTS, pool.map(is_found, FAULTS), strict=True))
    assert len(FAULTS) == 10
    assert sum(actual.values()) >= 8, actual


def test_the_table_names_every_relation_and_builder():
    from fuzz.relations import RELATIONS

    columns = set(RELATIONS) - set(ALWAYS) - set(CERTIFICATE)
    assert all(set(levels) == columns for levels in RULES.values())


@pytest.mark.skipif(not PAGE.exists(), reason="no documentation beside tests/")
def test_the_page_shows_the_table():
    page = [line.strip() for line in PAGE.read_text(encoding="utf-8").splitlines()]
    assert all(line.strip() in page for line in TABLE.strip().splitlines())
