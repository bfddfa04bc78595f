"""The shortest time in which a motor of limited torque turns a crank with a slider by half a turn, from rest to rest.

With the time t = T tau, tau from 0 to 1, the duration T is a parameter like the torques at equidistant nodes. Positions
and velocities with their exact derivatives come from one run with sensitivities; SLSQP of SciPy does the rest. Without
friction the best torque is full ahead over a quarter turn and full back over the next, which gives the time to compare
with: T = integral of sqrt(J(phi) / (2 M min(phi, pi - phi))) over half a turn.
"""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save
from scipy.integrate import quad
from scipy.optimize import minimize

import daedal

RADIUS, ROD, INERTIA, SLIDER, LIMIT, NODES = 0.1, 0.3, 0.01, 2.0, 1.0, 21


def torque(tau, p):
    """Linear between the nodes."""
    return sum(p["torque"][k] * np.maximum(0.0, 1.0 - np.abs((NODES - 1) * tau - k)) for k in range(NODES))


def rod(tau, q, p):
    return np.array([(q[1] - RADIUS * np.cos(q[0])) ** 2 + (RADIUS * np.sin(q[0])) ** 2 - ROD**2])


crank = daedal.MechanicalSystem(  # in scaled time forces are multiplied by T^2
    mass=np.diag([INERTIA, SLIDER]),
    force=lambda tau, q, v, p: p["T"] ** 2 * np.array([torque(tau, p), 0.0]),
    constraint=rod,
    n_q=2,
    n_constraints=1,
    names=["angle", "slider"],
    params={"T": 1.0, "torque": np.zeros(NODES)},
)
start = ([0.0, RADIUS + ROD], [0.0, 0.0])
solver = daedal.prepare(crank, sensitivities=["T", "torque"], rtol=1e-8, atol=1e-10)


def motion(x):
    return solver.solve((0.0, 1.0), start, params={"T": x[0], "torque": x[1:]})


def ends(x):
    """How far the end is from half a turn and from rest, with derivatives."""
    sol = motion(x)
    missing = np.array([sol.q[0, -1] - np.pi, sol.v[0, -1]])
    slopes = [sol.sensitivity(name, 1.0) for name in ("T", *(f"torque[{k}]" for k in range(NODES)))]
    return missing, np.array([[s.q[0], s.v[0]] for s in slopes]).T


guess = np.r_[1.0, np.linspace(0.3, -0.3, NODES)]
best = minimize(
    lambda x: x[0],
    guess,
    jac=lambda x: np.eye(NODES + 1)[0],
    method="SLSQP",
    bounds=[(0.05, 5.0), *[(-LIMIT, LIMIT)] * NODES],
    constraints={"type": "eq", "fun": lambda x: ends(x)[0], "jac": lambda x: ends(x)[1]},
    options={"maxiter": 200, "ftol": 1e-9},
)


def effective_inertia(angle):
    """Of the crank and of the slider, which moves by dx/dphi."""
    sine = RADIUS * np.sin(angle)
    lever = -sine - sine * RADIUS * np.cos(angle) / np.sqrt(ROD**2 - sine**2)
    return INERTIA + SLIDER * lever**2


shortest = quad(
    lambda angle: np.sqrt(effective_inertia(angle) / (2.0 * LIMIT * min(angle, np.pi - angle))),
    *(0.0, np.pi),
    points=[np.pi / 2],
)[0]
print(f"{best.message}: T = {best.x[0]:.4f} s with {NODES} nodes, {shortest:.4f} s with a torque that jumps")
print(f"end: {np.abs(ends(best.x)[0]).max():.1e} off, {best.nit} iterations")

sol, tau = motion(best.x), np.linspace(0.0, 1.0, 401)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
left.plot(best.x[0] * tau, [torque(t, {"torque": best.x[1:]}) for t in tau])
left.axhline(LIMIT, color="0.6", lw=0.8)
left.axhline(-LIMIT, color="0.6", lw=0.8)
left.set(xlabel="t [s]", ylabel="torque [N m]", title="Full ahead, then full back")
right.plot(best.x[0] * tau, sol(tau).q[0], label="angle [rad]")
right.plot(best.x[0] * tau, 10.0 * sol(tau).q[1], label="slider [dm]")
right.set(xlabel="t [s]", title=f"Half a turn in {best.x[0]:.3f} s")
right.legend()
show_or_save(figure, "time_optimal_crank")
