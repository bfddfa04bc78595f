"""Why the integration of a constrained system could not go on, in words."""

from __future__ import annotations

import numpy as np

from daedal.analysis.diagnosis import diagnose
from daedal.analysis.singular import SingularPoint, describe, smallest_singular_value, usual_norms

_NEARLY_SINGULAR = 1e-3
_OTHER_FORM = "use formulation='ggl' or 'auto', which reduce the index"
_MAX_STEPS, _ERROR_TEST, _UNEVALUABLE = -1, -6, -10


def explain(request, assembly, segments) -> str:
    """The message for a run that failed: the geometry first, then what the method says."""
    segment = segments[-1]
    failure = segment.outcome.failure
    state = segment.reduction.states(np.array([failure.t]), failure.y[:, None].copy())[0]
    if assembly.n_c:
        first = segments[0]
        begin = first.reduction.states(np.array([request.span[0]]), first.reduction.y0[:, None].copy())[0]
        norms = usual_norms(assembly, [(request.span[0], begin), (failure.t, state)])
        smallest, combination = smallest_singular_value(assembly, failure.t, state, norms)
        if smallest < _NEARLY_SINGULAR:
            return describe(assembly, SingularPoint(failure.t, state, smallest, combination))
    lines = [_in_words(request, assembly, segment, failure)]
    lines += _mass(assembly, failure.t, state)
    return "\n".join(lines)


def _in_words(request, assembly, segment, failure) -> str:
    if segment.method.name == "dassl":
        text = diagnose(segment.reduction.problem, failure)
        return text.replace("state a mechanism as daedal.MechanicalSystem, which reduces the index", _OTHER_FORM)
    done = (failure.t - request.span[0]) / (request.span[1] - request.span[0])
    what = {
        _MAX_STEPS: f"the limit of {request.max_steps} steps was reached",
        _ERROR_TEST: "the error estimate stayed above the tolerance, however short the step",
        _UNEVALUABLE: "the equations could not be evaluated at the next step, however short",
    }.get(failure.code, f"the method gave up (code {failure.code})")
    hint = {
        _MAX_STEPS: "raise max_steps, loosen rtol and atol, or use method='dassl' if the system is stiff",
        _ERROR_TEST: "look for a discontinuity or a blow-up near this time (then events), or use method='dassl'",
        _UNEVALUABLE: "look for square roots, logarithms or quotients that leave their domain near this time",
    }.get(failure.code, "try method='dassl'")
    return (
        f"Stopped at t = {failure.t:.6g}, step size {abs(failure.h):.3g}: {what}. The run covered {100.0 * done:.3g} % "
        f"of the interval with {type(segment.method).__name__} on {type(segment.formulation).__name__}. "
        f"Remedy: {hint}."
    )


def _mass(assembly, t: float, state: np.ndarray) -> list[str]:
    """A remark if the mass matrix does not determine the motions that the constraints leave free."""
    if assembly.linear:
        return []
    values = assembly.evaluate(t, state[: assembly.m * assembly.nx], state[assembly.m * assembly.nx :])
    if values is None:
        return []
    basis = np.linalg.qr(values["jacobian"].T, mode="complete")[0][:, assembly.n_c :]
    if basis.shape[1] == 0:
        return []
    eigenvalues, vectors = np.linalg.eigh(basis.T @ values["mass"] @ basis)
    if eigenvalues[0] > 1e-12 * max(abs(eigenvalues[-1]), 1e-300):
        return []
    direction = np.abs(basis @ vectors[:, 0])
    names = [assembly.state_names()[i] for i in np.argsort(-direction)[:3] if direction[i] > 0.3 * direction.max()]
    return [
        f"The mass matrix is singular on the motions that the constraints leave free, mainly in {', '.join(names)}: "
        "their accelerations are not determined there. Give these coordinates a mass, or make them algebraic."
    ]
