"""The record of a run, shared by the loop of all methods and their steps."""

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
    ("h", FLOAT),  # 0 for the automatic choice
    ("t0", FLOAT),
    ("t_end", FLOAT),
    ("t_stop", FLOAT),
    ("h_max", FLOAT),
    ("sign", INTEGER),
    ("max_steps", INTEGER),  # 0 for no limit, provided that the steps advance
    ("fixed", INTEGER),  # whether steps are constant, without error control
    ("last_step", INTEGER),  # the number of constant steps
    ("each_step", INTEGER),  # whether every step is output
    ("n_times", INTEGER),  # number of output times, if not every step is output
    ("next_time", INTEGER),
    ("times", ADDRESS),  # index into the output times; ensembles of models with modes move it
    ("roots", at(ROOTS)),
    ("has_roots", INTEGER),
)
"""Fields that change from run to run: the first fields of RUN."""

RESULT = (
    ("number", INTEGER),  # number of the slice
    ("stored", INTEGER),
    ("steps_stored", INTEGER),
    ("rows_stored", INTEGER),
    ("events_stored", INTEGER),
    ("steps", INTEGER),
    ("error_test_failures", INTEGER),
    ("newton_failures", INTEGER),
    ("h_last", FLOAT),
)
"""Fields read by Python after every slice: the next fields of RUN."""

_OF_SLICE = (
    ("dense", INTEGER),
    ("slots", INTEGER),
    ("slice", INTEGER),  # number of steps before the next return to Python
    ("out_t", f64["slots"]),
    ("out_y", f64["slots", "n"]),
    ("out_yp", f64["slots", "n"]),
    ("step_t", f64["slots"]),
    ("step_h", f64["slots"]),
    ("step_order", i64["slots"]),
    ("step_start", i64["slots"]),  # the first row of a step, counted over all slices
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
"""The buffers of one slice: the last fields of a RUN."""

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
        ("attempt", ADDRESS),  # attempt of one-step methods
        ("accept", ADDRESS),
        # the step just taken: phi has a row for each coefficient of its polynomial, of which `degree` + 1 are in use
        ("phi", f64[ROWS, "n"]),
        ("psi", inline(FLOAT, LENGTH)),
        ("degree", INTEGER),
        ("order", INTEGER),  # order of the step, for messages
        ("h_min", FLOAT),
        *[(name, f64["n"]) for name in ("y", "yp", "rtol", "atol", "inverse_weights")],
        ("included", f64["n"]),  # 1 for components in the error test, otherwise 0
        *[(name, f64["n"]) for name in ("error", "scale", "scratch")],
        ("slope", f64["n"]),  # y' at the end of an attempted step
        ("correction", f64["n"]),  # correction of the last attempt, for messages
        # choice of the first step
        ("start_order", INTEGER),  # order of an explicit method, or 0
        ("positions", INTEGER),  # number of positions of a mechanism whose y begins with (q, v), or 0
        # step size control of one-step methods
        ("control_order", INTEGER),  # order of the error estimate, plus one
        ("controller", INTEGER),
        ("kept_ratio", FLOAT),  # the step size is kept unless it would grow by more than this ratio
        ("error_of_step", FLOAT),  # estimated error of the attempt, relative to the tolerance
        ("least_error", FLOAT),  # smallest error used to choose the next step
        ("error_before", FLOAT),
        ("rejected", INTEGER),
        ("most_failures", INTEGER),  # largest number of failures in one step; 0 for no limit
        ("slope_known", INTEGER),
        ("stop_when_stiff", INTEGER),
        ("stiff_count", INTEGER),
        ("nonstiff_count", INTEGER),
        ("newton", NEWTON),  # Newton data of implicit methods
        # failures
        ("zero_weight", INTEGER),
        ("cj", FLOAT),
        ("attempt_newton_failures", INTEGER),
        ("attempt_error_failures", INTEGER),
        ("first_step_failures", INTEGER),
        ("jacobian_unevaluable", INTEGER),
        # position of the loop
        ("started", INTEGER),
        ("pending", INTEGER),
        ("searching", INTEGER),
        ("found", INTEGER),
        ("t_low", FLOAT),
        ("t_limit", FLOAT),
        ("t_seen", FLOAT),  # start of the current progress check
        ("steps_seen", INTEGER),
        ("rows_before", INTEGER),  # number of coefficient rows in earlier slices
        # the arcs after the first, between known times at which parameters change; see `Task.arcs`
        ("arcs", INTEGER),
        ("arc", INTEGER),  # number of these arcs that have started
        ("arc_rows", ADDRESS),
        ("parameters", ADDRESS),
        ("n_parameters", INTEGER),
        *_OF_SLICE,
    ],
)


@inlined
def differences(run):
    """The coefficients phi of the polynomial of the last step, one per row."""
    return run.phi
