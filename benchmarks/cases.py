"""The problems of the benchmark: residual, start, exact end point and how the tolerances are set.

The residuals are the ones of ``daedal.library``; every solver that takes a residual gets the same function. The solvers
with a modelling language of their own get the same equations from ``benchmarks.symbolic``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mechanisms import Mechanism
from daedal import library

Array = np.ndarray

RTOLS = tuple(10.0**-k for k in range(3, 11))
LARGE_RTOLS = (1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True, eq=False)
class Case:
    """One problem as the benchmark runs it.

    Parameters
    ----------
    residual : callable
        ``F(t, y, yp, p)``, an array of ``n`` numbers: plain Python that ``numba.njit`` compiles unchanged, or compiled
        already.
    algebraic : tuple of int
        The variables whose derivative does not occur.
    masked : bool
        The algebraic variables must be left out of the error test (index 2).
    atol_per_rtol : float
        The absolute tolerance is this times ``rtol``. One number for all components, for some solvers take no more.
    compared : slice
        The components the error is measured on.
    scale : {"mixed", "relative", "largest"}
        Errors are divided by ``1 + |ref|``, by ``|ref|``, or by the largest ``|ref|``.
    linear : {"dense", "sparse", "gmres"}
        The linear solver all solvers are to use.
    interpreted : bool
        Whether a run with the residual in plain Python makes sense.
    sparsity : scipy.sparse array, optional
        Structure of dF/dy + cj dF/dy'.
    preconditioner : benchmarks.preconditioners.Blocks or ILU, optional
        The preconditioner of the GMRES cases.
    mechanism : Mechanism, optional
        The mechanical system behind the case. Solvers take it in the form of their choice, see :meth:`in_form`.
    compiled_residual : callable, optional
        The residual compiled, where Numba cannot compile the plain one as it is.
    """

    name: str
    title: str
    residual: Callable[..., Array]
    params: Array
    t_span: tuple[float, float]
    y0: Array
    yp0: Array
    reference: Array
    algebraic: tuple[int, ...] = ()
    masked: bool = False
    atol_per_rtol: float = 1.0
    compared: slice = field(default_factory=lambda: slice(None))
    scale: str = "mixed"
    rtols: tuple[float, ...] = RTOLS
    linear: str = "dense"
    interpreted: bool = True
    sparsity: Any = None
    preconditioner: Any = None
    mechanism: Mechanism | None = None
    compiled_residual: Callable[..., Array] | None = None

    @property
    def n(self) -> int:
        return len(self.y0)

    def error(self, y: Array) -> float:
        """The largest error of ``y`` at the end point."""
        reference = self.reference[self.compared]
        size = np.abs(reference)
        scale = {"mixed": 1.0 + size, "relative": size, "largest": np.max(size)}[self.scale]
        return float(np.max(np.abs(np.asarray(y, float)[self.compared] - reference) / scale))

    def drift(self, y: Array) -> float:
        """The largest residual of a position constraint at the end point; nan if the case is no mechanism."""
        return float("nan") if self.mechanism is None else self.mechanism.drift(y)

    def in_form(self, form: str) -> Case:
        """The mechanism written in one of ``mechanisms.FORMS``; without a form the case as it is."""
        if self.mechanism is None or not form:
            return self
        y0, yp0 = self.mechanism.start(form)
        n = self.compared.stop
        return replace(
            self,
            residual=self.mechanism.residual(form, False),
            compiled_residual=self.mechanism.residual(form, True),
            y0=y0,
            yp0=yp0,
            algebraic=tuple(range(n, len(y0))) if form in ("index1", "ggl") else (),
            masked=form == "ggl",
        )


def from_library(name: str, title: str, model: library.Model, **changes: Any) -> Case:
    """A case from a model of Daedal's library."""
    problem = model.problem
    y0, yp0 = (np.array(values, float) for values in model.initial)
    algebraic = () if problem.algebraic is None else tuple(int(i) for i in np.flatnonzero(problem.algebraic))
    if "reference" not in changes and model.reference is not None:
        changes["reference"] = model.reference.y
    return Case(
        name,
        title,
        problem.residual,
        problem.params,
        **({"t_span": model.t_span} | changes),
        y0=y0,
        yp0=yp0,
        algebraic=algebraic,
    )


def robertson() -> Case:
    model = library.get("robertson", t1=4e10)
    # Radau IIA of five stages in 40-digit arithmetic, 200 geometric steps; at 1e11 it gives 12 digits of the test set.
    end = np.array([5.2083451767992e-8, 2.0833381779255e-13, 0.9999999479163399])
    return from_library(
        "robertson", "Robertson's reaction, t = 4e10", model, reference=end, atol_per_rtol=1e-6, scale="relative"
    )


def transistor() -> Case:
    return from_library("transistor", "Transistor amplifier, t = 0.2", library.get("transistor_amplifier"))


def tppc() -> Case:
    return from_library("tppc", "Trajectory control, index 1", library.get("tppc2", form="index1"))


def pendulum(form: str, title: str) -> Case:
    model = library.get("pendulum", form=form)
    case = from_library(f"pendulum-{form}", title, model, compared=slice(0, 4), masked=model.index == 2)
    return replace(case, t_span=(0.0, 10.0), reference=pendulum_end(10.0))


@cache
def pendulum_end(t1: float) -> Array:
    """Position and velocity of the pendulum at ``t1`` from the equation of its angle, a'' = cos a, to about 1e-13."""
    from scipy.integrate import solve_ivp

    run = solve_ivp(lambda t, a: [a[1], np.cos(a[0])], (0.0, t1), [0.0, 1.0], method="DOP853", rtol=3e-14, atol=1e-15)
    angle, speed = run.y[:, -1]
    return np.array([np.cos(angle), np.sin(angle), -speed * np.sin(angle), speed * np.cos(angle)])


def akzo() -> Case:
    model = library.get("chemical_akzo_nobel")
    return from_library("akzo", "Chemical Akzo Nobel, t = 180", model, atol_per_rtol=1e-2, scale="relative")


def heat(m: int, linear: str) -> Case:
    """The heat equation on ``m`` by ``m`` points, its edges as algebraic equations; linear, with a known solution."""
    from benchmarks.preconditioners import ILU

    model = library.get("heat2d", m=m, structure="sparse", compiled=True)
    return from_library(
        f"heat-{m * m}-{linear}",
        f"Heat equation, {m * m} unknowns, {'sparse LU' if linear == 'sparse' else 'GMRES with ILU'}",
        model,
        atol_per_rtol=1e-2,
        scale="largest",
        rtols=LARGE_RTOLS,
        linear=linear,
        interpreted=False,
        sparsity=model.problem.sparsity,
        preconditioner=ILU(heat_matrix(m)) if linear == "gmres" else None,
    )


def heat_matrix(m: int) -> Callable[[float], Any]:
    """The iteration matrix of ``heat2d`` as a function of cj."""
    from scipy import sparse

    inside = np.zeros((m, m))
    inside[1:-1, 1:-1] = 1.0
    rows = sparse.diags_array(inside.ravel())
    second = sparse.diags_array([np.ones(m - 1), -2.0 * np.ones(m), np.ones(m - 1)], offsets=[-1, 0, 1])
    laplacian = (m - 1) ** 2 * (sparse.kron(sparse.eye_array(m), second) + sparse.kron(second, sparse.eye_array(m)))
    steady = (sparse.eye_array(m * m) - rows - rows @ laplacian).tocsc()
    return lambda cj: (steady + cj * rows).tocsc()


def food_web(m: int) -> Case:
    """Prey and predators on ``m`` by ``m`` points; GMRES with the blocks of the reaction."""
    from benchmarks.preconditioners import Blocks

    model = library.get("food_web", mx=m, my=m, compiled=True)
    problem, reaction = model.problem, model.extra["reaction"].residual
    params = problem.params
    y0 = consistent_predators(problem.residual, reaction, np.array(model.initial[0], float), params)
    yp0 = -problem.residual(0.0, y0, np.zeros(y0.size), params)
    yp0[1::2] = 0.0
    case = from_library(
        f"food-{y0.size}-gmres",
        f"Food web, {y0.size} unknowns, GMRES with reaction blocks",
        replace(model, initial=(y0, yp0)),
        t_span=(0.0, 0.01),
        reference=np.empty(0),
        scale="relative",
        rtols=LARGE_RTOLS,
        linear="gmres",
        interpreted=False,
        sparsity=problem.sparsity,
        preconditioner=Blocks(reaction, params, 2),
    )
    return replace(case, reference=stored_reference(case))


def consistent_predators(
    residual: Callable[..., Array], reaction: Callable[..., Array], y: Array, params: Array
) -> Array:
    """The predators that satisfy their equation, by Newton's method with the slope of the reaction, which dominates."""
    rest = np.zeros(y.size)
    for _ in range(60):
        step = 1e-6 * y[1::2]
        moved = y.copy()
        moved[1::2] += step
        slope = (reaction(0.0, moved, rest, params) - reaction(0.0, y, rest, params))[1::2] / step
        change = residual(0.0, y, rest, params)[1::2] / slope
        y[1::2] -= change
        if np.max(np.abs(change / y[1::2])) < 1e-14:
            break
    return y


def stored_reference(case: Case, rtol: float = 1e-9) -> Array:
    """The end point at a tolerance far below those measured; computed by Daedal at the first use and kept in a file."""
    import daedal

    file = Path(__file__).parents[1] / "out" / "bench" / "references" / f"{case.name}.npy"
    if not file.exists():
        problem = daedal.ImplicitDAE(case.residual, case.n, params=case.params, algebraic=list(case.algebraic))
        options: dict[str, Any] = {
            "method": "dassl",
            "linear_solver": "gmres",
            "preconditioner": case.preconditioner.daedal(),
        }
        options |= {"rtol": rtol, "atol": rtol, "t_eval": [case.t_span[1]], "dense_output": False}
        solution = daedal.solve(problem, case.t_span, (case.y0, case.yp0), **options)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, solution.y[:, -1])
    return np.load(file)


def mechanism(name: str, title: str) -> Case:
    """A mechanical model of the library: the error is that of positions and velocities at the end."""
    parts = Mechanism(name)
    model = parts.model(False)
    assert model.reference is not None
    y0, yp0 = parts.start("ode")
    return Case(
        name.replace("_", "-"),
        title,
        parts.residual("index1", False),
        model.problem.params,
        model.t_span,
        y0,
        yp0,
        model.reference.y,
        compared=slice(0, 2 * model.problem.n_q),
        mechanism=parts,
    )


MECHANICAL: dict[str, Callable[[], Case]] = {
    "planar-pendulum": lambda: mechanism("planar_pendulum", "Planar pendulum, 2 coordinates, 1 constraint, t = 10"),
    "double-pendulum": lambda: mechanism("double_pendulum", "Double pendulum, 6 coordinates, 4 constraints, t = 5"),
    "crank-slider": lambda: mechanism("crank_slider", "Crank and slider, 6 coordinates, 5 constraints, t = 10"),
    "car-axis": lambda: mechanism("car_axis", "Car axis, 4 coordinates, 2 constraints, one moves, t = 3"),
    "seven-body": lambda: mechanism("seven_body", "Seven-body mechanism, 7 coordinates, 6 constraints, t = 0.03"),
}
SMALL: dict[str, Callable[[], Case]] = {
    "robertson": robertson,
    "transistor": transistor,
    "akzo": akzo,
    "tppc": tppc,
    "pendulum-index1": lambda: pendulum("index1", "Pendulum, index 1, t = 10"),
    "pendulum-index2": lambda: pendulum("index2", "Pendulum, index 2, t = 10"),
    "pendulum-ggl": lambda: pendulum("ggl", "Pendulum, stabilised index 2 (GGL), t = 10"),
}
LARGE: dict[str, Callable[[], Case]] = {
    "heat-10000-sparse": lambda: heat(100, "sparse"),
    "heat-10000-gmres": lambda: heat(100, "gmres"),
    "food-10082-gmres": lambda: food_web(71),
    "heat-99856-sparse": lambda: heat(316, "sparse"),
    "food-100352-gmres": lambda: food_web(224),
}
CASES = SMALL | MECHANICAL | LARGE


@cache
def get(name: str) -> Case:
    """The case called ``name``, built once."""
    return CASES[name]()
