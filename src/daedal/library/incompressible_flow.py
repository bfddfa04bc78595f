"""Incompressible flow by the method of lines: a lid-driven cavity on a staggered grid.

Velocities are located on the faces of square cells, pressures at their centres (F. H. Harlow, J. E. Welch, Phys. Fluids
8 (1965), pp. 2182-2189). The result is the system of Brenan, Campbell and Petzold, section 6.5,

    U' + K U + N(U) + C P = f(t),      C^T U = 0,

of index 2: C, the gradient, has full column rank once the pressure of one cell is set to zero.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import daedal
from daedal.library.registry import Model, model


def published_centre_lines(reynolds: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Velocities (y, u) and (x, v) on the centre lines, by Ghia, Ghia and Shin; empty if not published."""
    table = tomllib.loads(Path(__file__).with_name("cavity_centre_lines.toml").read_text(encoding="utf-8"))
    key = f"{reynolds:g}"
    if key not in table["u"]:
        return {}
    return {
        name: (np.array(table[name][place]), np.array(table[name][key])) for name, place in (("u", "y"), ("v", "x"))
    }


@dataclass(frozen=True)
class StaggeredGrid:
    """A unit square of cells x cells cells: sparse matrices that act on interior velocities y = (u, v) and pressures z.

    u is at (i h, (j + 1/2) h), v at ((i + 1/2) h, j h), the pressure at ((i + 1/2) h, (j + 1/2) h), with i varying
    fastest. The pressure of the cell in the lower left corner is 0 and not an unknown.
    """

    cells: int
    divergence: Any  # maps velocities to all cells but the first
    laplacian: Any  # assumes no slip at the walls
    first: Any  # momentum fluxes are the products (first y) (second y), in cells and at corners
    second: Any
    spread: Any  # maps momentum fluxes to their divergence
    lid: np.ndarray  # contribution of a lid of speed 1 to the laplacian

    @classmethod
    def of(cls, cells: int) -> "StaggeredGrid":
        """Build the grid from Kronecker products of one-dimensional matrices."""
        from scipy import sparse

        n, inner = cells, cells - 1
        one, one_inner = sparse.eye_array(n), sparse.eye_array(inner)
        ones = np.ones(inner)
        difference = n * sparse.diags_array([ones, -ones], offsets=[0, -1], shape=(n, inner))  # inner faces to cells
        mean = 0.5 * sparse.diags_array([ones, ones], offsets=[0, -1], shape=(n, inner))
        along = -(difference.T @ difference)  # faces: values at the walls are 0
        ends = np.r_[1.0, np.zeros(n - 2), 1.0]
        across = -(difference @ difference.T) - sparse.diags_array(2.0 * n * n * ends)  # the value at a wall is a mean
        none = sparse.csr_array((n * n, n * inner))

        cells_u, cells_v = sparse.kron(one, mean), sparse.kron(mean, one)
        corners_u, corners_v = sparse.kron(mean.T, one_inner), sparse.kron(one_inner, mean.T)
        blank = sparse.csr_array((inner * inner, n * inner))
        lid = np.zeros(2 * n * inner)
        lid[inner * inner : n * inner] = 2.0 * n * n
        return cls(
            cells=n,
            divergence=sparse.hstack([sparse.kron(one, difference), sparse.kron(difference, one)]).tocsr()[1:],
            laplacian=sparse.block_diag(
                [
                    sparse.kron(one, along) + sparse.kron(across, one_inner),
                    sparse.kron(one_inner, across) + sparse.kron(along, one),
                ]
            ).tocsr(),
            first=sparse.block_array([[cells_u, none], [corners_u, blank], [none, cells_v]]).tocsr(),
            second=sparse.block_array([[cells_u, none], [blank, corners_v], [none, cells_v]]).tocsr(),
            spread=sparse.block_array(
                [
                    [-sparse.kron(one, difference.T), sparse.kron(difference, one_inner), None],
                    [None, sparse.kron(one_inner, difference), -sparse.kron(difference.T, one)],
                ]
            ).tocsr(),
            lid=lid,
        )

    def positions(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Coordinates (x, y) of u, v and the unknown pressures."""
        face = np.arange(1, self.cells) / self.cells
        middle = (np.arange(self.cells) + 0.5) / self.cells
        u, v, p = (np.meshgrid(x, y) for x, y in ((face, middle), (middle, face), (middle, middle)))
        return (u[0].ravel(), u[1].ravel()), (v[0].ravel(), v[1].ravel()), (p[0].ravel()[1:], p[1].ravel()[1:])

    def convection(self, y: np.ndarray) -> np.ndarray:
        """N(y), the divergence of the momentum fluxes; y^T N(y) = 0 for divergence-free y."""
        return self.spread @ ((self.first @ y) * (self.second @ y))

    def convection_jacobian(self, y: np.ndarray):
        """dN/dy."""
        from scipy import sparse

        by_first = sparse.diags_array(self.second @ y) @ self.first
        by_second = sparse.diags_array(self.first @ y) @ self.second
        return self.spread @ (by_first + by_second)

    def names(self) -> list[str]:
        """Names of all unknowns, by grid position."""
        inner, all_ = range(1, self.cells), range(self.cells)
        sides = (("u", inner, all_), ("v", all_, inner), ("p", all_, all_))
        return [
            f"{letter}({i},{j})"
            for letter, columns, rows in sides
            for j in rows
            for i in columns
            if letter != "p" or i + j > 0
        ]

    def circulation(self, stream: np.ndarray) -> np.ndarray:
        """Divergence-free velocities from a stream function [j, i] at all corners (i, j) / cells."""
        n = self.cells
        return np.r_[n * np.diff(stream, axis=0)[:, 1:-1].ravel(), -n * np.diff(stream, axis=1)[1:-1].ravel()]

    def stream_function(self, y: np.ndarray) -> np.ndarray:
        """Stream function [j, i] of velocities at all corners (i, j) / cells, 0 on the walls."""
        n = self.cells
        result = np.zeros((n + 1, n + 1))
        result[1:, 1:-1] = np.cumsum(y[: n * (n - 1)].reshape(n, n - 1), axis=0) / n
        return result

    def centre_lines(self, y: np.ndarray, lid: float = 1.0):
        """(y, u) along the vertical and (x, v) along the horizontal line through the centre, including the walls."""
        n, half = self.cells, self.cells // 2
        places = np.r_[0.0, (np.arange(n) + 0.5) / n, 1.0]
        u = y[: n * (n - 1)].reshape(n, n - 1)[:, half - 1]
        v = y[n * (n - 1) : 2 * n * (n - 1)].reshape(n - 1, n)[half - 1]
        return (places, np.r_[0.0, u, lid]), (places, np.r_[0.0, v, 0.0])

    def pressure(self, acceleration: np.ndarray) -> np.ndarray:
        """The pressure z for which the acceleration minus its gradient is divergence-free."""
        from scipy.sparse.linalg import spsolve

        return -spsolve((self.divergence @ self.divergence.T).tocsc(), self.divergence @ acceleration)


# --- boundary conditions and forces -----------------------------------------------------------------------------------


class SuddenLid:
    """A lid that starts at t = 0 with speed 1 above a fluid at rest."""

    def __init__(self, grid: StaggeredGrid, reynolds: float):
        self._drag = grid.lid / reynolds
        self.start = np.zeros(grid.lid.size)

    def __call__(self, t: float) -> np.ndarray:
        """Force on the fluid, and drag of the lid."""
        return self._drag


class KnownFlow:
    """A lid and a force such that s(t) times a smooth flow solves the partial differential equations.

    The stream function is 8 X Y with X = x^4 - 2x^3 + x^2, Y = y^4 - y^2 (T. M. Shih, C. H. Tan, B. C. Hwang, Int. J.
    Numer. Meth. Fluids 9 (1989), pp. 193-212), so that the lid moves with speed 16 s X; the pressure is s (x^2 y + sin
    y).
    """

    def __init__(self, grid: StaggeredGrid, reynolds: float):
        (u_points, v_points, p_points), corner = grid.positions(), 0.5 / grid.cells
        along_x, along_y = self._parts(*u_points, reynolds)[0], self._parts(*v_points, reynolds)[1]
        self._force = np.hstack([along_x, along_y])
        self._drag = grid.lid / reynolds
        self._drag[: u_points[0].size] *= 16.0 * (u_points[0] ** 4 - 2.0 * u_points[0] ** 3 + u_points[0] ** 2)
        self._values = np.r_[self._force[0], self._pressure(*p_points) - self._pressure(corner, corner)]
        x, y = np.meshgrid(*2 * [np.linspace(0.0, 1.0, grid.cells + 1)])
        self.start = self._factor(0.0) * grid.circulation(8.0 * (x**4 - 2.0 * x**3 + x**2) * (y**4 - y**2))

    @staticmethod
    def _factor(t: float) -> float:
        return 1.5 + 0.5 * np.sin(t)

    @staticmethod
    def _pressure(x, y):
        return x**2 * y + np.sin(y)

    @staticmethod
    def _parts(x, y, reynolds: float):
        """Components along x and y of velocity, convection, and pressure gradient minus viscous forces."""
        X = [x**4 - 2.0 * x**3 + x**2, 4.0 * x**3 - 6.0 * x**2 + 2.0 * x, 12.0 * x**2 - 12.0 * x + 2.0, 24.0 * x - 12.0]
        Y = [y**4 - y**2, 4.0 * y**3 - 2.0 * y, 12.0 * y**2 - 2.0, 24.0 * y]
        u, v, u_x = 8.0 * X[0] * Y[1], -8.0 * X[1] * Y[0], 8.0 * X[1] * Y[1]
        viscous = 8.0 * (X[2] * Y[1] + X[0] * Y[3]) / reynolds, -8.0 * (X[3] * Y[0] + X[1] * Y[2]) / reynolds
        along_x = u, u * u_x + v * 8.0 * X[0] * Y[2], 2.0 * x * y - viscous[0]
        along_y = v, -u * 8.0 * X[2] * Y[0] - v * u_x, x**2 + np.cos(y) - viscous[1]
        return along_x, along_y

    def __call__(self, t: float) -> np.ndarray:
        """Force on the fluid, and drag of the lid."""
        s, slope = self._factor(t), 0.5 * np.cos(t)
        return s * (self._drag + self._force[2]) + s * s * self._force[1] + slope * self._force[0]

    def exact(self, t: float) -> np.ndarray:
        """Exact velocities and pressures at the unknowns."""
        return self._factor(t) * self._values


# --- the problem ----------------------------------------------------------------------------------------------------


class CavityEquations:
    """y' = f(t, y, z), 0 = g(y) of the cavity, with their Jacobian."""

    def __init__(self, grid: StaggeredGrid, reynolds: float, drive: Any):
        self.grid, self.drive, self._viscosity = grid, drive, grid.laplacian / reynolds

    def f(self, t, y, z):
        """Accelerations with pressure."""
        return self.acceleration(t, y) + self.grid.divergence.T @ z

    def g(self, t, y, z):
        """Divergence of the flow in every cell except the first, where it follows from the others."""
        return self.grid.divergence @ y

    def acceleration(self, t, y):
        """Accelerations without pressure."""
        return self.drive(t) + self._viscosity @ y - self.grid.convection(y)

    def jacobian(self, t, x, xp, cj):
        """Jacobian of (y' - f, g), with the same stored entries for every x."""
        from scipy import sparse

        divergence = self.grid.divergence
        n_y = divergence.shape[1]
        momentum = cj * sparse.eye_array(n_y) - self._viscosity + self.grid.convection_jacobian(x[:n_y])
        return sparse.block_array([[momentum, -divergence.T], [divergence, None]]).tocsc()

    def sparsity(self):
        """Sparsity of the Jacobian."""
        n = sum(self.grid.divergence.shape)
        generic = np.random.default_rng(0).uniform(1.0, 2.0, n)
        return self.jacobian(0.0, generic, generic, 1.0)


@model
def cavity(cells: int = 16, reynolds: float = 100.0, lid: str = "sudden", t1: float = 20.0) -> Model:
    r"""Flow in a square cavity driven by a moving lid, on a staggered grid of finite volumes.

    Notes
    -----
    ``model.extra["grid"]`` has the matrices and the positions of the unknowns, ``grid.centre_lines(y)``, which returns
    (y, u) along the vertical and (x, v) along the horizontal line through the centre, and ``grid.stream_function(y)``
    at the cell corners. ``model.extra["published"]`` contains these lines as published by Ghia, Ghia and Shin (Reynolds
    numbers 100, 400 and 1000). With ``lid="known"``, ``model.extra["pde"](t)`` are velocities and pressures of the
    partial differential equations at the unknowns, from which a solution differs by :math:`O(h^2)`.

    The equations are quadratic, and their Jacobian is exact. Both are products with SciPy sparse matrices, which are
    efficient without machine code.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.cavity()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> (y, u), (x, v) = model.extra["grid"].centre_lines(sol.y[:, -1])
    >>> print(f"{u.min():.3f} {v.max():.3f}")  # published: -0.211, 0.175
    -0.195 0.163
    """
    if not isinstance(cells, (int, np.integer)) or cells < 4 or cells % 2:
        raise daedal.InvalidProblemError(f"cells={cells!r} must be an even number, at least 4")
    grid = StaggeredGrid.of(int(cells))
    drive = SuddenLid(grid, reynolds) if lid == "sudden" else KnownFlow(grid, reynolds)
    equations = CavityEquations(grid, reynolds, drive)
    n_z, n_y = grid.divergence.shape
    problem = daedal.SemiExplicitDAE(
        equations.f,
        equations.g,
        n_y,
        n_z,
        jacobian=equations.jacobian,
        sparsity=equations.sparsity(),
        names=grid.names(),
    )
    known = {"pde": drive.exact} if isinstance(drive, KnownFlow) else {"published": published_centre_lines(reynolds)}
    half = cells // 2
    return Model(
        problem=problem,
        initial=(drive.start, grid.pressure(equations.acceleration(0.0, drive.start))),
        plot={"variables": [f"u({half},{cells - 1})", f"u({half},{half})", f"v({half},{half})"]},
        extra={"grid": grid, **known},
    )
