"""The double wishbone suspension against closed kinematics, and the tippe top against its invariants."""

import numpy as np
import pytest

import daedal
from daedal import library

# --- double wishbone --------------------------------------------------------------------------------------------------


def turned(axis, angle, vector):
    """Rodrigues' formula."""
    e = axis / np.linalg.norm(axis)
    return vector * np.cos(angle) + np.cross(e, vector) * np.sin(angle) + e * (e @ vector) * (1.0 - np.cos(angle))


def on_circle(center, axis, point, target, distance):
    """Angles by which `point` turns about an axis until it has a distance from `target`: a cos + b sin = c."""
    e = axis / np.linalg.norm(axis)
    arm, d = point - center, target - center
    along = e * (e @ arm)
    a, b = d @ (arm - along), d @ np.cross(e, arm)
    c = 0.5 * (arm @ arm + d @ d - distance**2) - d @ along
    middle, half = np.arctan2(b, a), np.arccos(c / np.hypot(a, b))
    return min((middle - half, middle + half), key=lambda angle: abs(np.angle(np.exp(1j * angle))))


def upright_in_closed_form(P, angle):
    """Rotation of the upright, and place of the wheel, when the lower arm is turned by an angle."""
    length = lambda a, b: np.linalg.norm(P[a] - P[b])  # noqa: E731
    lower_axis, upper_axis = P["lower front"] - P["lower rear"], P["upper front"] - P["upper rear"]
    low = P["lower front"] + turned(lower_axis, angle, P["lower ball"] - P["lower front"])
    second = on_circle(P["upper front"], upper_axis, P["upper ball"], low, length("lower ball", "upper ball"))
    high = P["upper front"] + turned(upper_axis, second, P["upper ball"] - P["upper front"])
    before, after = P["upper ball"] - P["lower ball"], high - low
    axis = np.cross(before, after)
    tilt = np.arctan2(np.linalg.norm(axis), before @ after)
    swung = (lambda x: turned(axis, tilt, x)) if tilt > 0.0 else (lambda x: x)
    arm = low + swung(P["steering arm"] - P["lower ball"])
    third = on_circle(low, after, arm, P["rack"], length("rack", "steering arm"))
    carry = lambda x: turned(after, third, swung(x))  # noqa: E731
    return np.column_stack([carry(e) for e in np.eye(3)]), low + carry(P["wheel"] - P["lower ball"])


def test_camber_and_toe_of_the_suspension_follow_from_three_circles():
    model = library.double_wishbone()
    angles = np.linspace(-0.2, 0.2, 9)
    motion = model.extra["machine"].kinematics(np.linspace(0.0, 0.1, 9), {"heave": 0.0, "lower hinge": angles})
    upright, measured = motion.body("upright"), []
    for k, angle in enumerate(angles):
        rotation, wheel = upright_in_closed_form(model.extra["points"], angle)
        np.testing.assert_allclose(upright.orientation[k], rotation, atol=1e-11)
        np.testing.assert_allclose(upright.position[:, k], wheel, atol=1e-11)
        measured.append(np.degrees(model.extra["camber_and_toe"](upright.orientation[k])))
    camber, toe = np.array(measured).T
    assert np.all(np.diff(camber) < 0.0) and np.all(np.diff(toe) < 0.0)  # more negative camber as the wheel rises
    assert camber[4] == pytest.approx(0.0, abs=1e-10) and toe[4] == pytest.approx(0.0, abs=1e-10)


def test_the_suspension_stands_at_rest_and_runs_over_the_bump():
    model = library.double_wishbone()
    flat = library.double_wishbone(height=0.0, t1=0.5)
    still = daedal.solve(flat.problem, flat.t_span, flat.initial, **flat.options)
    assert np.max(np.ptp(still.q, axis=1)) < 1e-8
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, atol=1e-6)
    assert np.ptp(sol.body("upright").position[2]) > 0.06 and 0.02 < np.ptp(sol["heave"]) < 0.06
    np.testing.assert_allclose(sol["road"], 0.06 * np.exp(-(((sol.t - 0.4) / 0.06) ** 2)), atol=1e-8)
    for k in range(0, sol.t.size, 20):  # in the run the wheel is where closed kinematics puts it
        rotation, wheel = upright_in_closed_form(model.extra["points"], sol["lower hinge"][k])
        np.testing.assert_allclose(sol.body("upright").orientation[k], rotation, atol=1e-7)
        np.testing.assert_allclose(sol.body("upright").position[:, k] - [0.0, 0.0, sol["heave"][k]], wheel, atol=1e-7)


# --- tippe top --------------------------------------------------------------------------------------------------------


def test_the_tippe_top_turns_over_and_keeps_jelletts_integral():
    model = library.tippe_top()
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    jellett = [model.extra["jellett"](q, v) for q, v in zip(sol.q.T[::50], sol.v.T[::50])]
    np.testing.assert_allclose(jellett, jellett[0], rtol=1e-6)
    stem = sol.body("top").orientation[:, 2, 2]
    assert stem[0] == pytest.approx(np.cos(0.1)) and stem[-1] < -0.9999
    assert np.max(np.diff(sol.energy.total)) < 1e-9 * sol.energy.total[0]
    assert np.max(np.abs(sol["pose.z"] - 0.02)) < 1e-9
    spin = sol.body("top").angular_velocity[2, -1]  # a ball upside down: -L . a = I_3 w R (1 + alpha)
    assert spin == pytest.approx(155.0 * (np.cos(0.1) - 0.3) / (1.0 + 0.3), rel=1e-4)
    np.testing.assert_allclose(sol.y[:, -1], model.reference.y, atol=3e-3)  # phase of 200 turns
    assert np.max(np.abs(sol.q[:, -1] - model.reference.y[:7])) < 1e-4


def test_the_friction_of_the_tippe_top_takes_c_times_the_square_of_sliding():
    model = library.tippe_top(t1=0.5)
    system = model.problem
    sol = daedal.solve(system, model.t_span, model.initial, rtol=1e-10, atol=1e-10, t_eval=np.linspace(0, 0.5, 2001))
    view = sol.body("top")
    slip = view.velocity[:2] + 0.02 * np.array([-view.angular_velocity[1], view.angular_velocity[0]])
    loss = np.trapezoid(0.06 * np.sum(slip**2, axis=0), sol.t)
    assert sol.energy.total[0] - sol.energy.total[-1] == pytest.approx(loss, rel=1e-4)


def test_a_slow_tippe_top_stays_upright():
    model = library.tippe_top(spin=20.0, t1=2.0)
    sol = daedal.solve(model.problem, model.t_span, model.initial, **model.options)
    assert np.min(sol.body("top").orientation[:, 2, 2]) > 0.99


@pytest.mark.parametrize("given, message", [({"friction": 0.0}, "friction"), ({"tilt": 4.0}, "below")])
def test_a_tippe_top_without_friction_or_tilt_is_refused(given, message):
    with pytest.raises(daedal.InvalidProblemError, match=message):
        library.tippe_top(**given)
