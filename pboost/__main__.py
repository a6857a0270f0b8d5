"""Run the command line interface, see ``python -m pboost --help``."""

from __future__ import annotations

import contextlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence

from pboost.cli.commands import run_demo, run_evaluate, run_fit, run_predict, run_show
from pboost.cli.options import worded
from pboost.cli.parser import parse
from pboost.cli.streams import CommandError, UsageError

COMMANDS: dict[str, Callable[[Namespace], None]] = {
    "demo": run_demo,
    "fit": run_fit,
    "evaluate": run_evaluate,
    "predict": run_predict,
    "show": run_show,
}
FAILED, USAGE, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The command line arguments. The default is ``sys.argv[1:]``.

    Returns
    -------
    int
        Exit code: 0 for success, 1 for an error, 2 for wrong usage, 130 after an interrupt.
        Errors are printed to standard error, in one line.
    """
    try:
        return _run(argv)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe. Prevent an error when the interpreter flushes at exit.
        with contextlib.suppress(OSError):  # standard output may lack a file descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except UsageError as error:
        return _fail(str(error), USAGE)
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        return _fail(f"{error.filename}: {error.strerror}" if named else str(error), FAILED)
    except MemoryError as error:
        return _fail(str(error) or "out of memory", FAILED)
    except CommandError as error:
        return _fail(str(error), FAILED)
    except (ValueError, TypeError, NotImplementedError) as error:
        return _fail(worded(str(error)), FAILED)


def _run(argv: Sequence[str] | None) -> int:
    try:
        options = parse(argv)
    except SystemExit as stop:  # after --help, --version or a usage error
        sys.stdout.flush()
        return stop.code if isinstance(stop.code, int) else 0
    COMMANDS[options.command](options)
    sys.stdout.flush()
    return 0


def _fail(message: str, code: int) -> int:
    """Print the error in one line."""
    sys.stderr.write(f"pboost: error: {' '.join(message.split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
