"""Eight members of a batch in parallel, if machine code for lanes is available."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.mechanics.formulations.constraint_levels import CoordinateProjection
from daedal.methods.explicit.runge_kutta import Tableau
from daedal.methods.rosenbrock.rosenbrock import Rosenbrock
from daedal.methods.rosenbrock.rosenbrock_tableaux import TABLEAUX
from daedal.symbolic.machine import MachineFunction
from daedal.symbolic.tracing.parameters import NAME

_TURNS = 2000  # steps of all lanes between two checks for an interrupt


class Lanes:
    """A loop over eight members at a time.

    Parameters
    ----------
    batch : Record
        The BATCH record of the loop over single members.
    ready : Run
        The run of a single member: an explicit Runge-Kutta method, or a Rosenbrock method.
    code : MachineFunction
        Accelerations, y', or a whole Rosenbrock step, in lanes.
    nx : int
        Number of positions of a mechanism, or 0.
    constraints : ConstraintsInLanes, optional
        Projection and monitoring of mechanisms.
    monitor : Record, optional
        The monitor of a single mechanism.
    watches : numpy.ndarray, optional
        Monitors of first-order problems, one record for each lane.
    keep : object, optional
        Objects whose memory the lanes use, to be kept alive.
    """

    def __init__(
        self,
        batch: Any,
        ready: Any,
        code: MachineFunction,
        nx: int = 0,
        constraints: ConstraintsInLanes | None = None,
        monitor: Any = None,
        watches: np.ndarray | None = None,
        keep: Any = None,
    ):
        from daedal.ensembles.lane_kernel import IDLE, LANE, LANE_BATCH
        from daedal.kernels.lanes import LANES
        from daedal.kernels.records import Record

        made = CodeInLanes(code)
        steps, linear = _steps(ready, made, nx), None
        if not isinstance(getattr(ready.method, "tableau", None), Tableau):
            linear = _linear_steps(ready)
        codes = [made] if constraints is None else [made, *constraints.codes]
        places = np.array([one.parameters for one in codes if one.parameters], dtype=np.int64)
        self._lanes, self._batch = np.zeros(LANES, dtype=LANE), batch
        self._lanes["member"], self._idle = IDLE, IDLE
        self._record = Record(
            LANE_BATCH,
            batch=batch,
            lanes=self._lanes.ctypes.data,
            steps=steps,
            linear=linear or 0,
            constraints=0 if constraints is None else constraints.record,
            monitor=monitor or 0,
            watches=0 if watches is None else watches.ctypes.data,
            parameters=places,
            n_parameters=places.size,
            turns=_TURNS,
        )
        self._alive = codes, constraints, watches, keep, ready

    def run(self, stopped: Callable[[], bool]) -> None:
        """Run the members of the batch; members left to the loop over single members have no reason yet."""
        from daedal.ensembles.lane_kernel import run_lanes

        self._lanes["member"] = self._idle
        while not stopped() and run_lanes(self._record.address):
            pass
        self._batch["next"], self._batch["resumed"] = 0, 0

    def reasons(self) -> np.ndarray:
        """Reasons of the members that have ended so far; 0 for all other members."""
        count = int(self._batch["count"])
        return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(int(self._batch["reasons"]))).copy()


class ConstraintsInLanes:
    """Projection and monitoring of eight mechanisms: code and record."""

    def __init__(self, assembly: Any, monitor: Any, code: dict[str, MachineFunction]):
        from daedal.ensembles.lane_constraints import CONSTRAINTS
        from daedal.kernels.records import Record

        made = {name.split("_")[0]: CodeInLanes(function) for name, function in code.items()}
        self.codes = list(made.values())
        self.record: Any = Record.allocated(
            CONSTRAINTS,
            nx=assembly.nx,
            n_g=assembly.n_g,
            n_c=assembly.n_c,
            length=assembly.record["length"],
            smallest=monitor["smallest"],
            **{name: one.record for name, one in made.items()},
        )


def _steps(ready: Any, code: CodeInLanes, nx: int) -> Any:
    """The STEPS record of a run."""
    from daedal.ensembles.lane_steps import STEPS
    from daedal.kernels.records import Record

    run, tableau = ready.record, getattr(ready.method, "tableau", None)
    explicit: dict[str, Any] = {}
    if isinstance(tableau, Tableau):
        stages = len(tableau.b)
        explicit = {
            "tableau": ready.own,
            "stages": stages,
            "more_stages": len(tableau.a) - stages,
            "is_dense": run["dense"],
            "watches_stiffness": run["stop_when_stiff"],
        }
    tolerances = {name: run.array(name) for name in ("rtol", "atol", "included")}
    return Record.allocated(STEPS, n=run["n"], positions=nx, slopes=code.record, **explicit, **tolerances)


def _linear_steps(ready: Any) -> Any:
    """The LINEAR_STEPS record of a Rosenbrock run."""
    from daedal.ensembles.lane_rosenbrock import LINEAR_STEPS
    from daedal.kernels.records import Record

    own = {name: ready.own[name] for name in ("stages", "quasilinear")}
    return Record.allocated(LINEAR_STEPS, n=ready.record["n"], slope=ready.own.array("slope"), **own)


class CodeInLanes:
    """A function in lanes with a separate block: its CODE record, and the address of its parameters, or 0."""

    def __init__(self, code: MachineFunction):
        from daedal.ensembles.lane_steps import CODE
        from daedal.kernels.lanes import LANES
        from daedal.kernels.records import Record

        block = np.zeros((code.size, LANES))
        parts = {name: block[place] for name, place in code.slices.items()}
        self.parameters: int = parts[NAME].ctypes.data if NAME in parts else 0
        self._code = code
        result, status = parts["result"], parts["status"]
        self.record: Any = Record(
            CODE, address=code.address, size=code.size, n=len(result), block=block, result=result, status=status
        )


def lanes_of_mechanism(batch: Any, course: Any, reduction: Any, ready: Any) -> Lanes | None:
    """Lanes for a batch of mechanisms; None if its runs need unsupported features."""
    assembly, form, monitor = course.assembly, reduction.formulation, reduction.monitor
    plain = isinstance(form, CoordinateProjection) and (not assembly.n_c or form == CoordinateProjection())
    if not plain or not _is_plain(ready) or ready.record["dense"]:
        return None
    if reduction.n != 2 * assembly.nx or not assembly.has_straight_line:
        return None
    if assembly.n_c and (monitor is None or monitor["inspector"] or monitor["amplification"]):
        return None
    names = ["accelerations", *(["velocity_correction"] if assembly.n_c else [])]
    names += ["position_correction"] if assembly.n_g else []
    code = {name: assembly.system.straight_line.in_lanes(name) for name in names}
    if None in code.values():
        return None
    slopes, constraints = code.pop("accelerations"), None
    if assembly.n_c:
        constraints = ConstraintsInLanes(assembly, monitor, code)
    return Lanes(batch, ready, slopes, assembly.nx, constraints, monitor)


def lanes_of_first_order(batch: Any, own: Any, plan: Any, ready: Any) -> Lanes | None:
    """Lanes for a batch of first-order problems; None if its runs need unsupported features."""
    from daedal.kernels.lanes import LANES

    if not _is_plain(ready):
        return None
    if ready.method.supports("rate") and plan.ordinary is not None:
        code = getattr(plan.equations.rate, "in_lanes", lambda: None)()
    else:
        code = _rosenbrock_code(ready)
    if code is None:
        return None
    n = int(ready.record["n"])
    watches, signs = np.repeat(own.data, LANES), np.zeros((LANES, 2 * n), dtype=np.int64)
    watches["signs"] = signs.ctypes.data + signs.strides[0] * np.arange(LANES)
    return Lanes(batch, ready, code, watches=watches, keep=(own, signs))


def _rosenbrock_code(ready: Any) -> MachineFunction | None:
    """Code of whole Rosenbrock steps in lanes; None if single members have no such code or steps lack dense output."""
    formulas, system, own = ready.equations.problem.linearly_implicit, ready.system, ready.own
    if formulas is None or not own["step"]["kind"] or own["watched"] or system["hook"] or not ready.record["dense"]:
        return None
    return formulas.step_in_lanes(ready.method.variant, TABLEAUX[ready.method.variant])


def _is_plain(ready: Any) -> bool:
    """Whether a run uses an explicit or a Rosenbrock method with error control, without events."""
    run, tableau = ready.record, getattr(ready.method, "tableau", None)
    known = isinstance(tableau, Tableau) or isinstance(ready.method, Rosenbrock)
    own_norm = bool(ready.system["norm"]["kind"]) and not (known and tableau and ready.own["maximum_norm"])
    return known and not (own_norm or run["fixed"] or run["has_roots"] or run["controller"])
