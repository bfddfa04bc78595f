"""Recommend a formulation and a method for a constrained system from measurements along a short trial run."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.analysis.thresholds import STIFF, TURNING
from daedal.analysis.wording import counted
from daedal.common.public_names import with_old_keywords
from daedal.common.tabular import Tabular, plural
from daedal.errors import IntegrationError, InvalidProblemError
from daedal.mechanics.formulations import ProjectedInvariants
from daedal.problems import HessenbergDAE, MechanicalSystem
from daedal.problems.checks import check_positive
from daedal.problems.description import titled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_COARSE = 1e-4  # smallest rtol of the trial
_MOST_STEPS = 2000
_MOST_WORK = 100_000  # maximum of the number of steps times the number of unknowns in the trial
_SAMPLES = 40
_WORK = 4000  # maximum of the number of samples times the number of unknowns
_START_UP = 10  # number of initial steps to ignore, in which a multistep method has not reached its order

_CASES = {
    1: "nothing is stiff, the constraints rotate slowly",
    2: "nothing is stiff, the constraints rotate rapidly",
    3: "the forces are stiff",
    4: "the constraint forces rotate rapidly relative to the constraints",
    "singular": "the constraints are or become dependent",
}


@dataclass(frozen=True)
class Advice:
    """The result of :func:`daedal.advise`; ``print`` explains it.

    Attributes
    ----------
    formulation, method : object or str
        Recommended arguments of :func:`daedal.solve`; ``"auto"`` and ``"phem56"`` if an explicit method is suitable
        for a mechanism whose functions cannot be traced.
    case : int or str
        1 to 4 or ``"singular"``; see :class:`daedal.analysis.decision.Verdict`.
    reasons, forbidden : tuple of str
        Reasons for the recommendation, and choices to avoid.
    measures : list of daedal.analysis.measures.Measures
        Measurements at the sampled points.
    h : numpy.ndarray
        The step size that accuracy alone would allow at each sample.
    verdict : daedal.analysis.decision.Verdict
        The decision with its numbers.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem(
    ...     1.0, lambda t, q, v: [0.0, -9.81], lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1.0], n_q=2, n_constraints=1
    ... )
    >>> advice = daedal.advise(pendulum, (0.0, 1.0), ([1.0, 0.0], [0.0, 0.0]))
    >>> print(advice.case, advice.formulation, advice.method, advice.forbidden)
    1 CoordinateProjection(weight='M', levels=None) DOPRI5(norm='rms', stop_when_stiff=False) ()
    """

    formulation: Any
    method: Any
    case: int | str
    reasons: tuple[str, ...]
    forbidden: tuple[str, ...]
    measures: list[Any] = field(repr=False)
    h: np.ndarray = field(repr=False)
    verdict: Any = field(repr=False)
    about: str = field(default="", repr=False)
    trial: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.about}\n{Tabular('ll', self._rows(), indent=2, width=110)}"

    def _repr_html_(self) -> str:
        return titled(self.about, Tabular("ll", self._rows()))

    def _rows(self) -> list[tuple[str, str]]:
        verdict = self.verdict
        kap1 = max((one.kap1 for one in self.measures), default=np.nan)
        masses = max((one.condM for one in self.measures), default=np.nan)
        rows = [("trial", self.trial)]
        if self.case != "singular":
            decay, vibration, limit = _number(verdict.s), _number(verdict.vibration), f"(limit {STIFF:g})"
            rows += [
                ("forces", f"in a step h, fast motions decay or grow by {decay} and vibrate by {vibration} {limit}"),
                ("turning", f"constraint forces rotate relative to the constraints by {_number(verdict.v)} {limit}"),
                ("rotation", f"the constraints themselves rotate by {_number(verdict.w)} rad (limit {TURNING:g})"),
            ]
        mass = "" if np.isnan(masses) else f", of the mass matrix {masses:.2g} (for information)"
        rows.append(("condition", f"of the constraints {kap1:.2g}{mass}"))
        rows.append(("in short", _CASES[self.case]))
        rows.append(("because", "; ".join(self.reasons)))
        if self.case == "singular":
            rows.append(("do", "check the mechanism there, remove redundant constraints, or stop before that time"))
        else:
            rows.append(("use", f"formulation={call(self.formulation)}, method={call(self.method)}"))
        if self.forbidden:
            rows.append(("avoid", ", ".join(self.forbidden)))
        return rows


@with_old_keywords(system="problem")
def advise(
    problem: MechanicalSystem | HessenbergDAE,
    t_span: ArrayLike,
    initial: Any,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-9,
) -> Advice:
    r"""Recommend a formulation and a method for a constrained system, with reasons.

    A coarse trial run measures the quantities that decide: the stiffness of the frozen part of the equations
    (:math:`\sigma_F`), how fast the constraints rotate (rot), and how fast the directions of the constraint forces
    rotate relative to them (:math:`V_B`), each compared with the step size that accuracy alone would allow.

    Parameters
    ----------
    problem : MechanicalSystem or HessenbergDAE
    t_span, initial
        As for :func:`daedal.solve`.
    rtol, atol : float
        The tolerances of the planned run.

    Returns
    -------
    Advice

    Notes
    -----
    The step size that accuracy alone would allow is taken from the trial, which uses projected invariants along C^T
    with backward differentiation, the only form whose step is never limited by stability. The trial runs with tolerance
    1e-4 and at most 2000 steps, fewer for large systems. A step of order k is scaled to the requested tolerance by the
    ratio of the tolerances to the power 1/(k+1). The first steps, in which a multistep method finds its order, are
    omitted.

    References
    ----------
    U. M. Ascher, L. R. Petzold: Stability of computational methods for constrained dynamics systems, SIAM J. Sci.
    Comput. 14 (1993).

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.stability_example3(nu=1000.0, kappa=1.0)
    >>> advice = daedal.advise(model.problem, model.t_span, model.initial)
    >>> advice.case, advice.formulation, advice.method.name
    (4, ProjectedInvariants(k=None, projection='CT'), 'dassl')
    >>> sol = daedal.solve(
    ...     model.problem, model.t_span, model.initial, formulation=advice.formulation, method=advice.method
    ... )
    >>> print(f"{sol.q[0, -1]:.4f}")
    2.7183
    """
    from daedal.analysis.decision import decision
    from daedal.analysis.measures import measure
    from daedal.driver.request import check_span
    from daedal.mechanics.sparse.sparse_workspace import is_sparse

    if not isinstance(problem, (MechanicalSystem, HessenbergDAE)):
        raise InvalidProblemError(
            "advise needs a MechanicalSystem or a HessenbergDAE, which have several formulations; a "
            f"problem of type {type(problem).__name__} is solved as given"
        )
    rtol, atol = check_positive(rtol, "rtol"), check_positive(atol, "atol")
    if is_sparse(problem, check_span(t_span)[0], initial):
        raise InvalidProblemError(
            "advise uses dense matrices, but those of this system are sparse. Remedy: use formulation='ggl' and "
            "method='dassl', the automatic choice for sparse systems"
        )
    sol, ended, stumbled = _trial(problem, t_span, initial, rtol, atol)
    steps = _accuracy_steps(sol, rtol)
    points = [(float(sol.t[i]), sol.y[:, i], float(steps[i])) for i in _sample_points(sol.t, problem.n)]
    if ended:
        points.append(_last_point(sol, float(steps[-1])))
    elif stumbled is not None and stumbled.dense is not None:
        points.append(_last_point(stumbled, float(steps[-1])))
    samples, h = [], []
    with sol.assembled() as assembly:
        for t, state, step in points:
            found = measure(assembly, t, state)
            if found is not None:
                samples.append(found)
                h.append(step)
        half_explicit = isinstance(problem, MechanicalSystem) and problem.n_lambda and not assembly.has_straight_line
    verdict = decision(samples, np.array(h))
    formulation, method = verdict.formulation, verdict.method
    # PHEM56 suits the same problems as other explicit methods, with fewer function calls
    if verdict.explicit and half_explicit:
        formulation, method = "auto", "phem56"
    return Advice(
        formulation=formulation,
        method=method,
        case=verdict.case,
        reasons=verdict.reasons,
        forbidden=verdict.forbidden,
        measures=samples,
        h=np.array(h),
        verdict=verdict,
        about=_about(problem, t_span, rtol),
        trial=_trial_in_words(sol, ended, samples, h),
    )


def _trial(system, t_span, initial, rtol: float, atol: float):
    """A coarse solution, why it ended early ("" if it did not), and the partial solution of an earlier failed trial."""
    from daedal.driver.solving import solve

    coarse, most = max(rtol, _COARSE), int(np.clip(_MOST_WORK // system.n, 100, _MOST_STEPS))
    options: dict[str, Any] = {"rtol": coarse, "atol": atol * coarse / rtol, "max_steps": most, "dense_output": True}
    partial: Any = None
    choices: tuple[dict[str, Any], ...] = ({"formulation": ProjectedInvariants(projection="CT"), "method": "dassl"}, {})
    for choice in choices:
        try:
            return solve(system, t_span, initial, **choice, **options), "", partial
        except IntegrationError as error:
            if partial is None or _length(error.solution) > _length(partial):
                partial = error.solution
            if partial.stats.steps >= most:
                break
            if choice == {} and (partial.t.size < 2 or partial.history is None or partial.dense is None):
                raise
    reason = "the limit on its steps" if partial.stats.steps >= most else "a failure"
    return partial, f", where {reason} ended it", None


def _length(sol) -> float:
    return float(abs(sol.t[-1] - sol.t[0])) if sol.t.size else 0.0


def _sample_points(t: np.ndarray, n: int) -> np.ndarray:
    """Indices of points distributed over the steps and over time; fewer for large systems."""
    half = int(np.clip(_WORK // n, 6, _SAMPLES)) // 2
    by_step = np.linspace(0, t.size - 1, min(t.size, half)).round().astype(int)
    by_time = np.searchsorted(np.abs(t - t[0]), np.linspace(0.0, abs(t[-1] - t[0]), half))
    return np.unique(np.clip(np.concatenate([by_step, by_time]), 0, t.size - 1))


def _last_point(sol, h: float) -> tuple[float, np.ndarray, float]:
    """Time and state at which a failed run ended, possibly beyond its last step, where its cause shows, and `h`."""
    low, high = sol.dense.interval
    end = high if sol.t[-1] >= sol.t[0] else low
    return end, sol.dense.evaluate(np.array([end]))[0][0], h


def _accuracy_steps(sol, rtol: float) -> np.ndarray:
    h, order = np.abs(sol.history.h), sol.history.order
    scaled = h * (rtol / max(rtol, _COARSE)) ** (1.0 / (order + 1.0))
    settled = _START_UP if scaled.size > 2 * _START_UP else scaled.size - 1
    scaled[:settled] = scaled[settled]
    nearby = np.max(np.lib.stride_tricks.sliding_window_view(np.pad(scaled, 3, mode="edge"), 7), axis=1)
    after_step = np.searchsorted(np.abs(sol.history.t - sol.t[0]), np.abs(sol.t - sol.t[0]))
    return nearby[np.clip(after_step, 0, scaled.size - 1)]


def _about(system, t_span, rtol: float) -> str:
    t0, t1 = (float(t) for t in t_span)
    if isinstance(system, HessenbergDAE):
        what, constraints = f"a Hessenberg DAE of order {system.order} with {plural(system.n_x, 'unknown')}", system.n_y
    else:
        what, constraints = f"a mechanical system with {counted(system.n_q, 'coordinate')}", system.n_lambda
    return f"Advice for {what}, {counted(constraints, 'constraint')}, from t = {t0:g} to {t1:g} with rtol = {rtol:g}"


def _trial_in_words(sol, ended: str, samples, h) -> str:
    steps = f"{np.median(h):.2g}" if len(h) else "unknown size"
    return (
        f"{sol.stats.steps} coarse steps to t = {sol.t[-1]:.4g}{ended}, measured at {len(samples)} of them; "
        f"accuracy alone allows steps h of about {steps}"
    )


def _number(value: float) -> str:
    return f"{value:.2g}" if value >= 5e-4 else "0"


def call(value: Any) -> str:
    """Source form of a formulation or method: its name with the options that differ from the defaults."""
    if isinstance(value, str):
        return repr(value)
    changed = [
        f"{f.name}={getattr(value, f.name)!r}" for f in fields(value) if not _same(getattr(value, f.name), f.default)
    ]
    return f"{type(value).__name__}({', '.join(changed)})"


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(np.all(value == default))
