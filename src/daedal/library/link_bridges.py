"""Bridges and chains of many links, of bodies and joints."""

from functools import cache

import numpy as np
from scipy.optimize import brentq

import daedal
from daedal.library.iftomm import GRAVITY
from daedal.library.machine_model import machine_model
from daedal.library.model import Model, check_positive, known, model
from daedal.multibody import Body, Revolute, Start, ground
from daedal.multibody import Model as Machine

SPAN, SAG = 10.0, 1.2  # m between the supports; length of the links together, in units of the span
MASS = 100.0  # kg of all links together


def hanging_angles(n: int, load: float) -> np.ndarray:
    r"""Angles of n equal links that hang between supports of equal height, with a load in the middle.

    The moments about an end of link i balance if :math:`H \tan\vartheta_i` is the vertical force in its middle, with
    the horizontal pull H; the links reach from one support to the other: :math:`\sum_i \cos\vartheta_i = n / 1.2`.
    """
    place = np.arange(n) - 0.5 * (n - 1)
    vertical = MASS / n * GRAVITY * place + 0.5 * load * np.sign(place)

    def gap(pull):
        return np.sum(np.cos(np.arctan2(vertical, pull))) - n / SAG

    weight = MASS * GRAVITY + load
    return np.arctan2(vertical, brentq(gap, 1e-3 * weight, 1e3 * weight, xtol=1e-14 * weight, rtol=1e-15))


@cache
def _link_bridge(n: int, load: float) -> tuple[Machine, Start, Start]:
    links = [Body.rod(f"link {i + 1}", length=SAG * SPAN / n, mass=MASS / n) for i in range(n)]
    joints = [Revolute("support 1", ground, links[0].start)]
    joints += [Revolute(f"joint {i}", links[i - 1].end, links[i].start) for i in range(1, n)]
    joints += [Revolute("support 2", links[-1].end, ground.at(SPAN, 0.0))]
    machine = Machine(*joints, gravity=(0.0, -GRAVITY), planar=True, name="Bridge of links")
    layout = machine.layout(cut=("support 2",))
    loaded, rest = (
        Start(np.diff(hanging_angles(n, force), prepend=0.0), np.zeros(n), machine, layout) for force in (load, 0.0)
    )
    return machine, loaded, rest


@model(
    title="Bridge of links",
    source="closed form of the start: balance of moments of each link (the catenary of links)",
    description="Links between two supports of equal height hang at rest with a load in the middle, which falls off. "
    "The shape before that is known in closed form, for any number of links.",
)
def link_bridge(n: int = 6, load: float = 500.0, t1: float = 2.0, coordinates: str = "relative") -> Model:
    """A bridge of `n` links, 12 m and 100 kg in all, between supports 10 m apart, when its load falls off.

    Parameters
    ----------
    n : int
        Number of links, even. Of more than two dozen links, the equations are evaluated by compiled loops, not as
        straight-line code. The highest frequencies grow with n: take a short time for a bridge of 1000 links.
    load : float
        The force on the joint in the middle before the start (N).
    t1 : float
        End time (s); a reference is known for 2 with the other defaults.
    coordinates : {"relative", "absolute"}
        Angles of the joints, or positions and angles of all links.

    Notes
    -----
    ``model.extra`` has ``machine``, ``energy`` and ``rest``, the position of equilibrium without the load.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.link_bridge()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> energy = model.extra["energy"](sol.q, sol.v)
    >>> bool(abs(energy - energy[0]).max() < 1e-4)
    True
    """
    check_positive(n=n)
    if n % 2 or n < 4:
        raise daedal.InvalidProblemError(
            f"n={n!r} must be even and at least 4: the load hangs at the joint in the middle"
        )
    machine, start, rest = _link_bridge(int(n), float(load))
    return machine_model(
        machine,
        start,
        t1,
        coordinates=coordinates,
        cut=("support 2",),
        known=known("link_bridge", n=n, load=load, t1=t1),
        extra={"rest": rest},
    )
