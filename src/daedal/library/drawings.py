"""How the mechanisms of the library are drawn.

A drawing depends on the equations and their parameters only, so that a system finds its own: by the function of the
library that it has as constraint, velocity constraint, force or residual. Models with modes are known by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import daedal
from daedal.library import mode_drawings, plane_drawings, space_drawings
from daedal.viz import Drawing


def drawing_of(model: Any) -> Drawing | None:
    """The drawing of a model or problem of the library; None for those that are not mechanisms.

    Parameters
    ----------
    model : daedal.library.Model or a problem
        Models with modes are known by their names only, other mechanisms by their problems, too.

    Returns
    -------
    daedal.viz.Drawing or None

    Examples
    --------
    >>> import daedal
    >>> from daedal.library.drawings import drawing_of
    >>> drawing_of(daedal.library.crank_slider()).traces
    ('middle',)
    >>> drawing_of(daedal.library.robertson()) is None
    True
    """
    if isinstance(model, daedal.library.Model):
        if model.name in _WITH_MODES:
            return _WITH_MODES[model.name](model)
        model = model.problem
    for part in ("constraint", "velocity_constraint", "force", "residual"):
        function: Any = getattr(model, part, None)
        function = getattr(function, "py_func", function)
        room, _, module = str(getattr(function, "__module__", "")).rpartition(".")
        if room == "daedal.library":
            factory = _DRAWINGS.get(f"{module}.{function.__name__}")
            if factory is not None:
                return factory(model)
    return None


_WITH_MODES: dict[str, Callable[[Any], Drawing]] = {
    "bouncing_ball": mode_drawings.ball,
    "bowed_string": lambda model: plane_drawings.string(model.problem.system),
    "breaking_rope": mode_drawings.rope,
    "crash_pendulum": mode_drawings.crash,
    "friction_crank_slider": mode_drawings.rubbing_slider,
    "friction_oscillator": mode_drawings.oscillator,
    "painleve_rod": mode_drawings.rod_on_floor,
    "sliding_ladder": mode_drawings.ladder,
    "stick_slip_block": mode_drawings.block,
}
_DRAWINGS: dict[str, Callable[[Any], Drawing]] = {
    "car_axis.axis_constraint": plane_drawings.car_axis,
    "chains.link_lengths": plane_drawings.chain,
    "flames.residual": plane_drawings.flame,
    "mechanisms.joints": plane_drawings.rods,
    "mechanisms.pivot": plane_drawings.rods,
    "mechanisms.slider": plane_drawings.crank_slider,
    "moving_constraint.turning_constraint": plane_drawings.turning_line,
    "nonholonomic.bowl": lambda system: space_drawings.bowl(0.5, 1.4, blade=True),
    "nonholonomic.edge": plane_drawings.skate,
    "nonholonomic.rolling": space_drawings.disc,
    "particles.paraboloid": lambda system: space_drawings.bowl(1.0, 1.3, blade=False),
    "particles.rod": space_drawings.pendulum,
    "pendulums.ggl_residual": lambda problem: plane_drawings.plane_pendulum(1.0),
    "pendulums.index1_residual": lambda problem: plane_drawings.plane_pendulum(1.0),
    "pendulums.index2_residual": lambda problem: plane_drawings.plane_pendulum(1.0),
    "pendulums.index3_residual": lambda problem: plane_drawings.plane_pendulum(1.0),
    "second_order_examples.body_residual": lambda problem: plane_drawings.bead(),
    "second_order_examples.circle": lambda system: plane_drawings.bead(),
    "second_order_examples.circle_residual": lambda problem: plane_drawings.bead(),
    "second_order_examples.half_circle": lambda system: plane_drawings.bead(),
    "squeezer.loops": plane_drawings.seven_body,
    "truck.joint": plane_drawings.truck,
    "violin.string_force": plane_drawings.string,
}
