"""A driven pendulum from its energies in SymPy: where it stands once in every period shows its strange attractor."""

import matplotlib.pyplot as plt
import numpy as np
import sympy
from _figures import show_or_save
from sympy.physics.mechanics import dynamicsymbols

import daedal

PERIODS = 500
t = dynamicsymbols._t
x, y = dynamicsymbols("x y")
drive, frequency, damping = sympy.symbols("drive frequency damping")
vx, vy = x.diff(t), y.diff(t)
moment = drive * sympy.cos(frequency * t) - damping * (x * vy - y * vx)
pendulum = daedal.lagrange(
    (vx**2 + vy**2) / 2,  # kinetic energy
    y,  # potential energy
    [x, y],
    constraints=[x**2 + y**2 - 1],
    forces=[-moment * y, moment * x],
    params={drive: 1.5, frequency: 2.0 / 3.0, damping: 0.5},  # in the chaotic range
)
print(pendulum.functions)

period = 2.0 * np.pi / pendulum.params["frequency"]
times = period * np.arange(PERIODS + 1)
sol = daedal.solve(pendulum, (0.0, times[-1]), {x: 0.0, y: -1.0}, t_eval=times, rtol=1e-8, atol=1e-10)
print(sol)
print(f"largest error of the length: {np.abs(np.hypot(*sol.q) - 1.0).max():.1e}")

angle, rate = np.arctan2(sol["x"], -sol["y"]), sol["x"] * sol["y'"] - sol["y"] * sol["x'"]
figure, axes = plt.subplots(figsize=(6, 4))
axes.plot(angle[20:], rate[20:], ".", markersize=2)
axes.set(xlabel="angle", ylabel="angular velocity", title="A chaotic pendulum, once in every period of the drive")
show_or_save(figure, "chaotic_pendulum")
