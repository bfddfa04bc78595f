"""Comparison of formulations and methods: run every pair on one problem and tabulate error, drift and cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.analysis.advice import call
from daedal.common.public_names import with_old_keywords
from daedal.common.tabular import Tabular
from daedal.errors import InconsistentInitialError, IntegrationError, InvalidProblemError
from daedal.mechanics.formulations import ProjectedInvariants, named_formulation
from daedal.problems import HessenbergDAE, MechanicalSystem
from daedal.problems.checks import check_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


__all__ = ["ComparedRun", "Comparison", "compare"]


@dataclass(frozen=True)
class ComparedRun:
    """One run of a comparison.

    Attributes
    ----------
    formulation, method : str
    rtol : float or None
        None for constant steps.
    error_q, error_v, error_lam : float
        Largest error over the compared times, relative to the largest value of the reference; nan if unknown.
    drift_position, drift_velocity : float
        Largest residuals of the constraints and their derivatives in the integrated values, before the output is
        projected.
    steps, rejected, evaluations : int
    seconds : float
    status : str
        ``"finished"``, ``"failed"`` or ``"impossible"``.
    message : str
        The message of the run.
    t, error : tuple of float
        Times, and the largest relative error of q and v at each of them.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum()
    >>> found = daedal.compare(model.problem, (0.0, 0.5), model.initial, formulations=["ggl"], methods=["dassl"])
    >>> row = found.rows[0]
    >>> print(row.formulation, row.method, row.status, row.error_q < 1e-3)
    ggl dassl finished True
    """

    formulation: str
    method: str
    rtol: float | None
    error_q: float = math.nan
    error_v: float = math.nan
    error_lam: float = math.nan
    drift_position: float = math.nan
    drift_velocity: float = math.nan
    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    seconds: float = math.nan
    status: str = "finished"
    message: str = ""
    t: tuple[float, ...] = field(default=(), repr=False)
    error: tuple[float, ...] = field(default=(), repr=False)

    @property
    def success(self) -> bool:
        """Whether the run reached the end."""
        return self.status == "finished"


@dataclass(frozen=True)
class Comparison:
    """The result of :func:`daedal.compare`: `rows`, one :class:`ComparedRun` each; ``print`` shows a table.

    Attributes
    ----------
    rows : tuple of ComparedRun
    reference : str
        Name of the reference for the errors.
    title : str
        Title of the comparison.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum()
    >>> found = daedal.compare(model.problem, (0.0, 0.5), model.initial, formulations=["ggl"], methods=["dassl"])
    >>> print(len(found.rows), found.rows[0].success)
    1 True
    """

    rows: tuple[ComparedRun, ...]
    reference: str
    title: str = "Comparison"

    def __str__(self) -> str:
        return "\n".join([self.title, str(self._table()), *self._remarks()])

    def _repr_html_(self) -> str:
        from markupsafe import Markup

        remarks = Markup("").join(Markup("<p>{}</p>").format(text) for text in self._remarks())
        return str(Markup("<div><p>{}</p>{}{}</div>").format(self.title, self._table(), remarks))

    def _remarks(self) -> list[str]:
        """Lines below the table: the reference, and each reason for failed or impossible runs once."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if not row.success:
                reasons.setdefault((row.status, row.message), []).append(f"{row.formulation} + {row.method}")
        return [
            f"Errors are relative to {self.reference}.",
            *(
                f"{status.capitalize()}: {', '.join(dict.fromkeys(who))}. {why}"
                for (status, why), who in reasons.items()
            ),
        ]

    def _table(self) -> Tabular:
        several = len({row.rtol for row in self.rows}) > 1
        header = ["formulation", "method", *(["rtol"] if several else [])]
        header += ["error q", "error v", "error lam", "drift g", "drift g'", "steps", "rejected", "calls", "ms"]
        lines = []
        for row in self.rows:
            first = [row.formulation, row.method]
            if row.status == "impossible":
                lines.append([*first, row.status, *[""] * (len(header) - 3)])
                continue
            first += [f"{row.rtol:g}"] if several else []
            errors = (row.error_q, row.error_v, row.error_lam, row.drift_position, row.drift_velocity)
            numbers = [_short(value) for value in errors]
            if not row.success:
                numbers[0] = row.status
            counts = [str(row.steps), str(row.rejected), str(row.evaluations)]
            lines.append([*first, *numbers, *counts, "" if math.isnan(row.seconds) else f"{1e3 * row.seconds:.3g}"])
        return Tabular("ll" + "r" * (len(header) - 2), lines, header)

    def to_json(self, path: str | Path | None = None) -> str:
        """The comparison as JSON text, written to `path` if given; unknown numbers are null."""
        import json

        data = {
            "title": self.title,
            "reference": self.reference,
            "rows": [{name: _plain(value) for name, value in asdict(row).items()} for row in self.rows],
        }
        text = json.dumps(data, indent=1, allow_nan=False)
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def plot(self, **options: Any) -> Any:
        """Plot errors, costs and drift; see :func:`daedal.viz.plot_comparison`."""
        from daedal.viz import plot_comparison

        return plot_comparison(self, **options)


def _short(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1e}"


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# --- running every pair on one problem --------------------------------------------------------------------------------

FORMULATIONS = ("projection", "baumgarte", "index1", "ggl", "projected_invariants", "index2", "index3")
METHODS = ("dopri5", "dassl")
DIRECT = ("phem56", "modified_bdf", "collocation")  # methods that accept a mechanism directly
_FINER = 1e-3  # tolerance of the reference, relative to the smallest tolerance in the comparison
_FINEST = 1e-13
_REFERENCE_STEPS = 300_000
_POINTS = 101
_SHORT = 0.2  # runs that take less than this number of seconds are repeated
_REPETITIONS = 2


@with_old_keywords(system="problem")
def compare(
    problem: MechanicalSystem | HessenbergDAE,
    t_span: ArrayLike,
    initial: Any,
    *,
    formulations: Sequence[Any] = FORMULATIONS,
    methods: Sequence[Any] = METHODS,
    rtol: float | Sequence[float] = 1e-6,
    atol: float | None = None,
    fixed_step: float | None = None,
    reference: Any = None,
    t_eval: ArrayLike | None = None,
    max_steps: int = 100_000,
    title: str = "",
) -> Comparison:
    r"""Solve one constrained system with many formulations and methods and compare errors, drift and cost.

    Parameters
    ----------
    problem : MechanicalSystem or HessenbergDAE
    t_span, initial
        As for :func:`daedal.solve`.
    formulations, methods : sequence
        Names or instances, e.g. ``["ggl", Baumgarte(gamma=10.0)]`` and ``["dopri5", DASSL(max_order=2)]``. All pairs
        are run; invalid pairs and failed runs are marked in their rows. If both arguments are omitted, methods that
        accept a mechanism directly are also run: PHEM56, modified BDF and collocation.
    rtol : float or sequence of float
        Tolerances; several of them give a work-precision diagram.
    atol : float, optional
        rtol/1000 by default.
    fixed_step : float, optional
        Size of constant steps, which are used instead of error control.
    reference : callable, Solution or Reference, optional
        The exact solution: a function of t that returns (q, v) or (q, v, lam) as one vector, a solution, or the
        `reference` of a model of the library, which holds the values at one time. By default, a run with a tolerance
        1000 times smaller.
    t_eval : array, optional
        Times at which errors are measured; 101 by default, or the ends of the steps if these are constant.
    max_steps : int
        Stop a run after this many steps.
    title : str
        Title of the table.

    Returns
    -------
    Comparison

    Notes
    -----
    Times exclude compilation, which is done first; runs shorter than 0.2 s are repeated three times and the shortest
    time counts. The default reference is the automatic choice of formulation and method, checked by a run with
    projected invariants and DASSL; the table states their difference.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.planar_pendulum()
    >>> found = daedal.compare(
    ...     model.problem, (0.0, 2.0), model.initial, formulations=["projection", "ggl"], reference=model.extra["exact"]
    ... )
    >>> for row in found.rows:
    ...     print(row.formulation, row.method, row.status)
    projection dopri5 finished
    projection dassl finished
    ggl dopri5 impossible
    ggl dassl finished
    >>> all(row.error_q < 1e-4 for row in found.rows if row.success)
    True
    """
    from daedal.driver.request import check_span
    from daedal.methods.named_methods import named_method

    if not isinstance(problem, (MechanicalSystem, HessenbergDAE)):
        raise InvalidProblemError(
            "compare needs a MechanicalSystem or a HessenbergDAE, which have several formulations; a "
            f"problem of type {type(problem).__name__} is solved as given"
        )
    tolerances = sorted((check_positive(value, "rtol") for value in np.atleast_1d(rtol).tolist()), reverse=True)
    forms = [(_label(form), form if _is_auto(form) else named_formulation(form)) for form in _listed(formulations)]
    kinds = [(_label(kind), kind if _is_auto(kind) else named_method(kind, {})) for kind in _listed(methods)]
    span = check_span(t_span)
    times = _times(span, t_eval, fixed_step)
    if atol is not None:
        atol = check_positive(atol, "atol")
    exact, source, times = _reference(problem, span, initial, reference, times, tolerances[-1], atol)
    levels: list[dict[str, Any]] = [{"rtol": value, "atol": _absolute(value, atol)} for value in tolerances]
    if fixed_step is not None:
        levels = [{"fixed_step": fixed_step}]
    pairs = [(form, kind) for form in forms for kind in kinds]
    if formulations is FORMULATIONS and methods is METHODS and isinstance(problem, MechanicalSystem):
        pairs += [(("auto", "auto"), (name, named_method(name, {}))) for name in DIRECT]
    rows = []
    for (form_label, form), (kind_label, kind) in pairs:
        choice = {"formulation": form, "method": kind, "max_steps": max_steps}
        _warm_up(problem, span, initial, choice, levels[0])
        for level in levels:
            row = ComparedRun(form_label, kind_label, level.get("rtol"))
            rows.append(_run(problem, span, initial, choice | level, times, exact, row))
            if rows[-1].status == "impossible":
                break
    listed = ", ".join(f"{rtol:g}" for rtol in tolerances)
    run_settings = f"rtol = {listed}" if fixed_step is None else f"constant steps of {fixed_step:g}"
    return Comparison(tuple(rows), source, f"{title or 'Comparison'}, {run_settings}")


# --- the runs ---


def _run(system, span, initial, options, times, exact, row: ComparedRun) -> ComparedRun:
    """Solve with one formulation and method, and complete the row of the table."""
    from daedal.driver.run_segments import LARGEST_WITH_DENSE_OUTPUT
    from daedal.driver.solving import solve

    dense = system.n <= LARGEST_WITH_DENSE_OUTPUT
    options = options | ({"dense_output": True} if dense else {"t_eval": times, "dense_output": False})
    try:
        sol = solve(system, span, initial, **options)
        if sol.stats.seconds < _SHORT:
            runs = [sol, *(solve(system, span, initial, **options) for _ in range(_REPETITIONS))]
            sol = min(runs, key=lambda run: run.stats.seconds)
    except InconsistentInitialError:
        raise
    except IntegrationError as error:
        return _counted(system, error.solution, replace(row, status="failed", message=_first(str(error))))
    except InvalidProblemError as error:
        return replace(row, status="impossible", message=_first(str(error)))
    except Exception as error:  # outside their domain, user functions can raise any exception
        return replace(row, status="failed", message=_first(f"{type(error).__name__}: {error}"))
    row = _counted(system, sol, replace(row, message=sol.message))
    values = _values(sol, times, system)
    largest, over_time = [], np.zeros(times.size)
    for i, (found, right) in enumerate(zip(values, exact, strict=True)):
        if right is None or right.size == 0:
            largest.append(math.nan)
            continue
        known = np.isfinite(right)
        scale = float(np.max(np.abs(right), initial=0.0, where=known)) or 1.0
        errors = np.max(np.abs(found - right), axis=0, initial=0.0, where=known) / scale
        largest.append(float(np.max(errors, initial=0.0)) if np.all(np.isfinite(errors)) else math.inf)
        if i < 2:
            over_time = np.maximum(over_time, errors)
    return replace(
        row,
        error_q=largest[0],
        error_v=largest[1],
        error_lam=largest[2],
        t=tuple(times.tolist()),
        error=tuple(over_time.tolist()),
    )


def _counted(system, sol, row: ComparedRun) -> ComparedRun:
    stats, position, velocity = sol.stats, *_drift(system, sol)
    return replace(
        row,
        drift_position=float(position),
        drift_velocity=float(velocity),
        steps=int(stats.steps),
        rejected=int(stats.rejected),
        evaluations=int(stats.residual_evaluations),
        seconds=float(stats.seconds),
    )


def _drift(system, sol) -> tuple[float, float]:
    """Residuals of the constraints and their derivatives, before the output was projected."""
    drift = sol.drift or {}
    position, velocity = (
        drift.get(f"{level} before projection", drift.get(level, math.nan)) for level in ("position", "velocity")
    )
    if isinstance(system, HessenbergDAE) and system.order == 1:
        return np.fmax(position, velocity), math.nan  # a problem of order 1 has constraints at one level only
    return position, velocity


def _warm_up(system, span, initial, choice, level):
    """Compile or load the code for the run, so that only the integration is timed."""
    from daedal.driver.solving import solve

    end = span[0] + 1e-3 * (span[1] - span[0])
    if "fixed_step" in level:
        end = span[0] + math.copysign(level["fixed_step"], span[1] - span[0])
    try:
        solve(system, (span[0], end), initial, **(choice | {"max_steps": 20}), **level, dense_output=True)
    except Exception:  # the run itself reports the error
        return


# --- the reference ---


def _reference(system, span, initial, reference, times, rtol, atol):
    """(q, v, lam) of the reference, its description, and the times of comparison."""
    if reference is None:
        values, source = _refined(system, span, initial, times, rtol, atol)
        return values, source, times
    if hasattr(reference, "t") and hasattr(reference, "y") and np.ndim(reference.t) == 0:
        times = np.array([float(reference.t)])
        if not min(span) <= times[0] <= max(span):
            raise InvalidProblemError(f"the reference is given at t = {times[0]:g}, outside t_span {span}")
        return (
            _split(np.asarray(reference.y, dtype=float)[:, None], system),
            f"the reference at t = {times[0]:g}",
            times,
        )
    if callable(reference) and not hasattr(reference, "stats"):
        values = np.array([np.asarray(reference(float(t)), dtype=float) for t in times]).T
        return _split(values, system), "the known solution", times
    if hasattr(reference, "stats"):
        return _values(reference, times, system), "the known solution", times
    raise InvalidProblemError("reference must be a function of t, a solution, or a point with t and y")


def _refined(system, span, initial, times, rtol, atol):
    """Values and description of a run with a much smaller tolerance, checked by a second run."""
    fine = max(rtol * _FINER, _FINEST)
    options = {"rtol": fine, "atol": _absolute(fine, atol and atol * _FINER), "max_steps": _REFERENCE_STEPS}
    found = _tried(system, span, initial, times, options)
    check = _tried(system, span, initial, times, options | {"formulation": ProjectedInvariants(), "method": "dassl"})
    if isinstance(found, InvalidProblemError) or (isinstance(found, Exception) and isinstance(check, Exception)):
        raise InvalidProblemError(f"no reference could be computed: {found}. Remedy: pass reference=...") from found
    words = f"with rtol = {fine:.1g}"
    if isinstance(found, Exception):
        return check, f"projected invariants with DASSL {words}"
    words = f"the automatic choice {words}"
    if not isinstance(check, Exception):
        apart = max(
            float(np.max(np.abs(a - b), initial=0.0)) / (float(np.max(np.abs(a), initial=0.0)) or 1.0)
            for a, b in zip(found[:2], check[:2], strict=True)
        )
        words += f" (projected invariants with DASSL differ by {apart:.1e})"
    return found, words


def _tried(system, span, initial, times, options):
    """q, v and lam of a run at `times`, or the exception that ended the run."""
    from daedal.driver.solving import solve

    try:
        return _values(solve(system, span, initial, t_eval=times, dense_output=False, **options), times, system)
    except InconsistentInitialError:
        raise
    except (IntegrationError, InvalidProblemError, ArithmeticError) as error:
        return error


def _values(sol, times, system) -> list[np.ndarray]:
    """q, v and lam at `times`; for a HessenbergDAE, the first block of z, all other blocks, and the multipliers."""
    if isinstance(system, HessenbergDAE):
        y, lam = (sol(times), sol.multipliers(times)) if sol.dense is not None else (sol.y, sol.lam)
        return [y[: system.n_x], y[system.n_x :], lam]
    state = sol(times) if sol.dense is not None else sol
    return [state.q, state.v, state.lam]


def _split(values: np.ndarray, system) -> list[np.ndarray | None]:
    """Split a vector (q, v) or (q, v, lam) at every time."""
    if isinstance(system, HessenbergDAE):
        first, state, multipliers = system.n_x, system.n, system.n_y
    else:
        first, state, multipliers = system.n_q, 2 * system.n_q, system.n_lambda
    rows = values.shape[0]
    if rows not in (first, state, state + multipliers, system.n):
        raise InvalidProblemError(f"the reference has {rows} values; expected (q, v) or (q, v, lam)")
    parts: list[np.ndarray | None] = [values[:first], values[first:state] if rows >= state else None]
    parts.append(values[state : state + multipliers] if rows == state + multipliers and multipliers else None)
    return parts


# --- helpers ---


def _absolute(rtol: float, atol: float | None) -> float:
    return 1e-3 * rtol if atol is None else atol


def _times(span, t_eval, fixed_step) -> np.ndarray:
    if t_eval is not None:
        return np.asarray(t_eval, dtype=float).reshape(-1)
    count = _POINTS
    if fixed_step is not None:
        steps = max(round(abs(span[1] - span[0]) / check_positive(fixed_step, "fixed_step")), 1)
        stride = max(1, -(-steps // 1000))
        ends = np.append(np.arange(0, steps, stride), steps)
        return span[0] + (span[1] - span[0]) * ends / steps
    return np.linspace(span[0], span[1], count)


def _listed(choices) -> list[Any]:
    if isinstance(choices, (str, bytes)) or not isinstance(choices, (list, tuple, set, dict, np.ndarray)):
        return [choices]
    if len(choices) == 0:
        raise InvalidProblemError("formulations and methods must not be empty")
    return list(choices)


def _is_auto(choice) -> bool:
    return isinstance(choice, str) and choice == "auto"


def _label(choice) -> str:
    if isinstance(choice, str):
        return choice.lower()
    return call(choice()) if isinstance(choice, type) else call(choice)


def _first(message: str) -> str:
    line = message.strip().splitlines()[0] if message.strip() else ""
    end = line.find(". ")
    return line if end < 0 else line[: end + 1]


def __dir__() -> list[str]:
    return __all__
