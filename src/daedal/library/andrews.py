"""Andrews' squeezer of bodies and joints, with the data of the equations in :mod:`daedal.library.squeezer`."""

from functools import cache

import numpy as np

from daedal.library import squeezer as data
from daedal.library.iftomm import IFTOMM
from daedal.library.machine_model import machine_model
from daedal.library.model import Model, known, model
from daedal.multibody import Body, Motor, Revolute, Spring, Start, ground
from daedal.multibody import Model as Machine

CUT = ("E3", "E4", "E6")
JOINTS = ("O", "F", "B", "G", "A5", "H", "A7")  # of beta, Theta, gamma, Phi, delta, Omega, epsilon


@cache
def _andrews(torque: float) -> tuple[Machine, Start, list[int]]:
    k1 = Body("K1", data.M1, data.I1, center=(data.RA, 0.0))
    k2 = Body("K2", data.M2, data.I2, center=(-data.DA, 0.0))
    k3 = Body("K3", data.M3, data.I3, center=(data.SB, -data.SA))
    k4 = Body("K4", data.M4, data.I4, center=(0.0, data.EA - data.E))
    k5 = Body("K5", data.M5, data.I5, center=(data.TA, data.TB))
    k6 = Body("K6", data.M6, data.I6, center=(data.ZF - data.FA, 0.0))
    k7 = Body("K7", data.M7, data.I7, center=(data.UB, -data.UA))
    machine = Machine(
        Revolute("O", ground, k1),
        Revolute("F", k1.at(data.RR, 0.0), k2),
        Revolute("B", ground.at(data.XB, data.YB), k3),
        Revolute("A5", ground.at(data.XA, data.YA), k5),
        Revolute("G", k5.at(data.ZT, 0.0), k4),
        Revolute("A7", ground.at(data.XA, data.YA), k7),
        Revolute("H", k7.at(0.0, -data.U), k6),
        Revolute("E3", k2.at(-data.D, 0.0), k3.at(0.0, -data.SS)),
        Revolute("E4", k2.at(-data.D, 0.0), k4.at(0.0, -data.E)),
        Revolute("E6", k2.at(-data.D, 0.0), k6.at(data.ZF, 0.0)),
        Spring("spring", ground.at(data.XC, data.YC), k3.at(data.SD, -data.SC), stiffness=data.C0, length=data.L0),
        Motor("motor", "O", torque),
        planar=True,
        name="Andrews' squeezer",
    )
    layout = machine.layout(cut=CUT)
    order = [JOINTS.index(name) for name in layout.names]
    return machine, Start(np.array(data.START)[order], np.zeros(7), machine, layout), order


@model(
    title="Andrews' squeezer of bodies and joints (A03)",
    source=IFTOMM + ", problem A03; " + data.SOURCE,
    description="The seven-body mechanism, not as printed equations but as a machine of seven bodies, ten hinges, a "
    "spring and a motor. Cut at the joints in which four bodies meet, it has the coordinates of the equations in "
    "``seven_body`` and the same motion.",
)
def andrews_machine(torque: float = data.TORQUE, t1: float = 0.03, coordinates: str = "relative") -> Model:
    """Andrews' squeezing mechanism, built of bodies and joints; compare :func:`daedal.library.seven_body`.

    Parameters
    ----------
    torque : float
        Constant torque on the crank (N m).
    t1 : float
        End time (s); references are known for 0.025 and 0.03.
    coordinates : {"relative", "absolute"}
        Angles of the joints, or positions and angles of all bodies.

    Notes
    -----
    ``model.extra`` has ``machine``, and ``energy`` without the work of the motor.

    Examples
    --------
    >>> import daedal
    >>> model = daedal.library.andrews_machine()
    >>> sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    >>> print(f"{sol['O'][-1]:.6f} {daedal.library.seven_body().reference.y[0]:.6f}")
    15.810771 15.810771
    """
    machine, start, order = _andrews(float(torque))
    entry = known("seven_body", torque=torque, t1=t1)
    if entry is not None:
        y = np.array(entry["y"]).reshape(2, 7)[:, order]
        entry = {"y": y.ravel(), "source": entry["source"], "accuracy": entry["accuracy"]}
    return machine_model(machine, start, t1, coordinates=coordinates, cut=CUT, known=entry)
