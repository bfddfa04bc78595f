"""Choice of formulation and method, by the user or from measurements during the run."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from daedal.analysis import dependent_constraints as singular
from daedal.analysis.thresholds import (
    PATIENCE,
    STABILITY_BOUND,
    STEPS_BEFORE_QUESTION,
    STIFF_GAIN,
    STIFFNESS_OVER,
)
from daedal.driver.first_order_choice import first_explicit
from daedal.errors import InvalidProblemError
from daedal.kernels.endings import Ending
from daedal.mechanics.formulations import CoordinateProjection, named_formulation
from daedal.mechanics.formulations.constraint_levels import VelocityConstraints
from daedal.methods.named_methods import named_method


def _fastest(measures) -> float:
    """The rate that limits explicit steps: a decay rate, the rotation rate of constraint forces, or a frequency."""
    return float(np.nanmax((measures.order * measures.V_B, abs(measures.sigF), measures.omegaF)))


class MethodChoice:
    """Formulation and method of the current segment, and whether another segment follows.

    The automatic choice starts with an explicit method, suitable for nonstiff problems: DOPRI5, or DOP853 for tight
    tolerances, with projection if accelerations are straight-line code, otherwise the half-explicit PHEM56. When
    stability limits its steps, the measures of Ascher and Petzold's decision procedure select the stiff form: the
    stabilised index-2 form; projected invariants along C^T if rapidly rotating constraint forces would make the
    stabilised form behave like an explicit method; or collocation at Radau nodes if the fast modes are vibrations. The
    stabilised form is monitored for rotating forces. Stiffness is checked periodically; when it has ended, the explicit
    method is used again.
    """

    def __init__(self, plan, assembly, request):
        self._assembly = assembly
        self.notes: list[str] = []
        self.changed = True
        self.watches_amplification = False
        self.step_limit: int | None = None  # steps of a stiff method before stiffness is checked again
        self._explicit: tuple | None = None  # formulation and method to return to
        self._found_stiff: Any = None  # time, step size and measures when the explicit method stopped
        self._patience = PATIENCE
        self._chooses_steps = request.settings.fixed_step is None
        self._passed: list = []  # singular configurations that steps have jumped across
        self._steps_left = request.settings.max_steps or inf
        weight = assembly.output_weight
        if weight not in plan.forms:
            plan.forms[weight] = _first_pair(plan, assembly)
        self.formulation, self.method = plan.forms[weight]

    @property
    def pair(self) -> tuple[int, int]:
        """Key of the formulation and the method within the plan."""
        return id(self.formulation), id(self.method)

    def continues(self, segment) -> bool:
        """Whether another segment follows; if so, choose its formulation and method."""
        reason = segment.outcome.reason
        if reason in (Ending.FINISHED, Ending.EVENT_STOP):
            return False
        from daedal.kernels.system import HOOK_STOP
        from daedal.mechanics.formulations.monitor import AMPLIFYING, NEARLY_SINGULAR, PASSED_SINGULAR, TURNED_ASIDE

        self._steps_left -= segment.outcome.steps
        if reason == Ending.STIFF:
            self._become_implicit()
            return True
        if reason == Ending.MAX_STEPS and self.step_limit is not None and self._steps_left > 0:
            self._check_end_of_stiffness(segment)
            return True
        if reason != Ending.HOOK_STOPPED:
            return False
        if segment.signal == HOOK_STOP:
            return True
        if segment.signal in (PASSED_SINGULAR, NEARLY_SINGULAR, TURNED_ASIDE):
            segment.singular = self._singular_point(segment, passed=segment.signal == PASSED_SINGULAR)
            self.changed = True
            return segment.singular is None
        if segment.signal == AMPLIFYING:
            t = segment.outcome.t_reached
            self._change(named_formulation("projected_invariants"), self.method)
            self.notes.append(
                f"Projected invariants are used from t = {t:.4g} on, since the constraint forces rotate rapidly."
            )
            return True
        return False

    def _change(self, formulation, method):
        self.changed = True
        self.watches_amplification = formulation.name == "ggl"
        self.formulation, self.method = formulation, method

    def check_stiffness(self, t: float, h: float, state: np.ndarray) -> int:
        """Check whether stability limits the steps, the last of which had the size `h`.

        Returns 0 if it does, otherwise the number of suspicious steps before the next check.

        The run is suspended during the check; a false alarm leaves it unchanged.
        """
        measures = self._measure(t, state)
        if measures is None or h * _fastest(measures) >= STABILITY_BOUND * self.method.stiffness_check:
            self._found_stiff = t, h, measures
            return 0
        patience, self._patience = self._patience, 2 * self._patience
        return patience

    def _become_implicit(self):
        from daedal.analysis.decision import decision

        t, h, measures = self._found_stiff
        form, method = named_formulation("ggl"), named_method("dassl", {})
        if measures is not None:
            verdict = decision([measures], STIFF_GAIN * h)
            if verdict.case == 3:
                form, method = verdict.formulation, verdict.method
            elif verdict.case == 4:
                form = named_formulation("projected_invariants")
        self._explicit = self.formulation, self.method
        self.step_limit = STEPS_BEFORE_QUESTION
        self._change(form, method)
        self.notes.append(f"Stiff from t = {t:.4g} on: {type(form).__name__} with {type(method).__name__}.")

    def _check_end_of_stiffness(self, segment):
        """Return to the explicit method if it could take the steps of the stiff method; otherwise check again later."""
        t, state = segment.equations.last_state(segment.outcome)
        h, measures, explicit = abs(segment.outcome.h_last), self._measure(t, state[0]), self._explicit
        bound = 0.0 if explicit is None else STIFFNESS_OVER * explicit[1].stiffness_check
        if explicit is not None and measures is not None and h * _fastest(measures) < bound:
            self.step_limit = None
            self._change(*explicit)
            self.notes.append(f"No longer stiff from t = {t:.4g} on: {type(self.method).__name__}.")
        else:
            self.step_limit = 2 * (self.step_limit or STEPS_BEFORE_QUESTION)
            self.changed = True

    def _measure(self, t: float, state: np.ndarray):
        """The measures at a state; the initial guesses of the suspended run are restored."""
        from daedal.analysis.measures import measure

        guesses = [self._assembly.record.array(name) for name in ("state", "multipliers")]
        before = [guess.copy() for guess in guesses]
        measures = measure(self._assembly, t, state)
        for guess, values in zip(guesses, before, strict=True):
            guess[:] = values
        return measures

    def _singular_point(self, segment, passed: bool):
        """The singular configuration at which the monitor stopped; None for a false alarm or a smooth passage."""

        monitor, dense = segment.equations.monitor, segment.outcome.last_step
        t0, t1 = float(monitor["t_before"]), float(monitor["t"])
        last = segment.outcome.y_reached

        def path(t):
            y = last if dense is None else dense.evaluate_steps(np.array([t]), np.array([dense.ends.size - 1]))[0][0]
            state = segment.equations.states(np.array([t]), np.ascontiguousarray(y[:, None]))
            return state[0]

        if passed:
            if dense is not None:
                point = singular.find_passage(self._assembly, path, t0, t1)
                if point is None or not self._may_pass or not singular.is_passed_smoothly(self._assembly, path, t0, t1):
                    return point
                self._note_passage(point)
                return None
            t1 = t0
        norms = np.where(monitor.array("norms") > 0.0, monitor.array("norms"), 1.0)
        smallest = singular.smallest_singular_value(self._assembly, t1, path(t1), norms)
        return singular.SingularPoint(t1, path(t1), *smallest)

    @property
    def _may_pass(self) -> bool:
        """Whether steps may jump across singular configurations, as explicit methods with step size control can."""
        return self._chooses_steps and isinstance(self.formulation, CoordinateProjection | VelocityConstraints)

    def _note_passage(self, point):
        """Replace the note on singular configurations by one that includes `point`."""
        from daedal.analysis.dependent_constraints import in_passing

        if self._passed:
            self.notes.remove(in_passing(self._assembly, self._passed))
        self._passed.append(point)
        self.notes.append(in_passing(self._assembly, self._passed))


def _first_pair(plan, assembly) -> tuple[Any, Any]:
    """Formulation and method of the first segment."""
    formulation, method = plan.formulation, plan.method
    if formulation is None or (isinstance(formulation, str) and formulation == "none"):
        if assembly.n_c:
            raise InvalidProblemError(
                f"formulation={formulation!r} is for systems without constraints. Remedy: use 'index3' to impose the "
                "constraints as given, or 'auto'"
            )
        formulation = "auto"
    any_method = isinstance(method, str) and method == "auto"
    first = formulation.split(",")[0] if isinstance(formulation, str) else ""
    if first == CoordinateProjection.__name__ and first != formulation and any_method:
        formulation = (
            "auto"  # from ``sol.formulation`` of a run that changed its method ("CoordinateProjection, then GGL")
        )
    if first == VelocityConstraints.__name__:
        # from ``sol.formulation`` of a half-explicit run
        if not any_method and not method.supports("mechanism"):
            raise InvalidProblemError(
                f"formulation {formulation!r} is for half-explicit methods only, which impose the constraints on the "
                f"velocity level in their stages: omit formulation or method={method.name!r}"
            )
        formulation = "auto"
    any_form = isinstance(formulation, str) and formulation == "auto"
    constrained = assembly.n_c > 0 and not assembly.linear
    if any_form and any_method:
        name = "phem56" if constrained and not assembly.has_straight_line else first_explicit(plan.rtol)
        method = named_method(name, {"norm": "max" if constrained else "rms", "stop_when_stiff": True})
    if not any_form:
        form = named_formulation(formulation)
        if any_method and form.ordinary and not form.stiff:
            return form, named_method(first_explicit(plan.rtol), {"norm": "max" if constrained else "rms"})
        if any_method:
            return form, named_method("dassl", {})
        if method.supports("mechanism") and not form.half_explicit:
            raise InvalidProblemError(
                f"{type(method).__name__} imposes the constraints itself: omit formulation, "
                "or use another method (dassl, or dopri5 for forms that are ordinary differential equations)"
            )
        return form, method.for_second_order() if form.name == "index3" else method
    if method.supports("mechanism"):
        positions = slice(0, assembly.nx)
        rtol, atol = (0.05 * float(tolerance[positions].min()) for tolerance in (plan.rtol, plan.atol))
        return VelocityConstraints(assembly.output_weight, method.projection, rtol, max(atol, 1e-300)), method
    if method.supports("rate"):
        return CoordinateProjection(assembly.output_weight), method
    return named_formulation("index3" if method.supports("second_order") else "ggl"), method
