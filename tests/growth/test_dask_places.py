"""Answers of places, by connections that are there already: read as they come, told in order."""

import socket
import threading
from types import SimpleNamespace

import pytest

from pboost.growth.channel import pack
from pboost.growth.connections import Connection
from pboost.growth.dask_places import DaskPlaces, _Line
from pboost.weak.shards import Shard

CLIENT = SimpleNamespace(status="running", sync=lambda *_: 2)


@pytest.fixture
def asked():
    """Return two places, and how the peer of each answers."""
    ends = [[Connection(end) for end in socket.socketpair()] for _ in range(2)]
    places = DaskPlaces(CLIENT, [(), ()], Shard)
    places.lines = [_Line(here, None) for here, _ in ends]

    def answer(number, kind, found):
        ends[number][1].write(pack((kind, found), places._key))

    yield places, answer
    for pair in ends:
        for end in pair:
            end.close()


def test_answers_have_the_order_of_places(asked):
    places, answer = asked
    answer(1, "found", [2])
    late = threading.Timer(0.05, answer, [0, "found", [1]])
    late.start()
    assert places.ask("extent") == [1, 2]
    late.join()


def test_of_two_errors_that_of_the_first_place_is_raised(asked):
    places, answer = asked
    answer(1, "error", "KeyError: second")
    late = threading.Timer(0.05, answer, [0, "error", "KeyError: first"])
    late.start()
    with pytest.raises(RuntimeError, match="could not answer 'extent': KeyError: first"):
        places.ask("extent")
    late.join()
