"""How soon Ctrl-C ends what takes long, and whether all is as before afterwards.

``python tests/interrupt.py --times 20`` interrupts every case so often, half a second after it has
begun, and prints for each the number of times, the median and the worst wall time from the signal
to the exception, and the most processor time of all threads. ``--only NAME …`` takes some,
``--list`` names them. On a busy machine wall time says little; processor time then says more.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from interrupt_cases import CASES, SHORT

#: Seconds in which an exception must come out, and those of all processors where others use them.
LIMIT, PROCESSOR_LIMIT = 1.0, 0.4


def serve(name: str) -> None:
    """Run a case again and again, and say when it has been interrupted; the child's part."""
    # A shell has its background jobs ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    work, check = (CASES | SHORT)[name]()
    before = check()
    for _ in sys.stdin:
        caught = None
        print("started", flush=True)
        try:
            while True:
                work()
        except KeyboardInterrupt:
            caught = time.monotonic(), time.process_time()
        print(json.dumps([*caught, check() == before]), flush=True)


def processor_seconds(pid: int) -> float:
    """Return the processor time of another process so far, NaN where that is not known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupt(name: str, times: int, delay: float) -> list[tuple[float, float, bool]]:
    """Return wall and processor time from signal to exception, and whether all is as before."""
    actual = []
    command = [sys.executable, __file__, "--child", name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for _ in range(times):
                process.stdin.write("go\n")
                process.stdin.flush()
                if process.stdout.readline() != "started\n":
                    raise RuntimeError(f"{name}: it failed by itself")
                time.sleep(delay)
                used, sent = processor_seconds(process.pid), time.monotonic()
                process.send_signal(signal.SIGINT)
                caught, processor, same = json.loads(process.stdout.readline())
                actual.append((caught - sent, processor - used, same))
        except BaseException:
            process.kill()
            raise
        process.stdin.close()
    return actual


def is_soon(wall: float, processor: float) -> bool:
    """Whether an exception came soon enough, also on a machine that others keep busy."""
    return wall <= LIMIT or (processor <= PROCESSOR_LIMIT and wall <= 10 * LIMIT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--delay", type=float, default=0.5, help="seconds before the signal")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of cases")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        serve(options.child)
        return 0
    chosen = [name for name in CASES if any(part in name for part in options.only or [""])]
    if options.list:
        print("\n".join(chosen))
        return 0
    late = 0
    print(f"{'case':<30}{'times':>6}{'median s':>10}{'worst s':>10}{'CPU s':>8}  as before")
    for name in chosen:
        try:
            actual = interrupt(name, options.times, options.delay)
        except RuntimeError as error:
            print(error, flush=True)
            late += 1
            continue
        wall = sorted(actual)
        same = all(as_before for *_, as_before in actual)
        print(
            f"{name:<30}{len(actual):>6}{wall[len(wall) // 2][0]:>10.3f}{wall[-1][0]:>10.3f}"
            f"{max(cpu for _, cpu, _ in actual):>8.2f}  {'yes' if same else 'NO'}",
            flush=True,
        )
        late += wall[-1][0] > LIMIT or not same
    return late > 0


if __name__ == "__main__":
    sys.exit(main())
