"""Wijckmans' thesis: stabilised mechanisms, ill-conditioned constraints; discontinuities are in
:mod:`daedal.reproduce.multibody_events`."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import daedal
from daedal import DASSL, LinearDAE, library, linear
from daedal.reproduce import multibody_events, multibody_levels
from daedal.reproduce.multibody_levels import solve_with_dassl, swinging
from daedal.reproduce.printed_table import PrintedTable, Row

Values = list[Mapping[str, Any] | None]


def eigenvalues(table: PrintedTable) -> Values:
    """Examples 5.12 to 5.16: the finite eigenvalue of the pencil of x' = A x + B y, 0 = C x."""

    def values(row: Row) -> Mapping[str, Any]:
        name, changes = table.data["models"][row["example"]]
        problem: Any = library.get(name, **changes).problem
        a, b, c = (problem.coefficient(name, 0.0) for name in "ABC")
        leading = np.diag([1.0, 1.0, 0.0])
        pencil = linear.Pencil(leading, -np.block([[a, b], [c, np.zeros((1, 1))]]))
        (value,) = pencil.eigenvalues
        return {"value": value.real}

    return table.each(values)


def drift(table: PrintedTable) -> Values:
    """Examples 6.1 to 6.3: what was integrated, against the exact state after 50 periods."""
    model = library.rod_pendulum()
    lam = [model.extra["lam"][0], 0.0]

    def values(row: Row) -> Mapping[str, Any]:
        sol = swinging(row["method"])
        error = np.abs(sol.raw.y[:3, -1] - [0.0, 1.0, 0.5 * math.pi])
        force = np.abs(sol.lam[:, -1] - lam)
        names = ("x", "y", "phi", "lam1", "lam2", "constraint")
        return dict(zip(names, [*error, *force, sol.drift["position"]]))

    return table.each(values)


# --- errors in the constraint, Tables 6.1 to 6.3 --------------------------------------------------------------------

DISTURBED = {
    "6.1": (library.nearly_index2, "none", ("x", "y")),
    "6.2": (library.linear_index2, "none", ("x", "y")),
    "6.3": (library.ill_conditioned_constraints, "stabilised_reduction", ("x1", "x2", "y1", "y2")),
}
STEPS = 2000


def _disturbed(problem: LinearDAE, t0: float, h: float) -> LinearDAE:
    """The problem with errors of its constraint, and of the derivative of it, that are new at every step."""
    random = np.random.default_rng(20)
    errors = random.uniform(4e-5, 6e-5, (STEPS + 2, problem.n_y))
    errors[0] = 0.0

    def delta(t: float) -> np.ndarray:
        return errors[round((t - t0) / h)]

    names = ("A", "B", "C", "D", "p", "n_x", "n_y", "names")
    q, q_derivative = problem.q, problem.q_derivative
    assert callable(q_derivative)
    return LinearDAE(
        **{name: getattr(problem, name) for name in names},
        q=lambda t: q(t) + delta(t),
        q_derivative=lambda t: q_derivative(t) + delta(t),
    )


def errors_in_the_constraint(table: PrintedTable) -> Values:
    """Backward Euler, the last two thousand steps up to t = 1e-3: errors at the end, and of y in the quadratic mean."""
    build, formulation, names = DISTURBED[table.number]
    model = build()
    problem, exact = model.problem, model.extra["exact"]

    def values(row: Row) -> Mapping[str, Any]:
        h, t1 = row["h"], model.t_span[1]
        t0 = max(0.0, t1 - STEPS * h)
        start = exact(t0)
        initial = (start[: problem.n_x], start[problem.n_x :])
        sol = daedal.solve(
            _disturbed(problem, t0, h),
            (t0, t1),
            initial,
            formulation=formulation,
            method=DASSL(max_order=1),
            fixed_step=h,
            dense_output=False,
        )
        errors = np.abs(sol.y[: problem.n] - np.array([exact(t) for t in sol.t]).T)
        later = errors[problem.n_x, sol.t.size // 20 :]
        return dict(zip(names, errors[:, -1])) | {"rms": math.sqrt(np.mean(later**2))}

    return table.each(values)


# --- mechanisms with DASSL ------------------------------------------------------------------------------------------


def _method(form: str, model: library.Model) -> DASSL:
    """For index 3 the error test is scaled by powers of h and Newton's test is not, as printed."""
    problem: Any = model.problem
    return DASSL(newton_weights=[0.0] * (2 * problem.n_q + problem.n_constraints)) if form == "index 3" else DASSL()


def crank_slider(table: PrintedTable) -> Values:
    """Table 6.4; e with the weights 1 + |x|."""
    model = library.crank_slider()
    assert model.reference is not None
    truth = model.reference.y

    def values(row: Row) -> Mapping[str, Any]:
        sol = solve_with_dassl(model, row["TOL"], row["form"].replace(" ", "").lower(), _method(row["form"], model))
        error = (sol.y[:, -1] - truth) / (1.0 + np.abs(truth))
        stats = sol.stats
        counts = {"residuals": stats.residual_evaluations, "jacobians": stats.jacobian_evaluations}
        return {"e": math.sqrt(np.mean(error**2)), "steps": stats.steps} | counts

    return table.each(values)


def double_pendulum(table: PrintedTable) -> Values:
    """Table 6.5, up to t = 10."""
    model = library.double_pendulum(ill_conditioned=True, t1=10.0)
    assert model.reference is not None
    truth = model.reference.y

    def values(row: Row) -> Mapping[str, Any]:
        form = row["form"]
        try:
            sol = solve_with_dassl(model, row["TOL"], form.replace(" ", "").lower(), _method(form, model))
        except daedal.IntegrationError:
            return {"steps": "crash"}
        error = np.abs(sol.y[:, -1] - truth)
        return {"steps": sol.stats.steps, "phi1": error[2], "alpha": error[5]}

    return table.each(values)


TABLES = {
    "5.12": eigenvalues,
    "drift": drift,
    **dict.fromkeys(DISTURBED, errors_in_the_constraint),
    "6.4": crank_slider,
    "6.5": double_pendulum,
    **multibody_levels.TABLES,
    **multibody_events.TABLES,
}
