"""A machine: bodies, joints and forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from daedal import HybridProblem
from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body
from daedal.multibody.checks import check_parts
from daedal.multibody.constraints import Constraint, Prescribed
from daedal.multibody.forces import Discontinuity, Force
from daedal.multibody.joint_coordinates import check_coordinate
from daedal.multibody.joints import Joint
from daedal.multibody.layout import ABSOLUTE, RELATIVE, Layout, in_the_plane, layout_of
from daedal.multibody.report import Report, check_inertia, report_of
from daedal.multibody.rotation import point
from daedal.multibody.system import MultibodySystem, system_of
from daedal.multibody.topology import Topology

if TYPE_CHECKING:
    from daedal.multibody.conditions import Conditions
    from daedal.multibody.equations import Equations
    from daedal.multibody.equilibrium import Equilibrium
    from daedal.multibody.inverse_dynamics import InverseDynamics
    from daedal.multibody.kinematic import KinematicSolution
    from daedal.multibody.linearised import Linearised
    from daedal.multibody.start import Start


class Model:
    """A machine made of bodies, joints, constraints and forces; it does not change.

    Parameters
    ----------
    *parts : Body, Joint, Constraint, Force
        What it is made of, in any order. Bodies that joints or forces name need not be listed.
    gravity : vector
        The acceleration of gravity; by default there is none.
    planar : bool
        Whether everything moves in the xy plane; axes of hinges are along z.
    name : str
        A title.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> pendulum = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(pendulum.system(), (0.0, 1.0), pendulum.start())
    >>> sol.success
    True
    """

    def __init__(self, *parts: Any, gravity=(0.0, 0.0, 0.0), planar: bool = False, name: str = ""):
        self.name, self.planar = name, bool(planar)
        self.gravity = point(gravity, "gravity")
        self.joints = tuple(part for part in parts if isinstance(part, Joint))
        self.forces = tuple(part for part in parts if isinstance(part, Force))
        for part in parts:
            if not isinstance(part, (Joint, Constraint, Force, Discontinuity, Body)):
                raise InvalidProblemError(f"a model is made of bodies, joints, constraints and forces, not of {part!r}")
        self.bodies = _bodies(parts)
        _check_names(self.joints, "joint")
        self.constraints = tuple(part.stated(self.planar) for part in parts if isinstance(part, Constraint))
        _check_names((*self.joints, *self.constraints), "joint or constraint")
        _check_references(self)
        self.discontinuities = tuple(part for part in parts if isinstance(part, Discontinuity))
        acting: list[Force | Discontinuity] = [*self.forces, *self.discontinuities]
        _check_names(acting, "force")
        for force in acting:
            self._check_joints(force)
        check_parts(parts, self.gravity, self.planar)
        self._layouts: dict[tuple[str, tuple[str, ...]], Layout] = {}
        self._conditions: dict[Layout, Conditions] = {}
        self._equations: dict[Layout, Equations] = {}

    def __getstate__(self) -> dict[str, Any]:
        """The parts; what was computed from them is computed again."""
        return self.__dict__ | {"_layouts": {}, "_conditions": {}}

    def body(self, name: str) -> Body:
        """The body of this name."""
        return _found(self.bodies, name, "body")

    def joint(self, name: str) -> Joint:
        """The joint of this name."""
        return _found(self.joints, name, "joint")

    def _check_joints(self, force: Force | Discontinuity):
        try:
            for name in force.joints:
                check_coordinate(self.joint(name), force.which)
        except InvalidProblemError as error:
            raise InvalidProblemError(f"{force!r}: {error}") from None

    def layout(self, coordinates: str = RELATIVE, cut: Sequence[str] = ()) -> Layout:
        """The model in chosen coordinates, as arrays; see :meth:`system`."""
        if coordinates not in (RELATIVE, ABSOLUTE):
            raise InvalidProblemError(f"coordinates={coordinates!r} must be '{RELATIVE}' or '{ABSOLUTE}'")
        names = (cut,) if isinstance(cut, str) else tuple(cut)
        for name in names:
            self.joint(name)
        key = coordinates, names
        if key not in self._layouts:
            driven = {name for force in self.forces for name in force.joints}
            self._layouts[key] = layout_of(
                self.bodies, self.joints, self.gravity, self.planar, coordinates, names, self.constraints, driven
            )
        return self._layouts[key]

    def system(self, coordinates: str = RELATIVE, *, cut: Sequence[str] = ()) -> MultibodySystem:
        """The equations of motion as a :class:`daedal.MechanicalSystem`.

        Parameters
        ----------
        coordinates : {"relative", "absolute"}
            Those of the joints of a spanning tree, with the joints that close loops as constraints; or positions and
            orientations of all bodies, with all joints as constraints.
        cut : sequence of str
            Joints that are to be cut; by default the choice is made by itself.
        """
        if self.discontinuities:
            names = ", ".join(repr(part) for part in self.discontinuities)
            raise InvalidProblemError(f"the model has {names}, so it has modes; use problem() in place of system()")
        system = system_of(self, self.layout(coordinates, cut))
        check_inertia(self, system)
        return system

    def topology(self, cut: Sequence[str] = ()) -> Topology:
        """The spanning tree of bodies and joints: connection array, chains, joints that are cut.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> a, b, c = (Body.rod(name, length=1.0, mass=1.0) for name in "abc")
        >>> tree = Model(Revolute("A", ground, a), Revolute("B", a.end, b), Revolute("C", a.end, c)).topology()
        >>> tree.connection_array, tree.junctions
        ((0, 1, 1), (0,))
        """
        return self.layout(cut=cut).spanning

    def report(self) -> Report:
        """Bodies, joints and loops, degrees of freedom by count and by rank, what is redundant or without inertia.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> rods = [Body.rod(name, length=length, mass=1.0) for name, length in (("a", 1.0), ("b", 3.0), ("c", 2.0))]
        >>> four_bar = Model(
        ...     Revolute("A", ground, rods[0].start),
        ...     Revolute("B", rods[0].end, rods[1].start),
        ...     Revolute("C", rods[1].end, rods[2].end),
        ...     Revolute("D", ground.at(3.0, 0.0), rods[2].start),
        ... )
        >>> found = four_bar.report()
        >>> found.gruebler, found.degrees_of_freedom, len(found.redundant)
        (-2, 1, 3)
        >>> found.loop_mobilities[0].family
        'a planar linkage in space'
        """
        return report_of(self, system_of(self, self.layout()))

    def draw_graph(self, *, cut: Sequence[str] = (), pyplot: bool = True, save=None):
        """Draw bodies and joints as a graph: the spanning tree, and dashed the joints that are cut.

        Parameters
        ----------
        cut : sequence of str
            As in :meth:`system`.
        pyplot : bool
            Whether the figure is one of ``matplotlib.pyplot``, shown by a notebook.
        save : path, optional
            A file to write.
        """
        from daedal.multibody.graph import draw_graph

        return draw_graph(self.topology(cut), self.name, pyplot=pyplot, save=save)

    def problem(
        self,
        coordinates: str | None = None,
        *,
        cut: Sequence[str] = (),
        law: str = "newton",
        rest_speed: float = 0.0,
    ) -> MultibodySystem | HybridProblem:
        """What :func:`daedal.solve` is to solve: the equations of motion, with modes where contacts or friction are.

        Parameters
        ----------
        coordinates, cut
            As in :meth:`system`; by default relative, or absolute where friction needs the force in a joint.
        law : {"newton", "poisson"}
            Of impacts at several contacts.
        rest_speed : float
            Impacts at this speed or below are plastic.

        Returns
        -------
        MultibodySystem or HybridProblem
            The same as :meth:`system` for a model without contacts and friction.

        Examples
        --------
        >>> from daedal.multibody import Body, JointFriction, Model, Revolute, ground
        >>> rod = Body.rod("rod", length=1.0, mass=1.0)
        >>> model = Model(Revolute("pivot", ground, rod.start), JointFriction("brake", "pivot", torque=0.1))
        >>> model.problem().mode_names
        ('slip+', 'slip-', 'stick')
        """
        from daedal.multibody.forces.hybrid import problem_of

        chosen = coordinates or (ABSOLUTE if any(part.needs_reaction for part in self.discontinuities) else RELATIVE)
        system = system_of(self, self.layout(chosen, cut))
        check_inertia(self, system)
        return problem_of(self, system, law, rest_speed) if self.discontinuities else system

    def conditions(self, layout: Layout) -> Conditions:
        """The constraints of the model in the coordinates of a layout, with their derivatives."""
        from daedal.multibody.conditions import Conditions

        if layout not in self._conditions:
            self._conditions[layout] = Conditions(system_of(self, layout))
        return self._conditions[layout]

    def equations(self, layout: Layout) -> Equations:
        """The equations of motion in the coordinates of a layout, with their derivatives."""
        from daedal.multibody.equations import Equations

        if layout not in self._equations:
            self._equations[layout] = Equations(system_of(self, layout), self.conditions(layout))
        return self._equations[layout]

    @property
    def initial_states(self) -> list[float]:
        """Where the states of forces start, those of controllers for example."""
        return [value for force in self.forces for value in force.initial]

    def start(self, coordinates: str = RELATIVE, *, cut: Sequence[str] = ()) -> Start:
        """The machine at rest, assembled from the bodies as they are drawn and joints at zero."""
        return self.assemble(coordinates=coordinates, cut=cut)

    def assemble(
        self,
        *,
        velocities: Mapping[str, Any] | None = None,
        hold: Mapping[str, Any] | None = None,
        side: Mapping[str, str] | None = None,
        guess: Mapping[str, Any] | Start | None = None,
        coordinates: str = RELATIVE,
        cut: Sequence[str] = (),
        t: float = 0.0,
        **joint_values: Any,
    ) -> Start:
        """Positions and velocities that satisfy all joints.

        Parameters
        ----------
        **joint_values
            Values of joints that are held: ``A=0.5``. A joint with several coordinates takes all of them, a ball joint
            an orientation, a free one a pair of position and orientation.
        hold : dict, optional
            The same for names that are no identifiers, and for single coordinates: ``{"nut.angle": 0.5}``.
        velocities : dict, optional
            Velocities of joints that are held; all others are as small as the joints allow.
        side : dict, optional
            Which of several ways to close is meant, by the sign of joints: ``{"B": "+"}``.
        guess : dict or Start, optional
            Where the search starts, for joints that are not held. Others start where the bodies are drawn, or at zero.
            Without `side` the way to close that is nearest is taken.
        coordinates, cut
            As in :meth:`system`.
        t : float
            The time, for motions that are prescribed.

        Returns
        -------
        Start
            The pair (q, v) for :func:`daedal.solve`.

        Raises
        ------
        InconsistentInitialError
            If the mechanism cannot be closed: the message names the joint, the gap and the values that are in the way.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> a, b = Body.rod("a", length=1.0, mass=1.0), Body.rod("b", length=1.0, mass=1.0)
        >>> roof = Model(
        ...     Revolute("A", ground, a.start),
        ...     Revolute("B", a.end, b.start),
        ...     Revolute("C", b.end, ground.at(1.0, 0.0)),
        ...     planar=True,
        ... )
        >>> start = roof.assemble(side={"A": "+"})
        >>> print(f"{start.joint('A'):.4f} {start.joint('B'):.4f}")
        1.0472 -2.0944
        """
        from daedal.multibody.assembly import assemble

        return assemble(
            self,
            {**(hold or {}), **joint_values},
            velocities=velocities,
            side=side,
            guess=guess,
            coordinates=coordinates,
            cut=cut,
            t=t,
        )

    def kinematics(
        self,
        t: Any,
        driven: Mapping[str, Any] | None = None,
        *,
        side: Mapping[str, str] | None = None,
        guess: Mapping[str, Any] | Start | None = None,
        cut: Sequence[str] = (),
    ) -> KinematicSolution:
        """The motion of a mechanism whose driven joints move as given: no forces, no integration.

        Parameters
        ----------
        t : array
            The times, increasing or decreasing.
        driven : dict
            For each driven joint (or "joint.coordinate") its angle or displacement: a function of time, a number that
            holds it, or its values at the times `t`, which are joined by a spline. Functions are differentiated exactly
            if they can be traced.
        side, guess, cut
            As in :meth:`assemble`, for the first position; the others follow from it.

        Returns
        -------
        KinematicSolution
            Positions, velocities and accelerations.

        Raises
        ------
        DeadPointError
            Where the prescribed motion cannot be followed any more; it names the time and the joint.

        Examples
        --------
        >>> import numpy as np
        >>> from daedal.multibody import Body, Model, Prismatic, Revolute, ground
        >>> crank, rod = Body.rod("crank", length=1.0, mass=1.0), Body.rod("rod", length=3.0, mass=1.0)
        >>> slider = Body.box("slider", size=(0.2, 0.2, 0.2), mass=1.0)
        >>> machine = Model(
        ...     Revolute("A", ground, crank.start),
        ...     Revolute("B", crank.end, rod.start),
        ...     Revolute("C", rod.end, slider),
        ...     Prismatic("D", ground, slider, axis="x"),
        ...     planar=True,
        ... )
        >>> motion = machine.kinematics(np.linspace(0.0, 1.0, 5), {"A": lambda t: 0.5 + 6.0 * t})
        >>> print(motion.q[machine.layout().names.index("D")].round(4))
        [3.839  2.4427 2.043  3.1263 3.9689]
        """
        from daedal.multibody.kinematic import kinematics

        return kinematics(self, t, driven or {}, side=side, guess=guess, cut=cut)

    def equilibrium(
        self,
        *,
        hold: Mapping[str, Any] | None = None,
        side: Mapping[str, str] | None = None,
        guess: Mapping[str, Any] | Start | None = None,
        coordinates: str = RELATIVE,
        cut: Sequence[str] = (),
        t: float = 0.0,
        **joint_values: Any,
    ) -> Equilibrium:
        """A position in which all forces are balanced, near a guess and downhill from it.

        Parameters
        ----------
        **joint_values, hold, side, guess, coordinates, cut, t
            As in :meth:`assemble`; joints whose values are given are held there.

        Returns
        -------
        Equilibrium
            A start at rest, which also says whether the equilibrium is stable.

        Raises
        ------
        NoEquilibriumError
            If none was found; it names the joint along which a force remains.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> rod = Body.rod("rod", length=2.0, mass=1.0)
        >>> pendulum = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
        >>> rest = pendulum.equilibrium(guess={"pivot": 0.1})
        >>> print(f"{rest.joint('pivot'):.6f}", rest.stability)
        -1.570796 stable
        """
        from daedal.multibody.equilibrium import equilibrium

        values = {**(hold or {}), **joint_values}
        return equilibrium(self, values, side=side, guess=guess, coordinates=coordinates, cut=cut, t=t)

    def linearise(self, at: Start) -> Linearised:
        """Small motions about a state that satisfies all joints: reduced matrices, eigenvalues and modes.

        Parameters
        ----------
        at : Start
            What :meth:`assemble` or :meth:`equilibrium` gives, in any coordinates.

        Examples
        --------
        >>> import numpy as np
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> bob = Body.particle("bob", mass=2.0)
        >>> pendulum = Model(Revolute("pivot", ground, bob.at(0.0, 0.5)), gravity=(0.0, -9.81), planar=True)
        >>> small = pendulum.linearise(pendulum.equilibrium())
        >>> print(np.round(2.0 * np.pi * small.frequencies, 6), np.round(np.sqrt(9.81 / 0.5), 6))
        [4.429447] 4.429447
        """
        from daedal.multibody.linearised import linearise

        return linearise(self, at)

    def inverse_dynamics(
        self,
        motion: Any,
        *,
        by: Sequence[str] | None = None,
        accelerations: Mapping[str, Any] | None = None,
        coordinates: str = RELATIVE,
        cut: Sequence[str] = (),
    ) -> InverseDynamics:
        """The torques and forces of chosen joints that a given motion takes.

        Parameters
        ----------
        motion : KinematicSolution, MechanicalSolution or Start
            What :meth:`kinematics` gives, a solution of :meth:`system`, or one state.
        by : sequence of str, optional
            The joints (or "joint.coordinate") that act; by default those that were driven, otherwise all in the tree.
        accelerations : dict, optional
            With a start: accelerations of joints; those that are not given are as small as possible.
        coordinates, cut
            Of a solution, as in :meth:`system`.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> rod = Body.rod("rod", length=2.0, mass=3.0)
        >>> arm = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -10.0), planar=True)
        >>> needed = arm.inverse_dynamics(arm.assemble(pivot=0.0), accelerations={"pivot": 2.0})
        >>> print(needed["pivot"])  # weight 30 at the distance 1, and moment of inertia 4
        [38.]
        """
        from daedal.multibody.inverse_dynamics import inverse_dynamics

        return inverse_dynamics(self, motion, by, accelerations, coordinates, cut)

    def draw(self, start: Any = None, path: Any = None, **options: Any):
        """A picture of the machine, with its bodies named.

        Parameters
        ----------
        start : Start or pair (q, v), optional
            Where it is drawn; by default as :meth:`start` has it.
        path : path, optional
            A file for the picture (.png, .pdf, .svg), or .html for a page in which it can be turned.
        **options
            As for :meth:`daedal.viz.Scene.stills`: ``view``, ``labels``; and ``title``.

        Returns
        -------
        matplotlib.figure.Figure
            Or the path of a page.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> rod = Body.rod("rod", length=2.0, mass=1.0)
        >>> pendulum = Model(Revolute("pivot", ground, rod.start), planar=True)
        >>> picture = pendulum.draw(pendulum.assemble(pivot=-1.0), "pendulum.png")
        """
        from daedal.multibody.animation import draw

        return draw(self, start, path, **options)


def _bodies(parts) -> tuple[Body, ...]:
    found: dict[str, Body] = {}
    for part in parts:
        if isinstance(part, Body):
            mentioned = [part]
        else:
            mentioned = [frame.body for frame in part.frames]
        for body in mentioned:
            if body.is_ground:
                continue
            if found.setdefault(body.name, body) is not body:
                raise InvalidProblemError(f"two different bodies have the name '{body.name}'")
    return tuple(found.values())


def _check_names(parts, what: str):
    seen: set[str] = set()
    for part in parts:
        if part.name in seen:
            raise InvalidProblemError(f"two {what}s have the name '{part.name}'")
        seen.add(part.name)


def _check_references(model: Model):
    """Constraints refer to joints that exist, and no two drives to the same coordinate."""
    driven: dict[tuple[str, str | None], str] = {}
    for constraint in model.constraints:
        for joint, which in constraint.joints:
            try:
                stated = model.joint(getattr(joint, "name", joint))
                stated = in_the_plane(stated) if model.planar else stated
                check_coordinate(stated, which)
            except InvalidProblemError as error:
                raise InvalidProblemError(f"constraint '{constraint.name}': {error}") from None
            if isinstance(constraint, Prescribed):
                other = driven.setdefault((stated.name, which or stated.coordinates[0]), constraint.name)
                if other != constraint.name:
                    raise InvalidProblemError(
                        f"'{other}' and '{constraint.name}' both prescribe the motion of joint '{stated.name}'; "
                        "remove one of them"
                    )


def _found(parts, name: str, what: str):
    for part in parts:
        if part.name == name:
            return part
    known = ", ".join(f"'{part.name}'" for part in parts)
    raise InvalidProblemError(f"there is no {what} '{name}'; there are {known or 'none'}")
