"""The public functions that solve: the arguments are checked, and the driver does the rest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import contextmanager
from threading import Lock
from typing import Any

from daedal.driver.request import check_span, checked_request, checked_settings
from daedal.driver.solver import solve_pieces, solve_request, with_jumps
from daedal.errors import InvalidProblemError
from daedal.problems import ImplicitDAE
from daedal.problems.checks import check_real
from daedal.problems.compile import with_other_params
from daedal.problems.named_inputs import require_inputs
from daedal.problems.problem_sources import is_source
from daedal.solution.solution import Solution


def solve(
    problem,
    t_span,
    initial,
    *,
    method="auto",
    formulation="auto",
    rtol=1e-6,
    atol=1e-9,
    t_eval=None,
    events=None,
    progress=False,
    max_steps=None,
    first_step=None,
    max_step=None,
    t_stop=None,
    fixed_step=None,
    dense_output=None,
    correct_initial=False,
    compile="auto",
    switches="auto",
    breakpoints=None,
    params=None,
    inputs=None,
    hold="zero",
    sensitivities=None,
    initial_sensitivities=None,
    sensitivity_errors=True,
    sensitivity_method="auto",
    **method_options,
) -> Solution:
    r"""Solve an initial value problem for a differential-algebraic equation.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, MechanicalSystem, ODE, ...
        What is to be solved; also a MassMatrixDAE, LinearDAE, SecondOrderDAE, HessenbergDAE or HybridProblem; a
        :class:`daedal.multibody.Model` or :class:`daedal.circuits.Circuit` as it is.
    t_span : (float, float)
        Start and end; the end may lie before the start.
    initial : tuple
        (y0, yp0), or (y0, z0) for a semi-explicit problem, (q0, v0) for a mechanism, with r0, w0 and a guess lam0 of
        the multipliers after them where its forces depend on them. The second may be None, or y0 given alone: it is
        then computed (velocities are zero, as far as the constraints allow). For a Hessenberg problem z0, or (z0, y0);
        for one of second order (x0, xp0); for a hybrid one (mode, initial values of the mode).
        Or a mapping from names or symbols of variables to values, such as ``{"x": 1.0, "x'": 0.0}``: velocities and
        algebraic variables may be left out, and so may variables that follow from the others. For a model of bodies a
        start of it, or values of joints by name, ``{"hinge": 0.5, "hinge'": 1.0}``; for a circuit voltages and currents
        by name, ``{"C1": 5.0}``; None is their own start, assembled or at rest.
    method : str or method object
        "auto", "dassl", "radau", "rosenbrock", "extrapolation", or an instance such as ``DASSL(max_order=2)`` or
        ``ImplicitRungeKutta("gauss3")``. For mechanisms also the half-explicit "phem56", "hedop5", "hem5", "hem4" and
        "hem3", which solve semi-explicit problems of index 2 as well, "mexx", and for an ODE and formulations that are
        ordinary differential equations the explicit "dopri5", "dop853" and "rk4"; "rattle" and "shake" for long
        conservative runs.
        "modified_bdf" and "collocation" solve problems of second order and mechanisms without going to first order.
        ``Multistep`` and ``OneLeg`` take constant steps with any coefficients. The automatic choice
        for first-order problems is between Radau, DASSL and Rosenbrock methods, by structure, size and tolerance, and
        it changes to another one during the run where that suits better (``sol.method``, ``sol.message``). An ODE
        begins with DOPRI5 or DOP853, and goes on with one of these where it is stiff. It is modified BDF
        for second-order problems; for mechanisms it begins with DOPRI5 and projection (PHEM56 where functions cannot
        be traced) and hands over to DASSL where that is stiff.
    formulation : str or formulation object
        How the problem is rewritten before it is discretised. Mechanisms and Hessenberg problems: "auto", "ggl",
        "projection", "baumgarte", ..., or an instance such as ``Baumgarte(gamma=5.0)``. Linear problems:
        :class:`StabilisedReduction`. Implicit and semi-explicit problems of index 3 and more, and second-order ones of
        index 4 and more, are reduced to index 1 by "auto"; "dummy_derivatives" and the other ways of
        :func:`daedal.reduce_index` do so for any of them, and "none" leaves them as they are.
    rtol, atol : float or array (n,)
        The local error of component i is kept below rtol[i] \|y_i\| + atol[i], in the root-mean-square sense; for a
        mechanism y is (q, v, r), and the automatic choice takes the maximum.
    t_eval : array, optional
        Output times. Every step is stored if it is not given.
    events : Event, callable or list of them, optional
        Switching functions to be located; see :class:`Event`.
    progress : bool
        Show a progress bar with the model time.
    max_steps : int, optional
        Give up after so many steps. By default a run takes as many as it needs and stops where 100 000 steps advance by
        less than a thousandth of the interval.
    first_step, max_step : float, optional
        First and largest step size.
    t_stop : float, optional
        The equations are never evaluated beyond this time; the end of `t_span` by default. Infinity lets the last step
        go past the end and interpolates.
    fixed_step : float, optional
        Constant step size, constant order `max_order`, no error control.
    dense_output : bool, optional
        Keep what ``sol(t)`` needs. By default kept for up to 1000 unknowns.
    correct_initial : bool
        Move inconsistent initial values to consistent ones instead of refusing them. Differential variables move only
        where they violate constraints.
    compile : {"auto", "never", "always"}
        Whether functions become machine code with exact derivatives, by running them once on symbols: those that can,
        none (they are called as they are), or all, with the reason where that is impossible. ``sol.functions`` says how
        each was evaluated.
    switches : {"auto", "never"}
        Whether conditions, absolute values, tables and the like in functions that were traced are followed: a step ends
        where one of them switches, and the other branch begins anew. ``sol.events`` lists them.
    breakpoints : Table, array, or list of them, optional
        Times at which right-hand sides have kinks or jumps: the run ends a piece there and begins anew, without a step
        across. Functions must be continuous from the right. The result is a :class:`HybridSolution`.
    params : object, optional
        Parameters for this run in place of the problem's. Where these are a dictionary, a mapping of names or symbols
        replaces those that it names.
    inputs : mapping, optional
        What acts on a problem that was stated with inputs, by name: a number or a vector; a function of time; a
        :class:`Table`; a pair (times, values) of samples. Inputs that are not named have their default values. Times at
        which a table or samples jump, or have a kink, are break points.
    hold : {"zero", "first"}
        How samples are held between their times: each constant up to the next, or linear between them.
    sensitivities : True, name, index, or list of them, optional
        Parameters by which the solution is differentiated, by name or index, all of them with True; initial values are
        named like ``"x(0)"``. ``sol.sensitivity("k")`` then is their derivative in the layout of ``sol.y``.
    initial_sensitivities : mapping, optional
        Where initial values depend on a parameter: their derivatives {name: array (n,)}.
    sensitivity_errors : bool
        Whether errors of sensitivities are controlled as well.
    sensitivity_method : {"auto", "simultaneous", "staggered", "staggered direct"}
        How a step of DASSL or Radau finds sensitivities: together with the solution; after it, by iteration with the
        same matrix; or, in DASSL, by one solve with a matrix that is formed in every step.
    **method_options
        Options of the method when it is given by name, e.g. ``linear_solver="gmres"``.

    Returns
    -------
    Solution
        A :class:`MechanicalSolution` for a mechanism.

    Raises
    ------
    InvalidProblemError
        Wrong input; the message names the argument.
    InconsistentInitialError
        The initial values violate the equations; the message names them.
    IntegrationError
        The integration failed; the message says why, and ``.solution`` holds what was computed.
    KeyboardInterrupt
        Ctrl-C was pressed; ``.solution`` holds what was computed, or None.

    Examples
    --------
    >>> import numpy as np
    >>> import daedal
    >>> problem = daedal.ImplicitDAE(lambda t, y, yp: [yp[0] + y[1], y[0] - y[1]], 2)
    >>> sol = daedal.solve(problem, (0.0, 2.0), ([1.0, 1.0], None), t_eval=np.linspace(0.0, 2.0, 5), rtol=1e-8)
    >>> print(sol.y[0].round(5))
    [1.      0.60653 0.36788 0.22313 0.13534]
    """
    steps = (max_steps, first_step, max_step, fixed_step)
    kept = (dense_output, correct_initial, compile, switches)
    wanted = (sensitivities, initial_sensitivities, sensitivity_errors, sensitivity_method)
    settings = checked_settings(method, formulation, rtol, atol, events, *steps, *kept, *wanted, **method_options)
    if is_source(problem):
        source, (t0, t1) = problem, check_span(t_span)
        problem, initial = source.as_problem(initial), source.as_initial(initial, t0, params)
        breakpoints = source.as_breakpoints(t0, t1, params) if breakpoints is None else breakpoints
    stated = None
    if params is not None:
        stated, problem = problem, with_other_params(problem, params)
    if inputs is not None:
        require_inputs(problem)
        stated, problem = stated or problem, problem.with_inputs(inputs, hold=hold)
    breakpoints = with_jumps(breakpoints, problem)
    request = checked_request(problem, settings, t_span, initial, t_eval=t_eval, t_stop=t_stop, progress=progress)
    return solve_request(request, stated) if breakpoints is None else solve_pieces(request, breakpoints)


def solve_dae(
    F, t_span, y0, yp0=None, *, params=None, jacobian=None, names=None, algebraic=None, **options
) -> Solution:
    """Solve F(t, y, y') = 0: the short cut for :class:`ImplicitDAE` and :func:`solve`.

    Parameters
    ----------
    F : callable
        ``F(t, y, yp) -> array (n,)``, or ``F(t, y, yp, p)`` with `params`.
    t_span : (float, float)
    y0, yp0 : array (n,)
        Initial values; `yp0` is computed if it is not given.
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
    y0 = check_real(y0, "y0", "hold real numbers")
    problem = stated_once(_implicit, F, y0.size, params, jacobian, names, algebraic)
    with about_y0(y0.size):
        return solve(problem, t_span, (y0, yp0), **options)


def _implicit(F, n, params, jacobian, names, algebraic) -> ImplicitDAE:
    return ImplicitDAE(F, n, params=params, jacobian=jacobian, names=names, algebraic=algebraic)


_MOST_STATED = 32
_VALUES = (int, float, str, bool, type(None))
_stated: OrderedDict[tuple, tuple[Any, Any]] = OrderedDict()
_guard = Lock()


def stated_once(make: Callable[..., Any], *given: Any) -> Any:
    """The problem ``make(*given)``: the one of an earlier call where the functions and all else were the same.

    Its traces and machine code are then at hand. What can change between two calls, an array or a list, is stated anew.
    """
    key = (make, *map(_identity, given))
    if None in key:
        return make(*given)
    with _guard:
        found = _stated.pop(key, None)
    problem = make(*given) if found is None else found[1]
    with _guard:
        _stated[key] = given, problem  # what is given lives on, so that no other function gets its id
        while len(_stated) > _MOST_STATED:
            _stated.popitem(last=False)
    return problem


def _identity(value: Any) -> tuple | None:
    """What tells a value from others that do not change; None for what can change."""
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
    """Say that y0 tells the number of equations where a function returns another number of values."""
    try:
        yield
    except InvalidProblemError as error:
        if "returned an array of shape (" not in str(error) or not str(error).endswith(f"expected ({n},)"):
            raise
        raise InvalidProblemError(f"{error}, since y0 has {n} {'entry' if n == 1 else 'entries'}") from None
