"""Start of a run of a constrained system: evaluation settings and consistent values."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from daedal.driver.request import Request
from daedal.initial.given_derivatives import check_given
from daedal.initial.mechanical_start import check_start, split_mechanical
from daedal.kernels.functions import CodedFunction
from daedal.mechanics.point import SOME_TIMES, asks_for_time, check_point
from daedal.mechanics.readiness import recursive_start, starts_recursively
from daedal.mechanics.setting import ConsistentStart, EvaluationConfig, Pool, plain_setting, setting_at
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.problems import MechanicalSystem
from daedal.problems.checks import check_vector

_MOST_SETTINGS = 64


class MechanismStarts:
    """Consistent starts and evaluation settings of one system, which are cached by start."""

    def __init__(self, system: MechanicalSystem):
        self.system = system
        self.pool = Pool(SystemWorkspace)
        self._settings: dict[tuple, EvaluationConfig] = {}  # keyed by start
        self._notes: dict[tuple, list[str]] = {}  # notes on starts with redundant constraints, keyed by start
        self._is_coded = all(isinstance(f, CodedFunction) for f in vars(system).values() if callable(f))
        self._compared: set[bool] = set()
        self._asks_for_time = asks_for_time(system)

    def with_system(self, system: MechanicalSystem) -> MechanismStarts:
        """A copy for the system with other parameters, which shares assemblies."""
        other = copy(self)
        other.system, other._settings, other._notes = system, {}, {}
        return other

    def begin(
        self, request: Request, known: dict[str, bool] | None = None
    ) -> tuple[SystemWorkspace, ConsistentStart, list[str]]:
        """Workspace, consistent start and notes of a run.

        `known` properties of the constraints, "autonomous" (independent of time) and "analytic" (the complex step
        works), are not determined again.
        """
        known = known or {}
        system, span = self.system, request.span
        correct = request.settings.correct_initial
        q0, v0, r0, w0, lam0 = split_mechanical(request.initial)
        t, q, v = check_point(system, span[0], q0, v0)
        r = np.zeros(system.n_r) if r0 is None else check_vector(r0, system.n_r, "r0")
        if w0 is not None:
            check_vector(w0, system.n_w, "w0")
        self._compare(t, q, v, consistent=not correct)
        ready, z = None, np.concatenate([q, v])
        key: tuple[Any, ...] = ()
        if v0 is not None and starts_recursively(system):
            assembly = self.pool.take(system, self._find(request, z, known))
            start = recursive_start(system, t, z, r)
            if start is not None:
                assembly.weigh("M")
                return assembly, start.towards(request.sign), []
            self.pool.give_back(assembly)
        if system.contact is None and v0 is not None and not system.n_w and not system.force_uses_multipliers:
            key = *span, z.tobytes()
            ready = self._ready(request, t, z, r, known, key)
        if ready is not None:
            self._compare(t, q, v, consistent=True)
            return *ready, list(self._notes.get(key, ()))
        values = check_start(
            system, t, q, None if v0 is None else v, r0=r0, w0=w0, lam0=lam0, correct=correct, atol=self._atol(request)
        )
        self._compare(t, values.q, values.v, consistent=True)
        state = np.concatenate([values.q, values.v, values.r])
        setting = self._find(request, state, known, values.rows)
        if key and not known and values.redundant and self._is_coded and np.array_equal(state[: z.size], z):
            ready = self._ready_without_redundant(request, t, z, r, key, setting, list(values.notes))
            if ready is not None:
                return *ready, list(values.notes)
        if system.force_uses_multipliers or system.n_w:
            setting = setting.changed(guess=np.concatenate([values.w, values.lam[values.rows]]))
        assembly = self.pool.take(system, setting)
        assembly.choose_weight(
            assembly.evaluate(t, state[: 2 * system.n_q], values.r, values.w, values.lam[assembly.rows])
        )
        start = assembly.start(t, state, np.concatenate([values.w, values.lam]))
        return assembly, start.towards(request.sign), list(values.notes)

    def _atol(self, request: Request) -> np.ndarray:
        return np.broadcast_to(np.asarray(request.settings.atol, dtype=float), (self.system.n,))[: 2 * self.system.n_q]

    def _compare(self, t: float, q: np.ndarray, v: np.ndarray, *, consistent: bool):
        """Compare given derivatives with differences at the first start."""
        if consistent not in self._compared:
            check_given(self.system, t, q, v, consistent=consistent)
            self._compared.add(consistent)

    def _ready_without_redundant(
        self, request: Request, t: float, z, r, key: tuple, setting: EvaluationConfig, notes: list[str]
    ):
        """As `_ready`, for a start with redundant constraints, on which `notes` are stored for later runs."""
        self._keep(key, setting)
        self._notes[key] = notes
        ready = self._ready(request, t, z, r, {}, key)
        if ready is None:
            del self._settings[key], self._notes[key]
        return ready

    def _ready(self, request: Request, t: float, z: np.ndarray, r: np.ndarray, known: dict[str, bool], key: tuple):
        """Workspace and start; None unless the given values are consistent to round-off and the constraints regular."""
        from daedal.mechanics.readiness import READY_IN_MASS_NORM, is_ready

        setting = None if known else self._settings.get(key)
        assembly = self.pool.take(self.system, setting or self._find(request, z, known))
        answer = is_ready(assembly.address, t, z, r)
        assembly.bridge.raise_pending()
        if not answer:
            self.pool.give_back(assembly)
            return None
        assembly.weigh("M" if answer == READY_IN_MASS_NORM else "I")
        if not known:
            self._keep(key, assembly.setting)
        array = assembly.record.array
        a, lam, rate = array("acceleration").copy(), array("multipliers").copy(), array("rate").copy()
        return assembly, ConsistentStart(t, z, a, lam, r, rate, direction=int(request.sign))

    def _keep(self, key: tuple, setting: EvaluationConfig):
        if len(self._settings) >= _MOST_SETTINGS:
            self._settings.clear()
            self._notes.clear()
        self._settings[key] = setting

    def _find(self, request: Request, state: np.ndarray, known: dict[str, bool], rows=None) -> EvaluationConfig:
        """Evaluation settings of a run: whether constraints depend on time, increments, use of the complex step."""
        (t0, t1), q = request.span, state[: self.system.n_q]
        with self.pool.lend(self.system, plain_setting(self.system, q, rows)) as assembly:
            autonomous = known.get("autonomous")
            if autonomous is None:
                autonomous = self._asks_for_time and stays_the_same(
                    assembly, t0, t0 + (t1 - t0) * SOME_TIMES, state[None]
                )
            return setting_at(
                self.system,
                t0,
                q,
                rows=assembly.rows,
                autonomous=autonomous,
                interval=(t0, t1),
                analytic=known.get("analytic", True),
                assembly=assembly,
            )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_settings": {}, "_notes": {}}


def stays_the_same(assembly: SystemWorkspace, t0: float, times: np.ndarray, states: np.ndarray) -> bool:
    """Whether the constraints at `times` equal those at t0; times at which they cannot be evaluated are skipped."""
    from daedal.mechanics.readiness import same_in_time

    same = same_in_time(assembly.address, t0, times, states)
    pending, assembly.bridge.exception = assembly.bridge.exception, None
    if isinstance(pending, KeyboardInterrupt):
        raise pending
    return bool(same)
