"""From a checked request to its solution."""

from __future__ import annotations

from math import inf

from daedal.drive.request import Request


def solve_request(request: Request):
    """The solution of a request."""
    from daedal.solve import solve

    settings = request.settings
    return solve(
        request.problem,
        request.span,
        request.initial,
        method=settings.method,
        formulation=settings.formulation,
        rtol=settings.rtol,
        atol=settings.atol,
        t_eval=request.times,
        events=settings.events,
        progress=request.progress,
        max_steps=settings.max_steps,
        first_step=settings.first_step,
        max_step=None if settings.max_step == inf else settings.max_step,
        t_stop=request.t_stop,
        fixed_step=settings.fixed_step,
        dense_output=settings.dense_output,
        correct_initial=settings.correct_initial,
        **settings.options,
    )
