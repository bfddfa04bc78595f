"""A crank and slider that spins freely: what the bearings and the guide have to carry, and one event per turn."""

import matplotlib.pyplot as plt
import numpy as np
from _figures import show_or_save

import daedal

CRANK, ROD, M1, M2, M3, G = 0.1, 0.3, 1.0, 1.5, 2.0, 9.81  # metres, kilograms; uniform bars, a sliding mass at the end


def mass(t, q):  # joint A = (q0, q1), slider B = (q2, 0): bars in the coordinates of their ends
    return np.diag([(M1 + M2) / 3, (M1 + M2) / 3, M2 / 3 + M3, M2 / 3 + M3]) + M2 / 6 * np.kron(
        np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(2)
    )


def weight(t, q, v):
    return np.array([0.0, -G * (M1 + M2) / 2, 0.0, -G * (M2 / 2 + M3)])


def joints(t, q):
    return np.array(
        [
            0.5 * (q[0] ** 2 + q[1] ** 2 - CRANK**2),
            0.5 * ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - ROD**2),
            q[3],
        ]
    )


system = daedal.MechanicalSystem(
    mass,
    weight,
    joints,
    n_q=4,
    n_constraints=3,
    names=["xA", "yA", "xB", "yB"],
    constraint_names=["crank", "rod", "guide"],
)
rate = 2.0 * np.pi * 5.0
given = [CRANK, 0.0, CRANK + 0.9 * ROD, 0.0], [0.0, rate * CRANK, 0.0, 0.0]
start = daedal.consistent_initial(system, 0.0, given, fixed=["xA", "yA", "yA'"])
dead_centre = daedal.Event(lambda t, q, v: q[1], direction=1, name="dead centre")
sol = daedal.solve(system, (0.0, 1.0), start.initial, rtol=1e-8, events=dead_centre)
print(sol)
turns = [event.t for event in sol.events]
print(f"{len(turns)} turns, the first in {turns[0]:.6f} s; lengths hold to {sol.drift['position']:.0e}")

times = np.linspace(0.0, turns[0], 500)
state = sol(times)
figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
above.plot(times, 1e3 * state.q[2])
above.set(ylabel="slider [mm]", title="Crank and slider, one turn")
below.plot(times, -state.lam[2], label="guide on slider")
below.plot(times, CRANK * state.lam[0], "--", label="length of the crank")
below.set(xlabel="t [s]", ylabel="constraint force [N]")
below.legend()
show_or_save(figure, "crank_slider")
