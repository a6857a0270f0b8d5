"""Messages without pickles: what is sent arrives, and what is broken is refused."""

import json

import numpy as np
import pytest
from broken_messages import KEY, RECORDS, check, values

from pboost.growth.channel import DIGEST, LENGTH, MessageError, _digest, pack, unpack


def same(ours, theirs):
    if isinstance(ours, np.ndarray):
        assert theirs.dtype == ours.dtype
        assert theirs.flags.writeable
        np.testing.assert_array_equal(theirs, ours)
    elif isinstance(ours, tuple | list):
        assert type(theirs) is type(ours)
        assert len(theirs) == len(ours)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    elif hasattr(ours, "__slots__"):
        assert type(theirs) is type(ours)
        for name in ours.__slots__:
            same(getattr(ours, name), getattr(theirs, name))
    else:
        assert (type(theirs), theirs) == (type(ours), ours)


def test_what_is_sent_arrives():
    for value in [*values(), 0.1, -0.0, np.inf, [[]], {"a": 0}.get("b"), np.int32(3).item()]:
        same(value, unpack(pack(value, KEY), KEY, RECORDS))
    big = np.arange(6, dtype=">i8").reshape(2, 3).T
    np.testing.assert_array_equal(unpack(pack(big, KEY), KEY, {}), big)
    assert unpack(pack(np.float64(0.1), KEY), KEY, {}) == 0.1


def test_nothing_else_can_be_sent():
    for value in ({1}, b"bytes", object(), [lambda: 0]):
        with pytest.raises(TypeError, match="a message cannot hold"):
            pack(value, KEY)


def test_broken_messages_are_refused():
    found = check(3000, seed=1)
    assert found["refused"] > 2500


def described(content, arrays=b""):
    text = json.dumps(content).encode() if not isinstance(content, bytes) else content
    whole = len(text).to_bytes(LENGTH, "little") + text + arrays
    return _digest(whole, KEY) + whole


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"", "digest"),
        ("text", "got str"),
        (None, "got NoneType"),
        (pack(1, b"another key"), "digest"),
        (pack(1, KEY)[:-1], "digest"),
        (_digest(b"\xff\xff\xff\xff1", KEY) + b"\xff\xff\xff\xff1", "cut short"),
        (described({"array": ["<i8", [2**62, 2**62]]}), "no array that is sent"),
        (described({"array": ["<i8", [3]]}, bytes(16)), "an array is cut short"),
        (described({"array": ["|O", [1]]}, bytes(8)), "no array that is sent"),
        (described({"array": ["<i8", [-1]]}), "no array that is sent"),
        (described({"array": ["<i8", [True]]}, bytes(8)), "no array that is sent"),
        (described(1, b"more"), "4 bytes are left over"),
        (described({"record": ["Popen", ["ls"]]}), "Popen"),
        (described({"record": ["Extent", [1]]}), "missing"),
        (described({"class": 1}), "unknown kind"),
        (described({}), "not enough values"),
        (described(b"[" * 100_000), "recursion"),
        (described(b'{"tuple":[' * 900 + b"]}" * 900), "recursion"),
    ],
    ids=range(18),
)
def test_what_is_wrong_is_said(message, said):
    with pytest.raises(MessageError, match=said):
        unpack(message, KEY, RECORDS)


def test_the_digest_covers_everything():
    message = pack(values()[1], KEY)
    for at in (0, DIGEST - 1, DIGEST, DIGEST + LENGTH + 3, len(message) - 1):
        other = bytearray(message)
        other[at] ^= 1
        with pytest.raises(MessageError, match="digest"):
            unpack(bytes(other), KEY, RECORDS)
