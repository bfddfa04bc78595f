"""A constrained system rewritten by a formulation, ready for a method."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.kernels.functions import NativeFunction
from daedal.mechanics.formulations.formulation import MINIMAL_EXTENSION, ProjectedSteps, Shape, Sizes, index_options
from daedal.mechanics.setting import ConsistentStart
from daedal.mechanics.sparse.sparse_equations import SparseEquations
from daedal.problems import ImplicitDAE, MechanicalSystem

if TYPE_CHECKING:
    from daedal.mechanics.formulations.formulation import Formulation
    from daedal.mechanics.sparse.sparse_workspace import SparseWorkspace

_NEARLY_DEPENDENT = 1e-10  # independent fraction of a unit row below which the configuration counts as singular


class Reformulation:
    """The equations that a method integrates, and the mapping back to the variables of the system.

    It is created once for a formulation and an assembled system. It may :meth:`begin` from any number of starts in
    turn, with the same results as a new instance.

    Attributes
    ----------
    n, n_state : int
        Number of unknowns, and of the leading ones (z, r) that the error test includes; the others are multipliers.
    y0, yp0 : numpy.ndarray
        Start of the run.
    problem : ImplicitDAE or SecondOrderForm
        F = 0 for implicit methods; created on first use.
    rate : NativeFunction or None
        y' as a function of (t, y) if the formulation is an ordinary differential equation.
    names : tuple of str or None
        Names of the unknowns.
    options : dict
        DASSL options for the index of the formulation.
    hook : (Pointer, Record) or None
        Called after every accepted step.
    monitor : Record or None
        Monitor of the constraints, after :func:`attach_monitor`.
    inspection : Record or None
        Check of constraints against their derivatives, attached with the monitor.
    pack : callable or None
        ``pack(start) -> (y, y')``: unknowns for consistent values.
    recover : callable or None
        ``recover(times, y)``: (z, r) from unknowns that are not (z, r) themselves.
    multiplier_sizes : callable or None
        ``multiplier_sizes(start)``: sizes and units of the leading multipliers.
    tolerances : callable or None
        ``tolerances(rtol, atol)``: tolerances of all unknowns from those of (z, r), if the others are not multipliers.
    """

    recover: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    multiplier_sizes: Callable[[ConsistentStart], tuple[np.ndarray, np.ndarray]] | None = None
    tolerances: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    y0: np.ndarray
    yp0: np.ndarray
    start: ConsistentStart

    def __init__(self, formulation: Formulation, shape: Shape, assembly, n: int, n_state: int, hook=None):
        self.formulation, self.shape, self.assembly = formulation, shape, assembly
        self.n, self.n_state = n, n_state
        self.monitor: Any = None
        self.inspection: Any = None
        self._own_hook = hook
        self._pivot: np.ndarray | None = None
        self._functions: list[NativeFunction] = []

    @cached_property
    def problem(self) -> Any:
        """F = 0 for implicit methods."""
        raise NotImplementedError

    @cached_property
    def rate(self) -> NativeFunction | None:
        """Function that computes y'; None unless the formulation is an ordinary differential equation."""
        return None

    @cached_property
    def semi_explicit(self) -> Any:
        """The problem y' = f(t, y, z), 0 = g(t, y, z) for half-explicit methods; None if there is no such form."""
        return None

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """Names of the unknowns."""
        return None

    @cached_property
    def options(self) -> dict[str, Any]:
        """DASSL options for the index."""
        return index_options(self.shape, self.assembly, self.n)

    @property
    def pack(self) -> Callable[[ConsistentStart], tuple[np.ndarray, np.ndarray]] | None:
        """Function that computes unknowns from consistent values, or None."""
        return self.unknowns

    @property
    def row_labels(self) -> list[str]:
        """Labels of the constraints in use, from which names of multipliers are formed."""
        return [str(label).strip("'") for label in self.assembly.row_names()]

    # --- supplied by builders -----------------------------------------------------------------------------------------

    def unknowns(self, start: ConsistentStart) -> tuple[np.ndarray, np.ndarray]:
        """Values and derivatives of the unknowns at a start."""
        raise NotImplementedError

    def make_record(self) -> Any:
        """Create the record for the kernels of the formulation."""
        raise NotImplementedError

    def write(self, record) -> None:
        """Write start-dependent data to the record."""
        raise NotImplementedError

    def choose(self, start: ConsistentStart) -> None:
        """Choose start-dependent data: dependent coordinates, charts, directions."""
        if self.shape.variant == MINIMAL_EXTENSION:
            self._pivot = dependent_coordinates(self.assembly, start)
            if self._own_hook is not None:
                self._own_hook[1].array("pivot")[:] = self._pivot

    # --- a run -------------------------------------------------------------------------------------------------------

    @cached_property
    def record(self) -> Any:
        """The record of the form, created when a kernel first needs it."""
        record = self.make_record()
        self.write(record)
        return record

    def begin(self, start: ConsistentStart, usual_norms: Any = 0.0) -> None:
        """Restart in the existing records; `usual_norms` are norms of the rows of K recorded by the monitor."""
        self.start = start
        self.choose(start)
        if "record" in self.__dict__:
            self.write(self.record)
        self.y0, self.yp0 = self.unknowns(start)
        self._hand_over(usual_norms)

    def _hand_over(self, usual_norms: Any) -> None:
        """Write the variables of the start to the record of the system, as initial guesses, and start the monitor."""
        start, system = self.start, self.assembly.record.address
        if self.monitor is None:
            from daedal.mechanics.manifold import load_point

            load_point(system, start.z, start.r, start.w, start.lam)
            return
        from daedal.mechanics.formulations.monitor import begin_watch

        self.monitor.array("norms")[:] = usual_norms
        begin_watch(self.monitor.address, system, start.t, start.z, start.r, start.w, start.lam)
        self.assembly.bridge.raise_pending()

    def restart(self, start: ConsistentStart) -> Reformulation:
        """A new instance of the formulation. The charts of this instance are still needed to recover its results."""
        return self.formulation.reduce(self.assembly, start)

    def native(self, kernel, linear=None) -> NativeFunction:
        """A native function of the form, which calls its hook."""
        return self.hooked(NativeFunction(kernel, self.record, self.assembly.bridge, self.n, linear))

    def hooked(self, function):
        """Make a native function call the hook of the form, even a hook attached later; returns the function."""
        function.hook, function.keep = self.hook, self.assembly
        self._functions.append(function)
        return function

    @property
    def hook(self):
        """The hook called after every accepted step."""
        if self.monitor is None:
            return self._own_hook
        from daedal.mechanics.formulations.monitor import monitor_hook

        return monitor_hook, self.monitor

    def states(self, times: np.ndarray, y: np.ndarray) -> np.ndarray:
        """(z, r) at the output points, one row each, from unknowns of shape (n, nt)."""
        if self.recover is not None:
            return self.recover(times, y)
        return np.ascontiguousarray(y[: self.n_state].T)

    def last_state(self, outcome) -> tuple[float, np.ndarray]:
        """Time at which a run stopped, and (z, r) at that time, as one row."""
        t = outcome.t_reached
        return t, self.states(np.array([t]), outcome.y_reached[:, None].copy())

    @property
    def excluded(self) -> np.ndarray | None:
        """Mask of the unknowns that the error test excludes; None if it includes all."""
        return np.arange(self.n) >= self.n_state if self.n > self.n_state else None


def attach_monitor(
    reduction: Reformulation, *, amplification: bool = False, usual_norms: Any = 0.0, changes: bool = True
) -> None:
    """After every step, monitor the rank, singular configurations and, on demand, the amplification through B.

    With `changes`, changes of the constraints are compared with predictions from their derivatives.

    Monitoring begins at the start of the reduction; a second call restarts it and may change `amplification`.
    """
    if reduction.monitor is None:
        reduction.monitor = _monitor(reduction, changes)
        for function in reduction._functions:
            function.hook = reduction.hook
    reduction.monitor["amplification"] = amplification
    reduction._hand_over(usual_norms)


def _monitor(reduction: Reformulation, changes: bool):
    from daedal.kernels.dense import dense_lu
    from daedal.kernels.records import Record
    from daedal.mechanics.formulations.monitor import MONITOR

    assembly, inner = reduction.assembly, reduction.hook
    inspector = 0
    if not assembly.linear:
        from daedal.mechanics.inspection import inspect, make_inspection

        reduction.inspection = make_inspection(assembly, changes=changes)
        inspector = 0 if reduction.inspection is None else inspect.address
    return Record.allocated(
        MONITOR,
        system=assembly.record,
        inner=0 if inner is None else inner[0].address,
        inner_record=0 if inner is None else inner[1].data.ctypes.data,
        inspector=inspector,
        inspection=reduction.inspection.data.ctypes.data if inspector else 0,
        smallest=_NEARLY_DEPENDENT,
        gram=dense_lu(assembly.n_c),
    )


# --- builder of formulations with sparse matrices ---------------------------------------------------------------------

_KNOWN = "ggl (projection='GT'), index3, index2, index1, baumgarte"


def check_sparse(formulation: Formulation, system: MechanicalSystem):
    """Raise for a formulation without a sparse form, before any computation."""
    n_c = system.n_constraints
    _check(type(formulation).__name__, formulation.shape(Sizes(2, n_c, n_c)))


def _check(title: str, shape: Shape):
    if shape.lowered:
        raise InvalidProblemError(f"multipliers='derivative' of {title} has no sparse form; omit it")
    if not shape.by_levels:
        raise InvalidProblemError(f"{title} has no sparse form; formulations for sparse matrices: {_KNOWN}")
    if shape.low and not shape.along_gradients:
        raise InvalidProblemError("GGL has a sparse form with projection='GT' only; another D would not be sparse")


class SparseReduction(Reformulation):
    """A formulation in the unknowns of :mod:`daedal.mechanics.sparse.sparse_equations`."""

    def __init__(self, formulation: Formulation, shape: Shape, assembly: SparseWorkspace, start: ConsistentStart):
        _check(type(formulation).__name__, shape)
        self._stabilised = shape.low > 0 and assembly.n_c > 0
        self._equations = SparseEquations(assembly, shape.directed(start.direction), self._stabilised)
        super().__init__(formulation, shape, assembly, self._equations.n, assembly.n_state)
        self.begin(start)

    @cached_property
    def problem(self) -> ImplicitDAE:
        """F(t, y, y') = 0 with its sparse iteration matrix."""
        return ImplicitDAE(
            self._equations.residual,
            self.n,
            jacobian=self._equations.jacobian,
            sparsity=self._equations.blocks.pattern,
            algebraic=np.arange(self.n) >= self.n_state,
            names=self.names,
        )

    def choose(self, start: ConsistentStart) -> None:
        """Choose the sign of damping for the direction of time."""
        self._equations.levels = self.shape.directed(start.direction)

    def unknowns(self, start: ConsistentStart) -> tuple[np.ndarray, np.ndarray]:
        """(q, v, lam, mu) and derivatives at a start."""
        y, yp = np.zeros(self.n), np.zeros(self.n)
        y[: self.n_state], yp[: self.n_state] = start.z, start.slope
        y[self.n_state : self.n_state + self.assembly.n_c] = start.lam
        return y, yp

    pack = None

    def _hand_over(self, usual_norms: Any) -> None:
        """Do nothing: sparse matrices need no data of the start."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        rows = self.row_labels
        names = [*self.assembly.state_names(), *[f"lam[{row}]" for row in rows]]
        return (*names, *[f"mu[{row}]" for row in rows if self._stabilised])


# --- dependent coordinates of the minimal extension; hooks after steps ------------------------------------------------


def dependent_coordinates(assembly, start: ConsistentStart) -> np.ndarray:
    """For every position and velocity, 1 + its index among the dependent ones, or 0 if it is independent."""
    from scipy.linalg import qr

    nx, n_g, n_c = assembly.nx, assembly.n_g, assembly.n_c
    pivot = np.zeros((2, nx), dtype=np.int64)
    values = assembly.evaluate(start.t, start.z, start.r, start.w, start.lam)
    if values is None:
        raise InvalidProblemError(f"the system cannot be evaluated at t = {start.t:g}")
    for rows, places in zip((n_g, n_c), pivot, strict=True):
        if rows:
            columns = np.sort(qr(values["jacobian"][:rows], mode="r", pivoting=True)[1][:rows])
            places[columns] = 1 + np.arange(rows)
    return pivot


def step_hook(shape: Shape, assembly, steps: ProjectedSteps | None):
    """Hook for checking the dependent coordinates or projecting after every step; None if neither is needed."""
    if assembly.n_c == 0:
        return None
    if shape.variant == MINIMAL_EXTENSION:
        return _pivot_watch(shape, assembly)
    if steps is None:
        return None
    from daedal.mechanics.manifold import projection_hook

    projector = assembly.projector(steps.weight, steps.levels)
    projector["rtol"], projector["atol"] = steps.rtol, steps.atol
    return projection_hook, projector


def _pivot_watch(shape: Shape, assembly):
    """The hook that stops a run when new dependent coordinates are needed."""
    from daedal.kernels.dense import dense_lu
    from daedal.kernels.records import Record
    from daedal.mechanics.formulations.charts import CHART, pivot_hook

    matrix = dense_lu(max(assembly.n_c, 1))
    record = Record.allocated(CHART, system=assembly.record, matrix=matrix, limit=shape.restart)
    return pivot_hook, record
