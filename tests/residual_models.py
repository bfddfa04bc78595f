"""Mechanisms of the library as a user would write them who knows nothing of mechanisms: F(t, y, y') = 0."""

import numpy as np

import daedal


def as_residual(system, *, names=True):
    """y = (q, v, lam): q' = v, M v' = f - G^T lam, 0 = g, as they stand on paper."""
    n, constant = system.n_q, None if callable(system.mass) else np.asarray(system.mass)
    last = () if system.params is None else (0,)

    def residual(t, y, yp, *p):
        q, v, lam = y[:n], y[n : 2 * n], y[2 * n :]
        mass = system.mass(t, q, *p) if constant is None else constant
        balance = mass @ yp[n : 2 * n] - system.force(t, q, v, *p) + system.constraint_jacobian(t, q, *p).T @ lam
        return np.concatenate([yp[:n] - v, balance, system.constraint(t, q, *p)])

    def plain(t, y, yp):
        return residual(t, y, yp)

    def with_params(t, y, yp, p):
        return residual(t, y, yp, p)

    labels = [system.label(i) for i in range(2 * n)] + [f"lam{i}" for i in range(system.n_constraints)]
    return daedal.ImplicitDAE(
        with_params if last else plain,
        2 * n + system.n_constraints,
        params=system.params,
        names=labels if names else None,
    )


def start_of(model):
    """Initial values of such a residual: multipliers are not known."""
    q, v = model.initial
    return np.concatenate([q, v, np.zeros(model.problem.n_constraints)]), None
