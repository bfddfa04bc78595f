"""Wijckmans' thesis: stabilised mechanisms, ill-conditioned constraints, discontinuities."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import Event, LinearDAE, library, linear
from daedal.formulations import GGL, Baumgarte, Index1
from daedal.methods import DASSL
from daedal.studies.reproduce.printed_table import PrintedTable, Row
from daedal.viz.figure import COLOURS, FAINT, GRID

Values = list[Mapping[str, Any] | None]


# --- a degenerate switch, Tables 7.1 and 7.3 ------------------------------------------------------------------------


def degenerate_switch(table: PrintedTable) -> Values:
    """Event loop (7.4) with the location method of the table."""
    location = {"7.1": "roots", "7.3": "monitoring"}[table.number]
    model = library.degenerate_switch()
    assert model.reference is not None
    truth, modes, sides, t_end = model.reference.y[0], model.extra["modes"], model.extra["sides"], model.t_span[1]

    def values(row: Row) -> Mapping[str, Any]:
        options: dict[str, Any] = {"method": "dassl", "rtol": row["Tol"], "atol": row["Tol"]}
        surface = Event(model.extra["switching"], terminal=True, direction=-1, location=location)
        sol = daedal.solve(modes["cubic"], model.t_span, model.initial[1], events=surface, **options)
        t, x, steps = sol.t[-1], sol.y[:, -1], sol.stats.steps
        if sides(t)[1] > 0.0:  # located too early, so that the solution slides along x = 2
            leave = Event(lambda t, x: sides(t)[1], terminal=True, location=location)
            sol = daedal.solve(modes["sliding"], (t, t_end), (x, [0.0]), events=leave, **options)
            t, x, steps = sol.t[-1], sol.y[:, -1], steps + sol.stats.steps
        sol = daedal.solve(modes["sine"], (t, t_end), (x, None), **options)
        return {"steps": steps + sol.stats.steps, "error": abs(sol.y[0, -1] - truth)}

    return table.each(values)


# --- a pulse, Table 7.2 ---------------------------------------------------------------------------------------------


def pulse(table: PrintedTable) -> Values:
    """Table 7.2: the pulse is ignored, located by roots, or located by monitoring."""
    model = library.switched_pulse()
    assert model.reference is not None
    truth = model.reference.y[0]

    def ignored(tol: float) -> tuple[int, float]:
        options: dict[str, Any] = {"method": "dassl", "rtol": tol, "atol": tol, "switches": "never"}
        sol = daedal.solve(model.extra["ignoring"], model.t_span, ([0.0], [5.0]), **options)
        return sol.stats.steps, abs(sol.y[0, -1] - truth)

    def switched(tol: float, location: str) -> tuple[int, float]:
        t, x, steps = model.t_span[0], model.extra["exact"](0.0), 0
        for rate, instant in zip(model.extra["modes"], (*model.extra["switches"], math.inf), strict=True):
            problem = daedal.ImplicitDAE(lambda t, x, xp, rate=rate: [xp[0] - rate], 1)
            event = Event(lambda t, x, instant=instant: t - min(instant, 1e3), terminal=True, location=location)
            options: dict[str, Any] = {"method": "dassl", "rtol": tol, "atol": tol}
            sol = daedal.solve(problem, (t, model.t_span[1]), (x, [rate]), events=event, **options)
            t, x, steps = sol.t[-1], sol.y[:, -1], steps + sol.stats.steps
        return steps, abs(x[0] - truth)

    def values(row: Row) -> Mapping[str, Any]:
        tol = row["Tol"]
        runs = (ignored(tol), switched(tol, "roots"), switched(tol, "monitoring"))
        return {f"{name}{i}": value for i, run in enumerate(runs) for name, value in zip(("steps", "e"), run)}

    return table.each(values)


# --- impact and friction --------------------------------------------------------------------------------------------


@cache
def solved(name: str, t1: float) -> Any:
    model = library.get(name, t1=t1)
    return daedal.solve(model.problem, model.t_span, model.initial, **model.options)


def crash_pendulum(table: PrintedTable) -> Values:
    """Example 7.9."""
    sol = solved("crash_pendulum", 2.0)
    at = {event.name: event for event in sol.events}
    t, phi = _apex(sol, at["separates"].t)
    found = {f"{name}, t": event.t for name, event in at.items()} | {
        "touches, phi'": at["touches"].y[6],
        "deepest indentation": at["separates"].y[3],
        "apex, t": t,
        "apex, phi": phi,
        "Figure 7.7, least phi'": min(sol(s).v[2] for s in np.linspace(0.0, 2.0, 2001)),
    }
    return table.each(lambda row: {"value": found[row["quantity"]]})


def _apex(sol: Any, after: float) -> tuple[float, float]:
    """Time at which phi' vanishes after the impact, and phi there, by bisection of the dense output."""
    low, high = after, 1.6
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sol(middle).v[2] > 0.0 else (low, middle)
    return low, sol(low).q[2]


def friction_oscillator(table: PrintedTable) -> Values:
    """Example 7.10."""
    times = dict(enumerate((event.t for event in solved("friction_oscillator", 9.0).events), 1))
    return table.each(lambda row: {"t": times.get(row["nr"])})


def friction_crank_slider(table: PrintedTable) -> Values:
    """Example 7.11: times at which the slider is at rest."""
    events = solved("friction_crank_slider", 4.0).events
    stops = (event.t for event in events if event.source[:5] != (event.target or "")[:5])
    times = dict(enumerate(stops, 1))
    return table.each(lambda row: {"t": times.get(row["nr"])})


_EVENTS = {
    **dict.fromkeys(("7.1", "7.3"), degenerate_switch),
    "7.2": pulse,
    "7.9": crash_pendulum,
    "7.10": friction_oscillator,
    "7.11": friction_crank_slider,
}


# --- statements and axes of Figures 6.1 to 6.4 and 7.1 ----------------------------------------------------------------

FORMS = {
    "index 1, not stabilised": Index1(),
    "Baumgarte, alpha = beta = 6": Baumgarte(alpha=6.0, beta=6.0),
    "GGL": GGL(),
}
PARAMETERS = (1.0, 2.0, 4.0, 6.0, 10.0, 20.0, 40.0)
"""Baumgarte's parameters of Figure 6.3."""
_CLEARLY = 3.0  # ratio from which curves clearly differ on a logarithmic axis


def solve_with_dassl(model: library.Model, tol: float, formulation: Any, method: DASSL) -> Any:
    """Solve a mechanism by DASSL with RTOL = ATOL = TOL."""
    options: dict[str, Any] = {"rtol": tol, "atol": tol, "dense_output": False}
    return daedal.solve(model.problem, model.t_span, model.initial, formulation=formulation, method=method, **options)


@cache
def swinging(form: str) -> Any:
    """Solve the rod pendulum of examples 6.1 to 6.3 over fifty periods."""
    return solve_with_dassl(library.rod_pendulum(), 1e-4, FORMS[form], DASSL())


@cache
def steps_with_baumgarte() -> tuple[int, ...]:
    """Numbers of steps in Figure 6.3."""
    model = library.rod_pendulum()
    forms = [Baumgarte(alpha=a, beta=a) for a in PARAMETERS]
    return tuple(solve_with_dassl(model, 1e-4, form, DASSL()).stats.steps for form in forms)


def deviations(sol: Any) -> np.ndarray:
    """x - cos phi and y - sin phi of the rod at all steps."""
    x, y, phi = sol.raw.y[:3]
    return np.abs([x - np.cos(phi), y - np.sin(phi)])


def drift_figures(table: PrintedTable) -> Values:
    """Results for statements about Figures 6.1 to 6.3 in the text of the thesis."""
    free, damped, _ = (deviations(swinging(form)).max(axis=0) for form in FORMS)
    tenth = free.size // 10
    curve = dict(zip(PARAMETERS, steps_with_baumgarte()))
    above = [steps for parameter, steps in curve.items() if parameter >= 6.0]
    projected = swinging("GGL").stats.steps
    found = {
        "deviation over time": "grows" if free[-tenth:].max() > _CLEARLY * free[:tenth].max() else "does not grow",
        "deviation against 6.1": "smaller" if _CLEARLY * damped.max() < free.max() else "not smaller",
        "steps from alpha = 6 on": "grow" if above == sorted(set(above)) else "do not grow",
        "steps of GGL against the curve": "fewer" if projected < min(above) else "not fewer",
    }
    return table.each(lambda row: {"value": found[row["quantity"]]})


@cache
def sliding() -> Any:
    """Solve the crank-slider mechanism of Figure 6.4 with TOL = 1e-6."""
    return solve_with_dassl(library.crank_slider(), 1e-6, "ggl", DASSL())


def crank_slider_figure(table: PrintedTable) -> Values:
    """Figure 6.4."""
    sol = sliding()
    y1, y2 = sol["y1"], sol["y2"]
    same = "y1 = y2" if np.max(np.abs(y1 - y2)) < 1e-6 else "they differ"
    found = {"y1 and y2": same, "least y1": float(np.min(y1)), "largest y1": float(np.max(y1))}
    return table.each(lambda row: {"value": found[row["quantity"]]})


@cache
def ignoring() -> daedal.Solution:
    """Solve example 7.1, x' = 0 until t = 10, then x' = 5, without event handling."""
    problem = daedal.ImplicitDAE(lambda t, x, xp: [xp[0] - (5.0 if t > 10.0 else 0.0)], 1)
    options: dict[str, Any] = {"method": "dassl", "rtol": 1e-4, "atol": 1e-4, "switches": "never", "compile": "never"}
    return daedal.solve(problem, (0.0, 20.0), ([10.0], [0.0]), **options)


def ignored_jump(table: PrintedTable) -> Values:
    """Figure 7.1: time of the shortest step after t = 1, and whether several steps were rejected."""
    sol = ignoring()
    assert sol.history is not None
    later = sol.history.t > 1.0
    shortest = sol.history.t[later][np.argmin(sol.history.h[later])]
    rejected = "several" if sol.stats.error_test_failures > 2 else "hardly any"
    found = {"shortest steps, t": float(shortest), "rejected steps": rejected}
    return table.each(lambda row: {"value": found[row["quantity"]]})


_LEVELS = {"fig-6.1": drift_figures, "fig-6.4": crank_slider_figure, "fig-7.1": ignored_jump}


# --- the tables -------------------------------------------------------------------------------------------------------


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
    """Examples 6.1 to 6.3: errors of unprojected results after 50 periods."""
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
    """The problem with random errors, different at every step, in the constraint and in its derivative."""
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
    """Backward Euler, the last 2000 steps up to t = 1e-3: final errors, and root mean square error of y."""
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
    """DASSL; for index 3 the error test is scaled by powers of h but Newton's test is not, as printed."""
    problem: Any = model.problem
    return DASSL(newton_weights=[0.0] * (2 * problem.n_q + problem.n_constraints)) if form == "index 3" else DASSL()


def crank_slider(table: PrintedTable) -> Values:
    """Table 6.4; e is the root mean square of errors relative to 1 + |x|."""
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
    **_LEVELS,
    **_EVENTS,
}


# --- figures of chapters 6 and 7 of Wijckmans' thesis -----------------------------------------------------------------


def draw_drift(figure: Any, result: Any) -> None:
    """Figures 6.1 to 6.3: deviations from both constraints, and cost over Baumgarte's parameter."""
    axes = figure.subplots(1, 3)
    for place, name in zip(axes, list(FORMS)[:2]):
        sol = swinging(name)
        for i, (label, error) in enumerate(zip(("x - cos φ", "y - sin φ"), deviations(sol))):
            place.semilogy(sol.t[1:], error[1:] + 1e-17, color=COLOURS[2 * i], linewidth=0.6, label=label)
        place.set(xlabel="$t$", title=name.replace(", alpha = beta = 6", " 6").replace(", not stabilised", ""))
        place.set_ylim(1e-9, 20.0)
    axes[0].legend(loc="lower right")
    steps = steps_with_baumgarte()
    axes[2].loglog(PARAMETERS, steps, "o-", color=COLOURS[0], markersize=3.5)
    ggl = swinging("GGL").stats.steps
    axes[2].axhline(ggl, color=FAINT, linewidth=0.9)
    axes[2].annotate("GGL", (PARAMETERS[0], ggl), textcoords="offset points", xytext=(0, 4), fontsize=7.5)
    axes[2].set(xlabel="Baumgarte, α = β", title="steps")
    axes[2].minorticks_off()
    axes[2].set_xticks(PARAMETERS, [f"{a:g}" for a in PARAMETERS])
    ticks = [t for t in (2000, 4000, 8000, 16000, 32000) if min(*steps, ggl) / 2 < t < 2 * max(steps)]
    axes[2].set_yticks(ticks, [str(t) for t in ticks])


def draw_ignored(figure: Any, result: Any) -> None:
    """Figure 7.1: a step in the right-hand side without event handling."""
    sol = ignoring()
    assert sol.history is not None
    left, right = figure.subplots(1, 2)
    left.plot(sol.t, sol.y[0], "o-", color=COLOURS[0], markersize=3.0)
    left.set(xlabel="$t$", ylabel="$x$")
    right.semilogy(sol.history.t, sol.history.h, "o-", color=COLOURS[2], markersize=3.0)
    shortest, failures = math.log10(np.min(sol.history.h)), sol.stats.error_test_failures
    right.set(xlabel="$t$", ylabel="step size", title=f"{failures} rejected steps, shortest 1e{shortest:.0f}")


def draw_crank_slider(figure: Any, result: Any) -> None:
    """Figure 6.4: the coordinates of both bodies."""
    sol = sliding()
    for place, name in zip(figure.subplots(1, 3), ("x", "y", "phi")):
        for i, body in enumerate("12"):
            style: dict[str, Any] = {"color": COLOURS[2 * i], "linestyle": ("-", ":")[i], "label": f"body {body}"}
            place.plot(sol.t, sol[name + body], **style)
        place.set(xlabel="$t$", ylabel=name.replace("phi", "φ"))
    figure.axes[0].legend()


def draw_crash(figure: Any, result: Any) -> None:
    """Angle over time, and wall force over indentation."""
    sol = solved("crash_pendulum", 2.0)
    law = daedal.hybrid.ElastoPlastic(c1=8e5, c2=1e3, c3=2e6, p1=5e-3)
    left, right = figure.subplots(1, 2)
    t = np.linspace(0.0, 2.0, 801)
    left.plot(t, [sol(s).q[2] for s in t], color=COLOURS[0])
    left.set(xlabel="$t$", ylabel=r"$\varphi$")
    events = {event.name: event for event in sol.events}
    touches, turns, separates = (events[name].t for name in ("touches", "turns back", "separates"))
    for i, (begin, end, label) in enumerate(((touches, turns, "loading"), (turns, separates, "unloading"))):
        depth = [-2.0 * 0.9 * math.sin(sol(s).q[2]) for s in np.linspace(begin, end, 200)]
        deepest = max(depth)
        force = [_wall(law, p, deepest, label == "loading") for p in depth]
        right.plot(np.multiply(depth, 1e3), np.multiply(force, 1e-3), color=COLOURS[2 * i], label=label)
    right.set(xlabel="indentation (mm)", ylabel="force (kN)")
    right.legend()


def _wall(law: Any, p: float, deepest: float, loading: bool) -> float:
    """The force law of example 7.9."""
    top = law.c1 * law.p1 + law.c2 * (deepest - law.p1)
    if not loading:
        return max(top + law.c3 * (p - deepest), 0.0)
    return law.c1 * p if p <= law.p1 else law.c1 * law.p1 + law.c2 * (p - law.p1)


def draw_oscillator(figure: Any, result: Any) -> None:
    """Position and velocity, with sticking phases shaded."""
    sol = solved("friction_oscillator", 9.0)
    axes = figure.add_subplot()
    t = np.linspace(0.0, 9.0, 1201)
    axes.plot(t, [sol(s).q[0] for s in t], color=COLOURS[0], label="$x$")
    axes.plot(t, [sol(s).v[0] for s in t], color=COLOURS[2], label="$x'$")
    times = [event.t for event in sol.events]
    for begin, end in zip(times[1::2], times[2::2]):
        axes.axvspan(begin, end, color=GRID, zorder=0)
    axes.set_xlabel("$t$ (shaded: it sticks)")
    axes.legend()


FIGURES = {
    "fig-6.1": ("Figures 6.1 to 6.3: drift without and with stabilisation, and its cost", draw_drift),
    "fig-6.4": ("Figure 6.4: crank-slider, TOL = 1e-6", draw_crank_slider),
    "fig-7.1": ("Figure 7.1: a jump that is ignored (x' = 0, then 5 from t = 10 on)", draw_ignored),
    "7.9": ("Figures 7.6 and 7.7: the angle, and the force of the wall", draw_crash),
    "7.10": ("Figure 7.9: the motion", draw_oscillator),
}
