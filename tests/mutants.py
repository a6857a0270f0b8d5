"""Mutants: is a slip in one token of the package found by the tests, and by the quick tier?

    python tests/mutants.py --seed 0                  15 in Python and 15 in kernels, for hours
    python tests/mutants.py --seed 0 --list           which are drawn
    python tests/mutants.py --seed 0 --only p3 k17    two of them
    python tests/mutants.py --faults                  the faults of tests/fuzz/faults.py

A mutant has one token changed, on a line that is drawn of all lines of some rooms that have such a
token: ``<`` and ``<=``, ``>`` and ``>=``, ``+`` and ``-``, ``and`` and ``or``, one more or one less
in an integer, a ``not`` dropped. It is put into a copy of the checkout, of which what depends on it
is built again; one that does not compile, or to the same machine code, is replaced by the next. The
tests of the quick tier run until the first fails, those of its own room first; a crash kills it,
too, and so does five times the usual time. If it survives, the tests run that the quick tier leaves
out. Tests that fail without a mutant are left out. Needs a checkout that is built in place.

Returns 1 if the quick tier finds less than nine of ten mutants that the tests find, or misses a
fault that they find.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import filecmp
import itertools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Where mutants are drawn, by the first letter of their names: rooms, and endings of files.
DRAWN = {"p": (("data", "growth", "trees"), (".py",)), "k": (("_core",), (".pyx", ".pxd", ".h"))}
#: Whose tests run first where kernels are changed: golden fits call most of them.
FIRST = ("core", "golden", "trees", "boosting", "weak", "data", "growth", "observation", "probit")
#: How many times the usual CPU time is too long, and CPU seconds without output that are not.
SLOWER, SILENCE = 5, 60
#: Seconds without output after which a test that uses no CPU time hangs, on a busy machine, too.
HANGS = 900
#: The fraction of the mutants found by all tests that the quick tier must find.
SHARE = 0.9
LEFT_OUT = (
    ".git",
    ".*_cache",
    ".hypothesis",
    ".asv",
    "__pycache__",
    "_build",
    "dist",
    "*.egg-info",
)

OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "+=": "-=", "-=": "+="}
OTHER |= {"and": "or", "or": "and", "&&": "||", "||": "&&", "not": "", "!": ""}
#: Strings, comments, casts and types of arrays have no tokens to change.
STRINGS = r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*'
SKIPPED = {
    ".py": STRINGS,
    ".h": STRINGS + r"|//[^\n]*|/\*(?:.|\n)*?\*/",
    ".pyx": STRINGS + r"|<(?:(?:const|unsigned|long) )*\w+ ?\**>|::1\]",
}
SKIPPED[".pxd"] = SKIPPED[".pyx"]
TOKENS = (
    r"(?P<word>[A-Za-z_]\w*)|(?P<number>\d[\w.]*(?:(?<=[eE])[-+]\d+)?)"
    r"|(?P<sign>->|<<=?|>>=?|\+\+|--|[-+*/%&|^<>=!]=|&&|\|\||[-+<>!])"
)


# Which mutants there are


@dataclass(frozen=True)
class Mutant:
    """One token of a file that is another."""

    path: str
    start: int
    old: str
    new: str

    def applied(self, text):
        assert text.startswith(self.old, self.start)
        return text[: self.start] + self.new + text[self.start + len(self.old) :]

    def compiles(self, text):
        """Return whether a file of Python can be read; of others only a compiler knows."""
        with contextlib.suppress(SyntaxError):
            return bool(not self.path.endswith(".py") or compile(self.applied(text), "", "exec"))
        return False

    def says(self, text):
        """Return where it is, and the line before and after."""
        number = text.count("\n", 0, self.start) + 1
        lines = difflib.unified_diff(text.splitlines(), self.applied(text).splitlines(), n=0)
        return "\n".join([f"{self.path}:{number}", *(f"    {line}" for line in list(lines)[3:])])


def tokens(text, suffix):
    """Yield start, token and its other, of each token that can be another; integers have two."""
    for item in re.finditer(f"(?P<skip>{SKIPPED[suffix]})|{TOKENS}", text):
        token = item[0]
        if item.lastgroup == "number" and token.isdecimal():
            for new in (int(token) - 1, int(token) + 1):
                yield item.start(), token, str(new)
        elif item.lastgroup in ("word", "sign") and token in OTHER:
            yield item.start(), token, OTHER[token]


def drawn(kind, seed, root=ROOT):
    """Yield mutants without end, by lines; the same for the same seed and the same files."""
    rooms, suffixes = DRAWN[kind]
    files = [p for room in rooms for p in (root / "pboost" / room).rglob("*")]
    lines = {}
    for path in sorted(path for path in files if path.suffix in suffixes):
        text = path.read_text("utf-8")
        for start, old, new in tokens(text, path.suffix):
            mutant = Mutant(path.relative_to(root).as_posix(), start, old, new)
            lines.setdefault((path, text.count("\n", 0, start)), []).append(mutant)
    rng, seen = random.Random(f"{kind}{seed}"), set()
    lines = list(lines.values())
    while True:
        mutant = rng.choice(rng.choice(lines))
        if mutant not in seen and mutant.compiles((root / mutant.path).read_text("utf-8")):
            seen.add(mutant)
            yield mutant


# How they are tried


@dataclass
class Usual:
    """What a run of the tests of a tier is like without a mutant."""

    seconds: float
    silence: float
    failed: list


@dataclass
class Bench:
    """A copy of the checkout, and one that is changed."""

    work: Path
    jobs: int
    usual: dict = field(default_factory=dict)

    def __post_init__(self):
        self.clean, self.changed = self.work / "clean", self.work / "changed"
        shutil.copytree(ROOT, self.clean, ignore=shutil.ignore_patterns(*LEFT_OUT))
        assert self.build(self.clean), "the checkout cannot be built"
        shutil.copytree(self.clean, self.changed)

    def build(self, tree):
        """Build what is not up to date; return whether that went well."""
        call = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        with open(self.work / "build.log", "w") as log:
            return (
                subprocess.run(call, cwd=tree, stdout=log, stderr=log, check=False).returncode == 0
            )

    def restore(self):
        """Make the changed copy the other again, times of files included, which builds go by."""
        for folder in ("pboost", "build"):
            ours, theirs = self.clean / folder, self.changed / folder
            for path in [p for p in theirs.rglob("*") if p.is_file()]:
                if (
                    "__pycache__" not in path.parts
                    and not (ours / path.relative_to(theirs)).exists()
                ):
                    path.unlink()
            for path in [p for p in ours.rglob("*") if p.is_file()]:
                other = theirs / path.relative_to(ours)
                if not other.exists() or time_and_size(path) != time_and_size(other):
                    other.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, other)

    def is_same_code(self):
        """Return whether all kernels are, bit for bit, those of the other copy."""
        kernels = [*(self.clean / "pboost" / "_core").glob("*.so")]
        other = self.changed / "pboost" / "_core"
        return all(filecmp.cmp(path, other / path.name, shallow=False) for path in kernels)

    def pytest(self, tree, tier, rooms, *options, **environment):
        """Run the tests of a tier; return exit code or None, seconds, longest silence, failures."""
        folders = {path.parent.name for path in (tree / "tests").glob("*/test_*.py")}
        order = [*(room for room in rooms if room in folders), *sorted(folders - set(rooms))]
        call = [sys.executable, "-m", "pytest", *(f"tests/{room}" for room in order), "-m", tier]
        call += ["-q", "--tb=line", "-p", "no:cacheprovider", "-n", str(self.jobs)]
        call += ["--dist", "load", "--maxschedchunk", "20", *options]
        usual = self.usual.get(tier)
        call += [f"--deselect={name}" for name in (usual.failed if usual else ())]
        scratch = Path(tempfile.mkdtemp(dir=self.work))
        path = os.pathsep.join([str(tree), str(tree / "tests")])
        env = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(scratch), **environment}
        env["HYPOTHESIS_STORAGE_DIRECTORY"] = str(scratch / "hypothesis")
        log = self.work / "tests.log"
        code, seconds, silence = watched(call, tree, env, log, usual)
        shutil.rmtree(scratch, ignore_errors=True)
        failed = re.findall(
            r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", log.read_text("utf-8", "replace"), re.M
        )
        return code, seconds, silence, failed

    def know_usual(self, tier):
        """Run the tests of a tier without a mutant, once."""
        if tier not in self.usual:
            _, seconds, silence, failed = self.pytest(self.clean, tier, ())
            self.usual[tier] = Usual(seconds, silence, failed)
            print(f"# {tier}: {seconds:.0f} CPU s without a mutant, {len(failed)} fail", flush=True)
            print(*(f"#     {name}" for name in failed), sep="\n", flush=True)

    def verdict(self, rooms, *options, **environment):
        """Return which tier finds what is in the changed copy, "" for none, and by which test."""
        for tier, name in (("not full", "quick"), ("full", "full")):
            self.know_usual(tier)
            code, _, _, failed = self.pytest(
                self.changed, tier, rooms, "-x", *options, **environment
            )
            if code != 0:
                return name, failed[0] if failed else "takes too long" if code is None else "crash"
        return "", ""


def time_and_size(path):
    actual = path.stat()
    return actual.st_mtime_ns, actual.st_size


def cpu_seconds(session):
    """Return the CPU time of the living processes of a session and of their ended children."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name of a process, in parentheses, may contain spaces.
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def watched(call, cwd, env, log, usual):
    """Run a command; return its exit code (None if it takes too long), CPU seconds and silence."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    used = used_at_output = longest = size = 0
    with open(log, "w") as out:
        process = subprocess.Popen(
            call,
            cwd=cwd,
            env=env,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (memory, memory)),
        )
        written = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(0.2)
                used = max(used, cpu_seconds(process.pid))
                if log.stat().st_size != size:
                    size, written, used_at_output = log.stat().st_size, time.monotonic(), used
                longest = max(longest, used - used_at_output)
                if usual and (
                    used > SLOWER * usual.seconds
                    or used - used_at_output > max(SILENCE, SLOWER * usual.silence)
                    or time.monotonic() - written > HANGS
                ):
                    return None, used, longest
            return process.returncode, used, longest
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def tried(bench, name, mutant):
    """Return which tier finds a mutant, and by which test; None if it is none."""
    text = (bench.clean / mutant.path).read_text("utf-8")
    (bench.changed / mutant.path).write_text(mutant.applied(text), "utf-8")
    try:
        if name[0] == "k" and not bench.build(bench.changed):
            return None, "does not compile"
        if name[0] == "k" and bench.is_same_code():
            return None, "compiles to the same code"
        return bench.verdict(FIRST if name[0] == "k" else [Path(mutant.path).parts[1]])
    finally:
        bench.restore()


def pytest_configure():
    """Put a fault in: of ``pytest -p mutants``, with its name in PBOOST_FAULT."""
    if "PBOOST_FAULT" in os.environ:
        from fuzz.faults import FAULTS

        FAULTS[os.environ["PBOOST_FAULT"]].apply()


def faults(bench):
    """Yield the names of the faults, which tier finds each, and by which test."""
    from fuzz.faults import FAULTS

    for name in FAULTS:
        yield name, *bench.verdict((), "-p", "mutants", PBOOST_FAULT=name)


def chosen(options):
    """Yield the mutants of one kind after the other: `options.each` of each, or `options.only`."""
    for kind in DRAWN:
        named = ((f"{kind}{k}", mutant) for k, mutant in enumerate(drawn(kind, options.seed)))
        if options.only is None:
            yield named, options.each
        else:
            numbers = [int(name[1:]) for name in options.only if name[0] == kind]
            few = itertools.islice(named, max(numbers, default=-1) + 1)
            yield (pair for pair in few if pair[0] in options.only), len(numbers)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=15, help="mutants of each kind")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="such as p3 or k17")
    parser.add_argument("--list", action="store_true", help="print them and do nothing")
    parser.add_argument("--faults", action="store_true", help="seeded faults in place of mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes of pytest")
    options = parser.parse_args(arguments)
    if options.list:
        for named, number in chosen(options):
            for name, mutant in itertools.islice(named, number):
                print(name, mutant.says((ROOT / mutant.path).read_text("utf-8")))
        return 0
    actual = {"quick": 0, "full": 0, "": 0}
    survivors = []
    with tempfile.TemporaryDirectory(prefix="pboost-mutants-") as work:
        bench = Bench(Path(work), options.jobs)
        if options.faults:
            for name, tier, test in faults(bench):
                print(f"{name}: {tier or 'not found'} {test}", flush=True)
                actual[tier] += 1
            return int(actual["full"] > 0)
        for named, number in chosen(options):
            for name, mutant in named:
                if number == 0:
                    break
                tier, test = tried(bench, name, mutant)
                says = mutant.says((bench.clean / mutant.path).read_text("utf-8"))
                print(
                    f"{name}: {'survives' if tier == '' else tier or 'none'} {test}\n{says}",
                    flush=True,
                )
                if tier is not None:
                    number -= 1
                    actual[tier] += 1
                    survivors += [f"{name} {says}"] if tier == "" else []
    both = actual["quick"] + actual["full"]
    print(f"\nquick tier {actual['quick']}, only the rest {actual['full']}, neither {actual['']}")
    print(*survivors, sep="\n")
    return int(actual["quick"] < SHARE * both)


if __name__ == "__main__":
    sys.exit(main())
