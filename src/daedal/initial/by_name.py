"""Initial values by name or by symbol, completed to consistent values."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from daedal.errors import InconsistentInitialError, InvalidProblemError
from daedal.initial.consistent import consistent_initial
from daedal.initial.variable_kinds import algebraic_variables, detect_order
from daedal.problems import ImplicitDAE, MechanicalSystem, SecondOrderDAE, SemiExplicitDAE
from daedal.problems.checks import check_finite
from daedal.problems.symbols import symbol_name

_GUESSES = (0.0, 1.0, -1.0, 0.5)  # guesses for values not given, tried in turn
_MOVE = 1e-2  # perturbation of a guess; determined values do not change with it
_NOTICED = 1e-3  # change of a value, as a fraction of the perturbation, above which it counts as undetermined


def initial_by_name(problem: Any, t0: float, given: Mapping[Any, Any]) -> tuple:
    """Convert initial values by name to the form accepted by :func:`daedal.solve`.

    Parameters
    ----------
    problem : ImplicitDAE, SemiExplicitDAE, SecondOrderDAE or MechanicalSystem
    t0 : float
    given : mapping
        Values of variables, by name or by symbol. For mechanisms and second-order problems ``x'`` or ``x(t).diff(t)``
        are velocities; velocities not given are zero, as far as the constraints allow. For implicit problems such
        names are derivatives, which may be given instead of values. Other variables that are not given must follow from
        the given ones.

    Raises
    ------
    InvalidProblemError
        If a name is unknown, or variables are not determined.
    InconsistentInitialError
        If no values of the other variables are consistent with the given ones.

    Examples
    --------
    >>> import daedal
    >>> from daedal.initial.by_name import initial_by_name
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] - q[1] ** 3], n_q=2, n_constraints=1, names=["x", "y"]
    ... )
    >>> q, v = initial_by_name(pendulum, 0.0, {"y": 2.0, "y'": 1.0})
    >>> print(q.round(6), v.round(6))
    [8. 2.] [12.  1.]
    """
    if isinstance(problem, MechanicalSystem):
        return _of_mechanism(problem, t0, given)
    if isinstance(problem, SecondOrderDAE):
        return _of_second_order(problem, t0, given)
    if isinstance(problem, (ImplicitDAE, SemiExplicitDAE)):
        return _of_first_order(problem, t0, given)
    raise InvalidProblemError(f"initial values of a {type(problem).__name__} cannot be given by name; use vectors")


def _of_mechanism(system: MechanicalSystem, t0: float, given: Mapping[Any, Any]) -> tuple:
    n = system.n_q
    values, known = _values(given, [system.label(i) for i in range(system.n)])
    if not known[2 * n :].all():
        _refuse([system.label(i) for i in range(2 * n, system.n) if not known[i]], "they are not determined")
    further = (values[2 * n :],) if system.n_r else ()
    moving = known[n : 2 * n]
    if known[:n].all() and (moving.all() or not moving.any()):
        return values[:n], values[n : 2 * n] if moving.all() else None, *further

    def complete(start: np.ndarray) -> tuple:
        held = np.flatnonzero(known[: 2 * n])
        return consistent_initial(system, t0, (start[:n], start[n : 2 * n], *further), fixed=held).initial

    missing = np.flatnonzero(~known[:n])
    return _completed(complete, system.label, values, missing, missing)


def _of_second_order(problem: SecondOrderDAE, t0: float, given: Mapping[Any, Any]) -> tuple:
    n = problem.n
    labels = [problem.label(i) for i in range(n)]
    values, known = _values(given, labels + problem.velocity_names(np.arange(n)))
    if known.all():
        return values[:n], values[n:]
    order = detect_order(problem, t0, values[:n], values[n:]) if problem.order is None else problem.order

    def complete(start: np.ndarray) -> tuple:
        return consistent_initial(problem, t0, (start[:n], start[n:]), fixed=np.flatnonzero(known))

    missing = ~known[:n]
    return _completed(complete, problem.label, values, np.flatnonzero(missing), np.flatnonzero(missing & (order > 0)))


def _of_first_order(problem: ImplicitDAE | SemiExplicitDAE, t0: float, given: Mapping[Any, Any]) -> tuple:
    n, implicit = problem.n, not isinstance(problem, SemiExplicitDAE)
    names = [problem.label(i) for i in range(n)]
    values, known = _values(given, [*names, *(f"{name}'" for name in names)] if implicit else names)
    n_y = problem.n_y if isinstance(problem, SemiExplicitDAE) else n
    if known[:n].all() and not known[n:].any():
        return values[:n_y], values[n_y:n] if n_y < n else None
    differential = ~algebraic_variables(problem.implicit(), t0, values[:n], np.zeros(n))
    held = None if np.array_equal(known[:n], differential) and not known[n:].any() else known

    def complete(start: np.ndarray) -> tuple:
        second = start[n_y:] if held is not None and (known[n:].any() or not implicit) else None
        return consistent_initial(problem, t0, (start[:n_y], second), fixed=held)

    missing = ~known[:n]
    return _completed(complete, problem.label, values, np.flatnonzero(missing), np.flatnonzero(missing & differential))


def _values(given: Mapping[Any, Any], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Values of all variables, zero if not given, and a mask of the given ones."""
    values, known = np.zeros(len(names)), np.zeros(len(names), dtype=bool)
    for key, value in given.items():
        name = symbol_name(key)
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InvalidProblemError(f"initial has {name!r}, which is not a variable; {hint}known: {', '.join(names)}")
        k = names.index(name)
        if known[k]:
            raise InvalidProblemError(f"initial has {name!r} twice")
        values[k], known[k] = check_finite(value, f"initial[{name!r}]"), True
    return values, known


def _completed(
    complete: Callable[[np.ndarray], tuple],
    label: Callable[[int], str],
    values: np.ndarray,
    guessed: np.ndarray,
    determined: np.ndarray,
) -> tuple:
    """Consistent values from guesses of the entries `guessed`; raise if the entries `determined` depend on a guess."""
    found, reason = None, None
    for guess in _GUESSES if guessed.size else _GUESSES[:1]:
        start = values.copy()
        start[guessed] = guess * (1.0 + 0.1 * np.arange(guessed.size))
        try:
            found = complete(start)
            break
        except (InconsistentInitialError, InvalidProblemError) as error:  # may be undefined for this guess
            reason = error
    if found is None:
        names = ", ".join(label(int(i)) for i in guessed)
        what = (
            f"no values of {names} consistent with the given ones were found"
            if names
            else ("the given values are inconsistent")
        )
        raise InconsistentInitialError(f"{what} at the start: {reason}") from reason
    state = np.concatenate(found)
    moves = _MOVE * (np.max(np.abs(state)) or 1.0) * (1.0 + 0.3 * np.arange(determined.size))
    start = values.copy()
    start[guessed] = state[guessed]
    start[determined] += moves
    try:
        again = np.concatenate(complete(start)) if determined.size else state
    except (InconsistentInitialError, InvalidProblemError):
        return found  # there is no other solution nearby
    loose = np.abs(again - state)[determined] > _NOTICED * moves
    if loose.any():
        _refuse([label(int(i)) for i in determined[loose]], "the equations do not determine them")
    return found


def _refuse(names: list[str], reason: str):
    raise InvalidProblemError(f"initial has no values for {', '.join(names)}, and {reason}; specify them")
