"""Functions of decision values in C files: labels, and probabilities."""

from __future__ import annotations

from pboost.export.c_code import Code


def write_best(code: Code, name: str) -> None:
    """Add the function ``name(h, n)``: the place of the label that n decision values speak for."""
    code.function(
        f"int {name}(const {code.total} *h, int n)",
        "int best = 0;",
        "if (n == 1) return h[0] > 0;",
        "for (int k = 1; k < n; k++) if (h[k] > h[best]) best = k;",
        "return best;",
    )


def write_exp(code: Code, name: str) -> None:
    """Add the function ``name(t)``, exp as kernels have it: wrong by two units at most."""
    code.function(
        f"double {name}(double t)",
        "union { double number; uint64_t bits; } of;",
        "const double a = t < -707.0 ? -707.0 : t > 709.0 ? 709.0 : t;",
        "const double whole = 6755399441055744.0;  /* 1.5 * 2**52: a sum with it is whole */",
        "const double shifted = a * 1.44269504088896340736 + whole, k = shifted - whole;",
        "const double r = a - k * 6.93147180369123816490e-01;",
        "const double x = r - k * 1.90821492927058770002e-10;",
        "double p = 1.0 / 479001600, factorial = 479001600;",
        "for (int n = 12; n > 0; n--) {",
        "    factorial /= n;",
        "    p = p * x + 1.0 / factorial;",
        "}",
        "of.number = shifted;",
        "of.bits = (of.bits + 1023) << 52;",
        "return t > 709.0 ? INFINITY : p * of.number;",
    )


def write_log(code: Code, name: str) -> None:
    """Add the function ``name(t)``, the logarithm of t >= 0: wrong by a few units.

    By the series of the inverse hyperbolic tangent, from a number between the roots of 1/2 and 2.
    """
    code.function(
        f"double {name}(double t)",
        "union { double number; uint64_t bits; } of;",
        "double s, sum = 0.0;",
        "int k = 0;",
        "if (!(t > 0.0)) return -INFINITY;",
        "of.number = t;",
        "if (t < 0x1p-1022) {  /* without a leading digit */",
        "    of.number = t * 0x1p54;",
        "    k = -54;",
        "}",
        "k += (int)(of.bits >> 52) - 1023;",
        "of.bits = (of.bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL;",
        "if (of.number > 1.4142135623730951) {",
        "    of.number /= 2.0;",
        "    k++;",
        "}",
        "s = (of.number - 1.0) / (of.number + 1.0);",
        "for (int n = 25; n > 1; n -= 2) sum = (sum + 1.0 / n) * (s * s);",
        "sum = 2.0 * s * (1.0 + sum);",
        "return k * 6.93147180369123816490e-01 + (k * 1.90821492927058770002e-10 + sum);",
    )


def write_interpolation(code: Code, name: str, knot: str, share: str) -> None:
    """Add the function ``name(v, i, last)``: the line through the knots from i to the last at v.

    Before the first and after the last knot it is what they have; as ``numpy.interp``.
    """
    code.function(
        f"double {name}(double v, int i, int last)",
        "double p;",
        f"if (v <= {knot}[i]) return {share}[i];",
        f"if (v >= {knot}[last]) return {share}[last];",
        "while (last - i > 1) {",
        "    const int middle = i + (last - i) / 2;",
        f"    if (v < {knot}[middle]) last = middle;",
        "    else i = middle;",
        "}",
        f"p = ({share}[last] - {share}[i]) / ({knot}[last] - {knot}[i]) * (v - {knot}[i])",
        f"    + {share}[i];",
        "return p < 0.0 ? 0.0 : p > 1.0 ? 1.0 : p;",
    )


def write_link(code: Code, name: str, link: str) -> None:
    """Add the function ``name(h, n, p)``: the probabilities of labels by n decision values.

    Of one decision value p has two. Those of "shares" are the values themselves.
    """
    lines = {
        "half_log_odds": _odds_lines(name, 2),
        "log_odds": _odds_lines(name, 1),
        "softmax": _softmax_lines(name),
        "probit": _probit_lines(name),
        "shares": ["for (int k = 0; k < n; k++) p[k] = h[k];"],
    }[link]
    if link != "shares":
        write_exp(code, f"{name}_exp")
    if link == "probit":
        _write_tails(code, name)
    code.function(f"void {name}(const double *h, int n, double *p)", *lines)


def _odds_lines(name: str, factor: int) -> list[str]:
    """Return the lines of two labels; that of the label predicted is larger."""
    return [
        f"const double e = {name}_exp(-{factor}.0 * (h[0] < 0.0 ? -h[0] : h[0]));",
        "const double larger = 1.0 / (1.0 + e), smaller = e * larger;",
        "const int above = h[n - 1] > 0.0;",
        "p[above] = larger;",
        "p[1 - above] = smaller;",
        "if (above && larger <= smaller) p[1] = 0.5000000000000001;",
    ]


def _softmax_lines(name: str) -> list[str]:
    return [
        "double most = h[0], sum = 0.0;",
        "for (int k = 1; k < n; k++) if (h[k] > most) most = h[k];",
        f"for (int k = 0; k < n; k++) sum += p[k] = {name}_exp(h[k] - most);",
        "for (int k = 0; k < n; k++) p[k] /= sum;",
    ]


def _probit_lines(name: str) -> list[str]:
    """Return the lines of Phi, of one value f also of -f; of several divided by their sum.

    Where all values are small the factor exp(-f**2 / 2) of the largest is left out.
    """
    return [
        "double most = h[0], sum = 0.0, q = 0.0;",
        "if (n == 1) {",
        f"    p[0] = {name}_tail(-h[0], 0.0);",
        f"    p[1] = {name}_tail(h[0], 0.0);",
        "    return;",
        "}",
        "for (int k = 1; k < n; k++) if (h[k] > most) most = h[k];",
        "if (most < -2.0) q = most > -1e100 ? most * most : 1e200;",
        f"for (int k = 0; k < n; k++) sum += p[k] = {name}_tail(h[k], q);",
        "for (int k = 0; k < n; k++) p[k] /= sum;",
    ]


def _write_tails(code: Code, name: str) -> None:
    """Add the function ``name_tail(v, q)``: Phi(v) exp(q / 2), q = 0 unless v < -2.

    A series of positive terms about 0 (Marsaglia, 2004), a continued fraction beyond.
    """
    code.function(
        f"double {name}_tail(double v, double q)",
        "const double root = 0.3989422804014326779;  /* 1 / sqrt(2 pi) */",
        "double sum = v, term = v, last = 0.0, f = 0.0, a;",
        "if (v > 8.5) return 1.0;",
        "a = v < -1e100 ? 1e100 : -v;",
        "if (v < -2.0) {",
        "    for (int i = 200; i > 0; i--) f = i / (a + f);",
        f"    return root * {name}_exp(0.5 * (q - a * a)) / (a + f);",
        "}",
        "for (int i = 3; sum != last; i += 2) {",
        "    last = sum;",
        "    term *= v * v / i;",
        "    sum += term;",
        "}",
        f"return 0.5 + root * sum * {name}_exp(-0.5 * v * v);",
    )
