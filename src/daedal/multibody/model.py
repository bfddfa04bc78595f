"""A machine: bodies, joints and forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.common.messages import unknown_name
from daedal.errors import InvalidProblemError, UnknownNameError, near_names
from daedal.hybrid import HybridProblem
from daedal.multibody.analyses import Analyses
from daedal.multibody.body import Body, point
from daedal.multibody.constraint import Constraint, Prescribed
from daedal.multibody.discontinuity import Discontinuity
from daedal.multibody.force import Force
from daedal.multibody.joint_coordinates import check_coordinate
from daedal.multibody.joints import Joint
from daedal.multibody.layout import ABSOLUTE, RELATIVE, Layout, check_parts, in_the_plane, layout_of
from daedal.multibody.multibody_system import MultibodySystem, system_of
from daedal.multibody.poses import Start
from daedal.multibody.report import Report, check_inertia, report_of
from daedal.multibody.topology import SpanningTree
from daedal.problems.named_inputs import Inputs
from daedal.problems.preparable import Preparable, prepared_of

if TYPE_CHECKING:
    from daedal.multibody.large import LargeMachine
    from daedal.multibody.multibody_system import Conditions, MotionEquations


class Model(Analyses, Preparable):
    """A machine made of bodies, joints, constraints and forces; immutable.

    Parameters
    ----------
    *parts : Body, Joint, Constraint, Force
        The parts, in any order. Bodies that joints or forces refer to need not be listed.
    gravity : vector
        The acceleration of gravity; by default there is none.
    planar : bool
        Whether all motion is in the xy plane, with hinge axes along z.
    name : str
        A title.
    inputs : list of str, or mapping {name: default}, optional
        Names of external inputs, such as `tau` in ``Motor("drive", "hip", torque="tau")``; functions of forces read
        ``motion.input("tau")``. By default, the inputs named by forces, in the order of the parts. Values are given by
        the argument `inputs` of :func:`daedal.solve`, and `u` of :meth:`daedal.Simulation.step`.

    Examples
    --------
    >>> import daedal
    >>> from daedal.multibody import Body, Model, Revolute, ground
    >>> rod = Body.rod("rod", length=2.0, mass=1.0)
    >>> pendulum = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
    >>> sol = daedal.solve(pendulum, (0.0, 1.0), pendulum.start())
    >>> sol.success
    True
    """

    def __init__(self, *parts: Any, gravity=(0.0, 0.0, 0.0), planar: bool = False, name: str = "", inputs: Any = None):
        self.name, self.planar = name, bool(planar)
        self.gravity = point(gravity, "gravity")
        self.joints = tuple(part for part in parts if isinstance(part, Joint))
        self.forces = tuple(part for part in parts if isinstance(part, Force))
        for part in parts:
            if not isinstance(part, (Joint, Constraint, Force, Discontinuity, Body)):
                raise InvalidProblemError(
                    f"a model consists of bodies, joints, constraints and forces, not of {part!r}"
                )
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
        self.inputs = _inputs(self.forces, inputs, self.planar)
        check_parts(parts, self.gravity, self.planar)
        if not self.bodies:
            raise InvalidProblemError("the model has no bodies: pass bodies, or joints and forces attached to bodies")
        self._layouts: dict[tuple[str, tuple[str, ...]], Layout] = {}
        self._conditions: dict[Layout, Conditions] = {}
        self._equations: dict[Layout, MotionEquations] = {}
        self.large_machines: dict[Layout, LargeMachine] = {}

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, with empty caches."""
        return self.__dict__ | {"_layouts": {}, "_conditions": {}, "_equations": {}, "large_machines": {}}

    def body(self, name: str) -> Body:
        """The body with this name."""
        return _found(self.bodies, name, "body")

    def joint(self, name: str) -> Joint:
        """The joint with this name."""
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
            "relative": coordinates of the joints of a spanning tree, with loop-closing joints as constraints;
            "absolute": positions and orientations of all bodies, with all joints as constraints.
        cut : sequence of str
            Joints to cut; chosen automatically by default.
        """
        if self.discontinuities:
            names = ", ".join(repr(part) for part in self.discontinuities)
            raise InvalidProblemError(f"the model has {names}, so it has modes; use problem() instead of system()")
        system = system_of(self, self.layout(coordinates, cut))
        check_inertia(self, system)
        return system

    def topology(self, cut: Sequence[str] = ()) -> SpanningTree:
        """The spanning tree of bodies and joints: connection array, chains, cut joints.

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
        """Report bodies, joints, loops, degrees of freedom by count and rank, redundancy and motions without inertia.

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
        """Draw the graph of bodies and joints: the spanning tree, with cut joints dashed.

        Parameters
        ----------
        cut : sequence of str
            As in :meth:`system`.
        pyplot : bool
            Whether to create a ``matplotlib.pyplot`` figure, which a notebook shows.
        save : path, optional
            A file to write.
        """
        from daedal.multibody.topology import draw_graph

        return draw_graph(self.topology(cut), self.name, pyplot=pyplot, save=save)

    def problem(
        self,
        coordinates: str | None = None,
        *,
        cut: Sequence[str] = (),
        law: str = "newton",
        rest_speed: float = 0.0,
    ) -> MultibodySystem | HybridProblem:
        """The problem for :func:`daedal.solve`: the equations of motion, with modes for contacts or friction.

        Parameters
        ----------
        coordinates, cut
            As in :meth:`system`; by default relative, or absolute if friction depends on the force in a joint.
        law : {"newton", "poisson"}
            Law for impacts at several contacts.
        rest_speed : float
            Impacts at this speed or below are plastic.

        Returns
        -------
        MultibodySystem or HybridProblem
            The result of :meth:`system`, for a model without contacts and friction.

        Examples
        --------
        >>> from daedal.multibody import Body, JointFriction, Model, Revolute, ground
        >>> rod = Body.rod("rod", length=1.0, mass=1.0)
        >>> model = Model(Revolute("pivot", ground, rod.start), JointFriction("brake", "pivot", torque=0.1))
        >>> model.problem().mode_names
        ('slip+', 'slip-', 'stick')
        """
        from daedal.multibody.discontinuity import problem_of

        chosen = coordinates or self._coordinates
        system = system_of(self, self.layout(chosen, cut))
        check_inertia(self, system)
        return problem_of(self, system, law, rest_speed) if self.discontinuities else system

    @property
    def _coordinates(self) -> str:
        return ABSOLUTE if any(part.needs_reaction for part in self.discontinuities) else RELATIVE

    def as_problem(self, initial: Any = None) -> MultibodySystem | HybridProblem:
        """The problem that :func:`daedal.solve` uses for a model: :meth:`problem`, as the same object on every call.

        If a start has other coordinates, the problem uses those.
        """
        layout = initial.layout if isinstance(initial, Start) else None
        key = next((key for key, known in self._layouts.items() if known is layout), (None, ()))
        kept = prepared_of(self)  # not an attribute, since functions of the problem would read it
        if key not in kept:
            kept[key] = self.problem(key[0], cut=key[1])
        return kept[key]

    def as_initial(self, initial: Any, t0: float, params: Any = None) -> Any:
        """A start for :meth:`as_problem`, from values of joints by name, and of their velocities with ``'``.

        None denotes the machine at rest as drawn; a start is returned unchanged.
        """
        if initial is not None and not isinstance(initial, Mapping):
            return initial
        given = dict(initial or {})
        hold = {name: value for name, value in given.items() if not name.endswith("'")}
        velocities = {name.removesuffix("'"): value for name, value in given.items() if name.endswith("'")}
        return self.assemble(hold=hold, velocities=velocities, coordinates=self._coordinates, t=t0)

    def as_breakpoints(self, t0: float, t1: float, params: Any = None) -> None:
        """None: the run detects the switches of a machine."""

    def draw(self, start: Any = None, path: Any = None, **options: Any):
        """Draw the machine with labelled bodies.

        Parameters
        ----------
        start : Start or pair (q, v), optional
            State to draw; by default :meth:`start`.
        path : path, optional
            A file for the picture (.png, .pdf, .svg), or .html for a page in which the machine can be turned.
        **options
            As for :meth:`daedal.viz.Scene.stills`: ``view``, ``labels``; and ``title``.

        Returns
        -------
        matplotlib.figure.Figure or pathlib.Path
            The figure, or the path of an ``.html`` page.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> rod = Body.rod("rod", length=2.0, mass=1.0)
        >>> pendulum = Model(Revolute("pivot", ground, rod.start), planar=True)
        >>> picture = pendulum.draw(pendulum.assemble(pivot=-1.0), "pendulum.png")
        """
        from daedal.multibody.picture import draw

        return draw(self, start, path, **options)

    def studio(self, t_span: tuple[float, float], initial: Any = None, path: Any = "studio.html", **options: Any):
        """Write a live page of the machine, in which start values are sliders and the motion is solved again.

        Parameters
        ----------
        t_span : tuple of float
            The interval.
        initial : Start, mapping or pair (q, v), optional
            As for :func:`daedal.solve`: joints by name, a start, or coordinates and velocities.
        path : path
            The file, ending in ``.html``.
        **options
            See :func:`daedal.studio`.

        Examples
        --------
        >>> from daedal.multibody import Body, Model, Revolute, ground
        >>> rod = Body.rod("rod", length=2.0, mass=1.0)
        >>> pendulum = Model(Revolute("pivot", ground, rod.start), gravity=(0.0, -9.81), planar=True)
        >>> pendulum.studio((0.0, 5.0), {"pivot": 0.5}, "pendulum.html").name
        'pendulum.html'
        """
        import daedal

        return daedal.studio(self, t_span, initial, path, **options)


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
    """Check that constraints refer to existing joints, each at most once, and that no two drives prescribe one
    coordinate."""
    driven: dict[tuple[str, str], str] = {}
    for constraint in model.constraints:
        read: set[tuple[str, str]] = set()
        for joint, which in constraint.joints:
            try:
                stated = model.joint(getattr(joint, "name", joint))
                stated = in_the_plane(stated) if model.planar else stated
                check_coordinate(stated, which)
            except InvalidProblemError as error:
                raise InvalidProblemError(f"constraint '{constraint.name}': {error}") from None
            coordinate = stated.name, which or stated.coordinates[0]
            if coordinate in read:
                raise InvalidProblemError(f"constraint '{constraint.name}' refers to joint '{stated.name}' twice")
            read.add(coordinate)
            if isinstance(constraint, Prescribed):
                other = driven.setdefault(coordinate, constraint.name)
                if other != constraint.name:
                    raise InvalidProblemError(
                        f"'{other}' and '{constraint.name}' both prescribe the motion of joint '{stated.name}'; "
                        "remove one of them"
                    )


def _found(parts, given: Any, what: str):
    name = getattr(given, "name", given)
    for part in parts:
        if part.name == name:
            return part
    raise unknown_name(name, [part.name for part in parts], what)


def _inputs(forces: Sequence[Force], given: Any, planar: bool) -> Inputs | None:
    """The inputs of a model, by default those named by its forces; None if it has none."""
    named: dict[str, Any] = {}
    for force in forces:
        for name, default in force.inputs(planar).items():
            if np.shape(named.setdefault(name, default)) != np.shape(default):
                raise InvalidProblemError(f"{force!r}: input '{name}' is a number here, but a vector in another force")
    if given is None:
        return Inputs.of(named) if named else None
    stated = Inputs.of(given)
    for force in forces:
        for name, default in force.inputs(planar).items():
            if name not in stated:
                raise UnknownNameError(
                    f"{force!r} takes the input '{name}', which is not listed; {near_names(name, stated.names)}"
                    f"there are {', '.join(map(repr, stated.names))}"
                )
            if isinstance(given, Mapping) and np.shape(stated[name]) != np.shape(default):
                wanted = "a number" if np.ndim(default) == 0 else f"a vector of {np.size(default)}"
                raise InvalidProblemError(f"inputs: '{name}' of {force!r} is {wanted}, got {given[name]!r}")
    return stated if isinstance(given, Mapping) else Inputs.of({name: named.get(name, 0.0) for name in stated})
