"""What the mechanical models have in common.

Their reference is the vector (q, v) at the end of the interval. ``model.extra`` holds, where they are known,

* ``lam``: the multipliers at the time of the reference, holonomic constraints first;
* ``exact(t)``: the closed solution, the vector (q, v) at time t, and ``exact_lam(t)``, its multipliers;
* ``energy(q, v)``: the total energy, which is constant; also for many states, shape ``(n_q, nt)``;
* ``configuration(s, s')``: the state (q, v) that belongs to minimal coordinates s and their rates.

The functions of the equations are written so that Numba compiles them as they are. Constraints accept complex
arguments too, to be differentiated by complex steps.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import daedal
from daedal.library.model import Model, Reference


def mechanical_model(
    problem,
    initial: tuple[Any, Any],
    t1: float,
    *,
    compiled: bool,
    known: Mapping[str, Any] | None = None,
    exact: Callable[[float], np.ndarray] | None = None,
    exact_lam: Callable[[float], np.ndarray] | None = None,
    extra: Mapping[str, Any] | None = None,
    **others: Any,
) -> Model:
    """A model on [0, t1] with the entries of ``extra`` that this module describes.

    Its reference is the entry `known` of ``solutions.toml``, or the closed solution `exact`.
    """
    reference, lam, entries = None, None, dict(extra or {})
    if known is not None:
        reference = Reference(t1, np.array(known["y"]), known["source"], known["accuracy"])
        lam = known.get("lam")
    if exact is not None:
        entries["exact"] = exact
        reference = Reference(t1, exact(t1), "closed solution", 1e-12)
    if exact_lam is not None:
        entries["exact_lam"] = exact_lam
        lam = exact_lam(t1)
    if lam is not None:
        entries["lam"] = np.array(lam, dtype=float)
    others.setdefault("options", {"rtol": 1e-8, "atol": 1e-8})
    others.setdefault("plot", {"variables": list(problem.names[: problem.n_q])})
    others.setdefault("index", 3 if problem.n_constraints else 2)
    return Model(
        problem=problem.compiled() if compiled else problem,
        t_span=(0.0, float(t1)),
        initial=(np.array(initial[0], dtype=float), np.array(initial[1], dtype=float)),
        reference=reference,
        extra=entries,
        **others,
    )


def check_angle(**parameters: float) -> None:
    """Refuse angles that are not between -pi and pi."""
    for name, value in parameters.items():
        if not abs(value) < math.pi:
            raise daedal.InvalidProblemError(f"{name}={value!r} must lie between -pi and pi")


def pendulum_angle(t: float, amplitude: float, frequency: float) -> tuple[float, float]:
    """Angle a and rate of a'' = -frequency^2 sin a, released from rest at a(0) = `amplitude`.

    With k = sin(amplitude/2) and u = frequency t, the solution is sin(a/2) = k cn(u)/dn(u) (Jacobi's elliptic functions
    of modulus k).
    """
    from scipy.special import ellipj

    k = math.sin(0.5 * amplitude)
    sn, cn, dn, _ = ellipj(frequency * t, k * k)
    angle = 2.0 * math.asin(k * cn / dn)
    rate = -2.0 * frequency * k * math.cos(0.5 * amplitude) * sn / dn
    return angle, rate
