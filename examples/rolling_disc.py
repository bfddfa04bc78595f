"""An upright disc rolls on an incline: velocity constraints that no condition on positions can replace."""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

RADIUS, MASS, SLOPE = 0.5, 1.0, 2.0  # metres, kilograms, the part of gravity along the incline


def rolling(t, q, v):  # q = (x, y, heading, roll): the point of contact is at rest
    return np.array([v[0] - RADIUS * np.cos(q[2]) * v[3], v[1] - RADIUS * np.sin(q[2]) * v[3]])


disc = daedal.MechanicalSystem(
    mass=[MASS, MASS, 0.25 * MASS * RADIUS**2, 0.5 * MASS * RADIUS**2],
    force=lambda t, q, v: np.array([MASS * SLOPE, 0.0, 0.0, 0.0]),
    n_q=4,
    velocity_constraint=rolling,
    n_velocity_constraints=2,
    names=["x", "y", "heading", "roll"],
    constraint_names=["rolling x", "rolling y"],
)
start = daedal.consistent_initial(disc, 0.0, ([0.0] * 4, [0.0, 0.0, 1.0, 3.0]), fixed=["heading'", "roll'"])
sol = daedal.solve(disc, (0.0, 4.0 * np.pi), start.initial, rtol=1e-9, atol=1e-11)
print(sol)

# The disc keeps turning at its rate w, and accelerates along its heading by 2/3 of the slope there.
heading, w = sol["heading"], 1.0
roll_rate = 3.0 + 2.0 / 3.0 * SLOPE / RADIUS * np.sin(w * sol.t) / w
print(f"largest error of the rolling speed: {abs(sol['roll' + chr(39)] - roll_rate).max():.1e}")

figure, (plane, force) = plt.subplots(1, 2, figsize=(9, 4))
plane.plot(sol["y"], -sol["x"])
plane.set(aspect="equal", xlabel="across the slope [m]", ylabel="up the slope [m]", title="Path of a rolling disc")
ahead, across = np.array([np.cos(heading), np.sin(heading)]), np.array([-np.sin(heading), np.cos(heading)])
contact = sol.reaction[:2]
force.plot(sol.t, np.sum(contact * ahead, axis=0), label="along the heading")
force.plot(sol.t, np.sum(contact * across, axis=0), "--", label="across it")
force.set(xlabel="t [s]", ylabel="force of the ground [N]", title="Static friction it takes", ylim=(-2.5, 6.5))
force.legend(loc="upper center", ncols=2)
show_or_save(figure, "rolling_disc")
