"""Connections between a fit and what answers for rows: every wait ends, and nothing is believed."""

import socket
import threading
import time

import pytest

from pboost.growth import connections
from pboost.growth.channel import MessageError
from pboost.growth.connections import Connection, Listener, as_answered, connect


@pytest.fixture
def pair():
    """Return both ends of a connection."""
    here, there = map(Connection, socket.socketpair())
    yield here, there
    here.close()
    there.close()


@pytest.fixture
def listener():
    """Return a listener, and what it has welcomed; a message that begins with 0 is refused."""
    welcomed = []

    def welcome(connection, message):
        welcomed.append((connection, 1 // message[0]))

    found = Listener("127.0.0.1", None, welcome)
    yield found, welcomed
    found.close()


@pytest.mark.parametrize("size", [0, 1, 1000, 300_000])
def test_messages_arrive(pair, size):
    here, there = pair
    message = bytes(range(256)) * (size // 256 + 1)
    sent = threading.Thread(target=here.write, args=[message[:size]])
    sent.start()
    assert there.read(time.monotonic() + 5) == message[:size]
    sent.join()


def test_waits_end(pair):
    here, there = pair
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        here.read(begun + 0.05)
    with pytest.raises(TimeoutError):  # nobody reads
        here.write(bytes(1 << 24), begun + 0.1)
    with pytest.raises(TimeoutError, match="has not answered in time"):
        there.read(begun)
    assert time.monotonic() - begun < 2


def test_a_message_that_comes_in_pieces_has_one_limit():
    here, there = socket.socketpair()
    until, is_over = time.monotonic() + 0.2, threading.Event()

    def trickle():
        there.sendall((100).to_bytes(8, "little"))
        while not is_over.wait(0.02):
            there.sendall(b"a")

    slow = threading.Thread(target=trickle)
    slow.start()
    with pytest.raises(TimeoutError):
        Connection(here).read(until)
    assert time.monotonic() - until < 1
    is_over.set()
    slow.join()
    here.close()
    there.close()


def test_long_messages_are_not_read(pair):
    here, there = pair
    here.write(bytes(100))
    with pytest.raises(MessageError, match="expected at most 99 bytes, got 100"):
        there.read(most=99)


def test_an_end_that_closes_wakes_the_other_and_itself(pair):
    here, there = pair
    threading.Timer(0.05, here.close).start()
    with pytest.raises(ConnectionResetError):
        there.read(time.monotonic() + 5)
    threading.Timer(0.05, there.close).start()
    with pytest.raises(OSError):
        there.read(time.monotonic() + 5)


def test_strangers_do_not_keep_others_waiting(listener, monkeypatch):
    monkeypatch.setattr(connections, "CONNECTING", 0.2)
    found, welcomed = listener
    with (
        socket.create_connection(found.address) as silent,
        socket.create_connection(found.address) as long,
    ):
        long.sendall((connections.FIRST + 1).to_bytes(8, "little"))
        refused, friend = connect(found.address, None), connect(found.address, None)
        refused.write(b"\0")
        friend.write(b"\1")
        with pytest.raises(OSError):
            refused.read(time.monotonic() + 5)
        refused.close()
        until = time.monotonic() + 5
        while not welcomed:
            assert time.monotonic() < until
            time.sleep(0.01)
        silent.settimeout(5)
        assert [silent.recv(1), long.recv(1)] == [b"", b""]
    welcomed[0][0].write(b"hello")
    assert friend.read(until) == b"hello"
    friend.close()
    welcomed[0][0].close()


def test_a_listener_that_is_closed_takes_no_connection(listener):
    found, _ = listener
    found.close()
    with pytest.raises(OSError):
        connect(found.address, None)


@pytest.fixture
def pairs():
    """Return both ends of three connections."""
    found = [[Connection(end) for end in socket.socketpair()] for _ in range(3)]
    yield [here for here, _ in found], [there for _, there in found]
    for pair in found:
        for end in pair:
            end.close()


def test_answers_are_read_as_they_come(pairs):
    here, there = pairs
    there[1].write(b"first")
    keys = []
    for k in as_answered(dict(enumerate(here)), time.monotonic() + 5):
        assert here[k].read(time.monotonic() + 5)
        keys.append(k)
        if len(keys) < 3:
            there[2 * (len(keys) == 1)].write(b"next")
    assert keys == [1, 2, 0]


def test_what_has_not_answered_in_time_comes_last(pairs):
    here, there = pairs
    there[2].write(b"in time")
    begun = time.monotonic()
    assert list(as_answered(dict(enumerate(here)), begun + 0.1)) == [2, 0, 1]
    assert 0.1 <= time.monotonic() - begun < 2
    assert list(as_answered(dict(enumerate(here)), begun)) == [0, 1, 2]


def test_a_connection_that_another_thread_closes_is_not_waited_for(pairs):
    here, _ = pairs
    here[1].close()
    threading.Timer(0.05, here[2].close).start()
    begun = time.monotonic()
    found = as_answered(dict(enumerate(here)), begun + 60)
    assert [next(found), next(found)] == [1, 2]
    assert time.monotonic() - begun < 5
