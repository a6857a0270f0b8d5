"""Evaluation of a decision graph whose answers are uncertain: reach, expectations, random walks.

Arrays: X (n, d) float64; feature (n_nodes,), threshold (n_nodes,), next (n_nodes, 2), vote
(n_nodes, 2, V) as in `DecisionGraph`, V = 1 or J; label (n,) from 0 on, the class whose answers a row
gets. Answers are those of tables, answer (n_nodes, 2, J), the probability of exit 1 by side of the
threshold and class; or gaussian, sigma (n, d) or (1, d), the standard deviations of X. The other array
has no rows. Where neither has, X holds the probabilities of exit 1 themselves.

NaN in X is missing: it lies above with the probability that its node has in `missing` (n_nodes,), 0
and 1 among them, and no sigma of it is read. Sigma is 0 of a number that is known exactly.
"""
from libc.math cimport INFINITY, exp
from libc.string cimport memset

from pboost._core cimport _rng
from pboost._core._side cimport goes_right
from pboost._core.gauss cimport tail
from pboost._core.types cimport int32_t, uint8_t, uint64_t

cdef struct Answers:
    const double* table
    Py_ssize_t width     # J, labels of a table
    const double* sigma
    Py_ssize_t stride    # from the sigma of one row to the next
    const double* missing


cdef Answers read_answers(
    const double[:, :, ::1] answer, const double[:, ::1] sigma, const double[::1] missing,
    Py_ssize_t n_nodes, Py_ssize_t n, Py_ssize_t d,
):
    """Answers of any kind, as kernels ask for them."""
    cdef Answers answers
    cdef bint gaussian = sigma.shape[0] > 0
    answers.table = answers.sigma = answers.missing = NULL
    if missing is not None and n_nodes:
        if missing.shape[0] != n_nodes:
            raise ValueError("missing: expected one number per node")
        answers.missing = &missing[0]
    answers.width = answer.shape[2]
    answers.stride = d if sigma.shape[0] > 1 else 0
    if gaussian:
        if sigma.shape[1] != d or (sigma.shape[0] > 1 and sigma.shape[0] != n):
            raise ValueError("sigma: another shape than X")
        answers.sigma = &sigma[0, 0]
    elif answer.shape[0] == n_nodes and n_nodes and answer.shape[1] == 2:
        answers.table = &answer[0, 0, 0]
    elif answer.shape[0]:
        raise ValueError("answer: expected one table per node")
    return answers


cdef inline void ask(
    const Answers* answers, Py_ssize_t row, Py_ssize_t node, Py_ssize_t feature, double value,
    double threshold, int label, double* q,
) noexcept nogil:
    """Probability q of either exit for a row of which a node compares `value`."""
    cdef double distance, sigma, above
    cdef const double* table
    if answers.missing and value != value:
        above = answers.missing[node]
        if answers.table:
            table = answers.table + 2 * answers.width * node + label
            above = (1.0 - above) * table[0] + above * table[answers.width]
        q[0], q[1] = 1.0 - above, above
    elif answers.table:
        table = answers.table + answers.width * (2 * node + <Py_ssize_t>goes_right(value, threshold))
        q[1] = table[label]
        q[0] = 1.0 - q[1]
    elif answers.sigma:
        sigma = answers.sigma[row * answers.stride + feature]
        distance = (value - threshold) / sigma if sigma > 0.0 else INFINITY
        if goes_right(value, threshold):
            q[0] = tail(distance)
            q[1] = 1.0 - q[0]
        else:
            q[1] = tail(distance)
            q[0] = 1.0 - q[1]
    else:
        q[0], q[1] = 1.0 - value, value


def propagate(
    const double[:, ::1] X, const int32_t[::1] feature, const double[::1] threshold,
    const int32_t[:, ::1] next_, const double[:, :, ::1] vote, const double[:, :, ::1] answer,
    const double[:, ::1] sigma, const int32_t[::1] label, const double[::1] bias, double[:, ::1] reach,
    double[:, ::1] work, double[:, ::1] score, double[:, ::1] loss, const double[::1] missing=None,
):
    """Probability that each row arrives at each node, summed over paths, and what follows of it.

    OUT reach (n, n_nodes), or (1, n_nodes) of the last row; score (n, V) expected decision values; loss
    (n, V) expected exponential loss, E[exp(-F y)], y = +1 for label 1, of several votes for the vote of
    the row's label. WORK work (n_nodes, V). Where `loss` has no places, neither score nor loss is computed.
    """
    cdef Py_ssize_t i, l, node, n = X.shape[0], n_nodes = feature.shape[0], V = bias.shape[0]
    cdef Answers answers = read_answers(answer, sigma, missing, n_nodes, n, X.shape[1])
    cdef bint wants_loss = loss.shape[0] > 0
    cdef double[2] q
    cdef int exit_, to
    cdef double sign, p, w
    cdef double* arrives
    if (not n_nodes or reach.shape[1] != n_nodes or reach.shape[0] < min(n, <Py_ssize_t>1)
            or (1 < reach.shape[0] < n) or vote.shape[0] != n_nodes or vote.shape[1] != 2
            or vote.shape[2] != V or label.shape[0] != n or (wants_loss and (
                work.shape[0] < n_nodes or work.shape[1] != V or loss.shape[0] != n
                or loss.shape[1] != V or score.shape[0] != n or score.shape[1] != V))):
        raise ValueError("propagate: arrays of different sizes, or no nodes")
    with nogil:
        for i in range(n):
            arrives = &reach[i if reach.shape[0] > 1 else 0, 0]
            memset(arrives, 0, <size_t>n_nodes * sizeof(double))
            arrives[0] = 1.0
            if wants_loss:
                memset(&work[0, 0], 0, <size_t>(n_nodes * V) * sizeof(double))
                for l in range(V):
                    work[0, l] = exp(-bias[l] * side_of(label[i], l, V))
                    score[i, l], loss[i, l] = bias[l], 0.0
            # Parents stand before children: a node's reach is complete when its turn comes.
            for node in range(n_nodes):
                p = arrives[node]
                if p == 0.0:
                    continue
                ask(&answers, i, node, feature[node], X[i, feature[node]], threshold[node], label[i],
                    q)
                for exit_ in range(2):
                    to = next_[node, exit_]
                    if to >= 0:
                        arrives[to] += p * q[exit_]
                    if not wants_loss or q[exit_] == 0.0:
                        continue  # a loss can be infinite, and no part of it is none
                    for l in range(V):
                        sign = side_of(label[i], l, V)
                        w = work[node, l] * q[exit_] * exp(-vote[node, exit_, l] * sign)
                        score[i, l] += p * q[exit_] * vote[node, exit_, l]
                        if to >= 0:
                            work[to, l] += w
                        else:
                            loss[i, l] += w


cdef inline double side_of(int32_t label, Py_ssize_t vote, Py_ssize_t n_votes) noexcept nogil:
    """Whether a vote is for the label of a row, +1, or against it, -1."""
    return 1.0 if label == (vote if n_votes > 1 else 1) else -1.0


def sample(
    const double[:, ::1] X, const int32_t[::1] feature, const double[::1] threshold,
    const int32_t[:, ::1] next_, const double[:, :, ::1] vote, const double[:, :, ::1] answer,
    const double[:, ::1] sigma, uint64_t key, Py_ssize_t first, Py_ssize_t last, Py_ssize_t start,
    Py_ssize_t stop, double[:, ::1] total, const double[::1] missing=None,
):
    """Add up the votes of the random walks first..last-1 of each of the rows start..stop-1.

    The answer of a node to a row depends on (key, node, row, walk) alone; the tables' first class
    is used. INOUT total (n, V), to which the walks are added one vote at a time.
    """
    cdef Py_ssize_t i, k, l, node, n_nodes = feature.shape[0], V = total.shape[1]
    cdef Answers answers = read_answers(answer, sigma, missing, n_nodes, X.shape[0], X.shape[1])
    cdef double[2] q
    cdef int taken
    if (not (0 <= start <= stop <= X.shape[0]) or total.shape[0] != X.shape[0]
            or vote.shape[0] != n_nodes or vote.shape[1] != 2 or vote.shape[2] != V):
        raise ValueError("sample: arrays of different sizes")
    with nogil:
        for i in range(start, stop):
            for k in range(first, last):
                node = 0 if n_nodes else -1
                while node >= 0:
                    ask(&answers, i, node, feature[node], X[i, feature[node]], threshold[node], 0, q)
                    taken = _rng.uniform(key, <uint64_t>node, <uint64_t>i, <uint64_t>k) < q[1]
                    for l in range(V):
                        total[i, l] += vote[node, taken, l]
                    node = next_[node, taken]


def uniforms(uint64_t key, uint64_t node, uint64_t row, double[::1] out):
    """The first draws of the stream (key, node, row): for tests."""
    cdef Py_ssize_t k
    for k in range(out.shape[0]):
        out[k] = _rng.uniform(key, node, row, <uint64_t>k)
