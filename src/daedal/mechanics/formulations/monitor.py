r"""Monitoring of the constraints after every accepted step.

The rows of K are orthonormalised. Nearly dependent rows announce a singular configuration; a sign change of det(K_n
Q_{n-1}^T), with the basis Q of the previous step, shows that one was passed. The sign does not change if the rank drops
by two. Near such a point the branches of the motion are so close that errors can lead from one to another. Error
control resolves the corner between two branches with tiny steps, in which the velocities change faster than before.
Such changes are accumulated while rows are nearly dependent.

For forms that impose constraints through :math:`B = M^{-1} G^T` the amplification

    a_B = || (I - B (K B)^{-1} K)(t_n) S(t_{n-1}) ||_2

of vectors S along the manifold indicates instability (Ascher and Petzold section 4): it is 1 for slow constraints; if
it grows, steps behave like those of an explicit method.
"""

from typing import Any, NamedTuple

import numpy as np

from daedal.kernels.arithmetic import ONE, NumberOperations
from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.dense import LU, SMALL, factor_lu, solve_lu
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, at, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import HOOK, HOOK_DONE, HOOK_STOP, call_hook
from daedal.kernels.vectors import add_product, copy, copy_matrix, squares
from daedal.mechanics.augmented import factor_augmented
from daedal.mechanics.constrained import CONSTRAINED, JACOBIAN, MASS, evaluate, load_start, load_state

PASSED_SINGULAR, NEARLY_SINGULAR, AMPLIFYING = HOOK_STOP + 1, HOOK_STOP + 2, HOOK_STOP + 3
TURNED_ASIDE = HOOK_STOP + 7  # the codes from HOOK_STOP + 4 to + 6 belong to inspection.py

VANISHING = 1e-7  # fraction of its usual norm below which a row counts as zero
KEPT = 0.7  # fraction of a row above which no second orthogonalisation is needed (Kahan, Parlett)
LEAST_COSINE = 0.2  # det(Q_n Q_{n-1}^T) below which the constraints have rotated by more than about a radian
LITTLE, LITTLE_IN_ALL = 0.5, 1.5  # squared distances of bases, for one row and for all, that guarantee a cosine > 0.2
NEAR = 0.05  # fraction of the largest independence of the rows below which branches may meet
SHARP = 30.0  # multiple of the usual rate of the velocities above which their changes are accumulated
CORNER = 0.3  # accumulated change of a velocity, relative to its size, above which the motion has passed a corner
_LARGEST_AMPLIFICATION, _STEPS_OF_AMPLIFICATION = 1.05, 5

MONITOR = Struct(
    "MONITOR",
    [
        ("system", at(CONSTRAINED)),
        ("inner", ADDRESS),  # address of another hook, which is called first
        ("inner_record", ADDRESS),
        ("inspector", ADDRESS),  # address of the check of changes of the constraints, or 0
        ("inspection", ADDRESS),
        ("amplification", INTEGER),  # whether a_B is monitored
        ("started", INTEGER),
        ("basis", f64["system.n_c", "system.nx"]),  # Q of the last step, by rows
        ("rows", f64["system.n_c", "system.nx"]),
        ("norms", f64["system.n_c"]),  # largest norms of the rows so far
        ("independence", FLOAT),
        ("smallest", FLOAT),
        ("t_before", FLOAT),
        ("t", FLOAT),
        ("amplifying_steps", INTEGER),
        ("largest_amplification", FLOAT),
        ("gram", LU),
        ("along", f64["system.nx"]),
        ("image", f64["system.nx + system.n_c"]),
        ("velocity", f64["system.nx"]),  # velocity at the previous step
        ("speeds", f64["system.nx"]),  # largest absolute values of its components so far
        ("largest_independence", FLOAT),
        ("usual_rate", FLOAT),  # fastest change of velocities, relative to `speeds`, while rows were independent
        ("corner", FLOAT),  # accumulated changes faster than SHARP while rows were nearly dependent
    ],
)


class Watching(NamedTuple):
    """The functions created by :func:`watching`."""

    scale_rows: Any
    orthonormalise: Any
    make_orthogonal: Any
    squared_distance: Any
    largest_change: Any


def watching(number: NumberOperations) -> Watching:
    """The checks after every step, for one run or for eight runs in lanes; `taken` is 1 for active lanes."""
    _, _, get, put, spread, absolute, root, larger, where_less, all_less = number

    @inlined
    def divisor(x):
        """x, or 1 if x is 0."""
        return where_less(spread(0.0), x, x, spread(1.0))

    @part
    def scale_rows(watch, gradients, taken):
        """Normalise the rows of K; returns the smallest ratio of a norm to the usual norm of its row."""
        n_c, nx = watch.rows.shape[0], watch.rows.shape[1]
        norms, vanishing, one = watch.norms, spread(1.0), spread(1.0)
        for i in range(n_c):
            source, target, before = gradients[i], watch.rows[i], get(norms, i)
            norm = root(product(source, source, nx))
            usual = larger(before, norm)
            put(norms, i, where_less(spread(0.5), taken, usual, before))
            share = where_less(spread(0.0), usual, norm / divisor(usual), one)
            vanishing = where_less(share, vanishing, share, vanishing)
            factor = one / divisor(norm)
            for j in range(nx):
                put(target, j, factor * get(source, j))
        return vanishing

    @part
    def orthonormalise(rows, again):
        """Gram-Schmidt in place, repeated for rows with cancellation; returns the smallest independent fraction."""
        n_c, nx, smallest, kept = rows.shape[0], rows.shape[1], spread(1.0), spread(KEPT)
        for i in range(n_c):
            row = rows[i]
            rest = normalise(row, nx)
            if not all_less(kept, rest):
                for j in range(nx):
                    put(again, j, get(row, j))
                make_orthogonal(again, rows, i, nx)
                further = rest * normalise(again, nx)
                for j in range(nx):
                    put(row, j, where_less(kept, rest, get(row, j), get(again, j)))
                rest = where_less(kept, rest, rest, further)
            smallest = where_less(rest, smallest, rest, smallest)
            for k in range(i + 1, n_c):  # by rows, so that the inner loop vectorises
                remove(rows[k], row, nx)
        return smallest

    @part
    def make_orthogonal(v, basis, count, n):
        """Subtract from v its components along the first `count` rows of a basis, one at a time."""
        for k in range(count):
            remove(v, basis[k], n)

    @part
    def product(a, b, n):
        total = spread(0.0)
        for j in range(n):
            total = total + get(a, j) * get(b, j)
        return total

    @part
    def remove(v, unit, n):
        """Subtract from v its component along a unit vector."""
        along = product(v, unit, n)
        for j in range(n):
            put(v, j, get(v, j) - along * get(unit, j))

    @part
    def normalise(v, n):
        """Divide a vector by its norm, which is returned; zero is unchanged."""
        norm = root(product(v, v, n))
        factor = spread(1.0) / divisor(norm)
        for j in range(n):
            put(v, j, get(v, j) * factor)
        return norm

    @part
    def squared_distance(rows, basis):
        """Sum of the squares of all differences."""
        total = spread(0.0)
        for i in range(rows.shape[0]):
            for j in range(rows.shape[1]):
                difference = get(rows[i], j) - get(basis[i], j)
                total = total + difference * difference
        return total

    @part
    def largest_change(v, before, speeds, taken):
        """Largest change of a velocity relative to its largest previous value; both are updated."""
        largest, zero, half = spread(0.0), spread(0.0), spread(0.5)
        for j in range(v.shape[0]):
            now, last = get(v, j), get(before, j)
            speed = larger(get(speeds, j), absolute(now))
            change = absolute(now - last) / divisor(speed)
            largest = where_less(zero, speed, larger(largest, change), largest)
            put(speeds, j, where_less(half, taken, speed, get(speeds, j)))
            put(before, j, where_less(half, taken, now, last))
        return largest

    return Watching(scale_rows, orthonormalise, make_orthogonal, squared_distance, largest_change)


_scale_rows, _orthonormalise, _make_orthogonal, _squared_distance, _largest_change = watching(ONE)


@entry(i64(i64, i64, f64, f64[:], f64[:], f64[:], f64[:]))
def begin_watch(monitor, system, t, z, r, w, lam):
    """Start monitoring. `norms` are earlier norms of the rows of K.

    If K cannot be evaluated, monitoring begins after the first step.
    """
    return begin_watch_of(record_at(monitor, MONITOR), record_at(system, CONSTRAINED), t, z, r, w, lam)


@part
def begin_watch_of(watch, system, t, z, r, w, lam):
    """:func:`begin_watch` on records."""
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
        _scale_rows(watch, system.jacobian, 1.0)
        watch.independence = _orthonormalise(watch.rows, watch.along)
        copy_matrix(watch.basis, watch.rows)
        watch.t, watch.started = t, 1
    return status


@entry(HOOK)
def monitor_hook(record, t, h, y):
    """Call the inner hook, then monitor."""
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
        change = _largest_change(floats(y + 8 * system.nx, system.nx), watch.velocity, watch.speeds, 1.0)
        found = TURNED_ASIDE if has_corner(watch, watch.independence, change, abs(h)) else HOOK_DONE
    return found if found != HOOK_DONE else signal


@part
def _watch(watch, system, t):
    rows, basis = watch.rows, watch.basis
    vanishing = _scale_rows(watch, system.jacobian, 1.0)
    if watch.started and watch.amplification:
        _watch_amplification(watch, system, basis)
    watch.t_before = watch.t
    watch.t = t
    watch.independence = _orthonormalise(rows, watch.along)
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
def has_corner(watch, independence, change, h):
    """Accumulate fast changes of the velocities near a singular configuration; return whether they form a corner."""
    watch.largest_independence = max(watch.largest_independence, independence)
    if independence > NEAR * watch.largest_independence:
        watch.usual_rate = max(watch.usual_rate, change / h)
        watch.corner = 0.0
    elif watch.usual_rate > 0.0 and change > SHARP * watch.usual_rate * h:
        watch.corner += change
    return watch.corner > CORNER


@inlined
def harmless_distance(n_c):
    """Squared distance of bases below which no singular configuration was passed."""
    return min(LITTLE, LITTLE_IN_ALL / n_c)


@part
def have_turned_away(watch, rows, basis):
    """Whether det(Q_n Q_{n-1}^T), the cosine of the angle between the two spaces, is near zero or negative.

    With d^2 = ||Q_n - Q_{n-1}||^2, the squared distances of all singular values of the product from 1 sum to at most
    d^2, and for d < 1 its sign is positive: the determinant is at least (1 - d n^{-1/2})^n, and 1 - d for n = 1. If d
    is conclusive, the determinant is not computed.
    """
    distance = _squared_distance(rows, basis)
    return distance > harmless_distance(rows.shape[0]) and _determinant(watch, rows, basis) < LEAST_COSINE


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
    lapack = n > SMALL  # pivots are then 4-byte integers starting at 1
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
def _watch_amplification(watch, system, basis):
    """Update a lower bound of a_B, from two pseudo-random vectors along the last kernel, and count steps above 1."""
    nx = system.nx
    if factor_augmented(system) != 0:
        return
    along, image, mass, largest = watch.along, watch.image, system.mass, 0.0
    for trial in range(2):
        for j in range(nx):
            along[j] = np.cos(1.0 + 2.3 * j + 1.7 * trial)
        _make_orthogonal(along, basis, basis.shape[0], nx)
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
