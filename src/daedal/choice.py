"""Which formulation and which method: the user's, or what the measurements of the run ask for."""

from __future__ import annotations

import difflib
from dataclasses import replace

import numpy as np

from daedal.analysis.thresholds import (
    PATIENCE,
    STABILITY_BOUND,
    STEPS_BEFORE_QUESTION,
    STIFF_GAIN,
    STIFFNESS_OVER,
    VIBRATION_BOUND,
)
from daedal.errors import InvalidProblemError
from daedal.formulations import CoordinateProjection, named_formulation
from daedal.formulations.projection import VelocityConstraints

EXPLICIT = ("dopri5", "rk4")


def named_method(method, options):
    """A method object from its name."""
    from daedal.methods.collocation import Collocation
    from daedal.methods.dassl import DASSL
    from daedal.methods.half_explicit import HEDOP5, HEM3, HEM4, HEM5, PHEM56, HalfExplicit
    from daedal.methods.modified_bdf import ModifiedBDF
    from daedal.methods.runge_kutta import DOPRI5, RK4

    kinds = (DASSL, PHEM56, HEM3, HEM4, HEM5, HEDOP5, DOPRI5, RK4, ModifiedBDF, Collocation)
    known = {kind.__name__.lower(): kind for kind in kinds} | {ModifiedBDF.name: ModifiedBDF}
    if isinstance(method, (*kinds, HalfExplicit)):
        if options:
            raise InvalidProblemError(
                f"options {', '.join(options)} go with a method given by name; "
                f"here they belong inside {type(method).__name__}(...)"
            )
        return method
    given_class = isinstance(method, type) and method in kinds
    if given_class or (isinstance(method, str) and method.lower() in known):
        kind = method if given_class else known[method.lower()]
        unknown = [name for name in options if name not in kind.__dataclass_fields__]
        if unknown:
            raise InvalidProblemError(
                f"unknown option {', '.join(unknown)}; options of solve and of {kind.__name__} "
                f"({', '.join(kind.__dataclass_fields__)}) are accepted"
            )
        return kind(**options)
    if isinstance(method, str):
        close = difflib.get_close_matches(method.lower(), known, n=1, cutoff=0.6)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise InvalidProblemError(f"unknown method '{method}'; {hint}known: auto, {', '.join(known)}")
    raise InvalidProblemError(f"method must be a name or a method object such as DASSL(), got {method!r}")


def second_order_method(method, options):
    """A method for a SecondOrderDAE: one of second order, or DASSL for the first-order form."""
    if isinstance(method, str) and method == "auto":
        method = "modified_bdf"
    chosen = named_method(method, options)
    if not getattr(chosen, "second_order", False) and chosen.name != "dassl":
        raise InvalidProblemError(
            f"{type(chosen).__name__} cannot solve a SecondOrderDAE; use modified_bdf or collocation, or dassl for its "
            "first-order form. A mechanism stated as MechanicalSystem can be solved by all of them"
        )
    return chosen


def _fastest(measures) -> float:
    """The rate that limits the steps of an explicit method: of decay, of turning constraint forces, of vibration."""
    return float(np.nanmax((measures.order * measures.V_B, abs(measures.sigF), measures.omegaF / VIBRATION_BOUND)))


class Choice:
    """Formulation and method of the current segment, and whether another segment follows.

    The automatic choice begins with the half-explicit method PHEM56, which is right for all that is not stiff. When its
    steps meet the limit of stability, the measures of Ascher and Petzold's decision procedure say which stiff form goes
    on: the stabilised index-2 form, or projected invariants along C^T where constraint forces that turn quickly would
    make the former behave like an explicit method. The former is watched for that. Now and then it is asked whether the
    stiffness is over; then the half-explicit method goes on.
    """

    def __init__(self, assembly, formulation, method, request):
        from daedal.methods.dassl import DASSL
        from daedal.methods.half_explicit import PHEM56
        from daedal.methods.runge_kutta import DOPRI5

        self._assembly = assembly
        self.notes: list[str] = []
        self.changed = True
        self.watches_amplification = False
        self.step_limit: int | None = None  # steps of a stiff method until the next question whether it is needed
        self._explicit: tuple | None = None  # what to go back to
        self._steps_left = request.max_steps
        if formulation is None or (isinstance(formulation, str) and formulation == "none"):
            if assembly.n_c:
                raise InvalidProblemError(
                    f"formulation={formulation!r} is for systems without constraints; 'index3' takes constraints as "
                    "they stand, 'auto' chooses"
                )
            formulation = "auto"
        any_form = isinstance(formulation, str) and formulation == "auto"
        any_method = isinstance(method, str) and method == "auto"
        self.automatic = any_form and any_method
        projection = CoordinateProjection(assembly.output_weight)
        if self.automatic:
            half_explicit = assembly.n_c > 0 and not assembly.linear
            method = PHEM56(norm="max", stop_when_stiff=True) if half_explicit else DOPRI5(stop_when_stiff=True)
        if any_form and method.name == "half_explicit":
            positions = slice(0, assembly.nx)
            rtol, atol = (0.05 * float(tolerance[positions].min()) for tolerance in (request.rtol, request.atol))
            self.method = method
            self.formulation = VelocityConstraints(assembly.output_weight, method.projection, rtol, max(atol, 1e-300))
        elif any_form:
            self.method = method
            direct = "index3" if getattr(method, "second_order", False) else "ggl"
            self.formulation = projection if method.name in EXPLICIT else named_formulation(direct)
        else:
            self.formulation = named_formulation(formulation)
            if not any_method and method.name == "half_explicit":
                raise InvalidProblemError(
                    f"{type(method).__name__} imposes the constraints itself, on the velocity level: leave formulation "
                    "out, or take another method (dassl, or dopri5 for forms that are ordinary differential equations)"
                )
            explicit = self.formulation.ordinary and not self.formulation.stiff
            self.method = method if not any_method else (DOPRI5() if explicit else DASSL())

    def goes_on(self, segment) -> bool:
        """Whether the run has to go on in another segment; prepares it."""
        from daedal.formulations.monitor import AMPLIFYING, NEARLY_SINGULAR, PASSED_SINGULAR
        from daedal.kernels.system import HOOK_STOP
        from daedal.methods.dassl_run import HOOK_STOPPED, MAX_STEPS
        from daedal.methods.one_step import STIFF

        self._steps_left -= segment.stats.steps
        if segment.outcome.reason == STIFF:
            self._look_into_stiffness(segment)
            return True
        if segment.outcome.reason == MAX_STEPS and self.step_limit is not None and self._steps_left > 0:
            self._look_for_the_end_of_stiffness(segment)
            return True
        if segment.outcome.reason != HOOK_STOPPED:
            return False
        if segment.signal == HOOK_STOP:
            return True
        if segment.signal in (PASSED_SINGULAR, NEARLY_SINGULAR):
            segment.singular = self._singular_point(segment, passed=segment.signal == PASSED_SINGULAR)
            self.changed = True
            return segment.singular is None
        if segment.signal == AMPLIFYING:
            t = float(segment.outcome.integrator["t"])
            self._change(named_formulation("projected_invariants"), self.method)
            self.notes.append(f"From t = {t:.4g} on projected invariants: the constraint forces turn quickly.")
            return True
        return False

    def _change(self, formulation, method):
        self.changed = True
        self.watches_amplification = formulation.name == "ggl"
        self.formulation, self.method = formulation, method

    def _look_into_stiffness(self, segment):
        """Go on with a stiff method if stability limits the explicit one, in the form that the measures ask for."""
        from daedal.analysis.measures import decision
        from daedal.methods.dassl import DASSL

        t, h, measures = self._measure(segment)
        form = named_formulation("ggl")
        if measures is not None:
            if not h * _fastest(measures) >= STABILITY_BOUND:
                self.changed = True
                self.method = replace(self.method, stop_when_stiff=PATIENCE)
                return
            if decision([measures], STIFF_GAIN * h).case == 4:
                form = named_formulation("projected_invariants")
        self._explicit = self.formulation, replace(self.method, stop_when_stiff=True)
        self.step_limit = STEPS_BEFORE_QUESTION
        self._change(form, DASSL())
        self.notes.append(f"Stiff from t = {t:.4g} on: {type(form).__name__} with DASSL.")

    def _look_for_the_end_of_stiffness(self, segment):
        """Go back to the explicit method if it could take the steps of the stiff one; otherwise ask again later."""
        t, h, measures = self._measure(segment)
        if self._explicit is not None and measures is not None and h * _fastest(measures) < STIFFNESS_OVER:
            self.step_limit = None
            self._change(*self._explicit)
            self.notes.append(f"No longer stiff from t = {t:.4g} on: {type(self.method).__name__}.")
        else:
            self.step_limit = 2 * (self.step_limit or STEPS_BEFORE_QUESTION)
            self.changed = True

    def _measure(self, segment):
        """The time, the last step and the measures at the end of a segment."""
        from daedal.analysis.measures import measure

        integrator = segment.outcome.integrator
        t = float(integrator["t"])
        state = segment.reduction.states(np.array([t]), integrator.array("phi")[0][:, None].copy())[0]
        return t, abs(float(integrator["h_last"])), measure(self._assembly, t, state)

    def _singular_point(self, segment, passed: bool):
        """The singular configuration that the monitor found, or None if it was a false alarm."""
        from daedal.analysis.singular import SingularPoint, find_passage, smallest_singular_value

        monitor, dense = segment.reduction.monitor, segment.outcome.dense
        t0, t1 = float(monitor["t_before"]), float(monitor["t"])
        last = segment.outcome.integrator.array("phi")[0]

        def path(t):
            y = last if dense is None else dense.evaluate_steps(np.array([t]), np.array([dense.ends.size - 1]))[0][0]
            state = segment.reduction.states(np.array([t]), np.ascontiguousarray(y[:, None]))
            return state[0]

        if passed:
            if dense is not None:
                return find_passage(self._assembly, path, t0, t1)
            t1 = t0
        norms = np.where(monitor.array("norms") > 0.0, monitor.array("norms"), 1.0)
        return SingularPoint(t1, path(t1), *smallest_singular_value(self._assembly, t1, path(t1), norms))
