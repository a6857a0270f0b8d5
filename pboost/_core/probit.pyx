"""ProbitBoost in the leaves of trees, the probit loss, and rounds of AdaBoost with probit trees."""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, fabs, fmax, fmin, isfinite, ldexp
from libc.stdlib cimport free
from libc.string cimport memset

from pboost._core._address cimport to_read, to_write
from pboost._core._grower cimport Node
from pboost._core._probit_leaf cimport (
    Ends, Leaf, Scale, Sums, allocate, centre_column, choose_class, load_rows, load_weights,
)
from pboost._core._probit_line cimport Fall, Line, best_line, fall_after, fall_of
from pboost._core._rows cimport Rows, rows_of
from pboost._core._sum cimport sum_of
from pboost._core.types cimport int32_t, int64_t, row_of

# ---------------------------------------------------------------------------------------------
# The probit loss -ln Phi(m) and its derivatives, without cancellation or overflow for any m.
#
# Phi is the standard normal distribution function, phi its density, and r(m) = phi(m) / Phi(m). The
# derivatives of the loss are -r and r (m + r).

cdef extern from "probit_step.h" nogil:
    ctypedef void (*ProbitKernel "pboost_probit_kernel")(
        const double* u, Py_ssize_t n, Scale scale, int wants_loss, double* ratio, double* excess,
        double* loss,
    )
    ProbitKernel pboost_choose_probit(int most)

cdef enum:
    BLOCK = 256  # PBOOST_ROWS

cdef enum Wanted:
    LOSS, RATIO, EXCESS

cdef ProbitKernel probit_kernel = pboost_choose_probit(2)


cdef void fill_losses(const double[::1] m, double[::1] out, Wanted wanted) noexcept:
    cdef double[3][BLOCK] found
    cdef Py_ssize_t start, k, n
    cdef Scale scale
    scale.origin, scale.rescue = 0.0, 1.0
    start = 0
    with nogil:
        while start < m.shape[0]:
            n = min(m.shape[0] - start, <Py_ssize_t>BLOCK)
            probit_kernel(&m[start], n, scale, wanted == LOSS, found[1], found[2], found[0])
            for k in range(n):
                out[start + k] = found[<int>wanted][k]
            start += n


def ratios(const double[::1] m, double[::1] out):
    """Compute out = r(m)."""
    fill_losses(m, out, RATIO)


def excesses(const double[::1] m, double[::1] out):
    """Compute out = m + r(m)."""
    fill_losses(m, out, EXCESS)


def losses(const double[::1] m, double[::1] out):
    """Compute out = -ln Phi(m)."""
    fill_losses(m, out, LOSS)


# ---------------------------------------------------------------------------------------------
# ProbitBoost in the leaves of a tree: Newton steps for the probit loss, each in one feature.
#
# For every feature, a step fits a line by weighted least squares. With u = Y f, the responses are z = Y /
# (u + r(u)), and the weights are w = w0 r(u) (u + r(u)). The step adds the best line to f. It needs only w
# and w z = w0 Y r(u) of each row. Features are copied once per leaf and centered, and scaled by a power of
# two so that their largest absolute value is in [1/2, 1). Missing values become the mean of the feature in
# the leaf, which is 0.

cdef enum:
    ONE_CLASS = -1
    ABSENT = -2
    HALVINGS = 40
    CELLS = 50_000_000  # number of cells between two checks for signals
    LOADED = 8192  # number of rows of a leaf that are copied at a time

cdef extern from "probit_step.h" nogil:
    """
    /* If all margins exceed PBOOST_FAR, densities are divided by the density at the smallest margin. The
       divisor is updated if half the square of this margin changes by PBOOST_MOST_DRIFT. */
    #define PBOOST_FAR 20.0
    #define PBOOST_MOST_DRIFT 300.0
    /* A smaller relative increase of the risk is ignored, because it may be a rounding error. */
    #define PBOOST_RISE 1e-14
    """
    const double FAR "PBOOST_FAR"
    const double MOST_DRIFT "PBOOST_MOST_DRIFT"
    const double RISE "PBOOST_RISE"

    ctypedef void (*StepKernel "pboost_step_kernel")(
        Sums* leaf, const double* f, double* tried, const double* x, double b, double a,
        Scale scale, int wants_loss, int wants_sums)
    StepKernel pboost_choose_step(int most)
    void find_ends "pboost_find_ends"(const Sums* leaf, const double* x, Ends* ends)
    double pboost_head(double t)

cdef StepKernel step_kernel = pboost_choose_step(2)

cdef struct Limits:
    int steps
    double tol
    bint safeguard

cdef struct Course:  # state of the steps in one leaf
    Leaf leaf
    Py_ssize_t l  # number of the leaf
    int k  # number of the model
    Py_ssize_t taken
    bint known  # true if risk_now is the sum of w0 times the loss
    double risk_now
    double most_risk  # upper bound on the risk; the initial risk is ln 2
    double small  # half of `tol` in units of w0
    int32_t* feature  # the recorded path, see `boost_leaves`, or NULL
    double* value
    double* risk

cdef Line NOTHING
NOTHING.j, NOTHING.place, NOTHING.intercept, NOTHING.slope, NOTHING.gain = -1, 0, 0.0, 0.0, 0.0


def use_simd_level(int most):
    """Choose the SIMD instructions for tests: 0 for baseline, 1 for AVX2 or 2 for AVX-512."""
    global probit_kernel, step_kernel
    probit_kernel, step_kernel = pboost_choose_probit(most), pboost_choose_step(most)


cdef double try_step(
    Leaf* leaf, const Line* line, double length, bint wants_loss, bint wants_sums,
) noexcept nogil:
    """Compute `tried`, w, w z and their sums after a step. Return the sum of w0 times the loss."""
    cdef const double* x = NULL
    cdef double least, needed
    if line.j >= 0:
        x = leaf.sums.x + line.j * leaf.sums.room
    while True:
        step_kernel(
            &leaf.sums, leaf.f, leaf.tried, x, length * line.intercept, length * line.slope,
            leaf.scale, wants_loss, wants_sums)
        least = leaf.sums.least
        needed = pboost_head(least) if FAR < least < INFINITY else 0.0
        if needed == leaf.scale.origin or (
            needed > 0.0 and leaf.scale.origin > 0.0
            and fabs(needed - leaf.scale.origin) * (needed + leaf.scale.origin) < 2 * MOST_DRIFT
        ):
            return leaf.sums.loss
        leaf.scale.origin, leaf.scale.rescue = needed, exp(-0.5 * needed * needed)


cdef int look(Leaf* leaf, Py_ssize_t cells) except -1 nogil:
    """Check for signals if many cells have been processed since the last check.

    `cells` is the number of newly processed cells.
    """
    leaf.cells += cells
    if leaf.cells > CELLS:
        leaf.cells = 0
        with gil:
            PyErr_CheckSignals()
            if leaf.stop != NULL and leaf.stop[0]:
                raise InterruptedError
    return 0


cdef int load_leaf(
    Leaf* leaf, const Rows* X, const int32_t* rows, const double* weight,
) except -1 nogil:
    """Copy the rows of a leaf, centered and scaled."""
    cdef Sums* sums = &leaf.sums
    cdef Py_ssize_t start = 0, stop, j
    load_weights(leaf, rows, weight)
    while start < leaf.m:
        stop = min(start + LOADED, leaf.m)
        load_rows(leaf, X, rows, start, stop)
        look(leaf, 8 * (stop - start) * leaf.d)
        start = stop
    sums.n_columns = 0
    for j in range(leaf.d):
        if centre_column(leaf, j):
            sums.column[sums.n_columns] = <int32_t>j
            sums.n_columns += 1
        look(leaf, 8 * leaf.m)
    return 0


cdef int begin(Course* course, const Limits* limits) except -1 nogil:
    """Start the model of a leaf and class."""
    cdef Leaf* leaf = &course.leaf
    cdef int32_t c, j
    memset(leaf.f, 0, leaf.sums.rows * sizeof(double))
    memset(leaf.slope, 0, leaf.d * sizeof(double))
    leaf.intercept, leaf.scale.origin, leaf.scale.rescue = 0.0, 0.0, 1.0
    course.taken, course.known = 0, course.risk != NULL
    course.risk_now = try_step(leaf, &NOTHING, 0.0, course.known, True)
    course.most_risk = leaf.mass
    course.small = ldexp(0.5 * limits.tol, -leaf.unit)
    if limits.safeguard or limits.tol > 0.0:
        for c in range(leaf.sums.n_columns):
            j = leaf.sums.column[c]
            find_ends(&leaf.sums, leaf.sums.x + j * leaf.sums.room, leaf.ends + j)
            look(leaf, 2 * leaf.m)
    if course.risk != NULL:
        course.risk[0] = course.risk_now / leaf.mass
    return 0


cdef bint take_bounded(
    Course* course, const Limits* limits, const Line* line, bint wants_sums, bint* is_small,
) noexcept nogil:
    """Try a full step, and use bounds on the loss instead of the loss itself if they suffice.

    Return whether the bounds suffice. If they do not, only `tried` has changed. If the path is recorded,
    the loss itself is needed.
    """
    cdef Leaf* leaf = &course.leaf
    cdef Scale scale = leaf.scale
    cdef Fall fall
    cdef bint decides = True
    is_small[0] = False
    if course.risk != NULL:
        return False
    if limits.safeguard or limits.tol > 0.0:
        fall = fall_of(leaf, line, course.most_risk)
        is_small[0] = limits.tol > 0.0 and max(fall.most, -fall.least) < course.small
        decides = (fall.least > 0.0 or not limits.safeguard) and (
            is_small[0] or fall.least > course.small or not limits.tol > 0.0)
        # A bound that did not suffice in the previous step usually fails again.
        if not decides and (course.known or not wants_sums):
            return False
    try_step(leaf, line, 1.0, False, wants_sums)
    if decides:
        return True
    is_small[0] = False
    if fall_after(leaf, line, course.most_risk) > course.small:
        return True
    leaf.scale = scale
    return False


cdef int advance(Course* course, const Limits* limits) except -1 nogil:
    """Make a step and return whether another step may follow."""
    cdef Leaf* leaf = &course.leaf
    cdef Line line = best_line(leaf)
    cdef double length = 1.0, most, now = 0.0
    cdef bint bounded, is_small, wants_sums = course.taken + 1 < limits.steps
    cdef int halved = 0
    if not (isfinite(line.intercept) and isfinite(line.slope)):
        return 0
    bounded = take_bounded(course, limits, &line, wants_sums, &is_small)
    if not bounded:
        if not course.known:
            course.risk_now = try_step(leaf, &NOTHING, 0.0, True, False)
        most = course.risk_now * (1.0 + RISE)
        now = try_step(leaf, &line, length, True, wants_sums)
        while limits.safeguard and not now <= most and halved < HALVINGS:
            length, halved = 0.5 * length, halved + 1
            now = try_step(leaf, &line, length, True, wants_sums)
        if course.risk != NULL:
            course.value[3 * course.taken + 2] = length
        if limits.safeguard and not now <= most:
            return 0
        is_small = limits.tol > 0.0 and (
            ldexp(2.0 * fabs(course.risk_now - now), leaf.unit) <= limits.tol)
        course.risk_now = course.most_risk = now
    course.known = not bounded
    leaf.f, leaf.tried = leaf.tried, leaf.f
    leaf.intercept += length * line.intercept
    if line.j >= 0:
        leaf.slope[line.j] += length * line.slope
    if course.risk != NULL:
        course.feature[course.taken] = <int32_t>line.j
        to_units(leaf, line.j, length * line.intercept, length * line.slope,
                 course.value + 3 * course.taken)
        course.risk[course.taken + 1] = now / leaf.mass
    course.taken += 1
    look(leaf, (leaf.m + 64) * (leaf.sums.n_columns + 8) * (1 + halved))
    return wants_sums and not is_small


cdef void to_units(
    const Leaf* leaf, Py_ssize_t j, double intercept, double slope, double* out,
) noexcept nogil:
    """Convert the line intercept + slope x_j to the units of X (OUT out: intercept and slope)."""
    out[0], out[1] = intercept, 0.0
    if j >= 0 and slope != 0.0:
        out[0] = intercept - ldexp(slope * leaf.centre[j], -leaf.spread[j])
        out[1] = ldexp(slope, -leaf.spread[j] - leaf.exponent[j])


cdef void write_model(const Leaf* leaf, double* out) noexcept nogil:
    cdef double[2] term
    cdef Py_ssize_t j
    out[0] = leaf.intercept
    for j in range(leaf.d):
        to_units(leaf, j, 0.0, leaf.slope[j], term)
        out[0] += term[0]
        out[1 + j] = term[1]


cdef struct Queue:  # the leaves to be fitted
    Py_ssize_t l
    Py_ssize_t last
    int models
    const Rows* X
    const int32_t* rows
    const int32_t* starts
    const int32_t* label
    const double* weight
    double* coefficient
    double* means  # NULL if not requested
    int32_t* taken


cdef void write_means(const Leaf* leaf, double* out) noexcept nogil:
    """Write the means of the features in the units of X; 0 if all values are missing."""
    cdef Py_ssize_t j
    for j in range(leaf.d):
        out[j] = ldexp(leaf.centre[j], leaf.exponent[j]) if leaf.m else 0.0


cdef int next_model(Course* course, Queue* queue, const Limits* limits) except -1 nogil:
    """Start the next model that needs steps. Return 0 if no model is left."""
    cdef Leaf* leaf = &course.leaf
    cdef const int32_t* rows
    cdef Py_ssize_t inside
    cdef int class_
    cdef double* out
    while True:
        course.k += 1
        if course.k == queue.models:
            if queue.l == queue.last:
                return 0
            course.l, course.k = queue.l, 0
            queue.l += 1
            leaf.m = queue.starts[course.l + 1] - queue.starts[course.l]
            if leaf.m:
                load_leaf(leaf, queue.X, queue.rows + queue.starts[course.l], queue.weight)
            if queue.means != NULL:
                write_means(leaf, queue.means + course.l * leaf.d)
        rows = queue.rows + queue.starts[course.l]
        class_ = 1 if queue.models == 1 else course.k
        inside = choose_class(leaf, rows, queue.label, class_) if leaf.m else 0
        if 0 < inside < leaf.m:
            begin(course, limits)
            return 1
        queue.taken[course.l * queue.models + course.k] = ONE_CLASS if inside else ABSENT
        out = queue.coefficient + (course.l * queue.models + course.k) * (1 + leaf.d)
        memset(out, 0, (1 + leaf.d) * sizeof(double))


cdef int work_off(Course* course, Queue* queue, const Limits* limits) except -1 nogil:
    """Fit all leaves."""
    cdef Py_ssize_t place
    course.k = queue.models - 1
    while next_model(course, queue, limits):
        while limits.steps > 0 and advance(course, limits):
            pass
        place = course.l * queue.models + course.k
        queue.taken[place] = <int32_t>course.taken
        write_model(&course.leaf, queue.coefficient + place * (1 + course.leaf.d))
        course.risk = NULL
    return 0


def boost_leaves(
    X, const int32_t[::1] rows, const int32_t[::1] starts, const int32_t[::1] label,
    const double[::1] weight, int n_classes, int steps, double tol, bint safeguard,
    double[:, :, ::1] coefficient, int32_t[:, ::1] taken, path=None, Py_ssize_t first=0,
    Py_ssize_t last=-1, const int32_t[::1] stop=None, double[:, ::1] means=None,
):
    """Fit the leaves first, ..., last - 1.

    IN X (n, d), float64 or float32 with any strides; rows: the rows of all leaves; starts (leaves + 1,):
    first position of each leaf in rows; label (n,), from 0 to n_classes - 1; weight (n,), > 0 for listed
    rows. With two classes, each leaf has one model, for class 1. Otherwise, it has one model per class
    against the rest. If tol > 0, a model ends when the deviance changes by at most tol. OUT coefficient
    (leaves, models, 1 + d): intercept and slopes; taken (leaves, models): the number of steps, or -1 if all
    rows of the leaf are of the class, or -2 if no row is; coefficients are 0 in both cases; means (leaves,
    d) or None: the means of the known values of the features, 0 if all values are missing. OUT path: None
    or three arrays for the first model of the first leaf: feature (steps,) int32, -1 for a constant;
    (steps, 3): intercept, slope and length of each step, then the length at which the safeguard stopped;
    (steps + 1,): mean loss.

    In the main thread, Ctrl-C is handled between steps. Other threads raise InterruptedError if stop (1,)
    is not 0.
    """
    cdef Rows matrix = rows_of(X)
    cdef Limits limits
    cdef Course course
    cdef Queue queue
    cdef int32_t[::1] feature
    cdef double[:, ::1] value
    cdef double[::1] risk
    cdef Py_ssize_t l, most = 0
    cdef int models = 1 if n_classes == 2 else n_classes
    last = starts.shape[0] - 1 if last < 0 else last
    if not (0 <= first <= last < starts.shape[0] and coefficient.shape[0] > last - 1
            and coefficient.shape[1] == models == taken.shape[1] and taken.shape[0] > last - 1
            and coefficient.shape[2] == 1 + matrix.d and label.shape[0] == matrix.n
            and weight.shape[0] == matrix.n
            and (means is None or (means.shape[0] > last - 1 and means.shape[1] == matrix.d))):
        raise ValueError("boost_leaves: arrays of different sizes")
    memset(&course, 0, sizeof(course))
    if path is not None and steps > 0:
        feature, value, risk = path
        if feature.shape[0] < steps or value.shape[0] < steps or risk.shape[0] <= steps:
            raise ValueError("boost_leaves: arrays of different sizes")
        course.feature, course.value, course.risk = &feature[0], &value[0, 0], &risk[0]
    if first == last:
        return
    for l in range(first, last):
        most = max(most, starts[l + 1] - starts[l])
    limits.steps, limits.tol, limits.safeguard = steps, tol, safeguard
    queue.l, queue.last, queue.models, queue.X = first, last, models, &matrix
    queue.rows, queue.starts = &rows[0] if rows.shape[0] else NULL, &starts[0]
    queue.label, queue.weight = &label[0], &weight[0]
    queue.coefficient, queue.taken = &coefficient[0, 0, 0], &taken[0, 0]
    queue.means = NULL if means is None else &means[0, 0]
    if not allocate(&course.leaf, most, matrix.d):
        raise MemoryError
    course.leaf.stop = NULL if stop is None else &stop[0]
    try:
        with nogil:
            work_off(&course, &queue, &limits)
    finally:
        free(course.leaf.memory)


# ---------------------------------------------------------------------------------------------
# A round of AdaBoost with probit trees: the misclassified rows, weights, and risks of leaves.
#
# Rows are listed leaf after leaf, as by `list_rows`, or in increasing order if there is one tree per class.
# Sums are computed by `sum_of`.

cdef extern from *:
    """
    /* Smallest weight of a row in boosting. */
    #define PBOOST_LEAST_PROBIT_WEIGHT 1e-300
    /* The square of a larger value would overflow. */
    #define PBOOST_FAR_VALUE 1e150
    """
    const double LEAST_WEIGHT "PBOOST_LEAST_PROBIT_WEIGHT"
    const double FAR_VALUE "PBOOST_FAR_VALUE"


def put_beside(
    const double[:, ::1] values, const int32_t[::1] listed, const int32_t[::1] place, Py_ssize_t k,
    double[:, ::1] out,
):
    """Set out[place[row], k] to the value of each listed row; IN values (n, 1), place (rows of X,)."""
    cdef Py_ssize_t i, n = listed.shape[0]
    if values.shape[0] < n or out.shape[0] < n or not 0 <= k < out.shape[1]:
        raise ValueError("put_beside: arrays of different sizes")
    with nogil:
        for i in range(n):
            out[place[listed[i]], k] = values[i, 0]


cdef inline int32_t chosen(const double* value, Py_ssize_t k) noexcept nogil:
    """Return the class with the largest value; ties go to the first."""
    cdef Py_ssize_t i, best = 0
    if k == 1:
        return value[0] > 0.0
    for i in range(1, k):
        if value[i] > value[best]:
            best = i
    return <int32_t>best


def mistakes(
    const double[:, ::1] values, const int32_t[::1] listed, const int32_t[::1] label,
    const double[::1] weight, int32_t[::1] wrong, double[::1] work,
):
    """List the rows that values (n, K) misclassify and return their number and the sum of their weights.

    IN label, weight (rows of X,); OUT wrong (n,); WORK work (n,).
    """
    cdef Py_ssize_t i, n = listed.shape[0], k = values.shape[1], found = 0
    cdef int32_t row
    cdef double error = 0.0
    if (values.shape[0] < n or wrong.shape[0] < n or work.shape[0] < n
            or label.shape[0] != weight.shape[0]):
        raise ValueError("mistakes: arrays of different sizes")
    if n == 0:
        return 0, 0.0
    with nogil:
        for i in range(n):
            row = listed[i]
            wrong[found], work[found] = row, weight[row]
            found += chosen(&values[i, 0], k) != label[row]
        if found:
            error = sum_of(&work[0], found)
    return found, error


def normalise(double[::1] weight, const int32_t[::1] rows, double[::1] work):
    """Divide the weights of the rows by their sum. WORK work (n,)."""
    cdef Py_ssize_t i, n = rows.shape[0]
    cdef double total
    if n == 0 or work.shape[0] < n:
        raise ValueError("normalise: arrays of different sizes")
    with nogil:
        for i in range(n):
            work[i] = weight[rows[i]]
        total = sum_of(&work[0], n)
        for i in range(n):
            weight[rows[i]] /= total


def raise_weights(
    double[::1] weight, const int32_t[::1] rows, const int32_t[::1] wrong, Py_ssize_t n_wrong,
    double factor,
):
    """Multiply the weights of the first `n_wrong` rows of `wrong`, then scale all to a maximum of 1.

    No weight becomes smaller than LEAST_WEIGHT.
    """
    cdef Py_ssize_t i, n = rows.shape[0]
    cdef double most = 0.0
    if not 0 <= n_wrong <= wrong.shape[0]:
        raise ValueError("raise_weights: arrays of different sizes")
    with nogil:
        for i in range(n_wrong):
            weight[wrong[i]] *= factor
        for i in range(n):
            most = max(most, weight[rows[i]])
        for i in range(n):
            weight[rows[i]] = max(weight[rows[i]] / most, LEAST_WEIGHT)


def margins(
    const double[:, ::1] values, const int32_t[::1] listed, const int32_t[::1] label,
    double[::1] out,
):
    """Compute margins: values (n, K) for the class of each row, and their negatives for all other classes.

    OUT out (n * K,).
    """
    cdef Py_ssize_t i, j, n = listed.shape[0], k = values.shape[1]
    cdef int32_t own
    cdef double here
    if values.shape[0] < n or out.shape[0] < n * k:
        raise ValueError("margins: arrays of different sizes")
    with nogil:
        for i in range(n):
            own = label[listed[i]]
            for j in range(k):
                here = max(-FAR_VALUE, min(FAR_VALUE, values[i, j]))
                out[i * k + j] = here if own == (1 if k == 1 else j) else -here


def mean_losses(
    const double[::1] loss, const int32_t[::1] listed, const int32_t[::1] starts,
    const double[::1] weight, double[:, ::1] work, double[:, ::1] out,
):
    """Compute the weighted mean of losses (n * K,) over the rows of each leaf.

    WORK work (2, n); OUT out (leaves, K).
    """
    cdef Py_ssize_t n = listed.shape[0], k = out.shape[1], leaves = starts.shape[0] - 1
    cdef Py_ssize_t i, j, l, start, m
    cdef double* share = &work[0, 0]
    cdef double* term = &work[1, 0]
    cdef double most, total
    if (loss.shape[0] < n * k or out.shape[0] != leaves or starts[leaves] > n
            or work.shape[0] != 2 or work.shape[1] < n):
        raise ValueError("mean_losses: arrays of different sizes")
    with nogil:
        for l in range(leaves):
            start, m, most = starts[l], starts[l + 1] - starts[l], 0.0
            for i in range(m):
                share[i] = weight[listed[start + i]]
                most = max(most, share[i])
            for i in range(m):
                share[i] /= most
            total = share[0] + sum_of(share + 1, m - 1)
            for j in range(k):
                for i in range(m):
                    term[i] = loss[(start + i) * k + j] * share[i]
                out[l, j] = (term[0] + sum_of(term + 1, m - 1)) / total


# ---------------------------------------------------------------------------------------------
# Probit model trees: pruning of a grown tree, the rows of its leaves, and the values of classes that have
# all rows of a leaf, or none.
#
# The nodes of a grown tree are defined in _grower.pxd. The two children of a node are stored together,
# after their parent. An equation is an intercept and one slope per feature. A leaf has K equations: one for
# two classes, and one per class otherwise. `taken` (leaf, K) is ABSENT for a class without rows in the
# leaf. The value of such a class is its intercept, but it is always less than the values of all classes
# that have rows in the leaf.

# The state of a node in keep_splits: its risk, a bound on the gain of its split, then the risk, the number
# of splits and the gain per split of its pruned subtree.
cdef enum:
    RISK, CAP, REDUCED, SPLITS, GAIN, N_STATES

N_STATES_OF_NODE = N_STATES


# ---------------------------------------------------------------------------------------------
# Splits.

cdef bint settle(const Py_ssize_t* node, double* state, double least) noexcept nogil:
    """Combine the results of a node's children and return whether the gain of its split exceeds `least`."""
    cdef double* of = state + N_STATES * node[0]
    cdef double* weaker = state + N_STATES * node[1]
    cdef double* other = weaker + N_STATES
    cdef double risk, splits, gain, less_risk = weaker[REDUCED], less_splits = weaker[SPLITS]
    if not other[GAIN] > weaker[GAIN]:
        weaker, other = other, weaker
        less_risk, less_splits = weaker[REDUCED], weaker[SPLITS]
    risk, splits = less_risk + other[REDUCED], less_splits + other[SPLITS] + 1.0
    gain = (of[RISK] - risk) / splits
    if gain > weaker[GAIN]:
        less_risk, less_splits = weaker[RISK], 0.0
        risk, splits = less_risk + other[REDUCED], other[SPLITS] + 1.0
        gain = (of[RISK] - risk) / splits
        if gain > other[GAIN]:
            risk, splits = less_risk + other[RISK], 1.0
            gain = of[RISK] - risk
    of[REDUCED], of[SPLITS], of[GAIN] = risk, splits, gain
    return gain > least


cdef void prune_nodes(
    Node* nodes, double* state, int64_t* stack, double least
) noexcept nogil:
    """Prune the tree. Each node is on the stack at most three times."""
    cdef Py_ssize_t top = 1
    cdef Py_ssize_t[2] pair
    cdef Py_ssize_t e, phase, child
    cdef double* of
    cdef double* left
    cdef double cap
    stack[0] = 0
    while top:
        top -= 1
        e, phase = stack[top] // 3, stack[top] % 3
        of, child = state + N_STATES * e, nodes[e].child
        left = state + N_STATES * child
        cap = fmin(of[RISK], of[CAP])
        if phase == 0:
            if child < 0 or not cap > least:
                phase = 3
            else:
                left[CAP] = cap - least
        elif phase == 1:
            cap = fmin(cap, fmax((of[RISK] - left[REDUCED]) / (left[SPLITS] + 1.0),
                                 of[RISK] - left[RISK]))
            left[N_STATES + CAP] = cap - least
        else:
            pair[0], pair[1] = e, child
            if settle(pair, state, least):
                continue
            phase = 3
        if phase == 3:
            nodes[e].child = -1
            of[REDUCED], of[SPLITS], of[GAIN] = of[RISK], 0.0, least
        else:
            stack[top], stack[top + 1] = 3 * e + phase + 1, 3 * (child + phase)
            top += 2


def keep_splits(
    array, const int64_t[:, ::1] mass, double complexity, double[:, ::1] state,
    int64_t[::1] stack,
):
    """Undo splits that lower the risk by less than `complexity` times the root's risk.

    The risk of a node is its misclassified weight. IN mass (n, J): class weights; INOUT array (n,) of
    `Node`: `child` is -1 if a split is undone; WORK state (n, N_STATES_OF_NODE), stack (n + 1,).
    """
    cdef Node* nodes = <Node*>to_write(array, sizeof(Node))
    cdef Py_ssize_t e, j, n_nodes = len(array)
    cdef int64_t total, most
    if state.shape[0] < n_nodes or state.shape[1] != N_STATES or stack.shape[0] < n_nodes + 1:
        raise ValueError("keep_splits: arrays of different sizes")
    with nogil:
        for e in range(n_nodes):
            total = most = 0
            for j in range(mass.shape[1]):
                total += mass[e, j]
                most = max(most, mass[e, j])
            state[e, RISK] = ldexp(<double>(total - most), -nodes[e].shift)
        state[0, CAP] = INFINITY
        prune_nodes(nodes, &state[0, 0], &stack[0], complexity * state[0, RISK])


def list_rows(
    array, const int32_t[:, ::1] order, const int32_t[::1] rows, bint exact,
    const int32_t[::1] ascending, int32_t[::1] leaf_of, int32_t[::1] listed, int32_t[::1] starts,
):
    """List the rows of each leaf of a tree, one leaf after another.

    IN array (n_nodes,) of `Node`, in preorder; order (d, n): if `exact`, row positions in `rows` (n,), with
    tie marks; otherwise empty, and `rows` itself is partitioned; ascending (n,): the same rows in
    increasing order. WORK leaf_of (rows of X,). OUT listed (n,): the rows, in increasing order in each
    leaf; starts (leaves + 1,): first position of each leaf. Returns the number of leaves.
    """
    cdef const Node* nodes = <const Node*>to_read(array, sizeof(Node))
    cdef Py_ssize_t i, j, n_nodes = len(array), n = ascending.shape[0], leaves = 0, at = 0
    cdef int32_t row
    cdef const int32_t* segment
    if listed.shape[0] < n or rows.shape[0] < n or starts.shape[0] <= n_nodes:
        raise ValueError("list_rows: arrays of different sizes")
    with nogil:
        for i in range(n_nodes):
            if nodes[i].child >= 0:
                continue
            segment = &order[nodes[i].listed, 0] if exact else &rows[0]
            for j in range(nodes[i].start, nodes[i].stop):
                row = rows[row_of(segment[j])] if exact else segment[j]
                leaf_of[row] = <int32_t>leaves
            starts[leaves] = <int32_t>at
            at += nodes[i].stop - nodes[i].start
            leaves += 1
        for i in range(n):
            row = ascending[i]
            listed[starts[leaf_of[row]]] = row
            starts[leaf_of[row]] += 1
        # Each start is now the start of the next leaf.
        for i in range(leaves, 0, -1):
            starts[i] = starts[i - 1]
        starts[0] = 0
    return leaves


# ---------------------------------------------------------------------------------------------
# Values.

def set_constants(
    double[:, :, ::1] equation, const int32_t[:, ::1] taken, const int32_t[::1] starts, score
):
    """Set the value of a class to score(n) if it has all n rows of a leaf, and to -score(n) if it has none.
    """
    cdef Py_ssize_t l, j
    cdef double size
    if equation.shape[0] != taken.shape[0] or starts.shape[0] != taken.shape[0] + 1:
        raise ValueError("set_constants: arrays of different sizes")
    for l in range(taken.shape[0]):
        for j in range(taken.shape[1]):
            if taken[l, j] < 0:
                size = score(starts[l + 1] - starts[l])
                equation[l, j, 0] = size if taken[l, j] == ONE_CLASS else -size
