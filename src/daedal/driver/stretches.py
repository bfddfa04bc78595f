"""Evaluation of a mechanism after a run with modes: each time uses the equations of its arc."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import numpy as np

from daedal.mechanics.setting import WorkspacePool
from daedal.mechanics.system_workspace import SystemWorkspace
from daedal.problems.compile import with_numbers
from daedal.symbolic.tracing.function import SwitchedParams


class ArcEvaluator:
    """Evaluates the system of a solution with the equations of each arc.

    Parameters
    ----------
    run_state : SwitchedMechanismRunState
        The completed run.
    """

    def __init__(self, run_state):
        self._begins = np.array([stretch.t for stretch in run_state.stretches])
        self._stretches, self._sign = run_state.stretches, run_state.request.sign
        self._given = run_state.tracker.moded.given
        self._courses = {(): run_state.base, **run_state.along}

    @contextmanager
    def lend(self):
        """``with evaluator.lend() as assembly``."""
        moded = self._courses[()].plan.problem.params.fresh(self._given)
        lenders = {}
        for key, run_state in self._courses.items():
            system = with_numbers(run_state.plan.problem, moded)
            lenders[key] = WorkspacePool(run_state.plan.starts.pool, system, run_state.assembly.setting)
        with lenders[()].lend() as base:
            yield _ArcAssembly(base, lenders, moded, self)

    def groups(self, times: np.ndarray):
        """(arc, indices) for all arcs that contain some of the times; a switching time belongs to the arc that starts
        there."""
        found = np.searchsorted(self._sign * self._begins, self._sign * times, side="right") - 1
        for i in np.unique(np.maximum(found, 0)):
            yield self._stretches[i], np.flatnonzero(np.maximum(found, 0) == i)


class _ArcAssembly:
    """An assembly that computes accelerations arc by arc."""

    start = SystemWorkspace.start

    def __init__(
        self, base: SystemWorkspace, lenders: dict[tuple, WorkspacePool], moded: SwitchedParams, evaluator: ArcEvaluator
    ):
        self._base, self._lenders, self._moded, self._evaluator = base, lenders, moded, evaluator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)

    def accelerate(self, times, states, guesses=None):
        """a, lam, r' and w at the rows of `states`, as in :meth:`SystemWorkspace.accelerate`."""
        base = self._base
        times, states = np.atleast_1d(np.asarray(times, dtype=float)), np.atleast_2d(states)
        results = [np.full((times.size, k), np.nan) for k in (base.nx, base.n_c, base.n_r, base.n_w)]
        statuses = np.ones(times.size, dtype=np.int64)
        for stretch, at in self._evaluator.groups(times):
            self._moded.modes[:] = stretch.modes
            with self._lenders[stretch.run_state].lend() as assembly:
                assembly.bridge.refresh()
                shares = np.zeros((at.size, stretch.further))
                *found, status = assembly.accelerate(times[at], np.hstack([states[at], shares]))
            for target, values in zip(results, found, strict=True):
                target[at] = values[:, : target.shape[1]]
            statuses[at] = status
        self._moded.modes[:] = np.nan
        base.bridge.refresh()
        return *results, statuses
