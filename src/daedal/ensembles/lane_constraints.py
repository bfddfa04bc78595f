"""Projections of eight members at once, and the watch over their constraints, with the bits of single members.

See :mod:`daedal.mechanics.straight_line` and :mod:`daedal.mechanics.formulations.monitor`.
"""

from daedal.ensembles.lane_steps import CODE, copy_rows, evaluate, larger, size_in
from daedal.kernels.compilation import part
from daedal.kernels.lanes import LANES, absolute, all_less, at, put, root, spread, where_less
from daedal.kernels.records import FLOAT, INTEGER, Struct
from daedal.kernels.signatures import f64
from daedal.mechanics.formulations.monitor import KEPT, LITTLE, LITTLE_IN_ALL, SUSPICIOUS, VANISHING
from daedal.mechanics.straight_line import MOST_CORRECTIONS, NEGLIGIBLE

_CLEARLY = 1.001  # times what is suspicious: above, a determinant without pivoting needs no second look
_SMALL_PIVOT = 0.01

CONSTRAINTS = Struct(
    "CONSTRAINTS",
    [
        ("nx", INTEGER),
        ("n_g", INTEGER),
        ("n_c", INTEGER),
        ("smallest", FLOAT),  # independence of the rows that is not near a singular position
        ("position", CODE),  # the correction of q
        ("velocity", CODE),  # that of v, then K by rows
        # rows of lanes
        ("change", f64["2 * nx", LANES]),  # what the projection took from y
        ("changed", f64[LANES]),  # its size
        ("basis", f64["n_c * nx", LANES]),
        ("rows", f64["n_c * nx", LANES]),
        ("again", f64["nx", LANES]),  # a row that is made orthogonal again
        ("gram", f64["n_c", "n_c", LANES]),
        ("norms", f64["n_c", LANES]),
        ("v_before", f64["nx", LANES]),
        ("speeds", f64["nx", LANES]),
        ("independence", f64[LANES]),
        ("distance", f64[LANES]),  # of the basis from the one before, squared
        ("turn", f64[LANES]),  # the largest change of a velocity beside its usual size
    ],
)


@part
def project(own, steps):
    """Project y of the accepted lanes; what fails is bad."""
    nx, n, y, accepted, half = own.nx, steps.n, steps.y, at(steps.accepted), spread(0.5)
    q, v, correction, change = own.velocity.block, own.velocity.block[nx:], own.velocity.result, own.change
    copy_rows(q, y, n)
    failed = spread(0.0)
    if own.n_g > 0:
        failed = _project_positions(own, steps, accepted)
    failed = evaluate(own.velocity, steps.t_end, failed)
    for i in range(nx):
        put(v[i], at(v[i]) + at(correction[i]))
    put(steps.bad, where_less(half, accepted, larger(at(steps.bad), failed), at(steps.bad)))
    for i in range(n):
        old, new = at(y[i]), at(q[i])
        put(change[i], old - new)
        put(y[i], new)
    put(own.changed, size_in(steps.tableau.maximum_norm, change, steps.inverse_weights))


@part
def _project_positions(own, steps, moving):
    """Newton's method for g = 0 with a new matrix in every step; 1 where it failed."""
    nx, q, target, correction = own.nx, own.position.block, own.velocity.block, own.position.result
    half, zero, failed = spread(0.5), spread(0.0), spread(0.0)
    copy_rows(q, target, nx)
    for _ in range(MOST_CORRECTIONS):
        found = evaluate(own.position, steps.t_end, zero)
        failed = where_less(half, moving, larger(failed, found), failed)
        size, moved = zero, zero
        for i in range(nx):
            here, change = at(q[i]), at(correction[i])
            size, moved = larger(size, absolute(here)), larger(moved, absolute(change))
            put(q[i], where_less(half, moving, here + change, here))
        moving = where_less(NEGLIGIBLE * size, moved, moving, zero)
        if all_less(moving, half):
            break
    copy_rows(target, q, nx)
    return larger(failed, moving)


@part
def watch(own, steps):
    """Independence of the rows of K, how far they have turned, and how much velocities changed; bad where too much."""
    nx, count = own.nx, own.n_c * own.nx
    accepted, half, one, zero = at(steps.accepted), spread(0.5), spread(1.0), spread(0.0)
    vanishing = _scale_rows(own, accepted)
    independence = _orthonormalise(own)
    distance = zero
    for i in range(count):
        difference = at(own.rows[i]) - at(own.basis[i])
        distance = distance + difference * difference
    put(own.distance, distance)
    put(own.independence, independence)
    lost = where_less(independence, spread(own.smallest), one, zero)
    lost = where_less(vanishing, spread(VANISHING), one, lost)
    put(steps.bad, where_less(half, accepted, larger(at(steps.bad), lost), at(steps.bad)))
    turn, v, v_before, speeds = zero, steps.y[nx:], own.v_before, own.speeds
    for i in range(nx):
        now, before, speed = at(v[i]), at(v_before[i]), larger(at(speeds[i]), absolute(at(v[i])))
        share = absolute(now - before) / speed
        turn = where_less(zero, speed, larger(turn, share), turn)
        put(speeds[i], where_less(half, accepted, speed, at(speeds[i])))
        put(v_before[i], where_less(half, accepted, now, before))
    put(own.turn, turn)


@part
def is_near(own, steps):
    """Whether the bases of all accepted lanes are so close to those before that nothing was passed."""
    limit = min(LITTLE, LITTLE_IN_ALL / own.n_c)
    beyond = where_less(spread(limit), at(own.distance), at(steps.accepted), spread(0.0))
    if all_less(beyond, spread(0.5)):
        return True
    beyond = where_less(spread(_CLEARLY * SUSPICIOUS), _cosine(own), spread(0.0), beyond)
    return all_less(beyond, spread(0.5))


@part
def _cosine(own):
    """det(Q_n Q_{n-1}^T) by elimination without pivoting; 0 where a pivot is small, and nothing can be said."""
    nx, n_c, product, one = own.nx, own.n_c, spread(1.0), spread(1.0)
    for i in range(n_c):
        for k in range(n_c):
            total = spread(0.0)
            for j in range(nx):
                total = total + at(own.rows[nx * i + j]) * at(own.basis[nx * k + j])
            put(own.gram[i, k], total)
    for i in range(n_c):
        pivot = at(own.gram[i, i])
        product = where_less(spread(_SMALL_PIVOT), pivot, product * pivot, spread(0.0))
        inverse = one / pivot
        for k in range(i + 1, n_c):
            factor = at(own.gram[k, i]) * inverse
            for j in range(i + 1, n_c):
                put(own.gram[k, j], at(own.gram[k, j]) - factor * at(own.gram[i, j]))
    return product


@part
def keep_basis(own, steps):
    """The basis of this step is that before the next one."""
    half, accepted = spread(0.5), at(steps.accepted)
    for i in range(own.n_c * own.nx):
        old, new = at(own.basis[i]), at(own.rows[i])
        put(own.basis[i], where_less(half, accepted, new, old))


@part
def _norm(row, n):
    total = spread(0.0)
    for j in range(n):
        value = at(row[j])
        total = total + value * value
    return root(total)


@part
def _scale_rows(own, accepted):
    """The rows of K with norm 1; the smallest norm as a part of what is usual for its row."""
    nx, gradients = own.nx, own.velocity.result[own.nx :]
    zero, one, vanishing = spread(0.0), spread(1.0), spread(1.0)
    for i in range(own.n_c):
        source, target, usual = gradients[nx * i :], own.rows[nx * i :], own.norms[i]
        norm = _norm(source, nx)
        before = at(usual)
        now = larger(before, norm)
        put(usual, where_less(spread(0.5), accepted, now, before))
        share = where_less(zero, now, norm / now, one)
        vanishing = where_less(share, vanishing, share, vanishing)
        factor = where_less(zero, norm, one / norm, one)
        for j in range(nx):
            put(target[j], factor * at(source[j]))
    return vanishing


@part
def _normalised(row, n):
    """Divide a row by its norm, which is returned; zero stays."""
    norm = _norm(row, n)
    factor = where_less(spread(0.0), norm, spread(1.0) / norm, spread(1.0))
    for j in range(n):
        put(row[j], at(row[j]) * factor)
    return norm


@part
def _without(row, unit, n):
    """A row loses its part along a unit vector."""
    product = spread(0.0)
    for j in range(n):
        product = product + at(row[j]) * at(unit[j])
    for j in range(n):
        put(row[j], at(row[j]) - product * at(unit[j]))


@part
def _orthonormalise(own):
    """Gram and Schmidt in place, again where a row has lost much; the smallest part that others do not explain."""
    nx, n_c, smallest, kept = own.nx, own.n_c, spread(1.0), spread(KEPT)
    for i in range(n_c):
        row = own.rows[nx * i :]
        rest = _normalised(row, nx)
        if not all_less(kept, rest):
            copy_rows(own.again, row, nx)
            for k in range(i):
                _without(own.again, own.rows[nx * k :], nx)
            further = rest * _normalised(own.again, nx)
            for j in range(nx):
                old, new = at(row[j]), at(own.again[j])
                put(row[j], where_less(kept, rest, old, new))
            rest = where_less(kept, rest, rest, further)
        smallest = where_less(rest, smallest, rest, smallest)
        for k in range(i + 1, n_c):
            _without(own.rows[nx * k :], row, nx)
    return smallest
