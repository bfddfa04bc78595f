"""Heun's method, as a user would add it: one file, one compiled function, one class."""

from dataclasses import dataclass

from daedal.kernels.compilation import entry
from daedal.kernels.records import record_at
from daedal.kernels.system import rate
from daedal.methods.base import Method
from daedal.methods.one_step import ATTEMPT, size_of_error
from daedal.methods.run import OneStepRun
from daedal.methods.run_record import RUN, differences


@entry(ATTEMPT)
def heun_attempt(address, t, h):
    """y_1 = y_0 + h/2 (f(t_0, y_0) + f(t_1, y_0 + h f(t_0, y_0))); the explicit Euler method estimates its error."""
    run = record_at(address, RUN)
    system, y, error = run.system, run.y, run.error
    start, first, last = differences(run)[0], run.yp, run.slope
    status = rate(system, run.t, start, first)
    if status != 0:
        return status
    for i in range(run.n):
        y[i] = start[i] + h * first[i]
    status = rate(system, t, y, last)
    if status != 0:
        return status
    for i in range(run.n):
        y[i] = start[i] + 0.5 * h * (first[i] + last[i])
        error[i] = 0.5 * h * (last[i] - first[i])
    if not run.fixed:
        run.error_of_step = size_of_error(system, run)
    return 0


@dataclass(frozen=True)
class Heun(Method):
    """Order 2, for formulations that are ordinary differential equations."""

    name = "heun"
    needs = ("rate",)
    explicit = True
    max_order = 2

    def prepare(self, equations):
        return OneStepRun(self, equations, attempt=heun_attempt, order=2)
