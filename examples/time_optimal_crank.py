"""The shortest time in which a motor of limited torque turns a crank with a slider by half a turn, from rest to rest.

With the time t = T tau, the duration T is a parameter like the torques at the nodes; one run with sensitivities gives
all derivatives. The best torque that may jump, full ahead and then full back, takes 0.4443 s (docs/guide/gradients.md).
"""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save
from scipy.optimize import minimize

import daedal

RADIUS, ROD, INERTIA, SLIDER, NODES = 0.1, 0.3, 0.01, 2.0, 21
START = ([0.0, RADIUS + ROD], [0.0, 0.0])
COLUMNS = ["T", *(f"torque[{k}]" for k in range(NODES))]


def torque(tau, p):
    return sum(p["torque"][k] * np.maximum(0.0, 1.0 - np.abs((NODES - 1) * tau - k)) for k in range(NODES))


crank = daedal.MechanicalSystem(  # in scaled time forces are multiplied by T^2
    mass=np.diag([INERTIA, SLIDER]),
    force=lambda tau, q, v, p: p["T"] ** 2 * np.array([torque(tau, p), 0.0]),
    constraint=lambda tau, q, p: [(q[1] - RADIUS * np.cos(q[0])) ** 2 + (RADIUS * np.sin(q[0])) ** 2 - ROD**2],
    n_q=2,
    n_constraints=1,
    params={"T": 1.0, "torque": np.zeros(NODES)},
)
solver = daedal.prepare(crank, sensitivities=["T", "torque"], rtol=1e-8, atol=1e-10)


def ends(x):
    """The motion; how far its end is from half a turn and from rest; the derivatives of that."""
    sol = solver.solve((0.0, 1.0), START, params={"T": x[0], "torque": x[1:]})
    slopes = [sol.sensitivity(name, 1.0) for name in COLUMNS]
    return sol, np.array([sol.q[0, -1] - np.pi, sol.v[0, -1]]), np.array([[s.q[0], s.v[0]] for s in slopes]).T


best = minimize(
    lambda x: (x[0], np.eye(NODES + 1)[0]),
    np.r_[1.0, np.linspace(0.3, -0.3, NODES)],
    jac=True,
    method="SLSQP",
    bounds=[(0.05, 5.0), *[(-1.0, 1.0)] * NODES],
    constraints={"type": "eq", "fun": lambda x: ends(x)[1], "jac": lambda x: ends(x)[2]},
    options={"maxiter": 100, "ftol": 1e-7},
)
sol, missing, _ = ends(best.x)
print(f"T = {best.x[0]:.4f} s with {NODES} nodes; the end is {np.abs(missing).max():.1e} off; {best.nit} iterations")
tau = np.linspace(0.0, 1.0, 401)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
left.plot(best.x[0] * tau, [torque(t, {"torque": best.x[1:]}) for t in tau])
left.set(xlabel="t [s]", ylabel="torque [N m]", title="Full ahead, then full back")
right.plot(best.x[0] * tau, sol(tau).q[0])
right.set(xlabel="t [s]", ylabel="angle [rad]", title=f"Half a turn in {best.x[0]:.3f} s")
show_or_save(figure, "time_optimal_crank")
