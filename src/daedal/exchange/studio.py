"""Live pages: a problem with its integrator in one HTML file, solved again while its sliders are dragged."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import daedal
from daedal.ensembles.gpu import MESSAGES
from daedal.errors import InvalidProblemError
from daedal.exchange.web_model import WebModel, check_problem, inputs_of, ranges, web_model
from daedal.problems import ODE, MechanicalSystem, SemiExplicitDAE
from daedal.problems.problem_sources import is_source

_FRAMES = 301  # minimum number of frames of the drawing
_MOST_STEPS = 200_000
_FEW = 6  # number of sliders above which the sliders of start values are hidden at first


def studio(
    problem: Any,
    t_span: Any,
    initial: Any = None,
    path: Any = "studio.html",
    *,
    sliders: Any = None,
    outputs: Any = None,
    drawing: Any = "auto",
    method: Any = "auto",
    rtol: Any = 1e-6,
    atol: Any = 1e-9,
    params: Any = None,
    labels: Mapping[str, str] | None = None,
    seconds: float | None = None,
    title: str = "",
) -> Path:
    r"""Write a live page, which solves the problem again when sliders of parameters and start values are moved.

    The page is one file that works offline, on a phone and without a mouse. It contains the functions of the problem,
    their exact derivatives and the integrator as JavaScript, translated from the C code for GPUs and FMUs: the same
    tableau, step size control and projection onto the constraints.

    Parameters
    ----------
    problem : ODE, MassMatrixDAE, ImplicitDAE, SemiExplicitDAE, MechanicalSystem, Model, Circuit, ...
        The problem; its functions must be traceable. A problem of index 2 or higher that is not a mechanism is first
        reduced to index 1.
    t_span : (float, float)
        The time interval.
    initial : object
        Start values, as for :func:`daedal.solve`. The page makes them consistent by projection.
    path : path
        The file to write, with the extension ``.html``.
    sliders : list of str or mapping, optional
        Names of the parameters and start values that have sliders, or a mapping from names to ranges (low, high). By
        default all have sliders.
    outputs : mapping, optional
        Further quantities to plot, functions of the state as for events: ``{"energy": lambda t, q, v: ...}``.
    drawing : daedal.viz.Drawing or None, optional
        The drawing of a mechanism, as for ``sol.animate``; found or inferred by default. Its functions may take the
        parameters, ``(t, q, p) -> (x, y)``, so that the drawing follows them. None shows only curves.
    method : str or method
        ``"auto"`` selects DOPRI5 for mechanisms and ODEs, and a Rosenbrock method for DAEs. ``"rosenbrock"`` suits
        stiff ODEs.
    rtol, atol : float or array
        Tolerances.
    params : object, optional
        Parameters that replace those of the problem.
    labels : mapping, optional
        Names displayed for parameters, such as entries of arrays: ``{"p[0]": "torque"}``.
    seconds : float, optional
        Duration of the motion at normal speed.
    title : str
        Heading of the page.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    InvalidProblemError
        If a page cannot solve the problem; the message gives the reason and an alternative.

    Notes
    -----
    Mechanisms :math:`M q'' = f - G^T \lambda,\; g(q) = 0` are integrated as :math:`q'' = a(t, q, v)`, and every step is
    projected in the norm of M. The page shows the largest :math:`|g|` and :math:`|G v + g_t|`. Inputs of the problem
    that are numbers can be controlled by the user: the model then runs in real time, and arrow keys or the pointer set
    them within the ranges of their sliders.

    Examples
    --------
    >>> import daedal
    >>> pendulum = daedal.MechanicalSystem([1.0, 1.0], lambda t, q, v, p: [0.0, -p["gravity"]],
    ...     lambda t, q, p: [q[0] ** 2 + q[1] ** 2 - p["length"] ** 2], n_q=2, n_constraints=1, names=["x", "y"],
    ...     params={"gravity": 9.81, "length": 1.0})
    >>> daedal.studio(pendulum, (0.0, 5.0), ([1.0, 0.0], [0.0, 0.0]), "pendulum.html", title="Pendulum").name
    'pendulum.html'
    """
    target = _checked_path(path)
    options = {"outputs": outputs, "drawing": drawing, "method": method, "rtol": rtol, "atol": atol, "params": params}
    options["labels"] = labels
    return _written(_page(problem, t_span, initial, sliders=sliders, seconds=seconds, title=title, **options), target)


def studio_of(sol: Any, problem: Any, path: Any, **options: Any) -> Path:
    """Write the page of a solution; see :meth:`daedal.Solution.studio`."""
    system = problem if problem is not None else getattr(sol, "system", None)
    if system is None:
        raise InvalidProblemError(
            f"a {type(sol).__name__} does not contain its problem. Remedy: use sol.studio(path, problem), or "
            "daedal.studio(problem, t_span, initial, path)"
        )
    span = float(sol.t[0]), float(sol.t[-1])
    start = sol.y[:, 0]
    if isinstance(system, MechanicalSystem):
        n = system.n_q
        initial: Any = (start[:n], start[n : 2 * n], *([start[2 * n :]] if system.n_r else []))
    else:
        initial = (start[: system.n_y], start[system.n_y :]) if isinstance(system, SemiExplicitDAE) else (start, None)
        initial = start if isinstance(system, ODE) else initial
    target = _checked_path(path)
    page = _page(system, span, initial, sol=sol, **options)
    return _written(page, target)


def _checked_path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidProblemError(f"path must be the path of a file, got {path!r}")
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidProblemError(f"path={str(path)!r} must end in .html")
    return target


def _written(page: str, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")
    return target


def _page(
    problem: Any,
    t_span: Any,
    initial: Any,
    *,
    sliders: Any = None,
    outputs: Any = None,
    drawing: Any = "auto",
    method: Any = "auto",
    rtol: Any = 1e-6,
    atol: Any = 1e-9,
    params: Any = None,
    labels: Mapping[str, str] | None = None,
    seconds: float | None = None,
    title: str = "",
    sol: Any = None,
) -> str:
    from daedal.viz.animate import planar_scene
    from daedal.viz.pages import render

    if is_source(problem):
        source, problem = problem, problem.as_problem(initial)
        initial = source.as_initial(initial, float(t_span[0]), params)
        title = title or getattr(source, "name", "")
    if initial is None:
        raise InvalidProblemError("initial is missing: give start values, as for daedal.solve")
    if params is not None:
        problem = problem.with_params(params)
    check_problem(problem)
    title = title or getattr(getattr(problem, "model", None), "name", "") or "Live page"
    if sol is None:
        sol = daedal.solve(problem, t_span, initial, rtol=1e-6, atol=1e-9)
    span = float(sol.t[0]), float(sol.t[-1])
    scene = planar_scene(sol, drawing, problem, _FRAMES)
    model = web_model(
        problem,
        span[0],
        initial,
        drawing=None if scene is None else scene.drawing,
        **{"outputs": outputs, "method": method, "rtol": rtol, "atol": atol, "labels": labels},
    )
    data = {**_picture(scene, span, seconds), **model.data, "t": list(span), "most_steps": _MOST_STEPS}
    data["messages"] = {str(code): text for code, text in MESSAGES.items()}
    data["sliders"] = ranges(model, sol.y.T, sliders)
    data["inputs"] = inputs_of(problem, data["sliders"])
    page = render(
        "studio.html",
        "daedal.exchange",
        kind="curves" if scene is None else "studio",
        data=data,
        script=script_of(model),
        title=title,
        method=model.method,
        rtol=f"{float(np.min(rtol)):g}",
        open=not any(one["kind"] == "params" for one in data["sliders"]) or len(data["sliders"]) <= _FEW,
    )
    return str(page)


def script_of(model: WebModel) -> Any:
    """The script of a model, for verbatim insertion."""
    from markupsafe import Markup

    return Markup(model.script)


def _picture(scene: Any, span: tuple[float, float], seconds: float | None) -> dict[str, Any]:
    """Data of the player, with the drawing if there is one."""
    from daedal.viz.animate import playing_time, scene_data, scene_frame

    shown = playing_time(np.array(span), seconds)
    if scene is None:
        return {"frames": _FRAMES, "seconds": round(shown, 3), "wheels": []}
    return {**scene_data(scene, shown), "frame": scene_frame(scene)}
