"""The record of a run, which the loop of all methods and their steps share."""

from __future__ import annotations

from daedal.events.switching import ROOTS
from daedal.kernels.compilation import inlined
from daedal.kernels.convergence import NEWTON
from daedal.kernels.differences import LENGTH, ROWS
from daedal.kernels.records import ADDRESS, FLOAT, INTEGER, Struct, at, inline
from daedal.kernels.signatures import f64, i64
from daedal.kernels.system import SYSTEM

STEP = i64(i64)
"""The C signature of `begin` and `step` of a method: reason = step(run)."""

TASK = (
    ("t", FLOAT),
    ("h", FLOAT),  # 0 if it is to be chosen
    ("t0", FLOAT),
    ("t_end", FLOAT),
    ("t_stop", FLOAT),
    ("h_max", FLOAT),
    ("sign", INTEGER),
    ("max_steps", INTEGER),  # 0 if the steps may be as many as they are, as long as they advance
    ("fixed", INTEGER),  # whether steps are constant, without error control
    ("last_step", INTEGER),  # then
    ("each_step", INTEGER),  # whether every step is output
    ("n_times", INTEGER),  # else so many times
    ("next_time", INTEGER),
    ("times", ADDRESS),  # of numbers; ensembles of models with modes move it
    ("roots", at(ROOTS)),
    ("has_roots", INTEGER),
)
"""What changes from run to run: the first fields of RUN."""

RESULT = (
    ("number", INTEGER),  # of the slice
    ("stored", INTEGER),
    ("steps_stored", INTEGER),
    ("rows_stored", INTEGER),
    ("events_stored", INTEGER),
    ("steps", INTEGER),
    ("error_test_failures", INTEGER),
    ("newton_failures", INTEGER),
    ("h_last", FLOAT),
)
"""What Python wants to know after every slice: the next fields of RUN."""

_OF_SLICE = (
    ("dense", INTEGER),
    ("slots", INTEGER),
    ("slice", INTEGER),  # steps before the next return to Python
    ("out_t", f64["slots"]),
    ("out_y", f64["slots", "n"]),
    ("out_yp", f64["slots", "n"]),
    ("step_t", f64["slots"]),
    ("step_h", f64["slots"]),
    ("step_order", i64["slots"]),
    ("step_start", i64["slots"]),  # the first row of a step among those of all slices
    ("step_psi", f64["slots", ROWS]),
    ("rows", INTEGER),
    ("coefficients", f64["rows", "n"]),
    ("event_slots", INTEGER),
    ("event_t", f64["event_slots"]),
    ("event_fired", i64["event_slots", "roots.n"]),
    ("event_y", f64["event_slots", "n"]),
    ("event_yp", f64["event_slots", "n"]),
)

BUFFERS = Struct("BUFFERS", [("n", INTEGER), ("roots", at(ROOTS)), *_OF_SLICE])
"""The buffers of one slice, which a RUN has as its last fields."""

RUN = Struct(
    "RUN",
    [
        *TASK,
        *RESULT,
        ("n", INTEGER),
        ("system", at(SYSTEM)),
        ("method", ADDRESS),  # the record of the method
        ("begin", ADDRESS),
        ("step", ADDRESS),
        ("attempt", ADDRESS),  # of one-step methods
        ("accept", ADDRESS),
        # the step just taken: phi has a row for each coefficient of its polynomial, of which `degree` + 1 are in use
        ("phi", f64[ROWS, "n"]),
        ("psi", inline(FLOAT, LENGTH)),
        ("degree", INTEGER),
        ("order", INTEGER),  # of the step, for messages
        ("h_min", FLOAT),
        *[(name, f64["n"]) for name in ("y", "yp", "rtol", "atol", "inverse_weights")],
        ("included", f64["n"]),  # 1 for components that take part in the error test, else 0
        *[(name, f64["n"]) for name in ("error", "scale", "scratch")],
        ("slope", f64["n"]),  # y' at the end of a step that is tried
        ("correction", f64["n"]),  # of the last attempt, for messages
        # how the first step is chosen
        ("start_order", INTEGER),  # of an explicit method, or 0
        ("positions", INTEGER),  # of a mechanism whose y begins with (q, v), or 0
        # the step size control of one-step methods
        ("control_order", INTEGER),  # of the error estimate, plus one
        ("controller", INTEGER),
        ("kept_ratio", FLOAT),  # up to which the step stays as it is rather than grow
        ("error_of_step", FLOAT),  # in units of the tolerance
        ("least_error", FLOAT),  # for which the next step is chosen
        ("error_before", FLOAT),
        ("rejected", INTEGER),
        ("most_failures", INTEGER),  # of a step, or 0
        ("slope_known", INTEGER),
        ("stop_when_stiff", INTEGER),
        ("stiff_count", INTEGER),
        ("nonstiff_count", INTEGER),
        ("newton", NEWTON),  # of implicit methods
        # what failed
        ("zero_weight", INTEGER),
        ("cj", FLOAT),
        ("attempt_newton_failures", INTEGER),
        ("attempt_error_failures", INTEGER),
        ("first_step_failures", INTEGER),
        ("jacobian_unevaluable", INTEGER),
        # where the loop stands
        ("started", INTEGER),
        ("pending", INTEGER),
        ("searching", INTEGER),
        ("found", INTEGER),
        ("t_low", FLOAT),
        ("t_limit", FLOAT),
        ("t_seen", FLOAT),  # where the advance was looked at
        ("steps_seen", INTEGER),
        ("rows_before", INTEGER),  # of coefficients, in earlier slices
        *_OF_SLICE,
    ],
)


@inlined
def differences(run):
    """The coefficients phi of the polynomial of the last step, one row each."""
    return run.phi
