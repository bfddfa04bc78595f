"""The formulations as residuals F(t, y, y') = 0, in one kernel.

All of them have unknowns and equations of the form

    y = ( z_1 .. z_m | r | top multipliers | lower multipliers mu_1 .. mu_low | w | extra )

    z_j' - z_{j+1} - D mu_j           = 0      j < m                      (mu_j = 0 for the exact solution)
    M z_m' - f + B lam                = 0      top = DYNAMICS, lam the top multipliers, or
    z_m' - a(t, z) - D mu_m           = 0      top = ACCELERATION, a from the augmented system
    r' - f_d                          = 0
    sum_l alpha_l g^(l)               = 0      for the rows of the top multipliers, l < m
    g^(j-1)                           = 0      j = 1 .. low
    d                                 = 0

and differ in the choices of ``formulation.py``. With alpha_m = 1 the combination of levels (Baumgarte) enters the
augmented system, and there are no top multipliers. Equations of Ascher and Petzold: index reduction (3.3) and (3.11) by
the alpha_l, stabilised index 2 (2.18), (4.15), projected invariants (3.25), (3.27).

The functions at the end of the module modify rows for individual formulations.
"""

from daedal.kernels.callbacks import CALLBACK, NATIVE, UNEVALUABLE, is_given, owner
from daedal.kernels.compilation import entry, inlined, part
from daedal.kernels.dense import LU, factor_lu, solve_lu
from daedal.kernels.records import FLOAT, INTEGER, Struct, address_of, at, data_of, float_rows, floats, record_at
from daedal.kernels.signatures import f64, i64
from daedal.kernels.vectors import add_product, copy, largest, transpose
from daedal.mechanics.augmented import accelerate_only, straight_slope
from daedal.mechanics.constrained import (
    CONSTRAINED,
    JACOBIAN,
    LEVELS,
    LINEARISATION,
    POSITION,
    RATE,
    VELOCITY,
    accelerate,
    derivatives,
    evaluate,
    fetch,
    level_by,
    linearise,
    load,
    load_state,
)
from daedal.mechanics.formulations.formulation import (
    ACCELERATION,
    DYNAMICS,
    FUEHRER_LEIMKUHLER,
    HANKE,
    KNORRENSCHILD,
    MINIMAL_EXTENSION,
    PENALTY,
    THROUGH_MASS,
    TRANSPOSE,
)

FORM = Struct(
    "FORM",
    [
        ("system", at(CONSTRAINED)),
        ("n", INTEGER),
        ("top", INTEGER),
        ("variant", INTEGER),
        ("n_top", INTEGER),  # number of top multipliers, which belong to the last rows of K
        ("low", INTEGER),  # number of levels with separate multipliers
        ("lowered", INTEGER),  # whether multipliers are derivatives of unknowns
        ("projection", INTEGER),
        ("needed", INTEGER),  # quantities to evaluate
        ("epsilon", FLOAT),
        ("mu", FLOAT),
        ("alpha", f64["system.m"]),  # alpha_0 .. alpha_{m-1} of the top rows
        ("damping", f64["system.m + 1"]),  # damping in the augmented system, then damping of the velocity constraints
        ("damped", INTEGER),
        ("direction", f64["system.nx", "system.n_c"]),  # D
        ("direction_function", CALLBACK),
        (
            "pivot",
            i64[2, "system.nx"],
        ),  # minimal extension: 1 + number of the dependent position or velocity; 0 if independent
        ("scratch", f64[3, "system.nx + system.n_c"]),
        ("mass_lu", LU),
        # the Newton matrix: exact derivatives if available, and the structured one
        ("linearisation", at(LINEARISATION)),
        ("force_q", f64["system.nx", "system.nx"]),
        ("force_v", f64["system.nx", "system.nx"]),
        ("rows_q", f64["system.n_c", "system.nx"]),
        ("rows_v", f64["system.n_c", "system.nx"]),
        ("map", f64["system.nx", "system.nx"]),
        ("kept_jacobian", f64["system.n_c", "system.nx"]),
        ("kept_direction", f64["system.nx", "system.n_c"]),
        ("low_rows", LU),
        ("condensed", LU),
        ("cj", FLOAT),
    ],
)


@entry(NATIVE)
def form_residual(t, block):
    """The residual of a formulation; the block is [y | y' | F]."""
    form = record_at(owner(block), FORM)
    system = form.system
    n = form.n
    y, yp, residual = floats(block, n), floats(block + 8 * n, n), floats(block + 16 * n, n)
    load_unknowns(form, system, y, yp)
    status = evaluate_needed(form, system, t)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    if form.low > 0 or form.top == ACCELERATION:
        status = set_direction(form, system, t)
        if status != 0:
            return status
    _kinematics(form, system, y, yp, residual)
    dynamic_rows(form, system, y, yp, residual[(system.m - 1) * system.nx :])
    _constraint_rows(form, system, residual)
    return _variant_rows(form, system, t, y, yp, residual)


@entry(NATIVE)
def form_rate(t, block):
    """y' of a formulation that is an ordinary differential equation in (z, r); the block is [y | y']."""
    form = record_at(owner(block), FORM)
    system = form.system
    n, nx, m = form.n, system.nx, system.m
    y, rate = floats(block, n), floats(block + 8 * n, n)
    if form.top == ACCELERATION and not form.damped and system.n_arguments == n and n == 2 * nx:
        if straight_slope(system, t, y, rate) == 0:
            return 0
    load_unknowns(form, system, y, y)
    if form.top == ACCELERATION and not form.damped:
        status = accelerate_only(system, t)
        if status == 0 and system.n_r > 0:
            status = evaluate(system, t, RATE)
    else:
        status = evaluate_needed(form, system, t)
    if status == 0 and form.variant == PENALTY:
        status = _accelerate_penalty(form, system)
    if status != 0:
        return UNEVALUABLE if status > 0 else status
    copy(rate, y[nx : m * nx])
    copy(rate[(m - 1) * nx :], system.acceleration)
    copy(rate[m * nx :], system.rate)
    return 0


@inlined
def multipliers_at(system):
    """Index of the first top multiplier."""
    return system.m * system.nx + system.n_r


@inlined
def damping_of(form):
    """Address of Baumgarte's coefficients, 0 if there are none."""
    return data_of(form.damping) if form.damped else 0


@part
def load_unknowns(form, system, y, yp):
    """Copy z, r, w and lam to the system. If the system computes w and lam, its last values are the initial guess."""
    n, at = system.m * system.nx, multipliers_at(system)
    if form.top == ACCELERATION:
        load_state(system, y, y[n:])
    else:
        w = at + form.n_top + form.low * system.n_g
        load(system, y, y[n:], y[w:], yp[at:] if form.lowered else y[at:])


@part
def evaluate_needed(form, system, t):
    """Evaluate all quantities of the system that the residual needs; returns a status."""
    if form.top == ACCELERATION:
        status = accelerate_with_levels(form, system, t)
        if status == 0 and system.n_r > 0:
            status = evaluate(system, t, RATE)
        return status
    return evaluate(system, t, form.needed)


@part
def accelerate_with_levels(form, system, t):
    """Compute the accelerations and, if any are imposed, the levels of the constraints; returns a status."""
    status = accelerate(system, t, damping_of(form))
    if status == 0 and (form.n_top > 0 or form.low > 0):
        status = evaluate(system, t, LEVELS)
    return status


@part
def set_direction(form, system, t):
    """Set D of the projection: K^T, M^{-1} B, a given matrix, or a function of (t, q); returns a status."""
    nx, n_c = system.nx, system.n_c
    direction = form.direction
    if form.variant == FUEHRER_LEIMKUHLER:
        status = _inverse_mass_times_columns(form, system, form.kept_direction)
        if status != 0:
            return status
    if form.projection == TRANSPOSE:
        transpose(direction, system.jacobian)
    elif form.projection == THROUGH_MASS:
        return _inverse_mass_times_columns(form, system, direction)
    elif is_given(form.direction_function):
        status = fetch(form.direction_function, t, system.state, nx, nx * n_c)
        transpose(direction, float_rows(form.direction_function.block + 8 * nx, n_c, nx))
        return status
    return 0


@part
def _inverse_mass_times_columns(form, system, target):
    """Write M^{-1} B to `target`; returns a status."""
    columns, solution = system.columns, form.scratch[0, : system.nx]
    if _factor_mass(form, system) != 0:
        return UNEVALUABLE
    for k in range(system.n_c):
        copy(solution, columns[:, k])
        solve_lu(form.mass_lu, solution)
        copy(target[:, k], solution)
    return 0


@part
def _factor_mass(form, system):
    transpose(form.mass_lu.data, system.mass)
    return factor_lu(form.mass_lu)


@part
def _accelerate_penalty(form, system):
    """Solve M a = f - G^T g / eps for the accelerations; returns a status."""
    acceleration, force, penalty = system.acceleration, system.force, form.scratch[0]
    penalty[:] = 0.0
    add_penalty_forces(form, system, penalty)
    for i in range(system.nx):
        acceleration[i] = force[i] - penalty[i]
    status = _factor_mass(form, system)
    solve_lu(form.mass_lu, acceleration)
    return status


@part
def _kinematics(form, system, y, yp, residual):
    """Write the residuals of z_j' = z_{j+1} + D mu_j and of r' = f_d."""
    nx, n_g, m, direction = system.nx, system.n_g, system.m, form.direction
    low_at = multipliers_at(system) + form.n_top
    mu = yp if form.lowered else y
    for j in range(m - 1):
        for i in range(nx):
            value = yp[j * nx + i] - y[(j + 1) * nx + i]
            if j < form.low:
                for k in range(n_g):
                    value -= direction[i, k] * mu[low_at + j * n_g + k]
            if form.variant == HANKE:
                value -= form.mu * yp[(j + 1) * nx + i]
            residual[j * nx + i] = value
    rate = system.rate
    for i in range(system.n_r):
        residual[m * nx + i] = yp[m * nx + i] - rate[i]


@part
def dynamic_rows(form, system, y, yp, target):
    """Write M z_m' - f + B lam, or z_m' - a - D mu_m, to `target`, with the latest evaluation."""
    nx, n_c = system.nx, system.n_c
    top = (yp if form.lowered else y)[multipliers_at(system) :]
    if form.top == DYNAMICS:
        mass, columns, force = system.mass, system.columns, system.force
        for i in range(nx):
            value = -force[i]
            for j in range(nx):
                value += mass[i, j] * slope_of_velocity(form, system, y, yp, j)
            target[i] = add_product(value, columns[i], top[: form.n_top])
        return
    acceleration, first, skipped = system.acceleration, (system.m - 1) * nx, n_c - form.n_top
    # the form of Fuehrer and Leimkuhler corrects velocities along M^{-1} G^T, positions along G^T
    direction = form.kept_direction if form.variant == FUEHRER_LEIMKUHLER else form.direction
    for i in range(nx):
        value = yp[first + i] - acceleration[i]
        for k in range(form.n_top):
            value -= direction[i, skipped + k] * top[k]
        target[i] = value


@part
def combination(form, system, k):
    """sum_l alpha_l g^(l) for row k of K; a velocity constraint has one level below the accelerations."""
    m, alpha, level = system.m, form.alpha, system.level
    if k >= system.n_g:
        return level[m - 1, k]
    value = 0.0
    for order in range(m):
        if alpha[order] != 0.0:
            value += alpha[order] * level[order, k]
    return value


@part
def _constraint_rows(form, system, residual):
    """Write the residuals of the combination of levels, of the lower levels g^(0), ..., and of d = 0."""
    n_c, n_g = system.n_c, system.n_g
    at, skipped = multipliers_at(system), n_c - form.n_top
    for k in range(form.n_top):
        residual[at + k] = combination(form, system, skipped + k)
    at += form.n_top
    level = system.level
    for j in range(form.low):
        copy(residual[at + j * n_g :], level[j, :n_g])
    if form.top == DYNAMICS:
        copy(residual[at + form.low * n_g :], system.algebraic)


@part
def _variant_rows(form, system, t, y, yp, residual):
    """Modify the rows of individual formulations."""
    if form.variant == MINIMAL_EXTENSION:
        minimal_extension_rows(form, system, y, yp, residual)
    elif form.variant == FUEHRER_LEIMKUHLER:
        return fuehrer_leimkuhler_rows(form, system, t, y, yp, residual)
    elif form.variant == KNORRENSCHILD or form.variant == HANKE:
        return regularised_rows(form, system, t, y, yp, residual)
    elif form.variant == PENALTY:
        add_penalty_forces(form, system, residual[system.nx :])
    return 0


@inlined
def slope_of_velocity(form, system, y, yp, j):
    """Component j of z_m'; dependent components are separate unknowns in the minimal extension."""
    if form.variant == MINIMAL_EXTENSION:
        place = form.pivot[1, j]
        if place > 0:
            return y[form.n - system.n_c + place - 1]
    return yp[(system.m - 1) * system.nx + j]


@part
def minimal_extension_rows(form, system, y, yp, residual):
    """Wunderlich (7.13): for dependent coordinates g = 0 replaces q_i' = v_i, and v_i' is an unknown w_2.

    The velocity level is in the rows of lam, the acceleration level in those of the extra unknowns.
    """
    nx, n_c = system.nx, system.n_c
    pivot, level, jacobian, bias = form.pivot[0], system.level[0], system.jacobian, system.bias
    for i in range(nx):
        if pivot[i] > 0:
            residual[i] = level[pivot[i] - 1]
    extra = form.n - n_c
    for k in range(n_c):
        value = bias[k]
        for j in range(nx):
            value += jacobian[k, j] * slope_of_velocity(form, system, y, yp, j)
        residual[extra + k] = value


@part
def fuehrer_leimkuhler_rows(form, system, t, y, yp, residual):
    """Wijckmans (6.13): adds [(G v)_q]^T tau to q', normal to {g = 0, G v = 0}; tau is the top multiplier."""
    nx, n_c = system.nx, system.n_c
    before, velocity, state, increments = form.scratch[0], system.level[1], system.state, system.increments[0]
    tau = (yp if form.lowered else y)[2 * nx + system.n_r :]
    copy(before, velocity)
    if largest(tau[:n_c]) == 0.0:
        return 0
    if address_of(form.linearisation) != 0 and _exact_curvature(form, system, t, tau, residual) == 0:
        return 0
    for j in range(nx):
        kept, h = state[j], 1e-3 * increments[j]
        state[j] = kept + h
        status = evaluate(system, t, JACOBIAN | VELOCITY)
        state[j] = kept
        if status != 0:
            return status
        for k in range(n_c):
            residual[j] -= (velocity[k] - before[k]) / h * tau[k]
    return 0


@part
def _exact_curvature(form, system, t, tau, residual):
    """Subtract [(G v)_q]^T tau; returns a status if the exact derivatives cannot be evaluated."""
    nx, n_c, lin = system.nx, system.n_c, form.linearisation
    status = linearise(lin, system, t, system.acceleration, system.multipliers)
    if status == 0:
        found = derivatives(lin)
        for k in range(n_c):
            for j in range(nx):
                residual[j] -= level_by(system, found, 1, k, j, 1.0, 0.0, 0.0) * tau[k]
    return status


@part
def regularised_rows(form, system, t, y, yp, residual):
    """Wijckmans (6.4), (6.5): 0 = g(q + (eps + mu) v + mu eps v') or 0 = g(q + eps q' + mu eps v').

    Velocity constraints become 0 = c(q, v + eps v').
    """
    nx, n_c, n_g = system.nx, system.n_c, system.n_g
    state = system.state
    for i in range(nx):
        q, v, a = y[i], y[nx + i], yp[nx + i]
        if form.variant == KNORRENSCHILD:
            state[i] = q + (form.epsilon + form.mu) * v + form.mu * form.epsilon * a
        else:
            state[i] = q + form.epsilon * yp[i] + form.mu * form.epsilon * a
    at, level = 2 * nx + system.n_r, system.level
    if n_g > 0:
        status = evaluate(system, t, POSITION)
        if status != 0:
            return status
        copy(residual[at:], level[0, :n_g])
    if n_g == n_c:
        return 0
    for i in range(nx):
        state[i] = y[i]
        state[nx + i] = y[nx + i] + form.epsilon * yp[nx + i]
    status = evaluate(system, t, POSITION | JACOBIAN | VELOCITY)
    copy(residual[at + n_g :], level[1, n_g:])
    return status


@part
def add_penalty_forces(form, system, target):
    """Loetstedt, Wijckmans (6.3): M v' = f - G^T g / eps; a velocity constraint becomes a damper."""
    nx, columns, level = system.nx, system.columns, system.level
    for k in range(system.n_c):
        stretch = level[0, k] if k < system.n_g else level[1, k]
        for i in range(nx):
            target[i] += columns[i, k] * stretch / form.epsilon
