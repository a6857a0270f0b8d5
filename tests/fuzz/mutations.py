"""Mutations of model files that get past the digests and checksums."""

from __future__ import annotations

import copy
import hashlib
import io
import itertools
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.corpus import Parts, take_apart
from fuzz.draw import Generator

#: Numbers that are put in the place of others.
REALS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    -1e308,
    1e154,
    5e-324,
    1e-300,
    2.0**31,
    2.0**63,
    1e18,
)
INTEGERS = (
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    63,
    64,
    2**15,
    2**24,
    2**31 - 1,
    -(2**31),
    2**25,
    2**30,
    2**31,
    2**62,
    -(2**63),
    2**63 - 1,
)
#: What header fields are set to.
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    -5,
    2**31 - 1,
    2**31,
    2**63,
    10**30,
    0.0,
    -0.0,
    1.5,
    1e308,
    -1e308,
    5e-324,
    "",
    "x",
    "\x00",
    "\ud800",
    "a" * 300,
    [],
    {},
    [1, 2],
    ["a", "b", "c"],
    ["a", "a", "a"],
    [None],
    {"kind": "sampled"},
    {"kind": "gaussian"},
    {"kind": 1},
    [[[]]],
    "log_loss",
    "hinge",
    "squared_error",
    "exponential",
    "probit",
    "hard",
    "soft",
    "gini",
    "squared_error",
    "error",
    "classification",
    "regression",
    "fit_adaboost",
    "fit_cart",
)
#: Fields and settings that are worth more tries than others.
FIELDS = (
    "n_features",
    "feature_names",
    "bias",
    "stop_reason",
    "settings",
    "kind",
    "loss",
    "voting",
    "chosen",
    "oob_error",
    "intercept",
    "version",
    "format",
    "columns",
    "pboost",
)
SETTINGS = (
    "observation",
    "weak_learner",
    "builder",
    "growth",
    "criterion",
    "task",
    "smoothing",
    "n_estimators",
    "learning_rate",
    "fit",
    "max_depth",
    "loss",
    "max_nodes",
    "shape",
    "collect",
)
DTYPES = (
    "<f8",
    "<f4",
    "<i4",
    "<i8",
    "|i1",
    "|u1",
    "|b1",
    ">f8",
    ">i4",
    "<U1",
    "<U3",
    "|S2",
    "<c16",
    "<f2",
    "<u8",
    "<M8[s]",
    "|V4",
    "<i2",
)
#: Shapes that a header claims without having them.
CLAIMS = (
    b"(0, 9223372036854775808)",
    b"(-1,)",
    b"(9223372036854775807,)",
    b"(4, 4611686018427387904)",
    b"()",
    b"(0,)",
    b"(1, 1, 1)",
    b"(2**3,)",
    b"(3.0,)",
    b"(None,)",
    b"(True,)",
    b"([1],)",
    b"(0, 0, 9223372036854775807)",
    b"(1,) * 9",
    b"(" + b"1, " * 70 + b")",
)

#: The same, of more than any memory holds, and nested deep.
LARGE = (b"(10000000000000,)", b"(4, 10000000000000)", b"[" * 9000, b"(" * 9000, b"[" * 60_000)

#: Members that are put in, some of other kinds of models.
NEW = (
    "answer",
    "sigma",
    "stages",
    "validation",
    "labels",
    "projection_start",
    "oob_n_estimators",
    "separator_start",
    "pruning_ccp_alpha",
    "extra",
    "../up",
    "",
)


@dataclass
class Draft:
    """A file that is being changed."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]
    #: Bytes of members in place of those that the array would have.
    raw: dict[str, bytes] = field(default_factory=dict)
    #: Members that the zip directory has besides, in order.
    more: list[tuple[str, bytes]] = field(default_factory=list)
    #: Entries of ``columns`` that are not sealed again.
    entries: dict[str, Any] = field(default_factory=dict)
    text: bytes | None = None
    log: list[str] = field(default_factory=list)


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=True)
    return buffer.getvalue()


def seal(draft: Draft) -> bytes:
    """Return the file, with digests and checksums that fit."""
    members, columns = {}, {}
    for name, array in draft.arrays.items():
        content = draft.raw.get(name)
        content = npy(array) if content is None else content
        members[name] = content
        columns[name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    header = {**draft.header}
    if isinstance(header.get("columns"), dict):
        header["columns"] = {**columns, **draft.entries}
    header.pop("digest", None)
    text = draft.text
    if text is None:
        plain = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        header["digest"] = hashlib.sha256(plain).hexdigest()
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    actual = [("header", npy(np.frombuffer(text, np.uint8))), *members.items(), *draft.more]
    return archive(actual)


def archive(members: list[tuple[str, bytes]]) -> bytes:
    """Return an uncompressed zip archive; members may have the same name."""
    body, directory = bytearray(), bytearray()
    for name, content in members:
        path = f"{name}.npy".encode("utf-8", "surrogatepass")
        crc, size = zlib.crc32(content), len(content)
        common = struct.pack("<5H3L2H", 20, 0x800, 0, 0, 33, crc, size, size, len(path), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + common
        directory += struct.pack("<3H2L", 0, 0, 0, 0o600 << 16, len(body)) + path
        body += b"PK\3\4" + common + path + content
    end = struct.pack(
        "<4s4H2LH", b"PK\5\6", 0, 0, len(members), len(members), len(directory), len(body), 0
    )
    return bytes(body + directory + end)


# Arrays


def any_name(rng: Generator, draft: Draft) -> str:
    names = list(draft.arrays)
    return names[int(rng.integers(len(names)))] if names else ""


def value_for(rng: Generator, array: np.ndarray) -> Any:
    """Return a value, extreme or like others, for a member."""
    kind = array.dtype.kind
    if array.size and rng.random() < 0.3:
        return array.ravel()[int(rng.integers(array.size))]
    if kind == "f":
        return REALS[int(rng.integers(len(REALS)))]
    if kind in "iu":
        info = np.iinfo(array.dtype)
        return np.clip(INTEGERS[int(rng.integers(len(INTEGERS)))], int(info.min), int(info.max))
    return {"b": True, "U": "q", "S": b"q"}.get(kind, np.zeros((), array.dtype)[()])


def set_value(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    flat = array.copy().reshape(-1)
    if flat.size:
        for _ in range(int(rng.integers(1, 4))):
            flat[int(rng.integers(flat.size))] = value_for(rng, array)
    draft.arrays[name] = flat.reshape(array.shape)


def step_value(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    flat = array.copy().reshape(-1)
    if flat.size and flat.dtype.kind in "iuf":
        place = int(rng.integers(flat.size))
        if flat.dtype.kind == "f":
            with np.errstate(all="ignore"):
                flat[place] = rng.choice(
                    [
                        np.nextafter(flat[place], np.inf),
                        -flat[place],
                        flat[place] * 2,
                        flat[place] + 1,
                    ]
                )
        else:
            step = rng.choice([-1, 1])
            info = np.iinfo(flat.dtype)
            flat[place] = np.clip(int(flat[place]) + int(step), int(info.min), int(info.max))
    draft.arrays[name] = flat.reshape(array.shape)


def fill(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    with np.errstate(over="ignore"):  # infinity is a value, too
        draft.arrays[name] = np.full_like(array, value_for(rng, array))


def reorder(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    if array.ndim:
        how = int(rng.integers(3))
        first = (
            array[::-1]
            if how == 0
            else rng.permutation(array)
            if how == 1
            else np.roll(array, 1, 0)
        )
        draft.arrays[name] = np.ascontiguousarray(first)


def reshape(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    how = int(rng.integers(8))
    forms: tuple[Callable[[], np.ndarray], ...] = (
        lambda: array[:-1],
        lambda: np.concatenate([array, array[-1:]]),
        lambda: array[:0],
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[..., None],
        lambda: np.concatenate([array, array]),
        lambda: array.T,
    )
    if array.ndim:
        draft.arrays[name] = np.ascontiguousarray(forms[how]())


def resize_all(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    """Shorten or lengthen all members of the same length."""
    if not array.ndim:
        return
    n, longer = len(array), rng.random() < 0.5
    for other, values in draft.arrays.items():
        if values.ndim and len(values) == n:
            draft.arrays[other] = np.concatenate([values, values[-1:]]) if longer else values[:-1]


def retype(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    dtype = np.dtype(DTYPES[int(rng.integers(len(DTYPES)))])
    try:
        with np.errstate(all="ignore"):
            actual = array.astype(dtype)
    except (ValueError, TypeError):
        actual = np.zeros(array.shape, dtype)
    draft.arrays[name] = actual if rng.random() < 0.95 else array.astype(object)


def swap(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    other = any_name(rng, draft)
    draft.arrays[name], draft.arrays[other] = draft.arrays[other], array


def copy_over(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    other = draft.arrays[any_name(rng, draft)]
    if other.size and array.size and other.dtype.kind == array.dtype.kind:
        draft.arrays[name] = np.resize(other, array.shape).astype(array.dtype)


def drop(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    del draft.arrays[name]


def claim(
    rng: Generator, draft: Draft, name: str, array: np.ndarray, claims: tuple[bytes, ...] = CLAIMS
) -> None:
    """Say another shape in the member's own header, or damage it."""
    content = npy(array)
    start, stop = content.index(b"(", 60), content.index(b")", 60) + 1
    said = claims[int(rng.integers(len(claims)))]
    old = content[10 : content.index(b"\n") + 1]
    new = old[: start - 10] + said + old[stop - 10 :].rstrip()
    new = new + b" " * (-(len(new) + 11) % 64) + b"\n"
    content = content[:8] + struct.pack("<H", len(new)) + new + content[10 + len(old) :]
    if rng.random() < 0.2:
        content = content.replace(b"'fortran_order': False", b"'fortran_order': True ")
    draft.raw[name] = content


def garble(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    content = bytearray(npy(array))
    for _ in range(int(rng.integers(1, 4))):
        content[int(rng.integers(len(content)))] = int(rng.integers(256))
    draft.raw[name] = bytes(content)


# Headers


def set_field(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    known = FIELDS if rng.random() < 0.7 else tuple(draft.header)
    field_ = known[int(rng.integers(len(known)))]
    value = VALUES[int(rng.integers(len(VALUES)))]
    if rng.random() < 0.15:
        draft.header.pop(field_, None)
    elif field_ == "n_features" and rng.random() < 0.7:
        now = draft.header.get("n_features")
        draft.header[field_] = (now if isinstance(now, int) else 3) + int(rng.choice([-1, 1, 100]))
    else:
        draft.header[field_] = value


def set_setting(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    settings = draft.header.get("settings")
    if not isinstance(settings, dict):
        return
    known = SETTINGS if rng.random() < 0.5 or not settings else tuple(settings)
    key = known[int(rng.integers(len(known)))]
    inner = settings.get(key)
    value = VALUES[int(rng.integers(len(VALUES)))]
    if isinstance(inner, dict) and inner and rng.random() < 0.6:
        inner[list(inner)[int(rng.integers(len(inner)))]] = value
    elif rng.random() < 0.2:
        settings.pop(key, None)
    else:
        settings[key] = value


def deepen(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    value: Any = 0
    for _ in range(int(rng.choice([5, 300, 900]))):
        value = [value]
    draft.header["settings"] = {"deep": value}


def set_entry(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    """Change what the header says of a member."""
    if not name:
        return
    value = VALUES[int(rng.integers(len(VALUES)))]
    entry = {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(npy(array)).hexdigest(),
    }
    key = ("dtype", "shape", "sha256", "other")[int(rng.integers(4))]
    draft.entries[name if rng.random() < 0.8 else "unknown"] = {**entry, key: value}


def spoil_text(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    text = json.dumps(draft.header, sort_keys=True).encode()
    how = int(rng.integers(5))
    at = int(rng.integers(len(text)))
    draft.text = (
        text[:at],
        text.replace(b"null", b"NaN"),
        text[:at] + b"\xff" + text[at:],
        b"[" * 5000 + text,
        text[:-1] + b', "version": [1, 1], "kind": 3}',
    )[how]


# Members


def repeat_member(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    draft.more.append((name, npy(array)))


def add_member(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    draft.arrays[NEW[int(rng.integers(len(NEW)))]] = array


def inside(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    """Change a file within the file."""
    joined, start = draft.arrays.get("models"), draft.arrays.get("model_start")
    if joined is None or start is None or start.ndim != 1 or len(start) < 2:
        return
    try:
        files = [joined[a:b].tobytes() for a, b in itertools.pairwise(start.tolist())]
        k = int(rng.integers(len(files)))
        how = rng.random()
        if how < 0.1:
            files[k] = files[int(rng.integers(len(files)))]
        elif how < 0.15:
            del files[k]
        else:
            files[k] = mutated(rng, take_apart("", files[k]))[0]
    except Exception:  # it has been damaged before
        return
    draft.arrays["models"] = np.frombuffer(b"".join(files), np.uint8)
    draft.arrays["model_start"] = np.cumsum([0, *map(len, files)], dtype=np.int64)


# What takes memory

Edit = Callable[[Generator, Draft, str, np.ndarray], None]


def claim_much(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    if name:
        claim(rng, draft, name, array, LARGE)


def enlarge(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    """Repeat what a member holds very often, or have one long string among others."""
    if array.dtype.kind == "U" and array.size:
        words = array.ravel().tolist()
        words[int(rng.integers(len(words)))] = "z" * int(rng.choice([2000, 200_000]))
        draft.arrays[name] = np.array(words).reshape(array.shape)
    elif array.size and array.ndim:
        draft.arrays[name] = np.resize(array, (200_000, *array.shape[1:]))


def bloat(rng: Generator, draft: Draft, name: str, array: np.ndarray) -> None:
    """Have the header say many small things, or of more columns than there are."""
    if rng.random() < 0.2:
        draft.header["n_features"] = int(rng.choice([2**20, 2**25 - 1, 2**25, 2**31 - 1]))
        return
    small: tuple[Any, ...] = ([0], {}, {"": 0}, "ab", 0.5, [[]], -9)
    names = (*FIELDS, "seen", "missing", "more")
    piece = small[int(rng.integers(len(small)))]
    draft.header[names[int(rng.integers(len(names)))]] = [piece] * int(rng.choice([3000, 10**5]))


HOSTILE: tuple[Edit, ...] = (claim_much, enlarge, enlarge, bloat, bloat)


def hostile(rng: Generator, parts: Parts) -> tuple[bytes, list[str]]:
    """Return a file, sealed, that was made to take memory, and what was changed."""
    draft = Draft(copy.deepcopy(parts.header), dict(parts.arrays))
    for edit in rng.permutation(len(HOSTILE))[: int(rng.integers(1, 3))]:
        name = any_name(rng, draft)
        draft.log.append(f"{HOSTILE[edit].__name__} {name}")
        HOSTILE[edit](rng, draft, name, draft.arrays.get(name, np.zeros(1)))
    return seal(draft), draft.log


#: Edits, those that get far more often.
EDITS: tuple[Edit, ...] = (
    *(set_value,) * 8,
    *(step_value,) * 6,
    *(fill,) * 2,
    *(reorder,) * 3,
    *(reshape,) * 2,
    *(resize_all,) * 2,
    *(retype,) * 2,
    *(swap,) * 3,
    *(copy_over,) * 3,
    *(drop,) * 2,
    claim,
    garble,
    *(set_field,) * 6,
    *(set_setting,) * 5,
    deepen,
    set_entry,
    spoil_text,
    repeat_member,
    *(add_member,) * 2,
)


def mutated(rng: Generator, parts: Parts) -> tuple[bytes, list[str]]:
    """Return another file, sealed, and what was changed."""
    draft = Draft(copy.deepcopy(parts.header), dict(parts.arrays))
    composite = "models" in draft.arrays
    for _ in range(1 + int(rng.random() < 0.3) + int(rng.random() < 0.1)):
        edit = EDITS[int(rng.integers(len(EDITS)))]
        if composite and rng.random() < 0.6:
            edit = inside
        name = any_name(rng, draft)
        draft.log.append(f"{edit.__name__} {name}")
        edit(rng, draft, name, draft.arrays.get(name, np.zeros(1)))
    return seal(draft), draft.log


def damaged(rng: Generator, content: bytes) -> bytes:
    """Return a file with other bytes, whose digests are those of before."""
    actual = bytearray(content)
    how = int(rng.integers(4))
    if how == 0:
        return bytes(actual[: int(rng.integers(len(actual)))])
    if how == 1:
        at = int(rng.integers(len(actual)))
        return bytes(actual[:at] + bytes(rng.integers(0, 256, 5).tolist()) + actual[at:])
    # The directory at the end is what zipfile reads first.
    last = min(len(actual), 2000) if how == 2 else len(actual)
    for _ in range(int(rng.integers(1, 5))):
        actual[len(actual) - 1 - int(rng.integers(last))] = int(rng.integers(256))
    return bytes(actual)
