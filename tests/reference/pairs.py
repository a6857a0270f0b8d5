"""The search for interactions of two columns, from its definition: sums over rows, pair by pair."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

WORD = 2**64 - 1


def mixed(number):
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & WORD
    number = (number ^ number >> 27) * 0x94D049BB133111EB & WORD
    return number ^ number >> 31


def content(codes):
    """Return the number of a row with these codes."""
    return mixed(sum((mixed(j + 1) | 1) * int(code) for j, code in enumerate(codes)) & WORD)


def rows_of_scan(codes, copies, most):
    """Return the rows with copies; of too many those of small content."""
    used, total = [i for i, of in enumerate(copies) if of > 0], int(sum(copies))
    if total <= most:
        return used
    actual = [i for i in used if content(codes[:, i]) < int(most / total * 2.0**64)]
    return actual if len(actual) <= 2 * most else []


def gain(parts, sums, mass):
    """Return by how much the rows' sum of squares falls if each part has a value of its own."""
    fallen = -(Fraction(sum(sums)) ** 2) / sum(mass)
    for part in parts:
        heavy = sum(mass[i] for i in part)
        fallen += Fraction(sum(sums[i] for i in part)) ** 2 / heavy if heavy else 0
    return fallen


def sides(code, cut):
    rows = range(len(code))
    return [i for i in rows if code[i] <= cut], [i for i in rows if code[i] > cut]


def ratio(codes, sums, mass, chance, least):
    """Return the largest gain of a pair by that of its columns, or by `least` times a chance's."""
    sums, mass = [int(of) for of in sums], [int(of) for of in mass]
    alone, above = [], []
    for code in codes:
        cuts = range(max(code))
        alone.append(max([gain(sides(code, cut), sums, mass) for cut in cuts], default=Fraction(0)))
        off = [abs(2 * sum(mass[i] for i in sides(code, cut)[0]) - sum(mass)) for cut in cuts]
        above.append(set(sides(code, off.index(min(off)))[1]) if off else set())
    maximum = Fraction(0)
    for i, j in combinations(range(len(codes)), 2):
        rows = range(len(sums))
        parts = [
            [k for k in rows if (k in above[i]) == item and (k in above[j]) == other]
            for item in (False, True)
            for other in (False, True)
        ]
        floor = max(alone[i], alone[j], least * Fraction(chance))
        maximum = max(maximum, gain(parts, sums, mass) / floor if floor else Fraction(0))
    return maximum
