r"""Sensitivities of linear Hessenberg DAEs to their initial values.

A change of the initial values of :math:`x^{(m)} = \sum_j A_j x^{(j-1)} + B y + q,\; 0 = C x + r` moves the solution by
one of the homogeneous problem, with :math:`q = 0` and :math:`r = 0`, whatever the solution is: the variational
equations are integrated apart, by the same formulation and method, and satisfy :math:`C s = 0` and its derivatives as
the solution does :math:`C x + r = 0`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.driver.request import Request, Settings
from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.mechanics.hessenberg import HessenbergAssembly
from daedal.problems import HessenbergDAE
from daedal.problems.checks import check_real, check_tolerances, check_vector
from daedal.sensitivity.parameters import columns_of, given_starts, scales
from daedal.sensitivity.result import column_of


@dataclass(frozen=True)
class LinearSensitivity:
    """Derivatives with respect to one initial value; ``numpy.asarray`` of it is `y`.

    Attributes
    ----------
    y, lam : numpy.ndarray
        Of what the solution has under the same names, with the same shapes.
    """

    y: np.ndarray
    lam: np.ndarray

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.y, dtype=dtype)


@dataclass(frozen=True)
class LinearSensitivities:
    """The derivatives of a solution, which are solutions of the homogeneous problem."""

    names: tuple[str, ...]
    solutions: tuple[Any, ...]

    @property
    def values(self) -> np.ndarray:
        """Those of z = (x, x', ...) at the output points, shape (m, n, nt)."""
        return np.array([solution.y for solution in self.solutions])

    def at(self, parameter: Any, t: Any = None) -> LinearSensitivity:
        """The sensitivity to an initial value at the output points, or at the times `t`."""
        found = self.solutions[column_of(self.names, parameter)]
        if t is None:
            return LinearSensitivity(found.y, found.lam)
        times = check_real(t, "t", "be a number or a vector")
        y, lam = np.asarray(found(times)), found.multipliers(np.atleast_1d(times).astype(float))
        return LinearSensitivity(y, lam[:, 0] if times.ndim == 0 else lam)


class HessenbergSensitivity:
    """A plan for a Hessenberg DAE and its sensitivities.

    Parameters
    ----------
    problem : HessenbergDAE
    settings : Settings
        With what is wanted as `sensitivities`.
    make_plan : callable
        ``make_plan(problem, settings)``, for a problem without sensitivities.
    """

    def __init__(self, problem: HessenbergDAE, settings: Settings, make_plan: Any):
        wanted = settings.sensitivities
        assert wanted is not None
        if wanted.names is True:
            raise InvalidProblemError(
                "sensitivities=True asks for all parameters, and a HessenbergDAE has none: name initial values, such "
                f"as '{problem.label(0)}(0)'"
            )
        self.problem, self._bare = problem, replace(settings, sensitivities=None)
        self.columns = columns_of(wanted, problem)
        self._starts = given_starts(wanted, self.columns, problem.n)
        self._homogeneous = replace(problem, q=np.zeros(problem.n_x), r=np.zeros(problem.n_y), r_derivatives=None)
        self._primal = make_plan(problem, self._bare)
        self._variational = make_plan(self._homogeneous, replace(self._bare, events=None))

    def is_current(self) -> bool:
        """Whether the functions read the same from outside as when they were traced."""
        return self._primal.is_current() and self._variational.is_current()

    def solve(self, request: Request) -> Any:
        """The solution, and the homogeneous ones over the interval that it has covered."""
        solution = self._primal.solve(request.changed(problem=self.problem, sensitivities=None))
        t0, end = request.span[0], float(solution.t[-1])
        span = (t0, end) if end != t0 else request.span
        z0 = check_vector(np.concatenate(np.atleast_1d(request.initial), axis=None), self.problem.n, "initial")
        rtol, atol = check_tolerances(self.problem.n, request.settings.rtol, request.settings.atol)
        assembly, found = HessenbergAssembly(self._homogeneous), []
        for start, size in zip(self._starts, scales(self.columns, np.zeros(0), z0), strict=True):
            state = start[None].copy()
            if assembly.project(np.array([t0]), state, weight="I")[0] != 0:
                raise InconsistentInitialError(
                    f"no initial sensitivities satisfy the differentiated constraints at t = {t0:g}: C B is singular"
                )
            own = request.changed(
                problem=self._homogeneous,
                initial=state[0],
                sensitivities=None,
                events=None,
                rtol=rtol,
                atol=atol / size,
            )
            found.append(self._variational.solve(replace(own, span=span, times=solution.t)))
        solution.sensitivities = LinearSensitivities(tuple(c.name for c in self.columns), tuple(found))
        return solution
