"""Ready-made problems, each with its data, its source and a reference solution.

>>> import daedal
>>> daedal.library.names()[:3]
['body_on_circle', 'bouncing_ball', 'bowed_string']
>>> daedal.library.get("pendulum", form="index1").index
1
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

import daedal
from daedal.library.amplifiers import differentiator_cascade, four_resistor_amplifier
from daedal.library.car_axis import car_axis
from daedal.library.chains import chain_of_pendulums
from daedal.library.flames import flame
from daedal.library.friction_examples import bowed_string, friction_oscillator, relay_control, stick_slip_block
from daedal.library.friction_paradoxes import friction_crank_slider, painleve_rod
from daedal.library.heat import heat2d
from daedal.library.impact_examples import bouncing_ball, breaking_rope, crash_pendulum, sliding_ladder
from daedal.library.jay import jay_index2
from daedal.library.kinetics import robertson
from daedal.library.linear import Source
from daedal.library.linear_examples import ill_conditioned_constraints, linear_index2, nearly_index2
from daedal.library.mechanisms import crank_slider, double_pendulum, rod_pendulum
from daedal.library.model import Model, Reference
from daedal.library.moving_constraint import stability_example3
from daedal.library.networks import Branch, rc_circuit, rlc_network, sparse_tableau
from daedal.library.nonholonomic import knife_edge, knife_edge_on_paraboloid, rolling_disc
from daedal.library.particles import particle_on_paraboloid, planar_pendulum, spatial_pendulum
from daedal.library.pendulums import pendulum
from daedal.library.population import food_web
from daedal.library.second_order_examples import body_on_circle, order_reduction, particle_on_circle
from daedal.library.squeezer import seven_body
from daedal.library.stability import stability_example1, stability_example2
from daedal.library.switching_examples import degenerate_switch, switched_pulse, switched_ramp
from daedal.library.textbook import (
    coupled_derivatives,
    damped_oscillator,
    hessenberg_index2,
    index3_chain,
    linear_index1,
    prothero_robinson,
)
from daedal.library.trajectory import tppc2, tppc3
from daedal.library.transistor import transistor_amplifier
from daedal.library.truck import truck
from daedal.library.unicursal import unicursal_loop
from daedal.library.violin import ViolinRun, play_violin, violin_slip, violin_stick

_FACTORIES: dict[str, Callable[..., Model]] = {
    factory.__name__: factory
    for factory in (
        body_on_circle,
        bouncing_ball,
        bowed_string,
        breaking_rope,
        car_axis,
        chain_of_pendulums,
        coupled_derivatives,
        crank_slider,
        crash_pendulum,
        damped_oscillator,
        degenerate_switch,
        differentiator_cascade,
        double_pendulum,
        flame,
        food_web,
        four_resistor_amplifier,
        friction_crank_slider,
        friction_oscillator,
        heat2d,
        hessenberg_index2,
        ill_conditioned_constraints,
        index3_chain,
        jay_index2,
        knife_edge,
        knife_edge_on_paraboloid,
        linear_index1,
        linear_index2,
        nearly_index2,
        order_reduction,
        painleve_rod,
        particle_on_circle,
        particle_on_paraboloid,
        pendulum,
        planar_pendulum,
        prothero_robinson,
        rc_circuit,
        relay_control,
        rlc_network,
        robertson,
        rod_pendulum,
        rolling_disc,
        seven_body,
        sliding_ladder,
        spatial_pendulum,
        stability_example1,
        stability_example2,
        stability_example3,
        stick_slip_block,
        switched_pulse,
        switched_ramp,
        tppc2,
        tppc3,
        transistor_amplifier,
        truck,
        unicursal_loop,
        violin_slip,
        violin_stick,
    )
}

__all__ = [
    "Branch",
    "Model",
    "Reference",
    "Source",
    "ViolinRun",
    "get",
    "names",
    "play_violin",
    "sparse_tableau",
    *sorted(_FACTORIES),
]


def names() -> list[str]:
    """The names of all problems, in alphabetical order."""
    return sorted(_FACTORIES)


def get(name: str, **parameters: Any) -> Model:
    """The problem called `name`.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    **parameters
        Parameters of the problem, as in the function of the same name in this module.

    Returns
    -------
    Model

    Examples
    --------
    >>> import daedal
    >>> daedal.library.get("robertson", t1=40.0).t_span
    (0.0, 40.0)
    """
    if name not in _FACTORIES:
        close = difflib.get_close_matches(str(name), _FACTORIES, n=1, cutoff=0.4)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(names())}"
        raise daedal.InvalidProblemError(f"the library has no problem called '{name}'; {hint}")
    factory = _FACTORIES[name]
    known = inspect.signature(factory).parameters
    for parameter in parameters:
        if parameter not in known:
            offered = ", ".join(known) if known else "none"
            raise daedal.InvalidProblemError(f"'{name}' has no parameter '{parameter}'; its parameters: {offered}")
    return factory(**parameters)
