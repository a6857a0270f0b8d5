"""Files that end, to be read; and writing a file so that it is never seen half written."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import Any

from pboost.data.on_disk.column_folder import flush_folder
from pboost.models.stored import ModelFileError
from pboost.values import shown


def check_regular(where: str) -> None:
    """Refuse what is no file of a certain size: opening or reading it could last for ever."""
    mode = os.stat(where).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # a directory cannot be opened
        return
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
    raise ModelFileError(f"{where}: expected a file, got {kind}")


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Give `path` new content, all of it or none.

    Parameters
    ----------
    path : str or path-like
        Symbolic links are followed. An existing file keeps its permissions, a new one has those
        that ``open`` would give it. A device or a pipe is written to directly.
    content : bytes
        What the file is to hold.

    Raises
    ------
    OSError
        The temporary file is then removed and the old content still there.
    """
    where = os.fsdecode(path)
    target = os.path.realpath(where)
    mode = _mode_of(target, where)
    is_file = mode is None or stat.S_ISREG(mode)
    if not (is_file and os.path.basename(where)):
        with open(where, "wb") as file:  # a device; raises for a directory and for "name/"
            file.write(content)
        return
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".pboost-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, 0o666), "wb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            # Name the file that the caller knows.
            raise OSError(error.errno, error.strerror, where) from error
        raise
    flush_folder(folder)


def _mode_of(target: str, where: str) -> int | None:
    """Mode of an existing file; PermissionError where ``open`` could not write to it."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode) and not os.access(target, os.W_OK):
        # A renaming needs no permission on the file that it replaces; a user expects it to.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), where)
    return mode


def check_path(path: Any) -> Any:
    """Return `path` if a file can have it as its name."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"path: expected a file's name, a str or path-like, got {shown(path)}")
    return path
