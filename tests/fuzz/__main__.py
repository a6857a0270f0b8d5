"""The fuzzer, against the installed package.

``python tests/fuzz --minutes 10`` runs files and arrays for ten minutes; ``--files`` and
``--arrays`` choose, ``--count N`` runs N cases in place of some time, ``--jobs J`` so many at once,
``--seed S`` begins at case S. What is found is printed with its case;
``python tests/fuzz --case arrays:12345`` runs that case alone. ``--table`` prints which invariant
holds for which builder.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent.resolve()]
sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.child import Task  # noqa: E402
from fuzz.child import main as run_child  # noqa: E402
from fuzz.parent import HANG, Found, kept, run  # noqa: E402

#: Cases of a run that only time ends.
MANY = 10**12


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("tests/fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, help="how long, for files and arrays together")
    parser.add_argument("--count", type=int, help="how many cases of either kind")
    parser.add_argument("--files", action="store_true", help="model files")
    parser.add_argument("--arrays", action="store_true", help="fits of random arrays")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--hang", type=float, default=HANG, help="seconds that are a hang")
    parser.add_argument("--case", help="run one case, such as arrays:12345, in this process")
    parser.add_argument("--table", action="store_true", help="print the table of invariants")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def one_case(case: str) -> int:
    """Run a case in this process, and show where it comes from."""
    import tempfile
    import traceback
    import warnings

    from fuzz import cases, functions

    warnings.simplefilter("error")
    kind, seed = case.split(":")
    with tempfile.TemporaryDirectory() as folder:
        functions.FOLDER = folder
        finding = cases.run_case(kind, int(seed), Counter())
    if finding is None:
        print("nothing found")
        return 0
    traceback.print_exception(finding, limit=12)
    return 1


def tell(found: Found) -> None:
    print(f"{found.case}: {found.where}: {found.what}", flush=True)


def long_run(kind: str, options: argparse.Namespace, seconds: float | None) -> int:
    """Run the kept cases of a kind and then new ones; print counts."""
    seen: Counter[str] = Counter()

    def tell_new(found: Found) -> None:
        seen[found.signature] += 1
        if seen[found.signature] <= 3:
            tell(found)

    began = time.monotonic()
    run(kept(kind), hang=options.hang, tell=tell_new)
    until = time.time() + seconds if seconds is not None else 0.0
    stop = options.seed + (MANY if options.count is None else options.count)
    task = Task(kind, options.seed, stop, until=until)
    result = run(task, jobs=options.jobs, hang=options.hang, tell=tell_new)
    took = time.monotonic() - began
    print(f"{kind}: {result.cases} cases in {took:.0f} s, {sum(seen.values())} findings")
    for name, count in sorted(result.counts.items()):
        print(f"  {count:8d} {name}")
    for signature, count in seen.most_common():
        print(f"  {count:8d} times: {signature}")
    return sum(seen.values())


def main() -> int:
    options = arguments()
    if options.child:
        return run_child(Task(**json.loads(options.child[0])), options.child[1])
    if options.table:
        from fuzz.rules import TABLE

        print(TABLE.strip())
        return 0
    if options.case:
        return one_case(options.case)
    kinds = [kind for kind in ("files", "arrays") if getattr(options, kind)] or ["files", "arrays"]
    if options.minutes is None and options.count is None:
        options.minutes = 1.0
    seconds = None if options.minutes is None else 60 * options.minutes / len(kinds)
    return int(sum(long_run(kind, options, seconds) for kind in kinds) > 0)


if __name__ == "__main__":
    sys.exit(main())
