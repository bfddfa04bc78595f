"""Analyses of a model beyond its equations of motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from daedal.errors import InvalidProblemError
from daedal.multibody.layout import RELATIVE, Layout
from daedal.multibody.multibody_system import system_of

if TYPE_CHECKING:
    from daedal.multibody.driven_motion import KinematicSolution
    from daedal.multibody.equilibrium import Equilibrium
    from daedal.multibody.inverse_dynamics import InverseDynamics
    from daedal.multibody.linearised import Linearised
    from daedal.multibody.multibody_system import Conditions, MotionEquations
    from daedal.multibody.poses import Start


class Analyses:
    """Assembly, kinematics, equilibrium, small motions and inverse dynamics; see :class:`Model`."""

    forces: tuple
    discontinuities: tuple
    _conditions: dict[Layout, Conditions]
    _equations: dict[Layout, MotionEquations]

    def conditions(self, layout: Layout) -> Conditions:
        """The constraints of the model with their derivatives, in the coordinates of a layout."""
        from daedal.multibody.multibody_system import Conditions

        if layout not in self._conditions:
            self._conditions[layout] = Conditions(system_of(self, layout))
        return self._conditions[layout]

    def equations(self, layout: Layout) -> MotionEquations:
        """The equations of motion in the coordinates of a layout, with their derivatives."""
        from daedal.multibody.multibody_system import MotionEquations

        if self.discontinuities:
            named = ", ".join(f"'{part.name}'" for part in self.discontinuities)
            raise InvalidProblemError(
                f"contacts and dry friction are not supported in this analysis: omit {named}, or simulate the model"
            )
        if layout not in self._equations:
            self._equations[layout] = MotionEquations(system_of(self, layout), self.conditions(layout))
        return self._equations[layout]

    @property
    def initial_states(self) -> list[float]:
        """Initial force states, for example of controllers."""
        return [value for force in self.forces for value in force.initial]

    def start(self, coordinates: str = RELATIVE, *, cut: Sequence[str] = ()) -> Start:
        """Assemble the machine at rest, starting from the drawn bodies, or from joints at zero."""
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
        """Find positions and velocities that satisfy all joints.

        Parameters
        ----------
        **joint_values
            Joint values to be held: ``A=0.5``. A joint with several coordinates takes all of them, a ball joint an
            orientation, a free joint a pair (position, orientation).
        hold : dict, optional
            Joint values whose names are not identifiers, and values of single coordinates: ``{"nut.angle": 0.5}``.
        velocities : dict, optional
            Joint velocities to be held; all others are as small as the joints allow.
        side : dict, optional
            Selects one of several closures by the sign of joint coordinates: ``{"B": "+"}``.
        guess : dict or Start, optional
            Initial guess for joints that are not held. Without a guess, joints start at the drawn positions of the
            bodies, or at zero. Without `side`, the closure nearest to the guess is chosen.
        coordinates, cut
            As in :meth:`system`.
        t : float
            Time at which prescribed motions are evaluated.

        Returns
        -------
        Start
            The pair (q, v) for :func:`daedal.solve`.

        Raises
        ------
        InconsistentInitialError
            If the mechanism cannot be closed; the message names the joint, the gap and the conflicting values.

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
        from daedal.multibody.assembly_problem import assemble

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
        """Compute the motion of a mechanism whose driven joints follow given functions, without integration.

        Parameters
        ----------
        t : array
            The times, increasing or decreasing.
        driven : dict
            For each driven joint (or "joint.coordinate") its angle or displacement: a function of time, a constant that
            fixes it, or its values at the times `t`, interpolated by a spline. Functions are differentiated exactly if
            they can be traced.
        side, guess, cut
            As in :meth:`assemble`, for the first position, from which the others are continued.

        Returns
        -------
        KinematicSolution
            Positions, velocities and accelerations.

        Raises
        ------
        DeadPointError
            If the prescribed motion cannot be continued; the message names the time and the joint.

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
        from daedal.multibody.driven_motion import kinematics

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
        """Find a position in which all forces are balanced, by descent from a guess.

        Parameters
        ----------
        **joint_values, hold, side, guess, coordinates, cut, t
            As in :meth:`assemble`; joints with given values are held there.

        Returns
        -------
        Equilibrium
            A start at rest, with the stability of the equilibrium.

        Raises
        ------
        NoEquilibriumError
            If no equilibrium was found; the message names the joint along which a force remains.

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
        """Linearise about a state that satisfies all joints, with reduced matrices, eigenvalues and modes.

        Parameters
        ----------
        at : Start
            Result of :meth:`assemble` or :meth:`equilibrium`, in any coordinates.

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
        """Compute torques and forces of chosen joints that produce a given motion.

        Parameters
        ----------
        motion : KinematicSolution, MechanicalSolution or Start
            Result of :meth:`kinematics`, a solution of :meth:`system`, or one state.
        by : sequence of str, optional
            The actuated joints (or "joint.coordinate"); drives of the model (:class:`Prescribed`,
            :class:`PrescribedMotion`) only define the motion. By default the joints that were driven, that are moved by
            drives of the model, or whose accelerations are given; otherwise all joints of the tree.
        accelerations : dict, optional
            Joint accelerations, only if `motion` is a start; all others are as small as possible.
        coordinates, cut
            As in :meth:`system`, if `motion` is a solution.

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
