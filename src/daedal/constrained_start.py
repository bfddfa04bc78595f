"""Where a run of a constrained system begins: the assembled system with consistent values."""

from __future__ import annotations

import numpy as np

from daedal.mechanics.assembly import Assembly, check_point, constraint_probe, same_at
from daedal.mechanics.hessenberg import prepare_hessenberg
from daedal.methods import named_method
from daedal.problems import HessenbergDAE
from daedal.problems.checks import check_vector
from daedal.request import Request


def prepare(request: Request):
    """The assembled system, its consistent start, and what there is to say about it."""
    if isinstance(request.problem, HessenbergDAE):
        return prepare_hessenberg(request.problem, request.span[0], request.initial)
    return prepare_mechanical(request)


def prepare_sparse(request: Request, formulation, method):
    """The same for a system with sparse matrices, and the formulation and method for it."""
    from daedal.formulations.sparse_forms import SparseChoice, checked_choice
    from daedal.formulations.sparse_start import sparse_start
    from daedal.initial.mechanical import split_mechanical

    automatic = isinstance(method, str) and method == "auto"
    method = named_method("dassl", {}) if automatic else method
    checked_choice(formulation, method)
    q0, v0, *_ = split_mechanical(request.initial)
    assembly, start, notes = sparse_start(request.problem, request.span, q0, v0, correct=request.correct_initial)
    return assembly, start, notes, SparseChoice(assembly, start, request, formulation, method, automatic)


def prepare_mechanical(request: Request):
    """Consistent values of a mechanical system; redundant constraints are set aside."""
    from daedal.initial.given_derivatives import check_given
    from daedal.initial.mechanical import check_start, split_mechanical

    system, t0 = request.problem, request.span[0]
    q0, v0, r0, w0 = split_mechanical(request.initial)
    check_given(system, *check_point(system, t0, q0, v0), consistent=not request.correct_initial)
    ready = _ready_start(system, request.span, q0, v0, r0, w0)
    if ready is not None:
        check_given(system, *check_point(system, t0, q0, v0))
        return *ready, []
    atol = request.atol[: 2 * system.n_q]
    values = check_start(system, t0, q0, v0, r0=r0, w0=w0, correct=request.correct_initial, atol=atol)
    check_given(system, t0, values.q, values.v)
    autonomous = looks_autonomous(system, request.span, values.q, values.v)
    assembly = Assembly(system, t0, values.q, rows=values.rows, autonomous=autonomous)
    assembly.choose_weight(assembly.evaluate(t0, np.concatenate([values.q, values.v]), values.r))
    start = assembly.start(t0, np.concatenate([values.q, values.v, values.r]), np.concatenate([values.w, values.lam]))
    return assembly, start, list(values.notes)


def _ready_start(system, span, q0, v0, r0, w0):
    """Assembly and start if the given values are consistent to round-off and clearly regular, else None.

    Most starts are, and then the search for consistent values and redundant constraints can be spared.
    """
    if system.contact is not None or v0 is None or system.n_w or system.force_uses_multipliers:
        return None
    t, q, v = check_point(system, span[0], q0, v0)
    r = np.zeros(system.n_r) if r0 is None else check_vector(r0, system.n_r, "r0")
    if w0 is not None:
        check_vector(w0, system.n_w, "w0")
    assembly = Assembly(system, t, q, autonomous=looks_autonomous(system, span, q, v))
    z = np.concatenate([q, v])
    values = assembly.evaluate(t, z, r)
    if values is None:
        return None
    if system.n_lambda:
        jacobian, level = values["jacobian"], values["level"]
        norms = np.linalg.norm(jacobian, axis=1)
        limits = 1e-13 * norms * np.array([[np.max(np.abs(q))], [np.max(np.abs(v))]])
        if not (np.all(norms > 0.0) and np.all(np.abs(level) <= limits)):
            return None
        if np.min(np.abs(np.diag(np.linalg.qr(jacobian.T / norms, mode="r")))) < 1e-3:
            return None
    try:
        factor = np.linalg.cholesky(values["mass"])
    except np.linalg.LinAlgError:
        return None
    if np.min(np.diag(factor) ** 2 / np.diag(values["mass"])) < 1e-6:
        return None
    assembly.choose_weight(values)
    start = assembly.start(t, np.concatenate([z, r]))
    return (assembly, start) if np.all(np.isfinite(start.a)) else None


def _contains(wide: tuple[float, float], span: tuple[float, float]) -> bool:
    return min(wide) <= min(span) and max(span) <= max(wide)


def looks_autonomous(system, span, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether the constraints give the same at many times of the interval, so that they need not be differenced in t.

    What was integrated is checked for it again at the end of the run.
    """
    if system.n_lambda == 0 or (system.constraint_t is not None and system.velocity_constraint is None):
        return False
    known = system.__dict__.setdefault("_autonomous", {})
    if any(same and _contains(wide, span) for wide, same in known.items()):
        return True
    if span not in known:
        times = span[0] + (span[1] - span[0]) * np.linspace(0.0, 1.0, 24) ** 1.5
        if len(known) > 100:
            known.clear()
        known[span] = same_at(constraint_probe(system, q, v), times, q)
    return known[span]
