r"""A basic step of extrapolated Euler methods in compiled code.

The error of a step is the difference of the last two entries of a row or the error of the polynomial, whichever is
larger.
"""

from __future__ import annotations

from daedal.kernels.compilation import caller, entry, part
from daedal.kernels.records import floats, record_at
from daedal.kernels.system import HOOK_CHANGED
from daedal.methods.extrapolation.extrapolation_control import begin_table, count_polynomial, fill_table, next_step
from daedal.methods.extrapolation.extrapolation_euler import EXTRAPOLATION
from daedal.methods.extrapolation.extrapolation_output import interpolate, keep_polynomial, leave_out_noise
from daedal.methods.one_step import ATTEMPT, give_to_owner, size_of_error
from daedal.methods.partial_derivatives import after_first_look
from daedal.methods.run_record import RUN, STEP

_call = caller(ATTEMPT)


@entry(STEP)
def extrapolation_begin(address):
    """Choose the initial number of columns, and check, from the derivatives at the start, that the index is 0 or 1."""
    run = record_at(address, RUN)
    method = record_at(run.method, EXTRAPOLATION)
    begin_table(run, method)
    status = _call(method.linearise, address, run.t, run.h)
    f_y, f_yp = floats(method.f_y, method.entries), floats(method.f_yp, method.entries)
    return after_first_look(status, method, f_y, f_yp, run.n)


@entry(ATTEMPT)
def extrapolation_attempt(address, t, h):
    """Compute rows of the table until the error is small enough, or convergence is hopeless."""
    run = record_at(address, RUN)
    method = record_at(run.method, EXTRAPOLATION)
    if not method.jacobian_known:
        status = _call(method.linearise, address, t, h)
        if status != 0:
            return status
    return fill_table(run, method, address, t, h)


@entry(ATTEMPT)
def extrapolation_accept(address, t, h):
    """Store the polynomial of the step, and choose size and order of the next one."""
    run = record_at(address, RUN)
    return _accept(run.system, run, record_at(run.method, EXTRAPOLATION), t, h)


@entry(ATTEMPT)
def extrapolation_measure(address, t, h):
    """Compute the error of the last column, and of the polynomial if the former is small enough."""
    run = record_at(address, RUN)
    return _measure(run.system, run, record_at(run.method, EXTRAPOLATION), h)


@part
def _measure(system, run, method, h):
    leave_out_noise(run, method)
    run.error_of_step = size_of_error(system, run)
    if run.fixed or run.error_of_step <= 1.0:
        count_polynomial(run, method, interpolate(system, run, method, h))
    return 0


@part
def _accept(system, run, method, t, h):
    if system.hook != 0:
        status = give_to_owner(system, run, t, h)
        if status != 0 and status != HOOK_CHANGED:
            return status
    keep_polynomial(run, method, h)
    method.jacobian_known = 0
    if not run.fixed:
        next_step(run, method, h)
    return 0
