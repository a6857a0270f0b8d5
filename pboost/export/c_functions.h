/* Functions of exported C files that do not depend on the model. `pboost` is replaced by the prefix
   of the file, and pboost_total by the type of its decision values. */
#include <math.h>
#include <stdint.h>

typedef double pboost_total;

/* The index of the largest of n decision values; with n = 1, whether it is positive. */
static int pboost_best(const pboost_total *h, int n)
{
    int best = 0;
    if (n == 1) return h[0] > 0;
    for (int k = 1; k < n; k++) if (h[k] > h[best]) best = k;
    return best;
}

/* The exponential function of the kernels, with an error of at most two units in the last place. */
static double pboost_exp(double t)
{
    union { double number; uint64_t bits; } of;
    const double a = t < -707.0 ? -707.0 : t > 709.0 ? 709.0 : t;
    const double whole = 6755399441055744.0;  /* 1.5 * 2**52: adding it rounds to an integer */
    const double shifted = a * 1.44269504088896340736 + whole, k = shifted - whole;
    const double r = a - k * 6.93147180369123816490e-01;
    const double x = r - k * 1.90821492927058770002e-10;
    double p = 1.0 / 479001600, factorial = 479001600;
    for (int n = 12; n > 0; n--) {
        factorial /= n;
        p = p * x + 1.0 / factorial;
    }
    of.number = shifted;
    of.bits = (of.bits + 1023) << 52;
    return t > 709.0 ? INFINITY : p * of.number;
}

/* The logarithm of t >= 0, with an error of a few units in the last place: a series of the inverse
   hyperbolic tangent of a number between the square roots of 1/2 and 2. */
static double pboost_log(double t)
{
    union { double number; uint64_t bits; } of;
    double s, sum = 0.0;
    int k = 0;
    if (!(t > 0.0)) return -INFINITY;
    of.number = t;
    if (t < 0x1p-1022) {  /* subnormal */
        of.number = t * 0x1p54;
        k = -54;
    }
    k += (int)(of.bits >> 52) - 1023;
    of.bits = (of.bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL;
    if (of.number > 1.4142135623730951) {
        of.number /= 2.0;
        k++;
    }
    s = (of.number - 1.0) / (of.number + 1.0);
    for (int n = 25; n > 1; n -= 2) sum = (sum + 1.0 / n) * (s * s);
    sum = 2.0 * s * (1.0 + sum);
    return k * 6.93147180369123816490e-01 + (k * 1.90821492927058770002e-10 + sum);
}

/* Linear interpolation at v between the knots i and last, as numpy.interp. */
static double pboost_map(const double *knot, const double *share, double v, int i, int last)
{
    double p;
    if (v <= knot[i]) return share[i];
    if (v >= knot[last]) return share[last];
    while (last - i > 1) {
        const int middle = i + (last - i) / 2;
        if (v < knot[middle]) last = middle;
        else i = middle;
    }
    p = (share[last] - share[i]) / (knot[last] - knot[i]) * (v - knot[i]) + share[i];
    return p < 0.0 ? 0.0 : p > 1.0 ? 1.0 : p;
}

/* The next smaller number. */
static double pboost_below(double v)
{
    union { double number; int64_t bits; } of;
    of.number = v;
    if (v == 0.0) of.bits = INT64_MIN + 1;
    else of.bits += v > 0.0 ? -1 : 1;
    return of.number;
}

/* Lower the values of classes without a row in a leaf below the other classes, unless they are
   already lower. */
static void pboost_lower(const uint8_t *absent, int n, double *h)
{
    const double most = 0x1.fffffffffffffp1023;
    double least = most;
    for (int k = 0; k < n; k++) if (!absent[k] && h[k] < least) least = h[k];
    least = least > -most ? pboost_below(least) : -most;
    for (int k = 0; k < n; k++) if (absent[k] && h[k] > least) h[k] = least;
}

static double pboost_clip(double v, double most)
{
    return v < -most ? -most : v > most ? most : v;
}

/* The logarithms of normalized probabilities, which are equal if their sum is 0. */
static void pboost_log_shares(const double *p, int n, double least, double *h)
{
    double sum = 0.0;
    for (int k = 0; k < n; k++) sum += p[k];
    for (int k = 0; k < n; k++) {
        h[k] = pboost_log(sum > 0.0 ? p[k] / sum : 1.0 / n);
        if (h[k] < least) h[k] = least;
    }
}

/* The probabilities of two classes from log odds; the predicted class has the larger one. */
static void pboost_odds(double v, int above, double *p)
{
    const double e = pboost_exp(v < 0.0 ? v : -v), larger = 1.0 / (1.0 + e), smaller = e * larger;
    p[above] = larger;
    p[1 - above] = smaller;
    if (above && larger <= smaller) p[1] = 0.5000000000000001;
}

/* Links: the probabilities p from n decision values; with n = 1, p has two entries. */
static void pboost_half_log_odds(const double *h, int n, double *p)
{
    pboost_odds(2.0 * h[0], h[n - 1] > 0.0, p);
}

static void pboost_log_odds(const double *h, int n, double *p)
{
    pboost_odds(h[0], h[n - 1] > 0.0, p);
}

static void pboost_softmax(const double *h, int n, double *p)
{
    double most = h[0], sum = 0.0;
    for (int k = 1; k < n; k++) if (h[k] > most) most = h[k];
    for (int k = 0; k < n; k++) sum += p[k] = pboost_exp(h[k] - most);
    for (int k = 0; k < n; k++) p[k] /= sum;
}

/* Phi(v) exp(q / 2), q = 0 unless v < -2: a series of positive terms around 0 (Marsaglia, 2004),
   and a continued fraction below. */
static double pboost_tail(double v, double q)
{
    const double root = 0.3989422804014326779;  /* 1 / sqrt(2 pi) */
    double sum = v, term = v, last = 0.0, f = 0.0, a;
    if (v > 8.5) return 1.0;
    a = v < -1e100 ? 1e100 : -v;
    if (v < -2.0) {
        for (int i = 200; i > 0; i--) f = i / (a + f);
        return root * pboost_exp(0.5 * (q - a * a)) / (a + f);
    }
    for (int i = 3; sum != last; i += 2) {
        last = sum;
        term *= v * v / i;
        sum += term;
    }
    return 0.5 + root * sum * pboost_exp(-0.5 * v * v);
}

/* If all values are small, the common factor exp(-f**2 / 2) of the largest is omitted. */
static void pboost_probit(const double *h, int n, double *p)
{
    double most = h[0], sum = 0.0, q = 0.0;
    if (n == 1) {
        p[0] = pboost_tail(-h[0], 0.0);
        p[1] = pboost_tail(h[0], 0.0);
        return;
    }
    for (int k = 1; k < n; k++) if (h[k] > most) most = h[k];
    if (most < -2.0) q = most > -1e100 ? most * most : 1e200;
    for (int k = 0; k < n; k++) sum += p[k] = pboost_tail(h[k], q);
    for (int k = 0; k < n; k++) p[k] /= sum;
}
