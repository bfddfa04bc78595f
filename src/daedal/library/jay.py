"""Jay's test problem: index 2, nonlinear in the algebraic variable."""

from __future__ import annotations

import numpy as np

import daedal
from daedal.library.model import Model, Reference, check_positive


def jay_f(t, y, z):
    f = np.empty(2)
    f[0] = y[0] * y[1] ** 2 * z[0] ** 2
    f[1] = y[0] ** 2 * y[1] ** 2 - 3.0 * y[1] ** 2 * z[0]
    return f


def jay_g(t, y, z):
    g = np.empty(1)
    g[0] = y[0] ** 2 * y[1] - 1.0
    return g


def jay_index2(t1: float = 1.0) -> Model:
    """Jay's problem of index 2 that is nonlinear in z, with the solution (e^t, e^(-2t)), e^(2t).

    Parameters
    ----------
    t1 : float
        End time.

    Notes
    -----
    The hidden constraint is quadratic in z: :math:`0 = 2 y_1^2 y_2^3 z^2 - 3 y_1^2 y_2^2 z + y_1^4 y_2^2`, on the
    solution :math:`2 e^{-4t} z^2 - 3 e^{-2t} z + 1 = 0`, with the roots :math:`z = e^{2t}` and :math:`z = e^{2t}/2`. A
    method whose steps are too long may end on the second one, with the constraint satisfied; half-explicit methods of
    order 4 do so with 20 steps on [0, 1].

    Half-explicit methods have their full order here, so ``model.options`` choose one. BDF formulas have theirs with
    constant steps; with variable ones DASSL stays at orders 1 and 2, since a change of the step size upsets z, and z
    the differential variables.

    ``model.extra`` has ``exact(t, derivative)``, for derivative 0 and 1.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.jay_index2()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> bool(model.reference.error(sol.y[:, -1]).max() < 1e-6)
    True
    """
    check_positive(t1=t1)

    def exact(t: float, derivative: int = 0) -> np.ndarray:
        rates = np.array([1.0, -2.0, 2.0])
        return rates**derivative * np.exp(rates * t)

    return Model(
        name="jay_index2",
        title="Jay's nonlinear problem of index 2",
        problem=daedal.SemiExplicitDAE(jay_f, jay_g, 2, 1, names=["y1", "y2", "z"]),
        t_span=(0.0, float(t1)),
        initial=(np.array([1.0, 1.0]), np.array([1.0])),
        index=2,
        source="L. Jay, Convergence of a class of Runge-Kutta methods for differential-algebraic systems of index 2, "
        "BIT 33 (1993), pp. 137-150",
        description="Two differential variables and one algebraic variable, which enters their equations nonlinearly: "
        "order conditions that mechanisms do not see decide on the order of a method.",
        equations=r"y_1' = y_1 y_2^2 z^2,\qquad y_2' = y_1^2 y_2^2 - 3 y_2^2 z,\qquad 0 = y_1^2 y_2 - 1",
        reference=Reference(float(t1), exact(t1), "closed solution", 1e-14),
        options={"method": "phem56", "rtol": 1e-8, "atol": 1e-8},
        plot={"variables": ["y1", "y2", "z"]},
        extra={"exact": exact},
    )
