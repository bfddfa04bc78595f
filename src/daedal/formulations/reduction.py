"""A constrained system rewritten by a formulation, ready for a method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import NativeFunction
from daedal.mechanics.start import Start
from daedal.problems import ImplicitDAE

_LOOSE = 10.0  # multipliers that only keep the solution on the constraints
_NEARLY_DEPENDENT = 1e-10  # the part of a unit row that the others do not explain


@dataclass
class Reduction:
    """What a method integrates, and the way back to the variables of the system.

    Attributes
    ----------
    problem : ImplicitDAE
        F(t, y, y') = 0 for implicit methods.
    y0, yp0 : numpy.ndarray
        Where to start.
    n_state : int
        The leading unknowns (z, r) which the error test judges; the others are multipliers.
    rate : NativeFunction or None
        y' as a function of (t, y) where the formulation is an ordinary differential equation.
    options : dict
        Options of DASSL that suit the index of the formulation.
    restart : callable or None
        ``restart(start) -> Reduction``: the same formulation anew, when its hook has stopped the run.
    recover : callable or None
        ``recover(times, y)``: (z, r) from unknowns that are not (z, r) themselves.
    monitor : Record or None
        The watch over the constraints.
    """

    problem: ImplicitDAE
    y0: np.ndarray
    yp0: np.ndarray
    n_state: int
    rate: NativeFunction | None = None
    options: dict[str, Any] = field(default_factory=dict)
    restart: Any = None
    recover: Any = None
    pack: Any = None  # ``pack(start) -> (y, y')``: the unknowns that belong to consistent values
    multiplier_sizes: Any = None  # ``multiplier_sizes(start)``: of the leading ones, sizes and units
    monitor: Any = None
    kept_hook: Any = None  # lives as long as the monitor that calls it

    def states(self, times: np.ndarray, y: np.ndarray) -> np.ndarray:
        """(z, r) at the output points, one row each, from unknowns of shape (n, nt)."""
        if self.recover is not None:
            return self.recover(times, y)
        return np.ascontiguousarray(y[: self.n_state].T)

    @property
    def excluded(self) -> np.ndarray | None:
        """The unknowns that the error test leaves out."""
        mask = np.arange(self.problem.n) >= self.n_state
        return mask if mask.any() else None


def attach_monitor(reduction: Reduction, assembly, start: Start, *, amplification: bool = False):
    """Watch rank, singular configurations and, on demand, the amplification through B after every step."""
    from daedal.formulations.monitor import MONITOR, monitor_hook
    from daedal.kernels.dense import dense_lu
    from daedal.kernels.records import Arena, Record

    nx, n_c = assembly.nx, assembly.n_c
    functions = [f for f in (reduction.problem.residual, reduction.rate) if isinstance(f, NativeFunction)]
    inner = functions[0].hook
    record = Record(
        MONITOR,
        Arena({"basis": n_c * nx, "rows": n_c * nx, "norms": n_c, "work": 2 * nx + n_c}),
        system=assembly.record.data.ctypes.data,
        inner=0 if inner is None else inner[0].address,
        inner_record=0 if inner is None else inner[1].data.ctypes.data,
        amplification=amplification,
        smallest=_NEARLY_DEPENDENT,
        gram=dense_lu(n_c),
    )
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is not None:
        q, r = np.linalg.qr(values["jacobian"].T)
        record.array("basis")[:] = (q * np.where(np.diag(r) < 0.0, -1.0, 1.0)).T.ravel()
        record.array("norms")[:] = np.maximum(assembly.usual_norms, np.linalg.norm(values["jacobian"], axis=1))
        record["t"], record["started"] = start.t, 1
    reduction.monitor = record
    reduction.kept_hook = inner
    for function in functions:
        function.hook = (monitor_hook, record)


PROJECTIONS = {"GT": 0, "CT": 0, "B": 1, "unit": 2}


@dataclass(frozen=True)
class Shape:
    """The choices of :mod:`daedal.formulations.residuals` that make a formulation."""

    top: int = 0
    n_top: int = 0
    low: int = 0
    alpha: tuple[float, ...] = ()
    alpha_v: tuple[float, float] = (1.0, 0.0)
    variant: int = 0
    lowered: bool = False
    projection: Any = "CT"
    epsilon: float = 0.0
    mu: float = 0.0
    extra: int = 0


def build(assembly, start: Start, shape: Shape, *, hook=None, options=None, pivot=None) -> Reduction:
    """The formulation of `shape` for an assembled system."""
    from daedal.formulations.condensed import condensed_prepare, condensed_solve
    from daedal.formulations.residuals import (
        FORM,
        PLAIN,
        TOP_ACCELERATION,
        TOP_DYNAMICS,
        form_rate,
        form_residual,
        scratch_size,
    )
    from daedal.kernels.dense import dense_lu
    from daedal.kernels.records import Arena, Record

    m, nx, n_c, n_g, n_r, n_w = assembly.m, assembly.nx, assembly.n_c, assembly.n_g, assembly.n_r, assembly.n_w
    dynamic = shape.top == TOP_DYNAMICS
    n_lower = shape.low * n_g
    n = m * nx + n_r + shape.n_top + n_lower + (n_w if dynamic else 0) + shape.extra
    arena = Arena(
        {
            "alpha": m + 3,
            "direction": nx * n_c,
            "pivot": 2 * nx,
            "scratch": scratch_size(m, nx, n_c),
            "force_q": nx * nx,
            "force_v": nx * nx,
            "rows_q": n_c * nx,
            "rows_v": n_c * nx,
            "map": nx * nx,
            "columns": 2 * nx * n_c,
        },
        integers=("pivot",),
    )
    alpha = list(shape.alpha) + [0.0] * (m + 1 - len(shape.alpha))
    arena.arrays["alpha"][:] = [*alpha, *shape.alpha_v]
    if pivot is not None:
        arena.arrays["pivot"][:] = pivot
    projection, function = _direction(assembly, shape, start, arena.arrays["direction"])
    record = Record(
        FORM,
        arena,
        system=assembly.record.data.ctypes.data,
        n=n,
        top=shape.top,
        variant=shape.variant,
        n_top=shape.n_top,
        low=shape.low,
        lowered=shape.lowered,
        projection=projection,
        needed=_needed(assembly, shape, alpha),
        epsilon=shape.epsilon,
        mu=shape.mu,
        mass_lu=dense_lu(nx),
        low_rows=dense_lu(max(n_g, 1)),
        condensed=dense_lu(nx + shape.n_top),
        **({} if function is None else {"direction_function": function}),
    )
    structured = (
        m == 2
        and n_r == 0
        and n_w == 0
        and shape.variant == PLAIN
        and not shape.lowered
        and not assembly.record["uses_multipliers"]
    )
    linear = (condensed_prepare, condensed_solve) if structured else None
    residual = NativeFunction(form_residual, record, assembly.bridge, n, linear, hook, keep=assembly)
    y0, yp0 = _pack(assembly, start, shape, n, pivot)
    n_state = m * nx + n_r
    options = dict(options or {})
    if n > n_state and not shape.lowered:
        # Multipliers of index 2 need be no more accurate than h times their error (BCP section 5.4).
        options.setdefault("newton_weights", [0.0] * n_state + [1.0] * (n - n_state))
    algebraic = None if shape.lowered else np.arange(n) >= n_state
    problem = ImplicitDAE(residual, n, algebraic=algebraic, names=unknown_names(assembly, shape))
    rate = None
    if n == n_state and (shape.top == TOP_ACCELERATION or shape.variant != PLAIN):
        rate = NativeFunction(form_rate, record, assembly.bridge, n, None, hook, keep=assembly)
    reduction = Reduction(problem, y0, yp0, n_state, rate=rate, options=options)
    if n > n_state and not shape.lowered:
        reduction.multiplier_sizes = lambda values: _multiplier_sizes(assembly, values, shape)
    if not shape.lowered:
        reduction.pack = lambda values: _pack(assembly, values, shape, n, pivot)
    return reduction


def _needed(assembly, shape: Shape, alpha) -> int:
    from daedal.mechanics.constrained import ALGEBRAIC, BIAS, FORCE, JACOBIAN, MASS, POSITION, RATE, VELOCITY

    needed = MASS | FORCE | JACOBIAN | RATE | ALGEBRAIC
    if alpha[0] or shape.low or shape.variant != 0:
        needed |= POSITION
    if alpha[assembly.m - 1] or assembly.n_c > assembly.n_g or shape.variant != 0:
        needed |= VELOCITY
    if alpha[assembly.m] or shape.alpha_v[1] or shape.variant == 1:
        needed |= BIAS
    return needed


def _direction(assembly, shape: Shape, start: Start, target: np.ndarray):
    """The kind of projection; a matrix is written to `target`, a function becomes a callback."""
    from daedal.kernels.functions import store_matrix

    choice, nx, n_c = shape.projection, assembly.nx, assembly.n_c
    if isinstance(choice, str):
        if choice not in PROJECTIONS:
            raise InvalidProblemError(f"unknown projection '{choice}'; known: {', '.join(PROJECTIONS)}, or a matrix")
        if choice == "unit":
            target[:] = _unit_direction(assembly, start).ravel()
        return PROJECTIONS[choice], None
    if callable(choice):
        store = store_matrix("projection", nx, n_c)
        values = np.empty(nx * n_c)
        store(choice(start.t, start.z[:nx].copy()), values)
        _check_direction(assembly, start, values.reshape(n_c, nx).T)
        return PROJECTIONS["unit"], assembly.bridge.function(choice, (nx,), (nx, n_c), store)
    try:
        matrix = np.asarray(choice, dtype=float).reshape(nx, n_c)
    except (TypeError, ValueError):
        raise InvalidProblemError(
            f"projection must be {', '.join(map(repr, PROJECTIONS))}, a function D(t, q) or an array ({nx}, {n_c})"
        ) from None
    _check_direction(assembly, start, matrix)
    target[:] = matrix.ravel()
    return PROJECTIONS["unit"], None


def _check_direction(assembly, start: Start, direction: np.ndarray):
    """G D must be regular where the run begins."""
    if not np.all(np.isfinite(direction)):
        raise InvalidProblemError(f"projection holds values that are not finite at t = {start.t:g}")
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None or assembly.n_g == 0:
        return
    rows, columns = values["jacobian"][: assembly.n_g], direction[:, : assembly.n_g]
    scale = np.outer(_nonzero(np.linalg.norm(rows, axis=1)), _nonzero(np.linalg.norm(columns, axis=0)))
    if np.linalg.svd(rows @ columns / scale, compute_uv=False)[-1] < _NEARLY_DEPENDENT:
        raise InvalidProblemError(
            f"projection: G D is singular at t = {start.t:g}, so that no multiplier can move the solution back to the "
            "constraints; choose another D"
        )


def _unit_direction(assembly, start: Start) -> np.ndarray:
    """Unit vectors along the coordinates in which the constraints are best solved."""
    from scipy.linalg import qr

    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    direction = np.zeros((assembly.nx, assembly.n_c))
    if values is not None and assembly.n_c:
        columns = qr(values["jacobian"], mode="r", pivoting=True)[1][: assembly.n_c]
        direction[columns, np.arange(assembly.n_c)] = 1.0
    return direction


def _pack(assembly, start: Start, shape: Shape, n: int, pivot):
    """Unknowns and derivatives at the start: multipliers mu are zero, lam that of the augmented system."""
    from daedal.formulations.residuals import MINIMAL_EXTENSION, TOP_DYNAMICS

    n_state = start.z.size + start.r.size
    y0, yp0 = np.zeros(n), np.zeros(n)
    y0[: start.z.size], y0[start.z.size : n_state] = start.z, start.r
    yp0[: start.z.size], yp0[start.z.size : n_state] = start.slope, start.rate
    if shape.top == TOP_DYNAMICS and shape.n_top:
        target = yp0 if shape.lowered else y0
        target[n_state : n_state + shape.n_top] = start.lam
    if shape.top == TOP_DYNAMICS and start.w.size:
        at = n_state + shape.n_top + shape.low * assembly.n_g
        y0[at : at + start.w.size] = start.w
    if shape.variant == MINIMAL_EXTENSION:
        velocity = pivot[assembly.nx :]
        for i in np.flatnonzero(velocity):
            y0[n - assembly.n_c + velocity[i] - 1] = start.a[i]
    return y0, yp0


def _multiplier_sizes(assembly, start: Start, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """How large each multiplier is, and what belongs to a motion of one, whatever the factors of the constraints are.

    lam_i balances forces of the size of M a, along G_i^T; mu_i changes velocities (or accelerations), along D_i. It
    vanishes for the exact solution and acts through h mu, so that it is taken to be ten times as large.
    """
    from daedal.formulations.residuals import TOP_DYNAMICS

    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None:
        return np.zeros(0), np.zeros(0)
    largest = [float(np.max(np.abs(z), initial=0.0)) for z in (*start.z.reshape(assembly.m, -1), start.a)]
    gradients = _nonzero(np.linalg.norm(values["jacobian"], axis=1))
    along = _nonzero(np.linalg.norm(_directions(assembly, values, shape), axis=0))
    if shape.top == TOP_DYNAMICS:
        forces = np.concatenate([values["mass"] @ start.a, values["force"]])
        top = np.abs(start.lam) + float(np.max(np.abs(forces), initial=0.0)) / gradients
        top_units = float(np.max(np.abs(values["mass"]), initial=0.0)) / gradients
    else:
        top, top_units = _LOOSE * largest[-1] / along, _LOOSE / along
    first = assembly.n_c - shape.n_top
    sizes, units = [top[first:]], [top_units[first:]]
    for level in range(shape.low):
        # at rest the size of a velocity is that of the distance and the acceleration together
        rate = max(largest[level + 1], float(np.sqrt(largest[level] * largest[min(level + 2, assembly.m)])))
        sizes.append(_LOOSE * rate / along[: assembly.n_g])
        units.append(_LOOSE / along[: assembly.n_g])
    return np.concatenate(sizes), np.concatenate(units)


def _directions(assembly, values, shape: Shape) -> np.ndarray:
    """D, as far as its size matters."""
    jacobian = values["jacobian"]
    if isinstance(shape.projection, str) and shape.projection != "B":
        return jacobian.T if PROJECTIONS[shape.projection] == 0 else np.eye(assembly.nx, assembly.n_c)
    try:
        if isinstance(shape.projection, str):
            return np.linalg.solve(values["mass"], jacobian.T)
        return jacobian.T if callable(shape.projection) else np.asarray(shape.projection, dtype=float)
    except np.linalg.LinAlgError:
        return jacobian.T


def _nonzero(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0.0, x, 1.0)


def unknown_names(assembly, shape: Shape) -> tuple[str, ...]:
    """Names of the unknowns of a formulation."""
    names = [*assembly.state_names()]
    rows = [str(label).strip("'") for label in assembly.row_names()]
    letter = "lam" if shape.top == 0 else "mu"
    first = len(rows) - shape.n_top
    names += [f"{letter}[{row}]" for row in rows[first:]]
    for level in range(shape.low):
        names += [f"mu{level + 1}[{row}]" for row in rows[: assembly.n_g]]
    if shape.top == 0:
        names += [f"w[{i}]" for i in range(assembly.n_w)]
    names += [f"extra[{i}]" for i in range(shape.extra)]
    return tuple(names)
