"""Chains that fall, of bodies, joints and contacts."""

import math
from functools import cache
from itertools import pairwise

import numpy as np

from daedal.library.iftomm import GRAVITY
from daedal.library.model import Model, Reference, check_positive, model
from daedal.multibody import Body, Contact, Joint, Planar, Revolute, ground
from daedal.multibody import Model as Machine

LENGTH = 0.5  # m, of a link
ANGLES = (-0.4, 0.3, 0.5)  # rad, of the first link with the floor, and of each other one with the one before


@cache
def _falling_chain() -> Machine:
    links = [Body.rod(f"link {k + 1}", length=LENGTH, mass=1.0) for k in range(len(ANGLES))]
    joints: list[Joint] = [Planar("flight", ground, links[0].start)]
    joints += [Revolute(f"joint {k + 1}", a.end, b.start) for k, (a, b) in enumerate(pairwise(links))]
    points = [links[0].start, *(link.end for link in links)]
    floor = [Contact(f"floor {k + 1}", point, ground, normal="y") for k, point in enumerate(points)]
    return Machine(*joints, *floor, gravity=(0.0, -GRAVITY), planar=True, name="Falling chain")


@model(
    title="Chain that falls on the floor",
    source="closed form of the first impact, and of the rest by the conserved horizontal momentum",
    description="Three links fall and hit a smooth floor, joint after joint. Each plastic impact passes through the "
    "whole chain and throws other joints up again; at last it lies stretched out below its centre of mass.",
    equations=r"M(q)\,q'' = f(q, q') + W(q) \Lambda,\qquad 0 \le g_N(q) \perp \Lambda \ge 0,\qquad \dot g_N^+ = 0",
)
def falling_chain(height: float = 0.35, t1: float = 1.0) -> Model:
    r"""A chain of three links of 0.5 m and 1 kg that falls from rest on a smooth floor.

    Parameters
    ----------
    height : float
        Of the lowest point at the start (m).
    t1 : float
        End time (s); a reference is known from 1 on with the default height.

    Notes
    -----
    Until the first impact at :math:`\sqrt{2 h / g}` the chain falls as a rigid body. The contacts are the four ends of
    the links, so there are 16 modes. ``model.extra`` has ``machine`` and ``first_impact``.

    From greater heights a link comes down with its ends hitting the floor in turn, at intervals that shrink to nothing;
    behind this point, where both ends touch and do not move, it is lifted off by the others or stays.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.falling_chain()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol.events[0].t:.6f} {model.extra['first_impact']:.6f}")
    0.267125 0.267125
    """
    check_positive(height=height, t1=t1)
    machine = _falling_chain()
    angles = np.cumsum(ANGLES)
    ends = LENGTH * np.cumsum([np.cos(angles), np.sin(angles)], axis=1)
    center = float(np.mean(ends[0] - 0.5 * LENGTH * np.cos(angles)))
    n = len(ANGLES)
    at_rest = np.zeros(2 * (n + 2))
    at_rest[0] = center - 0.5 * n * LENGTH
    lowest = min(0.0, float(np.min(ends[1])))
    problem = machine.problem()
    rests = height == 0.35 and t1 >= 1.0
    return Model(
        problem=problem,
        t_span=(0.0, float(t1)),
        initial=("free", (np.array([0.0, height - lowest, *ANGLES]), np.zeros(n + 2))),
        index=3,
        reference=Reference(float(t1), at_rest, "at rest below the centre of mass", 1e-14) if rests else None,
        options={"rtol": 1e-7, "atol": 1e-9},
        plot={"variables": list(machine.layout().names)},
        extra={"machine": machine, "first_impact": math.sqrt(2.0 * height / GRAVITY)},
    )
