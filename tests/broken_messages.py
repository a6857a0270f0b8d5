"""Broken messages between a fit and what answers for rows elsewhere: refused, and nothing else.

``python tests/broken_messages.py --count 100000`` reads so many messages that have been changed: in
part with the digest as it was, in part with the right digest of what has been changed, as only who
has the key can make it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

import numpy as np

from pboost.growth import channel
from pboost.growth.shard_trees import Answer, Question, SentSplit, TreeShard
from pboost.weak.shards import Extent, SentCut, Shard

KEY = bytes(range(32))
RECORDS = channel.records_of(Shard) | channel.records_of(TreeShard)
#: Seconds that no message may take.
LIMIT = 1.0
#: What JSON is made of, and what messages name.
PIECES = (
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b'"',
    b"null",
    b"1e999",
    b"-1",
    b"NaN",
    b"0",
    b"9" * 40,
    b"[" * 5000,
    b'{"array":' * 300,
    b'"tuple"',
    b'"record"',
    b'"array"',
    b'"<i8"',
    b'"|O"',
    b'"SentCut"',
    b'"__class__"',
    b"\xff",
    b"\x00" * 8,
    b"4611686018427387904",
)


def values() -> list[Any]:
    """Return what is sent."""
    side = (np.arange(256) > 9).astype(np.uint8)
    cut = SentCut(3, side, np.array([[0.5, 1.5], [np.inf, 5e-324]]))
    return [
        ("masses", (7, [cut, cut])),
        ("found", [np.arange(60, dtype=np.int64).reshape(5, 2, 6) - 30]),
        ("found", [Extent((3, 2**40), np.zeros((0, 4), dtype=np.int64), 1e300)]),
        ("masses", (0, [SentSplit(0, 1, 2, side), Question("cells", 1, -3)])),
        ("found", [Answer(np.empty(0, dtype=np.int64), np.array([0.25]))]),
        ("scaled_sum", (-1073, 52)),
        ("found", [(2**62, True)]),
        ("error", "ValueError: é"),
        ("found", [None]),
        5,
    ]


def changed(message: bytes, draw: random.Random) -> bytes:
    """Return a message with a few bytes, or a piece, changed, added or left out."""
    found = bytearray(message)
    for _ in range(draw.randint(1, 3)):
        at, kind = draw.randrange(len(found) + 1), draw.randrange(5)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del found[at:]
        elif kind == 2:
            del found[at : at + draw.randint(1, 8)]
        elif kind == 3:
            found[at:at] = draw.choice(PIECES)
        else:
            piece = draw.choice(PIECES)
            found[at : at + len(piece)] = piece
    return bytes(found)


def broken(draw: random.Random, sent: list[bytes]) -> tuple[bytes, bool]:
    """Return a broken message, and whether its digest is right."""
    message = draw.choice(sent)
    if draw.random() < 0.3:
        other = changed(message, draw)
        return (other, False) if other != message else (message[:-1], False)
    content = changed(message[channel.DIGEST :], draw)
    if draw.random() < 0.5 and len(content) > channel.LENGTH:  # the length goes with the rest
        least = message[channel.DIGEST :][: channel.LENGTH]
        grown = int.from_bytes(least, "little") + len(content) - len(message) + channel.DIGEST
        content = max(grown, 0).to_bytes(channel.LENGTH, "little") + content[channel.LENGTH :]
    return channel._digest(content, KEY) + content, True


def check(count: int, seed: int) -> dict[str, int]:
    """Read broken messages; return how many were refused, and how many of right digest taken."""
    draw = random.Random(seed)
    sent = [channel.pack(value, KEY) for value in values()]
    found = {"refused": 0, "taken": 0}
    for k in range(count):
        message, has_digest = broken(draw, sent)
        begun = time.monotonic()
        try:
            channel.unpack(message, KEY, RECORDS)
        except channel.MessageError:
            found["refused"] += 1
        else:
            if not has_digest:
                raise AssertionError(f"message {k} has been taken with another digest")
            found["taken"] += 1
        if time.monotonic() - begun > LIMIT:
            raise AssertionError(f"message {k} took {time.monotonic() - begun:.1f} s")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begun = time.monotonic()
    found = check(options.count, options.seed)
    print(
        f"{options.count} broken messages in {time.monotonic() - begun:.0f} s: {found['refused']} "
        f"refused, {found['taken']} of the right digest say something else; none of another digest "
        "was taken, none failed in another way"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
