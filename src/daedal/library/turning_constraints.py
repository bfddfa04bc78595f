"""The examples of Ascher and Petzold: linear DAEs whose constraints, or constraint forces, rotate.

The first two are Hessenberg DAEs of index 2, with the solution x = e^t (1, 1), y = -e^t/(2 - t) for any nu. In the
first, the constraint rotates fast; in the second, only the direction B of the constraint force does. The third is a
mechanical system of second order, with the data that reproduce the tables of the paper; the printed mass matrix and
damping are inconsistent with its matrix B.
"""

import math

import numpy as np

import daedal
from daedal.library.registry import Model, Reference, mechanical_model, model


@model
def stability_example1(nu: float = 1000.0) -> Model:
    r"""Example 1 of Ascher and Petzold: the constraint rotates at the rate nu; the underlying ODE is u' = -u.

    Notes
    -----
    ``model.extra`` has ``exact`` and ``exact_lam``, and ``R`` and ``R_derivative`` of the essential underlying ODE
    (R B = 0). A step of 0.01 does not resolve the rotation, yet backward Euler applied to the DAE is accurate: it
    evaluates C only at the end of the step. Baumgarte's stabilisation differentiates C and fails.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.stability_example1()
    >>> options = {"fixed_step": 0.01, "method": daedal.methods.DASSL(max_order=1)}
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, formulation="index2", **options)
    >>> print(f"{abs(sol.y[:, -1] - model.reference.y).max():.1e}")
    2.0e-04
    """

    def turning(t, derivative=0):
        angle = nu * t + derivative * math.pi / 2.0
        return nu**derivative * np.array([math.sin(angle), math.cos(angle)])

    def q(t):
        return math.exp(t) * (2.0 + turning(t) / (2.0 - t))

    def r(t):
        return -math.exp(t) * np.sum(turning(t), keepdims=True)

    def r_derivatives(t):
        return -math.exp(t) * np.sum(turning(t) + turning(t, 1), keepdims=True)

    def R(t):
        return np.array([[math.cos(nu * t), -math.sin(nu * t)]])

    def R_derivative(t):
        return nu * np.array([[-math.sin(nu * t), -math.cos(nu * t)]])

    problem = daedal.HessenbergDAE(
        A=-np.eye(2),
        B=lambda t: turning(t)[:, None],
        C=lambda t: turning(t)[None, :],
        q=q,
        r=r,
        n_x=2,
        n_y=1,
        C_derivatives=lambda t: turning(t, 1)[None, None, :],
        r_derivatives=r_derivatives,
        names=["x1", "x2"],
    )
    return _model(problem, R, R_derivative)


@model
def stability_example2(nu: float = 1000.0) -> Model:
    r"""Example 2 of Ascher and Petzold: slow coefficients, yet backward Euler on the DAE acts like an explicit method.

    Notes
    -----
    ``model.extra`` has ``exact`` and ``exact_lam``, and ``R`` and ``R_derivative`` of the essential underlying ODE
    (R B = 0).

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.stability_example2()
    >>> options = {"fixed_step": 0.01, "method": daedal.methods.DASSL(max_order=1)}
    >>> for form in "projected_invariants", "index2":
    ...     sol = daedal.solve(model.problem, model.t_span, model.initial, formulation=form, **options)
    ...     print(f"{abs(sol.y[:, -1] - model.reference.y).max():.1e}")
    1.4e-05
    9.2e+73
    """

    def q(t):
        return math.exp(t) * np.array([1.0 + nu, 1.0 + (nu - 1.0) / (2.0 - t)])

    problem = daedal.HessenbergDAE(
        A=np.zeros((2, 2)),
        B=lambda t: np.array([[(2.0 - t) * nu], [nu - 1.0]]),
        C=lambda t: np.array([[t + 2.0, t * t - 4.0]]),
        q=q,
        r=lambda t: np.array([-math.exp(t) * (t * t + t - 2.0)]),
        n_x=2,
        n_y=1,
        C_derivatives=lambda t: np.array([[[1.0, 2.0 * t]]]),
        r_derivatives=lambda t: np.array([[-math.exp(t) * (t * t + 3.0 * t - 1.0)]]),
        names=["x1", "x2"],
    )
    return _model(problem, lambda t: np.array([[1.0 / nu - 1.0, 2.0 - t]]), lambda t: np.array([[0.0, -1.0]]))


def _model(problem: daedal.HessenbergDAE, R, R_derivative) -> Model:
    def exact(t: float) -> np.ndarray:
        return np.full(2, math.exp(t))

    def exact_lam(t: float) -> np.ndarray:
        return np.array([-math.exp(t) / (2.0 - t)])

    return Model(
        problem=problem,
        t_span=(0.0, 1.0),
        initial=(np.ones(2), exact_lam(0.0)),
        index=2,
        reference=Reference(1.0, exact(1.0), "closed-form solution", 1e-12),
        options={"rtol": 1e-8, "atol": 1e-8},
        plot={"variables": list(problem.names or ())},
        extra={"exact": exact, "exact_lam": exact_lam, "R": R, "R_derivative": R_derivative},
    )


# --- second order: p = (nu, kappa) ----------------------------------------------------------------------------------


def turning_mass(t, q, p):
    nu = p[0]
    scale = 1.0 / (nu * nu * (2.0 + t))
    m = np.empty((2, 2))
    m[0, 0] = scale * (nu * nu + (nu - 1.0) * (nu - 1.0)) / (2.0 - t)
    m[0, 1] = -scale * nu * (2.0 * nu - 1.0)
    m[1, 0] = m[0, 1]
    m[1, 1] = scale * 2.0 * (2.0 - t) * nu * nu
    return m


def turning_force(t, q, v, p):
    # E v + q(t) with q = M e^t (1, 1) - E e^t (1, 1) + C^T e^t/(2 - t)
    nu, e = p[0], math.exp(t)
    scale = 1.0 / (nu * nu * (2.0 + t))
    off_diagonal = -nu * (2.0 * nu - 1.0)
    first = scale * ((nu * nu + (nu - 1.0) * (nu - 1.0)) / (2.0 - t) + off_diagonal)
    second = scale * (off_diagonal + 2.0 * (2.0 - t) * nu * nu)
    return np.array([e * (first + 1.0 / (2.0 - t)), e * (second - 1.0) + p[1] / (nu * (2.0 + t)) * (v[1] - e)])


def turning_constraint(t, q, p):
    return np.array([q[0] + (t - 2.0) * q[1] + (1.0 - t) * np.exp(t)])


def turning_jacobian(t, q, p):
    return np.array([[1.0, t - 2.0]])


def turning_constraint_t(t, q, p):
    return np.array([q[1] - t * np.exp(t)])


def turning_bias(t, q, v, p):
    return np.array([-2.0 * v[1] + (1.0 + t) * math.exp(t)])


@model
def stability_example3(nu: float = 1.0, kappa: float = 1.0, compiled: bool = False) -> Model:
    """Example 3 of Ascher and Petzold: a well-conditioned problem for which many formulations are unstable.

    Notes
    -----
    ``model.extra`` has ``exact``, ``exact_lam`` and ``lam``.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.stability_example3(nu=100.0, kappa=2.0)
    >>> model.reference.y.round(6)
    array([2.718282, 2.718282, 2.718282, 2.718282])
    """
    problem = daedal.MechanicalSystem(
        turning_mass,
        turning_force,
        turning_constraint,
        n_q=2,
        n_constraints=1,
        constraint_jacobian=turning_jacobian,
        constraint_t=turning_constraint_t,
        acceleration_bias=turning_bias,
        params=np.array([nu, kappa], dtype=float),
        names=["p1", "p2"],
        constraint_names=["C p + r"],
    )

    def exact(t: float) -> np.ndarray:
        return np.full(4, math.exp(t))

    def exact_lam(t: float) -> np.ndarray:
        return np.array([math.exp(t) / (2.0 - t)])

    return mechanical_model(problem, ([1.0, 1.0], [1.0, 1.0]), 1.0, compiled, exact=exact, exact_lam=exact_lam)
