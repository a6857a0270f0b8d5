"""Connections over which a fit asks what answers for rows elsewhere: messages with their length.

Sockets that block, without an event loop between a question and its answer.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pboost.growth.channel import MessageError

#: Bytes of the length of a message, of the longest message, and of the longest from a stranger.
LENGTH, MOST, FIRST = 8, 1 << 40, 1 << 10
#: Seconds for which a connection, and what is said first, are waited for.
CONNECTING = 30.0
#: What a peer that has vanished without a word is noticed by: seconds, by options of TCP.
_VANISHED = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}

#: Seconds after which it is looked anew which connections are still open.
LOOKING = 1.0
#: What sees a connection that another thread closes meanwhile, which epoll and kqueue forget.
_Selector: type[Any] = getattr(selectors, "PollSelector", selectors.SelectSelector)


class Connection:
    """A connection to one peer; every wait ends at a time of `time.monotonic`, if one is given."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        if peer.family in (socket.AF_INET, socket.AF_INET6):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _VANISHED.items():
                if hasattr(socket, name):  # not everywhere
                    peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def _wait_until(self, until: float | None) -> None:
        if until is None:
            self._peer.settimeout(None)
        elif (left := until - time.monotonic()) > 0:
            self._peer.settimeout(left)
        else:
            raise TimeoutError("the peer has not answered in time")

    def fileno(self) -> int:
        """Return the descriptor of the socket, negative where it has been closed."""
        return self._peer.fileno()

    def write(self, message: bytes | bytearray, until: float | None = None) -> None:
        """Send a message."""
        self._wait_until(until)
        self._peer.sendall(len(message).to_bytes(LENGTH, "little") + message)

    def read(self, until: float | None = None, most: int = MOST) -> bytearray:
        """Return a message.

        Raises
        ------
        OSError, MessageError
            If the connection breaks, or a message is said to be longer than `most` bytes.
        """
        length = int.from_bytes(self._bytes(LENGTH, until), "little")
        if length > most:
            raise MessageError(f"expected at most {most} bytes, got {length}")
        return self._bytes(length, until)

    def _bytes(self, n: int, until: float | None) -> bytearray:
        found = bytearray(n)
        rest = memoryview(found)
        while rest:
            self._wait_until(until)
            if not (got := self._peer.recv_into(rest)):
                raise ConnectionResetError("the peer has closed the connection")
            rest = rest[got:]
        return found

    def close(self) -> None:
        """Close the connection, also for a thread that waits for it."""
        with contextlib.suppress(OSError, ValueError):
            self._peer.shutdown(socket.SHUT_RDWR)
        self._peer.close()


def as_answered(connections: Mapping[int, Connection], until: float) -> Iterator[int]:
    """Yield the keys of connections in the order in which their peers begin to answer.

    What has been closed comes as soon as that is seen, what has not been answered in time last.
    """
    waiting = dict(connections)
    while len(waiting) > 1 and (left := until - time.monotonic()) > 0:
        found = []
        with _Selector() as selector:
            for k, connection in waiting.items():
                try:
                    selector.register(connection, selectors.EVENT_READ, k)
                except (ValueError, KeyError):  # closed, its number another's perhaps
                    found.append(k)
            ready = selector.select(0 if found else min(left, LOOKING))
        for k in found + [key.data for key, _ in ready]:
            del waiting[k]
            yield k
    yield from waiting


def connect(address: tuple[str, int], context: ssl.SSLContext | None) -> Connection:
    """Return a connection to a listener."""
    peer = socket.create_connection(address, timeout=CONNECTING)
    try:
        return Connection(peer if context is None else context.wrap_socket(peer))
    except BaseException:
        peer.close()
        raise


class Listener:
    """What takes connections, and gives each with its first message to a function.

    Parameters
    ----------
    host : str
        Address of the interface.
    context : SSLContext, or None
        Of the cluster, where it uses TLS.
    welcome : callable
        Takes a connection and its first message; a connection at which it raises is closed.
    """

    def __init__(
        self,
        host: str,
        context: ssl.SSLContext | None,
        welcome: Callable[[Connection, bytearray], Any],
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=1024)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._context, self._welcome = context, welcome
        threading.Thread(target=self._accept, name="pboost-listen", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:  # closed
                return
            # A stranger that says nothing must not keep others waiting.
            threading.Thread(target=self._meet, args=[peer], daemon=True).start()

    def _meet(self, peer: socket.socket) -> None:
        connection = None
        try:
            peer.settimeout(CONNECTING)
            if self._context is not None:
                peer = self._context.wrap_socket(peer, server_side=True)
            connection = Connection(peer)
            self._welcome(connection, connection.read(time.monotonic() + CONNECTING, FIRST))
        except Exception:  # whatever a stranger sends
            peer.close() if connection is None else connection.close()

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # so that the thread that accepts ends
        self._socket.close()
