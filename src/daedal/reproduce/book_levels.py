"""Brenan, Campbell and Petzold: what the text says about the curves of Figures 6.3.3 and 6.5.2."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import daedal
from daedal import library
from daedal.reproduce.printed_table import PrintedTable

Values = list[Mapping[str, Any] | None]
FLAME_TIMES = np.linspace(0.0, 0.29, 101)  # "at time intervals of .0029"


def control_histories(table: PrintedTable) -> Values:
    """Figure 6.3.3: where the curves begin, by the related system of index 1."""
    model = library.tppc2(form="index1")
    y0, _ = model.initial
    guess = np.where(model.problem.algebraic, 0.05, y0)
    start, _ = daedal.consistent_initial(model.problem, model.t_span[0], (guess, None))
    degrees = dict(zip(model.problem.names, start * 180.0 / math.pi))
    return table.each(lambda row: {"value": degrees[row["quantity"]]})


@cache
def flame_curves() -> tuple[np.ndarray, np.ndarray]:
    """The mesh and the temperatures of Figure 6.5.2: delta = 30 as printed, on a fixed mesh of 401 points."""
    model = library.flame(delta=30.0)
    sol = daedal.solve(model.problem, model.t_span, model.initial, t_eval=FLAME_TIMES, **model.options)
    return model.extra["x"], sol.y


def flame_figure(table: PrintedTable) -> Values:
    """Figure 6.5.2: levels and places."""
    x, temperature = flame_curves()
    rising = temperature[:, (FLAME_TIMES > 0.1) & (FLAME_TIMES < 0.2)]
    last = temperature[:, -1]
    found = {
        "where T is largest while it rises": float(np.max(x[np.argmax(rising, axis=0)])),
        "T at x = 0 in the end": last[0],
        "where T is 1.5 in the end": float(np.interp(-1.5, -last, x)),
    }
    return table.each(lambda row: {"value": found[row["quantity"]]})


TABLES = {"fig-6.3.3": control_histories, "fig-6.5.2": flame_figure}
