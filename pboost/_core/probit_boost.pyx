"""ProbitBoost in the leaves of a partition: Newton steps of the probit loss, one column each.

A step fits a line in one column to the responses z = Y / (u + r(u)) with the weights
w = w0 r(u) (u + r(u)), u = Y f, by least squares, for every column, and adds the best one to f. Of a
row only w and w z = w0 Y r(u) are needed. Columns are copied once per leaf, centred and scaled by
a power of two so that their largest size is in [1/2, 1). A missing value is the mean of the others of
its column in the leaf, which is 0 there.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, fabs, isfinite, ldexp
from libc.stdlib cimport free
from libc.string cimport memset

from pboost._core._probit_leaf cimport Ends, Leaf, Scale, Sums, allocate, choose_class
from pboost._core._probit_leaf cimport centre_column, load_rows, load_weights
from pboost._core._probit_line cimport Fall, Line, best_line, fall_after, fall_of
from pboost._core._rows cimport Rows, rows_of
from pboost._core.types cimport int32_t

cdef enum:
    ONE_CLASS = -1
    NO_ROW = -2
    HALVINGS = 40
    CELLS = 50_000_000  # rows times columns of the steps between two looks at signals
    LOADED = 8192  # rows of a leaf that are copied at a time

cdef extern from "probit_step.h" nogil:
    """
    /* Least margin from which densities are counted in units of that of the least margin, and the
       change of its square, halved, that does not yet ask for another unit. */
    #define PBOOST_FAR 20.0
    #define PBOOST_MOST_DRIFT 300.0
    /* A risk is higher only by more than rounding, which at the minimum is all that changes. */
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

cdef struct Course:  # of the steps in one leaf
    Leaf leaf
    Py_ssize_t l  # the leaf
    int k  # the model
    Py_ssize_t taken
    bint known  # whether risk_now is the sum of w0 times the loss
    double risk_now
    double most_risk  # the risk is this at most; that of 0 is ln 2
    double small  # half of `tol`, in the units of w0
    int32_t* feature  # the path, see `boost_leaves`; or NULL
    double* value
    double* risk

cdef Line NOTHING
NOTHING.j, NOTHING.place, NOTHING.intercept, NOTHING.slope, NOTHING.gain = -1, 0, 0.0, 0.0, 0.0


def choose_level(int most):
    """Use no more than this level of SIMD: 0 baseline, 1 AVX2, 2 AVX-512; for tests."""
    global step_kernel
    step_kernel = pboost_choose_step(most)


cdef double try_step(
    Leaf* leaf, const Line* line, double length, bint wants_loss, bint wants_sums,
) noexcept nogil:
    """Set `tried`, w, w z and their sums; returns the sum of w0 times the loss."""
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
    """Look at signals, if much has been done since; `cells` is what has been done now."""
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
    """Copy the rows of a leaf, centred and scaled."""
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
    """Begin the model of a leaf and class."""
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
    """Try a full step where bounds decide what is to be known of the loss after it.

    Returns whether they do; if not, nothing has changed but `tried`. Leaves of a path do without.
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
        # The bound from the end of a step most often fails where it failed in the step before.
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
    """Take a step; returns whether there may be another."""
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
    """out = intercept and slope of intercept + slope x_j in the units of X."""
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


cdef struct Queue:  # leaves that are to be fitted
    Py_ssize_t l
    Py_ssize_t last
    int models
    const Rows* X
    const int32_t* rows
    const int32_t* starts
    const int32_t* label
    const double* weight
    double* coefficient
    double* means  # NULL: not wanted
    int32_t* taken


cdef void write_means(const Leaf* leaf, double* out) noexcept nogil:
    """out = the means of the columns in their own units, 0 where no value is known."""
    cdef Py_ssize_t j
    for j in range(leaf.d):
        out[j] = ldexp(leaf.centre[j], leaf.exponent[j]) if leaf.m else 0.0


cdef int next_model(Course* course, Queue* queue, const Limits* limits) except -1 nogil:
    """Begin the next model that takes steps; 0: there is none."""
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
        queue.taken[course.l * queue.models + course.k] = ONE_CLASS if inside else NO_ROW
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

    X (n, d) float64 or float32, any strides; rows, leaf after leaf; starts (leaves + 1,) places in
    rows; label (n,) 0 .. n_classes - 1 and weight (n,) of the rows of X, > 0 where listed. One
    model per leaf of two classes, for class 1; else one per class against the others. tol > 0
    ends a model when the deviance, of the weights as given, changes by no more. OUT coefficient
    (leaves, models, 1 + d): intercept and slopes; taken (leaves, models): steps, or -1 where all rows of
    the leaf are of the class, -2 where none is, and the coefficients are 0; means (leaves, d), if they
    are wanted: of the values of each column that are not missing, 0 where all are. OUT path: None, or of the
    first leaf's first model feature (steps,) int32, -1 for a constant; (steps, 3) intercept, slope
    and length of each step, then the length at which the safeguard gave up; (steps + 1,) mean loss.
    Ctrl-C is noticed between steps, in the main thread; in others stop (1,), once it is not 0, raises
    InterruptedError.
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
