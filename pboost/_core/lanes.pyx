"""Codes of columns in lanes, as the rounds of boosting count them (see `boost`): a byte for each row.

A column has a lane to itself, or is in a bundle: columns of two bins share one if no row lies in the
chosen bin of two of them. The lane of a bundle holds 0, or the number, from 1 on, of the column in whose
chosen bin the row lies.
"""
from libc.string cimport memcpy, memset

from pboost._core.types cimport int32_t, uint8_t, uint64_t

cdef enum:
    LANES = 8  # that stand together
    OPEN = 16  # bundles that a column may still join: those that were joined last
    MOST = 255  # columns of a bundle

#: Lanes that stand together, and sets of rows that `bundle` works with.
GROUP_LANES, WORK_SETS = LANES, OPEN + 2

cdef struct Bundle:
    int32_t first, size
    uint64_t* rows  # those in the chosen bin of a column


cdef Py_ssize_t pack(const uint8_t* codes, Py_ssize_t n, uint64_t* bits) noexcept nogil:
    """Codes 0 and 1 as bits, in some order, 0 behind the last; returns how many are 1."""
    cdef uint64_t eight, word
    cdef Py_ssize_t i, w, k, count = 0
    for w in range((n + 63) // 64):
        word = 0
        for k in range(min(8, (n - 64 * w + 7) // 8)):
            i, eight = 64 * w + 8 * k, 0
            memcpy(&eight, codes + i, min(n - i, 8))
            count += <Py_ssize_t>(eight * <uint64_t>0x0101010101010101 >> 56)
            word |= (eight * <uint64_t>0x0102040810204080 >> 56) << 8 * k
        bits[w] = word
    return count


cdef inline uint64_t flip(bint is_other) noexcept nogil:
    return ~<uint64_t>0 if is_other else 0


cdef bint exclude(
    const uint64_t* a, bint other_a, const uint64_t* b, bint other_b, const uint64_t* all_,
    Py_ssize_t words
) noexcept nogil:
    """Whether no row is in both sets; either may be exchanged for all rows that are not in it."""
    cdef Py_ssize_t w
    for w in range(words):
        if (a[w] ^ flip(other_a)) & (b[w] ^ flip(other_b)) & all_[w]:
            return False
    return True


cdef int way_to_join(
    const Bundle* bundle, const uint64_t* own, const uint64_t* all_, Py_ssize_t words
) noexcept nogil:
    """How a column may join: with its rarer bin (0) or the other one (1), and, if 2 is added, after the
    only column that is there has changed its own; -1 if it may not."""
    cdef int way
    if bundle.size < MOST:
        for way in range(4 if bundle.size == 1 else 2):
            if exclude(bundle.rows, way >> 1, own, way & 1, all_, words):
                return way
    return -1


cdef void join(
    Bundle* bundle, const uint64_t* own, int way, const uint64_t* all_, Py_ssize_t words
) noexcept nogil:
    cdef Py_ssize_t w
    for w in range(words):
        bundle.rows[w] = ((bundle.rows[w] ^ flip(way >> 1)) | (own[w] ^ flip(way & 1))) & all_[w]
    bundle.size += 1


def bundle(
    const uint8_t[:, ::1] codes, const uint8_t[::1] wanted, int32_t[::1] first, uint8_t[::1] code,
    uint8_t[::1] side, uint64_t[:, ::1] work
):
    """Bundle columns in their order: each joins the bundle joined last of those that it can join.

    A column brings its rarer bin, else the other one; the only column of a bundle may change its own.

    IN codes (d, n), wanted (d,): 1 for columns whose codes are 0 or 1; OUT first (d,): the first column
    of the bundle, code (d,): the number in the bundle, 0 of columns that are alone, side (d,): the chosen
    bin; WORK (WORK_SETS, ceil(n / 64)).
    """
    cdef Py_ssize_t d = codes.shape[0], n = codes.shape[1], words = work.shape[1], j, k, w, last = 0
    cdef Bundle[OPEN] some
    cdef Bundle at
    cdef uint64_t* own
    cdef uint64_t* all_
    cdef uint8_t[64] ones
    cdef int way
    if (wanted.shape[0] != d or first.shape[0] != d or code.shape[0] != d or side.shape[0] != d or n < 1
            or work.shape[0] != OPEN + 2 or words != (n + 63) // 64):
        raise ValueError("bundle: arrays of different sizes")
    with nogil:
        own, all_ = &work[OPEN, 0], &work[OPEN + 1, 0]
        memset(all_, 0xFF, sizeof(uint64_t) * words)
        memset(ones, 1, 64)
        pack(ones, n - 64 * (words - 1), &all_[words - 1])
        for k in range(OPEN):
            some[k].rows = &work[k, 0]
        for j in range(d):
            first[j], code[j], side[j] = <int32_t>j, 0, 0
            if not wanted[j]:
                continue
            side[j] = 2 * pack(&codes[j, 0], n, own) <= n
            for w in range(words):
                own[w] ^= flip(not side[j])
            k, way = last - 1, -1
            while k >= 0:
                way = way_to_join(&some[k], own, all_, words)
                if way >= 0:
                    break
                k -= 1
            if way < 0:
                k, way = 0 if last == OPEN else last, 0
                last += last < OPEN
                some[k].first, some[k].size = <int32_t>j, 0
                memset(some[k].rows, 0, sizeof(uint64_t) * words)
            at = some[k]
            join(&at, own, way, all_, words)
            side[j] ^= way & 1
            side[at.first] ^= way >> 1
            first[j] = at.first
            if at.size > 1:
                code[at.first], code[j] = 1, <uint8_t>at.size
            while k < last - 1:
                some[k] = some[k + 1]
                k += 1
            some[last - 1] = at


def interleave(
    const uint8_t[:, ::1] codes, const int32_t[::1] lane, const uint8_t[::1] code, const uint8_t[::1] side,
    uint8_t[:, :, ::1] groups, Py_ssize_t first, Py_ssize_t last
):
    """Put the codes of lanes side by side, eight of them, 0 where there are fewer, of rows first..last.

    IN codes (d, n); of each column lane (d,), code (d,), side (d,), see `bundle`; OUT groups (k, n, 8).
    """
    cdef Py_ssize_t d = codes.shape[0], n = codes.shape[1], j, i, start, stop
    cdef const uint8_t* column
    cdef uint8_t* group
    cdef uint8_t number, chosen
    if (lane.shape[0] != d or code.shape[0] != d or side.shape[0] != d or groups.shape[1] != n
            or groups.shape[2] != LANES
            or not 0 <= first <= last <= n):
        raise ValueError("interleave: arrays of different sizes")
    for j in range(d):
        if not 0 <= lane[j] < LANES * groups.shape[0]:
            raise ValueError("interleave: a lane that is not there")
    with nogil:
        for start in range(first, last, 1024):
            stop = min(last, start + 1024)
            for j in range(groups.shape[0]):
                memset(&groups[j, start, 0], 0, LANES * (stop - start))
            for j in range(d):
                column, group = &codes[j, 0], &groups[lane[j] // LANES, 0, 0] + lane[j] % LANES
                number, chosen = code[j], side[j]
                if number == 0:
                    for i in range(start, stop):
                        group[LANES * i] = column[i]
                else:
                    for i in range(start, stop):
                        group[LANES * i] |= number if column[i] == chosen else 0
