"""The public solve functions: check the arguments, then call the driver."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Unpack, overload

from daedal.driver.options import DAEOptions, RunOptions, takes
from daedal.driver.request import check_span, checked_options, checked_request
from daedal.driver.solver import complete_or_raise, described, solve_pieces, solve_request, with_jumps
from daedal.errors import InvalidProblemError
from daedal.problems import HessenbergDAE, ImplicitDAE, MechanicalSystem, SecondOrderDAE
from daedal.problems.checks import check_real
from daedal.problems.compile import with_other_params
from daedal.problems.named_inputs import require_inputs
from daedal.problems.problem_sources import Problem, ProblemSource, is_source, problem_and_start
from daedal.solution.solution import Solution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from daedal.hybrid.hybrid_problem import HybridProblem
    from daedal.hybrid.hybrid_solution import HybridSolution
    from daedal.solution.constrained_solution import HessenbergSolution
    from daedal.solution.mechanical_solution import MechanicalSolution
    from daedal.solution.solution import SecondOrderSolution


@overload
def solve(
    problem: MechanicalSystem | ProblemSource[MechanicalSystem | HybridProblem],
    t_span: ArrayLike,
    initial: Any,
    **options: Unpack[RunOptions],
) -> MechanicalSolution: ...
@overload
def solve(problem: HybridProblem, t_span: ArrayLike, initial: Any, **options: Unpack[RunOptions]) -> HybridSolution: ...
@overload
def solve(
    problem: SecondOrderDAE, t_span: ArrayLike, initial: Any, **options: Unpack[RunOptions]
) -> SecondOrderSolution: ...
@overload
def solve(
    problem: HessenbergDAE, t_span: ArrayLike, initial: Any, **options: Unpack[RunOptions]
) -> HessenbergSolution: ...
@overload
def solve(
    problem: Problem | ProblemSource[Problem], t_span: ArrayLike, initial: Any, **options: Unpack[RunOptions]
) -> Solution: ...
@takes(RunOptions)
def solve(problem: Any, t_span: Any, initial: Any, **options: Unpack[RunOptions]) -> Any:
    r"""Solve an initial value problem for a differential-algebraic equation.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, MechanicalSystem, ODE, ...
        The problem (:doc:`/guide/problems`), a :class:`daedal.multibody.Model` or a circuit.
    t_span : (float, float)
        Start and end; backward integration is allowed.
    initial : tuple, mapping or None
        (y0, yp0), or (y0, z0) for a semi-explicit problem, (q0, v0) for a mechanism, (x0, xp0) for a second-order one,
        (mode, initial values) for a hybrid one. The second entry is computed if it is None or omitted. Or values by
        name, ``{"x": 1.0, "x'": 0.0}``: :doc:`/guide/initial-values`.

    {options}

    Returns
    -------
    Solution
        A :class:`MechanicalSolution` for a mechanism, a :class:`HybridSolution` for a hybrid problem.

    Raises
    ------
    InvalidProblemError, InconsistentInitialError
        Invalid input, or initial values that violate the equations; the message names them.
    IntegrationError
        The run failed; ``.solution`` contains the partial results, as it does in the KeyboardInterrupt after Ctrl-C.

    Examples
    --------
    >>> import daedal
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[1], y[0] - y[1]], 2)
    >>> sol = daedal.solve(problem, (0.0, 2.0), ([1.0, 1.0], None), t_eval=[0.0, 0.5, 1.0, 1.5, 2.0], rtol=1e-8)
    >>> print(sol.y[0].round(5))
    [1.      0.60653 0.36788 0.22313 0.13534]
    """
    settings, run = checked_options(options)
    params, inputs, breakpoints = run["params"], run["inputs"], run["breakpoints"]
    if is_source(problem):
        source, (t0, t1) = problem, check_span(t_span)
        problem, initial = problem_and_start(source, initial, t0, params, inputs, run["hold"])
        breakpoints = source.as_breakpoints(t0, t1, params) if breakpoints is None else breakpoints
    stated = None
    if params is not None:
        stated, problem = problem, with_other_params(problem, params)
    if inputs is not None:
        require_inputs(problem)
        stated, problem = stated or problem, problem.with_inputs(inputs, hold=run["hold"])
    breakpoints = with_jumps(breakpoints, problem)
    output = {name: run[name] for name in ("t_eval", "t_stop", "progress")}
    request = checked_request(problem, settings, t_span, initial, **output)
    if run["sampled"] is not None:
        from daedal.hybrid.sampled_run import solve_sampled

        return complete_or_raise(
            described(lambda request: solve_sampled(request, run["sampled"], breakpoints), request)
        )
    return solve_request(request, stated) if breakpoints is None else solve_pieces(request, breakpoints, stated)


@takes(DAEOptions)
def solve_dae(
    F: Callable[..., Any],
    t_span: ArrayLike,
    y0: ArrayLike,
    yp0: ArrayLike | None = None,
    *,
    params: Any = None,
    jacobian: Callable[..., Any] | None = None,
    names: Sequence[str] | None = None,
    algebraic: Any = None,
    **options: Unpack[DAEOptions],
) -> Solution:
    """Solve F(t, y, y') = 0, a shortcut for :class:`ImplicitDAE` and :func:`solve`.

    Parameters
    ----------
    F : callable
        ``F(t, y, yp) -> array (n,)``, or ``F(t, y, yp, p)`` with `params`.
    t_span : (float, float)
    y0, yp0 : array (n,)
        Initial values; `yp0` is computed if not given.
    params, jacobian, names, algebraic
        See :class:`ImplicitDAE`.
    **options
        See :func:`solve`.

    Examples
    --------
    >>> import daedal
    >>> def circle(t, y, yp):
    ...     return [yp[0] - y[1], y[0] ** 2 + y[1] ** 2 - 1.0]
    >>> sol = daedal.solve_dae(circle, (0.0, 1.0), [0.0, 1.0])
    >>> print(f"{sol.y[0, -1]:.4f}")
    0.8415
    """
    if y0 is None:
        raise InvalidProblemError("y0 is missing")
    start = check_real(y0, "y0", "hold real numbers")
    problem = stated_once(_implicit, F, start.size, params, jacobian, names, algebraic)
    with about_y0(start.size):
        return solve(problem, t_span, (start, yp0), **options)


def _implicit(F, n, params, jacobian, names, algebraic) -> ImplicitDAE:
    return ImplicitDAE(F, n, params=params, jacobian=jacobian, names=names, algebraic=algebraic)


_MOST_STATED = 32
_VALUES = (int, float, str, bool, type(None))
_stated: OrderedDict[tuple, tuple[Any, Any]] = OrderedDict()
_guard = Lock()


def stated_once(make: Callable[..., Any], *given: Any) -> Any:
    """The problem ``make(*given)``; calls with identical arguments return the same object, with its machine code.

    Calls with mutable arguments, such as arrays or lists, create a new problem.
    """
    key = (make, *map(_identity, given))
    if None in key:
        return make(*given)
    with _guard:
        found = _stated.pop(key, None)
    problem = make(*given) if found is None else found[1]
    with _guard:
        _stated[key] = given, problem  # stores the arguments too, since their ids must remain unique
        while len(_stated) > _MOST_STATED:
            _stated.popitem(last=False)
    return problem


def _identity(value: Any) -> tuple | None:
    """Key that identifies an immutable value; None for a mutable one."""
    if callable(value):
        return "function", id(value)
    if type(value) in _VALUES:
        return type(value), value
    if type(value) is tuple:
        entries = tuple(map(_identity, value))
        return None if None in entries else entries
    return None


@contextmanager
def about_y0(n: int):
    """Context in which errors about the number of equations mention that the length of y0 determines the number."""
    try:
        yield
    except InvalidProblemError as error:
        if "returned an array of shape (" not in str(error) or not str(error).endswith(f"expected ({n},)"):
            raise
        raise InvalidProblemError(f"{error}, since y0 has {n} {'entry' if n == 1 else 'entries'}") from None
