"""A solution in a notebook: a small table and a plot."""

from __future__ import annotations

import base64
import html
import io

import daedal
from daedal.viz.solution import plot_solution

_CELL = "text-align: left; padding: 1px 12px 1px 0"


def solution_html(sol: daedal.Solution) -> str:
    """HTML for notebooks: how the run ended, what it cost, and a plot as an embedded image.

    Parameters
    ----------
    sol : daedal.Solution

    Returns
    -------
    str
    """
    rows = "".join(
        f'<tr><th style="{_CELL}">{html.escape(name)}</th><td style="{_CELL}">{html.escape(value)}</td></tr>'
        for name, value in sol.summary()
    )
    message = html.escape(sol.message).replace("\n", "<br>")
    picture = f'<img alt="plot of the solution" src="data:image/png;base64,{_png(sol)}">' if sol.t.size > 1 else ""
    return f'<div><table style="margin: 0">{rows}</table><p>{message}</p>{picture}</div>'


def _png(sol: daedal.Solution) -> str:
    figure = plot_solution(sol, pyplot=False)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=90)
    return base64.b64encode(stream.getvalue()).decode("ascii")
