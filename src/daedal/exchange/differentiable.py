r"""Runs as differentiable functions of numbers: values, products with the Jacobian and with its transpose.

.. math::

    \theta \mapsto Y = (y(t_1), \dots, y(t_k)), \qquad
    \dot Y = \frac{\partial Y}{\partial \theta} \dot\theta, \qquad
    \bar\theta = \frac{\partial Y}{\partial \theta}^T \bar Y ,

with initial values, parameters and inputs in :math:`\theta`. Values are computed by :func:`daedal.solve`, and Jacobians
by forward sensitivities; the last product is computed from the Jacobian or by adjoint equations. Other modules of this
package wrap these functions as operators of JAX, PyTorch and PyTensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np

import daedal
from daedal.common.messages import unknown_name
from daedal.ensembles.solve_many import available_cores
from daedal.errors import InconsistentInitialError, IntegrationError, InvalidProblemError, NotFiniteError
from daedal.exchange.run_arguments import ArgumentForm
from daedal.problems import ImplicitDAE, MechanicalSystem, SemiExplicitDAE
from daedal.problems.checks import check_real
from daedal.problems.problem_sources import is_source
from daedal.sensitivity.adjoint.gradient import AdjointRun

FORWARD, ADJOINT, AUTO = "forward", "adjoint", "auto"
_MOST_FORWARD = 24
"""Number of parameters up to which "auto" uses forward sensitivities; for this number they cost one backward run."""
_MOST_FORMS, _MOST_JACOBIANS = 32, 32
_SHORT = 1e-6  # length of a short run as a fraction of the interval, used to obtain the initial values
_FREE, _STEP = 1e-8, 1e-5
_FAILURES = (IntegrationError, InconsistentInitialError, NotFiniteError, ArithmeticError)


class DifferentiableSolve:
    """A problem as a function of initial values, parameters and inputs, for the operators of other packages.

    Parameters
    ----------
    problem : object
        A problem whose class supports sensitivities, a multibody model or a circuit.
    t_span : (float, float)
    t_eval : array, optional
        Output times. By default only the end of `t_span`, and results have no time axis.
    outputs : sequence of str, optional
        Names of the variables in results, in this order; by default all variables.
    hold : {"zero", "first"}
        Interpolation of inputs given as samples: constant or linear between the sample times.
    derivatives : {"auto", "forward", "adjoint"}
        How products with the transposed Jacobian are computed.
    failed : {"raise", "nan"}
        Whether a failed run raises an error or returns NaN.
    options : dict
        Options of :func:`daedal.prepare`.
    """

    def __init__(
        self,
        problem: Any,
        t_span: Any,
        t_eval: Any,
        outputs: Any,
        hold: str,
        derivatives: str,
        failed: str,
        options: Any,
    ):
        for name in ("sensitivities", "initial_sensitivities", "dense_output"):
            if name in options:
                raise InvalidProblemError(f"{name} cannot be given; omit it: derivatives follow from the arguments")
        for name, value, known in (
            ("derivatives", derivatives, (AUTO, FORWARD, ADJOINT)),
            ("failed", failed, ("raise", "nan")),
        ):
            if value not in known:
                raise InvalidProblemError(f"{name} must be {' or '.join(map(repr, known))}, got {value!r}")
        self.source = problem if is_source(problem) else None
        self.problem = problem.as_problem() if is_source(problem) else problem
        self.span = (float(t_span[0]), float(t_span[1]))
        self.at_end = t_eval is None
        times = np.array([self.span[1]]) if t_eval is None else check_real(t_eval, "t_eval", "hold real numbers")
        if times.ndim != 1 or not times.size:
            raise InvalidProblemError(f"t_eval must be a vector of times, got shape {times.shape}")
        self.times = times
        self.names = _variable_names(self.problem)
        self.rows = _rows(self.names, outputs)
        self.hold, self.derivatives, self.failed = hold, derivatives, failed
        self.options = {"correct_initial": True, **options}
        self._runs: dict[Any, DifferentiableRun] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one result."""
        return (len(self.rows),) if self.at_end else (len(self.rows), self.times.size)

    def bound(
        self, initial: Any, params: Any, inputs: Any, varies: Callable[[Any], bool] = lambda value: True
    ) -> tuple[DifferentiableRun, ArgumentForm]:
        """Return the run for arguments with this structure, and their numbers; arguments that do not vary are
        constants.
        """
        if self.source is not None and not isinstance(initial, (tuple, list)):
            initial = self.source.as_initial(initial, self.span[0], None)
        if initial is None:
            raise InvalidProblemError("initial is missing: give the initial values of the problem")
        form = ArgumentForm(self.problem, initial, params, inputs, varies)
        key = form.key
        run = self._runs.get(key)
        if run is None:
            if len(self._runs) >= _MOST_FORMS:
                self._runs.clear()
            run = self._runs[key] = DifferentiableRun(self, form)
        return run, form


class DifferentiableRun:
    """Solution as a function of numeric arguments with a given structure, for batches of shape (N, m).

    Parameters
    ----------
    given : DifferentiableSolve
    form : ArgumentForm
        Structure of the arguments; its numbers are not used.
    """

    def __init__(self, given: DifferentiableSolve, form: ArgumentForm):
        self.given, self.form = given, form
        self.shape = given.shape
        self.labels = form.labels
        self._named = [k for k, label in enumerate(self.labels) if label is not None]
        self._starts = [k for k in self._named if str(self.labels[k])[:-3] in given.names and form.is_start(k)]
        self._jacobians: dict[bytes, np.ndarray] = {}
        self._is_adjoint = given.derivatives == ADJOINT or (
            given.derivatives == AUTO
            and len(self._named) > _MOST_FORWARD
            and isinstance(given.problem, (ImplicitDAE, SemiExplicitDAE, MechanicalSystem))
            and given.options.get("events") is None
        )

    # --- products -----------------------------------------------------------------------------------------------------

    def values(self, theta: np.ndarray) -> np.ndarray:
        """Results, shape (N, *shape)."""
        unique, places = _distinct(theta)
        found = self._many(unique) if len(unique) > 1 else [self._one(row) for row in unique]
        return np.stack(found)[places]

    def pushed(self, theta: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Products of the Jacobians with changes of theta, shape (N, *shape)."""
        unique, places = _distinct(theta)
        jacobians = self._jacobians_of(unique)
        return np.stack([jacobians[k] @ row for k, row in zip(places, change, strict=True)])

    def pulled(self, theta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Products of the transposed Jacobians with weights of the results, shape (N, m)."""
        if self._is_adjoint:
            try:
                return np.stack(_mapped(lambda pair: self._adjoint(*pair), list(zip(theta, weights, strict=True))))
            except InvalidProblemError:
                if self.given.derivatives == ADJOINT:
                    raise
                self._is_adjoint = False  # problems with switches or of higher index use forward sensitivities
        unique, places = _distinct(theta)
        jacobians, axes = self._jacobians_of(unique), len(self.shape)
        return np.stack(
            [np.tensordot(row, jacobians[k], axes=(range(axes), range(axes))) for k, row in zip(places, weights)]
        )

    # --- runs ---------------------------------------------------------------------------------------------------------

    def _one(self, row: np.ndarray) -> np.ndarray:
        return self._guarded(lambda: self._rows_of(self._solution(row)), row, self.shape)

    def _solve(self, span: tuple[float, float], times: np.ndarray, row: np.ndarray, **further: Any) -> Any:
        given, arguments = self.given, self.form.arguments(row)
        if arguments["inputs"] is not None:
            arguments["hold"] = given.hold
        initial = arguments.pop("initial")
        return daedal.solve(given.problem, span, initial, t_eval=times, **arguments, **(given.options | further))

    def _solution(self, row: np.ndarray, **further: Any) -> Any:
        given = self.given
        times = given.times if given.times[-1] == given.span[1] else np.append(given.times, given.span[1])
        solution = self._solve(given.span, times, row, **further)
        if solution.t.size < given.times.size:
            raise IntegrationError(f"the run ended before t = {given.times[-1]:g}. {solution.message}", solution)
        return solution

    def _rows_of(self, solution: Any, values: np.ndarray | None = None) -> np.ndarray:
        """Select the requested variables and times."""
        values = solution.y if values is None else values
        names = list(solution.names)
        if tuple(names) != tuple(self.given.names):
            placed = np.full((len(self.given.names), values.shape[1]), np.nan)
            for name, row in zip(names, values):
                if name in self.given.names:
                    placed[self.given.names.index(name)] = row
            values = placed
        found = values[self.given.rows, : self.given.times.size]
        return np.array(found[:, 0] if self.given.at_end else found)

    def _many(self, rows: np.ndarray) -> list[np.ndarray]:
        given = self.given
        bad = ~np.isfinite(rows).all(axis=1)
        good = rows[~bad]
        if bad.any() or len(good) < 2:
            return [self._one(row) for row in rows] if not len(good) > 1 else self._mixed(rows, bad)
        members = [self.form.arguments(row) for row in rows]
        arguments = {name: [member[name] for member in members] for name in ("initial", "params", "inputs")}
        params: Any = arguments["params"] if self.form.has_params else None
        if params is not None and isinstance(params[0], np.ndarray):
            params = np.stack(params)
        inputs: Any = arguments["inputs"] if self.form.has_inputs else None
        found = daedal.solve_many(
            given.problem,
            given.span,
            arguments["initial"],
            params=params,
            inputs=inputs,
            hold=given.hold,
            t_eval=given.times,
            **given.options,
        )
        failed = set(found.failed.tolist())
        states = [None if k in failed else self._placed(found, k) for k in range(len(rows))]
        # repeating a failed member as a single run raises its exception
        return [self._one(row) if y is None or not np.isfinite(y).all() else y for row, y in zip(rows, states)]

    def _mixed(self, rows: np.ndarray, bad: np.ndarray) -> list[np.ndarray]:
        good = iter(self._many(rows[~bad]))
        return [self._one(row) if is_bad else next(good) for row, is_bad in zip(rows, bad)]

    def _placed(self, ensemble: Any, k: int) -> np.ndarray:
        y, names = ensemble.y[k], list(ensemble.layout.names)
        found = np.full((len(self.given.rows), self.given.times.size), np.nan)
        for place, row in enumerate(self.given.rows):
            if self.given.names[row] in names:
                found[place] = y[names.index(self.given.names[row])]
        return found[:, 0] if self.given.at_end else found

    def _guarded(self, run: Callable[[], np.ndarray], row: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return run(row); NaN if the run fails and `failed` is "nan"."""
        if self.given.failed == "raise":
            return run()
        if not np.isfinite(row).all():
            return np.full(shape, np.nan)
        try:
            return run()
        except _FAILURES:
            return np.full(shape, np.nan)

    # --- derivatives --------------------------------------------------------------------------------------------------

    def _jacobians_of(self, rows: np.ndarray) -> list[np.ndarray]:
        """Jacobians, (*shape, m) for each row; the most recent ones are cached, since several products are often
        requested."""
        known = {row.tobytes(): self._jacobians.get(row.tobytes()) for row in rows}
        missing = [row for row in rows if known[row.tobytes()] is None]
        found = dict(zip([row.tobytes() for row in missing], _mapped(self._jacobian, missing), strict=True))
        if len(self._jacobians) + len(found) > _MOST_JACOBIANS:
            self._jacobians.clear()
        self._jacobians |= dict(list(found.items())[:_MOST_JACOBIANS])
        every: dict[bytes, Any] = known | found
        return [every[row.tobytes()] for row in rows]

    def _jacobian(self, row: np.ndarray) -> np.ndarray:
        shape = (*self.shape, len(self.labels))

        def run() -> np.ndarray:
            jacobian = np.zeros(shape)
            if self._named:
                names = [self.labels[k] for k in self._named]
                solution = self._solution(row, sensitivities=names)
                for k, name in zip(self._named, names):
                    jacobian[..., k] = self._rows_of(solution, np.asarray(solution.sensitivity(name)))
                shift = self._shift(row)
                if shift is not None:
                    jacobian += jacobian[..., self._starts] @ shift
            return jacobian

        return self._guarded(run, row, shape)

    def _shift(self, row: np.ndarray) -> np.ndarray | None:
        """Difference between the derivatives of consistent initial values and those assumed by sensitivities, (s, m).

        Inconsistent values are corrected in a norm weighted by tolerances, sensitivities in another norm. None if the
        constraints do not restrict initial values.
        """
        if not self._starts or isinstance(self.given.problem, daedal.hybrid.HybridProblem):
            return None
        first, last = self.given.span
        short = (first, first + _SHORT * (last - first))
        names = [str(self.labels[k]) for k in self._named]
        variables = [self.given.names.index(str(self.labels[k])[:-3]) for k in self._starts]
        solution = self._solve(short, np.array(short), row, sensitivities=names)
        assumed = np.zeros((len(self.given.names), len(self.labels)))
        for k, name in zip(self._named, names):
            assumed[:, k] = np.asarray(solution.sensitivity(name))[:, 0]
        own = assumed[np.ix_(variables, self._starts)]
        if np.all(np.isclose(np.diag(own), 1.0, rtol=0.0, atol=_FREE) | ~own.any(axis=0)):
            return None
        found = np.zeros_like(assumed)
        for k in self._named:
            step = np.zeros(row.size)
            step[k] = _STEP * max(abs(row[k]), 1.0)
            ahead, behind = (self._solve(short, np.array(short), x).y[:, 0] for x in (row + step, row - step))
            found[:, k] = (ahead - behind) / (2.0 * step[k])
        return (found - assumed)[variables]

    def _adjoint(self, row: np.ndarray, weights: np.ndarray) -> np.ndarray:
        def run() -> np.ndarray:
            given, found = self.given, np.zeros(len(self.labels))
            if not self._named or not np.any(weights):
                return found
            arguments = self.form.arguments(row)
            settings = {"rtol": 1e-6, "atol": 1e-9, **given.options}
            params, inputs = arguments["params"], arguments["inputs"]
            adjoint = AdjointRun(given.problem, None, None, params, inputs, given.hold, settings)
            slopes = np.zeros((len(given.names), given.times.size))
            slopes[given.rows] = weights[:, None] if given.at_end else weights
            observed = {float(t): slope for t, slope in zip(given.times, slopes.T) if np.any(slope)}
            adjoint.integrate(given.span, arguments["initial"], observed=observed)
            names = [str(self.labels[k]) for k in self._named]
            found[self._named] = adjoint.picked(names)
            shift = self._shift(row)
            return found if shift is None else found + found[self._starts] @ shift

        return self._guarded(run, row, (len(self.labels),))


def _distinct(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows in order of occurrence, and the index of each row among them."""
    places: dict[bytes, int] = {}
    rows = np.ascontiguousarray(theta, dtype=float)
    found = np.array([places.setdefault(row.tobytes(), len(places)) for row in rows], dtype=np.int64)
    first = [int(np.flatnonzero(found == k)[0]) for k in range(len(places))]
    return rows[first], found


def _mapped(function: Callable, items: Sequence[Any]) -> list[Any]:
    """Apply a function to each item, on all cores."""
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(len(items), available_cores())) as pool:
        return list(pool.map(function, items))


def _variable_names(problem: Any) -> list[str]:
    modes = getattr(problem, "modes", None)
    if modes is None:
        return [problem.label(i) for i in range(problem.n)]
    inner = (modes[name].problem for name in problem.mode_names)
    return list(dict.fromkeys(mode.label(i) for mode in inner for i in range(mode.n)))


def _rows(names: Sequence[str], outputs: Any) -> list[int]:
    if outputs is None:
        return list(range(len(names)))
    wanted = [outputs] if isinstance(outputs, str) else list(outputs)
    for name in wanted:
        if name not in names:
            raise unknown_name(name, names, "variable", "outputs")
    if not wanted:
        raise InvalidProblemError("outputs is empty: name variables, or omit it")
    return [list(names).index(name) for name in wanted]


def required(package: str, extra: str) -> Any:
    """Import an optional package; if that fails, raise the error that names the extra to install."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"daedal.{extra} needs {package}, which is not installed or cannot be imported ({error}): "
            f"pip install daedal[{extra}]"
        ) from error
