"""``solve_ivp`` with SciPy's signature and result, on Daedal's driver."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.messages import warn
from daedal.common.tabular import Tabular, plural
from daedal.driver.solving import about_y0, solve, stated_once
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.events.event import Event, named_events
from daedal.methods.base import Method
from daedal.methods.named_methods import method_class
from daedal.problems import ODE, MassMatrixDAE
from daedal.problems.checks import check_callable, check_real
from daedal.solution.solution import DenseOutput, Solution, Statistics
from daedal.solution.status import Status

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


METHODS = {"RK45": "dopri5", "RK23": "dopri5", "DOP853": "dop853", "Radau": "radau", "BDF": "dassl", "LSODA": "auto"}
"""SciPy's method names, each with the closest method here."""

_SMALLEST_RTOL = 100.0 * float(np.finfo(float).eps)


@dataclass
class IVPResult:
    """The result of :func:`solve_ivp`: SciPy's fields, by attribute or key.

    Attributes
    ----------
    t : numpy.ndarray, shape (nt,)
    y : numpy.ndarray, shape (n, nt)
    sol : DenseSolution or None
        ``sol(t)`` inside the interval, with `dense_output`.
    t_events, y_events : list of numpy.ndarray or None
        Times and states at the zeros of each event.
    nfev, njev, nlu : int
        Evaluations of the right-hand side and of its Jacobian, and factorisations.
    status : int
        0: the end was reached, 1: a terminal event, -1: failed.
    message : str
    success : bool
    solution : Solution
        The underlying Daedal solution: derivatives, statistics, history, plots.

    Examples
    --------
    >>> import daedal
    >>> result = daedal.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0])
    >>> print(result.success, result.status, result["y"][0, -1].round(4))
    True 0 0.3679
    """

    t: np.ndarray
    y: np.ndarray
    sol: DenseSolution | None
    t_events: list[np.ndarray] | None
    y_events: list[np.ndarray] | None
    nfev: int
    njev: int
    nlu: int
    status: int
    message: str
    success: bool
    solution: Solution

    def __getitem__(self, key: str) -> Any:
        if key not in self.keys():
            raise KeyError(key)
        return getattr(self, key)

    def __repr__(self) -> str:
        """SciPy's fields; arrays are displayed by their shape."""
        rows = [(name, _in_words(getattr(self, name))) for name in sorted(set(self.keys()) - {"solution"})]
        return f"IVPResult\n{Tabular('ll', rows, indent=2)}"

    def keys(self) -> list[str]:
        """Names of the fields."""
        return [field.name for field in fields(self)]


def _in_words(value: Any) -> str:
    """One-line description of a field."""
    if isinstance(value, np.ndarray):
        if value.size <= 4:
            return str(value.tolist())
        ends = f", {value[0]:g} to {value[-1]:g}" if value.ndim == 1 else ""
        return f"array of shape {value.shape}{ends}"
    if isinstance(value, list):
        return f"[{', '.join(_in_words(one) for one in value)}]"
    return str(value)


class DenseSolution:
    """The continuous solution ``sol(t)``, with `t_min`, `t_max` and the step ends `ts`.

    Examples
    --------
    >>> import daedal
    >>> result = daedal.solve_ivp(lambda t, y: [-y[0]], (0.0, 1.0), [1.0], dense_output=True)
    >>> print(result.sol(0.5).round(4), result.sol.t_max)
    [0.6065] 1.0
    """

    def __init__(self, solution: Solution) -> None:
        self._solution = solution
        assert solution.dense is not None
        self.t_min, self.t_max = solution.dense.interval
        self.ts = np.concatenate([[solution.dense.t0], solution.dense.ends])

    def __repr__(self) -> str:
        return f"DenseSolution from {self.t_min:g} to {self.t_max:g}, {plural(self.ts.size - 1, 'step')}"

    def __call__(self, t: ArrayLike) -> np.ndarray:
        """The solution at t: shape (n,) for a number, (n, len(t)) for an array."""
        return self._solution(t)


def solve_ivp(
    fun: Callable[..., Any],
    t_span: ArrayLike,
    y0: ArrayLike,
    method: Any = "auto",
    t_eval: ArrayLike | None = None,
    dense_output: bool = False,
    events: Event | Callable[..., Any] | Sequence[Event | Callable[..., Any]] | None = None,
    vectorized: bool = False,
    args: Sequence[Any] | None = None,
    *,
    mass: Any = None,
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
    jac: Any = None,
    jac_sparsity: Any = None,
    lband: int | None = None,
    uband: int | None = None,
    **options: Any,
) -> IVPResult:
    """Solve y' = f(t, y), or M y' = f(t, y), with the arguments and the result of ``scipy.integrate.solve_ivp``.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args) -> array (n,)``.
    t_span : (float, float)
        Start and end; backward integration is allowed.
    y0 : array (n,)
        Initial values, real.
    method : str or method object
        "auto" detects stiffness. SciPy's names select the closest method: "RK45" and "RK23" select DOPRI5, "DOP853"
        itself, "Radau" Radau IIA of variable order, "BDF" DASSL, and "LSODA" the automatic choice. Daedal's names and
        objects are accepted as well.
    t_eval : array, optional
        Output times; every step by default.
    dense_output : bool
        Whether to return ``result.sol``.
    events : callable or list of them, optional
        ``event(t, y, *args) -> float``, with the attributes ``terminal`` (True, or the number of the occurrence that
        ends the run) and ``direction``; or :class:`Event`.
    vectorized : bool
        Whether `fun` accepts an array (n, k), column by column.
    args : tuple, optional
        Further arguments of all functions.
    mass : array (n, n), scipy.sparse matrix or callable, optional
        M, which may be singular: see :class:`MassMatrixDAE`; a function is called as ``mass(t)`` or
        ``mass(t, y, *args)``.
    rtol, atol : float or array (n,)
        Tolerances, by default those of :func:`daedal.solve`, a thousandth of SciPy's.
    jac : callable or matrix, optional
        ``jac(t, y, *args) -> df/dy``, or a constant. Computed if not given, exactly if `fun` can be traced.
    jac_sparsity : scipy.sparse matrix, optional
        Structure of df/dy.
    lband, uband : int, optional
        Bandwidths of df/dy; a given `jac` must then return the band, ``band[i - j + uband, j] = jac[i, j]``.
    **options
        first_step, max_step, and all options of :func:`daedal.solve`.

    Returns
    -------
    IVPResult
        A failed run raises no exception: ``result.success`` is False, as in SciPy.

    Examples
    --------
    >>> import daedal
    >>> def hit(t, y):
    ...     return y[0]
    >>> hit.terminal, hit.direction = True, -1
    >>> result = daedal.solve_ivp(lambda t, y: [y[1], -9.81], (0.0, 100.0), [0.0, 10.0], events=hit)
    >>> print(f"{result.t_events[0][0]:.4f} {result.status}")
    2.0387 1
    """
    start = _start(y0)
    if args is not None and not isinstance(args, (tuple, list)):
        raise InvalidProblemError(
            f"args must be a tuple of additional arguments, got {args!r}; for a single one: args=(value,)"
        )
    params = None if args is None else tuple(args)
    check_callable(fun, "fun")
    band = None if lband is None and uband is None else (lband or 0, uband or 0)
    problem = stated_once(_problem, fun, start.size, params, vectorized, mass, jac, jac_sparsity, band)
    span = check_real(t_span, "t_span", "be a pair (t0, tf) of numbers")
    if span.shape == (2,) and span[0] == span[1]:
        return _at_one_time(problem, float(span[0]), start, t_eval, events, dense_output)
    given = None if events is None else [_event(event, params) for event in named_events(events)]
    max_step = options.pop("max_step", None)
    options.pop("min_step", None)
    try:
        with about_y0(start.size):
            solution = solve(
                problem,
                t_span,
                (start, None),
                method=_method(method),
                rtol=_reachable(rtol),
                atol=atol,
                t_eval=t_eval,
                events=given or None,
                dense_output=dense_output,
                max_step=None if max_step is None or np.isinf(max_step) else max_step,
                **options,
            )
    except IntegrationError as error:
        if error.solution is None:
            raise
        solution = error.solution
    return _result(solution, None if given is None else len(given), dense_output)


def _problem(fun, n: int, params, vectorized, mass, jac, sparsity, band) -> ODE | MassMatrixDAE:
    structure = {"sparsity": sparsity, "params": params, "jacobian": _slopes(jac, params)}
    if band is not None:
        structure["bandwidth"] = band
    f = _right_hand_side(fun, params, vectorized)
    if n == 1 and not hasattr(fun, "py_func"):
        f = _as_vector(f, params)
    return ODE(f, n, **structure) if mass is None else MassMatrixDAE(f, n, _mass(mass, params), **structure)


# --- arguments --------------------------------------------------------------------------------------------------------


def _start(y0) -> np.ndarray:
    if np.iscomplexobj(y0):
        raise InvalidProblemError("y0 is complex; stack real and imaginary parts in one real vector")
    start = check_real(y0, "y0", "hold real numbers")
    if start.ndim != 1 or not start.size:
        raise InvalidProblemError(f"y0 must be a vector, got shape {start.shape}")
    return start


def _method(method):
    """One of Daedal's methods."""
    if isinstance(method, type) and method.__name__ in METHODS and method.__module__.startswith("scipy."):
        method = method.__name__
    if isinstance(method, str):
        if method not in METHODS and method != "auto" and method_class(method) is None:
            raise InvalidProblemError(
                f"unknown method '{method}'; the names of daedal.solve and SciPy's are accepted: {', '.join(METHODS)}"
            )
        return METHODS.get(method, method)
    if not isinstance(method, Method):
        names = ", ".join(map(repr, ("auto", *METHODS)))
        raise InvalidProblemError(
            f"method must be one of {names}, one of SciPy's classes of these names, or a method of Daedal or its name, "
            f"got {method!r}"
        )
    return method


def _reachable(rtol):
    """Replace tolerances that are too small, with a warning, as SciPy does."""
    values = np.asarray(rtol)
    if values.dtype.kind not in "fiu" or not np.any((values >= 0.0) & (values < _SMALLEST_RTOL)):
        return rtol
    warn(f"rtol is too small; set to {_SMALLEST_RTOL:.3g}, as SciPy does")
    return np.maximum(values, _SMALLEST_RTOL)


def _right_hand_side(fun, params, vectorized: bool):
    """fun as f(t, y), or as f(t, y, p) with additional arguments in p."""
    if vectorized:
        if params is None:
            return lambda t, y: np.asarray(fun(t, y[:, None])).reshape(-1)
        return lambda t, y, p: np.asarray(fun(t, y[:, None], *p)).reshape(-1)
    return fun if params is None else lambda t, y, p: fun(t, y, *p)


def _as_vector(f, params):
    """Wrap a function of one unknown, which may return a scalar, as in SciPy."""
    if params is None:
        return lambda t, y: np.reshape(f(t, y), (1,))
    return lambda t, y, p: np.reshape(f(t, y, p), (1,))


def _slopes(jac, params):
    """df/dy as a function, or None."""
    if jac is None:
        return None
    if not callable(jac):
        matrix = jac if hasattr(jac, "tocsc") else check_real(jac, "jac", "be a function or a matrix")
        return (lambda t, y: matrix) if params is None else (lambda t, y, p: matrix)
    return jac if params is None else lambda t, y, p: jac(t, y, *p)


def _mass(mass, params):
    """The mass matrix; a function of time and state also receives the additional arguments."""
    if params is None or not callable(mass):
        return mass
    try:
        inspect.signature(mass).bind(0.0, None, *params)
    except (TypeError, ValueError):
        return mass
    return lambda t, y, p: mass(t, y, *p)


def _event(event: Event, params) -> Event:
    """An event as a function of (t, y)."""
    function = event.function
    return event if params is None else replace(event, function=lambda t, y: function(t, y, *params))


# --- the result -------------------------------------------------------------------------------------------------------


def _at_one_time(problem, t: float, y: np.ndarray, t_eval, events, dense_output: bool) -> IVPResult:
    """The result on an interval of length 0: the initial values twice, as in SciPy, or once for each time in t_eval."""
    times = np.array([t, t]) if t_eval is None else np.atleast_1d(check_real(t_eval, "t_eval", "be a vector"))
    if np.any(times != t):
        raise InvalidProblemError(f"t_eval must lie in t_span, which starts and ends at {t:g}")
    values = np.repeat(y[:, None], times.size, axis=1)
    names = tuple(problem.label(i) for i in range(y.size))
    dense = DenseOutput(t, np.array([t]), np.array([0]), np.array([0]), np.ones((1, 1)), y[None, :].copy())
    message = f"The end of the interval, t = {t:g}, was reached."
    solution = Solution(
        times, values, np.full_like(values, np.nan), True, Status(0), message, Statistics(), names, dense=dense
    )
    return _result(solution, None if events is None else len(named_events(events)), dense_output)


def _result(solution: Solution, n_events: int | None, dense_output: bool) -> IVPResult:
    t_events = y_events = None
    if n_events is not None:
        fired = [event for event in solution.events if event.kind == "event"]
        of_each = [[event for event in fired if event.index == i] for i in range(n_events)]
        t_events = [np.array([event.t for event in events]) for events in of_each]
        y_events = [np.array([event.y for event in events]) for events in of_each]
    stats = solution.stats
    return IVPResult(
        t=solution.t,
        y=solution.y,
        sol=DenseSolution(solution) if dense_output and solution.dense is not None else None,
        t_events=t_events,
        y_events=y_events,
        nfev=stats.residual_evaluations,
        njev=stats.jacobian_evaluations,
        nlu=stats.factorisations,
        status=max(int(solution.status), -1),
        message=solution.message,
        success=solution.success,
        solution=solution,
    )
