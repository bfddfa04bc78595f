"""Modes of the switches of a run: located, changed and followed by a restart (Wijckmans 1996, section 7.4).

Within an arc, the equations are those of one branch, even slightly beyond the surface. An arc ends where a switching
function leaves the bounds of its mode. The run continues with the other branch or slides along the surface, depending
on the rates of the switching function on both sides (7.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from daedal.common.messages import warn
from daedal.common.tabular import listing
from daedal.driver.request import Request
from daedal.driver.switch_times import SwitchTimes
from daedal.errors import DaedalError, SwitchWarning
from daedal.events.accumulation import AccumulationWatch
from daedal.events.event import Enclosed, EventRecord, SwitchingFunctions, no_functions
from daedal.symbolic.tracing.function import SwitchedParams
from daedal.symbolic.tracing.switched import Followed, SwitchedProblem

JUMP, KINK, ONE_STEP = (50, 3.0), (20, 10.0), (20, 1.5)
"""Number of arcs, and average number of steps per arc below which a switch is no longer tracked: for jumps of y', for
kinks, which cost few steps without tracking, and for one-step methods, which restart at no cost."""
_MOST_STEPS = 2000  # number of arcs, instead of that in JUMP, for jumps that are not at surfaces: a few seconds
_BAND = 1e-3  # times the tolerances: change of the state within which a switching function may start beyond its bound
_INSTANT = 1e-13  # fraction of the time, or of the interval, by which two times are distinguished
_WRONG = 10.0  # times that of _BAND: distance beyond its bound at which a switching function starts in another mode
_ROUND_OFF = 64.0 * float(np.finfo(float).eps)
_CLEAR = 1e-9  # relative tolerance for rates, and absolute tolerance for fractions, in decisions about sliding
_POINT = 1e-2  # times sqrt(rtol) and the elapsed time: distance at which an accumulation point counts as reached
_FAR = 100.0  # times the tolerances: distance up to which a solution counts as remaining on a surface without sliding
_SHARES_HELD = (0.5, 0.25, 0.75, 0.1, 0.9)
_PIVOTS = 10  # maximum number of pivots per surface
_RETURN = 10.0  # rate of the return to a surface while sliding, relative to 1 / (length of the interval)
Rates = Callable[[], tuple[np.ndarray, np.ndarray] | None]
"""Returns u' of all switches in the current modes and the fractions of sliding switches, or None if undefined."""


class Unfollowable(DaedalError):
    """The switches of a run cannot be tracked; the run is repeated with the original functions."""


@dataclass(frozen=True)
class PlannedArc:
    """An arc between two times at which functions of time switch: its modes and bounds, and the switches, with
    directions, at its start."""

    begin: float
    end: float
    modes: tuple[np.ndarray, np.ndarray, np.ndarray]
    idle: list[int]
    switched: list[tuple[int, int]]


class SwitchTracker:
    """The modes of one run.

    Parameters
    ----------
    switched : SwitchedProblem
    moded : SwitchedParams
        The parameters of the run, which contain the modes.
    request : Request
    """

    def __init__(self, switched: SwitchedProblem, moded: SwitchedParams, request: Request):
        self.switched, self.moded, self.request = switched, moded, request
        self.switches: list[Followed] = switched.switches
        self.sliding: list[int] = []
        # surfaces on which the solution stays although its rates do not depend on their fractions
        self.held: set[int] = set()
        self.notes: list[str] = []
        self.history: list[tuple[float, np.ndarray, bool]] = []  # for each arc: its start, the modes, whether sliding
        self._left = [False] * switched.count  # whether a switch is left to step size control
        in_time = np.array(switched.in_time, dtype=bool)
        self._clocked, self._watched = np.flatnonzero(in_time).tolist(), np.flatnonzero(~in_time).tolist()
        self._surfaces = [j for j in self._watched if self.switches[j].is_surface]
        self._next: tuple[float, bytes, tuple] | None = None  # state after the switch that ends the arc
        self._idle: list[int] = []  # time-dependent switches without effect in this arc
        self._lengths: list[list[int]] = [[] for _ in self.switches]
        self._functions: dict[tuple[int, bool], SwitchingFunctions] = {}
        self._rates: Rates = lambda: None
        self._times = SwitchTimes(switched, moded, request)
        self._planned: list[PlannedArc] = []
        self._watch = AccumulationWatch(request.span, _POINT * float(np.sqrt(np.min(request.settings.rtol))), 0)
        self._last = np.full(len(self.switches), np.nan)  # last time of each switch
        self._accumulating: list[int] = []
        self.stopped = ""  # why the run cannot continue
        moded.modes[-1] = _RETURN / abs(request.span[1] - request.span[0])

    # --- start of an arc ---------------------------------------------------------------------------------------

    def start(self, t: float, point: tuple[np.ndarray, ...], rates: Rates):
        """Determine the modes at the start of the run."""
        self._rates = rates
        u = self.switched.values(t, *point, self.moded)
        for j, switch in enumerate(self.switches):
            self._set(j, switch.mode_at(float(u[j])) if u[j] == u[j] else np.nan)
        self.clock(t)
        slides = self.switched.slides
        self._resolve([j for j, one in enumerate(self.switches) if slides[j] and u[j] == one.points[0]])
        self._ignore_resting(t, point)

    def _ignore_resting(self, t: float, point: tuple[np.ndarray, ...]):
        """Use the original functions for switches that stay on their surface, where the value may be that of neither
        side, as for sign(0).
        """
        if not self._surfaces:
            return
        u, rates = self.switched.values(t, *point, self.moded), None
        for j in self._surfaces:
            switch = self.switches[j]
            if j in self.sliding or j in self.held or not isfinite(u[j]):
                continue
            if u[j] != switch.points[0] and isfinite(switch.points[0]):
                if self.moded.modes[j] != self.moded.modes[j]:  # the state has left the surface
                    self._set(j, switch.mode_at(float(u[j])))
                continue
            rates = self._rates() if rates is None else rates
            if rates is None or rates[0][j] == 0.0:
                self._set(j, np.nan)
            elif self.moded.modes[j] != self.moded.modes[j]:  # the state is about to leave the surface
                self._set(j, 1.0 if self.request.sign * rates[0][j] > 0.0 else -1.0)

    def band(self, t: float, point: tuple[np.ndarray, ...], weights: np.ndarray) -> list[int]:
        """Extend the bounds of switching functions near zero by a small fraction of the tolerances.

        Returns the switches whose functions are clearly beyond their bounds, since an algebraic variable has jumped.
        """
        moded, first = self.moded, point[0]
        moded.slack[: len(self.switches)] = 0.0
        if not self._watched:
            return []
        u = self.switched.values(t, *point, moded)
        pattern = np.cos(0.7 + 1.3 * np.arange(first.size))  # direction in which changes are unlikely to cancel
        moved = self.switched.values(t * (1.0 + _ROUND_OFF), first + _BAND * weights * pattern, *point[1:], moded)
        wrong = []
        for j in self._watched:  # time-dependent switches start in the correct mode, see `clock`
            inside = min(u[j] - moded.lower[j], moded.upper[j] - u[j])
            band = 2.0 * abs(float(moved[j] - u[j]))
            if inside <= band < inf:
                moded.slack[j] = band + max(0.0, -inside)
            if inside < -_WRONG * band:
                wrong.append(int(j))
        return wrong

    def clock(self, t: float) -> list[tuple[int, int]]:
        """Set the modes of time-dependent switches to their values just after t.

        Returns the switches that have changed, each with the direction.
        """
        which, moded = self._clocked, self.moded
        if not which:
            return []
        before = moded.modes.tolist()
        if self._next is not None and self._next[:2] == (t, moded.modes.tobytes()):
            moded.modes[:], moded.lower[:], moded.upper[:] = self._next[2]
        else:
            moded.modes[which] = np.nan
            u = self.switched.values(self._just_after(t), np.zeros(self.switched.value_size), moded).tolist()
            for j in which:
                self._set(j, self.switches[j].mode_at(u[j]))
            for j in self._idle:
                moded.lower[j], moded.upper[j] = -inf, inf
        now = moded.modes.tolist()
        changed = [j for j in which if now[j] < before[j] or now[j] > before[j]]
        return [(j, 1 if now[j] > before[j] else -1) for j in changed if j not in self._idle]

    def horizon(self, t: float) -> float:
        """Start an arc at t; returns the time of the next switch that depends on time only, or the end."""
        self.history.append((t, self.moded.modes.copy(), self.is_along))
        if self._planned and self._planned[0].begin == t:
            planned = self._planned.pop(0)
            if planned.modes[0].tobytes() == self.moded.modes.tobytes():
                self._restore(planned.modes, planned.idle)
                return planned.end
        self._planned = []
        end = self._next_switch(t)
        for j, place in self._times.doubts():
            if not self._left[j]:
                self._leave_alone(j, t, f"it is undecided whether it switches near t = {place:.6g}")
        return end

    def planned(self, end: float, most: int) -> list[PlannedArc]:
        """At most the given number of arcs after the current one, which ends at `end`, if only times end them."""
        last, found = self.request.span[1], self._planned
        kept, idle = self._state(), self._idle
        if found:
            end = found[-1].end
            self._restore(found[-1].modes, found[-1].idle)
        while end != last and len(found) < most:
            begin, switched = end, self.clock(end)
            end = self._next_switch(begin)
            if self._times.doubts():
                break
            found.append(PlannedArc(begin, end, self._state(), self._idle, switched))
        self._next = None
        self._restore(kept, idle)
        return found[:most]

    def passed(self, arcs: list[PlannedArc]):
        """Continue in the last of the planned arcs that a run has started."""
        self.history += [(arc.begin, arc.modes[0], False) for arc in arcs]
        self._planned = self._planned[len(arcs) :]
        if arcs:
            self._restore(arcs[-1].modes, arcs[-1].idle)

    def _state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.moded.modes.copy(), self.moded.lower.copy(), self.moded.upper.copy()

    def _restore(self, state: tuple[np.ndarray, np.ndarray, np.ndarray], idle: list[int]):
        self.moded.modes[:], self.moded.lower[:], self.moded.upper[:] = state
        self._idle = idle

    def _next_switch(self, t: float) -> float:
        self._next = None
        end = self.request.span[1]
        if self._idle:
            self._idle = []
            self.clock(t)
        if not self._clocked:
            return end
        behind, last = self._just_after(t), end - (self._just_after(end) - end)
        at = self._times.after(behind, last)
        taken = self.switched.taken(self.moded.modes) if at != last else ()
        while at != last and self._changes_nothing(at, taken):
            self._find_idle(taken)
            at = self._times.after(self._just_after(at), last)
        return at if at != last else end

    def _find_idle(self, taken: tuple):
        """Find the time-dependent switches that have no effect while all others keep their modes."""
        for j in self._idle:
            self._set(j, float(self.moded.modes[j]))
        self._idle = []
        switched, found = self.switched, True
        while found:
            found = False
            for j in self._clocked:
                if j in self._idle or self._left[j] or not switched.readers[j] <= {j, *self._idle}:
                    continue
                if switched.taken.without(self.moded.modes, [*self._idle, j]) == taken:
                    found = True
                    self._idle.append(j)
                    self.moded.lower[j], self.moded.upper[j] = -inf, inf

    def _changes_nothing(self, t: float, taken: tuple) -> bool:
        """Set the modes after the switches at t if the branches are still those in `taken`; return whether they are."""
        kept = self._state()
        self.clock(t)
        if self.switched.taken(self.moded.modes) == taken:
            return True
        self._next = t, kept[0].tobytes(), self._state()
        self._restore(kept, self._idle)
        return False

    def _just_after(self, t: float) -> float:
        """The nearest distinguishable time after t."""
        t0, t1 = self.request.span
        return t + self.request.sign * _INSTANT * max(abs(t), abs(t1 - t0))

    # --- within an arc -----------------------------------------------------------------------------------------------

    @property
    def watches_state(self) -> bool:
        """Whether some switches depend on the state; all others end arcs at known times."""
        return bool(self._watched)

    def functions(
        self,
        n: int,
        own: SwitchingFunctions | None,
        state: Callable | None = None,
        *,
        leading: bool = False,
        along: bool = False,
    ) -> SwitchingFunctions:
        """The user's events followed by the ends of modes, as functions of the n unknowns of a method.

        ``state(t, y, yp)`` returns the arguments of switching functions; None if these are the unknowns. With
        `leading`, they are the first unknowns; with `along`, the functions include the fractions of sliding motions.
        """
        if own is None and (n, along) in self._functions:
            return self._functions[n, along]
        code, bounds = self.switched.events(n if state is None else self.switched.n_state, along=along)
        moded, known = self.moded, self.switched.functions_known

        def hidden(t, y, yp):
            return code(t, y, yp, moded) if state is None else code(t, *state(t, y, yp), moded)

        def joined(t, y, yp):
            assert own is not None
            return np.concatenate([np.atleast_1d(own.evaluate(t, y, yp)), hidden(t, y, yp)])

        if own is None and state is None and (n, along) in known:
            made = self._functions[n, along] = known[n, along].with_parameters(moded, hidden)
            return made
        names = tuple(switch.name for switch in self.switches for _ in range(2))
        if along:
            assert self.switched.closed is not None
            names += 2 * tuple(self.switches[j].name for j in self.switched.closed.surfaces)
        if own is None:
            made = no_functions().extended(hidden, names, code if state is None else None, moded)
        else:
            made = own.extended(joined, names)
        if bounds is not None and (state is None or leading):
            n_own = 0 if own is None else own.direction.size
            made = made.with_enclosed(Enclosed(bounds, n_own, code.numbers, moded))
        if own is None:
            self._functions[n, along] = made
        if own is None and state is None:
            known[n, along] = made
        return made

    def as_user_events(self, events: list[EventRecord], n_own: int) -> tuple[list[EventRecord], list[tuple[int, int]]]:
        """Events as the user sees them, and the modes that ended, as (switch, direction)."""
        shown, ended = [], []
        for event in events:
            if event.index < n_own or event.kind != "event":
                shown.append(event)
                continue
            j, upper = divmod(event.index - n_own, 2)
            direction = 1 if upper else -1
            ended.append((j, direction))
            # not for a start on the surface
            if abs(event.t - self.request.span[0]) > _ROUND_OFF * abs(event.t):
                shown.append(replace(event, index=n_own + j, direction=direction, terminal=False, kind="switch"))
        return shown, ended

    def is_at_end(self, events: list[EventRecord]) -> bool:
        """Whether the last event coincides with the end of the interval, up to round-off."""
        end = self.request.span[1]
        return bool(events) and abs(end - events[-1].t) <= _ROUND_OFF * abs(end)

    def settle(self, t: float, point: Callable[[], tuple[np.ndarray, ...]], weights: np.ndarray):
        """Make the modes consistent with the state ``point()``, which may depend on the modes.

        Switches for which this is impossible are no longer tracked.
        """
        tried: list[list[int]] = []
        now = point()
        while wrong := self.band(t, now, weights):
            if wrong in tried:
                for j in wrong:
                    self._leave_alone(j, t, "none of its branches is consistent with its condition there")
            else:
                tried.append(wrong)
                u = self.switched.values(t, *now, self.moded)
                for j in wrong:
                    self._set(j, self.switches[j].mode_at(float(u[j])))
            now = point()
        self._ignore_resting(t, now)

    # --- end of an arc ------------------------------------------------------------------------------------------------

    def cross(self, t: float, ended: list[tuple[int, int]], left: list[tuple[int, int]]):
        """Switch to the modes beyond the bounds that were reached, leave surfaces, or start sliding."""
        touched = set()
        self._note(t, ended)
        for j, side in left:
            self.leave(j, side)
        for j, direction in ended:
            self._set(
                j, float(direction) if j in self.held else self.switches[j].beyond(self.moded.modes[j], direction)
            )
            self.held.discard(j)
            if self.switched.slides[j] and not self._left[j]:
                touched.add(j)
        if touched or left:
            self._resolve(sorted(touched.union(self.sliding)))

    def _resolve(self, on: list[int]):
        """Choose a side of each surface that contains the state, or slide along it.

        A solution leaves to a side on which it moves away from the surface, or slides with a fraction between 0 and 1.
        This is a complementarity problem in fractions and rates; for one surface, its cases are (i), (iii) and (iv) of
        Wijckmans (7.4). It is solved by principal pivoting with least index (K. G. Murty, Opsearch 11 (1974)); if that
        fails, the sides are unchanged.
        """
        given, sliding = {j: self.moded.modes[j] for j in on}, set(self.sliding)
        scale, tried, before, fixed = np.zeros(len(self.switches)), -1, 0.0, set[int]()
        for _ in range(_PIVOTS * len(on)):
            found = self._rates()
            if found is None and tried >= 0:  # the rate does not depend on the side
                self.leave(tried, -int(before))
                fixed.add(tried)
                tried = -1
                continue
            if found is None:
                break
            rates, shares = found
            scale = np.fmax(scale, np.abs(rates))
            least = [-_CLEAR if j in fixed else _CLEAR for j in range(scale.size)] * scale
            wrong = next((j for j in on if self._is_wrong(j, rates[j], shares[j], least[j])), None)
            if wrong is None:
                return
            tried, before = -1, self.moded.modes[wrong]
            if wrong in self.sliding:
                self.leave(wrong, 1 if shares[wrong] > 0.5 else -1)
            else:
                self._slide(wrong)
                tried = wrong
        for j in on:
            if j in self.sliding and j not in sliding:
                self.sliding.remove(j)
            if j in sliding and j not in self.sliding:
                self._slide(j)
            elif j not in sliding:
                self._set(j, given[j])

    def _is_wrong(self, j: int, rate: float, share: float, least: float) -> bool:
        """Whether the mode of a switch on its surface is inadmissible: its fraction is outside [0, 1], or its rate away
        from the surface is below `least`."""
        if j in self.sliding:
            return not -_CLEAR <= share <= 1.0 + _CLEAR
        return self.moded.modes[j] * self.request.sign * rate < least

    # --- accumulation of switches ------------------------------------------------------------------------------------

    def _note(self, t: float, ended: list[tuple[int, int]]):
        """Record switches by direction, and detect accumulation or chattering."""
        self._accumulating = []
        for j, direction in ended:
            before = self._last[j]
            self._last[j] = t
            if self.switches[j].is_surface and self._watch.add(f"{j} {direction}", t) is not None:
                recent = np.flatnonzero(self.request.sign * (self._last - before) >= 0.0)
                self._accumulating = [int(i) for i in recent if self.switches[i].is_surface]
        if not self._accumulating and ended and self._watch.is_chattering(t):
            self.stopped = (
                f"'{self.switches[ended[-1][0]].name}' switches so often that the end of the interval is out of reach "
                "(chattering). Remedy: switch with hysteresis (modes of a HybridProblem), or formulate the "
                "sliding motion explicitly"
            )

    def stay(self, t: float, point: tuple[np.ndarray, ...], weights: np.ndarray, move: Callable[[np.ndarray], None]):
        """If switches accumulate, continue on all of their surfaces, or stop.

        The solution slides along surfaces whose rates depend on the fractions. On the others it remains, within bounds,
        for any fractions; constant values are chosen for which all fractions are between 0 and 1. ``move(state)`` moves
        the run to the nearest state on the surfaces.
        """
        group = self._accumulating
        if not group:
            return
        names = listing([f"'{self.switches[j].name}'" for j in group])
        what = f"{names} {'switches' if len(group) == 1 else 'switch'} in intervals that shrink by a constant factor"
        self._watch.forget()
        if self.switched.closed is not None and all(self.switched.slides[j] for j in group):
            state = self._onto(t, point, weights, group)
            move(state)
            if self._held(group, _FAR * self._widths(t, (state, *point[1:]), weights), abs(self.request.span[1] - t)):
                self.notes.append(f"Up to t = {t:.6g} {what}; from there on the solution stays on the surface.")
                return
        self.stopped = (
            f"{what}, and the continuation is not determined. Remedy: define it in a mode of a HybridProblem, or "
            "switch with hysteresis"
        )

    def _held(self, group: list[int], widths: np.ndarray, time: float) -> bool:
        """Set fractions for which the solution stays on the surfaces; return whether there are any."""
        for share in _SHARES_HELD:
            self.sliding = [j for j in self.sliding if j not in group]
            self.held |= {*group}
            for j in group:
                self.moded.modes[j] = share
                level = self.switches[j].points[0]
                self.moded.lower[j], self.moded.upper[j] = level - widths[j], level + widths[j]
            for j in group:
                bounds = self.moded.lower[j], self.moded.upper[j]
                self.held.discard(j)
                self._slide(j)
                if self._rates() is None:
                    self.sliding.remove(j)
                    self.held.add(j)
                    self.moded.modes[j] = share
                    self.moded.lower[j], self.moded.upper[j] = bounds
            found = self._rates()
            fits = found is not None and all(-_CLEAR <= found[1][j] <= 1.0 + _CLEAR for j in self.sliding)
            if found is not None and fits:
                if all(abs(found[0][j]) * time <= widths[j] for j in self.held.intersection(group)):
                    return True
        return False

    def _widths(self, t: float, point: tuple[np.ndarray, ...], weights: np.ndarray) -> np.ndarray:
        """Changes of switching functions within the tolerances."""
        pattern = np.cos(0.7 + 1.3 * np.arange(point[0].size))  # direction in which changes are unlikely to cancel
        u = self.switched.values(t, *point, self.moded)
        return np.abs(self.switched.values(t, point[0] + weights * pattern, *point[1:], self.moded) - u)

    def _onto(self, t: float, point: tuple[np.ndarray, ...], weights: np.ndarray, group: list[int]) -> np.ndarray:
        """The nearest state on the surfaces of a group; distances are measured in tolerances."""
        state = point[0].copy()

        def levels(y: np.ndarray) -> np.ndarray:
            u = self.switched.values(t, y, *point[1:], self.moded)
            return np.array([u[j] - self.switches[j].points[0] for j in group])

        for _ in range(3):
            now, shifts = levels(state), np.diag(np.cbrt(_ROUND_OFF) * np.maximum(np.abs(state), weights))
            matrix = np.array([(levels(state + s) - levels(state - s)) / (2.0 * s.sum()) for s in shifts]).T
            state -= weights * np.linalg.lstsq(matrix * weights, now, rcond=None)[0]
        return state

    def _slide(self, j: int):
        self.sliding.append(j)
        self.moded.modes[j] = 0.0
        self.moded.lower[j], self.moded.upper[j] = -inf, inf

    def leave(self, j: int, side: int):
        """Leave a surface to one side."""
        self.sliding.remove(j)
        self._set(j, float(side))

    @property
    def is_along(self) -> bool:
        """Whether the current arc is on a surface."""
        return bool(self.sliding or self.held)

    @property
    def has_slid(self) -> bool:
        """Whether some arc was on a surface, where a variable may be pure round-off."""
        return any(along for _, _, along in self.history)

    @property
    def first_slide(self) -> tuple[float, str] | None:
        """Start of the first sliding motion and name of its switch; None if there was none."""
        for t, modes, along in self.history:
            if along:
                j = int(np.flatnonzero((modes[: len(self.switches)] == 0.0) & np.array(self.switched.slides))[0])
                return t, self.switches[j].name
        return None

    def finish(self):
        """Restore the original functions at the end of the run."""
        self.moded.modes[:] = np.nan

    def _set(self, j: int, mode: float):
        self.moded.modes[j] = np.nan if self._left[j] else mode
        bounds = (-inf, inf) if self._left[j] or mode != mode else self.switches[j].bounds(mode)
        self.moded.lower[j], self.moded.upper[j] = bounds

    # --- switches left to step size control ---------------------------------------------------------------------------

    def judge(self, t: float, ended: list[int], steps: int, limits: tuple[int, float]):
        """Stop tracking switches that end too many short arcs; `ended` are those that ended an arc of `steps` steps."""
        if ended and self.history and self.switched.taken(self.history[-1][1]) == self.switched.taken(self.moded.modes):
            return  # no branch has changed
        for j in ended:
            window, fewest = limits
            if limits is JUMP and not (self.switches[j].is_surface or self.switches[j].kind == "locate"):
                window = _MOST_STEPS  # the jumps of a staircase must be resolved in any case
            if any(self._watch.is_shrinking(f"{j} {direction}") for direction in (1, -1)):
                continue  # accumulation is treated by `stay`
            lengths = self._lengths[j]
            lengths.append(steps)
            if len(lengths) >= window and float(np.mean(lengths[-window:])) < fewest and not self._left[j]:
                often = f"it switched {window} times in succession after fewer than {fewest:g} steps on average"
                if j in self.sliding:
                    self.sliding.remove(j)
                self._leave_alone(j, t, often)

    def _leave_alone(self, j: int, t: float, why: str):
        """Leave a switch to step size control from t on."""
        self._left[j] = True
        self._set(j, np.nan)
        note = f"From t = {t:.6g} on '{self.switches[j].name}' is left to the step size control: {why}."
        self.notes.append(note)
        if self.switches[j].name not in self.request.doubted:  # one warning for all modes of a hybrid problem
            self.request.doubted.add(self.switches[j].name)
            warn(note, SwitchWarning)
