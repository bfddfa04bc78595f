"""The second-order example of Ascher and Petzold: a linear mechanical system with a turning constraint.

The data are those that reproduce the tables of the paper; mass matrix and damping as printed do not fit its B.
"""

from __future__ import annotations

import math

import numpy as np

import daedal
from daedal.library.mechanics import mechanical_model
from daedal.library.model import Model, check_positive
from daedal.library.nonholonomic import PAPER

# p = (nu, kappa)


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
    f = np.empty(2)
    f[0] = e * (first + 1.0 / (2.0 - t))
    f[1] = e * (second - 1.0) + p[1] / (nu * (2.0 + t)) * (v[1] - e)
    return f


def turning_constraint(t, q, p):
    return np.array([q[0] + (t - 2.0) * q[1] + (1.0 - t) * np.exp(t)])


def turning_jacobian(t, q, p):
    return np.array([[1.0, t - 2.0]])


def turning_constraint_t(t, q, p):
    return np.array([q[1] - t * np.exp(t)])


def turning_bias(t, q, v, p):
    gamma = np.empty(1)
    gamma[0] = -2.0 * v[1] + (1.0 + t) * math.exp(t)
    return gamma


def stability_example3(nu: float = 1.0, kappa: float = 1.0, compiled: bool = False) -> Model:
    """Example 3 of Ascher and Petzold: a well-conditioned problem on which many formulations explode.

    Parameters
    ----------
    nu : float
        The larger it is, the faster the direction of the constraint force turns against that of the constraint.
        The paper has 1, 100 and 1000.
    kappa : float
        Size of the velocity-dependent force: 0, 1 or 2 in the paper. With 2 the essential underlying ODE is u'' = 0.
    compiled : bool
        Whether the functions are compiled.

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
    check_positive(nu=nu)
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

    return mechanical_model(
        problem,
        ([1.0, 1.0], [1.0, 1.0]),
        1.0,
        compiled=compiled,
        exact=exact,
        exact_lam=exact_lam,
        name="stability_example3",
        title="Turning constraint",
        source=PAPER + ", Example 3, with consistent data",
        description="A linear system of order two with a constraint that turns slowly and a mass matrix that makes its "
        "force turn fast. Backward differentiation acts as a stiff method on some formulations and as an explicit one "
        "on others.",
        equations=r"\begin{aligned} M(t)\,p'' &= E(t)\,p' - C(t)^T \lambda + q(t),\qquad 0 = C(t)\,p + r(t) \\ "
        r"M &= \frac{1}{\nu^2 (2+t)} \begin{pmatrix} \frac{\nu^2 + (\nu-1)^2}{2-t} & -\nu (2\nu-1) \\ "
        r"-\nu (2\nu-1) & 2 (2-t) \nu^2 \end{pmatrix},\quad "
        r"E = \operatorname{diag}\Bigl(0, \frac{\kappa}{\nu (2+t)}\Bigr) \\ "
        r"C &= (1,\ t-2),\quad r = (1-t)\,e^t,\quad "
        r"q = e^t \Bigl((M - E) \binom{1}{1} + \frac{1}{2-t}\, C^T\Bigr) \end{aligned}",
    )
