r"""A watch over the constraints during a run, after every accepted step.

The rows of K are orthonormalised. Rows that nearly depend on the others announce a singular configuration; a change of
sign of det(K_n Q_{n-1}^T), with the basis Q of the step before, that one was passed. The sign does not change where
the rank is lowered by two. Near such a point the branches of the motion come so close to each other that errors lead
from one to another: in a corner, which an error control follows with tiny steps in which the velocities change as they
never did before. Changes of this kind between rows that nearly depend on each other are added up.

For forms that impose constraints through :math:`B = M^{-1} G^T` the amplification

    a_B = || (I - B (K B)^{-1} K)(t_n) S(t_{n-1}) ||_2

of vectors S along the manifold shows when they have become unstable (Ascher and Petzold section 4): it is 1 for slow
constraints, and the steps behave as those of an explicit method where it grows.
"""

import numpy as np

from daedal.kernels.compilation import entry, part
from daedal.kernels.dense import LU, SMALL, factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, at, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK, HOOK_DONE, HOOK_STOP, call_hook
from daedal.kernels.vectors import add_product, copy, copy_matrix, squares
from daedal.mechanics.augmented import factor_augmented
from daedal.mechanics.constrained import CONSTRAINED, JACOBIAN, MASS, evaluate, load_start, load_state

PASSED_SINGULAR, NEARLY_SINGULAR, AMPLIFYING = HOOK_STOP + 1, HOOK_STOP + 2, HOOK_STOP + 3
TURNED_ASIDE = HOOK_STOP + 7  # those between are of the inspection

VANISHING = 1e-7  # part of its usual norm below which a row is zero
KEPT = 0.7  # part of a row that makes a second orthogonalisation needless (Kahan, Parlett)
SUSPICIOUS = 0.2  # for steps in which the constraints turn less than about a radian
LITTLE, LITTLE_IN_ALL = 0.5, 1.5  # squares of distances of bases, for one row and for all, that make a cosine > 0.2
NEAR = 0.05  # part of the largest independence of the rows below which branches may meet
SHARP, CORNER = 30.0, 0.3  # rates of velocities in units of the usual ones; change of a velocity by its own size
_LARGEST_AMPLIFICATION, _STEPS_OF_AMPLIFICATION = 1.05, 5

MONITOR = Struct(
    "MONITOR",
    [
        ("system", at(CONSTRAINED)),
        ("inner", ADDRESS),  # another hook, which comes first
        ("inner_record", ADDRESS),
        ("inspector", ADDRESS),  # of changes of the constraints, or 0
        ("inspection", ADDRESS),
        ("amplification", INTEGER),  # whether a_B is watched
        ("started", INTEGER),
        ("basis", f64["system.n_c", "system.nx"]),  # Q of the last step, by rows
        ("rows", f64["system.n_c", "system.nx"]),
        ("norms", f64["system.n_c"]),  # the largest norms that the rows have had
        ("independence", FLOAT),
        ("smallest", FLOAT),
        ("t_before", FLOAT),
        ("t", FLOAT),
        ("amplifying_steps", INTEGER),
        ("largest_amplification", FLOAT),
        ("gram", LU),
        ("along", f64["system.nx"]),
        ("image", f64["system.nx + system.n_c"]),
        ("velocity", f64["system.nx"]),  # of the last step
        ("speeds", f64["system.nx"]),  # the largest that its components have had
        ("largest_independence", FLOAT),
        ("usual_rate", FLOAT),  # the fastest change of velocities, relative to these speeds, between independent rows
        ("corner", FLOAT),  # by how much they have changed much faster than that, between rows that nearly depend
    ],
)


@entry(i64(i64, i64, f64, f64[:], f64[:], f64[:], f64[:]))
def begin_watch(monitor, system, t, z, r, w, lam):
    """Watch from a start on; `norms` are those that the rows of K have had before.

    Where K cannot be evaluated, the watch begins after the first step.
    """
    return begin_watch_of(record_at(monitor, MONITOR), record_at(system, CONSTRAINED), t, z, r, w, lam)


@part
def begin_watch_of(watch, system, t, z, r, w, lam):
    """:func:`begin_watch` with the records."""
    nx, speeds = system.nx, watch.speeds
    load_start(system, z, r, w, lam)
    watch.started, watch.amplifying_steps, watch.largest_amplification = 0, 0, 0.0
    watch.t_before, watch.t = 0.0, 0.0
    if watch.inspector != 0:
        call_hook(watch.inspector, watch.inspection, t, 0.0, 0)
    status = evaluate(system, t, JACOBIAN)
    watch.largest_independence, watch.usual_rate, watch.corner = 0.0, 0.0, 0.0
    if system.m == 2:
        copy(watch.velocity, z[nx : 2 * nx])
        for j in range(nx):
            speeds[j] = abs(z[nx + j])
    if status == 0:
        _scale_rows(watch, system)
        watch.independence = _orthonormalise(watch.rows)
        copy_matrix(watch.basis, watch.rows)
        watch.t, watch.started = t, 1
    return status


@entry(HOOK)
def monitor_hook(record, t, h, y):
    """The inner hook, then the watch."""
    watch = record_at(record, MONITOR)
    system = watch.system
    signal = HOOK_DONE
    if watch.inner != 0:
        signal = call_hook(watch.inner, watch.inner_record, t, h, y)
        if signal < 0:
            return signal
    else:
        n = system.m * system.nx
        load_state(system, floats(y, n), floats(y + 8 * n, system.n_r))
        status = evaluate(system, t, JACOBIAN | (MASS if watch.amplification else 0))
        if status != 0:
            return status
    if watch.inspector != 0:
        found = call_hook(watch.inspector, watch.inspection, t, h, 0)
        if found != HOOK_DONE:
            return found
    found = _watch(watch, system, t)
    if found == HOOK_DONE and system.m == 2:
        found = _watch_corners(watch, floats(y + 8 * system.nx, system.nx), abs(h))
    return found if found != HOOK_DONE else signal


@part
def _watch(watch, system, t):
    rows, basis = watch.rows, watch.basis
    vanishing = _scale_rows(watch, system)
    if watch.started and watch.amplification:
        _watch_amplification(watch, system, basis)
    watch.t_before = watch.t
    watch.t = t
    watch.independence = _orthonormalise(rows)
    turned_away = watch.started and watch.independence > 0.0 and have_turned_away(watch, rows, basis)
    copy_matrix(basis, rows)
    watch.started = 1
    if turned_away:
        return PASSED_SINGULAR
    if watch.independence < watch.smallest or vanishing < VANISHING:
        return NEARLY_SINGULAR
    if watch.amplifying_steps >= _STEPS_OF_AMPLIFICATION:
        return AMPLIFYING
    return HOOK_DONE


@part
def _watch_corners(watch, v, h):
    """Whether the motion has turned aside, on a way on which the velocities would go on as before."""
    n = v.size
    before, speeds = watch.velocity, watch.speeds
    change = 0.0
    for j in range(n):
        speeds[j] = max(speeds[j], abs(v[j]))
        if speeds[j] > 0.0:
            change = max(change, abs(v[j] - before[j]) / speeds[j])
    copy(before, v)
    watch.largest_independence = max(watch.largest_independence, watch.independence)
    if watch.independence > NEAR * watch.largest_independence:
        watch.usual_rate = max(watch.usual_rate, change / h)
        watch.corner = 0.0
    elif watch.usual_rate > 0.0 and change > SHARP * watch.usual_rate * h:
        watch.corner += change
    return TURNED_ASIDE if watch.corner > CORNER else HOOK_DONE


@part
def _scale_rows(watch, system):
    """The rows of K, divided by their norms; returns the smallest norm as a part of what is usual for its row."""
    nx, n_c = system.nx, system.n_c
    jacobian, rows, norms, vanishing = system.jacobian, watch.rows, watch.norms, 1.0
    for i in range(n_c):
        norm = np.sqrt(squares(jacobian[i]))
        norms[i] = max(norms[i], norm)
        vanishing = min(vanishing, norm / norms[i] if norms[i] > 0.0 else 1.0)
        factor = 1.0 / norm if norm > 0.0 else 1.0
        for j in range(nx):
            rows[i, j] = factor * jacobian[i, j]
    return vanishing


@part
def have_turned_away(watch, rows, basis):
    """Whether the cosine of the angle between both spaces, det(Q_n Q_{n-1}^T), is near zero or below it.

    With d^2 = ||Q_n - Q_{n-1}||^2, the squares of the distances of all singular values of the product from 1 add up to
    d^2 at most, and with d < 1 its sign is that of 1: the determinant is at least (1 - d n^{-1/2})^n, and 1 - d for
    n = 1. Where d says enough, the determinant is not computed.
    """
    n_c, distance = rows.shape[0], 0.0
    for i in range(n_c):
        for j in range(rows.shape[1]):
            difference = rows[i, j] - basis[i, j]
            distance += difference * difference
    return distance > min(LITTLE, LITTLE_IN_ALL / n_c) and _determinant(watch, rows, basis) < SUSPICIOUS


@part
def _determinant(watch, rows, basis):
    """det(Q_n Q_{n-1}^T), between -1 and 1."""
    n_c = rows.shape[0]
    by_columns = watch.gram.data
    for i in range(n_c):
        for k in range(n_c):
            by_columns[k, i] = add_product(0.0, rows[i], basis[k])
    if factor_lu(watch.gram) != 0:
        return 0.0
    value = 1.0 * determinant_sign(watch.gram)
    for i in range(n_c):
        value *= abs(by_columns[i, i])
    return value


@part
def determinant_sign(lu):
    """The sign of the determinant of a factored matrix."""
    n = lu.n
    by_columns, pivots = lu.data, lu.pivots
    sign = 1
    lapack = n > SMALL  # then pivots are 4-byte numbers that begin with 1
    for i in range(n):
        if by_columns[i, i] < 0.0:
            sign = -sign
        pivot = pivots[i]
        if lapack:
            word = pivots[i // 2]
            pivot = ((word >> 32) if i % 2 else (word & 0xFFFFFFFF)) - 1
        if pivot != i:
            sign = -sign
    return sign


@part
def _orthonormalise(rows):
    """Gram and Schmidt in place, again where a row has lost much; the smallest part that others do not explain."""
    n_c, nx = rows.shape
    smallest = 1.0
    for i in range(n_c):
        rest = _normalise(rows[i])
        if rest <= KEPT:
            _make_orthogonal(rows[i], rows[:i])
            rest *= _normalise(rows[i])
        smallest = min(smallest, rest)
        for k in range(i + 1, n_c):  # one by one for all that follow, which a processor does at the same time
            product = add_product(0.0, rows[k], rows[i])
            for j in range(nx):
                rows[k, j] -= product * rows[i, j]
    return smallest


@part
def _normalise(v):
    """Divide a vector by its norm, which is returned; zero stays."""
    norm = np.sqrt(squares(v))
    factor = 1.0 / norm if norm > 0.0 else 1.0
    for j in range(v.size):
        v[j] *= factor
    return norm


@part
def _make_orthogonal(v, basis):
    """v loses its parts along the rows of the basis, one after the other."""
    for k in range(basis.shape[0]):
        product = add_product(0.0, v, basis[k])
        for j in range(v.size):
            v[j] -= product * basis[k, j]


@part
def _watch_amplification(watch, system, basis):
    """a_B^2 from below, by H_B applied to random-like vectors along the last kernel: two steps of the power method."""
    nx = system.nx
    if factor_augmented(system) != 0:
        return
    along, image, mass, largest = watch.along, watch.image, system.mass, 0.0
    for trial in range(2):
        for j in range(nx):
            along[j] = np.cos(1.0 + 2.3 * j + 1.7 * trial)
        _make_orthogonal(along, basis)
        norm = squares(along)
        if norm <= 0.0:
            return
        for i in range(nx):
            image[i] = add_product(0.0, mass[i], along)
        image[nx:] = 0.0
        solve_lu(system.kkt, image)
        largest = max(largest, np.sqrt(squares(image[:nx]) / norm))
    watch.largest_amplification = max(watch.largest_amplification, largest)
    if largest > _LARGEST_AMPLIFICATION:
        watch.amplifying_steps += 1
    else:
        watch.amplifying_steps = 0
