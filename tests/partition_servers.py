"""What processes of partitions run in tests instead of answering.

They stand in a module that a new process can import, whatever its working directory.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from time import sleep


def ended(connection: Connection) -> None:
    """End without an answer."""
    connection.close()


def silent(connection: Connection) -> None:
    """Neither answer nor end."""
    sleep(30)
