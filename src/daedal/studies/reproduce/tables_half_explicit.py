"""Brasey and Hairer: order conditions and coefficients; pendulum, seven-body mechanism, violin string."""

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ellipj, ellipk

import daedal
from daedal import library
from daedal.analysis import order_conditions
from daedal.methods import HEDOP5, HEM3, HEM4, HEM5, PHEM56
from daedal.studies.reproduce.printed_table import PrintedTable, Row
from daedal.viz.figure import COLOURS, GRID


class StepStages(NamedTuple):
    """Velocities, accelerations and multipliers of all stages; the last axis contains many steps."""

    v: np.ndarray
    acceleration: np.ndarray
    multiplier: np.ndarray
    end: np.ndarray  # (q, v) at the end of the steps


def pendulum_stages(tableau: Any, q: np.ndarray, v: np.ndarray, h: float) -> StepStages:
    r"""Stages of steps of length h from q, v for q' = v, v' = (0, -1) - q \lambda, q v = 0 (section 2 of the source).

    :math:`Z_i` is such that :math:`Q_{i+1}^T V_{i+1} = 0`, where :math:`Q_{i+1}, V_{i+1}` are the values of the next
    stage or at the end of the step.
    """
    ab, s = tableau.floats()["ab"], tableau.s
    weight = np.array([[0.0], [-1.0]])
    places, velocities = [q], [v]
    accelerations: list[np.ndarray] = []
    multipliers: list[np.ndarray] = []
    for i in range(s):
        place = q + h * sum(ab[i, j] * velocities[j] for j in range(i + 1))
        free = v + h * (sum(ab[i, j] * accelerations[j] for j in range(i)) + ab[i, i] * weight)
        multiplier = (place * free).sum(axis=0) / (h * ab[i, i] * (place * places[i]).sum(axis=0))
        multipliers.append(multiplier)
        accelerations.append(weight - places[i] * multiplier)
        places.append(place)
        velocities.append(free - h * ab[i, i] * places[i] * multiplier)
    end = np.concatenate([places[-1], velocities[-1]])
    return StepStages(np.array(velocities[:s]), np.array(accelerations), np.array(multipliers), end)


def five_stage_weights(theta: float) -> np.ndarray:
    """Quadrature weights for stages 3, 4 and 5 of HEM4, of third order in q and second in v."""
    r, t = np.sqrt(6.0), theta
    third = t * ((20.0 * r - 20.0) * t**2 + (24.0 - 39.0 * r) * t + 12.0 + 18.0 * r) / 36.0
    fourth = t * (-(20.0 * r + 20.0) * t**2 + (24.0 + 39.0 * r) * t + 12.0 - 18.0 * r) / 36.0
    return np.array([0.0, 0.0, third, fourth, t * (10.0 * t**2 - 12.0 * t + 3.0) / 9.0])


Values = list[Mapping[str, Any] | None]
METHODS = {"hem3": HEM3, "hem4": HEM4, "hem5": HEM5, "phem56": PHEM56, "hedop5": HEDOP5}
SOURCE_CONTROL: dict[str, Any] = {
    "controller": "classic",
    "norm": "max",
    "projection": "never",
}  # section 5 of the source


# --- the pendulum: unit mass, length and gravity, released horizontally -----------------------------------------------


def _weight(t, q, v):
    return np.array([0.0, -1.0])


def _rod(t, q):
    g = np.empty(1, q.dtype)
    g[0] = 0.5 * (q[0] * q[0] + q[1] * q[1] - 1.0)
    return g


def _rod_jacobian(t, q):
    return np.array([[q[0], q[1]]])


def _rod_bias(t, q, v):
    return np.array([-(v[0] * v[0] + v[1] * v[1])])


def _rod_rate(t, q):
    return np.zeros(1)


@cache
def pendulum_system() -> daedal.MechanicalSystem:
    return daedal.MechanicalSystem(
        1.0,
        _weight,
        _rod,
        n_q=2,
        n_constraints=1,
        constraint_jacobian=_rod_jacobian,
        constraint_t=_rod_rate,
        acceleration_bias=_rod_bias,
    )


def swing(t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact q, v, lambda: sin(theta/2) = k sn(K + t), theta' = 2 k cn(K + t), k^2 = 1/2."""
    sn, cn, dn, _ = ellipj(np.asarray(t, dtype=float) + ellipk(0.5), 0.5)
    k = math.sqrt(0.5)
    x, y, w = 2.0 * k * sn * dn, -(cn**2), 2.0 * k * cn
    return np.array([x, y]), np.array([-w * y, w * x]), w * w - y


def solve_pendulum(method: Any, t_span: tuple[float, float] = (0.0, 10.0), **options: Any) -> Any:
    q, v, _ = swing(t_span[0])
    return daedal.solve(pendulum_system(), t_span, (q, v), method=method, **options)


def pendulum_errors(method: Any, steps: int) -> dict[str, float]:
    """Largest errors over [0, 10] of q, v, and lambda by (3.6); largest g and G v."""
    sol = solve_pendulum(method, fixed_step=10.0 / steps)
    q, v = sol.raw.y[:2], sol.raw.y[2:]
    exact_q, exact_v, exact_lam = swing(sol.t)
    lam = ((v * v).sum(axis=0) - q[1]) / (q * q).sum(axis=0)
    return {
        "q": np.abs(q - exact_q).max(),
        "v": np.abs(v - exact_v).max(),
        "lam": np.abs(lam - exact_lam).max(),
        "g": np.abs((q * q).sum(axis=0) - 1.0).max() / 2.0,
        "Gv": np.abs((q * v).sum(axis=0)).max(),
    }


def stage_errors(method: Any, steps: int) -> dict[str, float]:
    """Largest errors over [0, 10] of the multipliers of the first and last stage."""
    sol = solve_pendulum(method, fixed_step=10.0 / steps)
    stages = pendulum_stages(method.tableau, sol.raw.y[:2, :-1], sol.raw.y[2:, :-1], 10.0 / steps)
    lam = swing(sol.t)[2]
    return {"L5": np.abs(stages.multiplier[-1] - lam[1:]).max(), "L1": np.abs(stages.multiplier[0] - lam[:-1]).max()}


def pendulum(table: PrintedTable) -> Values:
    """Errors with constant steps."""

    def values(row: Row) -> Mapping[str, Any]:
        method = METHODS[row["method"]](projection="never")
        return pendulum_errors(method, row["steps"]) | stage_errors(method, row["steps"])

    return table.each(values)


def pendulum_control(table: PrintedTable) -> Values:
    """Results with the step size control of section 5."""

    def values(row: Row) -> Mapping[str, Any]:
        tol = row["tol"]
        sol = solve_pendulum(HEM4(**SOURCE_CONTROL), rtol=tol, atol=tol, first_step=0.01)
        error = np.abs(sol.raw.y[:2, -1] - swing(10.0)[0]).max()
        return {"accepted": sol.stats.steps, "rejected": sol.stats.rejected, "error": error}

    return table.each(values)


def one_step(method: Any, h: float, **options: Any) -> Any:
    """A step from t = 1 with exact initial values."""
    return solve_pendulum(method, (1.0, 1.0 + h), **({"fixed_step": h} | options))


def local_errors(table: PrintedTable) -> Values:
    """Errors of one step, and their estimates."""

    def values(row: Row) -> Mapping[str, Any]:
        h = row["h"]
        y = one_step(HEM4(projection="never"), h).raw.y[:, -1]
        q, v, _ = swing(1.0 + h)
        found = {"q": np.abs(y[:2] - q).max(), "v": np.abs(y[2:] - v).max()}
        return found | {"estimate": estimate(HEM4(**SOURCE_CONTROL), h)}

    return table.each(values)


def estimate(method: Any, h: float) -> float:
    """The largest component of the error estimate: the tolerance at which the step is just accepted."""
    low, high = 1e-13, 1.0
    while high > 1.001 * low:
        tol = math.sqrt(low * high)
        options = {"first_step": (1.0 + h) - 1.0, "rtol": 1e-14, "atol": tol, "dense_output": False}
        sol = one_step(method, h, fixed_step=None, **options)
        low, high = (tol, high) if sol.stats.rejected else (low, tol)
    return high


def dense_errors(method: Any, h: float, projected: bool = False) -> np.ndarray:
    """Largest component of the errors of q and v, at three points within a step."""
    sol, t = one_step(method, h), 1.0 + h * np.array([0.25, 0.5, 0.75])
    y = sol(t).y if projected else daedal.Solution.__call__(sol, t)
    q, v, _ = swing(t)
    return np.array([np.abs(y[:2] - q).max(axis=0), np.abs(y[2:] - v).max(axis=0)])


def five_stage_errors(h: float) -> np.ndarray:
    """Errors of dense output based on five stages of HEM4, of second order in v, which Daedal does not provide."""
    q, v, _ = swing(1.0)
    stages = pendulum_stages(HEM4().tableau, q[:, None], v[:, None], h)
    found = []
    for theta in (0.25, 0.5, 0.75):
        weights = h * five_stage_weights(theta)
        exact_q, exact_v, _ = swing(1.0 + theta * h)
        found.append(
            [
                np.abs(q + weights @ stages.v[:, :, 0] - exact_q).max(),
                np.abs(v + weights @ stages.acceleration[:, :, 0] - exact_v).max(),
            ]
        )
    return np.array(found).T


def dense_output(table: PrintedTable) -> Values:
    """Errors within one step, before the projection."""
    methods = {"six functions": HEM4(projection="never"), "Hermite": HEM4.family("3/10", "1/5", projection="never")}

    def values(row: Row) -> Mapping[str, Any]:
        h, method = 0.0125, methods.get(row["output"])
        errors = five_stage_errors(h) if method is None else dense_errors(method, h)
        return {f"{name}{i}": error for name, found in zip("qv", errors) for i, error in enumerate(found)}

    return table.each(values)


def jay(table: PrintedTable) -> Values:
    """Largest relative errors of y over the steps, for f nonlinear in z."""
    model = library.jay_index2()

    def values(row: Row) -> Mapping[str, Any]:
        options = {"method": METHODS[row["method"]](), "fixed_step": 1.0 / row["steps"]}
        sol = daedal.solve(model.problem, model.t_span, model.initial, **options)
        exact = np.array([model.extra["exact"](t) for t in sol.t]).T
        return {"y": np.abs(sol.y / exact - 1.0)[:2].max()}

    return table.each(values)


# --- a massless coordinate, a moving pivot ----------------------------------------------------------------------------


def _massless_force(t, q, v):
    return np.array([0.0, -1.0, 0.0])


def _crank(t, q):
    g = np.empty(2, q.dtype)
    g[0] = q[0] - np.sin(q[2])
    g[1] = q[1] + np.cos(q[2])
    return g


@cache
def massless() -> daedal.MechanicalSystem:
    """The pendulum with its angle as a massless coordinate: M is singular, but the augmented matrix is not."""
    return daedal.MechanicalSystem([1.0, 1.0, 0.0], _massless_force, _crank, n_q=3, n_constraints=2)


def massless_errors(method: Any, steps: int, system: daedal.MechanicalSystem | None = None) -> dict[str, float]:
    """Errors at t = 10 of (x, y), their velocities, and of the multipliers (x, y) lambda."""
    start = [1.0, 0.0, math.pi / 2.0], [0.0, 0.0, 0.0]
    sol: Any = daedal.solve(system or massless(), (0.0, 10.0), start, method=method, fixed_step=10.0 / steps)
    (q, v, lam), y = swing(10.0), sol.raw.y[:, -1]
    return {"q": np.abs(y[:2] - q).max(), "v": np.abs(y[3:5] - v).max(), "lam": np.abs(sol.lam[:, -1] - q * lam).max()}


def singular_mass(table: PrintedTable) -> Values:
    """HEM4 with a singular mass matrix."""
    return table.each(lambda row: massless_errors(HEM4(projection="never"), row["steps"]))


def _moving_rod(t, q):
    g = np.empty(1, q.dtype)
    g[0] = 0.5 * ((q[0] - 0.3 * np.sin(2.0 * t)) ** 2 + q[1] * q[1] - 1.0)
    return g


@cache
def moving() -> daedal.MechanicalSystem:
    """A pendulum whose pivot moves like 0.3 sin 2t."""
    return daedal.MechanicalSystem(1.0, _weight, _moving_rod, n_q=2, n_constraints=1)


def solve_moving(method: Any, steps: int) -> Any:
    """Solve with constant steps on [0, 10]."""
    start = [math.sin(1.0), -math.cos(1.0)], [0.6, 0.0]
    return daedal.solve(moving(), (0.0, 10.0), start, method=method, fixed_step=10.0 / steps)


def rheonomic(table: PrintedTable) -> Values:
    """The state at t = 10."""
    sol = solve_moving(PHEM56(), 1600)
    found = dict(zip(("x", "y", "vx", "vy", "lambda"), [*sol.q[:, -1], *sol.v[:, -1], *sol.lam[:, -1]]))
    return table.each(lambda row: {"value": found[row["variable"]]})


# --- the seven-body mechanism ---------------------------------------------------------------------------------------


@cache
def squeezer_model(t1: float) -> library.Model:
    return library.seven_body(t1=t1)


def solve_squeezer(t1: float, method: Any, **options: Any) -> Any:
    model = squeezer_model(t1)
    return daedal.solve(model.problem, (0.0, t1), model.initial, method=method, **options)


def squeezer_errors(sol: Any, t1: float) -> dict[str, float]:
    """Final errors before projection of q, v (relative to 1 + |v|) and lambda by (3.6), and |g|, |G v|."""
    model = squeezer_model(t1)
    assert model.reference is not None
    truth, lam = model.reference.y, model.extra["lam"]
    y, v = sol.raw.y[:, -1], truth[7:]
    point = model.problem.at(t1, y[:7], y[7:])
    return {
        "q": np.abs(y[:7] - truth[:7]).max(),
        "v": (np.abs(y[7:] - v) / (1.0 + np.abs(v))).max(),
        "lam": np.abs(point.multipliers - lam).max(),
        "g": np.abs(point.constraint).max(),
        "Gv": np.abs(point.velocity).max(),
    }


def squeezer_start(table: PrintedTable) -> Values:
    """Accelerations and multipliers at t = 0."""
    model = squeezer_model(0.03)
    point = model.problem.at(0.0, *model.initial)
    found = dict(zip(("beta''", "Theta''", "lambda1", "lambda2"), [*point.acceleration[:2], *point.multipliers[:2]]))
    return table.each(lambda row: {"value": found[row["variable"]]})


def squeezer(table: PrintedTable) -> Values:
    """HEM4 with step size control."""

    def values(row: Row) -> Mapping[str, Any]:
        tol = row["tol"]
        options = {"rtol": tol, "atol": tol, "first_step": 1e-5, "dense_output": False}
        short, long = (solve_squeezer(t1, HEM4(**SOURCE_CONTROL), **options) for t1 in (0.025, 0.03))
        return {
            "accepted": short.stats.steps,
            "rejected": short.stats.rejected,
            "evaluations": short.stats.residual_evaluations,
            **squeezer_errors(short, 0.025),
            "evaluations3": long.stats.residual_evaluations,
            "q3": squeezer_errors(long, 0.03)["q"],
        }

    return table.each(values)


def squeezer_with_constant_steps(method: Any, steps: int) -> dict[str, float]:
    """Errors at t = 0.025."""
    return squeezer_errors(solve_squeezer(0.025, method, fixed_step=0.025 / steps, dense_output=False), 0.025)


def squeezer_steps(table: PrintedTable) -> Values:
    """Errors with constant steps."""
    return table.each(
        lambda row: squeezer_with_constant_steps(METHODS[row["method"]](projection="never"), row["steps"])
    )


# --- the violin string ----------------------------------------------------------------------------------------------


@cache
def played() -> library.ViolinRun:
    return library.play_violin(12.0, 1e-9)


def violin(table: PrintedTable) -> Values:
    """Transition times in a run with tight tolerances."""
    switches = played().switches

    def values(row: Row) -> Mapping[str, Any]:
        switch = switches[row["nr"] - 1]
        return {"t": switch.t, "u": switch.u, "z": switch.z} if switch.kind == row["event"] else {}

    return table.each(values)


def violin_tolerances(table: PrintedTable) -> Values:
    """Deviations of the first six transition times from the run with tight tolerances."""
    truth = [switch.t for switch in played().switches]

    def values(row: Row) -> Mapping[str, Any]:
        switches = library.play_violin(5.0, row["tol"], stick_method=HEM4(norm="max")).switches
        return {f"t{i}": switch.t - truth[i - 1] for i, switch in enumerate(switches, 1)}

    return table.each(values)


_RUNS = {
    "pendulum": pendulum,
    "pendulum-control": pendulum_control,
    "local": local_errors,
    "dense": dense_output,
    "jay": jay,
    "singular-mass": singular_mass,
    "rheonomic": rheonomic,
    "squeezer-start": squeezer_start,
    "squeezer": squeezer,
    "squeezer-steps": squeezer_steps,
    "violin": violin,
    "violin-tolerances": violin_tolerances,
}


# --- the tables -------------------------------------------------------------------------------------------------------

HIGHEST = {"1": 4, "3": 3, "4": 3}  # order by table number


def conditions(table: PrintedTable) -> Values:
    """Tables 1, 3 and 4: order conditions generated from trees."""
    found = {c.number: c for c in order_conditions.conditions(HIGHEST[table.number], int(table.number))}
    return table.each(lambda row: {"order": found[row["nr"]].order, "condition": found[row["nr"]].formula()})


def coefficients(table: PrintedTable) -> Values:
    """Tables 2 and 5; HEM4 is constructed as in section 4.2 from c_2 and Radau's c_3."""
    hem4 = order_conditions.TABLEAUX["hem4"]
    tableau = {
        "2": lambda: order_conditions.TABLEAUX["hem3"],
        "5": lambda: order_conditions.hem4_family("3/10", hem4.c[2]),
    }[table.number]()

    def values(row: Row) -> Mapping[str, Any]:
        stage = row["stage"]
        entries = tableau.b if stage == "b" else tableau.a[int(stage) - 1]
        node = {} if stage == "b" else {"c": tableau.c[int(stage) - 1]}
        return {key: str(value) for key, value in (node | {f"a{j}": x for j, x in enumerate(entries, 1)}).items()}

    return table.each(values)


def numbers_of_conditions(table: PrintedTable) -> Values:
    """Numbers of order conditions up to given orders."""

    def values(row: Row) -> Mapping[str, Any]:
        counts = {
            linear: len(order_conditions.conditions(row["order"], linear_in_z=linear)) for linear in (False, True)
        }
        return {"general": counts[False], "linear": counts[True]}

    return table.each(values)


def conditions_that_hold(table: PrintedTable) -> Values:
    """Numbers of order conditions that methods satisfy, by order."""

    def values(row: Row) -> Mapping[str, Any]:
        counts = order_conditions.verify(row["method"], len(row.cells)).counts()
        return {f"p{order}": held for order, (held, _) in counts.items()}

    return table.each(values)


TABLES = {
    **dict.fromkeys(("1", "3", "4"), conditions),
    **dict.fromkeys(("2", "5"), coefficients),
    "trees": numbers_of_conditions,
    "methods": conditions_that_hold,
    **_RUNS,
}


# --- figures of Brasey and Hairer -------------------------------------------------------------------------------------

_TOLERANCES = 10.0 ** -np.arange(2.0, 9.0)


def draw_violin(figure: Any, result: Any) -> None:
    """Figure 3: displacement and friction of the midpoint of the string."""
    run = played()
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(run.t, run.middle, color=COLOURS[0])
    upper.set_ylabel("$u$ of the middle")
    lower.plot(run.t, run.z, color=COLOURS[2])
    lower.set(ylabel="friction $z$", xlabel="$t$")
    for switch in run.switches[::2]:
        upper.axvline(switch.t, color=GRID, linewidth=0.8)
        lower.axvline(switch.t, color=GRID, linewidth=0.8)


def _pendulum(method: Any, tol: float, first_step: float) -> tuple[int, float]:
    sol = solve_pendulum(method, rtol=tol, atol=tol, first_step=first_step, dense_output=False)
    return sol.stats.residual_evaluations, np.abs(sol.raw.y[:2, -1] - swing(10.0)[0]).max()


def _squeezer(method: Any, tol: float, first_step: float) -> tuple[int, float]:
    sol = solve_squeezer(0.025, method, rtol=tol, atol=tol, first_step=first_step, dense_output=False)
    return sol.stats.residual_evaluations, squeezer_errors(sol, 0.025)["q"]


def _finished(run: Any, method: Any, first_step: float) -> list[tuple[int, float]]:
    found = []
    for tol in _TOLERANCES:
        with suppress(daedal.IntegrationError):
            found.append(run(method, tol, first_step))
    return found


def draw_work(figure: Any, result: Any) -> None:
    """Figure 2: error against work, for HEM4 and Lubich's extrapolation code MEXX; failed runs are omitted."""
    cases = {"pendulum": (_pendulum, 0.01), "seven-body mechanism": (_squeezer, 1e-5)}
    for axes, (title, (run, first_step)) in zip(figure.subplots(1, 2), cases.items()):
        for i, (label, method) in enumerate((("HEM4", HEM4(**SOURCE_CONTROL)), ("MEXX", "mexx"))):
            work, error = zip(*_finished(run, method, first_step))
            axes.loglog(error, work, "os"[i] + "-", markersize=3.5, label=label, color=COLOURS[2 * i])
        axes.set(xlabel="error of q at the end", ylabel="evaluations of f", title=title)
        axes.invert_xaxis()
        axes.legend()


FIGURES = {
    "violin": ("Figure 3: the midpoint of the string", draw_violin),
    "squeezer": ("Figure 2: work-precision diagram, with evaluations instead of the printed seconds", draw_work),
}
