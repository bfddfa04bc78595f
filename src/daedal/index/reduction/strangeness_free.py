"""The strangeness-free form: selected differential equations, and all constraints from the derivative array."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from daedal.common.tabular import plural, times
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.index.reduction.prolongation import Block, Constraints, Projector, Prolongation
from daedal.index.reduction.reduced_problem import EquationBuilder, ReducedProblem
from daedal.index.reduction.selection import SingularBlock, kernel, row_space
from daedal.index.structure.derivative_array import TOLERANCE, ArrayRanks, NonlinearDerivativeArray, array_ranks
from daedal.index.structure.signature import StructuralSignature
from daedal.index.structure.system_equations import SystemEquations
from daedal.index.structure.system_jacobian import SystemJacobian
from daedal.initial.jet import checked_values, resolved_array
from daedal.problems.compile import with_numbers
from daedal.symbolic.machine import MachineFunction

_POINTS = 3  # maximum number of random starts in the search for a consistent point, if the structure is not sufficient
_HIGHER_FIRST = 1e4  # weight of the change of a derivative, relative to the weight of the next lower one
_CONVERGED = 1e-6  # last correction, relative to the largest derivative, up to which an iteration has converged
_CORRECTIONS = 2  # number of Newton corrections of x', starting from the result of the method


class Inflation(Prolongation):
    """The derivative array F, dF/dt, ..., d^mu F/dt^mu in x and all derivatives that occur."""

    def __init__(self, equations: SystemEquations, mu: int):
        n = equations.n
        self.equations, self.c, self.d = equations, [mu] * n, (equations.orders + mu).tolist()
        self.same, self.leading = {}, [(j, 0) for j in range(n)]
        self.column = self._columns()
        self.n = len(self.column)
        self.kept = [(i, r) for r in range(mu + 1) for i in range(n)]
        self.differentiated = [(i, mu) for i in range(n) if mu]
        self.blocks = [Block(list(range(self.n)), [], [{} for _ in self.kept], self.kept)]


class UndeterminedError(InvalidProblemError):
    """The equations do not determine the solution, however often they are differentiated."""


class StrangenessFreeProblem(ReducedProblem):
    r"""A problem of any index in strangeness-free form, with the derivatives in it as additional unknowns.

    With the derivative array :math:`F_\mu(t, x, w) = 0` of the strangeness index :math:`\mu`, in which :math:`w = (x',
    \ldots, x^{(\mu + 1)})` are independent unknowns, it is

    .. math::

        F_\mu(t, x, w) = 0,   \qquad   Z_1^T F(t, x, x') = 0,   \qquad   N\,(w - w_0) = 0:

    the array contains the a constraints between t and x, including hidden ones; :math:`Z_1` selects d = n - a
    differential equations from those given, such that they determine how x moves along the constraints; derivatives
    that the array does not determine, in the directions N, are kept constant. :math:`Z_1, N, w_0` are data, computed by
    singular value decompositions at a point and updated along the run (P. Kunkel and V. Mehrmann,
    Differential-Algebraic Equations, EMS 2006, hypothesis 4.2 and section 6.2; P. Kunkel, V. Mehrmann, W. Rath and J.
    Weickert, GELDA, SIAM J. Sci. Comput. 18, 1997). This form makes no assumption on the structure of the
    equations.
    """

    by = "the strangeness-free form"

    def __init__(
        self,
        original: Any,
        equations: SystemEquations,
        signature: StructuralSignature,
        values: tuple[int, int] | None = None,
    ):
        self.original, self.signature, self.n = original, signature, original.n
        self.mu, self.a = values or characteristic_values(equations, signature)
        self.d = self.n - self.a
        self.prolongation = inflation = Inflation(equations, self.mu)
        self.blocks = inflation.blocks
        numbers = np.empty(0) if equations.params is None else np.asarray(equations.params, dtype=float)
        self.constraints = Constraints(inflation, numbers, full=True)
        self._inside = np.arange(inflation.n)
        self._place = {column: column for column in range(inflation.n)}
        self._like, self._slope_of = self._inside, {}
        self._slopes = self._of_slopes = np.empty(0, dtype=np.int64)
        self.excluded = self._inside >= self.n
        self.is_highest = self.excluded | np.append(equations.orders == 0, np.zeros(inflation.n - self.n, dtype=bool))
        self._rates = [(j, inflation.column[j, 1]) for j in range(self.n) if (j, 1) in inflation.column]
        self._open = inflation.n - len(inflation.kept) - self.d
        self._chosen = None
        self._selecting, self._held = np.zeros((self.d, self.n)), np.zeros((self._open, inflation.n - self.n))
        self.problem = self._made(inflation.names)

    @classmethod
    def checked(
        cls, original: Any, equations: SystemEquations, signature: StructuralSignature, *leading: Any
    ) -> StrangenessFreeProblem:
        """The reduced problem; raises an error for second-order problems."""
        if equations.order != 1:
            raise InvalidProblemError(
                "the strangeness-free form is for first-order problems. Remedy: introduce the velocities as "
                "unknowns of an ImplicitDAE, or use by='dummy_derivatives'."
            )
        return cls(original, equations, signature)

    @property
    def index(self) -> int:
        """The differentiation index, from the strangeness index."""
        return index_of(self.mu, self.a)

    @cached_property
    def words(self) -> list[str]:
        often = times(self.mu) if self.mu else "not"
        return [
            f"The problem has strangeness index {self.mu}: all equations are differentiated {often}.",
            f"Solved by {self.by}, {plural(self.d, 'differential equation')} and {plural(self.a, 'constraint')}, "
            f"in {self.problem.n} unknowns.",
        ]

    def _relations(self, block: Block, sheet: EquationBuilder) -> list[tuple[int, str]]:
        """The selected differential equations, and the equations that fix undetermined derivatives."""
        n, equations = self.n, self.prolongation.equations
        rates = {column: sheet.rate(j) for j, column in self._rates}
        given = sheet.written(equations.nodes, rates)
        found = [(sheet.combination(given), "of differential equations") for _ in range(self.d)]
        held = [*(sheet.y(k) for k in range(n, self.prolongation.n)), sheet.graph.constant(-1.0)]
        return found + [(sheet.combination(held), "of fixed derivatives") for _ in range(self._open)]

    # --- selection ----------------------------------------------------------------------------------------------------

    def selected(self, t: float, u: np.ndarray, scale: np.ndarray) -> StrangenessFreeProblem:
        """A copy with Z1 and N computed at a point; `scale` are the sizes of u."""
        n, (matrix,) = self.n, self.matrices(t, u)
        scaled, block = matrix * scale, self.blocks[0]
        if not np.isfinite(scaled).all():
            raise SingularBlock(block)
        sizes = np.abs(scaled).max(axis=1, initial=0.0)
        sizes[sizes == 0.0] = 1.0
        scaled = scaled / sizes[:, None]
        constraints = kernel(scaled[:, n:].T, len(scaled) - self.a)
        tangents = None if constraints is None else kernel(constraints @ scaled[:, :n], self.a)
        leading = self._leading(matrix) * scale[:n] / sizes[:n, None]
        moving = None if tangents is None else row_space((leading @ tangents.T).T, self.d)
        free = kernel(scaled[:, n:], len(scaled) - self.a)
        if moving is None or free is None:
            raise SingularBlock(block)
        selecting, other = moving / sizes[:n], copy(self)
        other._selecting, other._held = selecting, free / scale[n:]
        other._chosen = [other._rows(matrix)]
        rows = np.column_stack([other._held, other._held @ u[n:]])
        numbers = np.concatenate([self.constraints.numbers, selecting.ravel(), rows.ravel()])
        if numbers.size:
            other.problem = with_numbers(self.problem, numbers)
        return other

    def matrices(self, t: float, u: np.ndarray) -> list[np.ndarray]:
        """The Jacobian of the array."""
        return [self.constraints.dense_values(t, u)[1]]

    @cached_property
    def block_code(self) -> MachineFunction:
        """Machine code with the Jacobian of the array."""
        return self.constraints.code

    def block_values(self, number: int) -> slice:
        """The slice with the Jacobian in the memory of `block_code`."""
        return self.constraints.code.slices["entries"]

    def _leading(self, matrix: np.ndarray) -> np.ndarray:
        """F_x' from the Jacobian of the array."""
        found = np.zeros((self.n, self.n))
        for j, column in self._rates:
            found[:, j] = matrix[: self.n, column]
        return found

    def _rows(self, matrix: np.ndarray) -> np.ndarray:
        """The rows of the integrated combinations: Z1^T F_x' on x, N on w."""
        rows = np.zeros((self.d + self._open, self.prolongation.n))
        rows[: self.d, : self.n] = self._selecting @ self._leading(matrix)
        rows[self.d :, self.n :] = self._held
        return rows

    def lowered(self, t: float, u: np.ndarray, slope: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
        """The point of the array with this x, x' near a slope, and small higher derivatives; None if none was found."""
        n, u, rank, change = self.n, u.copy(), len(self.prolongation.kept) - self.a, np.empty(0)
        if not self._open:
            return None
        u[n:] = 0.0
        for j, column in self._rates:
            u[column] = slope[j]
        weights = scale.copy()
        for (_, order), column in self.prolongation.column.items():
            weights[column] *= _HIGHER_FIRST**order
        for _ in range(self.mu + _CORRECTIONS):
            f, matrix, _ = self.constraints.dense_values(t, u)
            scaled = matrix[:, n:] * weights[n:]
            sizes = np.maximum(np.abs(scaled).max(axis=1), np.finfo(float).tiny)
            if not (np.isfinite(scaled).all() and np.isfinite(f).all()):
                return None
            left, values, right = np.linalg.svd(scaled / sizes[:, None], full_matrices=False)
            if values[rank - 1] <= TOLERANCE * values[0]:
                return None
            change = weights[n:] * (right[:rank].T @ (left.T[:rank] @ (f / sizes) / values[:rank]))
            u[n:] -= change
        is_found = np.abs(change / scale[n:]).max() <= _CONVERGED * np.abs(u[n:] / scale[n:]).max()
        return u if is_found else None

    def regularity(self, t: float, u: np.ndarray) -> None:
        """None: the system Jacobian is irrelevant here."""

    # --- conversions --------------------------------------------------------------------------------------------------

    def exact(self, t: np.ndarray, u: np.ndarray, scale: np.ndarray, projector: Projector | None = None):
        """Points on the array with integrated values fixed, their slopes u', and whether each was found.

        x' solves the selected differential equations and the differentiated constraints.
        """
        projector = projector or self.constraints.projector()
        points, slopes, found = u.copy(), np.full(u.shape, np.nan), np.zeros(t.size, dtype=bool)
        for k in range(t.size):
            fixed = self._rows(self.constraints.dense_values(t[k], u[k])[1])
            at = slice(k, k + 1)
            points[at], _, found[at] = projector.project(t[at], u[at], fixed, np.zeros_like(fixed), scale)
            if found[k]:
                slopes[k] = self._slope(t[k], points[k])
        return points, slopes, found

    def _slope(self, t: float, u: np.ndarray) -> np.ndarray:
        there, (_, matrix, rate) = u.copy(), self.constraints.dense_values(t, u)
        slope = np.zeros(u.size)
        for j, column in self._rates:
            slope[j] = u[column]
        for _ in range(_CORRECTIONS):
            for j, column in self._rates:
                there[column] = slope[j]
            f, jacobian, _ = self.constraints.dense_values(t, there)
            rows = self._rows(jacobian)
            moving = rows[: self.d, : self.n] @ slope[: self.n] - self._selecting @ f[: self.n]
            right = np.concatenate([-rate, moving, np.zeros(self._open)])
            try:
                slope = np.linalg.solve(np.concatenate([matrix, rows]), right)
            except np.linalg.LinAlgError:
                return np.full(u.size, np.nan)
        return slope

    def largest_residual(self, t: float, u: np.ndarray) -> tuple[float, float]:
        """The largest residual of the equations without derivatives, and of the array."""
        u = u.copy()
        f, matrix, _ = self.constraints.dense_values(t, u)
        given = np.flatnonzero(~np.any(self._leading(matrix) != 0.0, axis=1))
        own = float(np.abs(f[given]).max(initial=0.0))
        for _ in range(self.mu + _CORRECTIONS):  # derivatives follow from lower ones, level by level
            u[self.n :] -= np.linalg.lstsq(matrix[:, self.n :], f, rcond=None)[0]
            f, matrix, _ = self.constraints.dense_values(t, u)
        return own, float(np.abs(f).max(initial=0.0))


def index_of(mu: int, a: int) -> int:
    """The differentiation index, from the strangeness index and the number of constraints."""
    return mu + 1 if a else 0


def characteristic_values(equations: SystemEquations, signature: StructuralSignature) -> tuple[int, int]:
    """The number of differentiations that reveal all constraints, and the number of these constraints.

    They follow from the structure if possible, otherwise from ranks at some consistent point.
    """
    if SystemJacobian(equations, signature).generic.verdict != "singular":
        return max(signature.index - 1, 0), equations.n - signature.degrees_of_freedom
    random, reason = np.random.default_rng(0), None
    for _ in range(_POINTS):
        t, guess = float(random.random()), random.standard_normal(equations.n)
        try:
            return characteristic_values_near(equations, t, guess)
        except UndeterminedError:
            raise
        except (InconsistentInitialError, InvalidProblemError) as error:
            reason = error
    raise InvalidProblemError(f"no consistent point was found at which to compute the index: {reason}")


def characteristic_values_near(equations: SystemEquations, t: float, x0: Any) -> tuple[int, int]:
    """Numbers of differentiations and of constraints, from ranks at the consistent point nearest to `x0`."""
    found: list[ArrayRanks] = []

    def enough(array: NonlinearDerivativeArray, jet: np.ndarray) -> bool:
        found[:] = array_ranks(array, t, jet)[-1:]
        return found[0].missing == 0

    resolved_array(equations, t, *checked_values(equations, x0, None), None, enough=enough)
    settled = found[0] if found[0].missing == 0 else None
    if settled is None or settled.v or settled.degrees_of_freedom != settled.d:
        raise UndeterminedError(
            "the equations do not determine the solution, however often they are differentiated. Remedy: "
            "daedal.analyse(problem) names the redundant equations and the undetermined unknowns."
        )
    if not all(decision.clear for decision in settled.decisions):
        raise InvalidProblemError("the ranks of the derivative array are not clear")
    return settled.times, settled.a
