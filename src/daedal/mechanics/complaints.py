"""Identify the function of a mechanical system that cannot be evaluated, after a failure in compiled code."""

import numpy as np

from daedal.errors import Unevaluable
from daedal.mechanics.assembly import EVALUATED, Assembly, argument_sizes
from daedal.problems.compile import last_argument


def complaint(assembly: Assembly, t: float, state: np.ndarray, w=None, lam=None) -> str | None:
    """Description of the function that fails at a state (q, v, r); None if all can be evaluated.

    By default, the algebraic variables w and the multipliers are zero.
    """
    system, n = assembly.system, assembly.nx
    lam = np.zeros(system.n_lambda) if lam is None or np.size(lam) != system.n_lambda else np.asarray(lam)
    w = np.zeros(system.n_w) if w is None else np.asarray(w)
    extra = [values for values in (state[2 * n :], w, lam if system.force_uses_multipliers else lam[:0]) if values.size]
    for name in EVALUATED:
        function = getattr(system, name)
        if not callable(function):
            continue
        arrays = [state[:n], state[n : 2 * n], *extra][: len(argument_sizes(system, name))]
        try:
            result = function(float(t), *[array.copy() for array in arrays], *last_argument(function, system.params))
            values = np.asarray(getattr(result, "data", result) if hasattr(result, "tocsr") else result, dtype=float)
        except Unevaluable as error:
            return f"{name} raises Unevaluable: {error}".rstrip(": ")
        except Exception as error:  # only described here; the run re-raises the exception
            return f"{name} raises {type(error).__name__}: {error}".rstrip(": ")
        if not np.all(np.isfinite(values)):
            return f"{name} returns NaN or infinity"
    return None
