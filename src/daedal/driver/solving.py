"""The public solve functions: check the arguments, then call the driver."""

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
        The problem; also a MassMatrixDAE, LinearDAE, SecondOrderDAE, HessenbergDAE or HybridProblem, or a
        :class:`daedal.multibody.Model` or :class:`daedal.circuits.Circuit`.
    t_span : (float, float)
        Start and end; backward integration is allowed.
    initial : tuple
        (y0, yp0), or (y0, z0) for a semi-explicit problem, (q0, v0) for a mechanism, with r0, w0 and a guess lam0 of
        the multipliers after them where its forces depend on them. The second may be None or omitted: it is then
        computed (velocities are zero, as far as the constraints allow). For a Hessenberg problem z0, or (z0, y0); for a
        second-order problem (x0, xp0); for a hybrid one (mode, initial values of the mode). Alternatively, a mapping
        from names or symbols of variables to values, such as ``{"x": 1.0, "x'": 0.0}``: velocities and algebraic
        variables may be omitted, as may variables that follow from the others. For a multibody model a start, or joint
        values by name, ``{"hinge": 0.5, "hinge'": 1.0}``; for a circuit voltages and currents by name, ``{"C1": 5.0}``;
        None uses their default start, assembled or at rest.
    method : str or method object
        "auto", "dassl", "radau", "rosenbrock", "extrapolation", or an instance such as ``DASSL(max_order=2)`` or
        ``ImplicitRungeKutta("gauss3")``. For mechanisms also the half-explicit "phem56", "hedop5", "hem5", "hem4" and
        "hem3", which solve semi-explicit problems of index 2 as well, "mexx", and for an ODE and formulations that are
        ordinary differential equations the explicit "dopri5", "dop853" and "rk4"; "rattle" and "shake" for long
        conservative runs. "modified_bdf" and "collocation" solve problems of second order and mechanisms without
        reduction to first order. ``Multistep`` and ``OneLeg`` take constant steps with any coefficients. The automatic
        choice for first-order problems is between Radau, DASSL and Rosenbrock methods, by structure, size and
        tolerance, and may change during the run (``sol.method``, ``sol.message``). An ODE starts with DOPRI5 or DOP853,
        and switches to one of these if it is stiff. It is modified BDF for second-order problems. For mechanisms it
        starts with DOPRI5 and projection (PHEM56 if functions cannot be traced) and switches to DASSL if the problem is
        stiff.
    formulation : str or formulation object
        How the problem is reformulated before it is discretised. Mechanisms and Hessenberg problems: "auto", "ggl",
        "projection", "baumgarte", ..., or an instance such as ``Baumgarte(gamma=5.0)``. Linear problems:
        :class:`StabilisedReduction`. Implicit and semi-explicit problems of index 3 and more, and second-order ones of
        index 4 and more, are reduced to index 1 by "auto"; "dummy_derivatives" and the other ways of
        :func:`daedal.reduce_index` apply to any of them, and "none" disables reduction.
    rtol, atol : float or array (n,)
        The local error of component i is kept below rtol[i] \|y_i\| + atol[i], in the root-mean-square sense; for a
        mechanism y is (q, v, r), and the automatic choice takes the maximum.
    t_eval : array, optional
        Output times. By default every step is stored.
    events : Event, callable or list of them, optional
        Switching functions to be located; see :class:`Event`.
    progress : bool
        Show a progress bar with the model time.
    max_steps : int, optional
        Maximum number of steps. By default unlimited, but a run stops if 100 000 steps advance by less than a
        thousandth of the interval.
    first_step, max_step : float, optional
        First and largest step size.
    t_stop : float, optional
        The equations are never evaluated beyond this time; the end of `t_span` by default. Infinity lets the last step
        overshoot the end and interpolates.
    fixed_step : float, optional
        Constant step size, constant order `max_order`, no error control.
    dense_output : bool, optional
        Keep the data for ``sol(t)``. By default kept for up to 1000 unknowns.
    correct_initial : bool
        Correct inconsistent initial values instead of rejecting them. Differential variables change only if they
        violate constraints.
    compile : {"auto", "never", "always"}
        Whether to compile functions to machine code with exact derivatives, by tracing them on symbols: "auto" those
        that can be traced, "never" none (they are called from Python), "always" all, with an error where that is
        impossible. ``sol.functions`` shows how each was evaluated.
    switches : {"auto", "never"}
        Whether to follow conditions, absolute values, tables and the like in traced functions: a step ends at each
        switch, and the integration restarts on the other branch. ``sol.events`` lists them.
    breakpoints : Table, array, or list of them, optional
        Times at which right-hand sides have kinks or jumps: the integration stops there and restarts, without a step
        across. Functions must be continuous from the right. The result is a :class:`HybridSolution`.
    params : object, optional
        Parameters for this run, replacing the problem's. If these are a dictionary, a mapping by names or symbols
        replaces the entries it names.
    inputs : mapping, optional
        What acts on a problem that was stated with inputs, by name: a number or a vector; a function of time; a
        :class:`Table`; a pair (times, values) of samples. Inputs that are not named have their default values. Times at
        which a table or samples jump, or have a kink, are break points.
    hold : {"zero", "first"}
        How samples are held between their times: each constant up to the next, or linear between them.
    sensitivities : True, name, index, or list of them, optional
        Parameters with respect to which the solution is differentiated, by name or index, or True for all; initial
        values are named like ``"x(0)"``. ``sol.sensitivity("k")`` then returns the derivative in the layout of
        ``sol.y``.
    initial_sensitivities : mapping, optional
        For initial values that depend on a parameter: their derivatives {name: array (n,)}.
    sensitivity_errors : bool
        Whether to control the errors of sensitivities too.
    sensitivity_method : {"auto", "simultaneous", "staggered", "staggered direct"}
        How a step of DASSL or Radau computes sensitivities: together with the solution; after it, iterating with the
        same matrix; or, in DASSL, by one solve with a matrix formed in every step.
    **method_options
        Options of a method given by name, e.g. ``linear_solver="gmres"``.

    Returns
    -------
    Solution
        A :class:`MechanicalSolution` for a mechanism.

    Raises
    ------
    InvalidProblemError
        Invalid input; the message names the argument.
    InconsistentInitialError
        The initial values violate the equations; the message names them.
    IntegrationError
        The integration failed; the message gives the cause, and ``.solution`` holds the partial results.
    KeyboardInterrupt
        Ctrl-C was pressed; ``.solution`` holds the partial results, or None.

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
    return solve_request(request, stated) if breakpoints is None else solve_pieces(request, breakpoints, stated)


def solve_dae(
    F, t_span, y0, yp0=None, *, params=None, jacobian=None, names=None, algebraic=None, **options
) -> Solution:
    """Solve F(t, y, y') = 0: a shortcut for :class:`ImplicitDAE` and :func:`solve`.

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
    """The problem ``make(*given)``, reused from an earlier call with identical arguments.

    Traces and machine code are then available. Calls with mutable arguments, such as arrays or lists, create a new
    problem.
    """
    key = (make, *map(_identity, given))
    if None in key:
        return make(*given)
    with _guard:
        found = _stated.pop(key, None)
    problem = make(*given) if found is None else found[1]
    with _guard:
        _stated[key] = given, problem  # keeps the arguments alive, so that their ids stay unique
        while len(_stated) > _MOST_STATED:
            _stated.popitem(last=False)
    return problem


def _identity(value: Any) -> tuple | None:
    """A key that identifies an immutable value; None for mutable ones."""
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
    """Explain in the error that y0 determines the number of equations."""
    try:
        yield
    except InvalidProblemError as error:
        if "returned an array of shape (" not in str(error) or not str(error).endswith(f"expected ({n},)"):
            raise
        raise InvalidProblemError(f"{error}, since y0 has {n} {'entry' if n == 1 else 'entries'}") from None
