r"""Half-explicit Runge-Kutta methods: the most efficient methods for nonstiff mechanisms.

The state (q, v) is advanced explicitly, and every stage solves one linear system for accelerations and multipliers,
which enforces the velocity constraints exactly.

References
----------
V. Brasey, E. Hairer: Half-explicit Runge-Kutta methods for differential-algebraic systems of index 2, SIAM J. Numer.
Anal. 30 (1993) 538-552; V. Brasey, Computing 48 (1992) 191-201 (HEM5); A. Murua, Computing 59 (1997) 43-61 (PHEM56);
M. Arnold, BIT 38 (1998) 415-438 (HEDOP5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.methods.base import NORMS, Method
from daedal.methods.half_explicit.half_explicit_tableaux import HEDOP5 as HEDOP5_TABLEAU
from daedal.methods.half_explicit.half_explicit_tableaux import HEM3 as HEM3_TABLEAU
from daedal.methods.half_explicit.half_explicit_tableaux import HEM4 as HEM4_TABLEAU
from daedal.methods.half_explicit.half_explicit_tableaux import HEM5 as HEM5_TABLEAU
from daedal.methods.half_explicit.half_explicit_tableaux import PHEM56 as PHEM56_TABLEAU
from daedal.methods.half_explicit.half_explicit_tableaux import HalfExplicitTableau, hem4_family
from daedal.methods.run import OneStepRun
from daedal.methods.task import Equations, Task


class MechanicalRun(OneStepRun):
    """A run on a mechanism, with forces that may depend on w and on the multipliers."""

    def __init__(self, method, equations: Equations, **options):
        super().__init__(method, equations, **options)
        mechanism = equations.mechanism
        first = mechanism.m * mechanism.nx + mechanism.n_r
        coupled = mechanism.n_w or bool(mechanism.record["uses_multipliers"])
        self._guess = mechanism.record.array("state")[first:] if coupled else None
        self._rows = mechanism.rows

    def load(self, task: Task) -> None:
        """Load the initial guess of w and the multipliers."""
        if self._guess is not None:
            n_w = self.equations.mechanism.n_w
            self._guess[:] = 0.0
            if task.guess is not None:
                self._guess[:n_w] = task.guess[:n_w]
                self._guess[n_w + self._rows] = task.guess[n_w:]


_CONTROLLERS, _PROJECTIONS = ("pi", "classic"), ("drift", "always", "never")


@dataclass(frozen=True)
class HalfExplicit(Method):
    """A half-explicit Runge-Kutta method defined by its tableau.

    Parameters
    ----------
    tableau : HalfExplicitTableau
        The coefficients.
    controller : {"pi", "classic"}
        Step size control with memory of the last error, or the classical rule of Brasey and Hairer with safety factor
        0.9 and ratios between 0.2 and 5.
    norm : {"rms", "max"}
        Norm of the error estimate.
    projection : {"drift", "always", "never"}
        When positions (and with them velocities) are projected onto the constraints: when the drift reaches a
        twentieth of the tolerance, after every step, or never.
    stop_when_stiff : bool or int
        Stop the run if the steps seem limited by stability (the automatic choice then switches to a stiff method); a
        number is the count of such steps to allow.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> sol = daedal.solve(pendulum, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), method=daedal.methods.HalfExplicit())
    >>> print(sol.q[:, -1].round(4), sol.drift["position"] < 1e-12)
    [-0.9863 -0.165 ] True
    """

    tableau: HalfExplicitTableau = PHEM56_TABLEAU
    controller: str = "pi"
    norm: str = "rms"
    projection: str = "drift"
    stop_when_stiff: bool | int = False

    name = "half_explicit"
    needs = ("mechanism", "semi_explicit")
    explicit = True

    def __post_init__(self):
        if not isinstance(self.tableau, HalfExplicitTableau):
            raise InvalidProblemError(f"tableau must be a HalfExplicitTableau, got {type(self.tableau).__name__}")
        if self.tableau.fault is not None:
            raise InvalidProblemError(
                f"tableau: in {self.tableau.name}, {self.tableau.fault}; a method with such coefficients does not "
                "converge. Remedy: correct them; daedal.analysis.order_conditions.verify shows which conditions fail"
            )
        for name, value, known in (
            ("controller", self.controller, _CONTROLLERS),
            ("norm", self.norm, NORMS),
            ("projection", self.projection, _PROJECTIONS),
        ):
            if value not in known:
                raise InvalidProblemError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")

    @property
    def max_order(self) -> int:
        """The order of the method."""
        return self.tableau.order

    def require_error_estimate(self, fixed_step: float | None) -> None:
        """Raise if the tableau has no error estimate."""
        if fixed_step is None and self.tableau.embedded_order is None:
            raise InvalidProblemError(f"{self.tableau.name} has no error estimate: pass fixed_step")

    def prepare(self, equations: Equations) -> OneStepRun:
        """Store the tableau in a record, and allocate the stages."""
        if equations.semi_explicit is not None:
            return _GeneralRun(self, equations)
        if equations.mechanism.linear:
            raise InvalidProblemError(
                f"{type(self).__name__} requires a mechanical system or a SemiExplicitDAE; a HessenbergDAE is "
                "solved by dassl, or by dopri5 in a form that is an ordinary differential equation"
            )
        return _MechanicalRun(self, equations)


@dataclass(frozen=True)
class HEM3(HalfExplicit):
    """The half-explicit method of order 3 with three stages, Brasey and Hairer, Table 2.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> sol = daedal.solve(pendulum, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), method=daedal.methods.HEM3())
    >>> print(sol.q[:, -1].round(4), sol.drift["position"] < 1e-12)
    [-0.9863 -0.165 ] True
    """

    tableau: HalfExplicitTableau = HEM3_TABLEAU

    name = "hem3"


@dataclass(frozen=True)
class HEM4(HalfExplicit):
    """The half-explicit method of order 4 with five stages of Brasey and Hairer, Table 5.

    Its embedded solution is the fifth stage, of order 2, which satisfies the constraint.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> sol = daedal.solve(pendulum, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), method=daedal.methods.HEM4())
    >>> print(sol.q[:, -1].round(4), sol.drift["position"] < 1e-12)
    [-0.9863 -0.165 ] True
    """

    tableau: HalfExplicitTableau = HEM4_TABLEAU

    name = "hem4"

    @staticmethod
    def family(c2: Any, c3: Any, **options: Any) -> HalfExplicit:
        """The method of order 4 with the nodes c2 and c3; HEM4 has c2 = 3/10 and c3 = (4 - sqrt 6)/10."""
        return HalfExplicit(hem4_family(c2, c3), **options)


@dataclass(frozen=True)
class HEM5(HalfExplicit):
    """Brasey's half-explicit method of order 5 with eight stages.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> sol = daedal.solve(pendulum, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), method=daedal.methods.HEM5())
    >>> print(sol.q[:, -1].round(4), sol.drift["position"] < 1e-12)
    [-0.9863 -0.165 ] True
    """

    tableau: HalfExplicitTableau = HEM5_TABLEAU

    name = "hem5"


@dataclass(frozen=True)
class PHEM56(HalfExplicit):
    """Murua's partitioned half-explicit method of order 5 with six stages, based on those of Dormand and Prince.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.get("planar_pendulum")
    >>> sol = daedal.solve(model.problem, (0.0, 1.0), model.initial, method=daedal.methods.PHEM56(), rtol=1e-8)
    >>> sol.success
    True
    """

    name = "phem56"


@dataclass(frozen=True)
class HEDOP5(HalfExplicit):
    """Arnold's half-explicit method of order 5, based on the stages of Dormand and Prince; the first stage is
    explicit.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> sol = daedal.solve(pendulum, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]), method=daedal.methods.HEDOP5())
    >>> print(sol.q[:, -1].round(4), sol.drift["position"] < 1e-12)
    [-0.9863 -0.165 ] True
    """

    tableau: HalfExplicitTableau = HEDOP5_TABLEAU

    name = "hedop5"


@dataclass(frozen=True)
class _Coefficients:
    """A tableau as kernel arguments; `inner` are the weights at theta = 4/5, 3/5, 2/5, 1/5."""

    arrays: dict[str, np.ndarray]
    error_order: int
    error_kind: int
    chained: bool
    known_first: bool


_known: dict[int, tuple[HalfExplicitTableau, _Coefficients]] = {}


def _coefficients(tableau: HalfExplicitTableau) -> _Coefficients:
    """The coefficients of a tableau, computed once."""
    if id(tableau) not in _known:
        _known[id(tableau)] = tableau, _convert(tableau)
    return _known[id(tableau)][1]


def _convert(tableau: HalfExplicitTableau) -> _Coefficients:
    from daedal.methods.half_explicit.half_explicit_step import NODES, PLAIN_ERROR, PROJECTED_ERROR, TWO_ESTIMATES

    floats, s = tableau.floats(), tableau.s
    a, ab, b = floats["a"], floats["ab"], floats["b"]
    first = 1 if tableau.partitioned else 0
    error_kind, error_order = PLAIN_ERROR, tableau.embedded_order or tableau.order
    if tableau.partitioned:
        e = b - floats["bhat"]
        error_kind = PROJECTED_ERROR
    else:
        e = b - a[s - 1]
    e2 = np.zeros(s)
    if "second_bhat" in floats:
        error_kind, error_order, e2 = TWO_ESTIMATES, tableau.order - 1, b - floats["second_bhat"]
    chained = all(np.array_equal(ab[i], a[i + 1]) for i in range(first, s - 1))
    arrays = {"a": a, "ab": ab, "c": floats["c"], "cb": floats["cb"], "e": e, "e2": e2}
    arrays["inner"] = np.array([_inner(tableau, floats, 1.0 - (q + 1) / NODES) for q in range(NODES - 1)])
    return _Coefficients(arrays, error_order, error_kind, chained, tableau.partitioned)


def _inner(tableau: HalfExplicitTableau, floats: dict[str, np.ndarray], theta: float) -> np.ndarray:
    """Weights of the slopes of the stages, and of those at the start and end of the step, in y(t_0 + theta h).

    They come from the dense output of the tableau or from cubic Hermite interpolation.
    """
    s = tableau.s
    result, unit = np.zeros(s + 2), np.eye(s + 2)
    if "dense" in floats:
        dense = floats["dense"]
        weights = dense @ theta ** np.arange(1, dense.shape[1] + 1)
        result[:s] = weights[:s]
        if weights.size > s:
            result[s + 1] = weights[s]
        return result
    first, last = (unit[0], unit[s - 1]) if tableau.partitioned else (unit[s], unit[s + 1])
    b = np.concatenate([floats["b"], [0.0, 0.0]])
    return theta * b + theta * (theta - 1.0) * ((1.0 - 2.0 * theta) * b + (theta - 1.0) * first + theta * last)


def _options(method: HalfExplicit) -> dict[str, Any]:
    """Fields of the RUN record that follow from the options of the method."""
    from daedal.methods.one_step import CLASSIC, MEMORY

    return {
        "order": method.max_order,
        "control_order": _coefficients(method.tableau).error_order + 1,
        "controller": CLASSIC if method.controller == "classic" else MEMORY,
        "stop_when_stiff": bool(method.stop_when_stiff),
        "stiff_count": 1 - int(method.stop_when_stiff),
    }


class _MechanicalRun(MechanicalRun):
    """A run on a mechanism."""

    def __init__(self, method: HalfExplicit, equations: Equations):
        from daedal.kernels.records import Record
        from daedal.methods.half_explicit.half_explicit_step import (
            HALF_EXPLICIT,
            half_explicit_accept,
            half_explicit_attempt,
        )

        coefficients = _coefficients(method.tableau)
        self._known_first = coefficients.known_first
        record = Record.allocated(
            HALF_EXPLICIT,
            mechanism=equations.mechanism.record,
            n=equations.n,
            stages=method.tableau.s,
            chained=coefficients.chained,
            known_first=coefficients.known_first,
            error_kind=coefficients.error_kind,
            maximum_norm=method.norm == "max",
            **coefficients.arrays,
        )
        super().__init__(
            method,
            equations,
            attempt=half_explicit_attempt,
            accept=half_explicit_accept,
            record=record,
            **_options(method),
        )

    def load(self, task: Task) -> None:
        """Record whether values inside steps will be needed."""
        super().load(task)
        if not self._known_first and (task.dense or task.t_eval is not None or task.switching is not None):
            self.own["end_slope"] = 1


class _GeneralRun(OneStepRun):
    """A run on a semi-explicit problem of index 2."""

    def __init__(self, method: HalfExplicit, equations: Equations):
        from daedal.kernels.callbacks import Bridge
        from daedal.kernels.dense import dense_lu
        from daedal.kernels.functions import store_vector
        from daedal.kernels.records import Record
        from daedal.methods.half_explicit.half_explicit_general import (
            GENERAL,
            general_accept,
            general_attempt,
            general_begin,
        )

        problem, bridge = equations.semi_explicit, equations.bridge or Bridge()
        n_y, n_z, copies = problem.n_y, problem.n_z, problem.copies
        coefficients = _coefficients(method.tableau)
        record = Record.allocated(
            GENERAL,
            n_y=n_y,
            n_z=n_z,
            copies=copies,
            stages=method.tableau.s,
            known_first=coefficients.known_first,
            error_kind=coefficients.error_kind,
            maximum_norm=method.norm == "max",
            f=bridge.function(problem.f, (n_y, n_z), (n_y,), store_vector("f", n_y), problem.params),
            g=bridge.function(problem.g, (n_y, n_z), (n_z,), store_vector("g", n_z), problem.params),
            matrix=dense_lu(n_z // copies),
            **{name: array for name, array in coefficients.arrays.items() if name != "inner"},
        )
        super().__init__(
            method,
            replace(equations, bridge=bridge, rate=None),
            begin=general_begin,
            attempt=general_attempt,
            accept=general_accept,
            record=record,
            **_options(method),
        )

    def load(self, task: Task) -> None:
        """Determine which rows of g depend on z."""
        rows = _rows_with_z(self.equations.semi_explicit, task.t_span[0], task.y0)
        self.own.array("contains_z")[:] = rows


def _rows_with_z(problem, t0: float, x0: np.ndarray) -> np.ndarray:
    """Which rows of g depend on z."""
    y, z = x0[: problem.n_y], x0[problem.n_y :]
    base = problem.constraint(t0, y, z)
    depends = np.zeros(problem.n_z, dtype=np.int64)
    for j in range(problem.n_z):
        moved = z.copy()
        moved[j] += 1e-4 * max(1.0, abs(z[j]))
        depends |= problem.constraint(t0, y, moved) != base
    if depends.all():
        raise InvalidProblemError(
            "every equation of g contains z: the problem has index 1, but half-explicit methods require index 2; "
            "use method='dassl'"
        )
    return depends
