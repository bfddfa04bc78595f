"""Base class of forces, and their common checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame, checked_name, of_shape
from daedal.multibody.joints import Joint
from daedal.multibody.motion import power_of
from daedal.problems.checks import check_arguments, check_callable, check_finite, check_real


class Force:
    """Loads on bodies other than gravity.

    A force has a name, the `frames` that it acts on, the names of the `joints` that it reads or drives, and

    * ``apply(t, motion, loads)``: reads positions and velocities of frames from `motion` and adds to `loads`;
    * ``energy(t, motion)``: its potential energy, if it has one;
    * ``power(t, motion)``: the power of the nonconservative part, the rate of change of kinetic plus potential energy;
    * ``initial`` and ``state_rate(t, motion)``: initial values of additional states and their rates;
      ``motion.state(self)`` are the current states.

    ``apply`` and ``state_rate`` are traced and must therefore be plain arithmetic on the values of `motion`;
    ``motion.input(name)`` is an input of the model.

    Examples
    --------
    A user-defined force, a magnet that pulls with c / distance^2:

    >>> import numpy as np
    >>> from daedal.multibody import Body, Force, Free, Model, ground
    >>> class Magnet(Force):
    ...     def __init__(self, name, at, body, c):
    ...         self.name, self.frames, self.c = name, (at, body.at()), c
    ...
    ...     def apply(self, t, motion, loads):
    ...         d = motion.position(self.frames[0]) - motion.position(self.frames[1])
    ...         loads.force(self.frames[1], self.c * d / (d @ d) ** 1.5)
    >>> ball = Body.sphere("ball", radius=0.1, mass=2.0)
    >>> model = Model(Free("flight", ground, ball), Magnet("magnet", ground.at(0.5, 0, 0), ball, 1.0))
    >>> print(model.system().at(0.0, *model.start()).force[:3])
    [4. 0. 0.]
    """

    name: str
    frames: tuple[Frame, ...] = ()
    joints: tuple[str, ...] = ()
    which: str | None = None  # name of the joint coordinate
    initial: tuple[float, ...] = ()
    driven: tuple[str, ...] = ()  # attributes that may be the name of an input

    def inputs(self, planar: bool) -> dict[str, Any]:
        """The inputs named by attributes of this force, with their default values."""
        values = {name: getattr(self, name) for name in self.driven}
        return {value: self.default_input(planar) for value in values.values() if isinstance(value, str)}

    def default_input(self, planar: bool) -> Any:
        """Default value of an input that the model does not list: zero, as a number or a vector."""
        return 0.0

    def apply(self, t, motion, loads):
        """Add the contributions of this force to `loads`."""
        raise NotImplementedError

    def state_rate(self, t, motion):
        """Rates of the states, one for each entry of `initial`."""
        return ()

    def energy(self, t, motion) -> float:
        """Potential energy; 0 if the force is nonconservative."""
        return 0.0

    def power(self, t, motion) -> float:
        """Power of the nonconservative part; by default of the whole force."""
        return power_of(self, t, motion)

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r})"


def title(force: Any) -> str:
    """Class and name of a force, for messages."""
    checked_name(force.name, "force")
    return f"{type(force).__name__} '{force.name}'"


def frame_of(given: Any, what: str) -> Frame:
    """The given frame, or the frame at the origin of the given body."""
    if isinstance(given, Frame):
        return given
    if isinstance(given, Body):
        return given.at()
    raise InvalidProblemError(f"{what} must be a body or a frame on a body, got {given!r}")


def two_frames(force: Any, what: str) -> tuple[Frame, Frame]:
    """The ends a and b of a force between two bodies."""
    a, b = frame_of(force.a, f"a of {what}"), frame_of(force.b, f"b of {what}")
    if a.body is b.body:
        raise InvalidProblemError(
            f"{what} has both ends on body '{a.body.name}', so it has no effect; connect two bodies"
        )
    return a, b


def joint_name(given: Any, what: str) -> str:
    """The name of a joint, which is given as an object or by name."""
    if isinstance(given, Joint):
        return given.name
    if isinstance(given, str) and given:
        return given
    raise InvalidProblemError(f"the joint of {what} must be a joint or the name of a joint, got {given!r}")


def three_numbers(values: Any, what: str) -> np.ndarray:
    """Convert a value to three finite numbers; a single number is repeated."""
    array = check_real(values, what, "be a number or three numbers")
    if array.ndim == 0:
        array = np.full(3, float(array))
    if array.shape != (3,) or not np.all(np.isfinite(array)):
        raise InvalidProblemError(f"{what} must be a finite number or three of them, got {values!r}")
    return array


def number_or_function(value: Any, what: str, arguments: Sequence[str] = ("t", "motion")) -> Any:
    """Check and return a value: a finite number, the name of an input, or a function with the given arguments."""
    if isinstance(value, str):
        return input_name(value, what)
    if not callable(value):
        return check_finite(value, what)
    check_arguments(what, value, arguments, None)
    return value


def input_name(value: str, what: str) -> str:
    """Check the name of an input, and return it."""
    if not value.isidentifier():
        raise InvalidProblemError(f"{what} must be a number, a function, or the name of an input, got {value!r}")
    return value


def called(value: Any, what: str, motion: Any, *arguments):
    """Evaluate an attribute: a number, the name of an input, or a function of `arguments`."""
    if isinstance(value, str):
        return motion.input(value)
    return of_shape(value(*arguments), (), what) if callable(value) else value


def function(value: Any, what: str) -> Any:
    """Check that a value is callable, and return it."""
    check_callable(value, what)
    return value


def vector_or_function(value: Any, what: str) -> Any:
    """Check and return a value: three finite numbers (or two and a zero), the name of an input, or a function."""
    if isinstance(value, str):
        return input_name(value, what)
    if callable(value):
        return value
    numbers = check_real(value, what, "be two or three numbers, the name of an input or a function of (t, motion)")
    if numbers.shape not in ((2,), (3,)) or not np.all(np.isfinite(numbers)):
        raise InvalidProblemError(
            f"{what} must be two or three finite numbers, the name of an input or a function, got {value!r}"
        )
    return np.append(numbers, np.zeros(3 - numbers.size))


def vector(values: Any, what: str):
    """Three components from the result of a user function or an input; a third component not given is zero."""
    size = len(values) if hasattr(values, "__len__") else 0
    if size not in (2, 3):
        raise InvalidProblemError(f"{what} must be two or three numbers, got {values!r}")
    result = np.zeros(3)
    for k in range(size):
        result[k] = values[k]
    return result
