"""Leaves of rounds of boosting on bins: what they add, the same as the kernel to the last bit."""

from __future__ import annotations

import math

import numpy as np

from reference.round_losses import (
    LOG_LINKS,
    bounds,
    derivatives,
    farthest,
    margins,
    per_target,
    rounded,
    scale_of,
    signed,
)

NEAR, TINY, WIDTH, FLAT = 1e-8, 1e-6, 1e-13, 1e-13
VOTE_LIMIT = 18.021826694558577


class Leaf:
    def __init__(self, loss, y, f, weight, limit, l2, most):
        self.loss, self.y, self.f, self.weight = loss, y, f, weight
        self.limit, self.l2, self.most = limit, l2, most
        self.far, self.tiny = farthest(loss, y, f), TINY
        if loss.name in ("huber", "log_cosh", "expectile"):
            self.most = min(most, 2.0 * self.far[0])
        if loss.name == "huber":
            self.tiny = loss.delta
        if loss.name == "expectile":
            self.tiny = 0.01 * self.far[0]

    def look(self, step, raised):
        """Return the sums of gradients and curvatures as integers, and the scale of each."""
        steepest, maximum, _ = bounds(self.loss, self.far, step)
        if raised:
            maximum = max(maximum, steepest * (1.0 / self.limit))
        heaviest, n = self.weight.max(), len(self.f)
        scale = [scale_of(2.0 * heaviest * part, n) for part in (steepest, maximum)]
        u = margins(self.loss, self.y, self.f, step)
        fall, bend, _ = derivatives(self.loss, u, self.y)
        if raised:
            bend = np.maximum(bend, np.abs(fall) * (1.0 / self.limit))
        gradient = self.weight * signed(self.loss, self.y, fall)
        full = [rounded(gradient * scale[0]).sum(), rounded(self.weight * bend * scale[1]).sum()]
        return full, full[0] / scale[0] + self.l2 * step, full[1] / scale[1] + self.l2

    def newton(self):
        _, slope, bend = self.look(0.0, True)
        return min(max(-slope / bend, -self.most), self.most) if bend > 0 else 0.0

    def solved(self, guess):
        if self.loss.name == "squared_error":
            return self.newton()
        if self.loss.name in ("hinge", "absolute_error", "quantile", "mape"):
            return min(max(self.kink(), -self.most), self.most)
        if self.loss.name in LOG_LINKS and self.l2 == 0:
            _, slope, bend = self.look(0.0, False)
            power = {"poisson": 1.0, "gamma": 2.0}.get(self.loss.name) or self.loss.power
            bend += (power - 1.0) * slope
            step = -math.inf
            if self.far[1] > 0 and slope / bend < 1:
                step = math.log1p(-slope / bend)
            return min(max(step, -self.most), self.most)
        if self.loss.name == "exponential" and self.l2 == 0:
            (g, h), _, _ = self.look(0.0, False)
            above, below = h - g, h + g
            step = VOTE_LIMIT * (int(above > 0) - int(below > 0))
            if above > 0 and below > 0:
                step = min(max(0.5 * math.log(above / below), -VOTE_LIMIT), VOTE_LIMIT)
            return min(max(step, -self.most), self.most)
        return self.search(guess)

    def kink(self):
        """Return where the weight of the kinks below reaches what is wanted, as the loss says."""
        kinks, flat, scale, weight = self.y - self.f, 0.0, 1.0, self.weight
        is_half = self.loss.name in ("absolute_error", "mape")
        if self.loss.name == "mape":
            scale, flat = scale_of(2.0 * weight.max(), len(weight)), float(len(weight))
            weight = rounded(weight * per_target(self.y) * scale)
        elif not (weight == 1).all():
            scale, flat = scale_of(2.0 * weight.max(), len(weight)), float(len(weight))
            weight = rounded(weight * scale)
        total, name = weight.sum(), self.loss.name
        wanted = (
            weight[self.y > 0].sum()
            if name == "hinge"
            else (total * (0.5 if is_half else self.loss.quantile))
        )
        flat += FLAT * total
        l2 = self.l2 * (0.5 * scale if is_half else scale)
        below = 0.0
        values = np.unique(kinks)
        for k, value in enumerate(values):
            after = below + weight[kinks == value].sum()
            if after - wanted + l2 * value >= -flat:
                if l2 > 0:
                    return (wanted - below) / l2 if below - wanted + l2 * value > 0 else value
                if after - wanted <= flat and k + 1 < len(values):
                    return value / 2 + values[k + 1] / 2
                return value
            below = after
        return (wanted - below) / l2

    def search(self, guess):
        at, low, high = min(max(guess, -self.most), self.most), -self.most, self.most
        seen, before = [at == low, at == high], math.inf
        _, slope, bend = self.look(at, False)
        for _ in range(200):
            if slope == 0 or (slope < 0 and at == self.most) or (slope > 0 and at == -self.most):
                break
            low, high = (at, high) if slope < 0 else (low, at)
            step = at - slope / bend if bend > 0 else -math.copysign(math.inf, slope)
            inside = low < step < high
            if not inside:
                if step >= self.most and not seen[1]:
                    step, seen[1] = self.most, True
                elif step <= -self.most and not seen[0]:
                    step, seen[0] = -self.most, True
                else:
                    step = low + (high - low) / 2
            moved, at = abs(step - at), step
            following = moved
            jumps = self.loss.name in ("huber", "expectile")
            if not jumps and 4.0 * moved < before < math.inf:
                following = moved * (moved / before) * (moved / before)
            before = moved if inside else math.inf
            maximum = self.tiny if jumps else max(abs(at), self.tiny)
            if inside and following <= NEAR * maximum:
                break
            if high - low <= WIDTH * abs(at):
                break
            _, slope, bend = self.look(at, False)
        return at
