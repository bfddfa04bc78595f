"""Forms in as many coordinates as there are degrees of freedom, or with dependent ones exchanged for equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.formulations.reduction import Reduction, Shape, Start, build
from daedal.kernels.functions import NativeFunction
from daedal.problems import ImplicitDAE
from daedal.problems.checks import check_positive

_COORDINATES = ("lu", "qr", "svd", "essential")


@dataclass(frozen=True)
class StateSpace:
    r"""Coordinate partitioning: an ordinary differential equation for :math:`\tilde u = \tilde R q`,
    :math:`\tilde w = \tilde R v` with constant :math:`\tilde R`, Ascher and Petzold (3.15) to (3.17), Wehage and Haug.

    The other coordinates come from the constraints at every evaluation, so that nothing drifts. When
    :math:`[\tilde R; G]` has become ill-conditioned a new :math:`\tilde R` is chosen and the run goes on from there.

    Parameters
    ----------
    coordinates : {"qr", "lu", "svd", "essential"} or matrix
        Choice of :math:`\tilde R`: an orthonormal basis of the kernel of G (by QR or SVD), a subset of the
        coordinates (LU with pivoting), rows with :math:`\tilde R B = 0` at the start of each chart, or a given matrix,
        which is kept.
    restart : float
        A new chart is chosen when the condition has grown by this factor; 3 to 5 is good, since it limits accuracy.
    """

    coordinates: Any = "qr"
    restart: float = 4.0
    name = "state_space"

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        from daedal.formulations.charts import CHART, chart_hook, chart_rate, chart_residual
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Arena, Record

        low, top = self._rows(assembly, start)
        m, nx, n_r = assembly.m, assembly.nx, assembly.n_r
        n = (m - 1) * low.shape[0] + top.shape[0] + n_r
        if n == 0:
            raise InvalidProblemError("the constraints leave no degree of freedom; there is nothing to integrate")
        arena = Arena({"low_rows": nx * nx, "top_rows": nx * nx, "work": nx, "z": m * nx, "y": n})
        arena.arrays["low_rows"][: low.size] = low.ravel()
        arena.arrays["top_rows"][: top.size] = top.ravel()
        arena.arrays["z"][:] = start.z
        record = Record(
            CHART,
            arena,
            system=assembly.record.data.ctypes.data,
            n=n,
            n_low=low.shape[0],
            n_top=top.shape[0],
            matrix=dense_lu(nx),
            limit=_checked_limit(self.restart) if isinstance(self.coordinates, str) else np.inf,
            t=start.t,
            pivot=np.zeros(2 * nx, dtype=np.int64),
        )
        hook = (chart_hook, record) if assembly.n_c else None
        residual = NativeFunction(chart_residual, record, assembly.bridge, n, None, hook, keep=assembly)
        rate = NativeFunction(chart_rate, record, assembly.bridge, n, None, hook, keep=assembly)
        rows = [low] * (m - 1) + [top]

        def pack(values: Start) -> tuple[np.ndarray, np.ndarray]:
            z, slope = values.z.reshape(m, nx), values.slope.reshape(m, nx)
            y = np.concatenate([*[rows[j] @ z[j] for j in range(m)], values.r])
            return y, np.concatenate([*[rows[j] @ slope[j] for j in range(m)], values.rate])

        reduction = Reduction(ImplicitDAE(residual, n), *pack(start), n, rate=rate, pack=pack)
        arena.arrays["y"][:] = reduction.y0
        reduction.recover = _Recovery(record, assembly, start, reduction.y0)
        reduction.restart = lambda new: self.reduce(assembly, new)
        return reduction

    def _rows(self, assembly, start: Start) -> tuple[np.ndarray, np.ndarray]:
        """R~ for the lower levels and for the highest one."""
        nx, n_c, n_g = assembly.nx, assembly.n_c, assembly.n_g
        if not isinstance(self.coordinates, str):
            matrix = np.atleast_2d(np.asarray(self.coordinates, dtype=float))
            if matrix.shape != (nx - n_c, nx) or n_g != n_c:
                raise InvalidProblemError(f"coordinates has shape {matrix.shape}; expected ({nx - n_c}, {nx})")
            return matrix, matrix
        if self.coordinates not in _COORDINATES:
            raise InvalidProblemError(
                f"unknown coordinates '{self.coordinates}'; known: {', '.join(_COORDINATES)}, or a matrix"
            )
        values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
        if values is None:
            raise InvalidProblemError(f"the system cannot be evaluated at t = {start.t:g}")
        return (
            complement(values["jacobian"][:n_g], self.coordinates, values["mass"]),
            complement(values["jacobian"], self.coordinates, values["mass"]),
        )


def complement(jacobian: np.ndarray, kind: str, mass: np.ndarray) -> np.ndarray:
    """Rows that complete those of `jacobian` to a regular matrix."""
    from scipy.linalg import null_space, qr

    rows, n = jacobian.shape
    if rows == 0:
        return np.eye(n)
    if kind == "lu":
        columns = qr(jacobian, mode="r", pivoting=True)[1]
        return np.eye(n)[np.sort(columns[rows:])]
    if kind == "svd":
        return null_space(jacobian).T
    basis = qr(jacobian.T)[0][:, rows:].T
    if kind == "essential":
        b = np.linalg.solve(mass, jacobian.T)
        return basis @ (np.eye(n) - b @ np.linalg.solve(jacobian @ b, jacobian))
    return basis


def _checked_limit(restart) -> float:
    limit = check_positive(restart, "restart")
    if limit <= 1.0:
        raise InvalidProblemError(f"restart must be greater than 1, got {limit:g}: every chart begins with 1")
    return limit


@dataclass
class _Recovery:
    """From chart coordinates back to (z, r), from the last point known or, if that is nearer, the chart's start."""

    record: Any
    assembly: Any
    start: Start
    y0: np.ndarray

    def __call__(self, times: np.ndarray, y: np.ndarray) -> np.ndarray:
        from daedal.formulations.charts import recover_points

        assembly = self.assembly
        states = np.empty((times.size, assembly.n_state))
        statuses = np.zeros(times.size, dtype=np.int64)
        if times.size and abs(times[0] - self.start.t) < abs(times[0] - float(self.record["t"])):
            self.record.array("z")[:], self.record.array("y")[:] = self.start.z, self.y0
            self.record["t"] = self.start.t
        recover_points(self.record.data, assembly.record.data, times, np.ascontiguousarray(y.T), states, statuses)
        assembly.bridge.raise_pending()
        return states


@dataclass(frozen=True)
class MinimalExtension:
    r"""The strangeness-free form of index 1 by minimal extension, Wunderlich (7.13).

    With :math:`G \Pi = [G_1\; G_2]`, :math:`G_2` regular, the derivatives of the dependent coordinates :math:`p_2` and
    velocities become algebraic unknowns, and all three levels of the constraints are equations. When :math:`G_2`
    degenerates, new dependent coordinates are chosen.

    Parameters
    ----------
    restart : float
        New dependent coordinates are chosen when an entry of :math:`G_2^{-1} G_1` exceeds this.
    """

    restart: float = 10.0
    name = "minimal_extension"

    def reduce(self, assembly, start: Start) -> Reduction:
        """The form for an assembled system."""
        from daedal.formulations.residuals import MINIMAL_EXTENSION

        if assembly.m != 2 or assembly.linear:
            raise InvalidProblemError("the minimal extension is made for mechanical systems")
        pivot = dependent_coordinates(assembly, start)
        n_c = assembly.n_c
        shape = Shape(n_top=n_c, alpha=(0.0, 1.0), variant=MINIMAL_EXTENSION, extra=n_c)
        hook = pivot_watch(self, assembly, pivot) if n_c else None
        reduction = build(assembly, start, shape, hook=hook, pivot=pivot)
        reduction.restart = lambda new: self.reduce(assembly, new)
        return reduction


def pivot_watch(formulation: MinimalExtension, assembly, pivot: np.ndarray):
    """The hook that stops a run when other dependent coordinates have to be chosen."""
    from daedal.formulations.charts import CHART, pivot_hook
    from daedal.kernels.dense import dense_lu
    from daedal.kernels.records import Arena, Record

    record = Record(
        CHART,
        Arena({"work": assembly.nx, "pivot": 2 * assembly.nx}, integers=("pivot",)),
        system=assembly.record.data.ctypes.data,
        matrix=dense_lu(max(assembly.n_c, 1)),
        limit=_checked_limit(formulation.restart),
    )
    record.array("pivot")[:] = pivot
    return pivot_hook, record


def dependent_coordinates(assembly, start: Start) -> np.ndarray:
    """For every position and velocity 1 + the number of the dependent coordinate that it is, or 0."""
    from scipy.linalg import qr

    nx, n_g, n_c = assembly.nx, assembly.n_g, assembly.n_c
    pivot = np.zeros(2 * nx, dtype=np.int64)
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None:
        raise InvalidProblemError(f"the system cannot be evaluated at t = {start.t:g}")
    for rows, at in ((n_g, 0), (n_c, nx)):
        if rows:
            columns = np.sort(qr(values["jacobian"][:rows], mode="r", pivoting=True)[1][:rows])
            pivot[at + columns] = 1 + np.arange(rows)
    return pivot
