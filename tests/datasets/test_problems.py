"""The sources' problems: rows and rules by brute force, draws against what is known of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import pboost as pb

D = pb.datasets

#: Drawn problems, as functions of the number of rows and the seed.
DRAWN = {
    "led": lambda n, rng=None: D.led(n, rng),
    "led-digit": lambda n, rng=None: D.led(n, rng, even=False, irrelevant=17),
    "xd6": lambda n, rng=None: D.xd6(n, rng, noise=0.2),
    "waveform": lambda n, rng=None: D.waveform(n, rng),
    "waveform-noise": lambda n, rng=None: D.waveform(n, rng, noise_features=19),
    "mease_wyner": lambda n, rng=None: D.mease_wyner(n, rng),
    "twonorm": lambda n, rng=None: D.twonorm(n, rng),
    "ringnorm": lambda n, rng=None: D.ringnorm(n, rng),
}
COLUMNS = {
    "led": 7,
    "led-digit": 24,
    "xd6": 10,
    "waveform": 21,
    "waveform-noise": 40,
    "mease_wyner": 10,
    "twonorm": 20,
    "ringnorm": 20,
}
CLASSES = {"led-digit": range(10), "waveform": range(3), "waveform-noise": range(3)}
#: Drawn problems, the probability of their classes (one column: of class +1), and the Bayes error.
KNOWN = {
    "led": (D.led, D.led_probability, 0.11031),
    "led-digit": (
        lambda n, rng: D.led(n, rng, even=False),
        lambda X: D.led_probability(X, even=False),
        0.25998,
    ),
    "xd6": (
        lambda n, rng: D.xd6(n, rng, noise=0.3),
        lambda X: D.xd6_probability(X, noise=0.3),
        0.3,
    ),
    "waveform": (D.waveform, D.waveform_probability, 0.132),
    "mease_wyner": (
        lambda n, rng: D.mease_wyner(n, rng, q=0.2, E=3),
        lambda X: D.mease_wyner_probability(X, q=0.2, E=3),
        0.2,
    ),
    "twonorm": (D.twonorm, D.twonorm_probability, 0.02275),
    "ringnorm": (D.ringnorm, D.ringnorm_probability, 0.0124),
}


def rows_of(X):
    return [tuple(row) for row in X.tolist()]


# Enumerated problems


def robots():
    return itertools.product((1, 2, 3), (1, 2, 3), (1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2))


def monks_rule(k, robot):
    head, body, _, holding, jacket, _ = robot
    if k == 1:
        return head == body or jacket == 1
    if k == 2:
        return robot.count(1) == 2
    return (jacket == 3 and holding == 1) or (jacket != 4 and body != 3)


@pytest.mark.parametrize(("k", "n_positive"), [(1, 216), (2, 142), (3, 228)])
def test_monks(k, n_positive):
    X, y = D.monks(k)
    assert rows_of(X) == list(robots())
    assert y.tolist() == [1 if monks_rule(k, robot) else -1 for robot in robots()]
    assert np.count_nonzero(y == 1) == n_positive


@pytest.mark.parametrize(
    ("k", "n", "n_positive", "n_wrong"), [(1, 124, 62, 0), (2, 169, 64, 0), (3, 122, 60, 6)]
)
def test_monks_training(k, n, n_positive, n_wrong):
    X, y = D.monks(k, part="training")
    rows = [tuple(int(v) for v in row) for row in rows_of(X)]
    assert X.shape == (n, 6)
    assert rows == sorted(set(rows))
    assert set(rows) <= set(robots())
    assert np.count_nonzero(y == 1) == n_positive
    truth = [1 if monks_rule(k, robot) else -1 for robot in rows]
    assert np.count_nonzero(y != truth) == n_wrong


def test_monks_are_fresh_copies():
    X, y = D.monks(3)
    X[:], y[:] = 0, 0
    assert rows_of(D.monks(3)[0]) == list(robots())
    assert np.count_nonzero(D.monks(3)[1]) == 432


@pytest.mark.parametrize(("bits", "relevant"), [(1, 1), (4, 2), (5, 5), (8, 5)])
def test_parity(bits, relevant):
    X, y = D.parity(bits, relevant)
    words = list(itertools.product((0, 1), repeat=bits))
    assert rows_of(X) == words
    assert y.tolist() == [1 if sum(word[:relevant]) % 2 else -1 for word in words]


def test_tic_tac_toe_by_playing():
    lines = [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}]
    ends = {}

    def play(board, mover):
        for end in (1, -1):
            if any(all(board[i] == end for i in line) for line in lines):
                ends[board] = 1 if end == 1 else -1
                return
        if 0 not in board:
            ends[board] = -1
            return
        for i in range(9):
            if board[i] == 0 and (after := (*board[:i], mover, *board[i + 1 :])) not in seen:
                seen.add(after)
                play(after, -mover)

    seen = set()
    play((0,) * 9, 1)
    X, y = D.tic_tac_toe()
    assert rows_of(X) == sorted(ends)
    assert y.tolist() == [ends[board] for board in sorted(ends)]
    assert (len(y), np.count_nonzero(y == 1)) == (958, 626)


def test_balance_scale():
    X, y = D.balance_scale()
    states = list(itertools.product(range(1, 6), repeat=4))
    assert rows_of(X) == states
    for (left, at_left, right, at_right), side in zip(states, y.tolist(), strict=True):
        heavier = left * at_left - right * at_right
        assert side == ("L" if heavier > 0 else "R" if heavier < 0 else "B")
    assert [np.count_nonzero(y == side) for side in "LBR"] == [288, 49, 288]


# Drawn problems


@pytest.mark.parametrize("n", [1, 300])
@pytest.mark.parametrize("name", DRAWN)
def test_shapes_and_types(name, n):
    X, y = DRAWN[name](n, 1)
    assert X.shape == (n, COLUMNS[name])
    assert y.shape == (n,)
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert X.flags.c_contiguous
    classes = set(CLASSES.get(name, (-1, 1)))
    assert set(y.tolist()) == classes if n > 1 else set(y.tolist()) <= classes


@pytest.mark.parametrize("name", DRAWN)
def test_seeds(name):
    draw = DRAWN[name]
    X, y = draw(30, 6)
    again = draw(30, np.random.default_rng(6))
    assert X.tobytes() == again[0].tobytes()
    assert y.tobytes() == again[1].tobytes()
    generator = np.random.default_rng(6)
    assert X.tobytes() == draw(30, generator)[0].tobytes()
    for other in (draw(30, generator), draw(30, 7), draw(30)):
        assert X.tobytes() != other[0].tobytes()


@pytest.mark.parametrize("name", KNOWN)
def test_probabilities_are_those_of_the_draws(name):
    draw, probability, bayes = KNOWN[name]
    n = 40_000
    X, y = draw(n, 11)
    before = X.copy()
    p = probability(X)
    assert (before == X).all()
    if p.ndim == 1:
        p = np.stack([1 - p, p], axis=1)
        y = (y == 1).astype(int)
    assert p.shape == (n, p.shape[1])
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    # Class shares in bins of p: the standard deviation of each is known.
    for c in range(p.shape[1]):
        inside = np.digitize(p[:, c], [0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
        for b in np.unique(inside):
            chosen = p[inside == b, c]
            spread = math.sqrt(np.sum(chosen * (1 - chosen)))
            assert abs(np.sum(y[inside == b] == c) - chosen.sum()) < 4.5 * spread + 3
    wrong = p.argmax(axis=1) != y
    spread = math.sqrt(bayes * (1 - bayes) / n)
    assert abs(wrong.mean() - bayes) < 4 * spread + 1e-4
    assert abs((1 - p.max(axis=1)).mean() - bayes) < 4 * spread + 1e-4


def test_led_segments():
    """Without noise the digits are those of a display: drawn here as text."""
    picture = [
        " _     _  _     _  _  _  _  _ ",
        "| |  | _| _||_||_ |_   ||_||_|",
        "|_|  ||_  _|  | _||_|  ||_| _|",
    ]
    shown = {}
    for digit in range(10):
        top, middle, bottom = (line[3 * digit : 3 * digit + 3] for line in picture)
        cells = top[1] + middle[0] + middle[2] + middle[1] + bottom[0] + bottom[2] + bottom[1]
        shown[tuple(float(cell != " ") for cell in cells)] = digit
    assert len(shown) == 10
    X, y = D.led(200, 3, even=False, noise=0)
    assert y.tolist() == [shown[row] for row in rows_of(X)]
    X, y = D.led(200, 3, noise=0)
    assert y.tolist() == [-1 if shown[row] % 2 else 1 for row in rows_of(X)]
    assert (D.led_probability(X, noise=0) == (y == 1)).all()


def test_led_noise_and_irrelevant_bits():
    X, y = D.led(40_000, 4, even=False, irrelevant=3, noise=0.25)
    clean, digits = D.led(500, 5, even=False, noise=0)
    segments = np.array([clean[digits == d][0] for d in range(10)])
    inverted = X[:, :7] != segments[y]
    assert np.abs(inverted.mean(axis=0) - 0.25).max() < 5 * math.sqrt(0.25 * 0.75 / 40_000)
    assert np.abs(np.corrcoef(inverted.T) - np.eye(7)).max() < 5 / 200
    assert np.abs(X[:, 7:].mean(axis=0) - 0.5).max() < 5 * 0.5 / 200
    shares = [X[y == d, 7:].mean() for d in range(10)]
    assert np.abs(np.array(shares) - 0.5).max() < 5 * 0.5 / math.sqrt(3 * 3800)


def test_led_probability_by_enumeration():
    words = list(itertools.product((0, 1), repeat=7))
    draws, digits = D.led(500, 5, even=False, noise=0)
    segments = {d: draws[digits == d][0] for d in range(10)}
    joint = np.array(
        [
            [
                math.prod(0.8 if w == s else 0.2 for w, s in zip(word, segments[d], strict=True))
                for d in range(10)
            ]
            for word in words
        ]
    )
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(D.led_probability(words, even=False, noise=0.2), expected)
    even = expected[:, [0, 2, 4, 6, 8]].sum(axis=1)
    np.testing.assert_allclose(D.led_probability(words, noise=0.2), even)


def test_xd6_rule():
    X, y = D.xd6(5000, 8)
    for row, label in zip(rows_of(X), y.tolist(), strict=True):
        a, b, c, d, e, f, g, h, i, _ = row
        assert label == (1 if (a and b and c) or (d and e and f) or (g and h and i) else -1)
    assert abs(np.mean(y == 1) - (1 - (7 / 8) ** 3)) < 5 * 0.0067
    assert np.abs(X.mean(axis=0) - 0.5).max() < 5 * 0.0071


def test_xd6_noise_is_nested():
    truth = D.xd6(2000, 9)
    flipped = []
    for noise in (0.1, 0.2, 0.3):
        X, y = D.xd6(2000, 9, noise=noise)
        assert (truth[0] == X).all()
        flipped.append(y != truth[1])
        assert abs(flipped[-1].mean() - noise) < 5 * math.sqrt(noise * (1 - noise) / 2000)
    assert (flipped[0] <= flipped[1]).all()
    assert (flipped[1] <= flipped[2]).all()


def test_waveform_moments():
    n = 60_000
    X, y = D.waveform(n, 10, noise_features=2)
    assert np.abs(np.bincount(y) / n - 1 / 3).max() < 5 * math.sqrt(2 / 9 / n)
    i = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6 - np.abs(i - peak), 0) for peak in (11, 15, 7))
    for c, (g, h) in enumerate([(h1, h2), (h1, h3), (h2, h3)]):
        of_class = X[y == c]
        # The share is uniform, of variance 1/12.
        variance = 1 + (g - h) ** 2 / 12
        mean = of_class[:, :21].mean(axis=0)
        assert np.all(np.abs(mean - (g + h) / 2) < 5 * np.sqrt(variance / len(of_class)))
        np.testing.assert_allclose(of_class[:, :21].var(axis=0), variance, rtol=0.1)
        # Far from its triangles a class is noise.
        assert np.abs(of_class[:, 21:].mean(axis=0)).max() < 5 / math.sqrt(len(of_class))


def test_waveform_probability_by_quadrature():
    X = np.concatenate([D.waveform(30, 1)[0], 4 * np.random.default_rng(1).normal(size=(5, 21))])
    node, weight = np.polynomial.legendre.leggauss(200)
    share = (node[:, None] + 1) / 2
    i = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6 - np.abs(i - peak), 0) for peak in (11, 15, 7))
    logs = np.stack(
        [
            -((X[:, None] - share * g - (1 - share) * h) ** 2).sum(axis=2) / 2
            for g, h in [(h1, h2), (h1, h3), (h2, h3)]
        ],
        axis=1,
    )
    density = (np.exp(logs - logs.max(axis=(1, 2), keepdims=True)) * weight).sum(axis=2)
    expected = density / density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(D.waveform_probability(X), expected, rtol=1e-9, atol=1e-15)


def test_waveform_probability_far_away():
    X = np.zeros((2, 21))
    X[0], X[1] = 1e6, -1e6
    p = D.waveform_probability(X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)


@pytest.mark.parametrize(("E", "d"), [(1, 1), (2, 7), (20, 20)])
def test_mease_wyner(E, d):
    X, y = D.mease_wyner(5000, 12, q=0, E=E, d=d)
    assert X.shape == (5000, d)
    assert ((X >= 0) & (X < 1)).all()
    assert np.abs(X.mean(axis=0) - 0.5).max() < 5 * math.sqrt(1 / 12 / 5000)
    assert y.tolist() == [1 if sum(row[:E]) > E / 2 else -1 for row in rows_of(X)]
    noisy = D.mease_wyner(5000, 12, q=0.25, E=E, d=d)
    assert (noisy[0] == X).all()
    assert abs(np.mean(noisy[1] != y) - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 5000)


@pytest.mark.full
def test_normal_classes():
    n, a = 40_000, 2 / math.sqrt(20)
    for draw, means, deviations in [
        (D.twonorm, (-a, a), (1, 1)),
        (D.ringnorm, (0, a), (2, 1)),
    ]:
        X, y = draw(n, 13)
        assert abs(np.mean(y)) < 5 / math.sqrt(n)
        for label, mean, deviation in zip((-1, 1), means, deviations, strict=True):
            rows = X[y == label]
            assert np.abs(rows.mean(axis=0) - mean).max() < 5 * deviation / math.sqrt(n / 2)
            covariance = np.cov(rows.T) / deviation**2
            assert np.abs(covariance - np.eye(20)).max() < 5 * math.sqrt(2 / (n / 2))


def test_normal_probabilities_by_density():
    a = 2 / math.sqrt(20)
    X = np.random.default_rng(14).normal(0, 1.5, (50, 20))

    def density(x, mean, deviation):
        return math.prod(
            math.exp(-(((v - mean) / deviation) ** 2) / 2) / deviation for v in x.tolist()
        )

    two = [density(x, a, 1) / (density(x, a, 1) + density(x, -a, 1)) for x in X]
    ring = [density(x, a, 1) / (density(x, a, 1) + density(x, 0, 2)) for x in X]
    np.testing.assert_allclose(D.twonorm_probability(X), two, rtol=1e-10)
    np.testing.assert_allclose(D.ringnorm_probability(X), ring, rtol=1e-10)
    assert D.twonorm_probability([[1e200] * 20]).tolist() == [1]


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: D.monks(0), r"^k: expected an integer from 1 to 3, got 0"),
        (lambda: D.monks(4), r"^k: expected an integer from 1 to 3, got 4"),
        (lambda: D.monks("1"), r"^k: expected an integer"),
        (lambda: D.monks(1, part="test"), r"^part: expected one of 'all', 'training'"),
        (lambda: D.parity(0, 1), r"^bits: expected"),
        (lambda: D.parity(21, 1), r"^bits: expected an integer from 1 to 20, got 21"),
        (lambda: D.parity(4, 5), r"^relevant: expected an integer from 1 to 4, got 5"),
        (lambda: D.parity(4, 0), r"^relevant: expected"),
        (lambda: D.led(5, 0, noise=0.6), r"^noise: expected a number in \[0, 0.5\], got 0.6"),
        (lambda: D.led(5, 0, irrelevant=-1), r"^irrelevant: expected"),
        (lambda: D.xd6(5, 0, noise=-0.1), r"^noise: expected"),
        (lambda: D.xd6(5, 0, noise=float("nan")), r"^noise: expected"),
        (lambda: D.waveform(5, 0, noise_features=1.5), r"^noise_features: expected"),
        (lambda: D.mease_wyner(5, 0, q=0.51), r"^q: expected"),
        (lambda: D.mease_wyner(5, 0, E=11), r"^E: expected an integer from 1 to 10, got 11"),
        (lambda: D.mease_wyner(5, 0, d=0), r"^d: expected"),
        (lambda: D.led_probability([[0, 1]]), r"^X: expected 7 columns or more, got 2"),
        (lambda: D.led_probability([[0, 1, 0, 2, 0, 0, 0]]), r"zeros and ones, got 2.0 in column"),
        (lambda: D.led_probability([[0] * 7], noise=0), r"^X: expected the segments.* row 0"),
        (lambda: D.led_probability([[0] * 7], noise=1), r"^noise: expected"),
        (lambda: D.xd6_probability([[0] * 9]), r"^X: expected 10 columns, got 9"),
        (lambda: D.xd6_probability([[0] * 9 + [0.5]]), r"got 0.5 in column 9, row 0"),
        (lambda: D.waveform_probability([[0.0] * 20]), r"^X: expected 21 columns or more, got 20"),
        (lambda: D.mease_wyner_probability([[0.1]], E=2), r"^X: expected 2 columns or more"),
        (lambda: D.mease_wyner_probability([[0.1]], q=2, E=1), r"^q: expected"),
        (lambda: D.twonorm_probability([[0.0] * 21]), r"^X: expected 20 columns, got 21"),
        (lambda: D.ringnorm_probability([[np.nan] * 20]), r"^X: expected finite numbers"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize("name", DRAWN)
def test_bad_numbers_of_rows_and_seeds(name):
    with pytest.raises(ValueError, match=r"^n: expected an integer from 1 .*, got 0"):
        DRAWN[name](0)
    with pytest.raises(TypeError, match=r"^n: expected an integer, got 2.5"):
        DRAWN[name](2.5)
    with pytest.raises(TypeError, match=r"^rng: expected"):
        DRAWN[name](2, "0")
