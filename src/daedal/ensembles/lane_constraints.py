"""Projection of eight members at once and monitoring of their constraints, bit-identical to single members.

See :mod:`daedal.mechanics.augmented` and :mod:`daedal.mechanics.formulations.monitor`.
"""

from daedal.ensembles.lane_steps import CODE, copy_rows, evaluate, larger, size_in
from daedal.kernels.arithmetic import EIGHT
from daedal.kernels.compilation import part
from daedal.kernels.lanes import LANES, all_less, at, put, spread, where_less
from daedal.kernels.records import FLOAT, INTEGER, Struct, data_of, float_blocks
from daedal.kernels.signatures import f64
from daedal.mechanics.augmented import position_projection
from daedal.mechanics.formulations.monitor import LEAST_COSINE, VANISHING, harmless_distance, watching

_CLEARLY = 1.001  # factor of the limit above which a determinant computed without pivoting is conclusive
_SMALL_PIVOT = 0.01

CONSTRAINTS = Struct(
    "CONSTRAINTS",
    [
        ("nx", INTEGER),
        ("n_g", INTEGER),
        ("n_c", INTEGER),
        ("length", FLOAT),  # typical length of a single system
        ("smallest", FLOAT),  # independence of the rows below which a configuration may be singular
        ("position", CODE),  # the correction of q
        ("velocity", CODE),  # code for v, followed by K by rows
        # rows of lanes
        ("change", f64["2 * nx", LANES]),  # change of y by the projection
        ("changed", f64[LANES]),  # size of the change
        ("basis", f64["n_c", "nx", LANES]),
        ("rows", f64["n_c", "nx", LANES]),
        ("again", f64["nx", LANES]),  # a row that is reorthogonalised
        ("gram", f64["n_c", "n_c", LANES]),
        ("norms", f64["n_c", LANES]),
        ("v_before", f64["nx", LANES]),
        ("speeds", f64["nx", LANES]),
        ("independence", f64[LANES]),
        ("distance", f64[LANES]),  # squared distance of the basis from the previous one
        ("turn", f64[LANES]),  # the largest change of a velocity relative to its usual size
    ],
)


@part
def _correct(own, t, q):
    copy_rows(own.position.block, q, own.nx)
    return evaluate(own.position, t, spread(0.0)), own.position.result


_scale_rows, _orthonormalise, _, _squared_distance, _largest_change = watching(EIGHT)
_project_positions = position_projection(EIGHT, _correct)


@part
def project(own, steps):
    """Project y of the accepted lanes; lanes that fail are marked bad."""
    nx, n, y, accepted, half = own.nx, steps.n, steps.y, at(steps.accepted), spread(0.5)
    q, v, correction, change = own.velocity.block, own.velocity.block[nx:], own.velocity.result, own.change
    copy_rows(q, y, n)
    failed = spread(0.0)
    if own.n_g > 0:
        failed = _project_positions(own, steps.t_end, q[:nx], own.length, accepted)
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
def watch(own, steps):
    """Check the independence and rotation of the rows of K, and changes of velocities; failing lanes are marked bad."""
    accepted, half, one, zero = at(steps.accepted), spread(0.5), spread(1.0), spread(0.0)
    gradients = float_blocks(data_of(own.velocity.result[own.nx :]), own.n_c, own.nx, LANES)
    vanishing = _scale_rows(own, gradients, accepted)
    independence = _orthonormalise(own.rows, own.again)
    put(own.distance, _squared_distance(own.rows, own.basis))
    put(own.independence, independence)
    lost = where_less(independence, spread(own.smallest), one, zero)
    lost = where_less(vanishing, spread(VANISHING), one, lost)
    put(steps.bad, where_less(half, accepted, larger(at(steps.bad), lost), at(steps.bad)))
    velocities = steps.y[own.nx : 2 * own.nx]
    put(own.turn, _largest_change(velocities, own.v_before, own.speeds, accepted))


@part
def is_near(own, steps):
    """Whether the bases of all accepted lanes are close to the previous ones, so that no singular configuration was
    passed."""
    beyond = where_less(spread(harmless_distance(own.n_c)), at(own.distance), at(steps.accepted), spread(0.0))
    if all_less(beyond, spread(0.5)):
        return True
    beyond = where_less(spread(_CLEARLY * LEAST_COSINE), _cosine(own), spread(0.0), beyond)
    return all_less(beyond, spread(0.5))


@part
def _cosine(own):
    """det(Q_n Q_{n-1}^T) by elimination without pivoting; 0 if a pivot is small, which is inconclusive."""
    nx, n_c, product, one = own.nx, own.n_c, spread(1.0), spread(1.0)
    for i in range(n_c):
        for k in range(n_c):
            total = spread(0.0)
            for j in range(nx):
                total = total + at(own.rows[i, j]) * at(own.basis[k, j])
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
    """Store the basis of this step for the next step."""
    half, accepted = spread(0.5), at(steps.accepted)
    for i in range(own.n_c):
        for j in range(own.nx):
            old, new = at(own.basis[i, j]), at(own.rows[i, j])
            put(own.basis[i, j], where_less(half, accepted, new, old))
