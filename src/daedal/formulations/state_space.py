"""Forms in as many coordinates as there are degrees of freedom, or with dependent ones exchanged for equations."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.formulations.directions import refuse_singular_mass
from daedal.formulations.formulation import Formulation
from daedal.formulations.reduction import Reduction
from daedal.formulations.shape import ACCELERATION, MINIMAL_EXTENSION, Shape, level
from daedal.kernels.functions import NativeFunction
from daedal.mechanics.start import Start
from daedal.problems import ImplicitDAE
from daedal.problems.checks import check_positive

_COORDINATES = ("lu", "qr", "svd", "essential")


@dataclass(frozen=True)
class StateSpace(Formulation):
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
    ordinary = True

    def shape(self, system) -> Shape:
        """Local coordinates on the constraints."""
        restart = _checked_limit(self.restart) if isinstance(self.coordinates, str) else np.inf
        return Shape(level(system.m, system.m), top=ACCELERATION, restart=restart, charts=True)

    def dense(self, shape: Shape, assembly, start: Start) -> Reduction:
        """Charts that begin at the start."""
        return ChartReduction(self, shape, assembly, start)

    def rows(self, assembly, start: Start) -> tuple[np.ndarray, np.ndarray]:
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
        if self.coordinates == "essential":
            refuse_singular_mass(f"formulation={self.name!r}", "choose 'state_space'", assembly, start)
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
        return null_space(jacobian).T[: n - rows]
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


class ChartReduction(Reduction):
    """The state-space form on one chart: y = (R~ z_1, ..., R~ z_m, r)."""

    def __init__(self, formulation: StateSpace, shape: Shape, assembly, start: Start):
        m, nx, n_g, n_c = assembly.m, assembly.nx, assembly.n_g, assembly.n_c
        n = (m - 1) * (nx - n_g) + (nx - n_c) + assembly.n_r
        if n == 0:
            raise InvalidProblemError("the constraints leave no degree of freedom; there is nothing to integrate")
        self._coordinates = formulation
        super().__init__(formulation, shape, assembly, n, n)
        self.begin(start)
        if n_c:
            from daedal.formulations.charts import chart_hook

            self._own_hook = chart_hook, self.record

    def make_record(self):
        """The CHART record."""
        from daedal.formulations.charts import CHART
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.records import Record

        assembly, nx = self.assembly, self.assembly.nx
        return Record.allocated(
            CHART,
            system=assembly.record,
            n=self.n,
            n_low=nx - assembly.n_g,
            n_top=nx - assembly.n_c,
            matrix=dense_lu(nx),
            limit=self.shape.restart,
        )

    @cached_property
    def problem(self) -> ImplicitDAE:
        """y' - rate(t, y) = 0."""
        from daedal.formulations.charts import chart_residual

        return ImplicitDAE(self.native(chart_residual), self.n)

    @cached_property
    def rate(self) -> NativeFunction:
        """y' of (t, y)."""
        from daedal.formulations.charts import chart_rate

        return self.native(chart_rate)

    def choose(self, start: Start) -> None:
        """A chart about the start."""
        self._rows = self._coordinates.rows(self.assembly, start)

    def write(self, record) -> None:
        """The rows of the chart, and its first point."""
        for name, rows in zip(("low_rows", "top_rows"), self._rows, strict=True):
            record.array(name)[:] = rows
        for name in ("condition", "low_sign", "sign"):
            record[name] = 0
        self._keep(record, self.unknowns(self.start)[0])

    def _keep(self, record, y: np.ndarray) -> None:
        """Newton's method begins at the start."""
        record.array("z")[:], record.array("y")[:] = self.start.z, y
        record["t"] = self.start.t

    def unknowns(self, start: Start) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates of a start, and their derivatives."""
        m, nx, (low, top) = self.assembly.m, self.assembly.nx, self._rows
        z, slope, rows = start.z.reshape(m, nx), start.slope.reshape(m, nx), [low] * (m - 1) + [top]
        y = np.concatenate([*[rows[j] @ z[j] for j in range(m)], start.r])
        return y, np.concatenate([*[rows[j] @ slope[j] for j in range(m)], start.rate])

    def recover(self, times: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Back to (z, r), from the last point known or, if that is nearer, the chart's start."""
        from daedal.formulations.charts import recover_points

        assembly = self.assembly
        states = np.empty((times.size, assembly.n_state))
        statuses = np.zeros(times.size, dtype=np.int64)
        if times.size and abs(times[0] - self.start.t) < abs(times[0] - float(self.record["t"])):
            self._keep(self.record, self.y0)
        memory = np.empty(2 * int(self.record["n"]) + assembly.m * assembly.nx)
        rows = np.ascontiguousarray(y.T)
        recover_points(self.record.address, assembly.record.address, times, rows, states, statuses, memory)
        assembly.bridge.raise_pending()
        return states


@dataclass(frozen=True)
class MinimalExtension(Formulation):
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

    def shape(self, system) -> Shape:
        """All levels, with unknowns for the derivatives of dependent coordinates."""
        if system.m != 2 or system.linear:
            raise InvalidProblemError("the minimal extension is made for mechanical systems")
        restart = _checked_limit(self.restart) if system.n_c else self.restart
        return Shape(level(1, 2), n_top=system.n_c, variant=MINIMAL_EXTENSION, restart=restart)
