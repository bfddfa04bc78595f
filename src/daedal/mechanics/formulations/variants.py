r"""Exceptions of individual formulations to the common form, in compiled code."""

from daedal.kernels.compilation import inlined, part
from daedal.kernels.records import address_of
from daedal.kernels.vectors import copy, largest
from daedal.mechanics.constrained import JACOBIAN, POSITION, VELOCITY, evaluate
from daedal.mechanics.formulations.formulation import KNORRENSCHILD, MINIMAL_EXTENSION
from daedal.mechanics.linearisation import derivatives, level_by, linearise


@inlined
def slope_of_velocity(form, system, y, yp, j):
    """Component j of z_m'; dependent ones are separate unknowns in the minimal extension."""
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
