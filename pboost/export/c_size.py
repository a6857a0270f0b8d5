"""How many bytes a model takes on a small device: its tables, and code by what it has to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.export.c_code import Code
from pboost.export.c_fixed import Grid, compared, fixed_part
from pboost.export.c_folded import folded
from pboost.export.c_members import write_part
from pboost.export.c_parts import Leaving, Walk
from pboost.export.c_parts_of import part_of
from pboost.export.c_text import TYPES
from pboost.models.base import Model

#: Bytes of code of Cortex-M0 as arm-none-eabi-gcc -Os makes it of walks in int16 that add up one
#: number: of chains, whose nodes add one vote each, other graphs, one tree, and several.
CHAIN, GRAPH, TREE, TREES = 101, 108, 104, 132
#: Bytes more where several numbers are added up, of each of them, and where nodes ask for sets, of
#: at most eight levels or of more; fewer where numbers are predicted.
SEVERAL, EACH, SMALL_SETS, SETS, NUMBER = 62, 2, 36, 54, 16
#: The same of walks that rows leave early, with what asks at joints and multiplies by slopes;
#: beside these what is more for two decision values or three, whose loops are unrolled, or more,
#: and where they are shares, of one, two or three, or more.
LEAVING_CHAIN, LEAVING_GRAPH, LEAVING_TREES = 226, 228, 260
LEAVING_FEW, LEAVING_SEVERAL, LEAVING_SMALL_SETS, LEAVING_SETS = 198, 90, 44, 58
SHARE, FEW_SHARES, SHARES = 48, 92, 134
#: The most decision values whose loops are unrolled.
FEW = 3
#: An address.
ADDRESS = 4


def c_size(model: Model) -> int:
    """Return about how many bytes the file of a model takes in int16.

    Raises
    ------
    NotImplementedError
        If the model cannot be exported in int16.
    """
    part = folded(model, part_of(model))
    compared(part)
    # Where thresholds lie makes no difference to their room.
    grid = Grid(*np.broadcast_to([[0.0], [1.0]], (2, model.n_features)))
    return fixed_size(model, fixed_part(part, grid).part)


def fixed_size(model: Model, part: Walk | Leaving) -> int:
    """Return about how many bytes a walk in fixed point takes with its labels."""
    code = Code(TYPES["int16"], TYPES["int32"], model.takes_missing)
    write_part(code, "", part)
    own = _code(part) if isinstance(part, Walk) else _code_leaving(part)
    return code.n_bytes + _labels(model.labels) + own - NUMBER * (model.labels is None)


def _labels(labels: NDArray[Any] | None) -> int:
    """Return the bytes of the table of labels, and of their names."""
    if labels is None:
        return 0
    if labels.dtype.kind != "U":
        is_whole = labels.dtype.kind in "biu" and bool((np.abs(labels.astype(float)) < 2**31).all())
        return len(labels) * (4 if is_whole else 8)
    names = (label.encode("utf-8", "surrogatepass") for label in labels.tolist())
    return sum(ADDRESS + len(name) + 1 for name in names)


def _code(walk: Walk) -> int:
    """Return the bytes of code."""
    if walk.vote is None:
        found = TREES if len(walk.root) > 1 else TREE
    elif walk.is_chain and walk.vote.shape[-1] == 1:
        found = CHAIN
    else:
        found = GRAPH
    if (walk.tests.set_number >= 0).any():
        found += SETS if walk.tests.member.shape[1] > 1 else SMALL_SETS
    several = walk.n_scores if walk.n_scores > 1 else 0
    return found + SEVERAL * (several > 0) + EACH * several


def _code_leaving(part: Leaving) -> int:
    """Return the bytes of code of a walk that rows leave early."""
    walk, n = part.walk, part.n_scores
    if walk.vote is None:
        found = LEAVING_TREES
    else:
        found = LEAVING_CHAIN if walk.is_chain else LEAVING_GRAPH
    if (walk.tests.set_number >= 0).any():
        found += LEAVING_SETS if walk.tests.member.shape[1] > 1 else LEAVING_SMALL_SETS
    if n > 1:
        found += LEAVING_FEW if n <= FEW else LEAVING_SEVERAL + EACH * n
    if part.is_share:
        found += SHARE if n == 1 else FEW_SHARES if n <= FEW else SHARES
    return found
