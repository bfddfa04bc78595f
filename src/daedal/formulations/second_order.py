r"""Formulations of a mechanism for methods that solve second-order equations directly.

The constraints as they stand (index 3), one of their derivatives, Baumgarte's combination, and the second-order forms
of GGL and of the minimal extension (Wunderlich (7.19), (7.31)).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.formulations.index_reduction import Baumgarte, Index1, Index2, Index3
from daedal.formulations.reduction import Reduction, Start
from daedal.formulations.stabilised import GGL
from daedal.formulations.state_space import MinimalExtension, dependent_coordinates, pivot_watch
from daedal.kernels.functions import NativeFunction
from daedal.problems import SecondOrderDAE
from daedal.problems.second_order_form import SecondOrderForm

KNOWN = ("index3", "index2", "index1", "baumgarte", "ggl", "minimal_extension")


class MechanicalResidual(NativeFunction):
    """The native residual of second order, which leaves the mass matrix where others may read it."""

    mass: tuple[np.ndarray, int] | None = None
    projected = False  # whether steps are projected onto the constraints

    def __call__(self, t: float, x, xp, xpp) -> np.ndarray:  # type: ignore[override]
        """F(t, x, x', x''), from Python."""
        return self.evaluate_block(t, (x, xp, xpp))


def second_order_form(formulation, assembly, start: Start, *, project: bool) -> Reduction:
    """A formulation for an assembled mechanism, as an equation of second order."""
    if assembly.m != 2 or assembly.linear:
        raise InvalidProblemError("methods for second-order equations are made for mechanical systems")
    if isinstance(formulation, MinimalExtension):
        return _minimal_extension(formulation, assembly, start, project)
    if isinstance(formulation, GGL):
        if formulation.projection != "GT" or formulation.multipliers != "value":
            raise InvalidProblemError("the second-order form of GGL knows no options: use GGL()")
        return _build(assembly, start, alpha=(1.0, 0.0, 0.0), variant="ggl", project=project)
    return _build(assembly, start, alpha=_levels(formulation, assembly.direction), project=project)


def _levels(formulation, direction: int) -> tuple[float, float, float]:
    """The combination of a constraint and its derivatives that is imposed."""
    if getattr(formulation, "multipliers", "value") != "value":
        raise InvalidProblemError("multipliers='derivative' belongs to first-order forms; use method='dassl'")
    if isinstance(formulation, Index3):
        return 1.0, 0.0, 0.0
    if isinstance(formulation, Index2):
        return direction * formulation.damping(), 1.0, 0.0
    if isinstance(formulation, Index1):
        return 0.0, 0.0, 1.0
    if isinstance(formulation, Baumgarte):
        (first, second), _ = formulation.polynomial(2)
        return first, direction * second, 1.0
    name = type(formulation).__name__
    raise InvalidProblemError(
        f"{name} has no form of second order; modified_bdf and collocation know {', '.join(KNOWN)}. "
        f"For {name} use method='dassl'"
    )


def _build(
    assembly, start: Start, *, alpha, variant: str = "original", pivot=None, hook=None, project: bool
) -> Reduction:
    from daedal.formulations.second_order_residuals import SECOND_ORDER_FORM, second_order_residual
    from daedal.kernels.records import Arena, Record
    from daedal.mechanics.manifold import projection_hook

    nx, n_g, n_c, n_r, n_w = assembly.nx, assembly.n_g, assembly.n_c, assembly.n_r, assembly.n_w
    kind = ("original", "ggl", "minimal").index(variant)
    extra = {"original": 0, "ggl": n_g, "minimal": 2 * n_c}[variant]
    n = nx + n_r + n_c + n_w + extra
    arena = Arena(
        {"alpha": 3, "pivot": nx, "z": 2 * nx, "a": nx, "work": max(n_c * nx, 1)},
        integers=("pivot",),
    )
    arena.arrays["alpha"][:] = alpha
    if pivot is not None:
        arena.arrays["pivot"][:] = pivot
    record = Record(
        SECOND_ORDER_FORM,
        arena,
        system=assembly.record.data.ctypes.data,
        n=n,
        variant=kind,
        needed=_needed(assembly, alpha, variant),
        time_scale=_time_scale(start),
    )
    if hook is None and project and n_c and variant == "original":
        hook = (projection_hook, assembly.projector(assembly.output_weight, None))
    residual = MechanicalResidual(second_order_residual, record, assembly.bridge, n, None, hook, keep=assembly)
    residual.projected = project and n_c > 0 and variant == "original"
    if variant != "minimal" and alpha[2] == 0.0:
        residual.mass = (assembly.record.array("mass"), nx)
    order = np.array([2] * nx + [1] * n_r + [0] * (n - nx - n_r))
    if variant == "ggl":
        order[n - n_g :] = 1
    problem = SecondOrderDAE(residual, n, order=order)
    source = np.concatenate([np.arange(nx), n + np.arange(nx), np.arange(nx, n)])
    form = SecondOrderForm(problem, source, _names(assembly, variant), start_order=1 if 1 in order else 2)
    return _reduction(assembly, start, form, n, extra, pivot, variant)


def _reduction(assembly, start: Start, form: SecondOrderForm, n: int, extra: int, pivot, variant: str) -> Reduction:
    nx, n_r, n_c = assembly.nx, assembly.n_r, assembly.n_c

    def pack(values: Start) -> tuple[np.ndarray, np.ndarray]:
        added = np.zeros(extra)
        if variant == "minimal":
            for i in np.flatnonzero(pivot):
                added[pivot[i] - 1], added[n_c + pivot[i] - 1] = values.z[nx + i], values.a[i]
        y = np.concatenate([values.z, values.r, values.lam, values.w, added])
        yp = np.zeros(form.n)
        yp[: 2 * nx + n_r] = np.concatenate([values.slope, values.rate])
        return y, yp

    reduction = Reduction(form, *pack(start), n_state=2 * nx + n_r)  # type: ignore[arg-type]
    reduction.pack = pack
    return reduction


def _minimal_extension(formulation: MinimalExtension, assembly, start: Start, project: bool) -> Reduction:
    if assembly.n_c > assembly.n_g:
        raise InvalidProblemError(
            "the second-order minimal extension is made for position constraints; use index3, or method='dassl'"
        )
    pivot = dependent_coordinates(assembly, start)
    hook = pivot_watch(formulation, assembly, pivot) if assembly.n_c else None
    reduction = _build(
        assembly,
        start,
        alpha=(1.0, 0.0, 0.0),
        variant="minimal",
        pivot=pivot[: assembly.nx],
        hook=hook,
        project=project,
    )
    reduction.restart = lambda new: _minimal_extension(formulation, assembly, new, project)
    return reduction


def _needed(assembly, alpha, variant: str) -> int:
    from daedal.mechanics.constrained import ALGEBRAIC, BIAS, FORCE, JACOBIAN, MASS, POSITION, RATE, VELOCITY

    needed = MASS | FORCE | JACOBIAN | RATE | ALGEBRAIC
    if alpha[0]:
        needed |= POSITION
    if alpha[1] or variant != "original" or assembly.n_c > assembly.n_g:
        needed |= VELOCITY
    if alpha[2] or variant == "minimal":
        needed |= BIAS
    return needed


def _time_scale(start: Start) -> float:
    """A time in which the state changes visibly."""
    nx = start.a.size
    q, v, a = (float(np.max(np.abs(x), initial=0.0)) for x in (start.z[:nx], start.z[nx:], start.a))
    rates = [v / q if q > 0.0 else 0.0, float(np.sqrt(a / q)) if q > 0.0 else 0.0]
    return 1.0 / max(*rates, 1e-12) if max(rates) > 0.0 else 1.0


def _names(assembly, variant: str) -> tuple[str, ...]:
    rows = [str(label).strip("'") for label in assembly.row_names()]
    names: list[Any] = [*assembly.state_names(), *[f"lam[{row}]" for row in rows]]
    names += [f"w[{i}]" for i in range(assembly.n_w)]
    if variant == "ggl":
        names += [f"eta[{row}]" for row in rows[: assembly.n_g]]
    elif variant == "minimal":
        names += [f"w1[{row}]" for row in rows] + [f"w2[{row}]" for row in rows]
    return tuple(names)
