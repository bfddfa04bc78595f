"""Motors, actuators and controllers: forces as functions of time and motion, possibly with states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import positive
from daedal.multibody.force import Force, called, function, joint_name, number_or_function, title, two_frames
from daedal.multibody.spring import line
from daedal.problems.checks import check_finite, check_real, set_checked


@dataclass(frozen=True, eq=False, repr=False)
class Motor(Force):
    r"""A torque at a joint (or a force, along a coordinate that is a displacement).

    Parameters
    ----------
    name : str
        A unique name.
    joint : Joint or str
        The joint or its name.
    torque : float, str or callable
        Torque on the second body of the joint, in the direction of increasing coordinate, with its reaction on the
        first: a number, the name of an input of the model, or ``torque(t, motion)``; see
        :class:`~daedal.multibody.motion.Motion` for the available quantities.
    which : str, optional
        Coordinate name, if the joint has several coordinates.

    Examples
    --------
    A motor whose torque decreases with its speed:

    >>> from daedal.multibody import Body, Model, Motor, Revolute, ground
    >>> wheel = Body.cylinder("wheel", radius=0.2, length=0.05, mass=10.0)
    >>> motor = Motor("motor", "shaft", lambda t, motion: 3.0 - 0.1 * motion.rate("shaft"))
    >>> model = Model(Revolute("shaft", ground, wheel), motor)
    >>> print(model.system().at(0.0, [0.0], [10.0]).force)
    [2.]
    """

    name: str
    joint: Any
    torque: Any = 0.0
    which: str | None = None

    driven = ("torque",)

    def __post_init__(self):
        what = title(self)
        set_checked(
            self, joint=joint_name(self.joint, what), torque=number_or_function(self.torque, f"torque of {what}")
        )
        set_checked(self, joints=(self.joint,))

    def apply(self, t, motion, loads):
        value = called(self.torque, f"torque of {title(self)}", motion, t, motion)
        loads.joint(self.joint, value, self.which)


@dataclass(frozen=True, eq=False, repr=False)
class Actuator(Force):
    r"""A force between two points, along the line that joins them: a cylinder, a linear drive, a muscle.

    Parameters
    ----------
    name : str
        A unique name.
    a, b : Body or Frame
        The two ends.
    force : float, str or callable
        Positive if it pushes the ends apart: a number, the name of an input, or ``force(t, motion)``.

    Examples
    --------
    >>> from daedal.multibody import Actuator, Body, Model, Prismatic, ground
    >>> cart = Body.particle("cart", mass=1.0)
    >>> push = Actuator("push", ground.at(-1, 0), cart, lambda t, motion: 4.0 * t)
    >>> print(Model(Prismatic("rail", ground, cart, axis="x"), push).system().at(0.5, [0.0], [0.0]).force)
    [2.]
    """

    name: str
    a: Any
    b: Any
    force: Any = 0.0

    driven = ("force",)

    def __post_init__(self):
        what = title(self)
        a, b = two_frames(self, what)
        set_checked(self, a=a, b=b, force=number_or_function(self.force, f"force of {what}"))
        set_checked(self, frames=(self.a, self.b))

    def apply(self, t, motion, loads):
        _, _, along = line(self.a, self.b, motion, title(self))
        push = called(self.force, f"force of {title(self)}", motion, t, motion) * along
        loads.force(self.a, -push)
        loads.force(self.b, push)


@dataclass(frozen=True, eq=False, repr=False)
class Controller(Force):
    r"""A torque at a joint that depends on additional states, :math:`\dot x = r(t, motion, x)`.

    Parameters
    ----------
    name : str
        A unique name.
    joint : Joint or str
        The driven joint.
    torque : callable
        ``torque(t, motion, x)``, the torque on the second body of the joint, or the force along a displacement. Inputs
        of the model are available as ``motion.input(name)``, also in `rate`.
    rate : callable
        ``rate(t, motion, x)``, one number for each state.
    initial : sequence of float
        Initial states, unless a run specifies others: ``daedal.solve(system, t_span, (q, v, r))``.
    which : str, optional
        Coordinate name, if the joint has several coordinates.

    Notes
    -----
    The states are part of r of the :class:`daedal.MechanicalSystem`, and of ``sol.r``, in the order of the forces.

    Examples
    --------
    A motor with the inductance L: L I' = U - R I - c (angular velocity), torque c I:

    >>> import daedal
    >>> from daedal.multibody import Body, Controller, Model, Revolute, ground
    >>> rotor = Body.cylinder("rotor", radius=0.1, length=0.1, mass=2.0)
    >>> motor = Controller(
    ...     "motor",
    ...     "shaft",
    ...     torque=lambda t, motion, x: 0.5 * x[0],
    ...     rate=lambda t, motion, x: [(12.0 - 1.5 * x[0] - 0.5 * motion.rate("shaft")) / 0.01],
    ...     initial=[0.0],
    ... )
    >>> model = Model(Revolute("shaft", ground, rotor), motor)
    >>> sol = daedal.solve(model.system(), (0.0, 1.0), model.start(), rtol=1e-8)
    >>> print(f"{sol.v[0, -1]:.4f} {sol.r[0, -1]:.4f}")
    24.0000 0.0000
    """

    name: str
    joint: Any
    torque: Any
    rate: Any
    initial: Any = (0.0,)
    which: str | None = None

    def __post_init__(self):
        what = title(self)
        states = check_real(self.initial, f"initial of {what}", "be a sequence of numbers")
        if states.ndim != 1 or not states.size or not np.all(np.isfinite(states)):
            raise InvalidProblemError(
                f"initial of {what} must be finite numbers, one for each state, got {self.initial!r}"
            )
        set_checked(
            self,
            joint=joint_name(self.joint, what),
            torque=function(self.torque, f"torque of {what}"),
            rate=function(self.rate, f"rate of {what}"),
            initial=tuple(states.tolist()),
        )
        set_checked(self, joints=(self.joint,))

    def apply(self, t, motion, loads):
        loads.joint(self.joint, self.torque(t, motion, motion.state(self)), self.which)

    def state_rate(self, t, motion):
        values = self.rate(t, motion, motion.state(self))
        if len(values) != len(self.initial):
            raise InvalidProblemError(
                f"rate of {title(self)} returned {len(values)} numbers, but initial has {len(self.initial)}"
            )
        return values


@dataclass(frozen=True, eq=False, repr=False)
class PID(Force):
    r"""A controller of a joint, :math:`M = k_P e + k_I \int e\,dt + k_D \dot e` with the error :math:`e = w - \varphi`.

    Parameters
    ----------
    name : str
        A unique name.
    joint : Joint or str
        The driven joint.
    target : float, str or callable
        The set point w of the coordinate: a number, the name of an input, or ``target(t)``.
    proportional, integral, derivative : float
        The three gains.
    target_rate : callable, optional
        ``target_rate(t)``, the derivative of the target; if omitted, the derivative term uses only the coordinate,
        :math:`\dot e = -\dot\varphi`.
    which : str, optional
        Coordinate name, if the joint has several coordinates.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import PID, Body, Model, Revolute, ground
    >>> arm = Body.rod("arm", length=1.0, mass=3.0)
    >>> servo = PID("servo", "shoulder", target=0.5, proportional=100.0, integral=150.0, derivative=20.0)
    >>> model = Model(Revolute("shoulder", ground, arm.start), servo, gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(model.system(), (0.0, 12.0), model.start(), rtol=1e-8)
    >>> print(f"{sol['shoulder'][-1]:.6f}")
    0.500000
    """

    name: str
    joint: Any
    target: Any = 0.0
    proportional: float = 0.0
    integral: float = 0.0
    derivative: float = 0.0
    target_rate: Any = None
    which: str | None = None

    driven = ("target",)

    def __post_init__(self):
        what = title(self)
        gains = {
            name: check_finite(getattr(self, name), f"{name} of {what}")
            for name in ("proportional", "integral", "derivative")
        }
        if self.target_rate is not None:
            function(self.target_rate, f"target_rate of {what}")
        set_checked(
            self,
            joint=joint_name(self.joint, what),
            target=number_or_function(self.target, f"target of {what}", ["t"]),
            **gains,
        )
        set_checked(self, joints=(self.joint,))
        set_checked(self, initial=(0.0,) if self.integral else ())

    def _error(self, t, motion):
        target = called(self.target, f"target of {title(self)}", motion, t)
        return target - motion.coordinate(self.joint, self.which)

    def apply(self, t, motion, loads):
        rate = -motion.rate(self.joint, self.which)
        if self.target_rate is not None:
            rate = rate + self.target_rate(t)
        moment = self.proportional * self._error(t, motion) + self.derivative * rate
        if self.integral:
            moment = moment + self.integral * motion.state(self)[0]
        loads.joint(self.joint, moment, self.which)

    def state_rate(self, t, motion):
        return (self._error(t, motion),) if self.integral else ()


@dataclass(frozen=True, eq=False, repr=False)
class Hydraulics(Force):
    r"""A double-acting hydraulic cylinder at a joint, with the load pressure as a state.

    The linearised model of a valve-controlled cylinder (H. E. Merritt, Hydraulic control systems, Wiley, 1967,
    section 6-1),

    .. math:: \frac{V}{4\beta}\, \dot p = Q(t) - A \dot x - C p, \qquad F = A p,

    with the coordinate x of the joint. Without leakage, an attached mass m oscillates with :math:`\sqrt{4 \beta A^2 /
    (V m)}`.

    Parameters
    ----------
    name : str
        A unique name.
    joint : Joint or str
        Usually a sliding joint; at a hinge, A is the displaced volume per radian.
    area : float
        Piston area A.
    volume : float
        Total volume V of both chambers.
    bulk_modulus : float
        Bulk modulus :math:`\beta` of the oil.
    flow : float, str or callable
        Flow Q from the valve: a number, the name of an input, or ``flow(t, motion)``.
    leakage : float
        Leakage C, flow per load pressure.
    which : str, optional
        Coordinate name, if the joint has several coordinates.

    Examples
    --------
    >>> from daedal.multibody import Body, Hydraulics, Model, Prismatic, ground
    >>> table = Body.box("table", size=(1, 1, 0.1), mass=500.0)
    >>> drive = Hydraulics("drive", "guide", area=2e-3, volume=1e-3, bulk_modulus=1.4e9, flow=4e-5, leakage=1e-12)
    >>> Model(Prismatic("guide", ground, table, axis="x"), drive).system().n_r
    1
    """

    name: str
    joint: Any
    area: float
    volume: float
    bulk_modulus: float
    flow: Any = 0.0
    leakage: float = 0.0
    which: str | None = None

    initial = (0.0,)
    driven = ("flow",)

    def __post_init__(self):
        what = title(self)
        sizes = {
            name: positive(getattr(self, name), f"{name} of {what}") for name in ("area", "volume", "bulk_modulus")
        }
        set_checked(
            self,
            joint=joint_name(self.joint, what),
            flow=number_or_function(self.flow, f"flow of {what}"),
            leakage=check_finite(self.leakage, f"leakage of {what}"),
            **sizes,
        )
        set_checked(self, joints=(self.joint,))

    def apply(self, t, motion, loads):
        loads.joint(self.joint, self.area * motion.state(self)[0], self.which)

    def state_rate(self, t, motion):
        flow = called(self.flow, f"flow of {title(self)}", motion, t, motion)
        rest = flow - self.area * motion.rate(self.joint, self.which) - self.leakage * motion.state(self)[0]
        return (4.0 * self.bulk_modulus / self.volume * rest,)
