"""Sensitivities of first-order problems through hidden switches: arc by arc, with the equations of each branch.

Between two switches the equations are those of one branch, set by data (:mod:`daedal.symbolic.modes`); at a switch the
state is continuous, and sensitivities jump by :math:`(y'^- - y'^+)\\, dt^*/dp` (:mod:`daedal.sensitivity.jumps`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daedal.common.messages import warn
from daedal.driver.finish import joined_dense_output
from daedal.driver.request import Request
from daedal.errors import SensitivityWarning
from daedal.sensitivity.jumps import Point, event_time
from daedal.sensitivity.result import FirstOrderSensitivities
from daedal.solution.solution import Solution


class Unfollowed(Exception):
    """The branches of a run cannot be identified, or their index is not 0 or 1."""


def solve_through_switches(moded: Any, request: Request, base: Solution) -> Solution:
    """The solution `base` with sensitivities that jump at its switches; `moded` are the sensitivities on fixed
    branches."""
    walk = _SwitchWalk(moded, request, base)
    pieces = walk.pieces()
    values, slopes = walk.at_output(pieces)
    parts = [piece.sensitivities.dense for piece in pieces]
    dense = None if base.dense is None else joined_dense_output([part for part in parts if part is not None])
    starts = pieces[0].sensitivities.starts
    base.sensitivities = FirstOrderSensitivities(moded.given.names, base.t, values, slopes, dense, starts)
    base.message, base.functions = " ".join([base.message, *moded.notes]), moded.words
    return base


class _SwitchWalk:
    """Integration from one switch to the next."""

    def __init__(self, plan: Any, request: Request, base: Solution):
        self.plan, self.request, self.base = plan, request, base
        switched = {event.t for event in base.events if event.kind == "switch"}
        end = float(base.t[-1]) if base.status == "event" else request.span[1]
        inside = sorted(t for t in switched if request.sign * (end - t) > 0.0)
        self.edges = [request.span[0], *(inside if request.sign > 0.0 else inside[::-1]), end]

    def pieces(self) -> list[Solution]:
        plan, sign, found = self.plan, self.request.sign, []
        y, yp = plan.start(self.request)
        total, tau = plan.given.starts, np.zeros(plan.m)
        for k, (a, b) in enumerate(zip(self.edges, self.edges[1:])):
            plan.set_between(self.base, a, b)
            y, yp = plan.completed(a, y, yp)
            own = self.base.t[(sign * (self.base.t - a) >= 0.0) & (sign * (self.base.t - b) <= 0.0)]
            times = np.unique(np.concatenate([own, [b]]))[:: int(sign)]
            bare = replace(
                self.request.settings, events=None, first_step=None if k else self.request.settings.first_step
            )
            request = replace(self.request, span=(a, b), times=times, t_stop=b, settings=bare)
            piece = plan.stretch(request, y, yp, total - np.outer(tau, yp))
            found.append(piece)
            if b != self.edges[-1]:
                s = piece.sensitivities.values[:, :, -1]
                y, yp = plan.completed(b, piece.y[:, -1], piece.yp[:, -1])
                tau = self._time(a, b, y, yp, s)
                if np.isnan(tau).any():
                    break
                total = s + np.outer(tau, yp)
        return found

    def _time(self, a: float, b: float, y: np.ndarray, yp: np.ndarray, s: np.ndarray) -> np.ndarray:
        """The derivatives dt/dp of the time of the switch that ends the arc from a to b."""
        plan = self.plan
        numbers = plan.variational.numbers(plan.given.problem.params)
        positions = [column.position for column in plan.given.columns]
        theta = np.array([0.0 if k is None or numbers is None else numbers[k] for k in positions])
        u = plan.values(b, y, yp)
        bounds = [
            _nearer(switch.bounds(mode), float(x))
            for switch, mode, x in zip(plan.variational.switches, plan.modes, u, strict=True)
        ]

        def guard(point: Point) -> np.ndarray:
            varied = None if numbers is None else numbers.copy()
            for k, value in zip(positions, point.theta, strict=True):
                if k is not None and varied is not None:
                    varied[k] = value
            return plan.values(point.t, point.y, yp, varied) - np.array(bounds)

        far = [np.abs(guard(Point(t, self.base(t), theta))) for t in np.linspace(a, b, 5)]
        fired = int(np.argmin(np.abs(u - np.array(bounds))))
        size = float(np.max([values[fired] for values in far]))
        tau, grazing = event_time(guard, Point(b, y, theta), yp, s, abs(b - a), size)
        if grazing:
            name = plan.variational.switches[fired].name
            warn(
                f"sensitivities do not exist after t = {b:.6g}, where the solution only touches the surface of "
                f"'{name}': they are NaN from there on",
                SensitivityWarning,
            )
        return tau

    def at_output(self, pieces: list[Solution]) -> tuple[np.ndarray, np.ndarray]:
        """Values and slopes at the output points; at switches, values from the left."""
        sign, t = self.request.sign, self.base.t
        which = np.searchsorted(sign * np.array(self.edges[1:-1]), sign * t, side="left")
        n, m = self.plan.given.problem.n, self.plan.m
        values, slopes = np.full((m, n, t.size), np.nan), np.full((m, n, t.size), np.nan)
        for i in np.flatnonzero(which < len(pieces)):
            piece = pieces[which[i]]
            j = int(np.argmin(np.abs(piece.t - t[i])))
            values[:, :, i] = piece.sensitivities.values[:, :, j]
            slopes[:, :, i] = piece.sensitivities.slopes[:, :, j]
        return values, slopes


def _nearer(bounds: tuple[float, float], x: float) -> float:
    return bounds[0] if abs(bounds[0] - x) <= abs(bounds[1] - x) else bounds[1]
