"""Joints that break at a load, which removes their constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from daedal.common.public_names import with_old_keywords
from daedal.errors import InvalidProblemError
from daedal.hybrid.hybrid_problem import HybridProblem, Transition
from daedal.kernels.functions import is_compiled
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_positive
from daedal.problems.compile import compiled_function

_MEASURES = ("reaction", "multiplier")


@with_old_keywords(system="problem")
def breaking_joint(
    problem: MechanicalSystem,
    rows: int | str | Sequence[int | str],
    limit: float,
    *,
    load: str | Callable[..., Any] = "reaction",
    name: str = "breaks",
) -> HybridProblem:
    r"""A mechanism with a joint that breaks when its load reaches a limit.

    In the mode "intact" all constraints hold, in "broken" those of the joint do not. Positions and velocities are
    continuous: the force is released without an impulse.

    Parameters
    ----------
    problem : MechanicalSystem
        System with the joint.
    rows : int, str, or sequence of them
        The constraints of the joint, by index (position constraints first) or name.
    limit : float
        The load at which the joint breaks.
    load : {"reaction", "multiplier"} or callable
        Load to compare with the limit: the norm of the generalised force :math:`G_J^T \lambda_J` of the joint, which is
        independent of the scaling of its constraints; the norm of its multipliers; or ``load(t, q, v, lam)``, for
        example a tension, which has a sign.
    name : str
        Name of the transition.

    Returns
    -------
    HybridProblem
        Its transition may fire immediately, if the load is too large at the start.

    Examples
    --------
    The rope of a pendulum with a strength of twice the weight breaks at cos(phi) = 2/3:

    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> problem = daedal.hybrid.breaking_joint(pendulum, 0, limit=2 * 9.81)
    >>> sol = daedal.solve(problem, (0.0, 1.0), ("intact", ([1.0, 0.0], [0.0, 0.0])), rtol=1e-8)
    >>> print(f"{-sol.events[0].y[1]:.6f}", sol.mode[-1])
    0.666667 broken
    """
    if not isinstance(problem, MechanicalSystem):
        raise InvalidProblemError(f"problem must be a MechanicalSystem, got {type(problem).__name__}")
    joint = _checked_rows(problem, rows)
    limit = check_positive(limit, "limit")
    guard = _guard(problem, joint, limit, load)
    hybrid = HybridProblem(
        {"intact": problem, "broken": released(problem, joint)},
        [Transition("intact", "broken", guard, direction=-1, name=name)],
        start="intact",
    )
    return hybrid.made_of(problem, lambda other: breaking_joint(other, rows, limit, load=load, name=name))


def _checked_rows(system: MechanicalSystem, rows) -> list[int]:
    given = list(rows) if isinstance(rows, (Sequence, np.ndarray)) and not isinstance(rows, str) else [rows]
    if not given:
        raise InvalidProblemError("rows is empty; name the constraints of the joint")
    found = []
    for row in given:
        if isinstance(row, str) and row in (system.constraint_names or ()):
            row = list(system.constraint_names or ()).index(row)
        if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not 0 <= row < system.n_lambda:
            known = ", ".join(map(repr, system.constraint_names)) if system.constraint_names else "no names are given"
            raise InvalidProblemError(
                f"rows: {row!r} is not a constraint; the system has {system.n_lambda}, numbered from 0 ({known})"
            )
        found.append(int(row))
    if len(set(found)) < len(found):
        raise InvalidProblemError(f"rows: a constraint is given twice, {rows!r}")
    return found


def _guard(system: MechanicalSystem, joint: list[int], limit: float, load) -> Callable:
    """A guard function of (t, q, v, lam), positive while the joint holds."""
    if callable(load):
        return lambda t, q, v, lam: limit - load(t, q, v, lam)
    if load not in _MEASURES:
        raise InvalidProblemError(f"load must be a function or one of {', '.join(_MEASURES)}, got {load!r}")
    if load == "multiplier":
        return lambda t, q, v, lam: limit - np.linalg.norm(lam[joint])

    def guard(t, q, v, lam):
        values = SystemWorkspace(system, t, q).evaluate(t, np.concatenate([q, v]))
        return limit - (np.inf if values is None else np.linalg.norm(lam[joint] @ values["jacobian"][joint]))

    return guard


def released(system: MechanicalSystem, rows: Sequence[int]) -> MechanicalSystem:
    """The system without some of its constraints."""
    if system.force_uses_multipliers:
        raise InvalidProblemError(
            "problem: its force uses multipliers by index, which changes when a joint breaks. Remedy: define the "
            "broken system as a mode of a HybridProblem"
        )
    count, names = system.n_constraints, system.constraint_names
    kept = [i for i in range(system.n_lambda) if i not in rows]
    position, velocity = [i for i in kept if i < count], [i - count for i in kept if i >= count]
    changes: dict = {
        "n_constraints": len(position),
        "n_velocity_constraints": len(velocity),
        "constraint_names": [names[i] for i in kept] if names and kept else None,
    }
    groups = (
        (position, ("constraint", "constraint_jacobian", "constraint_t", "acceleration_bias")),
        (velocity, ("velocity_constraint", "velocity_jacobian", "velocity_bias")),
    )
    for chosen, functions in groups:
        changes |= {name: _selected(getattr(system, name), chosen) for name in functions}
    return system.replaced(**changes)


def _selected(function, rows: list[int]):
    """The function, reduced to some entries or rows of its result."""
    if function is None or not rows:
        return None
    chosen = np.array(rows)
    if is_compiled(function):
        return compiled_function(lambda *arguments: function(*arguments)[chosen])

    def selected(*arguments):
        value = function(*arguments)
        return value[chosen] if hasattr(value, "tocsr") else np.asarray(value)[chosen]

    return selected
