"""A solution in a notebook: a small table and a plot."""

import base64
import io
from typing import Any

import daedal
from daedal.tabular import Tabular
from daedal.viz.pages import render

_MOST_EVENTS = 10


def solution_html(sol: daedal.Solution | daedal.HybridSolution) -> str:
    """HTML for notebooks: how the run ended, what it cost, the first transitions, and a plot as an embedded image.

    Parameters
    ----------
    sol : daedal.Solution or daedal.HybridSolution

    Returns
    -------
    str
    """
    transitions: Any = sol.events[:_MOST_EVENTS] if isinstance(sol, daedal.HybridSolution) and len(sol.events) else None
    picture = io.BytesIO()
    if sol.t.size > 1:
        sol.plot(pyplot=False).savefig(picture, format="png", dpi=90)
    page = render(
        "notebook.html",
        summary=Tabular("ll", sol.summary()),
        message=sol.message,
        transitions=transitions and transitions._repr_html_(),
        picture=base64.b64encode(picture.getvalue()).decode("ascii"),
    )
    return str(page)
