"""What is wrong with the parts of a model, found before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from daedal.errors import InvalidProblemError
from daedal.multibody.body import Body, Frame, ground
from daedal.multibody.joints import Joint
from daedal.multibody.layout import in_the_plane
from daedal.multibody.tree import ABOUT_Z, NO_ROTATION

_OFF = 1e-9  # of lengths and directions that should be zero


def check_parts(parts: Iterable[Any], gravity: np.ndarray, planar: bool):
    """Numbers, frames and, in the plane, directions; a message names the part."""
    for part in parts:
        what = called(part)
        _check_numbers(part, what)
        if isinstance(part, Body):
            if part.is_ground and part is not ground:
                raise InvalidProblemError("a body has the name 'ground', which is that of what stands still; rename it")
            continue
        for frame in (frame for frame in part.frames if isinstance(frame, Frame)):
            _check_frame(frame, what)
            if planar:
                _check_in_plane(frame, what)
        if planar and isinstance(part, Joint):
            _check_planar_joint(in_the_plane(part), type(part).__name__)
    if planar and abs(gravity[2]) > _OFF:
        raise InvalidProblemError(f"gravity has the component {gravity[2]:g} along z; a planar model moves in x and y")


def called(part: Any) -> str:
    """A part in a sentence: joint 'A', Spring 'left'."""
    kind = "body" if isinstance(part, Body) else "joint" if isinstance(part, Joint) else type(part).__name__
    return f"{kind} '{part.name}'"


def _check_numbers(part: Any, what: str):
    for name, value in vars(part).items():
        if isinstance(value, (float, np.ndarray)) and np.asarray(value).dtype.kind == "f" and np.any(np.isnan(value)):
            raise InvalidProblemError(f"{name} of {what} is not a number (nan)")


def _check_frame(frame: Frame, what: str):
    place = f"the frame of {what} on body '{frame.body.name}'"
    if frame.body.is_ground and frame.body is not ground:
        raise InvalidProblemError(f"{what} is on a body with the name 'ground', which is that of what stands still")
    if np.shape(frame.position) != (3,) or not np.all(np.isfinite(frame.position)):
        raise InvalidProblemError(f"{place} has the position {frame.position}; expected three finite numbers")
    turn = np.asarray(frame.rotation)
    if turn.shape != (3, 3) or not np.allclose(turn @ turn.T, np.eye(3), atol=1e-8) or np.linalg.det(turn) < 0:
        raise InvalidProblemError(f"{place} has axes that are not orthonormal and right-handed")


def _check_in_plane(frame: Frame, what: str):
    body = frame.body
    for place, value in (
        (f"the centre of body '{body.name}'", body.center),
        (f"the point of {what} on body '{body.name}'", frame.position),
    ):
        if abs(value[2]) > _OFF * max(1.0, float(np.abs(value).max())):
            raise InvalidProblemError(
                f"{place} has z = {value[2]:g}; a planar model lies in the plane z = 0; set it to 0, or drop planar"
            )


def _check_planar_joint(joint: Joint, kind: str):
    """All its motions must stay in the plane, and so must the second body where the joint is at zero."""
    axes = joint.a.rotation
    bodies = " and ".join(f"'{name}'" for name in joint.bodies)
    if joint.turn not in (NO_ROTATION, ABOUT_Z):
        raise InvalidProblemError(
            f"joint '{joint.name}' ({kind}) lets bodies {bodies} leave the plane; in a planar model use Revolute"
        )
    upright = abs(abs(axes[2, 2]) - 1.0) < _OFF
    if joint.turn != NO_ROTATION and not upright:
        raise InvalidProblemError(
            f"the axis of joint '{joint.name}' ({kind}) points along {_vector(axes[:, 2])}; "
            "in a planar model it is along z, the normal of the plane"
        )
    if np.any(np.abs(joint.slides @ axes[2]) > _OFF):
        raise InvalidProblemError(
            f"joint '{joint.name}' ({kind}) slides out of the plane, along {_vector(axes[:, 2])}; "
            "in a planar model it slides in x and y"
        )
    if abs((axes @ joint.b.rotation.T)[2, 2] - 1.0) > _OFF:
        raise InvalidProblemError(
            f"joint '{joint.name}' ({kind}) tilts bodies {bodies} against each other; in a planar model z stays z"
        )


def _vector(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value + 0.0:.4g}" for value in values) + ")"
